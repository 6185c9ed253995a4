//! The students' accuracies epoch by epoch.

use std::fmt::Write as _;

use speed_student::StudentMethod;

use super::svg::{self, BOTTOM, RIGHT, TOP, Ticks, WIDTH, line, text};
use crate::report::Report;
use crate::stages::StudentRun;
use crate::table::{Table, percent};

const HEIGHT: f64 = 440.0;
const LEFT: f64 = 64.0;

/// Percentage points below the worst student's accuracy that are still drawn: epochs below are learning to begin.
const BELOW: f64 = 6.0;

impl Report {
    /// Tabulates the accuracies in percent at every evaluated epoch of every student: averaged and last parameters.
    #[must_use]
    pub fn students_by_epoch(&self) -> Table {
        let mut table = Table::new(["stage", "epoch", "accuracy %", "last parameters %"]);
        for (student, _) in self.distinct_students() {
            for epoch in &student.by_epoch {
                let [average, raw] = [epoch.average, epoch.raw].map(percent);
                table.push(vec![student.stage.clone(), epoch.epoch.to_string(), average, raw]);
            }
        }
        table
    }

    /// Draws the same as an SVG, two lines for each student; `None` without students.
    #[must_use]
    pub fn epochs_plot(&self) -> Option<String> {
        let students = self.distinct_students();
        let final_accuracies = students.iter().flat_map(|(s, _)| [100.0 * s.accuracy, 100.0 * s.accuracy_raw]);
        let all = students.iter().flat_map(|(s, _)| &s.by_epoch);
        let most = all.clone().flat_map(|epoch| [epoch.average, epoch.raw]).map(|value| 100.0 * value);
        let least = final_accuracies.reduce(f64::min)? - BELOW;
        let percents = Ticks::covering(most.filter(|value| *value >= least).chain([least]), 10.0)?;
        let epochs = Ticks::covering(all.map(|epoch| f64::from(epoch.epoch)).chain([0.0]), 10.0)?;
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let x = |epoch: f64| LEFT + epochs.share(epoch) * (right - LEFT);
        let y = |percent: f64| bottom - percents.share(percent) * (bottom - TOP);

        let title = format!("{}: accuracy of every student by epoch", self.experiment);
        let mut svg = svg::begin(HEIGHT, &title, &key(&students));
        for tick in percents.values() {
            line(&mut svg, (LEFT, y(tick)), (right, y(tick)), "#ececec", 1.0);
            text(&mut svg, LEFT - 8.0, y(tick) + 4.0, "end", 13, &format!("{tick}"));
        }
        for tick in epochs.values() {
            text(&mut svg, x(tick), bottom + 18.0, "middle", 13, &format!("{tick}"));
        }
        text(
            &mut svg,
            f64::midpoint(LEFT, right),
            bottom + 40.0,
            "middle",
            14,
            "epoch (vertical: accuracy on the test images, %)",
        );
        let _ = writeln!(
            svg,
            "<clipPath id=\"frame\"><rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{}\" height=\"{}\"/></clipPath>\n\
             <g clip-path=\"url(#frame)\" fill=\"none\" stroke-linejoin=\"round\">",
            right - LEFT,
            bottom - TOP
        );
        for average in [false, true] {
            for (student, method) in &students {
                let points = student.by_epoch.iter().map(|epoch| {
                    let percent = 100.0 * if average { epoch.average } else { epoch.raw };
                    format!("{:.1},{:.1}", x(f64::from(epoch.epoch)), y(percent))
                });
                let points = points.collect::<Vec<_>>().join(" ");
                let stroke = match (average, method) {
                    (false, _) => "#c8c8c8",
                    (true, method) => colour(*method).1,
                };
                let width = if average { 1.4 } else { 0.8 };
                let _ = writeln!(svg, "<polyline points=\"{points}\" stroke=\"{stroke}\" stroke-width=\"{width}\"/>");
            }
        }
        svg.push_str("</g>\n");
        line(&mut svg, (LEFT, bottom), (right, bottom), "#111", 1.2);
        svg.push_str("</svg>\n");
        Some(svg)
    }

    /// Returns every student whose epochs are known, once, though rows with the same labels share it.
    fn distinct_students(&self) -> Vec<(&StudentRun, StudentMethod)> {
        let mut distinct: Vec<(&StudentRun, StudentMethod)> = Vec::new();
        for row in &self.rows {
            for student in row.students.iter().filter(|student| !student.by_epoch.is_empty()) {
                if distinct.iter().all(|(other, _)| other.stage != student.stage) {
                    distinct.push((student, row.method));
                }
            }
        }
        distinct
    }
}

/// Names and colours of the lines of averaged parameters, black first.
const COLOURS: [(&str, &str); 5] =
    [("black", "#111"), ("blue", "#1f6fb4"), ("red", "#c1440e"), ("green", "#2e8b57"), ("purple", "#7b4ea3")];

/// Returns the colour of a method, by its place among all.
fn colour(method: StudentMethod) -> (&'static str, &'static str) {
    let place = StudentMethod::all().iter().position(|other| *other == method).unwrap_or_default();
    COLOURS[place % COLOURS.len()]
}

/// Says which colour is whose.
fn key(students: &[(&StudentRun, StudentMethod)]) -> String {
    let shown = StudentMethod::all().into_iter().filter(|method| students.iter().any(|(_, other)| other == method));
    let methods: Vec<String> = shown.map(|method| format!("{}: {}", colour(method).0, method.title())).collect();
    format!("averaged parameters, {}; grey: last parameters", methods.join(", "))
}
