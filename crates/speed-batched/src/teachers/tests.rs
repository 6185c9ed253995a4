use std::convert::Infallible;

use burn::tensor::Device;
use rand::RngExt;
use speed_data::{ImageShape, Split, partition};
use speed_nn::matrix::on_vectors;
use speed_random::Streams;
use speed_teacher::{
    Architecture, OptimizerKind, Schedule, TeacherConfig, TeacherError, TrainedTeacher, train_ensemble,
};

use super::{TeachersError, train_teachers};
use crate::tests::{assert_close, devices};

const CLASSES: usize = 3;

/// Noisy images of two channels with a bar: across (0), down (1) or along the diagonal (2).
fn bars(images: usize) -> Split {
    let shape = ImageShape { channels: 2, height: 17, width: 18 };
    let mut stream = Streams::new(1).stream("bars", 0);
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for image in 0..images {
        let class = image % CLASSES;
        let at = stream.random_range(4..13_usize);
        labels.push(class as u8);
        for _ in 0..shape.channels {
            for (y, x) in (0..17 * 18).map(|i| (i / 18, i % 18_usize)) {
                let on = [y.abs_diff(at) < 2, x.abs_diff(at) < 2, y.abs_diff(x) < 2][class];
                pixels.push(stream.random_range(0..80) + if on { 150 } else { 0 });
            }
        }
    }
    Split::new(shape, CLASSES, pixels, labels).expect("a valid split")
}

fn config() -> TeacherConfig {
    TeacherConfig {
        architecture: Architecture::Small,
        optimizer: OptimizerKind::Adam,
        learning_rate: 2e-3,
        schedule: Schedule::Cosine,
        decay_epochs: 1,
        batch: 6,
        steps: 10,
        shift: 1,
        average: 0.0,
        validation: 0.0,
    }
}

/// Four partitions of 12 or 11 images.
const IMAGES: usize = 46;

fn alone(config: &TeacherConfig, data: &Split) -> Vec<TrainedTeacher> {
    let partitions = partition::blocks(data.len(), 4).expect("enough images");
    assert_ne!(partitions[0].len(), partitions[3].len());
    let data = &data;
    let train = |teacher: usize| {
        let streams = Streams::new(5).child("teacher", teacher as u64);
        let stop = std::sync::atomic::AtomicBool::new(false);
        let partition = partitions[teacher].clone();
        on_vectors(|| speed_teacher::train_teacher(teacher, config, data, partition, &streams, &stop))
    };
    (0..4).map(|teacher| train(teacher).expect("trained")).collect()
}

fn together(
    config: &TeacherConfig,
    data: &Split,
    todo: &[usize],
    device: &Device,
) -> Result<Vec<TrainedTeacher>, TeachersError<Infallible>> {
    let partitions = partition::blocks(data.len(), 4).expect("enough images");
    let mut trained = Vec::new();
    train_teachers(config, data, &partitions, todo, &Streams::new(5), device, &mut |teacher| {
        trained.push(teacher);
        Ok(())
    })?;
    Ok(trained)
}

#[track_caller]
fn assert_same(found: &TrainedTeacher, expected: &TrainedTeacher, tolerance: f64) {
    assert_eq!(found.index, expected.index);
    let [f, e] = [found, expected].map(|teacher| &teacher.metrics);
    assert_eq!((f.steps, f.validation_accuracy.is_some()), (e.steps, e.validation_accuracy.is_some()));
    assert_close(&[f.final_loss as f32], &[e.final_loss as f32], tolerance, "final loss");
    let [found, expected] = [found, expected].map(|teacher| teacher.teacher.parameters().expect("parameters"));
    for (array, (f, e)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(f.shape, e.shape);
        assert_close(&f.values, &e.values, tolerance, &format!("array {array}"));
    }
}

/// Within 1e-3 of the largest value of each array after ten steps. Adam divides by the root of a second moment that is
/// close to zero for weights with hardly any gradient, so their rounding errors come back as parts of a step.
#[test]
fn teachers_together_are_the_processors_teachers() {
    let data = bars(IMAGES);
    let variants = [
        config(),
        TeacherConfig { average: 0.01, validation: 0.2, ..config() },
        TeacherConfig { optimizer: OptimizerKind::Sgd, schedule: Schedule::Staircase, learning_rate: 0.01, ..config() },
    ];
    for device in devices() {
        for config in &variants {
            let (alone, together) =
                (alone(config, &data), together(config, &data, &[0, 1, 2, 3], &device).expect("trained"));
            assert_eq!(together.len(), 4);
            for (found, expected) in together.iter().zip(&alone) {
                assert_same(found, expected, 1e-3);
            }
            assert_ne!(together[0].teacher.to_bytes().ok(), together[1].teacher.to_bytes().ok());
        }
    }
}

#[test]
fn a_teacher_has_the_same_bits_whichever_others_are_to_do() {
    let (data, config) = (bars(IMAGES), config());
    for device in devices() {
        let all = together(&config, &data, &[0, 1, 2, 3], &device).expect("trained");
        let some = together(&config, &data, &[3, 1], &device).expect("trained");
        assert_eq!(some.iter().map(|teacher| teacher.index).collect::<Vec<_>>(), [1, 3]);
        for (teacher, index) in some.iter().zip([1, 3]) {
            assert!(teacher.teacher.to_bytes().ok() == all[index].teacher.to_bytes().ok(), "teacher {index}");
        }
    }
}

#[test]
fn teachers_that_cannot_be_trained_are_named() {
    let (data, device) = (bars(IMAGES), Device::flex());
    let refused = |config: TeacherConfig, todo: &[usize]| together(&config, &data, todo, &device).expect_err("refused");
    let error = refused(TeacherConfig { shift: 17, ..config() }, &[0]);
    assert!(matches!(error, TeachersError::Teacher(TeacherError::ShiftTooLarge { shift: 17, .. })));
    let error = refused(config(), &[1, 4]);
    assert!(matches!(error, TeachersError::Teacher(TeacherError::NoSuchTeacher { teacher: 4, teachers: 4 })));
    let error = refused(TeacherConfig { architecture: Architecture::Reference, ..config() }, &[0]);
    assert!(matches!(error, TeachersError::Architecture));
    let wild = TeacherConfig { optimizer: OptimizerKind::Sgd, learning_rate: 1e30, ..config() };
    let error = refused(wild.clone(), &[0, 3]);
    let TeachersError::Teacher(TeacherError::Diverged { teacher: 0, step, .. }) = error else { panic!("{error:?}") };
    let partitions = partition::blocks(data.len(), 4).expect("enough images");
    let ignore = |_: TrainedTeacher| Ok::<(), Infallible>(());
    let alone = train_ensemble(&wild, &data, &partitions, &[0], &Streams::new(5), 1, &ignore);
    assert!(alone.is_err_and(|error| error.to_string().starts_with("teacher 0 diverged: its loss is")));
    assert!((2..=10).contains(&step));
}

#[test]
fn memory_limits_how_many_train_together() {
    // 28 x 28 pixels: the second layer's 4 * 4 * 4 patches of 400 values are the most.
    assert_eq!(super::largest_array(30, [28, 28], [[25, 16], [400, 32]]), 30 * 64 * 400);
    assert_eq!(super::MAX_VALUES / (30 * 64 * 400), 34);
}
