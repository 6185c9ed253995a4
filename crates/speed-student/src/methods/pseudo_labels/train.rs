//! The training of the network.

use burn::tensor::{Device, Tensor, TensorData};
use serde_json::{Value, json};
use speed_core::random::{Stream, Streams};
use speed_data::ImageShape;
use speed_nn::device::{DeviceError, values};
use speed_nn::math;
use speed_nn::matrix::Matrix;
use speed_nn::ops::log_sum_exp::log_softmax;
use speed_nn::ops::sums::{row_sums, total};
use speed_nn::optim::{Averaged, StepError};
use speed_nn::params::{ParameterError, number_parameters};
use speed_nn::training::{Classifier, InvalidField, Pixels};

use super::batches::{Batch, Batches};
use super::network::{PseudoLabelsNetwork, least_parameters, windows};
use super::targets::Targets;
use super::{PseudoLabelsConfig, PseudoLabelsConstants};
use crate::{BoxedClassifier, CheckpointError, Epoch, Lesson, Method, Passes, StudentConfig, StudentError, Training};

/// Number of images that are labelled in one batch.
const TOGETHER: usize = 100;

pub(crate) struct PseudoLabels;

pub(crate) struct PseudoLabelsTraining(pub(crate) Averaged<PseudoLabelsNetwork>);

impl PseudoLabelsTraining {
    pub(crate) fn new(lesson: &Lesson<'_>) -> Self {
        let (config, mut weights) = (&lesson.config.pseudo_labels, lesson.streams.stream("weights", 0));
        let (shape, recorded) = (lesson.pool.shape(), lesson.device.clone().autodiff());
        let network = PseudoLabelsNetwork::new(config, shape, lesson.classes(), &mut weights, &recorded)
            .expect("images whose size was checked");
        let network = number_parameters(network);
        Self(Averaged::new(network, config.adam(), config.constants.average_rate))
    }

    /// Makes one step at the share `done` of all steps. Returns the losses of labelled and pseudo-labelled images before the step.
    fn step(
        &mut self,
        lesson: &Lesson<'_>,
        done: f64,
        batch: Batch,
        stream: &mut Stream,
    ) -> Result<[f64; 2], StepError> {
        let labelled = batch.labelled;
        if batch.weights.is_empty() {
            return Ok([0.0; 2]);
        }
        let Batch { pixels, targets, weights, .. } = batch;
        let logits = self.0.network().training_logits(pixels.into_tensor(lesson.device), stream);
        let losses = losses(logits, &targets, &weights);
        self.0.step(lesson.config.pseudo_labels.rate(done), &total(losses.clone()))?;
        let losses: Vec<f64> = values(losses.inner())?.into_iter().map(f64::from).collect();
        let (labelled, unlabelled) = losses.split_at(labelled);
        Ok([labelled.iter().sum(), unlabelled.iter().sum()])
    }

    /// Returns the probabilities `[images, classes]` that the averaged network gives to weak views of the pool.
    fn probabilities(&self, lesson: &Lesson<'_>, stream: &mut Stream) -> Result<Matrix, DeviceError> {
        let (network, pool, classes) = (self.0.averaged(), lesson.pool, lesson.classes());
        let weak = lesson.config.pseudo_labels.views.weak();
        let mut all = Vec::with_capacity(pool.len() * classes);
        for first in (0..pool.len()).step_by(TOGETHER) {
            let some = first..(first + TOGETHER).min(pool.len());
            let mut views = Pixels::with_capacity(pool.shape(), some.len());
            for image in some {
                weak.write(pool.pixels(image), pool.shape(), stream, views.push_empty());
            }
            let logits = network.logits(views.into_tensor(lesson.device));
            all.extend(values(log_softmax(logits))?.into_iter().map(math::exp));
        }
        Ok(Matrix::from_vec(pool.len(), classes, all))
    }
}

/// Returns the weighted cross-entropy of every image, `[images]`, in nats, from logits `[images, classes]` and distributions over the
/// classes.
fn losses(logits: Tensor<2>, targets: &Matrix, weights: &[f32]) -> Tensor<1> {
    let device = &logits.device();
    let dims = [targets.rows(), targets.columns()];
    let targets = Tensor::<2>::from_data(TensorData::new(targets.values().to_vec(), dims), device);
    let entropies = row_sums(log_softmax(logits) * targets).squeeze_dim::<1>(1);
    entropies.neg() * Tensor::<1>::from_data(weights, device)
}

