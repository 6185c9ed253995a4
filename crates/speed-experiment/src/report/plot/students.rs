//! The accuracies of students: a strip plot, a plot by epoch, and tables of both.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use speed_student::StudentMethod;

use super::chart::{Axis, Chart, FONT, LETTER, Line, Point, Series, named};
use crate::report::row::{EpochAccuracy, ReportRow, StudentRun};
use crate::report::run::{Report, title_of};
use crate::report::statistics::{distinct, median};
use crate::report::table::{Table, percent};

/// Height of a row and of the margins around all rows, in pixels.
const LANE: u32 = 46;
const AROUND: u32 = 140;
/// Width of the range of accuracies in pixels.
const WIDTH: u32 = 620;

const PAPER: RGBColor = RGBColor(222, 222, 222);
const PAPER_MEAN: RGBColor = RGBColor(130, 130, 130);
const KEY: &str = "filled: averaged parameters, empty: last parameters; line: median";
const KEY_OF_PAPER: &str = "; grey: the paper's mean \u{b1} deviation";

/// Range below the worst student's accuracy that is drawn, in percentage points; lower values are from the start of the
/// training.
const BELOW: f64 = 6.0;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

impl Report {
    /// Returns a table of every student's accuracy in percent, for averaged and last parameters, with the directory of
    /// its metrics.
    pub(crate) fn students(&self) -> Table {
        let mut table = Table::new(["row", "repeat", "accuracy %", "last parameters %", "stage"]);
        for row in &self.rows {
            for (repeat, student) in row.students.iter().enumerate() {
                let [average, last] = [student.accuracy, student.accuracy_raw].map(percent);
                table.push(vec![row.name.clone(), repeat.to_string(), average, last, student.stage.clone()]);
            }
        }
        table
    }

    /// Draws the accuracies as an SVG, with a lane for each row; `None` without students.
    pub(crate) fn strip_plot(&self) -> Option<String> {
        let rows: Vec<&ReportRow> = self.rows.iter().filter(|row| !row.students.is_empty()).collect();
        let length = |text: &str| u32::try_from(text.chars().count()).unwrap_or(u32::MAX / LETTER - 8);
        // Names are never truncated: the picture is wide enough for the longest name.
        let names = LETTER * rows.iter().map(|row| length(&row.name)).max()? + 24;
        let lanes = u32::try_from(rows.len()).ok()?;
        let title = format!("{}: accuracy of every student", self.experiment);
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, (names + WIDTH, lanes * LANE + AROUND)).into_drawing_area();
            draw(&area, &rows, names, &title)?;
            area.present().ok()?;
        }
        Some(named(&svg, &title))
    }

    /// Returns a table of every student's accuracies at every evaluated epoch, in percent: averaged and last
    /// parameters.
    pub(crate) fn students_by_epoch(&self) -> Table {
        let mut table = Table::new(["stage", "epoch", "accuracy %", "last parameters %"]);
        for (student, _) in self.distinct_students() {
            for epoch in &student.by_epoch {
                let [average, raw] = [epoch.average, epoch.raw].map(percent);
                table.push(vec![student.stage.clone(), epoch.epoch.to_string(), average, raw]);
            }
        }
        table
    }

    /// Draws these accuracies as an SVG, with two lines for each student; `None` without students. A note gives the
    /// number of points below the drawn range.
    pub(crate) fn epochs_plot(&self) -> Option<String> {
        let students = self.distinct_students();
        let final_accuracies = students.iter().flat_map(|(student, _)| [student.accuracy, student.accuracy_raw]);
        let least = 100.0 * final_accuracies.reduce(f64::min)? - BELOW;
        let mut below = 0;
        let mut line = |name: &str, line, student: &StudentRun, accuracy: fn(&EpochAccuracy) -> f64| {
            let points = student.by_epoch.iter().map(|epoch| (f64::from(epoch.epoch), 100.0 * accuracy(epoch)));
            let (points, hidden): (Vec<_>, Vec<_>) = points.partition(|(_, accuracy)| *accuracy >= least);
            below += hidden.len();
            let points = points.into_iter().map(|(x, y)| Point { x, y, spread: None });
            Series { name: name.to_owned(), points: points.collect(), line }
        };
        let mut series: Vec<Series> = Vec::new();
        for (student, _) in &students {
            series.push(line("last parameters", Line::Faint, student, |epoch| epoch.raw));
        }
        let known: Vec<&str> = StudentMethod::all().into_iter().map(|method| method.name()).collect();
        for method in distinct(known.into_iter().chain(students.iter().map(|(_, method)| *method))) {
            let name = format!("averaged parameters, {}", title_of(method));
            let of_method = students.iter().filter(|(_, other)| *other == method);
            series.extend(of_method.map(|(student, _)| line(&name, Line::Plain, student, |epoch| epoch.average)));
        }
        let hidden = if below == 0 { String::new() } else { format!(" (not drawn: {below} below {least:.1} %)") };
        Chart {
            title: format!("{}: accuracy of every student by epoch", self.experiment),
            x: Axis::new(format!("epoch{hidden}")),
            y: Axis::new("accuracy on the test images, %"),
            series,
            asymptote: None,
        }
        .to_svg()
    }

    /// Returns every student with recorded epochs once, even if several rows share it.
    fn distinct_students(&self) -> Vec<(&StudentRun, &str)> {
        let mut distinct: Vec<(&StudentRun, &str)> = Vec::new();
        for row in &self.rows {
            for student in row.students.iter().filter(|student| !student.by_epoch.is_empty()) {
                if distinct.iter().all(|(other, _)| other.stage != student.stage) {
                    distinct.push((student, &row.method));
                }
            }
        }
        distinct
    }
}

