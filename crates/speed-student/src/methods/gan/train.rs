//! The training of both networks.

use std::marker::PhantomData;

use burn::tensor::{Device, Tensor};
use serde_json::{Value, json};
use speed_core::random::{Stream, Streams};
use speed_data::ImageShape;
use speed_nn::average::Average;
use speed_nn::device::{DeviceError, values};
use speed_nn::init;
use speed_nn::noise::NormalPool;
use speed_nn::optim::{Adam, Trained};
use speed_nn::params::{ParameterError, number_parameters};
use speed_nn::training::InvalidField;

use super::GanConstants;
use super::loss::discriminator_loss;
use super::networks::{Discriminator, Generator, Networks, Noise};
use super::order::Order;
use crate::{
    BoxedClassifier, CheckpointError, Epoch, Lesson, Method, Passes, Samples, StudentConfig, StudentError, Training,
};

/// Rate of the reference's parameter average.
const REFERENCE_RATE: f64 = 1e-4;
/// Steps between two updates of the parameter averages, whose rate is compounded accordingly.
const AVERAGE_EVERY: u32 = 10;
pub(super) const SAMPLES: usize = 100;

/// The method of a semi-supervised GAN with some networks.
pub(crate) struct Gan<N>(PhantomData<N>);

pub(crate) struct GanTraining<N: Networks> {
    pub(super) noise: NormalPool,
    pub(crate) discriminator: Trained<N::Discriminator>,
    pub(super) generator: Trained<N::Generator>,
    average: Average<N::Discriminator>,
    reference_average: Average<N::Discriminator>,
}

/// The images of one step: indices into the pool.
pub(super) struct Batch<'a> {
    pub(super) labelled: Vec<usize>,
    pub(super) labels: Vec<u8>,
    /// For the discriminator's step.
    pub(super) unlabelled: &'a [usize],
    /// For the generator's step.
    pub(super) matched: &'a [usize],
}

impl<N: Networks> GanTraining<N> {
    /// Returns new networks; the discriminator is initialised on some images of the pool.
    pub(crate) fn new(lesson: &Lesson<'_>) -> Self {
        let Lesson { config, pool, streams, device, .. } = *lesson;
        let recorded = device.clone().autodiff();
        let (shape, mut weights) = (pool.shape(), streams.stream("discriminator", 0));
        let discriminator = N::Discriminator::new(config, shape, lesson.classes(), &mut weights, &recorded);
        let generator = N::Generator::new(config, shape, &mut streams.stream("generator", 0), &recorded);
        let noise = NormalPool::new(N::NOISE_POOL, &mut streams.stream("noise pool", 0), device);
        let mut stream = streams.stream("initial images", 0);
        let count = config.gan.initial_images.min(pool.len());
        let images = images::<N>(lesson, &rand::seq::index::sample(&mut stream, pool.len(), count).into_vec());
        let discriminator = discriminator.initialized_on(images, &mut Noise { pool: &noise, stream: &mut stream });
        let generator =
            generator.initialized_on(latent(lesson, config.gan.batch, &mut streams.stream("initial latent", 0)));

        let (discriminator, generator) = (number_parameters(discriminator), number_parameters(generator));
        let adam = Adam::with_least_deviation([config.gan.beta1, config.gan.beta2], config.gan.adam_epsilon);
        Self {
            average: Average::new(config.gan.average_rate, &discriminator),
            reference_average: Average::new(REFERENCE_RATE, &discriminator),
            discriminator: Trained::new(discriminator, adam),
            generator: Trained::new(generator, adam),
            noise,
        }
    }

    /// Returns a discriminator's loss on one batch of labelled, unlabelled and generated images, in equal numbers.
    pub(super) fn discriminator_loss(
        &self,
        discriminator: &N::Discriminator,
        lesson: &Lesson<'_>,
        batch: &Batch<'_>,
        stream: &mut Stream,
    ) -> Tensor<1> {
        let generated = self.generator.frozen().forward(latent(lesson, lesson.config.gan.batch, stream));
        let real = images::<N>(lesson, &[&batch.labelled, batch.unlabelled].concat());
        let logits = discriminator
            .logits_with(Tensor::cat(vec![real, generated], 0), Some(&mut Noise { pool: &self.noise, stream }));
        discriminator_loss(logits, &batch.labels, lesson.config.gan.unlabelled_weight)
    }

