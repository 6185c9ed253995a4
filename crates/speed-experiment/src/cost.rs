//! Time and memory of a run, from a few steps of its own networks, measured here and now.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use burn::tensor::Device;
use serde::Serialize;
use speed_core::Circuit;
use speed_data::{ImageShape, Split, partition};
use speed_random::Streams;
use speed_student::gan::{self, EpochReport};
use speed_student::pseudo_labels::{self, PseudoLabelsConfig, PseudoLabelsReport};
use speed_student::{Images as Unlabelled, StudentConfig, StudentMethod};
use speed_teacher::{
    EnsembleError, Teacher, TeacherConfig, TeacherError, TrainedTeacher, ensemble_votes, train_ensemble,
};

use crate::config::{AggregationKind, Config, DataSource, VotesSource};
use crate::error::{ExperimentError, Mismatch};

/// Core-seconds per encrypted query between ten classes, messages included, and of the keys: results/argmax.
const ENCRYPTED_QUERY: f64 = 0.6;
const KEYS: f64 = 4.0;
/// Work of other circuits, in multiples: results/argmax.
const ALL_PAIRS: f64 = 5.0;
const PAPER_CIRCUIT: f64 = 3.7;

/// Seconds of work that is not measured again.
const LONG: f64 = 0.1;
/// Values of a network with which a few steps still take a moment.
const MAX_VALUES: usize = 5_000_000;
/// Images per step that are measured; more take longer in proportion.
const MAX_BATCH: usize = 100;

/// Bytes, measured and rounded up: a process, one training with all that belongs to it, keys and ciphertexts.
const PROCESS: f64 = 60e6;
const TEACHER: f64 = 50e6;
const STUDENT: f64 = 130e6;
/// Bytes for each of a network's values: itself, its gradient, two moments, two averages, and the copies of checkpoints.
const VALUE: f64 = 32.0;
const ENCRYPTED: f64 = 550e6;

/// Time and memory of a run. Measured over a moment, so a guess within a factor of two.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// Processor time of all stages, in seconds, by their kind; none for networks too large to be tried in a moment.
    pub core_seconds: Vec<(&'static str, Option<f64>)>,
    /// Peak memory in bytes, estimated from the sizes of the largest values.
    pub memory_bytes: f64,
}

impl Cost {
    /// Estimates the cost of all of a run's stages.
    ///
    /// # Errors
    /// If a network cannot be trained at all.
    pub(crate) fn of(config: &Config, threads: NonZeroUsize) -> Result<Self, ExperimentError> {
        let mut cost = Self { core_seconds: Vec::new(), memory_bytes: 0.0 };
        let images = Sizes::of(config);
        let threads = threads.get() as f64;
        if let (VotesSource::Teachers, Some(images)) = (&config.votes, &images) {
            cost.add_teachers(config, images, threads)?;
        }
        cost.add_circuits(config);
        if let (Some(images), 1..) = (&images, config.table.repeats) {
            cost.add_students(config, images, threads)?;
        }
        let held = images.as_ref().map_or(0.0, |images| (images.all * images.shape.pixels()) as f64);
        let votes = (config.ensemble.teachers * config.data.pool_images) as f64;
        cost.memory_bytes += PROCESS + 2.0 * held + 2.0 * votes;
        Ok(cost)
    }

    fn add_teachers(&mut self, config: &Config, images: &Sizes, threads: f64) -> Result<(), ExperimentError> {
        let (step, vote) = teacher(&config.teacher, images)?;
        let teachers = config.ensemble.teachers as f64;
        self.core_seconds.push(("teachers", Some(teachers * config.teacher.steps as f64 * step)));
        self.core_seconds.push(("votes", Some(teachers * config.data.pool_images as f64 * vote)));
        let pixels = (config.teacher.batch * images.shape.height * images.shape.width) as f64;
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
            self.core_seconds.push(("encrypted argmax", Some(KEYS + encrypted.iter().sum::<f64>())));
            self.memory_bytes = self.memory_bytes.max(ENCRYPTED);
        }
    }

    /// Adds at most what students take: rows that turn out to have the same labels share theirs.
    fn add_students(&mut self, config: &Config, images: &Sizes, threads: f64) -> Result<(), ExperimentError> {
        let methods: Vec<StudentMethod> = config.rows.iter().map(|row| config.method_of(row)).collect();
        let of = |method: StudentMethod| methods.iter().filter(|other| **other == method).count();
        for (name, method) in [
            ("GAN students, at most", StudentMethod::Gan),
            ("students on pseudo-labels, at most", StudentMethod::PseudoLabels),
        ] {
            if of(method) > 0 {
                let students = (of(method) * config.table.repeats * config.data.pool_images) as f64;
                let each = student(&config.student, method, images)?;
                self.core_seconds.push((name, each.map(|seconds| students * seconds)));
                let values = values(&config.student, method, images.shape.pixels()) as f64;
                self.memory_bytes = self.memory_bytes.max(threads * (STUDENT + VALUE * values));
            }
        }
        Ok(())
    }
}

