//! Students: one for each distinct set of labels and repeat, as many at a time as there are threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder};
use serde::{Deserialize, Serialize};
use serde_json::json;
use speed_nn::threads::{self, QueueError};
use speed_student::{
    Checkpoint, EpochReport, Images as Unlabelled, StudentError, StudentOutcome, train as train_student,
};

use super::{Context, Images};
use crate::ExperimentError;
use crate::store::{Fingerprint, StageFolder};

const CODE_VERSION: u32 = 1;
const CHECKPOINT: &str = "checkpoint.bin";
const CHECKPOINT_EVERY: Duration = Duration::from_secs(30);

/// The labels that a row bought, and for which queries.
pub(crate) struct Labelling<'a> {
    pub(crate) row: &'a str,
    pub(crate) queries: Vec<usize>,
    pub(crate) labels: Vec<u8>,
}

/// What became of one student.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StudentRun {
    /// Folder of its metrics and samples below `stages/`; rows with the same labels share it.
    pub stage: String,
    /// Accuracy of the averaged parameters on the test images.
    pub accuracy: f64,
    /// Accuracy of the last parameters.
    pub accuracy_raw: f64,
}

struct Job<'a> {
    labelling: &'a Labelling<'a>,
    repeat: usize,
    stage: String,
}

/// Trains every student that is not there yet; the result has one list of repeats for each labelling.
pub(crate) fn train(
    context: &Context<'_>,
    images: &Images,
    labellings: &[Labelling<'_>],
) -> Result<Vec<Vec<StudentRun>>, ExperimentError> {
    let repeats = context.config.table.repeats;
    let mut jobs: Vec<Job<'_>> = Vec::new();
    for labelling in labellings {
        for repeat in 0..repeats {
            let stage = stage_name(labelling, repeat);
            if jobs.iter().all(|job| job.stage != stage) {
                jobs.push(Job { labelling, repeat, stage });
            }
        }
    }
    let epochs = u64::from(context.config.student.epochs);
    if !jobs.is_empty() {
        context.progress.begin("train students", "epochs", epochs * jobs.len() as u64, 0);
    }
    let runs = train_all(context, images, &jobs)?;
    if !jobs.is_empty() {
        context.progress.end(&format!("{} students trained", jobs.len()));
    }
    let find = |stage: String| runs.iter().find(|run| run.stage == stage).cloned();
    Ok(labellings
        .iter()
        .map(|labelling| (0..repeats).filter_map(|repeat| find(stage_name(labelling, repeat))).collect())
        .collect())
}

/// Rows with the same labels share the student: the name holds the labels' hash.
fn stage_name(labelling: &Labelling<'_>, repeat: usize) -> String {
    let hash = Fingerprint::of(&json!([labelling.queries, labelling.labels]));
    format!("student-{}-{repeat}", hash.short())
}

/// The first error stops the others at their next epoch.
fn train_all(context: &Context<'_>, images: &Images, jobs: &[Job<'_>]) -> Result<Vec<StudentRun>, ExperimentError> {
    let finished = Mutex::new(Vec::new());
    threads::for_each(jobs, context.threads, |job, stop| {
        let run = train_one(context, images, job, stop)?;
        finished.lock().unwrap_or_else(PoisonError::into_inner).push(run);
        Ok(())
    })
    .map_err(|error| match error {
        QueueError::Work(error) => error,
        QueueError::Pool(error) => ExperimentError::Threads { reason: error.to_string() },
    })?;
    Ok(finished.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn train_one(
    context: &Context<'_>,
    images: &Images,
    job: &Job<'_>,
    stop: &AtomicBool,
) -> Result<StudentRun, ExperimentError> {
    let config = context.config;
    let inputs = json!({
        "queries": job.labelling.queries,
        "labels": job.labelling.labels,
        "pool": Images::digest(&images.pool),
        "test": Images::digest(&images.test),
        "student": config.student,
        "seed": config.seed,
        "repeat": job.repeat,
    });
    let stage = context.stage(&job.stage, CODE_VERSION, &inputs, |folder| {
        let outcome = train_in(context, images, job, folder, stop)?;
        let run =
            StudentRun { stage: job.stage.clone(), accuracy: outcome.accuracy, accuracy_raw: outcome.accuracy_raw };
        folder.write("metrics.csv", metrics_csv(&outcome).as_bytes())?;
        folder.write("digits.png", &png(&outcome)?)?;
        folder.write_json("student.json", &run)?;
        folder.remove(CHECKPOINT);
        Ok(vec!["student.json".into(), "digits.png".into()])
    })?;
    stage.read_json("student.json")
}

fn train_in(
    context: &Context<'_>,
    images: &Images,
    job: &Job<'_>,
    folder: &mut StageFolder,
    stop: &AtomicBool,
) -> Result<StudentOutcome, ExperimentError> {
    let labelled: Vec<(usize, u8)> =
        job.labelling.queries.iter().copied().zip(job.labelling.labels.iter().copied()).collect();
    let streams = context.streams.child("student", job.repeat as u64);
    let resume = folder.read_partial(CHECKPOINT).and_then(|bytes| Checkpoint::from_bytes(&bytes).ok());
    if let Some(checkpoint) = &resume {
        folder.resumed(checkpoint.epoch() as usize);
        context.progress.advance(u64::from(checkpoint.epoch()), "");
    }
    let mut saved = Instant::now();
    let mut on_epoch = |report: &EpochReport<'_>| -> Result<(), ExperimentError> {
        if stop.load(Ordering::Relaxed) {
            return Err(ExperimentError::Mismatch("stopped because another student failed".into()));
        }
        let metrics = report.metrics();
        let accuracy = metrics
            .accuracy_average
            .map_or_else(String::new, |accuracy| format!(", accuracy {:.1} %", 100.0 * accuracy));
        let note = format!("{} repeat {}: epoch {}{accuracy}", job.labelling.row, job.repeat, metrics.epoch);
        context.progress.advance(1, &note);
        if saved.elapsed() >= CHECKPOINT_EVERY {
            folder.write(CHECKPOINT, &report.checkpoint().to_bytes())?;
            saved = Instant::now();
        }
        Ok(())
    };
    let student = &context.config.student;
    let pool = Unlabelled::of(&images.pool);
    train_student(student, pool, &labelled, &images.test, &streams, resume, &mut on_epoch).map_err(
        |error| match error {
            StudentError::Report(error) => error,
            error => ExperimentError::Student {
                repeat: job.repeat,
                row: job.labelling.row.to_owned(),
                message: error.to_string(),
            },
        },
    )
}

fn metrics_csv(outcome: &StudentOutcome) -> String {
    let mut text = String::from(
        "epoch,discriminator_loss,generator_loss,accuracy_raw,accuracy_average,accuracy_reference_average,seconds\n",
    );
    let optional = |accuracy: Option<f64>| accuracy.map_or_else(String::new, |accuracy| accuracy.to_string());
    for m in &outcome.metrics {
        text.push_str(&format!(
            "{},{},{},{},{},{},{:.3}\n",
            m.epoch,
            m.discriminator_loss,
            m.generator_loss,
            optional(m.accuracy_raw),
            optional(m.accuracy_average),
            optional(m.accuracy_reference_average),
            m.seconds
        ));
    }
    text
}

/// The generated images, ten in a row, as a PNG file.
fn png(outcome: &StudentOutcome) -> Result<Vec<u8>, ExperimentError> {
    let grid = outcome.samples.grid(10);
    let color = if grid.channels == 3 { ExtendedColorType::Rgb8 } else { ExtendedColorType::L8 };
    let size = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    let mut bytes = Vec::new();
    PngEncoder::new(&mut bytes)
        .write_image(&grid.pixels, size(grid.width), size(grid.height), color)
        .map_err(|error| ExperimentError::Mismatch(format!("generated images cannot be drawn: {error}")))?;
    Ok(bytes)
}