    /// Returns a generator's loss: the distance between the features of its images and the features of unlabelled images.
    pub(super) fn generator_loss(
        &self,
        generator: &N::Generator,
        lesson: &Lesson<'_>,
        batch: &Batch<'_>,
        stream: &mut Stream,
    ) -> Tensor<1> {
        let latent = latent(lesson, lesson.config.gan.batch, stream);
        let mut noise = Noise { pool: &self.noise, stream };
        let frozen = self.discriminator.frozen();
        // The real features are constants for the generator; no gradient passes through them.
        let real = Tensor::from_inner(frozen.features(images::<N>(lesson, batch.matched), Some(&mut noise)));
        N::feature_loss(real, frozen.features(generator.forward(latent), Some(&mut noise)))
    }
}

impl<N: Networks> Gan<N> {
    pub(crate) const NEW: Self = Self(PhantomData);
}

impl<N: Networks> Method for Gan<N> {
    fn title(&self) -> &'static str {
        N::TITLE
    }

    // The last one is the accuracy with the reference's average, which is drawn towards its start at zero (erratum 19).
    fn measures(&self) -> &'static [&'static str] {
        &["discriminator_loss", "generator_loss", "accuracy_reference_average"]
    }

    fn settings(&self, config: &StudentConfig) -> Value {
        let StudentConfig { epochs, epoch_images, evaluate_every, gan, .. } = config;
        json!({
            "epochs": epochs, "epoch_images": epoch_images, "evaluate_every": evaluate_every, "size": N::size(config),
            "constants": gan,
        })
    }

    /// The identity does not include the number of epochs, so a finished training can be continued with more epochs. Its former last epoch
    /// keeps its accuracies.
    fn identity(&self, config: &StudentConfig) -> Value {
        self.settings(&StudentConfig { epochs: 0, ..config.clone() })
    }

    fn passes(&self, config: &StudentConfig) -> Passes {
        let StudentConfig { epochs, epoch_images, evaluate_every, gan: GanConstants { batch, .. }, .. } = *config;
        Passes { epochs, epoch_images, batch, evaluate_every }
    }

    fn trial(&self, config: &StudentConfig, epochs: u32, batch: usize) -> StudentConfig {
        let gan = GanConstants { batch, ..config.gan.clone() };
        StudentConfig { epochs, epoch_images: 0, gan, ..config.clone() }
    }

    /// Without the loss of unlabelled and generated images, the discriminator is an ordinary classifier.
    fn labelled_only(&self, config: &StudentConfig, pool: usize) -> Option<StudentConfig> {
        let epoch_images = self.passes(config).images(pool);
        let gan = GanConstants { unlabelled_weight: 0.0, ..config.gan.clone() };
        Some(StudentConfig { gan, epoch_images, ..config.clone() })
    }

    fn parameters(&self, config: &StudentConfig, shape: ImageShape) -> usize {
        N::parameters(config, shape)
    }

    fn check_images(&self, config: &StudentConfig, shape: ImageShape) -> Result<(), InvalidField> {
        N::check_images(config, shape)
    }

    fn least_parameters(&self, config: &StudentConfig, shape: ImageShape, classes: usize) -> usize {
        N::least_parameters(config, shape, classes)
    }

    fn classifier(
        &self,
        config: &StudentConfig,
        shape: ImageShape,
        classes: usize,
        device: &Device,
    ) -> BoxedClassifier {
        let mut weights = Streams::new(0).stream("template", 0);
        Box::new(number_parameters(N::Discriminator::new(config, shape, classes, &mut weights, device)))
    }

    fn start(&self, lesson: &Lesson<'_>) -> Box<dyn Training> {
        Box::new(GanTraining::<N>::new(lesson))
    }
}

