//! Training of teachers on a small problem: the direction of a bright bar.

use burn::tensor::Device;
use rand::RngExt;
use speed_core::random::Streams;
use speed_data::{ImageShape, Split, partition};
use speed_teacher::{
    Architecture, ClassWeights, EnsembleError, EnsembleTraining, OptimizerKind, Schedule, Teacher, TeacherConfig,
    TeacherError, TrainedTeacher, Unknown, ensemble_votes, train_ensemble, train_teacher,
};
use std::convert::Infallible;
use std::sync::atomic::AtomicBool;
use std::sync::{LazyLock, Mutex};

const CLASSES: usize = 3;

/// Returns noisy images of two channels with a bar: horizontal (0), vertical (1) or diagonal (2).
fn bars(images: usize, side: usize, seed: u64) -> Split {
    let shape = ImageShape { channels: 2, height: side, width: side };
    let mut stream = Streams::new(seed).stream("bars", 0);
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for image in 0..images {
        let class = image % CLASSES;
        let at = stream.random_range(side / 4..side - side / 4);
        labels.push(class as u8);
        for _ in 0..shape.channels {
            for (y, x) in (0..side * side).map(|i| (i / side, i % side)) {
                let on = [y.abs_diff(at) < 2, x.abs_diff(at) < 2, y.abs_diff(x) < 2][class];
                pixels.push(stream.random_range(0..80) + if on { 150 } else { 0 });
            }
        }
    }
    Split::new(shape, CLASSES, pixels, labels).expect("a valid split")
}

fn small() -> TeacherConfig {
    TeacherConfig { batch: 15, steps: 40, shift: 1, ..TeacherConfig::SMALL }
}

fn train(config: &TeacherConfig, data: &Split) -> Result<TrainedTeacher, TeacherError> {
    train_teacher(
        0,
        config,
        data,
        0..data.len(),
        &Streams::new(9).child("teacher", 0),
        &Device::flex(),
        &AtomicBool::new(false),
    )
}

fn from_bytes(
    config: &TeacherConfig,
    shape: ImageShape,
    classes: usize,
    bytes: &[u8],
) -> Result<Teacher, TeacherError> {
    Teacher::from_bytes(config.architecture, shape, classes, &Device::flex(), bytes)
}

fn accuracy(teacher: &Teacher, data: &Split) -> f64 {
    let own = teacher.predict(data).expect("images of its size");
    own.iter().zip(data.labels()).filter(|(a, b)| a == b).count() as f64 / data.len() as f64
}

fn training<'a>(
    config: &'a TeacherConfig,
    data: &'a Split,
    partitions: &'a [std::ops::Range<usize>],
) -> EnsembleTraining<'a> {
    static STREAMS: LazyLock<Streams> = LazyLock::new(|| Streams::new(5));
    static DEVICE: LazyLock<Device> = LazyLock::new(Device::flex);
    EnsembleTraining { config, data, partitions, streams: &STREAMS, device: &DEVICE }
}

/// Trains `todo` and returns index, bytes and the loss of each finished teacher, sorted by index.
fn ensemble(data: &Split, todo: &[usize], threads: usize) -> Vec<(usize, Vec<u8>, f64)> {
    let partitions = partition::blocks(data.len(), 4).expect("enough images");
    let finished = Mutex::new(Vec::new());
    let config = TeacherConfig { steps: 6, ..small() };
    train_ensemble(&training(&config, data, &partitions), todo, threads, &|trained| {
        let bytes = trained.teacher.to_bytes().expect("bytes");
        finished.lock().expect("no panic").push((trained.index, bytes, trained.metrics.final_loss));
        Ok::<(), Infallible>(())
    })
    .expect("an ensemble");
    let mut finished = finished.into_inner().expect("no panic");
    finished.sort_by_key(|entry| entry.0);
    finished
}

#[test]
fn a_small_teacher_learns() {
    let (data, other) = (bars(90, 20, 1), bars(150, 20, 2));
    let trained = train(&small(), &data).expect("trained");
    assert!(accuracy(&trained.teacher, &other) > 0.8, "{}", accuracy(&trained.teacher, &other));
    assert!(trained.metrics.train_accuracy > 0.8 && trained.metrics.final_loss < 0.5);
    assert_eq!(trained.metrics.steps, 40);
    assert!(trained.metrics.seconds > 0.0);
}

