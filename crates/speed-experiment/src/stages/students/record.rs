//! The files that a trained student leaves in its folder.

use serde::{Deserialize, Serialize};

use crate::csv;
use crate::error::ExperimentError;
use crate::store::{FinishedStage, StageFolder};

/// Every epoch; holds times.
const METRICS: &str = "metrics.csv";
/// The accuracies.
const RESULT: &str = "student.json";

/// A trained student.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StudentRun {
    /// Folder of its metrics and samples below `stages/`; rows with the same labels share it.
    pub stage: String,
    /// Accuracy of the averaged parameters on the test images.
    pub accuracy: f64,
    /// Accuracy of the last parameters.
    pub accuracy_raw: f64,
    /// Accuracies on the way there; not in reports, which would be long.
    #[serde(skip)]
    pub by_epoch: Vec<EpochAccuracy>,
}

/// Accuracies after an epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct EpochAccuracy {
    /// The epoch, from 1.
    pub epoch: u32,
    /// Of the averaged parameters, on the test images.
    pub average: f64,
    /// Of the parameters as they are.
    pub raw: f64,
}

/// The content of a trained student's files.
pub(super) struct Trained {
    pub(super) accuracy: f64,
    pub(super) accuracy_raw: f64,
    /// Every epoch; holds times.
    pub(super) metrics_csv: String,
    /// Name and bytes of a further output that the inputs determine.
    pub(super) picture: Option<(&'static str, Vec<u8>)>,
}

/// Writes the files of a student, and returns the names of those that its inputs determine.
pub(super) fn write(folder: &StageFolder, stage: &str, trained: Trained) -> Result<Vec<String>, ExperimentError> {
    let Trained { accuracy, accuracy_raw, metrics_csv, picture } = trained;
    let run = StudentRun { stage: stage.to_owned(), accuracy, accuracy_raw, by_epoch: Vec::new() };
    folder.write(METRICS, metrics_csv.as_bytes())?;
    folder.write_json(RESULT, &run)?;
    let mut outputs = vec![RESULT.to_owned()];
    if let Some((name, bytes)) = picture {
        folder.write(name, &bytes)?;
        outputs.push(name.to_owned());
    }
    Ok(outputs)
}

/// Reads the student of a finished stage.
pub(super) fn read(stage: &FinishedStage) -> Result<StudentRun, ExperimentError> {
    let run: StudentRun = stage.read_json(RESULT)?;
    // Times make it no output that is checked: where it was not kept, the plot goes without.
    let metrics = std::fs::read_to_string(stage.path(METRICS)).unwrap_or_default();
    Ok(StudentRun { by_epoch: by_epoch(&metrics), ..run })
}

/// Returns the epochs that have accuracies, of the text of a table of metrics.
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
    lines.filter_map(epoch).collect()
}

/// Returns a table of metrics with a head line; unknown values stay empty.
pub(super) fn metrics_csv<const N: usize>(head: [&str; N], lines: impl Iterator<Item = [Option<f64>; N]>) -> String {
    let cell = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    csv::write(head, lines.map(|line| line.map(cell).to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_without_accuracies_are_left_out() {
        let lines = [[Some(1.0), Some(0.5), None, None], [Some(2.0), Some(0.4), Some(0.25), Some(0.5)]];
        let table = metrics_csv(["epoch", "loss", "accuracy_raw", "accuracy_average"], lines.into_iter());
        assert_eq!(by_epoch(&table), [EpochAccuracy { epoch: 2, average: 0.5, raw: 0.25 }]);
        assert_eq!(by_epoch("epoch,loss\n1,0.5\n"), []);
        assert_eq!(by_epoch(""), []);
    }
}