impl Method for PseudoLabels {
    fn title(&self) -> &'static str {
        "ours"
    }

    fn measures(&self) -> &'static [&'static str] {
        &["labelled_loss", "unlabelled_loss", "confident", "disputed"]
    }

    fn settings(&self, config: &StudentConfig) -> Value {
        let StudentConfig { epoch_images, evaluate_every, prior, pseudo_labels, .. } = config;
        json!([epoch_images, evaluate_every, prior, pseudo_labels, pseudo_labels.constants])
    }

    fn passes(&self, config: &StudentConfig) -> Passes {
        let PseudoLabelsConfig { epochs, batch, .. } = config.pseudo_labels;
        let StudentConfig { epoch_images, evaluate_every, .. } = *config;
        Passes { epochs, epoch_images, batch, evaluate_every }
    }

    fn trial(&self, config: &StudentConfig, epochs: u32, batch: usize) -> StudentConfig {
        let settings = config.pseudo_labels.clone();
        let pseudo_labels = PseudoLabelsConfig { epochs, warmup_epochs: 1, label_epochs: epochs, batch, ..settings };
        StudentConfig { epoch_images: 0, pseudo_labels, ..config.clone() }
    }

    /// Never leaves the warm-up, so there are no pseudo-labels.
    fn labelled_only(&self, config: &StudentConfig, pool: usize) -> Option<StudentConfig> {
        let (settings, epoch_images) = (config.pseudo_labels.clone(), self.passes(config).images(pool));
        let epochs = settings.epochs;
        let pseudo_labels = PseudoLabelsConfig { warmup_epochs: epochs, label_epochs: epochs, ..settings };
        Some(StudentConfig { epoch_images, pseudo_labels, ..config.clone() })
    }

    fn parameters(&self, config: &StudentConfig, shape: ImageShape) -> usize {
        let settings = &config.pseudo_labels;
        let (mut channels, mut values) = (if settings.sees_contrasts() { 1 } else { shape.channels }, 0_usize);
        let convolutions = settings.convolutions();
        for &outputs in &convolutions {
            let kernel = settings.constants.kernel * settings.constants.kernel;
            values = values.saturating_add(channels.saturating_mul(outputs).saturating_mul(kernel));
            channels = outputs;
        }
        // Every layer halves height and width; the last maps meet the hidden layer.
        let last = (shape.height * shape.width) >> (2 * convolutions.len().min(8));
        values.saturating_add(last.saturating_mul(channels).saturating_mul(settings.hidden()))
    }

    fn check_images(&self, config: &StudentConfig, shape: ImageShape) -> Result<(), InvalidField> {
        let PseudoLabelsConstants { convolutions, kernel, .. } = &config.pseudo_labels.constants;
        InvalidField::unless(windows(&config.pseudo_labels, shape).is_some(), "method", || {
            let count = convolutions.len();
            format!("images of {shape} are too small for {count} convolutions of side {kernel} with pooling")
        })
    }

    fn least_parameters(&self, config: &StudentConfig, shape: ImageShape, classes: usize) -> usize {
        least_parameters(&config.pseudo_labels, shape, classes)
    }

    fn classifier(
        &self,
        config: &StudentConfig,
        shape: ImageShape,
        classes: usize,
        device: &Device,
    ) -> BoxedClassifier {
        let mut stream = Streams::new(0).stream("template", 0);
        let network = PseudoLabelsNetwork::new(&config.pseudo_labels, shape, classes, &mut stream, device);
        Box::new(number_parameters(network.expect("images whose size was checked")))
    }

    fn start(&self, lesson: &Lesson<'_>) -> Box<dyn Training> {
        Box::new(PseudoLabelsTraining::new(lesson))
    }
}

impl Training for PseudoLabelsTraining {
    /// Labels the pool, then makes all steps.
    fn run_epoch(&mut self, lesson: &Lesson<'_>, epoch: &mut Epoch) -> Result<Vec<Option<f64>>, StudentError> {
        let (config, stream) = (&lesson.config.pseudo_labels, &mut epoch.stream);
        let targets = if epoch.number <= config.warmup_epochs {
            Targets::from_labels(lesson.labelled, lesson.doubts, lesson.classes())
        } else {
            let (pool, prior) = (self.probabilities(lesson, stream)?, lesson.prior());
            Targets::from_pool(&config.constants, pool, lesson.labelled, lesson.doubts, prior.as_deref())
        };

        let steps = PseudoLabels.passes(lesson.config).steps(lesson.pool.len());
        let (mut batches, mut sums) = (Batches::new(lesson, &targets), [0.0; 2]);
        for step in 0..steps {
            let done = (f64::from(epoch.number - 1) + step as f64 / steps as f64) / f64::from(config.epochs);
            let batch = batches.next(config.labelled_weight(done), stream);
            let losses = self.step(lesson, done, batch, stream);
            let losses =
                losses.map_err(|error| StudentError::from_step(error, "classifier", epoch.number, step + 1))?;
            sums.iter_mut().zip(losses).for_each(|(sum, loss)| *sum += loss);
        }
        let [labelled, unlabelled] = sums.map(|sum| sum / steps as f64);
        let confident = targets.confident.len() as f64 / lesson.pool.len() as f64;
        Ok([labelled, unlabelled, confident, targets.disputed].map(Some).to_vec())
    }

    fn last(&self) -> BoxedClassifier {
        Box::new(self.0.frozen())
    }

    /// The averaged network also labels the pool in the next epoch.
    fn averaged(&self) -> BoxedClassifier {
        Box::new(self.0.averaged())
    }

    fn to_records(&self) -> Result<Vec<Vec<u8>>, ParameterError> {
        Ok(self.0.to_records()?.into())
    }

    fn with_records(self: Box<Self>, records: Vec<Vec<u8>>) -> Result<Box<dyn Training>, CheckpointError> {
        let records = records.try_into().map_err(|_| CheckpointError::Damaged)?;
        Ok(Box::new(Self(self.0.with_records(&records)?)))
    }
}
