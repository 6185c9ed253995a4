use std::convert::Infallible;

use burn::tensor::Device;
use rand::RngExt;
use speed_data::{ImageShape, Split};
use speed_nn::matrix::on_vectors;
use speed_random::Streams;
use speed_student::training::Training;
use speed_student::{Checkpoint, CheckpointError, Images, StudentConfig, StudentError};

use super::{BatchError, EpochReport, Student, train_students};
use crate::tests::{assert_close, devices};

const SHAPE: ImageShape = ImageShape { channels: 1, height: 8, width: 8 };

fn config() -> StudentConfig {
    StudentConfig {
        epochs: 4,
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

/// Returns the labels of six or more images from `first` on.
fn labels(pool: &Split, first: usize) -> Vec<(usize, u8)> {
    (first..2 * first + 6).map(|i| (i, pool.label(i))).collect()
}

/// The seeds of several students, whose labels differ too.
const SEEDS: [u64; 3] = [3, 1, 2];

struct Problem {
    pool: Split,
    test: Split,
    labels: Vec<Vec<(usize, u8)>>,
}

impl Problem {
    fn new() -> Self {
        let pool = split(110, 0);
        Self { labels: SEEDS.map(|seed| labels(&pool, seed as usize)).into(), pool, test: split(200, 1) }
    }

    /// Checkpoints of student `i` after every epoch, from the processor's own training.
    fn alone(&self, config: &StudentConfig, i: usize) -> Vec<Checkpoint> {
        let mut checkpoints = Vec::new();
        let mut on_epoch = |report: &speed_student::EpochReport<'_>| {
            checkpoints.push(report.checkpoint());
            Ok::<(), Infallible>(())
        };
        let (pool, streams) = (Images::of(&self.pool), Streams::new(SEEDS[i]));
        on_vectors(|| {
            speed_student::train(config, pool, &self.labels[i], &self.test, &streams, None, &mut on_epoch)
                .expect("a training");
        });
        checkpoints
    }

    /// Checkpoints of `students` after every epoch, trained together.
    fn together(
        &self,
        config: &StudentConfig,
        students: &[usize],
        resume: Option<&[Checkpoint]>,
        device: &Device,
    ) -> Vec<Vec<Checkpoint>> {
        let mut checkpoints = Vec::new();
        let mut on_epoch = |report: &EpochReport<'_>| {
            assert_eq!(report.metrics().len(), students.len());
            checkpoints.push(report.checkpoints().expect("a device that works"));
            Ok::<(), Infallible>(())
        };
        let students = students.iter().enumerate().map(|(place, &i)| Student {
            labelled: &self.labels[i],
            streams: Streams::new(SEEDS[i]),
            resume: resume.map(|checkpoints| checkpoints[place].clone()),
        });
        let outcomes =
            train_students(config, &self.pool, students.collect(), &self.test, device, &mut on_epoch).expect("trained");
        for (outcome, last) in outcomes.iter().zip(checkpoints.last().expect("an epoch")) {
            assert_eq!(outcome.metrics, last.metrics());
        }
        checkpoints
    }

    fn arrays(&self, config: &StudentConfig, i: usize, checkpoint: &Checkpoint) -> Vec<Vec<f32>> {
        let (pool, streams, resume) = (Images::of(&self.pool), Streams::new(SEEDS[i]), Some(checkpoint.clone()));
        let training = Training::start::<Infallible>(config, pool, &self.labels[i], &self.test, &streams, resume);
        training.expect("its own checkpoint").arrays().into_iter().map(<[f32]>::to_vec).collect()
    }

    fn assert_close(&self, config: &StudentConfig, i: usize, [found, expected]: [&Checkpoint; 2], tolerance: f64) {
        for (found, expected) in found.metrics().iter().zip(expected.metrics()) {
            let losses = |m: &speed_student::EpochMetrics| [m.discriminator_loss, m.generator_loss].map(|l| l as f32);
            assert_close(&losses(found), &losses(expected), tolerance, "losses");
            assert_eq!(found.accuracy_raw.is_some(), expected.accuracy_raw.is_some());
        }
        let (found, expected) = (self.arrays(config, i, found), self.arrays(config, i, expected));
        for (array, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_close(found, expected, tolerance, &format!("array {array} of student {i}"));
        }
    }
}

/// After five steps within 2e-4 of the largest value of each array, after twenty within 2e-3: a training doubles the
/// differences of rounding every few steps.
#[test]
fn students_together_are_the_processors_students() {
    let (problem, config) = (Problem::new(), config());
    let alone: Vec<Vec<Checkpoint>> = (0..3).map(|i| problem.alone(&config, i)).collect();
    for device in devices() {
        let together = problem.together(&config, &[0, 1, 2], None, &device);
        for (epoch, tolerance) in [(0, 2e-4), (3, 2e-3)] {
            for i in 0..3 {
                problem.assert_close(&config, i, [&together[epoch][i], &alone[i][epoch]], tolerance);
            }
        }
        assert_ne!(together[3][0], together[3][1]);
    }
}

