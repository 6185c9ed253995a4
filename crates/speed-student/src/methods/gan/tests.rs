//! Trainings of small GANs.

use speed_data::ImageShape;

use super::train::SAMPLES;
use crate::test_support::{Bits, Data, config, run};
use crate::{CheckpointError, StudentConfig, StudentError, StudentMethod};

const SHAPE: ImageShape = ImageShape { channels: 1, height: 8, width: 8 };

fn data() -> Data {
    Data::new(SHAPE, 100, 200)
}

#[test]
fn a_student_learns_from_twelve_labels() {
    let config = StudentConfig { epochs: 40, ..config() };
    let outcome = run(StudentMethod::GAN, &config, &data(), 1, None).0.expect("a training");
    assert!(outcome.accuracy > Some(0.9), "accuracy {:?}", outcome.accuracy);
    let samples = outcome.samples.expect("generated images");
    assert_eq!((samples.pixels.len(), samples.shape), (SAMPLES * SHAPE.pixels(), SHAPE));
    // The reference's average is evaluated in the same epochs as the other networks.
    assert!(outcome.metrics.iter().all(|m| m.measures[2].is_some() == m.accuracy_raw.is_some()));
}

#[test]
fn a_longer_training_begins_with_the_shorter_one() {
    let shorter = StudentConfig { epochs: 4, ..config() };
    let (_, mut checkpoints) = run(StudentMethod::GAN, &shorter, &data(), 1, None);
    let last = checkpoints.pop();
    let resumed = run(StudentMethod::GAN, &config(), &data(), 1, last.clone()).0;
    assert_eq!(Bits::new(resumed), Bits::new(run(StudentMethod::GAN, &config(), &data(), 1, None).0));
    let shortest = StudentConfig { epochs: 2, ..config() };
    let refused = run(StudentMethod::GAN, &shortest, &data(), 1, last).0;
    let expected = CheckpointError::Epochs { found: 4, asked: 2 };
    assert!(matches!(refused, Err(StudentError::Checkpoint(error)) if error == expected));
}
