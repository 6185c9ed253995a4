//! The students' accuracies by epoch.

use speed_student::StudentMethod;

use super::chart::{Axis, Chart, Line, Point, Series};
use crate::report::row::{EpochAccuracy, StudentRun};
use crate::report::run::{Report, title_of};
use crate::report::table::{Table, percent};

/// Range below the worst student's accuracy that is drawn, in percentage points; lower values are from the start of the
/// training.
const BELOW: f64 = 6.0;

impl Report {
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
        let mut methods: Vec<&str> = StudentMethod::all().into_iter().map(|method| method.name()).collect();
        for (_, method) in &students {
            if !methods.contains(method) {
                methods.push(method);
            }
        }
        for method in methods {
            let name = format!("averaged parameters, {}", title_of(method));
            let of_method = students.iter().filter(|(_, other)| *other == method);
            series.extend(of_method.map(|(student, _)| line(&name, Line::Plain, student, |epoch| epoch.average)));
        }
        let hidden =
            if below == 0 { String::new() } else { format!(" ({below} accuracies below {least:.1} % are not drawn)") };
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