#[test]
fn the_reference_network_learns() {
    // The paper's optimiser and rate. With them, training leaves the plateau of weights of 1e-4 only with the pixel
    // scale of the published code; the average has warmed up.
    let (data, other) = (bars(30, 9, 1), bars(60, 9, 2));
    let config = TeacherConfig {
        architecture: Architecture::REFERENCE,
        optimizer: OptimizerKind::Sgd,
        learning_rate: 0.01,
        schedule: Schedule::Staircase,
        steps: 150,
        shift: 0,
        average: 1e-4,
        ..small()
    };
    let trained = train(&config, &data).expect("trained");
    assert!(accuracy(&trained.teacher, &other) > 0.8, "{}", accuracy(&trained.teacher, &other));
}

#[test]
fn gradient_descent_and_the_average_change_the_teacher() {
    let data = bars(30, 16, 1);
    let bytes = |config: TeacherConfig| train(&config, &data).expect("trained").teacher.to_bytes().expect("bytes");
    let base = TeacherConfig { steps: 3, schedule: Schedule::Constant, ..small() };
    let all = [
        base.clone(),
        TeacherConfig { optimizer: OptimizerKind::Sgd, ..base.clone() },
        TeacherConfig { average: 0.01, ..base.clone() },
        TeacherConfig { schedule: Schedule::Cosine, ..base.clone() },
        TeacherConfig { shift: 0, ..base },
    ]
    .map(bytes);
    for (i, one) in all.iter().enumerate() {
        assert!(all[..i].iter().all(|other| other != one), "setting {i} has no effect");
    }
}

#[test]
fn results_do_not_depend_on_threads_or_resumption() {
    let data = bars(60, 16, 1);
    let one = ensemble(&data, &[0, 1, 2, 3], 1);
    assert_eq!(one.len(), 4);
    assert_eq!(ensemble(&data, &[0, 1, 2, 3], 3), one);
    assert_eq!(ensemble(&data, &[3, 1], 2), [one[1].clone(), one[3].clone()]);
    assert_eq!(ensemble(&data, &[], 2), []);
    assert_ne!(one[0].1, one[1].1);
}

#[test]
fn votes_are_the_teachers_predictions_for_any_number_of_threads() {
    let (data, pool) = (bars(60, 16, 1), bars(25, 16, 2));
    let saved = ensemble(&data, &[0, 1, 2, 3], 2);
    let config = TeacherConfig { steps: 6, ..small() };
    let load = |i: usize| from_bytes(&config, pool.shape(), CLASSES, &saved[i].1);
    let streams = Streams::new(6);
    let votes = ensemble_votes(4, &load, &pool, (Unknown::Abstain, &streams), 1).expect("votes");
    assert_eq!(ensemble_votes(4, &load, &pool, (Unknown::Abstain, &streams), 3).expect("votes"), votes);
    for i in 0..4 {
        let labels = load(i).expect("a teacher").predict(&pool).expect("labels");
        assert!(votes.teacher(i).iter().flatten().eq(&labels) && votes.empty() == 0);
    }
    let none = ensemble_votes(0, &load, &pool, (Unknown::Abstain, &streams), 1);
    assert!(matches!(none, Err(EnsembleError::Votes(_))));
    let damaged = |_| from_bytes(&config, pool.shape(), CLASSES, b"");
    assert!(matches!(
        ensemble_votes(4, &damaged, &pool, (Unknown::Abstain, &streams), 2),
        Err(EnsembleError::Caller(TeacherError::Bytes { .. }))
    ));
}

