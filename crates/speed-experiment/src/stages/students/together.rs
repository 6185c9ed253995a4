//! Students of the paper's method as one computation on a device.

use std::time::Instant;

use serde_json::json;
use speed_batched::{Accelerator, BatchError, EpochReport, Student, train_students};
use speed_student::{Checkpoint, StudentError};

use super::{CHECKPOINT, CHECKPOINT_EVERY, CODE_VERSION, Job, StudentRun, gan, inputs, outcome};
use crate::ExperimentError;
use crate::device::Device;
use crate::stages::{Context, Images};
use crate::store::{StageFolder, StageState};

/// The checkpoint before the last. Students are saved one after another: when a run is killed between two of them, all of
/// them have this one.
const EARLIER: &str = "checkpoint-earlier.bin";

/// Students that train together; more are trained in several batches, one after another. Their networks, moments,
/// averages and noise take 55 MB a student at the paper's sizes, and the largest array of a batch is 100 MB, below the 128 MiB that
/// every GPU allows.
const MOST_TOGETHER: usize = 32;

/// Trains every student that is not there yet.
pub(super) fn train(
    context: &Context<'_>,
    images: &Images,
    jobs: &[&Job<'_>],
) -> Result<Vec<StudentRun>, ExperimentError> {
    let Device::Together(accelerator, name) = context.device else { return Ok(Vec::new()) };
    let mut runs = Vec::with_capacity(jobs.len());
    // Who trains with whom does not depend on what is finished.
    for block in jobs.chunks(MOST_TOGETHER) {
        let mut outstanding = Vec::new();
        for &job in block {
            let mut inputs = inputs(context, images, job);
            inputs["device"] = json!(name);
            let inputs = context.with_arithmetic(&job.stage, CODE_VERSION, inputs)?;
            match context.open_stage(&job.stage, CODE_VERSION, &inputs)? {
                StageState::Done(stage) => runs.push(outcome::read(&stage)?),
                StageState::Outstanding(folder) => {
                    context.note_arithmetic(&folder)?;
                    outstanding.push((job, folder));
                }
            }
        }
        if !outstanding.is_empty() {
            runs.extend(train_batch(context, images, outstanding, accelerator)?);
        }
    }
    Ok(runs)
}

fn train_batch(
    context: &Context<'_>,
    images: &Images,
    mut jobs: Vec<(&Job<'_>, StageFolder)>,
    accelerator: &Accelerator,
) -> Result<Vec<StudentRun>, ExperimentError> {
    let labelled: Vec<Vec<(usize, u8)>> = jobs.iter().map(|(job, _)| job.labelled()).collect();
    let resume = resume(context, &mut jobs);
    let students = jobs.iter().zip(&labelled).zip(resume).map(|(((job, _), labelled), resume)| Student {
        labelled,
        streams: job.streams(context),
        resume,
    });
    let students: Vec<Student<'_>> = students.collect();

    let mut saved = Instant::now();
    let mut on_epoch = |report: &EpochReport<'_>| -> Result<(), ExperimentError> {
        let metrics = report.metrics();
        let accuracies: Option<Vec<f64>> = metrics.iter().map(|metrics| metrics.accuracy_average).collect();
        let accuracy = accuracies.map_or_else(String::new, |accuracies| {
            format!(", mean accuracy {:.1} %", 100.0 * accuracies.iter().sum::<f64>() / accuracies.len() as f64)
        });
        let epoch = metrics[0].epoch;
        context.progress.advance(jobs.len() as u64, &format!("{} students: epoch {epoch}{accuracy}", jobs.len()));
        // With the last epoch saved, a run that is killed while it writes results has nothing left to train.
        if saved.elapsed() >= CHECKPOINT_EVERY || epoch == context.config.student.epochs {
            save(&jobs, &report.checkpoints()?)?;
            saved = Instant::now();
        }
        Ok(())
    };
    let (config, pool, test) = (&context.config.student, &images.pool, &images.test);
    let outcomes = train_students(config, pool, students, test, &accelerator.device, &mut on_epoch).map_err(
        |error| match error {
            BatchError::Report(error) | BatchError::Student { error: StudentError::Report(error), .. } => error,
            BatchError::Device(error) => error.into(),
            BatchError::Student { student, error } => jobs[student].0.error(error.to_string()),
            error @ BatchError::Epochs { .. } => ExperimentError::Mismatch(error.to_string()),
        },
    )?;

    let mut runs = Vec::with_capacity(jobs.len());
    for ((job, folder), outcome) in jobs.into_iter().zip(outcomes) {
        let outputs = outcome::write(&folder, &job.stage, gan::trained(&outcome)?)?;
        folder.remove(CHECKPOINT);
        folder.remove(EARLIER);
        runs.push(outcome::read(&folder.finish(&outputs)?)?);
    }
    Ok(runs)
}

/// What an interrupted training of all these students left after the same epoch, the latest that all have.
fn resume(context: &Context<'_>, jobs: &mut [(&Job<'_>, StageFolder)]) -> Vec<Option<Checkpoint>> {
    let read = |folder: &StageFolder| -> Vec<Checkpoint> {
        let files = [CHECKPOINT, EARLIER].into_iter().filter_map(|name| folder.read_partial(name));
        files.filter_map(|bytes| Checkpoint::from_bytes(&bytes).ok()).collect()
    };
    let left: Vec<Vec<Checkpoint>> = jobs.iter().map(|(_, folder)| read(folder)).collect();
    let epochs: Vec<Vec<u32>> = left.iter().map(|left| left.iter().map(Checkpoint::epoch).collect()).collect();
    let Some(epoch) = latest_of_all(&epochs) else { return vec![None; jobs.len()] };
    for (_, folder) in jobs {
        folder.resumed(epoch as usize);
        context.progress.advance(u64::from(epoch), "");
    }
    left.into_iter().map(|left| left.into_iter().find(|checkpoint| checkpoint.epoch() == epoch)).collect()
}

/// The greatest number that every list has.
fn latest_of_all(epochs: &[Vec<u32>]) -> Option<u32> {
    let (first, others) = epochs.split_first()?;
    first.iter().copied().filter(|epoch| others.iter().all(|other| other.contains(epoch))).max()
}

/// Saves every student's checkpoint and keeps the one before it.
fn save(jobs: &[(&Job<'_>, StageFolder)], checkpoints: &[Checkpoint]) -> Result<(), ExperimentError> {
    for ((_, folder), checkpoint) in jobs.iter().zip(checkpoints) {
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
