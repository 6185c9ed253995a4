//! Time and memory of a run, from a few training steps of its networks, measured on this machine.

use std::cell::OnceCell;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use burn::tensor::Device;
use serde::Serialize;
use speed_aggregation::cost::Clock;
use speed_core::Circuit;
use speed_core::random::Streams;
use speed_data::{Facts, ImageShape, Split, partition};
use speed_student::{EpochReport, Images as Unlabelled, Lesson, StudentConfig, StudentMethod};
use speed_teacher::{
    EnsembleError, EnsembleTraining, Teacher, TeacherConfig, TeacherError, TrainedTeacher, ensemble_votes,
    train_ensemble,
};

use crate::config::{Config, VotesSource};
use crate::encoder::PictureEncoder;
use crate::error::ExperimentError;

/// Core-seconds for an encrypted query with ten classes, including messages (results/published/argmax), and for the keys (the example `cost`
/// of speed-aggregation).
const ENCRYPTED_QUERY: f64 = 0.6;
const KEYS: f64 = 1.0;
/// Factors for the work of other circuits: results/published/argmax.
const ALL_PAIRS: f64 = 5.0;
const PAPER_CIRCUIT: f64 = 3.7;

/// Seconds of work that is long enough to be measured once.
const LONG: f64 = 0.1;
/// The largest number of parameters of a network for which a few steps are measured.
const MAX_VALUES: usize = 8_000_000;
/// Batch sizes that are measured. The time is proportional to the batch size. The second is used only if the first takes
/// less than [`LONG`].
const BATCHES: [usize; 2] = [10, 100];

/// Bytes, measured and rounded up: of a process, of one training with its data, and of keys with ciphertexts.
const PROCESS: f64 = 60e6;
const TEACHER: f64 = 50e6;
const STUDENT: f64 = 130e6;
/// Bytes for each parameter of a network: its value, gradient, two moments, two averages, and copies in checkpoints.
const VALUE: f64 = 32.0;
const ENCRYPTED: f64 = 550e6;
/// Bytes of an encoder's weights, as written and optimised, and for each value of a picture on each thread.
const ENCODER: f64 = 200e6;
const ENCODER_VALUE: f64 = 400.0;

/// Time and memory of the stages of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct StageCost {
    /// The name of the kind of stage.
    #[serde(skip)]
    pub stage: &'static str,
    /// A description of the work.
    pub kind: String,
    /// Processor time in seconds; `None` if a network is too large to be measured in a moment.
    pub core_seconds: Option<f64>,
    /// Peak memory in bytes, besides the memory of a process with images and votes.
    #[serde(skip)]
    pub memory_bytes: f64,
}

/// Time and memory of a run: an estimate within a factor of two.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// The costs of the stages.
    pub stages: Vec<StageCost>,
    /// Peak memory in bytes, estimated from the sizes of the largest values.
    pub memory_bytes: f64,
}

impl Cost {
    pub(crate) fn new(config: &Config, meter: &Meter, stages: Vec<StageCost>) -> Self {
        let pixels = |images: &Facts| ((images.train + images.test) * images.shape.pixels()) as f64;
        let vectors_of = meter.encoder.as_ref().zip(meter.images.as_ref());
        let pictures = vectors_of.map(|((_, shape), images)| pixels(&Facts { shape: *shape, ..*images }));
        let images = meter.images.as_ref().map_or(0.0, pixels) + pictures.unwrap_or(0.0);
        let votes = (config.ensemble.teachers * config.data.pool_images) as f64;
        let largest = stages.iter().map(|stage| stage.memory_bytes).fold(0.0, f64::max);
        Self { stages, memory_bytes: largest + PROCESS + 2.0 * images + 2.0 * votes }
    }
}

pub(crate) struct Meter {
    images: Option<Facts>,
    encoder: Option<(PictureEncoder, ImageShape)>,
    threads: f64,
    teacher: OnceCell<TeacherCost>,
}

#[derive(Clone, Copy)]
pub(crate) struct TeacherCost {
    /// Core-seconds of a step.
    pub(crate) step: f64,
    /// Core-seconds of a vote.
    pub(crate) vote: f64,
    /// Peak memory of one training in bytes.
    pub(crate) memory_bytes: f64,
}

impl Meter {
    pub(crate) fn new(
        images: Option<Facts>,
        encoder: Option<(PictureEncoder, ImageShape)>,
        threads: NonZeroUsize,
    ) -> Self {
        Self { images, encoder, threads: threads.get() as f64, teacher: OnceCell::new() }
    }

