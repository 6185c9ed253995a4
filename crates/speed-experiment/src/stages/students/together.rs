//! Students of the paper's method as one computation on a device.

use std::time::Instant;

use speed_batched::{Accelerator, BatchError, EpochReport, Student as Training, train_students};
use speed_student::Checkpoint;

use super::gan;
use super::record::{self, StudentRun};
use super::session::{CHECKPOINT, CHECKPOINT_EVERY};
use super::student::Student;
use crate::device::Device;
use crate::error::{ExperimentError, Mismatch};
use crate::stages::complete::open;
use crate::stages::context::Context;
use crate::stages::stage::Stage;
use crate::store::{StageFolder, StageState};

/// The checkpoint before the last. Students are saved one after another: when a run is killed between two of them, all of
/// them have this one.
const EARLIER: &str = "checkpoint-earlier.bin";

/// Students that train together; more are trained in several batches, one after another. Their networks, moments,
/// averages and noise take 55 MB a student at the paper's sizes, and the largest array of a batch is 100 MB, below the 128 MiB that
/// every GPU allows.
const MAX_TOGETHER: usize = 32;

/// Trains every student that is not there yet.
pub(super) fn train(context: &Context<'_>, students: &[&Student<'_>]) -> Result<Vec<StudentRun>, ExperimentError> {
    let Device::Together(accelerator, _) = context.device else { return Ok(Vec::new()) };
    let mut runs = Vec::with_capacity(students.len());
    // Batches do not depend on what is finished.
    for batch in students.chunks(MAX_TOGETHER) {
        let mut outstanding = Vec::new();
        for &student in batch {
            match open(context, student)? {
                StageState::Done(done) => runs.push(student.load(context, &done)?),
                StageState::Outstanding(folder) => outstanding.push((student, folder)),
            }
        }
        if !outstanding.is_empty() {
            runs.extend(train_batch(context, outstanding, accelerator)?);
        }
    }
    Ok(runs)
}

fn train_batch(
    context: &Context<'_>,
    mut batch: Vec<(&Student<'_>, StageFolder)>,
    accelerator: &Accelerator,
) -> Result<Vec<StudentRun>, ExperimentError> {
    let labelled: Vec<Vec<(usize, u8)>> = batch.iter().map(|(student, _)| student.labelled()).collect();
    let resume = resume(context, &mut batch);
    let students = batch.iter().zip(&labelled).zip(resume).map(|(((student, _), labelled), resume)| Training {
        labelled,
        streams: student.streams(context),
        resume,
    });
    let students: Vec<Training<'_>> = students.collect();

    let mut saved = Instant::now();
    let mut on_epoch = |report: &EpochReport<'_>| -> Result<(), ExperimentError> {
        let metrics = report.metrics();
        let accuracies: Option<Vec<f64>> = metrics.iter().map(|metrics| metrics.accuracy_average).collect();
        let accuracy = accuracies.map_or_else(String::new, |accuracies| {
            format!(", mean accuracy {:.1} %", 100.0 * accuracies.iter().sum::<f64>() / accuracies.len() as f64)
        });
        let epoch = metrics[0].epoch;
        context.progress.advance(batch.len() as u64, &format!("{} students: epoch {epoch}{accuracy}", batch.len()));
        // With the last epoch saved, a run that is killed while it writes results has nothing left to train.
        if saved.elapsed() >= CHECKPOINT_EVERY || epoch == context.config.student.epochs {
            save(&batch, &report.checkpoints()?)?;
            saved = Instant::now();
        }
        Ok(())
    };
    let Some((images, config)) = batch.first().map(|(student, _)| (student.images, &context.config.student)) else {
        return Ok(Vec::new());
    };
    let trained = train_students(config, &images.pool, students, &images.test, &accelerator.device, &mut on_epoch);
    let trained = trained.map_err(|error| failure(error, &batch))?;

    let mut runs = Vec::with_capacity(batch.len());
    for ((student, folder), trained) in batch.into_iter().zip(trained) {
        let outputs = record::write(&folder, student.name(), gan::trained(&trained)?)?;
        folder.remove(CHECKPOINT);
        folder.remove(EARLIER);
        runs.push(student.load(context, &folder.finish(&outputs)?)?);
    }
    Ok(runs)
}

fn failure(error: BatchError<ExperimentError>, batch: &[(&Student<'_>, StageFolder)]) -> ExperimentError {
    match error {
        BatchError::Report(error) => error,
        BatchError::Device(error) => error.into(),
        BatchError::Student { student, error } => batch[student].0.error(error),
        BatchError::Epochs { students, epochs } => Mismatch::Epochs { students, epochs }.into(),
    }
}

/// Returns the checkpoints that an interrupted training of all these students left after the same epoch, the latest that all have.
fn resume(context: &Context<'_>, batch: &mut [(&Student<'_>, StageFolder)]) -> Vec<Option<Checkpoint>> {
    let read = |folder: &StageFolder| -> Vec<Checkpoint> {
        let files = [CHECKPOINT, EARLIER].into_iter().filter_map(|name| folder.read_partial(name));
        files.filter_map(|bytes| Checkpoint::from_bytes(&bytes).ok()).collect()
    };
    let left: Vec<Vec<Checkpoint>> = batch.iter().map(|(_, folder)| read(folder)).collect();
    let epochs: Vec<Vec<u32>> = left.iter().map(|left| left.iter().map(Checkpoint::epoch).collect()).collect();
    let Some(epoch) = latest_of_all(&epochs) else { return vec![None; batch.len()] };
    for (_, folder) in batch {
        folder.resumed(epoch as usize);
        context.progress.advance(u64::from(epoch), "");
    }
    left.into_iter().map(|left| left.into_iter().find(|checkpoint| checkpoint.epoch() == epoch)).collect()
}

/// Returns the greatest number that every list has.
fn latest_of_all(epochs: &[Vec<u32>]) -> Option<u32> {
    let (first, others) = epochs.split_first()?;
    first.iter().copied().filter(|epoch| others.iter().all(|other| other.contains(epoch))).max()
}

/// Saves every student's checkpoint and keeps the one before it.
fn save(batch: &[(&Student<'_>, StageFolder)], checkpoints: &[Checkpoint]) -> Result<(), ExperimentError> {
    for ((_, folder), checkpoint) in batch.iter().zip(checkpoints) {
        folder.rename(CHECKPOINT, EARLIER)?;
        folder.write(CHECKPOINT, &checkpoint.to_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::latest_of_all;

    #[test]
    fn a_run_killed_between_two_checkpoints_goes_on_from_the_one_that_all_have() {
        assert_eq!(latest_of_all(&[vec![20, 10], vec![20, 10], vec![10, 5]]), Some(10));
        assert_eq!(latest_of_all(&[vec![20, 10], vec![20, 10]]), Some(20));
        assert_eq!(latest_of_all(&[vec![20, 10], vec![]]), None);
        assert_eq!(latest_of_all(&[vec![20], vec![10]]), None);
        assert_eq!(latest_of_all(&[]), None);
    }
}
