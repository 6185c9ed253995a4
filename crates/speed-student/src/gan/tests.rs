//! Trainings of small students.

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Tensor};
use rand::RngExt;
use speed_data::{ImageShape, Split};
use speed_random::Streams;

use speed_nn::params::to_record;

use super::train::{SAMPLES, Training};
use super::{EpochReport, StudentOutcome, train};
use crate::{Checkpoint, CheckpointError, EpochMetrics, Images, InvalidData, Samples, StudentConfig, StudentError};

const SHAPE: ImageShape = ImageShape { channels: 1, height: 8, width: 8 };

fn config() -> StudentConfig {
    StudentConfig {
        epochs: 6,
        batch: 20,
        discriminator: vec![24, 16],
        generator: vec![12, 10],
        latent: 5,
        initial_images: 50,
        evaluate_every: 2,
        ..StudentConfig::default()
    }
}

/// Three classes of 8 x 8 images: a bright bar at the top, in the middle or at the bottom, and noise.
fn split(images: usize, index: u64) -> Split {
    let mut stream = Streams::new(4).stream("images", index);
    let labels: Vec<u8> = (0..images).map(|_| stream.random_range(0..3)).collect();
    let mut pixels = Vec::new();
    for &label in &labels {
        for y in 0..8_usize {
            let bright = y / 3 == usize::from(label);
            pixels.extend((0..8).map(|_| stream.random_range(0..100) + if bright { 120 } else { 0_u8 }));
        }
    }
    Split::new(SHAPE, 3, pixels, labels).expect("a split")
}

/// Two labels of each class.
fn labels(pool: &Split) -> Vec<(usize, u8)> {
    let of = |class: u8| (0..pool.len()).filter(move |&i| pool.label(i) == class).take(2).map(move |i| (i, class));
    [of(0), of(1), of(2)].into_iter().flatten().collect()
}

/// Metrics without times, and the final weights and samples.
#[derive(Debug, PartialEq)]
struct Bits {
    metrics: Vec<EpochMetrics>,
    student: Vec<u8>,
    samples: Samples,
}

impl From<StudentOutcome> for Bits {
    fn from(outcome: StudentOutcome) -> Self {
        let metrics = outcome.metrics.into_iter().map(|m| EpochMetrics { seconds: 0.0, ..m }).collect();
        Self { metrics, student: outcome.student.to_record().expect("a record"), samples: outcome.samples }
    }
}

type Outcome = Result<StudentOutcome, StudentError<std::fmt::Error>>;

fn run(config: &StudentConfig, seed: u64, resume: Option<Checkpoint>) -> (Outcome, Vec<Checkpoint>) {
    let (pool, test) = (split(100, 0), split(200, 1));
    let mut checkpoints = Vec::new();
    let mut on_epoch = |report: &EpochReport<'_>| {
        checkpoints.push(report.checkpoint().expect("records"));
        Ok(())
    };
    let streams = Streams::new(seed);
    let outcome =
        train(config, Images::of(&pool), &labels(&pool), &test, &streams, &Device::flex(), resume, &mut on_epoch);
    (outcome, checkpoints)
}

fn bits(outcome: Outcome) -> Bits {
    outcome.expect("a training").into()
}

#[test]
fn a_student_learns_from_six_labels() {
    let config = StudentConfig { epochs: 40, ..config() };
    let outcome = run(&config, 1, None).0.expect("a training");
    assert!(outcome.accuracy > 0.9, "accuracy {}", outcome.accuracy);
    assert_eq!(outcome.metrics.len(), 40);
    assert_eq!(outcome.metrics[0].accuracy_raw, None);
    assert_eq!(outcome.metrics[39].accuracy_average, Some(outcome.accuracy));
    assert_eq!(outcome.metrics[39].accuracy_raw, Some(outcome.accuracy_raw));
    let test = split(200, 1);
    let right = outcome.student.predict(Images::of(&test));
    let right = right.iter().zip(test.labels()).filter(|(a, b)| a == b).count();
    assert_eq!(right as f64 / 200.0, outcome.accuracy);
    assert_eq!((outcome.samples.len(), outcome.samples.shape()), (SAMPLES, SHAPE));
}

#[test]
fn a_resumed_training_ends_with_the_same_bits() {
    let (whole, checkpoints) = run(&config(), 1, None);
    let whole = bits(whole);
    assert_eq!(checkpoints.len(), 6);
    for checkpoint in checkpoints {
        let saved = Checkpoint::from_bytes(&checkpoint.to_bytes()).expect("own bytes");
        assert_eq!(bits(run(&config(), 1, Some(saved)).0), whole, "resumed after epoch {}", checkpoint.epoch());
    }
}

#[test]
fn a_longer_training_begins_with_the_shorter_one() {
    let (_, mut checkpoints) = run(&StudentConfig { epochs: 4, ..config() }, 1, None);
    let resumed = run(&config(), 1, checkpoints.pop()).0;
    assert_eq!(bits(resumed), bits(run(&config(), 1, None).0));
}