    pub(crate) fn threads(&self) -> f64 {
        self.threads
    }

    /// Measures the encoder, if there is one, and returns the core-seconds of all vectors and their peak memory in bytes.
    pub(crate) fn vectors(&self) -> Result<Option<(f64, f64)>, ExperimentError> {
        const PICTURES: usize = 4;
        let (Some((encoder, shape)), Some(facts)) = (&self.encoder, &self.images) else { return Ok(None) };
        let pictures = arbitrary(&Facts { shape: *shape, ..*facts }, PICTURES)?;
        let all = seconds(|| {
            (0..PICTURES).try_for_each(|picture| {
                let name = || "an arbitrary picture".to_owned();
                encoder.vector(*shape, pictures.pixels(picture), name).map(drop)
            })
        })?;
        let count = (facts.train + facts.test) as f64;
        let memory = ENCODER + self.threads * ENCODER_VALUE * encoder.shape().pixels() as f64;
        Ok(Some((count * all / PICTURES as f64, memory)))
    }

    pub(crate) fn teacher(&self, config: &Config) -> Result<Option<TeacherCost>, ExperimentError> {
        let (VotesSource::Teachers, Some(images)) = (config.votes.source, &self.images) else { return Ok(None) };
        if let Some(cost) = self.teacher.get() {
            return Ok(Some(*cost));
        }
        let (step, vote) = teacher(&config.teacher, images)?;
        let pixels = (config.teacher.batch * images.shape.height * images.shape.width) as f64;
        let batch = pixels * config.teacher.architecture.step_bytes_per_pixel() as f64;
        let cost = TeacherCost { step, vote, memory_bytes: TEACHER + batch };
        Ok(Some(*self.teacher.get_or_init(|| cost)))
    }

    /// Measures a student, if there are images: the core-seconds of all epochs for each image of an epoch, `None` if the network is too
    /// large to be measured, and the peak memory of one training in bytes.
    pub(crate) fn student(
        &self,
        config: &Config,
        method: StudentMethod,
    ) -> Result<Option<(Option<f64>, f64)>, ExperimentError> {
        let Some(images) = &self.images else { return Ok(None) };
        let values = method.parameters(&config.student, images.shape) as f64;
        Ok(Some((student(&config.student, method, images)?, STUDENT + VALUE * values)))
    }
}

/// Returns the cost of queries on ciphertexts, whose number in each row `queries` returns.
pub(crate) fn labelling_cost(
    config: &Config,
    stage: &'static str,
    queries: fn(&Config, Option<usize>) -> usize,
) -> Vec<StageCost> {
    let rows = (0..config.rows.len()).filter(|&row| config.labels_of(row) == row);
    let rows = rows.map(|row| (config.rows[row].circuit, queries(config, Some(row))));
    let rows: Vec<_> = rows.filter(|(_, queries)| *queries > 0).collect();
    let queries = rows.iter().map(|(circuit, queries)| {
        let factor = match circuit {
            Circuit::Tournament => 1.0,
            Circuit::AllPairs => ALL_PAIRS,
            Circuit::Paper => PAPER_CIRCUIT,
        };
        *queries as f64 * ENCRYPTED_QUERY * factor
    });
    let core_seconds = Some(KEYS + queries.sum::<f64>());
    let cost = StageCost { stage, kind: "encrypted argmax".to_owned(), core_seconds, memory_bytes: ENCRYPTED };
    if rows.is_empty() { Vec::new() } else { vec![cost] }
}

/// Returns `count` arbitrary images.
fn arbitrary(facts: &Facts, count: usize) -> Result<Split, ExperimentError> {
    let Facts { shape, classes, .. } = *facts;
    let pixels = (0..count * shape.pixels()).map(|i| (i * 167 % 251) as u8).collect();
    Ok(Split::new(shape, classes, pixels, (0..count).map(|i| (i % classes) as u8).collect())?)
}

/// Returns the least of three measurements, because other programs disturb short ones. A long one is enough.
fn least(measure: impl Fn() -> Result<f64, ExperimentError>) -> Result<f64, ExperimentError> {
    let mut least = f64::INFINITY;
    for _ in 0..3 {
        least = least.min(measure()?);
        if least > LONG {
            break;
        }
    }
    Ok(least)
}

/// Returns the processor seconds of `work`.
fn seconds(work: impl Fn() -> Result<(), ExperimentError>) -> Result<f64, ExperimentError> {
    least(|| {
        let clock = Clock::start();
        work()?;
        Ok(clock.seconds())
    })
}

