//! Students: one for each distinct set of labels and repeat, as many at a time as there are threads.

mod gan;
mod outcome;
mod pseudo_labels;
mod together;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use speed_nn::threads::{self, QueueError};
use speed_random::Streams;
use speed_student::{Checkpoint, CheckpointMetrics, StudentConfig, StudentError, StudentMethod};

use super::{Context, Images};
use crate::ExperimentError;
use crate::device::Device;
use crate::store::{Fingerprint, StageFolder};
pub(crate) use outcome::StudentRun;

const CODE_VERSION: u32 = 2;
const CHECKPOINT: &str = "checkpoint.bin";
const CHECKPOINT_EVERY: Duration = Duration::from_secs(30);

/// The labels that a row bought, and for which queries.
pub(crate) struct Labelling<'a> {
    pub(crate) row: &'a str,
    pub(crate) queries: Vec<usize>,
    pub(crate) labels: Vec<u8>,
}

/// What a row's students learn from, and how.
pub(crate) struct Course<'a> {
    pub(crate) labelling: Labelling<'a>,
    pub(crate) method: StudentMethod,
}

struct Job<'a> {
    labelling: &'a Labelling<'a>,
    method: StudentMethod,
    repeat: usize,
    stage: String,
}

/// Trains every student that is not there yet; the result has one list of repeats for each course.
pub(crate) fn train(
    context: &Context<'_>,
    images: &Images,
    courses: &[Course<'_>],
) -> Result<Vec<Vec<StudentRun>>, ExperimentError> {
    let repeats = context.config.table.repeats;
    let mut jobs: Vec<Job<'_>> = Vec::new();
    for course in courses {
        for repeat in 0..repeats {
            let stage = stage_name(course, repeat);
            if jobs.iter().all(|job| job.stage != stage) {
                jobs.push(Job { labelling: &course.labelling, method: course.method, repeat, stage });
            }
        }
    }
    if !jobs.is_empty() {
        let epochs = jobs.iter().map(|job| u64::from(epochs(&context.config.student, job.method))).sum();
        context.progress.begin("train students", "epochs", epochs, 0);
    }
    let runs = train_all(context, images, &jobs)?;
    if !jobs.is_empty() {
        context.progress.end(&format!("{} students trained", jobs.len()));
    }
    let find = |stage: String| runs.iter().find(|run| run.stage == stage).cloned();
    Ok(courses
        .iter()
        .map(|course| (0..repeats).filter_map(|repeat| find(stage_name(course, repeat))).collect())
        .collect())
}

/// Rows with the same labels and method share the student: the name holds the labels' hash.
fn stage_name(course: &Course<'_>, repeat: usize) -> String {
    let hash = Fingerprint::of(&json!([course.labelling.queries, course.labelling.labels]));
    let method = match course.method {
        StudentMethod::Gan => "",
        StudentMethod::PseudoLabels => "pseudo-labels-",
    };
    format!("student-{method}{}-{repeat}", hash.short())
}

fn epochs(config: &StudentConfig, method: StudentMethod) -> u32 {
    match method {
        StudentMethod::Gan => config.epochs,
        StudentMethod::PseudoLabels => config.pseudo_labels.epochs,
    }
}

/// The settings that a method reads, for the fingerprint: those of the other change nothing.
fn settings(config: &StudentConfig, method: StudentMethod) -> Value {
    match method {
        StudentMethod::Gan => {
            let mut settings = json!(config);
            if let Some(settings) = settings.as_object_mut() {
                settings.retain(|key, _| key != "method" && key != "pseudo_labels");
            }
            settings
        }
        StudentMethod::PseudoLabels => json!(config.pseudo_labels),
    }
}

/// The first error stops the others at their next epoch.
fn train_all(context: &Context<'_>, images: &Images, jobs: &[Job<'_>]) -> Result<Vec<StudentRun>, ExperimentError> {
    let on_device = |job: &&Job<'_>| matches!(context.device, Device::Together(..)) && job.method == StudentMethod::Gan;
    let (together, alone): (Vec<&Job<'_>>, Vec<&Job<'_>>) = jobs.iter().partition(on_device);
    let finished = Mutex::new(together::train(context, images, &together)?);
    threads::for_each(&alone, context.threads, |job, stop| {
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
    let inputs = context.with_arithmetic(&job.stage, CODE_VERSION, inputs(context, images, job))?;
    let stage = context.stage(&job.stage, CODE_VERSION, &inputs, |folder| {
        context.note_arithmetic(folder)?;
        let mut session = Session::new(context, job, folder, stop);
        let trained = match job.method {
            StudentMethod::Gan => gan::train(&mut session, images)?,
            StudentMethod::PseudoLabels => pseudo_labels::train(&mut session, images)?,
        };
        let outputs = outcome::write(folder, &job.stage, trained)?;
        folder.remove(CHECKPOINT);
        Ok(outputs)
    })?;
    outcome::read(&stage)
}

/// What a student is made from.
fn inputs(context: &Context<'_>, images: &Images, job: &Job<'_>) -> Value {
    let config = context.config;
    json!({
        "queries": job.labelling.queries,
        "labels": job.labelling.labels,
        "pool": Images::digest(&images.pool),
        "test": Images::digest(&images.test),
        "student": settings(&config.student, job.method),
        "seed": config.seed,
        "repeat": job.repeat,
    })
}

impl Job<'_> {
    /// Queries with their labels.
    fn labelled(&self) -> Vec<(usize, u8)> {
        let Labelling { queries, labels, .. } = self.labelling;
        queries.iter().copied().zip(labels.iter().copied()).collect()
    }

    /// This student's own randomness.
    fn streams(&self, context: &Context<'_>) -> Streams {
        context.streams.child("student", self.repeat as u64)
    }

    fn error(&self, message: String) -> ExperimentError {
        ExperimentError::Student { repeat: self.repeat, row: self.labelling.row.to_owned(), message }
    }
}

/// One training in its folder: where it goes on, what it reports, what it saves on the way.
struct Session<'a> {
    context: &'a Context<'a>,
    job: &'a Job<'a>,
    folder: &'a mut StageFolder,
    stop: &'a AtomicBool,
    saved: Instant,
}