#[test]
fn results_depend_on_the_seed_and_not_on_what_runs_beside() {
    let alone = bits(run(&config(), 1, None).0);
    let beside: Vec<Bits> = std::thread::scope(|scope| {
        let threads: Vec<_> = [1, 2].map(|seed| scope.spawn(move || bits(run(&config(), seed, None).0))).into();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert_eq!(beside[0], alone);
    assert_ne!(beside[1].student, alone.student);
}

#[test]
fn pool_labels_are_not_used() {
    let (pool, test) = (split(100, 0), split(200, 1));
    let pixels: Vec<u8> = (0..pool.len()).flat_map(|i| pool.pixels(i).to_vec()).collect();
    let other = Split::new(SHAPE, 3, pixels, vec![0; 100]).expect("a split");
    let train_on = |images: &Split| {
        let ignore = &mut |_: &EpochReport<'_>| Ok(());
        bits(train(
            &config(),
            Images::of(images),
            &labels(&pool),
            &test,
            &Streams::new(1),
            &Device::flex(),
            None,
            ignore,
        ))
    };
    assert_eq!(train_on(&pool), train_on(&other));
}

#[test]
fn checkpoints_of_other_trainings_are_refused() {
    let (_, checkpoints) = run(&StudentConfig { epochs: 3, ..config() }, 1, None);
    let last = checkpoints.last().expect("three checkpoints").clone();
    let refused = |config: StudentConfig, seed, checkpoint| match run(&config, seed, Some(checkpoint)).0 {
        Err(StudentError::Checkpoint(error)) => error,
        other => panic!("not refused: {other:?}"),
    };
    assert_eq!(refused(StudentConfig { batch: 10, ..config() }, 1, last.clone()), CheckpointError::Other);
    assert_eq!(refused(config(), 2, last.clone()), CheckpointError::Other);
    let short = StudentConfig { epochs: 2, ..config() };
    assert_eq!(refused(short, 1, last.clone()), CheckpointError::Epochs { found: 3, asked: 2 });
    let mut fewer = last.clone();
    fewer.records.pop();
    assert_eq!(refused(config(), 1, fewer), CheckpointError::Damaged);
    let mut more = last.clone();
    more.records.push(Vec::new());
    assert_eq!(refused(config(), 1, more), CheckpointError::Damaged);
    let mut longer = last;
    longer.records[0].push(0);
    assert_eq!(refused(config(), 1, longer), CheckpointError::Damaged);
}

#[test]
fn bad_data_are_named() {
    let (pool, test) = (split(100, 0), split(200, 1));
    let refused = |pool: &Split, labelled: &[(usize, u8)], test: &Split| {
        let ignore = &mut |_: &EpochReport<'_>| Ok::<(), std::fmt::Error>(());
        match train(&config(), Images::of(pool), labelled, test, &Streams::new(1), &Device::flex(), None, ignore) {
            Err(StudentError::Data(error)) => error,
            other => panic!("not refused: {other:?}"),
        }
    };
    let good = labels(&pool);
    assert_eq!(refused(&pool.slice(0..19), &good, &test), InvalidData::SmallPool { pool: 19, batch: 20 });
    assert_eq!(refused(&pool, &[], &test), InvalidData::NoLabels);
    let index = InvalidData::Index { position: 1, index: 100, pool: 100 };
    assert_eq!(refused(&pool, &[(0, 1), (100, 1)], &test), index);
    assert_eq!(refused(&pool, &[(0, 3)], &test), InvalidData::Label { position: 0, label: 3, classes: 3 });
    assert_eq!(refused(&pool, &good, &test.slice(0..0)), InvalidData::NoTest);
    let flat = ImageShape { channels: 1, height: 1, width: 2 };
    let other = Split::new(flat, 3, vec![0, 0], vec![0]).expect("a split");
    assert_eq!(refused(&pool, &good, &other), InvalidData::Shape { pool: SHAPE, test: flat });
    let bad = StudentConfig { batch: 0, ..config() };
    assert!(matches!(run(&bad, 1, None).0, Err(StudentError::Config(error)) if error.field == "batch"));
}

#[test]
fn few_repeated_and_partial_labels_are_trained_on() {
    let (pool, test) = (split(47, 0), split(10, 1));
    // One label, the same image twice with different labels, more labels than an epoch takes.
    let many: Vec<(usize, u8)> = (0..90).map(|i| (i % 47, pool.label(i % 47))).collect();
    for labelled in [&[(3, 1)][..], &[(3, 1), (3, 2)], &many] {
        let ignore = &mut |_: &EpochReport<'_>| Ok::<(), std::fmt::Error>(());
        let outcome =
            train(&config(), Images::of(&pool), labelled, &test, &Streams::new(1), &Device::flex(), None, ignore);
        assert_eq!(outcome.expect("a training").metrics.len(), 6);
    }
}

/// Replaces every value.
struct NotANumber;

impl ModuleMapper for NotANumber {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|value| value * f32::NAN)
    }
}

#[test]
fn a_loss_that_is_not_finite_names_network_epoch_and_step() {
    let (pool, test) = (split(100, 0), split(200, 1));
    let (config, labels, streams, device) = (config(), labels(&pool), Streams::new(1), Device::flex());
    let (_, mut checkpoints) = run(&StudentConfig { epochs: 2, ..config.clone() }, 1, None);
    let mut checkpoint = checkpoints.pop().expect("two epochs");
    let training = Training::new(&config, Images::of(&pool), &labels, &test, &streams, &device);
    checkpoint.records[0] = to_record(&training.discriminator.frozen().map(&mut NotANumber)).expect("a record");
    match run(&config, 1, Some(checkpoint)).0 {
        Err(StudentError::NotFinite { network: "discriminator", epoch: 3, step: 1, loss }) => assert!(loss.is_nan()),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn the_callers_error_ends_the_training() {
    let (pool, test) = (split(100, 0), split(200, 1));
    let mut epochs = 0;
    let mut on_epoch = |report: &EpochReport<'_>| {
        epochs = report.metrics().epoch;
        if epochs == 2 { Err("disk full") } else { Ok(()) }
    };
    let streams = Streams::new(1);
    let outcome =
        train(&config(), Images::of(&pool), &labels(&pool), &test, &streams, &Device::flex(), None, &mut on_epoch);
    assert!(matches!(outcome, Err(StudentError::Report("disk full"))));
    assert_eq!(epochs, 2);
}
