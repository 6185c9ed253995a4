//! The table of baselines: other classifiers on the same test images as the students.

use speed_core::printable;

use crate::report::row::{Baselines, Score, StudentRun};
use crate::report::run::Report;
use crate::report::statistics::mean_and_deviation;
use crate::report::table::{Table, percent};

/// The name of the teachers' line, which belongs to no row.
const TEACHERS: &str = "mean teacher";

impl Report {
    /// Returns the accuracy of students and baselines in percent, a line for each classifier of a row; `None` without
    /// baselines. `deviation` is over repeats, and the interval is a Wilson interval at 95 % over the test images.
    pub(crate) fn baselines(&self) -> Option<Table> {
        let head = ["row", "classifier", "accuracy %", "deviation", "models", "interval_low %", "interval_high %"];
        let mut table = Table::new(head);
        let mut push = |row: &str, classifier: &str, cells: [String; 5]| {
            table.push([printable(row), classifier.to_owned()].into_iter().chain(cells).collect());
        };
        for row in &self.rows {
            let Some(Baselines { labelled_only, label_spreading }) = &row.baselines else { continue };
            for (name, students) in [("student", &row.students), ("labelled images alone", labelled_only)] {
                if !students.is_empty() {
                    push(&row.name, name, of_students(students));
                }
            }
            if let Some(score) = label_spreading {
                push(&row.name, "label spreading", of_score(score));
            }
        }
        if let Some(accuracy) = self.ensemble.test_accuracy {
            let models = self.ensemble.teachers.to_string();
            push("", TEACHERS, [percent(accuracy), String::new(), models, String::new(), String::new()]);
        }
        (!table.rows().is_empty()).then_some(table)
    }
}

fn of_students(students: &[StudentRun]) -> [String; 5] {
    let accuracies: Vec<f64> = students.iter().map(|student| student.accuracy).collect();
    let (mean, deviation) = mean_and_deviation(&accuracies);
    let [mean, deviation] = [mean, deviation].map(|share| share.map_or_else(String::new, percent));
    [mean, deviation, students.len().to_string(), String::new(), String::new()]
}

fn of_score(score: &Score) -> [String; 5] {
    let Score { accuracy, interval, .. } = score;
    [percent(*accuracy), String::new(), "1".to_owned(), percent(interval.low), percent(interval.high)]
}
