//! The files of the trained students.

use maud::{Markup, html};

use super::frame::{verbatim, wide};
use crate::report::run::Report;

/// Returns the files of the students' models, given the file of a row's student in the run's folder; `None` if no student was
/// kept.
pub(super) fn models(report: &Report, model: impl Fn(&str, usize) -> Option<String>) -> Option<Markup> {
    let mut found: Vec<(&str, String, f64)> = Vec::new();
    for row in &report.rows {
        for (place, student) in row.students.iter().enumerate() {
            found.extend(model(&row.name, place).map(|file| (row.name.as_str(), file, student.accuracy)));
        }
    }
    let (_, first, _) = found.first()?;
    let encoder = if report.encoder.is_some() { " --encoder ENCODER" } else { "" };
    Some(html! {
        p { "The trained students, as files in the run's folder. To classify images with one of them, in this folder:" }
        (verbatim("Command", &format!("speed predict --model {first}{encoder} IMAGES\n")))
        (wide("Models", &html! {
            table {
                thead { tr { @for head in ["row", "accuracy %", "file"] { th scope="col" { (head) } } } }
                tbody { @for (row, file, accuracy) in &found { tr {
                    th scope="row" { (row) }
                    td { (format!("{:.2}", 100.0 * accuracy)) }
                    td.words { code { (file) } }
                } } }
            }
        }))
    })
}
