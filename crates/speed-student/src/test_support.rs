//! Small images, and trainings of small students on these images.

use burn::tensor::Device;
use rand::RngExt;
use speed_core::random::Streams;
use speed_data::{ImageShape, Split};

use crate::pseudo_labels::{PseudoLabelsConfig, PseudoLabelsConstants};
use crate::{
    Checkpoint, EpochMetrics, EpochReport, GanConstants, Images, Lesson, Samples, StudentConfig, StudentError,
};
use crate::{StudentMethod, StudentOutcome};

/// Returns settings for six epochs with small networks.
pub(crate) fn config() -> StudentConfig {
    StudentConfig {
        epochs: 6,
        epoch_images: 0,
        evaluate_every: 2,
        gan: GanConstants {
            batch: 20,
            discriminator: vec![24, 16],
            generator: vec![12, 10],
            latent: 5,
            initial_images: 50,
            ..GanConstants::default()
        },
        pseudo_labels: PseudoLabelsConfig {
            epochs: 6,
            warmup_epochs: 2,
            label_epochs: 4,
            labelled_batch: 8,
            batch: 20,
            constants: PseudoLabelsConstants { convolutions: vec![6], kernel: 3, hidden: 16, ..Default::default() },
            ..PseudoLabelsConfig::default()
        },
        ..StudentConfig::default()
    }
}

/// Returns images of three classes: a bright bar at the top, in the middle or at the bottom, with noise.
pub(crate) fn split(shape: ImageShape, images: usize, index: u64) -> Split {
    let mut stream = Streams::new(4).stream("images", index);
    let labels: Vec<u8> = (0..images).map(|_| stream.random_range(0..3)).collect();
    let mut pixels = Vec::new();
    for &label in &labels {
        for y in (0..shape.channels).flat_map(|_| 0..shape.height) {
            let bright = 3 * y / shape.height == usize::from(label);
            pixels.extend((0..shape.width).map(|_| stream.random_range(0..100) + if bright { 120 } else { 0_u8 }));
        }
    }
    Split::new(shape, 3, pixels, labels).expect("a split")
}

/// A pool, its labels for the student, and test images.
#[derive(Clone, Debug)]
pub(crate) struct Data {
    pub(crate) pool: Split,
    pub(crate) labelled: Vec<(usize, u8)>,
    pub(crate) test: Split,
}

impl Data {
    pub(crate) fn new(shape: ImageShape, pool: usize, test: usize) -> Self {
        let (pool, test) = (split(shape, pool, 0), split(shape, test, 1));
        let images = |class: u8| (0..pool.len()).filter(|&i| pool.label(i) == class).take(4).collect::<Vec<_>>();
        let labelled = (0..3).flat_map(|class| images(class).into_iter().map(move |i| (i, class))).collect();
        Self { pool, labelled, test }
    }

    pub(crate) fn lesson<'a>(
        &'a self,
        config: &'a StudentConfig,
        streams: &'a Streams,
        device: &'a Device,
    ) -> Lesson<'a> {
        let Self { pool, labelled, test } = self;
        Lesson { config, pool: Images::new(pool), labelled, doubts: None, test: Some(test), streams, device }
    }
}

pub(crate) type Outcome = Result<StudentOutcome, StudentError>;

/// Trains a student, and returns the checkpoints of all epochs.
pub(crate) fn run(
    method: StudentMethod,
    config: &StudentConfig,
    data: &Data,
    seed: u64,
    resume: Option<Checkpoint>,
) -> (Outcome, Vec<Checkpoint>) {
    let mut checkpoints = Vec::new();
    let mut on_epoch = |report: &EpochReport<'_>| {
        checkpoints.push(report.checkpoint().expect("records"));
        Ok(())
    };
    let (streams, device) = (&Streams::new(seed), &Device::flex());
    (method.train(&data.lesson(config, streams, device), resume, &mut on_epoch), checkpoints)
}

/// Metrics without times, the final weights, and generated images.
#[derive(Debug, PartialEq)]
pub(crate) struct Bits {
    pub(crate) metrics: Vec<EpochMetrics>,
    pub(crate) student: Vec<u8>,
    pub(crate) samples: Option<Samples>,
}

impl Bits {
    pub(crate) fn new(outcome: Outcome) -> Self {
        let StudentOutcome { metrics, student, samples, .. } = outcome.expect("a training");
        let metrics = metrics.into_iter().map(|metrics| EpochMetrics { seconds: 0.0, ..metrics }).collect();
        Self { metrics, student: student.network().to_record().expect("a record"), samples }
    }
}