impl<N: Networks> Training for GanTraining<N> {
    fn run_epoch(&mut self, lesson: &Lesson<'_>, epoch: &mut Epoch) -> Result<Vec<Option<f64>>, StudentError> {
        let (number, stream, rate) = (epoch.number, &mut epoch.stream, N::learning_rate(lesson.config));
        let (n, pool, passes) = (lesson.config.gan.batch, lesson.pool.len(), Gan::<N>::NEW.passes(lesson.config));
        let steps = passes.steps(pool);
        let order = Order::draw(passes.images(pool), pool, lesson.labelled.len(), stream);
        let (mut sums, mut steps_since_average) = ([0.0; 2], 0);
        for step in 0..steps {
            let places = step * n..(step + 1) * n;
            let (labelled, labels) = order.labels(lesson.labelled, places.clone());
            let unlabelled = &order.discriminator[places.clone()];
            let batch = Batch { labelled, labels, unlabelled, matched: &order.generator[places] };
            let failed = |network| move |error| StudentError::from_step(error, network, number, step + 1);

            let loss = self.discriminator_loss(self.discriminator.network(), lesson, &batch, stream);
            sums[0] += self.discriminator.step(rate, &loss).map_err(failed("discriminator"))?;
            steps_since_average += 1;
            if steps_since_average == AVERAGE_EVERY || step + 1 == steps {
                self.average.update(steps_since_average, self.discriminator.network());
                self.reference_average.update(steps_since_average, self.discriminator.network());
                steps_since_average = 0;
            }
            let loss = self.generator_loss(self.generator.network(), lesson, &batch, stream);
            sums[1] += self.generator.step(rate, &loss).map_err(failed("generator"))?;
        }
        let [discriminator, generator] = sums.map(|sum| Some(sum / steps as f64));
        let reference = match epoch.is_evaluated {
            true => lesson.accuracy(self.reference_average.from_zero())?,
            false => None,
        };
        Ok(vec![discriminator, generator, reference])
    }

    fn last(&self) -> BoxedClassifier {
        Box::new(self.discriminator.frozen())
    }

    fn averaged(&self) -> BoxedClassifier {
        Box::new(self.average.corrected(self.discriminator.network()))
    }

    fn to_records(&self) -> Result<Vec<Vec<u8>>, ParameterError> {
        let networks = [self.discriminator.to_records()?, self.generator.to_records()?];
        let averages = [self.average.to_record()?, self.reference_average.to_record()?];
        Ok(networks.into_iter().flatten().chain(averages).collect())
    }

    fn with_records(self: Box<Self>, records: Vec<Vec<u8>>) -> Result<Box<dyn Training>, CheckpointError> {
        let [discriminator, its_optimizer, generator, optimizer, average, reference] =
            records.try_into().map_err(|_| CheckpointError::Damaged)?;
        Ok(Box::new(Self {
            discriminator: self.discriminator.with_records(&discriminator, &its_optimizer)?,
            generator: self.generator.with_records(&generator, &optimizer)?,
            average: self.average.with_record(&average)?,
            reference_average: self.reference_average.with_record(&reference)?,
            noise: self.noise,
        }))
    }

    fn samples(&self, lesson: &Lesson<'_>) -> Result<Option<Samples>, DeviceError> {
        let latent = latent(lesson, SAMPLES, &mut lesson.streams.stream("samples", 0));
        let samples = values(self.generator.frozen().forward(latent))?;
        Ok(Some(Samples::from_channels_last(&samples, lesson.pool.shape())))
    }
}

/// Draws latent vectors `[count, latent]`.
pub(super) fn latent(lesson: &Lesson<'_>, count: usize, stream: &mut Stream) -> Tensor<2> {
    init::uniform([count, lesson.config.gan.latent], 0.0, 1.0, stream, lesson.device)
}

pub(super) fn images<N: Networks>(lesson: &Lesson<'_>, some: &[usize]) -> Tensor<4> {
    lesson.batch::<N::Discriminator>(some).into_tensor(lesson.device)
}
