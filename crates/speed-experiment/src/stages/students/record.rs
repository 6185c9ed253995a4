//! The files that a trained student leaves in its directory.

use std::path::{Path, PathBuf};

use speed_student::{EpochMetrics, StudentMethod, StudentOutcome};

use crate::error::ExperimentError;
use crate::picture;
use crate::report::{Classification, EVEN, EpochAccuracy, StudentRun, csv};
use crate::stages::images::Images;
use crate::store::{FinishedStage, StageFolder, read_listed, read_stage_file};

/// The file of the metrics of every epoch, including times.
pub(crate) const METRICS: &str = "metrics.csv";
/// The file of generated images, if the method generates any.
pub(crate) const PICTURE: &str = "digits.png";
/// The file of the weights, if students are kept. The stage's record has its hash. It names no row and no run, because rows
/// and runs share students.
pub(super) const WEIGHTS: &str = "weights.safetensors";
/// The file of the results by class. No fingerprint depends on it.
const CLASSES: &str = "classes.json";
/// Maximum number of epochs in a student's plot.
const MAX_EPOCHS: usize = 10_000;
const RESULT: &str = "student.json";

/// Checks that the results by class, in the file `path`, have the accuracy of the student.
fn check_accuracy(result: &Classification, run: &StudentRun, path: PathBuf) -> Result<(), ExperimentError> {
    if result.accuracy() == Some(run.accuracy) {
        return Ok(());
    }
    let expected = format!("results by class with the student's accuracy {}", run.accuracy);
    let found = result.accuracy().map_or_else(|| "no image".to_owned(), |found| found.to_string());
    Err(other_table(path, &expected, &found, &run.stage))
}

fn other_table(path: PathBuf, expected: &str, found: &str, stage: &str) -> ExperimentError {
    ExperimentError::results(
        path,
        format_args!("expected {expected}, found {found}; --force {stage} repeats the stage"),
    )
}

/// Writes the files of a student, and returns the names of the files that its inputs determine.
pub(super) fn write(
    folder: &StageFolder,
    stage: &str,
    method: StudentMethod,
    outcome: &StudentOutcome,
    (accuracy, accuracy_raw): (f64, f64),
    images: &Images,
) -> Result<Vec<String>, ExperimentError> {
    let StudentOutcome { metrics, samples, .. } = outcome;
    let run = StudentRun {
        stage: stage.to_owned(),
        accuracy,
        accuracy_raw,
        balanced_accuracy: None,
        auc: None,
        by_epoch: Vec::new(),
        classification: None,
    };
    folder.write_checked(METRICS, metrics_csv(method.measures(), metrics).as_bytes())?;
    let labels = [images.test.labels(), &outcome.predictions];
    let classification = Classification::ranked(&images.class_names, labels, &outcome.margins, EVEN)?;
    check_accuracy(&classification, &run, folder.path().join(CLASSES))?;
    folder.write_checked_json(CLASSES, &classification)?;
    folder.write_json(RESULT, &run)?;
    let mut outputs = vec![RESULT.to_owned()];
    if let Some(samples) = samples {
        folder.write(PICTURE, &picture::of_samples(samples)?)?;
        outputs.push(PICTURE.to_owned());
    }
    Ok(outputs)
}

pub(super) fn read(stage: &FinishedStage, class_names: &[String]) -> Result<StudentRun, ExperimentError> {
    let run: StudentRun = stage.read_json(RESULT)?;
    let by_epoch = by_epoch(&String::from_utf8_lossy(&stage.read(METRICS)?));
    // The table is complete if it has the last epoch.
    if let Some(last) = by_epoch.last().filter(|last| last.average != run.accuracy) {
        let expected = format!("the last line to have the student's accuracy {}", run.accuracy);
        return Err(other_table(stage.path(METRICS), &expected, &last.average.to_string(), &run.stage));
    }
    let classification: Classification = stage.read_json(CLASSES)?;
    check_accuracy(&classification, &run, stage.path(CLASSES))?;
    // Names of classes may have changed since, such as those of folders of pictures.
    let classification = classification.with_names(class_names)?;
    let (balanced_accuracy, auc) =
        (classification.balanced_accuracy(), classification.two_classes.as_ref().and_then(|two| two.auc));
    Ok(StudentRun { balanced_accuracy, auc, by_epoch, classification: Some(classification), ..run })
}

/// Reads the accuracies of a student by epoch, in the run in the directory `run`; empty if its metrics are missing.
pub(crate) fn read_epochs(run: &Path, stage: &str) -> Vec<EpochAccuracy> {
    read_stage_file(run, stage, METRICS).map_or_else(Vec::new, |metrics| by_epoch(&String::from_utf8_lossy(&metrics)))
}

/// Reads the weights of the student of a stage, a name that may be untrusted, in the run in the directory `run`; `None` if they
/// were not kept.
pub(crate) fn kept_weights(run: &Path, stage: &str) -> Result<Option<Vec<u8>>, ExperimentError> {
    read_listed(run, stage, WEIGHTS).map_err(ExperimentError::of_page)
}

fn by_epoch(text: &str) -> Vec<EpochAccuracy> {
    let mut lines = csv::read(text).into_iter();
    let head = lines.next().unwrap_or_default();
    let column = |name: &str| head.iter().position(|column| column == name);
    let (Some(epoch), Some(average), Some(raw)) = (column("epoch"), column("accuracy_average"), column("accuracy_raw"))
    else {
        return Vec::new();
    };
    let epoch = |line: Vec<String>| {
        let accuracy = |column: usize| line.get(column)?.parse().ok();
        Some(EpochAccuracy { epoch: line.get(epoch)?.parse().ok()?, average: accuracy(average)?, raw: accuracy(raw)? })
    };
    lines.filter_map(epoch).take(MAX_EPOCHS).collect()
}

fn metrics_csv(measures: &[&str], metrics: &[EpochMetrics]) -> String {
    let head = [&["epoch"], measures, &["accuracy_raw", "accuracy_average", "seconds"]].concat();
    let cell = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let line = |metrics: &EpochMetrics| {
        let mut line = vec![metrics.epoch.to_string()];
        let accuracies = [metrics.accuracy_raw, metrics.accuracy_average];
        line.extend(metrics.measures.iter().copied().chain(accuracies).map(cell));
        line.push(cell(Some((1e3 * metrics.seconds).round() / 1e3)));
        line
    };
    csv::write(head, metrics.iter().map(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_without_accuracies_are_left_out() {
        let epoch = |epoch, accuracy_raw| EpochMetrics {
            epoch,
            measures: vec![Some(0.5)],
            accuracy_raw,
            accuracy_average: accuracy_raw.map(|accuracy| accuracy / 2.0),
            seconds: 1.0,
        };
        let table = metrics_csv(&["loss"], &[epoch(1, None), epoch(2, Some(0.5))]);
        assert_eq!(by_epoch(&table), [EpochAccuracy { epoch: 2, average: 0.25, raw: 0.5 }]);
        assert_eq!(by_epoch("epoch,loss\n1,0.5\n"), []);
        assert_eq!(by_epoch(""), []);
    }
}
