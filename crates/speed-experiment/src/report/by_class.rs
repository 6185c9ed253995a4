//! Tables of the students of a run: their results by class, and the baselines.

use speed_core::printable;

use crate::report::classification::{CLASS_COLUMNS, ClassResult, Classification};
use crate::report::csv;
use crate::report::row::{Baselines, Score};
use crate::report::run::Report;
use crate::report::statistics::mean_and_deviation;
use crate::report::table::{Table, markdown, percent};

impl Report {
    /// Returns the results by class of every student, as comma-separated values: shares are from 0 to 1 and have all
    /// digits, and a share without a value is empty. `None` if no student has any.
    pub(crate) fn classes_csv(&self) -> Option<String> {
        let head = ["row", "repeat"].into_iter().chain(CLASS_COLUMNS);
        let lines = |result: &Classification| -> Vec<Vec<String>> {
            result.classes().iter().map(|class| ClassResult::cells(class).into()).collect()
        };
        self.of_students(head.map(str::to_owned).collect(), lines)
    }

    /// Returns the confusion matrix of every student, as comma-separated values: a line for each true class, a column for each
    /// predicted class. `None` if no student has any.
    pub(crate) fn confusion_csv(&self) -> Option<String> {
        let names = self.classes.iter().map(|name| printable(name));
        let head = ["row", "repeat", "true \\ predicted"].map(str::to_owned).into_iter().chain(names);
        self.of_students(head.collect(), |result| result.confusion_table().rows)
    }

    /// Returns the results by class of the first student of each row, each once, with the names of their rows.
    pub(crate) fn first_results(&self) -> Vec<(Vec<&str>, &Classification)> {
        let mut found: Vec<(&str, Vec<&str>, &Classification)> = Vec::new();
        for row in &self.rows {
            let (Some(result), Some(student)) = (&row.classification, row.students.first()) else { continue };
            match found.iter_mut().find(|(stage, ..)| *stage == student.stage) {
                Some((_, rows, _)) => rows.push(&row.name),
                None => found.push((&student.stage, vec![&row.name], result)),
            }
        }
        found.into_iter().map(|(_, rows, result)| (rows, result)).collect()
    }

    /// Returns a line for every row whose first student classifies no test image of a class right.
    pub fn missed_classes(&self) -> String {
        let first = self.first_results();
        let lines = first.iter().filter_map(|(rows, result)| {
            Some(format!("{} (first student of {})\n", result.warning()?, printable(&rows.join(", "))))
        });
        lines.collect()
    }

    /// Returns the results by class and the baselines as sections in Markdown; empty without any.
    pub(crate) fn classes_and_baselines(&self) -> String {
        let mut text = String::new();
        for (rows, result) in self.first_results() {
            let table = result.table().for_markdown().to_markdown();
            let words: String = result.in_words().iter().map(|line| format!("- {}\n", markdown(line))).collect();
            text.push_str(&format!(
                "\n## Results by class: the first student of {}\n\n{table}\n{words}",
                rows.join(", ")
            ));
        }
        if let Some(table) = self.baselines() {
            text.push_str(&format!("\n## Baselines\n\n{}", table.to_markdown()));
        }
        text
    }

    /// Returns a table of the `lines` of every student, after the row and the number of the repeat.
    fn of_students(&self, head: Vec<String>, lines: impl Fn(&Classification) -> Vec<Vec<String>>) -> Option<String> {
        let mut all: Vec<Vec<String>> = Vec::new();
        for row in &self.rows {
            for (repeat, student) in row.students.iter().enumerate() {
                let of_student = student.classification.as_ref().map_or_else(Vec::new, &lines);
                let named =
                    |line: Vec<String>| [row.name.clone(), repeat.to_string()].into_iter().chain(line).collect();
                all.extend(of_student.into_iter().map(named));
            }
        }
        (!all.is_empty()).then(|| csv::write(head, all))
    }
}

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
                let accuracies: Vec<f64> = students.iter().map(|student| student.accuracy).collect();
                let (Some(mean), deviation) = mean_and_deviation(&accuracies) else { continue };
                let (mean, deviation) = (percent(mean), deviation.map_or_else(String::new, percent));
                let models = students.len().to_string();
                push(&row.name, name, [mean, deviation, models, String::new(), String::new()]);
            }
            if let Some(score) = label_spreading {
                let Score { accuracy, interval, .. } = score;
                let [accuracy, low, high] = [*accuracy, interval.low, interval.high].map(percent);
                push(&row.name, "label spreading", [accuracy, String::new(), "1".to_owned(), low, high]);
            }
        }
        if let Some(accuracy) = self.ensemble.test_accuracy {
            let models = self.ensemble.teachers.to_string();
            push("", TEACHERS, [percent(accuracy), String::new(), models, String::new(), String::new()]);
        }
        (!table.rows.is_empty()).then_some(table)
    }
}
