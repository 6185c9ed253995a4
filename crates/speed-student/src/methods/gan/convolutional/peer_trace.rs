//! Traces of steps of the convolutional networks, for another implementation.

use burn::tensor::Tensor;
use speed_core::random::Stream;
use speed_data::ImageShape;
use speed_nn::dropout::dropout;
use speed_nn::matrix::on_vectors;

use super::{Convolutional, geometries};
use crate::gan::GanTraining;
use crate::gan::peer_trace::{Trace, Traced, record, record_layers};
use crate::{ConvolutionalConstants, GanConstants, Lesson, StudentConfig};

impl Traced for Convolutional {
    /// Records the factors of dropout.
    fn record_draws(
        trace: &mut Trace,
        name: &str,
        _: &GanTraining<Self>,
        lesson: &Lesson<'_>,
        passes: &[usize],
        _: bool,
        stream: &mut Stream,
    ) {
        let settings = &lesson.config.gan.convolutional;
        let geometries = geometries(settings, lesson.pool.shape()).expect("large enough");
        let rates = std::iter::once(settings.input_dropout).chain(std::iter::repeat(settings.dropout));
        let layers: Vec<_> = geometries.iter().step_by(3).map(|(geometry, _)| geometry.map()).zip(rates).collect();
        let mut pass = |images: usize| {
            let ones = |[height, width, channels]: [usize; 3]| {
                Tensor::<4>::ones([images, height, width, channels], lesson.device)
            };
            layers.iter().map(|&(map, rate)| dropout(ones(map), rate as f32, stream)).collect()
        };
        record_layers(trace, &format!("{name}/mask"), passes.iter().map(|&images| pass(images)).collect());
    }
}

/// Small networks of every kind of layer.
fn tiny() -> Trace {
    let convolutional =
        ConvolutionalConstants { channels: vec![6, 8], generator: vec![10, 8, 6], ..Default::default() };
    let gan = GanConstants { batch: 12, latent: 6, initial_images: 60, convolutional, ..Default::default() };
    let config = StudentConfig { gan, ..StudentConfig::default() };
    record::<Convolutional>(&config, ImageShape { channels: 3, height: 14, width: 12 }, 4, false)
}

#[test]
fn losses_and_gradients_of_twenty_steps_are_those_of_another_implementation() {
    on_vectors(tiny).assert_agrees(include_str!("../../../../tests/peers/conv-student.json"));
}

#[test]
#[ignore = "writes traces to $SPEED_TRACE, for scripts/peers/training/check"]
fn write_peer_traces() {
    let folder = std::path::PathBuf::from(std::env::var_os("SPEED_TRACE").expect("SPEED_TRACE names a folder"));
    on_vectors(tiny).write(&folder.join("conv-student-tiny"));
    // The paper's networks; convolutions in float64 are slow.
    let gan = GanConstants { batch: 10, initial_images: 50, ..Default::default() };
    let config = StudentConfig { gan, ..StudentConfig::default() };
    let shape = ImageShape { channels: 3, height: 32, width: 32 };
    record::<Convolutional>(&config, shape, 10, true).write(&folder.join("conv-student"));
}