fn draw(area: &Area<'_>, rows: &[&ReportRow], names: u32, title: &str) -> Option<()> {
    let (low, high) = range(rows)?;
    area.fill(&WHITE).ok()?;
    let (above, area) = area.split_vertically(64);
    let middle = i32::try_from(above.dim_in_pixel().0 / 2).ok()?;
    let has_paper = rows.iter().any(|row| row.paper.accuracy.is_some());
    let key = format!("{KEY}{}", if has_paper { KEY_OF_PAPER } else { "" });
    for (y, size, text) in [(14, 18, title), (42, 13, &key)] {
        let style = (FONT, size).into_font().color(&BLACK).pos(Pos::new(HPos::Center, VPos::Top));
        above.draw_text(text, &style, (middle, y)).ok()?;
    }
    #[expect(clippy::cast_precision_loss, reason = "a handful of rows")]
    let lanes = rows.len() as f64;
    let mut chart = ChartBuilder::on(&area)
        .margin_right(24)
        .x_label_area_size(52)
        .y_label_area_size(names)
        .build_cartesian_2d(low..high, lanes..0.0)
        .ok()?;
    let mut mesh = chart.configure_mesh();
    mesh.light_line_style(TRANSPARENT).bold_line_style(RGBColor(226, 226, 226)).disable_y_mesh().y_labels(0);
    mesh.x_labels(10).x_label_formatter(&|percent| format!("{}", (percent * 100.0).round() / 100.0));
    mesh.x_desc("accuracy on the test images, %").axis_desc_style((FONT, 15)).label_style((FONT, 13));
    mesh.draw().ok()?;
    let name = (FONT, 13).into_font().color(&BLACK).pos(Pos::new(HPos::Right, VPos::Center));
    let mut lane = 0.5;
    for row in rows {
        let upright = |x: f64, half: f64| [(x, lane - half), (x, lane + half)];
        // The paper's figures are in the background, the students in front.
        if let Some(accuracy) = row.paper.accuracy {
            let deviation = row.paper.deviation.unwrap_or(0.0);
            let ends = [(accuracy - deviation, lane - 0.22), (accuracy + deviation, lane + 0.22)];
            chart.draw_series([Rectangle::new(ends, PAPER.filled())]).ok()?;
            chart.draw_series([PathElement::new(upright(accuracy, 0.22), PAPER_MEAN.stroke_width(2))]).ok()?;
        }
        let accuracies: Vec<f64> = row.students.iter().map(|student| 100.0 * student.accuracy).collect();
        let middle = PathElement::new(upright(median(&accuracies), 0.32), BLACK.stroke_width(2));
        chart.draw_series([middle]).ok()?;
        let circles = row.students.iter().flat_map(|student| {
            let (average, last) =
                ((100.0 * student.accuracy, lane - 0.08), (100.0 * student.accuracy_raw, lane + 0.14));
            let styles = [(last, WHITE.filled()), (last, BLACK.stroke_width(1)), (average, BLACK.mix(0.75).filled())];
            styles.map(|(place, style)| Circle::new(place, 4, style))
        });
        chart.draw_series(circles).ok()?;
        let (_, y) = chart.backend_coord(&(low, lane));
        let (_, above) = area.get_base_pixel();
        area.draw_text(&row.name, &name, (i32::try_from(names).ok()? - 12, y - above)).ok()?;
        lane += 1.0;
    }
    Some(())
}

/// Returns the range of the percentages, including the paper's, with a margin.
fn range(rows: &[&ReportRow]) -> Option<(f64, f64)> {
    let students = rows.iter().flat_map(|row| &row.students);
    let ours = students.flat_map(|student| [100.0 * student.accuracy, 100.0 * student.accuracy_raw]);
    let papers = rows.iter().filter_map(|row| Some((row.paper.accuracy?, row.paper.deviation.unwrap_or(0.0))));
    let papers = papers.flat_map(|(accuracy, deviation)| [accuracy - deviation, accuracy + deviation]);
    let values = ours.chain(papers).filter(|value| value.is_finite()).map(|value| (value, value));
    let (low, high) = values.reduce(|(low, high), (value, _)| (low.min(value), high.max(value)))?;
    let room = (0.05 * (high - low)).max(0.25);
    (high - low).is_finite().then_some((low - room, high + room))
}
