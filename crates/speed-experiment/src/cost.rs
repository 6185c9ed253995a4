//! Time and memory of a run, from a few steps of its own networks, measured here and now.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use burn::tensor::Device;
use serde::Serialize;
use speed_aggregation::processor_time;
use speed_core::Circuit;
use speed_data::{Facts, Split, partition};
use speed_random::Streams;
use speed_student::{EpochReport, Images as Unlabelled, Lesson, StudentConfig, StudentMethod};
use speed_teacher::{
    EnsembleError, Teacher, TeacherConfig, TeacherError, TrainedTeacher, ensemble_votes, train_ensemble,
};

use crate::config::{AggregationKind, Config, VotesSource};
use crate::error::{ExperimentError, Mismatch};

/// Core-seconds per encrypted query between ten classes, messages included, and of the keys: results/published/argmax.
const ENCRYPTED_QUERY: f64 = 0.6;
const KEYS: f64 = 4.0;
/// Work of other circuits, in multiples: results/published/argmax.
const ALL_PAIRS: f64 = 5.0;
const PAPER_CIRCUIT: f64 = 3.7;

/// Seconds of work that is not measured again.
const LONG: f64 = 0.1;
/// Values of a network with which a few steps still take a moment.
const MAX_VALUES: usize = 8_000_000;
/// Images per step that are measured; more take longer in proportion. The few are enough where they take long already.
const BATCHES: [usize; 2] = [10, 100];

/// Bytes, measured and rounded up: a process, one training with all that belongs to it, keys and ciphertexts.
const PROCESS: f64 = 60e6;
const TEACHER: f64 = 50e6;
const STUDENT: f64 = 130e6;
/// Bytes for each of a network's values: itself, its gradient, two moments, two averages, and the copies of checkpoints.
const VALUE: f64 = 32.0;
const ENCRYPTED: f64 = 550e6;

/// Time of the stages of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct StageCost {
    /// The kind.
    pub kind: String,
    /// Processor time in seconds; none for networks too large to be tried in a moment.
    pub core_seconds: Option<f64>,
}

/// Time and memory of a run. Measured over a moment, so a guess within a factor of two.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// All stages, by their kind.
    pub stages: Vec<StageCost>,
    /// Peak memory in bytes, estimated from the sizes of the largest values.
    pub memory_bytes: f64,
}

impl Cost {
    /// Estimates the cost of all of a run's stages.
    ///
    /// # Errors
    /// If a network cannot be trained at all.
    pub(crate) fn of(config: &Config, images: Option<Facts>, threads: NonZeroUsize) -> Result<Self, ExperimentError> {
        let mut cost = Self { stages: Vec::new(), memory_bytes: 0.0 };
        let images = images.map(Sizes);
        let threads = threads.get() as f64;
        if let (VotesSource::Teachers, Some(images)) = (&config.votes, &images) {
            cost.add_teachers(config, images, threads)?;
        }
        cost.add_circuits(config);
        if let (Some(images), 1..) = (&images, config.table.repeats) {
            cost.add_students(config, images, threads)?;
        }
        let held =
            images.as_ref().map_or(0.0, |images| ((images.0.train + images.0.test) * images.0.shape.pixels()) as f64);
        let votes = (config.ensemble.teachers * config.data.pool_images) as f64;
        cost.memory_bytes += PROCESS + 2.0 * held + 2.0 * votes;
        Ok(cost)
    }

    fn add(&mut self, kind: &str, core_seconds: Option<f64>) {
        self.stages.push(StageCost { kind: kind.to_owned(), core_seconds });
    }

    fn add_teachers(&mut self, config: &Config, images: &Sizes, threads: f64) -> Result<(), ExperimentError> {
        let (step, vote) = teacher(&config.teacher, images)?;
        let teachers = config.ensemble.teachers as f64;
        self.add("teachers", Some(teachers * config.teacher.steps as f64 * step));
        self.add("votes", Some(teachers * config.data.pool_images as f64 * vote));
        let pixels = (config.teacher.batch * images.0.shape.height * images.0.shape.width) as f64;
        let batch = pixels * config.teacher.architecture.step_bytes_per_pixel() as f64;
        self.memory_bytes = self.memory_bytes.max(threads * (TEACHER + batch));
        Ok(())
    }

    fn add_circuits(&mut self, config: &Config) {
        let own = (0..config.rows.len()).filter(|&row| config.labels_of(row) == row).map(|row| &config.rows[row]);
        let encrypted: Vec<f64> = own
            .filter(|row| row.aggregation == AggregationKind::Encrypted)
            .map(|row| {
                let times = match row.circuit {
                    Circuit::Tournament => 1.0,
                    Circuit::AllPairs => ALL_PAIRS,
                    Circuit::Paper => PAPER_CIRCUIT,
                };
                row.query_count(config.queries.count) as f64 * ENCRYPTED_QUERY * times
            })
            .collect();
        if !encrypted.is_empty() {
            self.add("encrypted argmax", Some(KEYS + encrypted.iter().sum::<f64>()));
            self.memory_bytes = self.memory_bytes.max(ENCRYPTED);
        }
    }

    /// Adds at most what students take: rows that turn out to have the same labels share theirs.
    fn add_students(&mut self, config: &Config, images: &Sizes, threads: f64) -> Result<(), ExperimentError> {
        let methods: Vec<StudentMethod> = config.rows.iter().map(|row| config.method_of(row)).collect();
        let of = |method: StudentMethod| methods.iter().filter(|other| **other == method).count();
        for method in StudentMethod::all() {
            if of(method) > 0 {
                let images_an_epoch = method.passes(&config.student).images(config.data.pool_images);
                let students = (of(method) * config.table.repeats) as f64 * images_an_epoch as f64;
                let each = student(&config.student, method, images)?;
                let name = format!("students by {}, at most", method.name());
                self.add(&name, each.map(|seconds| students * seconds));
                let values = method.parameters(&config.student, images.0.shape) as f64;
                self.memory_bytes = self.memory_bytes.max(threads * (STUDENT + VALUE * values));
            }
        }
        Ok(())
    }
}

