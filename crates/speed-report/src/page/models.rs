//! The files of the trained students.

use maud::{Markup, html};

use super::frame::{verbatim, wide};
use crate::report::Report;

/// Returns the files of the students' models, given the file of a student's stage in the run's folder; `None` if no student
/// was kept.
pub(super) fn models(report: &Report, model: impl Fn(&str) -> Option<String>) -> Option<Markup> {
    let mut found: Vec<(Vec<&str>, String, f64)> = Vec::new();
    for row in &report.rows {
        for student in &row.students {
            let Some(file) = model(&student.stage) else { continue };
            match found.iter_mut().find(|(_, other, _)| *other == file) {
                Some((rows, ..)) => rows.push(&row.name),
                None => found.push((vec![&row.name], file, student.accuracy)),
            }
        }
    }
    let (_, first, _) = found.first()?;
    Some(html! {
        p { "The trained students, as files in the run's folder. To classify images with one of them:" }
        (verbatim("Command", &format!("speed predict --model {first} IMAGES\n")))
        (wide("Models", &html! {
            table {
                thead { tr { @for head in ["row", "accuracy %", "file"] { th scope="col" { (head) } } } }
                tbody { @for (rows, file, accuracy) in &found { tr {
                    th scope="row" { (rows.join(", ")) }
                    td { (format!("{:.2}", 100.0 * accuracy)) }
                    td.words { code { (file) } }
                } } }
            }
        }))
    })
}