impl<'a> Session<'a> {
    fn new(context: &'a Context<'a>, job: &'a Job<'a>, folder: &'a mut StageFolder, stop: &'a AtomicBool) -> Self {
        Self { context, job, folder, stop, saved: Instant::now() }
    }

    fn config(&self) -> &'a StudentConfig {
        &self.context.config.student
    }

    fn labelled(&self) -> Vec<(usize, u8)> {
        self.job.labelled()
    }

    fn streams(&self) -> Streams {
        self.job.streams(self.context)
    }

    /// What an interrupted training left.
    fn resume<M: CheckpointMetrics>(&mut self) -> Option<Checkpoint<M>> {
        let bytes = self.folder.read_partial(CHECKPOINT)?;
        let checkpoint = Checkpoint::from_bytes(&bytes).ok()?;
        self.folder.resumed(checkpoint.epoch() as usize);
        self.context.progress.advance(u64::from(checkpoint.epoch()), "");
        Some(checkpoint)
    }

    /// Reports an epoch, and saves the checkpoint if the last one is old.
    fn epoch_done<M: CheckpointMetrics>(
        &mut self,
        epoch: u32,
        accuracy: Option<f64>,
        checkpoint: impl FnOnce() -> Checkpoint<M>,
    ) -> Result<(), ExperimentError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(ExperimentError::Mismatch("stopped because another student failed".into()));
        }
        let accuracy = accuracy.map_or_else(String::new, |accuracy| format!(", accuracy {:.1} %", 100.0 * accuracy));
        let note = format!("{} repeat {}: epoch {epoch}{accuracy}", self.job.labelling.row, self.job.repeat);
        self.context.progress.advance(1, &note);
        if self.saved.elapsed() >= CHECKPOINT_EVERY {
            self.folder.write(CHECKPOINT, &checkpoint().to_bytes())?;
            self.saved = Instant::now();
        }
        Ok(())
    }

    fn error(&self, error: StudentError<ExperimentError>) -> ExperimentError {
        match error {
            StudentError::Report(error) => error,
            error => self.job.error(error.to_string()),
        }
    }
}
