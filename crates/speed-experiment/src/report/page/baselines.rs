//! The students beside other classifiers on the same test images.

use maud::{Markup, html};

use super::frame::wide;
use crate::report::run::Report;
use crate::report::table::NO_VALUE;

/// Returns the accuracies of students and baselines; `None` without baselines.
pub(super) fn baselines(report: &Report) -> Option<Markup> {
    let table = report.baselines()?;
    let cell = |text: &str| if text.is_empty() { NO_VALUE.to_owned() } else { text.to_owned() };
    Some(html! {
        p {
            "Other classifiers on the same test images. " i { "Labelled images alone" } ": the student's network with the same labels and no "
            "unlabelled image. " i { "Label spreading" } ": a graph of nearest neighbours of the pool, without a network (scikit-learn's "
            code { "LabelSpreading" } " with 7 neighbours). "
            @if report.ensemble.test_accuracy.is_some() { i { "Mean teacher" } ": a teacher on its own, on average." }
        }
        (wide("Baselines", &html! {
            table {
                thead { tr { @for head in ["row", "classifier", "accuracy %"] { th.words[head != "accuracy %"] scope="col" { (head) } } } }
                tbody { @for row in table.rows() { tr {
                    th.name scope="row" { (cell(&row[0])) }
                    td.words { (row[1]) }
                    td {
                        (row[2])
                        @if !row[3].is_empty() { " ± " (row[3]) }
                        @if !row[5].is_empty() { br; span.note { (row[5]) "–" (row[6]) } }
                    }
                } } }
            }
        }))
    })
}
