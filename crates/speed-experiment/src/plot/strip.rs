//! The students' accuracies one by one: a strip plot, and the same as a table.

use std::fmt::Write as _;

use super::svg::{self, BOTTOM, RIGHT, TOP, Ticks, WIDTH, line, text};
use crate::report::{Report, ReportRow, median};
use crate::table::{Table, percent};

const LEFT: f64 = 150.0;
const LANE: f64 = 46.0;

impl Report {
    /// Tabulates the accuracy of every student, in percent: averaged and last parameters, and the folder that holds its metrics.
    #[must_use]
    pub fn students(&self) -> Table {
        let mut table = Table::new(["row", "repeat", "accuracy %", "last parameters %", "stage"]);
        for row in &self.rows {
            for (repeat, student) in row.students.iter().enumerate() {
                let [average, last] = [student.accuracy, student.accuracy_raw].map(percent);
                table.push(vec![row.name.clone(), repeat.to_string(), average, last, student.stage.clone()]);
            }
        }
        table
    }

    /// Draws the accuracies as an SVG, a lane for each row; `None` without students.
    #[must_use]
    pub fn strip_plot(&self) -> Option<String> {
        let rows: Vec<&ReportRow> = self.rows.iter().filter(|row| !row.students.is_empty()).collect();
        let scale = Scale::of(&rows)?;
        #[expect(clippy::cast_precision_loss, reason = "a handful of rows")]
        let height = TOP + LANE * rows.len() as f64 + BOTTOM;
        let title = format!("{}: accuracy of every student", self.experiment);
        let key = "\u{25cf} averaged parameters, \u{25cb} last parameters; line: median; grey: the paper's mean \u{b1} deviation";
        let mut svg = svg::begin(height, &title, key);
        scale.draw(&mut svg, height - BOTTOM);
        let mut y = TOP + LANE / 2.0;
        for row in rows {
            lane(&mut svg, &scale, y, row);
            y += LANE;
        }
        svg.push_str("</svg>\n");
        Some(svg)
    }
}

/// Draws one row: its paper's figures behind, its students in front.
fn lane(svg: &mut String, scale: &Scale, y: f64, row: &ReportRow) {
    text(svg, LEFT - 12.0, y + 4.0, "end", 13, &row.name);
    if let Some(accuracy) = row.paper.accuracy {
        let deviation = row.paper.deviation.unwrap_or(0.0);
        let [from, to] = [-1.0, 1.0].map(|side| scale.x(accuracy + side * deviation));
        let _ = writeln!(
            svg,
            "<rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"20\" fill=\"#e4e4e4\"/>",
            y - 10.0,
            (to - from).max(1.0)
        );
        line(svg, (scale.x(accuracy), y - 10.0), (scale.x(accuracy), y + 10.0), "#8c8c8c", 2.0);
    }
    let accuracies: Vec<f64> = row.students.iter().map(|student| 100.0 * student.accuracy).collect();
    let middle = scale.x(median(&accuracies));
    line(svg, (middle, y - 14.0), (middle, y + 14.0), "#111", 1.6);
    for student in &row.students {
        let circle = |svg: &mut String, value: f64, y: f64, fill: &str| {
            let x = scale.x(100.0 * value);
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{fill}\" fill-opacity=\"0.75\" stroke=\"#111\"/>"
            );
        };
        circle(svg, student.accuracy_raw, y + 7.0, "#fff");
        circle(svg, student.accuracy, y - 3.0, "#111");
    }
}

/// Percent along the width.
struct Scale(Ticks);

impl Scale {
    /// The scale of all students and of the paper's bars; `None` without students.
    fn of(rows: &[&ReportRow]) -> Option<Self> {
        let students = rows.iter().flat_map(|row| &row.students);
        let ours = students.flat_map(|student| [100.0 * student.accuracy, 100.0 * student.accuracy_raw]);
        let papers = rows.iter().filter_map(|row| Some((row.paper.accuracy?, row.paper.deviation.unwrap_or(0.0))));
        let papers = papers.flat_map(|(accuracy, deviation)| [-1.0, 1.0].map(|side| accuracy + side * deviation));
        Ticks::covering(ours.chain(papers), 10.0).map(Self)
    }

    fn x(&self, percent: f64) -> f64 {
        LEFT + self.0.share(percent) * (WIDTH - LEFT - RIGHT)
    }

    fn draw(&self, svg: &mut String, bottom: f64) {
        for tick in self.0.values() {
            let x = self.x(tick);
            line(svg, (x, TOP), (x, bottom), "#ececec", 1.0);
            text(svg, x, bottom + 18.0, "middle", 13, &format!("{tick}"));
        }
        line(svg, (LEFT, bottom), (WIDTH - RIGHT, bottom), "#111", 1.2);
        text(svg, f64::midpoint(LEFT, WIDTH - RIGHT), bottom + 40.0, "middle", 14, "accuracy on the test images, %");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_students_no_scale() {
        assert!(Scale::of(&[]).is_none());
    }
}