fn teacher(config: &TeacherConfig, images: &Facts) -> Result<(f64, f64), ExperimentError> {
    const BATCH: usize = 16;
    let (own, pool) = (arbitrary(images, BATCH)?, arbitrary(images, 8 * BATCH)?);
    // One teacher has all images.
    let partitions = partition::blocks(own.len(), 1)?;
    let trained = Mutex::new(None);
    let train = |steps: usize| {
        let training = EnsembleTraining {
            config: &TeacherConfig { steps, batch: BATCH, ..config.clone() },
            data: &own,
            partitions: &partitions,
            streams: &Streams::new(0),
            device: &Device::flex(),
        };
        let finished = |finished: TrainedTeacher| -> Result<(), ExperimentError> {
            *trained.lock().unwrap_or_else(PoisonError::into_inner) = Some(finished.teacher.to_bytes()?);
            Ok(())
        };
        match train_ensemble(&training, &[0], 1, &finished) {
            // A training on arbitrary images may diverge; its time counts regardless.
            Err(EnsembleError::Teacher(TeacherError::Diverged { .. })) | Ok(()) => Ok(()),
            Err(error) => Err(error.into()),
        }
    };
    let first = seconds(|| train(1))?;
    // Small networks need more steps for a measurable difference.
    let steps = if first < 0.05 { 16 } else { 2 };
    let all = seconds(|| train(1 + steps))?;
    let step = (all - first).max(0.0) / steps as f64 * config.batch as f64 / BATCH as f64;

    let Some(bytes) = trained.into_inner().unwrap_or_else(PoisonError::into_inner) else { return Ok((step, 0.0)) };
    let load = |_: usize| -> Result<Teacher, ExperimentError> {
        Ok(Teacher::from_bytes(config.architecture, own.shape(), own.classes(), &Device::flex(), &bytes)?)
    };
    let unknown = (config.unknown, &Streams::new(0));
    let vote = |pool: &Split| ensemble_votes(1, &load, pool, unknown, 1).map(drop).map_err(ExperimentError::from);
    let (few, more) = (seconds(|| vote(&own))?, seconds(|| vote(&pool))?);
    Ok((step, (more - few).max(0.0) / (pool.len() - own.len()) as f64))
}

/// Returns the seconds of all epochs for each image of an epoch, or `None` if the network is too large to be measured.
fn student(config: &StudentConfig, method: StudentMethod, images: &Facts) -> Result<Option<f64>, ExperimentError> {
    if method.parameters(config, images.shape) > MAX_VALUES {
        return Ok(None);
    }
    let (per_image, took) = student_with(config, method, images, BATCHES[0])?;
    let is_enough = took > LONG;
    Ok(Some(if is_enough { per_image } else { student_with(config, method, images, BATCHES[1])?.0 }))
}

/// Returns the same, measured with batches of at most `limit` images, and the seconds of the measured epoch.
fn student_with(
    config: &StudentConfig,
    method: StudentMethod,
    images: &Facts,
    limit: usize,
) -> Result<(f64, f64), ExperimentError> {
    const STEPS: usize = 3;
    let (streams, device, test) = (Streams::new(0), Device::flex(), arbitrary(images, 10)?);
    let labelled: Vec<(usize, u8)> = (0..10).map(|i| (i, (i % images.classes) as u8)).collect();
    let passes = method.passes(config);
    let batch = passes.batch.min(limit);
    let pool = arbitrary(images, STEPS * batch.max(10))?;
    // The first epoch may take longer than the others, and the last one is evaluated, so the second of three is measured.
    let epoch = least(|| {
        let few = method.trial(config, 3, batch);
        let lesson = Lesson {
            config: &few,
            pool: Unlabelled::new(&pool),
            labelled: &labelled,
            doubts: None,
            test: Some(&test),
            streams: &streams,
            device: &device,
        };
        let (clock, mut ends) = (Clock::start(), Vec::new());
        let trained = method.train(&lesson, None, &mut |_: &EpochReport<'_>| {
            ends.push(clock.seconds());
            if ends.len() < 2 { Ok(()) } else { Err("measured".into()) }
        });
        match ends[..] {
            [first, second] => Ok(second - first),
            _ => trained.map(|_| 0.0).map_err(|error| {
                ExperimentError::fault(format_args!("a student of this config cannot be trained: {error}"))
            }),
        }
    })?;
    let measured = method.passes(&method.trial(config, 1, batch)).images(pool.len());
    Ok((f64::from(passes.epochs) * epoch / measured as f64, epoch))
}