#[test]
fn settings_at_their_edges_agree_too() {
    let problem = Problem::new();
    let edges = [
        StudentConfig { input_noise: 0.0, unlabelled_weight: 0.5, average_rate: 0.1, ..config() },
        StudentConfig { hidden_noise: 0.0, discriminator: vec![9], generator: vec![7], beta1: 0.9, ..config() },
        StudentConfig { batch: 55, adam_epsilon: 1e-6, learning_rate: 3e-3, ..config() },
    ];
    for device in devices() {
        for config in &edges {
            let config = StudentConfig { epochs: 1, ..config.clone() };
            let together = problem.together(&config, &[2, 0], None, &device);
            for (place, i) in [2, 0].into_iter().enumerate() {
                let alone = problem.alone(&config, i);
                problem.assert_close(&config, i, [&together[0][place], &alone[0]], 1e-3);
            }
        }
    }
}

#[test]
fn a_student_does_not_depend_on_the_others() {
    let (problem, config) = (Problem::new(), config());
    for device in devices() {
        let all = problem.together(&config, &[0, 1, 2], None, &device);
        let one = problem.together(&config, &[1], None, &device);
        let other_order = problem.together(&config, &[2, 1], None, &device);
        problem.assert_close(&config, 1, [&one[3][0], &all[3][1]], 2e-3);
        problem.assert_close(&config, 1, [&other_order[3][1], &all[3][1]], 2e-3);
    }
}

#[test]
fn a_resumed_batch_ends_with_the_same_bits() {
    let (problem, config) = (Problem::new(), config());
    for device in devices() {
        let whole = problem.together(&config, &[0, 1, 2], None, &device);
        for epoch in 0..3 {
            let resumed = problem.together(&config, &[0, 1, 2], Some(&whole[epoch]), &device);
            for i in 0..3 {
                let [found, expected] =
                    [resumed.last(), whole.last()].map(|all| problem.arrays(&config, i, &all.expect("an epoch")[i]));
                assert!(found == expected, "student {i} resumed after epoch {}", epoch + 1);
            }
        }
    }
}

#[test]
fn a_batch_that_cannot_be_trained_says_which_student() {
    let (problem, config) = (Problem::new(), config());
    let train = |students: Vec<Student<'_>>, config: &StudentConfig| {
        let mut epochs = 0;
        let mut on_epoch = |_: &EpochReport<'_>| {
            epochs += 1;
            if epochs == 2 { Err("disk full") } else { Ok(()) }
        };
        train_students(config, &problem.pool, students, &problem.test, &Device::flex(), &mut on_epoch)
    };
    let student = |i: usize, resume: Option<Checkpoint>| Student {
        labelled: &problem.labels[i],
        streams: Streams::new(SEEDS[i]),
        resume,
    };
    assert!(train(Vec::new(), &config).is_ok_and(|outcomes| outcomes.is_empty()));
    let no_labels = Student { labelled: &[], ..student(1, None) };
    let error = train(vec![student(0, None), no_labels], &config);
    assert!(matches!(error, Err(BatchError::Student { student: 1, error: StudentError::Data(_) })));

    let checkpoints = problem.together(&config, &[0, 1], None, &Device::flex());
    let error = train(vec![student(0, Some(checkpoints[1][0].clone())), student(1, None)], &config);
    assert!(matches!(error, Err(BatchError::Epochs { students: [0, 1], epochs: [2, 0] })));
    let error = train(vec![student(0, Some(checkpoints[1][1].clone()))], &config);
    assert!(
        matches!(error, Err(BatchError::Student { student: 0, error: found }) if matches!(found, StudentError::Checkpoint(CheckpointError::Other)))
    );
    assert!(matches!(train(vec![student(0, None)], &config), Err(BatchError::Report("disk full"))));

    // Nothing is left to train.
    let done = train(vec![student(0, Some(checkpoints[3][0].clone()))], &config).expect("an outcome");
    assert_eq!(done[0].metrics, checkpoints[3][0].metrics());
}

#[test]
fn a_loss_that_is_not_finite_names_student_network_epoch_and_step() {
    let (problem, config) = (Problem::new(), config());
    for device in devices() {
        let checkpoints = problem.together(&StudentConfig { epochs: 1, ..config.clone() }, &[0, 1], None, &device);
        let spoilt = |array: usize| {
            let mut arrays = problem.arrays(&config, 1, &checkpoints[0][1]);
            arrays[array][0] = f32::NAN;
            let (pool, streams) = (Images::of(&problem.pool), Streams::new(SEEDS[1]));
            let resume = Some(checkpoints[0][1].clone());
            let training =
                Training::start::<Infallible>(&config, pool, &problem.labels[1], &problem.test, &streams, resume)
                    .expect("its own checkpoint");
            let students = [checkpoints[0][0].clone(), training.checkpoint_of(5, arrays)];
            let students = students.into_iter().enumerate().map(|(i, checkpoint)| Student {
                labelled: &problem.labels[i],
                streams: Streams::new(SEEDS[i]),
                resume: Some(checkpoint),
            });
            let ignore = &mut |_: &EpochReport<'_>| Ok::<(), Infallible>(());
            match train_students(&config, &problem.pool, students.collect(), &problem.test, &device, ignore) {
                Err(BatchError::Student { student, error: StudentError::NotFinite { network, epoch, step, loss } }) => {
                    (student, network, epoch, step, loss.is_nan())
                }
                other => panic!("not refused: {other:?}"),
            }
        };
        // The first weight of the discriminator, and that of Adam's moments of the generator, which spoils the generator
        // in its first step and so the discriminator's second.
        assert_eq!(spoilt(0), (1, "discriminator", 2, 1, true));
        assert_eq!(spoilt(9 + 7 + 2 * 9), (1, "discriminator", 2, 2, true));
    }
}
