//! Checks of reports, which are untrusted input: names must be safe for a terminal, numbers must fit in a plot, and
//! counts must not exceed the limits of a config.

use crate::error::ExperimentError;
use crate::report::classification::MAX_CLASSES;
use crate::report::row::ReportRow;

/// Maximum length of a row's name, in bytes.
pub(crate) const MAX_ROW_NAME: usize = 200;

/// Maximum length of the name of a class, in bytes.
pub(crate) const MAX_CLASS_NAME: usize = 1 << 10;

/// Largest numbers of rows of a report, and of students of a row.
const MAX_ROWS: usize = 1000;
const MAX_STUDENTS: usize = 1000;

/// Longest name of a directory, in bytes; it contains a row's name and a suffix.
pub(crate) const MAX_FOLDER: usize = 255;

/// Checks that names are valid in a config: at most `most` bytes, and without control characters.
pub(crate) fn check_names<'a>(most: usize, names: impl IntoIterator<Item = &'a String>) -> Result<(), ExperimentError> {
    let expected = format!("names of at most {most} bytes without control characters");
    match names.into_iter().find(|name| name.len() > most || name.chars().any(char::is_control)) {
        Some(name) => {
            let found = name.chars().take(40).collect::<String>().escape_debug().to_string();
            Err(ExperimentError::unlikely(expected, found))
        }
        None => Ok(()),
    }
}

pub(crate) fn check_count(what: &str, found: usize, most: usize) -> Result<(), ExperimentError> {
    if found <= most {
        return Ok(());
    }
    Err(ExperimentError::unlikely(format_args!("at most {most} {what}"), found))
}

/// Checks the names of classes: at most 256, of at most [`MAX_CLASS_NAME`] bytes.
pub(crate) fn check_classes(names: &[String]) -> Result<(), ExperimentError> {
    check_count("classes", names.len(), MAX_CLASSES)?;
    names.iter().try_for_each(|name| check_count("bytes of a class's name", name.len(), MAX_CLASS_NAME))
}

/// Checks rows: their names and numbers, and their students.
pub(crate) fn check_rows(rows: &[ReportRow]) -> Result<(), ExperimentError> {
    check_count("rows", rows.len(), MAX_ROWS)?;
    for row in rows {
        check_names(MAX_ROW_NAME, [&row.name, &row.labels_of, &row.method])?;
        let alone = row.baselines.iter().flat_map(|baselines| &baselines.labelled_only);
        let scores = row.baselines.iter().filter_map(|baselines| baselines.label_spreading.as_ref());
        let students = || row.students.iter().chain(alone.clone());
        check_count("students of a row", row.students.len(), MAX_STUDENTS)?;
        check_count("baselines of a row", alone.clone().count(), MAX_STUDENTS)?;
        check_names(
            MAX_FOLDER,
            students().map(|student| &student.stage).chain(scores.clone().map(|score| &score.stage)),
        )?;
        let paper = [row.paper.accuracy, row.paper.deviation].into_iter().flatten().map(|percent| percent / 100.0);
        let shares = students().flat_map(|student| [student.accuracy, student.accuracy_raw]);
        let shares = shares.chain(students().flat_map(|student| [student.balanced_accuracy, student.auc]).flatten());
        let scores = scores.flat_map(|score| [score.accuracy, score.interval.low, score.interval.high]);
        let mut shares = shares.chain(scores).chain(row.label_accuracy).chain(row.label_balanced_accuracy).chain(paper);
        if let Some(share) = shares.find(|share| !(0.0..=1.0).contains(share)) {
            return Err(ExperimentError::unlikely("accuracies from 0 to 1", share));
        }
        if let Some(result) = &row.classification {
            check_classes(result.names())?;
            let (accuracy, first) = (result.accuracy(), row.students.first().map(|student| student.accuracy));
            if accuracy != first {
                let text = |share: Option<f64>| share.map_or_else(|| "none".to_owned(), |share| share.to_string());
                let expected = format!("results by class with the first student's accuracy {}", text(first));
                return Err(ExperimentError::unlikely(expected, text(accuracy)));
            }
            let (first, ranked) = (row.students.first(), result.two_classes.as_ref());
            for (name, first, own) in [
                ("balanced accuracy", first.and_then(|student| student.balanced_accuracy), result.balanced_accuracy()),
                ("AUC", first.and_then(|student| student.auc), ranked.and_then(|ranked| ranked.auc)),
            ] {
                if let Some(first) = first.filter(|first| own != Some(*first)) {
                    let expected = format!("results by class with the first student's {name}");
                    return Err(ExperimentError::unlikely(expected, first));
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_stages_fit_the_longest_row_and_have_no_escape_codes() {
        let stage = format!("aggregate-{}-01234567", "x".repeat(MAX_ROW_NAME));
        assert!(check_names(MAX_FOLDER, [&stage]).is_ok() && check_names(MAX_ROW_NAME, [&stage]).is_err());
        let error = check_names(MAX_ROW_NAME, [&"\u{1b}[2J".to_owned()]).expect_err("an escape").to_string();
        assert!(error.contains("u{1b}") && !error.contains('\u{1b}'), "{error}");
    }
}