/// A run's images.
struct Sizes(Facts);

impl Sizes {
    /// Returns `count` images of no meaning.
    fn images(&self, count: usize) -> Result<Split, ExperimentError> {
        let Facts { shape, classes, .. } = self.0;
        let pixels = (0..count * shape.pixels()).map(|i| (i * 167 % 251) as u8).collect();
        Ok(Split::new(shape, classes, pixels, (0..count).map(|i| (i % classes) as u8).collect())?)
    }
}

/// Returns the processor seconds of `work`, the least of three: a moment is easily disturbed. What other programs take does not count, where
/// the system tells processor time.
fn seconds(work: impl Fn() -> Result<(), ExperimentError>) -> Result<f64, ExperimentError> {
    let mut least = f64::INFINITY;
    for _ in 0..3 {
        let (start, clock) = (processor_time(), Instant::now());
        work()?;
        let spent = start.zip(processor_time()).map(|(start, end)| end - start);
        let spent = spent.unwrap_or_else(|| clock.elapsed());
        least = least.min(spent.as_secs_f64());
        if least > LONG {
            break;
        }
    }
    Ok(least)
}

/// Returns the seconds of a step, and of a vote.
fn teacher(config: &TeacherConfig, images: &Sizes) -> Result<(f64, f64), ExperimentError> {
    const BATCH: usize = 16;
    let (own, pool) = (images.images(BATCH)?, images.images(8 * BATCH)?);
    // One teacher has all.
    let partitions = partition::blocks(own.len(), 1)?;
    let trained = Mutex::new(None);
    let train = |steps: usize| {
        let few = TeacherConfig { steps, batch: BATCH, validation: 0.0, ..config.clone() };
        let finished = |finished: TrainedTeacher| -> Result<(), ExperimentError> {
            *trained.lock().unwrap_or_else(PoisonError::into_inner) = Some(finished.teacher.to_bytes()?);
            Ok(())
        };
        match train_ensemble(&few, &own, &partitions, &[0], &Streams::new(0), &Device::flex(), 1, &finished) {
            // What these images do to a training is of no matter.
            Err(EnsembleError::Teacher(TeacherError::Diverged { .. })) | Ok(()) => Ok(()),
            Err(error) => Err(error.into()),
        }
    };
    let first = seconds(|| train(1))?;
    // Of a small network so many that they stand out.
    let steps = if first < 0.05 { 16 } else { 2 };
    let all = seconds(|| train(1 + steps))?;
    let step = (all - first).max(0.0) / steps as f64 * config.batch as f64 / BATCH as f64;

    let Some(bytes) = trained.into_inner().unwrap_or_else(PoisonError::into_inner) else { return Ok((step, 0.0)) };
    let load = |_: usize| -> Result<Teacher, ExperimentError> {
        Ok(Teacher::from_bytes(config.architecture, own.shape(), own.classes(), &Device::flex(), &bytes)?)
    };
    let vote = |pool: &Split| ensemble_votes(1, &load, pool, 1).map(drop).map_err(ExperimentError::from);
    let (few, more) = (seconds(|| vote(&own))?, seconds(|| vote(&pool))?);
    Ok((step, (more - few).max(0.0) / (pool.len() - own.len()) as f64))
}

/// Returns the seconds of all epochs together, for each image of an epoch; none for networks too large to be tried.
fn student(config: &StudentConfig, method: StudentMethod, images: &Sizes) -> Result<Option<f64>, ExperimentError> {
    if method.parameters(config, images.0.shape) > MAX_VALUES {
        return Ok(None);
    }
    let (per_image, took) = student_with(config, method, images, BATCHES[0])?;
    let is_enough = took > LONG;
    Ok(Some(if is_enough { per_image } else { student_with(config, method, images, BATCHES[1])?.0 }))
}

/// Returns the same from steps of at most `limit` images, and the seconds of some of them.
fn student_with(
    config: &StudentConfig,
    method: StudentMethod,
    images: &Sizes,
    limit: usize,
) -> Result<(f64, f64), ExperimentError> {
    const STEPS: usize = 3;
    let (streams, device, test) = (Streams::new(0), Device::flex(), images.images(10)?);
    let labelled: Vec<(usize, u8)> = (0..10).map(|i| (i, (i % images.0.classes) as u8)).collect();
    let passes = method.passes(config);
    let batch = passes.batch.min(limit);
    let pool = images.images(STEPS * batch.max(10))?;
    let train = |epochs: u32| {
        let few = method.trial(config, epochs, batch);
        let lesson = Lesson {
            config: &few,
            pool: Unlabelled::of(&pool),
            labelled: &labelled,
            test: &test,
            streams: &streams,
            device: &device,
        };
        let trained = method.train(&lesson, None, &mut |_: &EpochReport<'_>| Ok(()));
        trained.map(drop).map_err(|error| Mismatch::Unmeasured(error.into()).into())
    };
    // The first epoch may be none like the others.
    let (without, with) = (seconds(|| train(2))?, seconds(|| train(3))?);
    let epoch = (with - without).max(0.0);
    let measured = method.passes(&method.trial(config, 1, batch)).images(pool.len());
    Ok((f64::from(passes.epochs) * epoch / measured as f64, epoch))
}