#[test]
fn bytes_round_trip_and_hostile_bytes_are_errors() {
    let (data, other) = (bars(30, 16, 1), bars(130, 16, 3));
    let config = TeacherConfig { steps: 2, ..small() };
    let teacher = train(&config, &data).expect("trained").teacher;
    let bytes = teacher.to_bytes().expect("bytes");
    let shape = data.shape();
    let again = from_bytes(&config, shape, CLASSES, &bytes).expect("its own bytes");
    assert_eq!(again.predict(&other).expect("labels"), teacher.predict(&other).expect("labels"));
    assert_eq!(again.to_bytes().expect("bytes"), bytes);

    let rejected = |config: &TeacherConfig, shape, classes, bytes: &[u8]| {
        matches!(from_bytes(config, shape, classes, bytes), Err(TeacherError::Bytes { .. }))
    };
    for length in [0, 10, 16, 40, 48, 49, 300, bytes.len() - 1] {
        assert!(rejected(&config, shape, CLASSES, &bytes[..length]), "cut to {length}");
    }
    assert!(rejected(&config, shape, CLASSES, &[bytes.as_slice(), b"x"].concat()));
    let version = [b"speed teacher 1\n", &bytes[16..]].concat();
    let error = from_bytes(&config, shape, CLASSES, &version).expect_err("another version").to_string();
    assert!(error.contains("expected the header \"speed teacher 2\", found \"speed teacher 1\""), "{error}");
    for position in (0..bytes.len()).step_by(997).chain([0, 16, 48, 52, bytes.len() - 1]) {
        let mut damaged = bytes.clone();
        damaged[position] ^= 0x20;
        assert!(rejected(&config, shape, CLASSES, &damaged), "damaged at {position}");
    }
    // A teacher of other sizes or of the other network.
    assert!(rejected(&config, shape, CLASSES + 1, &bytes));
    assert!(rejected(&config, ImageShape { channels: 1, ..shape }, CLASSES, &bytes));
    let reference = TeacherConfig { architecture: Architecture::REFERENCE, ..config.clone() };
    assert!(rejected(&reference, shape, CLASSES, &bytes));
    // Numbers of classes that no teacher has.
    for classes in [0, 257] {
        let error = from_bytes(&config, shape, classes, &bytes);
        assert!(error.expect_err("refused").to_string().ends_with(&format!("classes, found {classes}")));
    }
    for config in [&config, &reference] {
        let nothing = ImageShape { height: 0, ..shape };
        let error = from_bytes(config, nothing, CLASSES, &bytes).expect_err("refused");
        assert!(error.to_string().contains("too small for the"), "{error}");
    }
}

#[test]
fn a_teacher_refuses_other_images() {
    let data = bars(30, 16, 1);
    let teacher = train(&TeacherConfig { steps: 1, ..small() }, &data).expect("trained").teacher;
    let refused = |images: &Split| teacher.predict(images).expect_err("refused").to_string();
    assert!(refused(&bars(3, 17, 1)).contains("the teacher's size"));
    let more = Split::new(data.shape(), 4, data.pixels(0).to_vec(), vec![0]).expect("a valid split");
    assert!(refused(&more).contains("3 classes, found 4"));
    assert!(teacher.predict(&data.slice(0..0)).expect("nothing to do").is_empty());
    assert_eq!(format!("{teacher:?}").matches("0.").count(), 0, "no weights in Debug");
}

#[test]
fn impossible_trainings_are_refused() {
    let data = bars(30, 16, 1);
    let error = |config: TeacherConfig, data: &Split| train(&config, data).expect_err("refused");
    assert!(
        matches!(error(TeacherConfig { steps: 0, ..small() }, &data), TeacherError::Config(e) if e.field == "steps")
    );
    let data_fault = |error: TeacherError| match error {
        TeacherError::Data(message) => message,
        other => panic!("{other}"),
    };
    assert!(data_fault(error(small(), &bars(9, 15, 1))).ends_with("at least 16x16"));
    let shift = TeacherConfig { shift: 16, ..small() };
    assert!(matches!(error(shift, &data), TeacherError::ShiftTooLarge { shift: 16, .. }));
    assert!(data_fault(error(small(), &data.slice(0..0))).contains("no images"));
    let streams = Streams::new(1);
    let outside = train_teacher(7, &small(), &data, 20..31, &streams, &Device::flex(), &AtomicBool::new(false));
    let outside = data_fault(outside.expect_err("refused"));
    assert!(outside.starts_with("teacher 7: the partition 20..31 of 30 images"), "{outside}");
    let stopped = train_teacher(7, &small(), &data, 0..30, &streams, &Device::flex(), &AtomicBool::new(true));
    assert!(matches!(stopped, Err(TeacherError::Stopped { teacher: 7 })));
}

