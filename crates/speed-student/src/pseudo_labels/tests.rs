//! Trainings of small students.

use burn::tensor::Device;
use rand::RngExt;
use speed_data::{ImageShape, Split};
use speed_random::Streams;

use super::{PseudoLabelsConfig, PseudoLabelsMetrics, PseudoLabelsOutcome, PseudoLabelsReport, train};
use crate::{Checkpoint, CheckpointError, Images, InvalidData, StudentError};

const SHAPE: ImageShape = ImageShape { channels: 3, height: 10, width: 12 };

fn config() -> PseudoLabelsConfig {
    PseudoLabelsConfig {
        epochs: 10,
        warmup_epochs: 4,
        label_epochs: 8,
        labelled_batch: 8,
        batch: 20,
        learning_rate: 0.005,
        average_rate: 0.05,
        convolutions: vec![6],
        kernel: 3,
        hidden: 16,
        evaluate_every: 2,
        ..PseudoLabelsConfig::default()
    }
}

/// Three classes of colour images: a bright bar at the top, in the middle or at the bottom, and noise.
fn split(images: usize, index: u64) -> Split {
    let mut stream = Streams::new(4).stream("images", index);
    let labels: Vec<u8> = (0..images).map(|_| stream.random_range(0..3)).collect();
    let mut pixels = Vec::new();
    for &label in &labels {
        for y in (0..3).flat_map(|_| 0..10_usize) {
            let bright = (y / 4) == usize::from(label);
            pixels.extend((0..12).map(|_| stream.random_range(0..100) + if bright { 120 } else { 0_u8 }));
        }
    }
    Split::new(SHAPE, 3, pixels, labels).expect("a split")
}

/// Four labels of each class, one of the twelve wrong.
fn labels(pool: &Split) -> Vec<(usize, u8)> {
    let of = |class: u8| (0..pool.len()).filter(move |&i| pool.label(i) == class).take(4).map(move |i| (i, class));
    let mut labels: Vec<(usize, u8)> = [of(0), of(1), of(2)].into_iter().flatten().collect();
    labels[5].1 = 2;
    labels
}

/// Metrics without times, and the final weights.
#[derive(Debug, PartialEq)]
struct Bits {
    metrics: Vec<PseudoLabelsMetrics>,
    student: Vec<u8>,
}

impl From<PseudoLabelsOutcome> for Bits {
    fn from(outcome: PseudoLabelsOutcome) -> Self {
        let metrics = outcome.metrics.into_iter().map(|m| PseudoLabelsMetrics { seconds: 0.0, ..m }).collect();
        Self { metrics, student: outcome.student.to_record().expect("a record") }
    }
}

type Outcome = Result<PseudoLabelsOutcome, StudentError<std::fmt::Error>>;
type Saved = Checkpoint<PseudoLabelsMetrics>;

