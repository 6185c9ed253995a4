//! Traces of steps of the dense networks, for another implementation.

use burn::tensor::Tensor;
use speed_core::random::Stream;
use speed_data::ImageShape;

use super::Dense;
use crate::gan::GanTraining;
use crate::gan::peer_trace::{Trace, Traced, record, record_layers};
use crate::{GanConstants, Lesson, StudentConfig};

impl Traced for Dense {
    fn record_draws(
        trace: &mut Trace,
        name: &str,
        training: &GanTraining<Self>,
        lesson: &Lesson<'_>,
        passes: &[usize],
        has_logits: bool,
        stream: &mut Stream,
    ) {
        let config = &lesson.config.gan;
        let hidden = config.discriminator.len();
        let inputs = std::iter::once(lesson.pool.shape().pixels()).chain(config.discriminator.iter().copied());
        let deviations = std::iter::once(config.input_noise).chain(std::iter::repeat(config.hidden_noise));
        let layers: Vec<_> = inputs.zip(deviations).take(if has_logits { hidden + 1 } else { hidden }).collect();
        let mut pass = |rows: usize| {
            let zeros = |inputs| Tensor::<2>::zeros([rows, inputs], lesson.device);
            let add = |&(inputs, sigma): &(usize, f64)| training.noise.add(zeros(inputs), sigma as f32, stream);
            layers.iter().map(add).collect()
        };
        record_layers(trace, &format!("{name}/noise"), passes.iter().map(|&rows| pass(rows)).collect());
    }
}

/// Small networks of every kind of layer.
fn tiny() -> Trace {
    let gan = GanConstants {
        batch: 20,
        discriminator: vec![24, 16, 12],
        generator: vec![14, 12],
        latent: 6,
        initial_images: 60,
        ..GanConstants::default()
    };
    let config = StudentConfig { gan, ..StudentConfig::default() };
    record::<Dense>(&config, ImageShape { channels: 1, height: 6, width: 6 }, 4, false)
}

#[test]
fn losses_and_gradients_of_twenty_steps_are_those_of_another_implementation() {
    tiny().assert_agrees(include_str!("../../../../tests/peers/student.json"));
}

#[test]
#[ignore = "writes traces to $SPEED_TRACE, for scripts/peers/training/check"]
fn write_peer_traces() {
    let folder = std::path::PathBuf::from(std::env::var_os("SPEED_TRACE").expect("SPEED_TRACE names a folder"));
    tiny().write(&folder.join("student-tiny"));
    let shape = ImageShape { channels: 1, height: 28, width: 28 };
    record::<Dense>(&StudentConfig::default(), shape, 10, true).write(&folder.join("student"));
}