#[test]
fn divergence_names_the_teacher_and_stops_the_ensemble() {
    let data = bars(60, 16, 1);
    let config = TeacherConfig {
        optimizer: OptimizerKind::Sgd,
        schedule: Schedule::Constant,
        learning_rate: 1e12,
        steps: 100_000_000,
        ..small()
    };
    let result = train_ensemble(&training(&config, &data, &[0..30, 30..60]), &[1], 2, &|_| Ok::<(), Infallible>(()));
    match result.expect_err("diverged") {
        EnsembleError::Teacher(error @ TeacherError::Diverged { teacher: 1, .. }) => {
            assert!(error.to_string().starts_with("teacher 1 diverged"));
        }
        other => panic!("{other}"),
    }
}

#[test]
fn the_callers_error_stops_the_ensemble() {
    let data = bars(60, 16, 1);
    let config = TeacherConfig { steps: 1, ..small() };
    let partitions: Vec<_> = (0..60).map(|i| i..i + 1).collect();
    let todo: Vec<usize> = (0..60).collect();
    let calls = Mutex::new(0);
    let full = |_| {
        *calls.lock().expect("no panic") += 1;
        Err(std::io::Error::other("disk full"))
    };
    let training = training(&config, &data, &partitions);
    let result = train_ensemble(&training, &todo, 2, &full);
    assert!(matches!(result, Err(EnsembleError::Caller(error)) if error.to_string() == "disk full"));
    assert!(*calls.lock().expect("no panic") <= 2);
    let missing = train_ensemble(&training, &[60], 2, &full);
    assert!(missing.expect_err("refused").to_string().contains("60 teachers, numbered from 0, found teacher 60"));
}

/// Returns vectors of which every twentieth is of a rare class, which is a little larger in its first value.
fn rare(images: usize, seed: u64) -> Split {
    let shape = ImageShape { channels: 1, height: 1, width: 8 };
    let mut stream = Streams::new(seed).stream("rare", 0);
    let labels: Vec<u8> = (0..images).map(|image| u8::from(image % 20 == 0)).collect();
    let mut pixels = Vec::new();
    for &label in &labels {
        pixels.extend((0..8).map(|value| {
            let (base, shift) = (if value < 4 { 60_u8 } else { 200 }, if value == 0 { 28 * label } else { 0 });
            base - 25 + stream.random_range(0..=50) + shift
        }));
    }
    Split::new(shape, 2, pixels, labels).expect("a valid split")
}

#[test]
fn balanced_weights_find_a_rare_class_that_equal_weights_miss() {
    let (data, test) = (rare(200, 1), rare(1000, 2));
    let recall = |class_weights| {
        let base = TeacherConfig { architecture: Architecture::LINEAR, batch: 40, steps: 300, shift: 0, ..small() };
        let teacher = train(&TeacherConfig { class_weights, ..base }, &data).expect("trained").teacher;
        let found = teacher.predict(&test).expect("images of its size");
        [0, 1].map(|class| {
            let of_class: Vec<usize> = (0..test.len()).filter(|&image| test.label(image) == class).collect();
            of_class.iter().filter(|&&image| found[image] == class).count() as f64 / of_class.len() as f64
        })
    };
    let ([_, missed], [common, found]) = (recall(ClassWeights::None), recall(ClassWeights::Balanced));
    assert!(missed < 0.1 && found > 0.5 && common > 0.6, "{missed} {found} {common}");
}

#[test]
fn a_teacher_that_lacks_a_class_abstains_on_it_and_keeps_this_in_its_bytes() {
    let (all, pool) = (bars(180, 16, 1), bars(90, 16, 2));
    let own: Vec<usize> = (0..all.len()).filter(|&image| all.label(image) != 2).collect();
    let data = all.select(&own);
    let teacher = train(&small(), &data).expect("trained").teacher;
    let votes = |teacher: &Teacher, unknown| {
        let stream = &mut Streams::new(4).stream("unknown", 0);
        teacher.vote(unknown, &pool, stream).expect("images of its size")
    };
    let found = votes(&teacher, Unknown::Abstain);
    assert!(found.contains(&None) && found.iter().any(Option::is_some));
    let bytes = teacher.to_bytes().expect("bytes");
    let again = from_bytes(&small(), data.shape(), CLASSES, &bytes).expect("its own bytes");
    assert_eq!(votes(&again, Unknown::Abstain), found);
    assert_eq!(again.to_bytes().expect("bytes"), bytes);
}