/// A run's images: their shape, and how many there are in all.
struct Sizes {
    shape: ImageShape,
    all: usize,
}

impl Sizes {
    fn of(config: &Config) -> Option<Self> {
        let shape = config.data.source.shape()?;
        let all = match config.data.source {
            DataSource::None => 0,
            DataSource::Mnist => 70_000,
            DataSource::Digits => config.data.train_images + config.data.test_images,
        };
        Some(Self { shape, all })
    }

    /// Returns `count` images of no meaning.
    fn images(&self, count: usize) -> Result<Split, ExperimentError> {
        const CLASSES: usize = 10;
        let pixels = (0..count * self.shape.pixels()).map(|i| (i * 167 % 251) as u8).collect();
        Ok(Split::new(self.shape, CLASSES, pixels, (0..count).map(|i| (i % CLASSES) as u8).collect())?)
    }
}

/// Returns the seconds of `work` on this thread, the least of three: a moment is easily disturbed.
fn seconds(work: impl Fn() -> Result<(), ExperimentError>) -> Result<f64, ExperimentError> {
    let mut least = f64::INFINITY;
    for _ in 0..3 {
        let start = Instant::now();
        work()?;
        least = least.min(start.elapsed().as_secs_f64());
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

/// Returns the number of weights of a student's networks, about.
fn values(config: &StudentConfig, method: StudentMethod, pixels: usize) -> usize {
    let dense = |layers: &mut dyn Iterator<Item = usize>| {
        let mut values = 0usize;
        layers.reduce(|inputs, outputs| {
            values = values.saturating_add(inputs.saturating_mul(outputs));
            outputs
        });
        values
    };
    match method {
        StudentMethod::Gan => {
            let discriminator = dense(&mut std::iter::once(pixels).chain(config.discriminator.iter().copied()));
            let generator = [&[config.latent], &config.generator[..], &[pixels]].concat();
            discriminator.saturating_add(dense(&mut generator.into_iter()))
        }
        StudentMethod::PseudoLabels => {
            let settings = &config.pseudo_labels;
            let channels = std::iter::once(1).chain(settings.convolutions.iter().copied());
            let convolutions = dense(&mut channels.clone()).saturating_mul(settings.kernel * settings.kernel);
            // Every layer halves height and width; the last maps meet the hidden layer.
            let last = channels.last().unwrap_or(1).saturating_mul(pixels >> (2 * settings.convolutions.len().min(8)));
            convolutions.saturating_add(last.saturating_mul(settings.hidden))
        }
    }
}

/// Returns the seconds of all epochs together, for each image of the pool; none for networks too large to be tried.
fn student(config: &StudentConfig, method: StudentMethod, images: &Sizes) -> Result<Option<f64>, ExperimentError> {
    if values(config, method, images.shape.pixels()) > MAX_VALUES {
        return Ok(None);
    }
    const STEPS: usize = 3;
    let (streams, test) = (Streams::new(0), images.images(10)?);
    let labelled: Vec<(usize, u8)> = (0..10).map(|i| (i, i as u8)).collect();
    let failure = |error: Box<dyn std::error::Error + Send + Sync>| ExperimentError::from(Mismatch::Unmeasured(error));
    let settings = &config.pseudo_labels;
    // The first epoch of the student on pseudo-labels is none like the others.
    let (epochs, batch, first) = match method {
        StudentMethod::Gan => (config.epochs, config.batch.min(MAX_BATCH), 1),
        StudentMethod::PseudoLabels => (settings.epochs, settings.batch.min(MAX_BATCH), 2),
    };
    let pool = images.images(STEPS * batch.max(10))?;
    let unlabelled = Unlabelled::of(&pool);
    let train = |epochs: u32| match method {
        StudentMethod::Gan => {
            let few = StudentConfig {
                epochs,
                batch,
                initial_images: config.initial_images.min(pool.len()),
                ..config.clone()
            };
            let mut on_epoch = |_: &EpochReport<'_>| Ok::<(), ExperimentError>(());
            gan::train(&few, unlabelled, &labelled, &test, &streams, &Device::flex(), None, &mut on_epoch)
                .map(drop)
                .map_err(|error| failure(error.into()))
        }
        StudentMethod::PseudoLabels => {
            let few = PseudoLabelsConfig { epochs, batch, warmup_epochs: 1, label_epochs: epochs, ..settings.clone() };
            let mut on_epoch = |_: &PseudoLabelsReport<'_>| Ok::<(), ExperimentError>(());
            pseudo_labels::train(&few, unlabelled, &labelled, &test, &streams, &Device::flex(), None, &mut on_epoch)
                .map(drop)
                .map_err(|error| failure(error.into()))
        }
    };
    let (without, with) = (seconds(|| train(first))?, seconds(|| train(first + 1))?);
    Ok(Some(f64::from(epochs) * (with - without).max(0.0) / pool.len() as f64))
}
