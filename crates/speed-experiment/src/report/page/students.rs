//! The students of a page: their results by class, beside other classifiers on the same test images, the images that they
//! drew, and the files of their models.

use maud::{Markup, html};
use speed_core::printable;

use super::frame::{data_uri, folded, verbatim, wide};
use crate::report::classification::Classification;
use crate::report::run::Report;
use crate::report::statistics::Interval;
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

fn by_class(of: &Classification) -> Markup {
    let share = |share: Option<f64>| share.map_or_else(|| NO_VALUE.to_owned(), percent);
    let accuracy = |accuracy: Option<f64>, interval: Option<Interval>| {
        html! {
            td { (share(accuracy)) @if let Some(Interval { low, high }) = interval {
                br; span.note { (percent(low)) "–" (percent(high)) }
            } }
        }
    };
    html! {
        table {
            thead { tr {
                @for head in ["class", "accuracy %", "right", "precision %"] { th scope="col" { (head) } }
            } }
            tbody {
                @for class in of.classes() { tr {
                    th.name scope="row" { (printable(&class.name)) }
                    (accuracy(class.accuracy, class.interval))
                    td { (class.right) @if class.images > 0 { br; span.note { "of " (class.images) } } }
                    td { (share(class.precision)) br; span.note { "of " (class.predicted) } }
                } }
                tr.all {
                    th scope="row" { "all classes" }
                    (accuracy(of.accuracy(), of.interval()))
                    td { (of.right()) br; span.note { "of " (of.images()) } }
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
            tbody { @for (truth, (row, class)) in of.confusion.iter().zip(of.classes()).enumerate() { tr {
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

/// The maximum size of all pictures in a page, in bytes.
const MAX_BYTES: usize = 1 << 20;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

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
                tbody { @for row in &table.rows { tr {
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

/// Returns the images drawn by the first student of each row, given the picture of a student's stage; `None` if no
/// student draws.
pub(super) fn drawn(report: &Report, picture: impl Fn(&str) -> Option<Vec<u8>>) -> Option<Markup> {
    let mut drawn: Vec<(&str, Vec<&str>, Vec<u8>)> = Vec::new();
    let mut bytes = 0;
    for row in &report.rows {
        let Some(student) = row.students.first() else { continue };
        if let Some((_, rows, _)) = drawn.iter_mut().find(|(stage, ..)| *stage == student.stage) {
            rows.push(&row.name);
            continue;
        }
        let picture = picture(&student.stage).filter(|png| png.starts_with(PNG));
        let Some(picture) = picture.filter(|png| bytes + png.len() <= MAX_BYTES) else { continue };
        bytes += picture.len();
        drawn.push((&student.stage, vec![&row.name], picture));
    }
    (!drawn.is_empty()).then(|| html! {
        p { "Images that the first student of a row drew after its last epoch, from noise alone." }
        div.drawn {
            @for (_, rows, png) in &drawn {
                figure {
                    img src=(data_uri("image/png", png)) alt={ "Images drawn by the student of " (rows.join(", ")) ", ten in a row" };
                    figcaption { (rows.join(", ")) }
                }
            }
        }
    })
}

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
                    td { (percent(*accuracy)) }
                    td.words { code { (file) } }
                } } }
            }
        }))
    })
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
