//! The results by class of the first student of each row.

use maud::{Markup, html};
use speed_core::printable;

use super::frame::{folded, wide};
use crate::report::classification::{ClassResult, Classification};
use crate::report::proportion::Interval;
use crate::report::run::Report;
use crate::report::table::{NO_VALUE, percent};

/// Largest number of classes whose confusion matrix is shown; a larger one is in a file.
const MAX_SHOWN: usize = 30;
/// Largest number of listed confusions if the matrix is not shown.
const MAX_CONFUSIONS: usize = 20;

/// Returns the results by class of the first student of each row; `None` if no student has any.
pub(super) fn classes(report: &Report) -> Option<Markup> {
    let found = report.first_results();
    let ((rows, first), others) = found.split_first()?;
    Some(html! {
        p {
            "The first student of each row on the " (first.images()) " test images, which no student learned from. Ranges are Wilson intervals "
            "at 95 %: with few images of a class, its accuracy is uncertain."
            @if !report.is_protected() { " All students: " code { "classes.csv" } " and " code { "confusion.csv" } "." }
        }
        h3 { (rows.join(", ")) }
        (result(first))
        @for (rows, other) in others { (folded(&rows.join(", "), &result(other))) }
    })
}

fn result(of: &Classification) -> Markup {
    html! {
        div.by-class {
            (wide("Accuracy by class", &by_class(of)))
            @for line in of.in_words() { p { (line) } }
            @if of.names().len() <= MAX_SHOWN { (wide("Confusion matrix", &matrix(of))) } @else { (confusions(of)) }
        }
    }
}

/// Returns the table of accuracies, with all images in the last row.
fn by_class(of: &Classification) -> Markup {
    let share = |share: Option<f64>| share.map_or_else(|| NO_VALUE.to_owned(), percent);
    let line = |name: &str, shown: &ClassResult| {
        html! {
            tr {
                th.name scope="row" { (printable(name)) }
                td { (share(shown.accuracy)) @if let Some(Interval { low, high }) = shown.interval {
                    br; span.note { (percent(low)) "–" (percent(high)) }
                } }
                td { (shown.right) @if shown.images > 0 { br; span.note { "of " (shown.images) } } }
                td { (share(shown.precision)) br; span.note { "of " (shown.predicted) } }
            }
        }
    };
    let (images, right) = (of.images(), of.right());
    let (accuracy, interval) = (of.accuracy(), of.interval());
    html! {
        table {
            thead { tr {
                @for head in ["class", "accuracy %", "right", "precision %"] { th scope="col" { (head) } }
            } }
            tbody {
                @for class in of.classes() { (line(&class.name, &class)) }
                tr.all {
                    th scope="row" { "all classes" }
                    td { (share(accuracy)) @if let Some(Interval { low, high }) = interval {
                        br; span.note { (percent(low)) "–" (percent(high)) }
                    } }
                    td { (right) br; span.note { "of " (images) } }
                    td {}
                }
            }
        }
    }
}

/// Returns the confusion matrix; the shade of a count is its share of the images of the true class.
fn matrix(of: &Classification) -> Markup {
    // The strongest shades leave the counts legible.
    let shade = |count: u64, images: u64, strongest: f64| {
        #[expect(clippy::cast_precision_loss, reason = "a shade")]
        let share = if images > 0 { count as f64 / images as f64 } else { 0.0 };
        format!("--share:{:.0}%", strongest * share.sqrt())
    };
    html! {
        table.matrix {
            caption { "Rows: true class. Columns: class that the student gave." }
            thead { tr {
                td {}
                @for name in of.names() { th scope="col" { span title=(printable(name)) { (printable(name)) } } }
            } }
            tbody { @for (truth, (row, class)) in of.confusion().iter().zip(of.classes()).enumerate() { tr {
                th.name scope="row" { (printable(&class.name)) }
                @for (given, &count) in row.iter().enumerate() {
                    @if count == 0 { td.none { "·" } } @else {
                        td.right-class[given == truth] style=(shade(count, class.images, if given == truth { 80.0 } else { 45.0 })) { (count) }
                    }
                }
            } } }
        }
    }
}

/// Returns the most frequent confusions.
fn confusions(of: &Classification) -> Markup {
    let names = of.names();
    html! {
        div {
            p { "The most frequent confusions; the matrix of all " (names.len()) " classes is in " code { "confusion.csv" } "." }
            table {
                thead { tr { @for head in ["true class", "given class", "images"] { th scope="col" { (head) } } } }
                tbody { @for (truth, given, count) in of.confusions().into_iter().take(MAX_CONFUSIONS) { tr {
                    th.name scope="row" { (printable(&names[truth])) }
                    td.words { (printable(&names[given])) }
                    td { (count) }
                } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a classification of ten images of each of `classes` classes, of which every third is confused with the next.
    fn classification(classes: u8) -> Classification {
        let names = (0..classes).map(|class| format!("<class {class}>"));
        let given = |truth: u8, image: u8| if image.is_multiple_of(3) { (truth + 1) % classes } else { truth };
        let pairs = (0..classes).flat_map(|truth| (0..10).map(move |image| (truth, given(truth, image))));
        Classification::new(names, pairs).expect("labels")
    }

    #[test]
    fn a_small_matrix_is_shown_and_a_large_one_is_listed() {
        let small = result(&classification(3)).into_string();
        assert_eq!(small.matches("class=\"right-class\" style=\"--share:62%\"").count(), 3, "{small}");
        assert_eq!(small.matches("<td class=\"none\">·</td>").count(), 3);
        assert!(small.contains("<td>60.00<br><span class=\"note\">31.27–83.18</span></td>"), "{small}");
        assert!(small.contains("&lt;class 2&gt;") && !small.contains("<class"), "{small}");
        let large = result(&classification(31)).into_string();
        assert!(!large.contains("Confusion matrix") && large.contains("all 31 classes"), "{large}");
        let confused =
            "<th class=\"name\" scope=\"row\">&lt;class 0&gt;</th><td class=\"words\">&lt;class 1&gt;</td><td>4</td>";
        assert_eq!((large.matches(confused).count(), large.matches("<td>4</td>").count()), (1, MAX_CONFUSIONS));
    }
}
