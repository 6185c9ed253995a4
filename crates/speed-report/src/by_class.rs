//! The results by class of all students of a run, as comma-separated values.

use speed_core::printable;

use crate::classification::{CLASS_COLUMNS, ClassResult, Classification};
use crate::csv;
use crate::report::Report;

impl Report {
    /// Returns the results by class of every student, with the columns of [`Classification::to_csv`]; `None` if no student
    /// has any.
    #[must_use]
    pub fn classes_csv(&self) -> Option<String> {
        let head = ["row", "repeat"].into_iter().chain(CLASS_COLUMNS);
        let lines = |result: &Classification| -> Vec<Vec<String>> {
            result.classes().iter().map(|class| ClassResult::cells(class).into()).collect()
        };
        self.of_students(head.map(str::to_owned).collect(), lines)
    }

    /// Returns the confusion matrix of every student, with the columns of [`Classification::confusion_to_csv`]; `None` if
    /// no student has any.
    #[must_use]
    pub fn confusion_csv(&self) -> Option<String> {
        let names = self.classes.iter().map(|name| printable(name));
        let head = ["row", "repeat", "true \\ predicted"].map(str::to_owned).into_iter().chain(names);
        self.of_students(head.collect(), |result| result.confusion_table().rows().to_vec())
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