fn run(config: &PseudoLabelsConfig, seed: u64, resume: Option<Saved>) -> (Outcome, Vec<Saved>) {
    let (pool, test) = (split(200, 0), split(100, 1));
    let mut checkpoints = Vec::new();
    let mut on_epoch = |report: &PseudoLabelsReport<'_>| {
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
fn the_student_learns_and_disputes_the_wrong_label() {
    let outcome = run(&PseudoLabelsConfig { epochs: 20, ..config() }, 1, None).0.expect("a training");
    let last = outcome.metrics.last().expect("twenty epochs");
    assert!(outcome.accuracy > 0.9, "{last:?}");
    assert!(last.confident > 0.5 && outcome.metrics[3].confident == 0.0, "{last:?}");
    assert!((last.disputed - 1.0 / 12.0).abs() < 1e-9, "{last:?}");
    assert_eq!(last.labelled_loss, 0.0, "given labels have no weight any more");
    assert_eq!(outcome.metrics.iter().filter(|m| m.accuracy_average.is_some()).count(), 10);
    let test = split(100, 1);
    let found = outcome.student.predict(Images::of(&test));
    let right = found.iter().zip(test.labels()).filter(|(a, b)| a == b);
    assert_eq!(right.count() as f64 / 100.0, outcome.accuracy);
}

#[test]
fn any_interruption_ends_with_the_same_bits() {
    let (whole, checkpoints) = run(&config(), 1, None);
    let whole = bits(whole);
    assert_eq!(checkpoints.len(), 10);
    for checkpoint in [&checkpoints[1], &checkpoints[5], &checkpoints[9]] {
        let bytes = checkpoint.to_bytes();
        let read = Checkpoint::from_bytes(&bytes).expect("a checkpoint");
        let resumed = bits(run(&config(), 1, Some(read)).0);
        assert_eq!(resumed.student, whole.student);
        // Times of epochs before the interruption are those of then.
        let without_times = |m: &PseudoLabelsMetrics| PseudoLabelsMetrics { seconds: 0.0, ..*m };
        assert_eq!(resumed.metrics, whole.metrics.iter().map(without_times).collect::<Vec<_>>());
    }
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
    let (pool, test) = (split(200, 0), split(100, 1));
    let pixels: Vec<u8> = (0..pool.len()).flat_map(|i| pool.pixels(i).to_vec()).collect();
    let other = Split::new(SHAPE, 3, pixels, vec![0; 200]).expect("a split");
    let train_on = |images: &Split| {
        let ignore = &mut |_: &PseudoLabelsReport<'_>| Ok(());
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
    let (_, checkpoints) = run(&PseudoLabelsConfig { epochs: 5, ..config() }, 1, None);
    let last = checkpoints.last().expect("five checkpoints").clone();
    let refused = |config: PseudoLabelsConfig, seed, checkpoint| match run(&config, seed, Some(checkpoint)).0 {
        Err(StudentError::Checkpoint(error)) => error,
        other => panic!("not refused: {other:?}"),
    };
    let same = PseudoLabelsConfig { epochs: 5, ..config() };
    assert_eq!(refused(config(), 1, last.clone()), CheckpointError::Other);
    assert_eq!(refused(same.clone(), 2, last.clone()), CheckpointError::Other);
    let mut fewer = last.clone();
    fewer.records.pop();
    assert_eq!(refused(same.clone(), 1, fewer), CheckpointError::Damaged);
    let mut longer = last.clone();
    longer.records[0].push(0);
    assert_eq!(refused(same, 1, longer), CheckpointError::Damaged);
    // The other method's checkpoints begin with other bytes.
    let bytes = last.to_bytes();
    assert_eq!(Checkpoint::<crate::EpochMetrics>::from_bytes(&bytes).err(), Some(CheckpointError::Magic));
}

#[test]
fn bad_settings_and_data_are_named() {
    let (pool, test) = (split(200, 0), split(100, 1));
    let refused = |config: &PseudoLabelsConfig, pool: &Split, labelled: &[(usize, u8)]| {
        let ignore = &mut |_: &PseudoLabelsReport<'_>| Ok::<(), std::fmt::Error>(());
        match train(config, Images::of(pool), labelled, &test, &Streams::new(1), &Device::flex(), None, ignore) {
            Err(StudentError::Data(error)) => error,
            other => panic!("not refused: {other:?}"),
        }
    };
    let good = labels(&pool);
    let small = InvalidData::SmallPool { pool: 19, batch: 20 };
    assert_eq!(refused(&config(), &pool.slice(0..19), &good), small);
    assert_eq!(refused(&config(), &pool, &[]), InvalidData::NoLabels);
    assert_eq!(refused(&config(), &pool, &[(0, 3)]), InvalidData::Label { position: 0, label: 3, classes: 3 });
    let deep = PseudoLabelsConfig { convolutions: vec![4, 4, 4], ..config() };
    let expected = InvalidData::SmallImages { shape: SHAPE, convolutions: 3, kernel: 3 };
    assert_eq!(refused(&deep, &pool, &good), expected);
    let bad = PseudoLabelsConfig { dropout: 1.0, ..config() };
    let error = run(&bad, 1, None).0;
    assert!(matches!(error, Err(StudentError::Config(error)) if error.field == "pseudo_labels.dropout"));
}

#[test]
fn one_label_and_repeated_labels_are_trained_on() {
    let (pool, test) = (split(50, 0), split(20, 1));
    let many: Vec<(usize, u8)> = (0..90).map(|i| (i % 47, pool.label(i % 47))).collect();
    for labelled in [&[(3, 1)][..], &[(3, 1), (3, 2)], &many] {
        let ignore = &mut |_: &PseudoLabelsReport<'_>| Ok::<(), std::fmt::Error>(());
        let outcome =
            train(&config(), Images::of(&pool), labelled, &test, &Streams::new(1), &Device::flex(), None, ignore);
        assert_eq!(outcome.expect("a training").metrics.len(), 10);
    }
}

#[test]
fn the_callers_error_ends_the_training() {
    let (pool, test) = (split(50, 0), split(20, 1));
    let mut on_epoch = |report: &PseudoLabelsReport<'_>| if report.metrics().epoch == 2 { Err("full") } else { Ok(()) };
    let streams = Streams::new(1);
    let outcome =
        train(&config(), Images::of(&pool), &labels(&pool), &test, &streams, &Device::flex(), None, &mut on_epoch);
    assert!(matches!(outcome, Err(StudentError::Report("full"))));
}
