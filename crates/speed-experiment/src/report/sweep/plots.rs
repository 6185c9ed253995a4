//! The plots of a sweep: accuracy over epsilon, and each of them over the first swept key; and the sweep's files, with its plots.

use super::report::SweepReport;
use super::tables::{NOTES, SweepLine};
use crate::report::plot::{Axis, Chart, Line, Point, Series};
use crate::report::statistics::distinct;

pub(crate) struct Plot {
    pub(crate) name: &'static str,
    pub(crate) title: String,
    pub(crate) svg: String,
}

/// A function that returns a figure of a line and its spread.
type Figure = fn(&SweepLine) -> Option<(f64, Option<f64>)>;

impl SweepReport {
    /// Returns the names and contents of the files of the sweep: its table, plots, report and page.
    pub(crate) fn files(&self) -> Vec<(&'static str, String)> {
        let plots = self.plots();
        let markdown = self.to_markdown(&plots);
        let plots = plots.into_iter().map(|plot| (plot.name, plot.svg));
        let files = std::iter::once(("sweep.csv", self.table().to_csv())).chain(plots);
        files.chain([("sweep.md", markdown), ("report.html", self.to_html())]).collect()
    }

    fn to_markdown(&self, plots: &[Plot]) -> String {
        let plots: String = plots.iter().map(|plot| format!("\n![{}]({})\n", plot.title, plot.name)).collect();
        format!("# {}\n\n{}\n{}\n{NOTES}{plots}", self.experiment, self.conditions(), self.table().to_markdown())
    }

    /// Draws all possible plots; a plot needs two settings with its figures.
    pub(crate) fn plots(&self) -> Vec<Plot> {
        let lines = self.lines();
        let has_students = lines.iter().any(|line| line.students.mean.is_some());
        let accuracy: Figure =
            if has_students { |line| line.students.in_percent() } else { |line| line.labels.in_percent() };
        let what = if has_students { "students' accuracy" } else { "right labels" };
        let names = ["accuracy.svg", "accuracy-by-setting.svg", "epsilon-by-setting.svg"];
        let charts = [
            self.accuracy_over_epsilon(&lines, accuracy, what),
            self.over_key(&lines, &[("", accuracy)], Axis::new(format!("{what}, %")), what),
            self.over_key(
                &lines,
                &[
                    (", data-independent", |line| Some((line.data_independent?, None))),
                    (", data-dependent", |line| Some((line.data_dependent?, None))),
                ],
                Axis::new("epsilon").logarithmic(),
                "epsilon",
            ),
        ];
        let drawn = names.into_iter().zip(charts).filter_map(|(name, chart)| {
            let chart = chart?;
            Some(Plot { name, title: chart.title.clone(), svg: chart.to_svg()? })
        });
        drawn.collect()
    }

    /// Draws accuracy over epsilon: one line for each row and each setting of all keys except the first, in order of
    /// epsilon.
    fn accuracy_over_epsilon(&self, lines: &[SweepLine], accuracy: Figure, what: &str) -> Option<Chart> {
        let first = self.differing(lines).first().copied();
        let mut series: Vec<Series> = Vec::new();
        for line in lines {
            let (Some(x), Some((y, spread))) = (line.data_independent, accuracy(line)) else { continue };
            add(&mut series, &self.name_of(line, lines, first), Point { x, y, spread });
        }
        for series in &mut series {
            series.points.sort_by(|one, other| one.x.total_cmp(&other.x));
        }
        let x = Axis::new("data-independent epsilon").logarithmic();
        self.chart(format!("{what} over epsilon"), x, Axis::new(format!("{what}, %")), series)
    }

    /// Draws figures over the first key with several values: one line for each row and each setting of the other keys.
    fn over_key(&self, lines: &[SweepLine], figures: &[(&str, Figure)], y: Axis, what: &str) -> Option<Chart> {
        let keys = self.compared_keys();
        let key = *self.differing(lines).first()?;
        let swept = values_of(lines, key);
        let (x, places) = axis_of(keys[key], &swept);
        let mut series: Vec<Series> = Vec::new();
        for line in lines {
            let name = self.name_of(line, lines, Some(key));
            let place = swept.iter().position(|value| *value == line.values[key]).unwrap_or_default();
            for (suffix, figure) in figures {
                if let Some((y, spread)) = figure(line) {
                    add(&mut series, &format!("{name}{suffix}"), Point { x: places[place], y, spread });
                }
            }
        }
        self.chart(format!("{what} over {}", keys[key]), x, y, series)
    }

    /// Returns the indices of the keys with several values.
    fn differing(&self, lines: &[SweepLine]) -> Vec<usize> {
        (0..self.compared_keys().len()).filter(|&key| values_of(lines, key).len() > 1).collect()
    }

    /// Returns the name of a line's series: its row and its values of the differing keys, except the key `along` the
    /// axis.
    fn name_of(&self, line: &SweepLine, lines: &[SweepLine], along: Option<usize>) -> String {
        let keys = self.compared_keys();
        let others = self.differing(lines).into_iter().filter(|&key| Some(key) != along);
        let others: String = others.map(|key| format!(", {} = {}", keys[key], line.values[key])).collect();
        format!("{}{others}", line.row)
    }

    fn chart(&self, title: String, x: Axis, y: Axis, series: Vec<Series>) -> Option<Chart> {
        let title = format!("{}: {title}{}", self.experiment, if self.simulation { " (simulation)" } else { "" });
        let drawn = series.iter().map(|series| series.points.len()).max()? > 1;
        drawn.then_some(Chart { title, x, y, series, asymptote: None })
    }
}

fn values_of(lines: &[SweepLine], key: usize) -> Vec<&str> {
    distinct(lines.iter().map(|line| line.values[key].as_str()))
}

/// Returns the axis of a key and the positions of its values. Numbers are at their own positions, on a logarithmic axis if
/// they span more than a factor of ten; other values are evenly spaced.
fn axis_of(key: &str, values: &[&str]) -> (Axis, Vec<f64>) {
    let (axis, numbers) = (Axis::new(key), values.iter().map(|value| value.parse().ok()).collect::<Option<Vec<f64>>>());
    let Some(places) = numbers else {
        let names = values.iter().map(ToString::to_string).collect();
        #[expect(clippy::cast_precision_loss, reason = "a handful of values")]
        let places = (0..values.len()).map(|place| place as f64).collect();
        return (Axis { names, ..axis }, places);
    };
    let (low, high) = places.iter().fold((f64::INFINITY, 0.0f64), |(low, high), &x| (low.min(x), high.max(x)));
    (if low > 0.0 && high > 10.0 * low { axis.logarithmic() } else { axis }, places)
}

fn add(series: &mut Vec<Series>, name: &str, point: Point) {
    match series.iter_mut().find(|series| series.name == name) {
        Some(series) => series.points.push(point),
        None => series.push(Series { name: name.to_owned(), points: vec![point], line: Line::Marked }),
    }
}
