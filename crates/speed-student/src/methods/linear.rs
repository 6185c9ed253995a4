//! A linear classifier on an encoder's vectors, for photographs.
//!
//! A vector is scaled to length 1, projected to the principal components of the pool, divided along each of them by a power of its
//! deviation, and scaled to length 1 again: light, colour and other frequent differences then count less than those between classes.
//! Multinomial logistic regression follows. Its loss assumes that most labels may be wrong: it is the cross-entropy of the given label
//! seen through symmetric noise (Patrini et al., "Making Deep Neural Networks Robust to Label Noise", 2017), which is nearly
//! the mean absolute error (Ghosh et al. 2017), so images whose label does not fit their place say little. A second term draws the
//! mean prediction for the pool towards equal frequencies of the classes (Krause, Perona and Gomes, 2010), or towards those
//! of `student.prior`.

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, TensorData};
use serde_json::{Value, json};
use speed_core::random::Stream;
use speed_data::ImageShape;
use speed_nn::init;
use speed_nn::layers::{Dense, unit_rows};
use speed_nn::ops::activation::Activation;
use speed_nn::ops::log_sum_exp::log_softmax;
use speed_nn::ops::product::product;
use speed_nn::ops::sums::{column_means, mean, row_sums, total};
use speed_nn::optim::{Adam, Averaged, StepError};
use speed_nn::params::{ParameterError, number_parameters};
use speed_nn::training::{Classifier, Cycle, VECTOR_OFFSET};

use crate::pool::Whitening;
use crate::{BoxedClassifier, CheckpointError, Epoch, Lesson, Method, Passes, StudentConfig, StudentError, Training};

/// Number of principal components, if the vectors have as many values.
const COMPONENTS: usize = 128;
/// The length of a projected vector, for logits of usual sizes.
const LENGTH: f64 = 8.0;
/// The assumed share of wrong labels, as a fraction of that of random labels.
const WRONG: f64 = 0.88;
/// Weight of half of the squared weights.
const DECAY: f64 = 1e-2;
/// Weight of the term for the frequencies of the classes.
const BALANCE: f64 = 1.0;
/// Added to frequencies, so that their logarithm is finite.
const LEAST: f64 = 1e-6;
/// Labelled images of a step, and as many images of the pool.
const BATCH: usize = 500;
const EPOCHS: u32 = 60;
/// Epochs between two evaluations, for the plot.
const EVALUATE_EVERY: u32 = 5;
/// Images of an epoch, for any size of the pool.
const EPOCH_IMAGES: usize = 9000;
const LEARNING_RATE: f64 = 0.02;
/// Rate of the average of the parameters.
const AVERAGE: f64 = 0.02;
/// Vectors that are projected at a time.
const TOGETHER: usize = 500;

pub(crate) struct Linear;

#[derive(Module, Debug)]
struct LinearNetwork {
    /// The mean vector of the pool, `[values]`.
    mean: Param<Tensor<1>>,
    /// The principal directions, each divided by a power of the pool's deviation along it, `[values, components]`.
    directions: Param<Tensor<2>>,
    output: Dense,
}

impl LinearNetwork {
    fn template(shape: ImageShape, classes: usize, device: &Device) -> Self {
        let (values, components) = (shape.pixels(), components(shape));
        let zeros = || init::constant([values, components], 0.0, device);
        let mean = Param::from_tensor(init::constant([values], 0.0, device));
        number_parameters(Self {
            mean,
            directions: Param::from_tensor(zeros()),
            output: output(components, classes, device),
        })
    }

    /// Returns projected vectors of length [`LENGTH`], `[images, components]`.
    fn project(&self, images: Tensor<4>) -> Tensor<2> {
        let centred = unit_rows(images.flatten(1, 3)) - self.mean.val().unsqueeze::<2>();
        unit_rows(product(centred, self.directions.val())).mul_scalar(LENGTH)
    }
}

impl Classifier for LinearNetwork {
    const OFFSET: f32 = VECTOR_OFFSET;

    fn logits(&self, images: Tensor<4>) -> Tensor<2> {
        self.output.forward(self.project(images))
    }
}

fn components(shape: ImageShape) -> usize {
    COMPONENTS.min(shape.pixels())
}

/// Returns the regression before its first step: the loss has a flat part, and 0 is not in it.
fn output(components: usize, classes: usize, device: &Device) -> Dense {
    let (weight, bias) = (init::constant([components, classes], 0.0, device), init::constant([classes], 0.0, device));
    Dense::new(weight, bias, Activation::Linear)
}

/// A training: only the regression learns, from vectors that are projected once.
struct LinearTraining {
    network: LinearNetwork,
    regression: Averaged<Dense>,
    /// The projected vectors of the pool, `[images, components]`.
    projected: Tensor<2>,
    /// The frequencies of the classes, `[1, classes]`, if they are not equal.
    prior: Option<Tensor<2>>,
}

impl LinearTraining {
    fn new(lesson: &Lesson<'_>) -> Self {
        let (pool, device) = (lesson.pool, lesson.device);
        let (shape, classes) = (pool.shape(), lesson.classes());
        let Whitening { mean, directions } = Whitening::of_pool(pool, components(shape), lesson.streams);
        let of = |values: Vec<f32>, dims: [usize; 2]| Tensor::<2>::from_data(TensorData::new(values, dims), device);
        let network = LinearNetwork {
            mean: Param::from_tensor(of(mean, [1, shape.pixels()]).squeeze_dim(0)),
            directions: Param::from_tensor(of(directions, [shape.pixels(), components(shape)])),
            output: output(components(shape), classes, device),
        };
        let all: Vec<usize> = (0..pool.len()).collect();
        let project = |some: &[usize]| network.project(lesson.batch::<LinearNetwork>(some).into_tensor(device));
        let projected = Tensor::cat(all.chunks(TOGETHER).map(project).collect(), 0);
        let recorded = device.clone().autodiff();
        let regression = number_parameters(output(components(shape), classes, &recorded));
        let adam = Adam::with_least_deviation([0.9, 0.999], 1e-8);
        let prior = lesson
            .prior()
            .map(|frequencies| of(frequencies.into_iter().map(|frequency| frequency as f32).collect(), [1, classes]));
        Self { network, regression: Averaged::new(regression, adam, AVERAGE), projected, prior }
    }

    /// Makes a step at the share `done` of all steps, and returns its loss.
    fn step(&mut self, lesson: &Lesson<'_>, done: f64, labelled: &[usize], pool: &[usize]) -> Result<f64, StepError> {
        let classes = lesson.classes();
        let (images, labels): (Vec<usize>, Vec<u8>) = labelled.iter().map(|&place| lesson.labelled[place]).unzip();
        // The log-probability of the label, through noise: log(other + (right - other) p).
        let noise: Vec<[f32; 2]> = labelled.iter().map(|&place| noise(lesson, place)).collect();
        let column = |values: Vec<f32>| {
            let rows = values.len();
            Tensor::<2>::from_data(TensorData::new(values, [rows, 1]), lesson.device)
        };
        let mut targets = vec![0.0; labels.len() * classes];
        labels.iter().enumerate().for_each(|(row, &label)| targets[row * classes + usize::from(label)] = 1.0);
        let targets = Tensor::<2>::from_data(TensorData::new(targets, [labels.len(), classes]), lesson.device);
        let own = row_sums(log_softmax(self.logits(lesson, &images)).exp() * targets);
        let seen = own * column(noise.iter().map(|[right, other]| right - other).collect())
            + column(noise.iter().map(|[_, other]| *other).collect());
        let frequencies = column_means(log_softmax(self.logits(lesson, pool)).exp());
        let frequencies = frequencies.add_scalar(LEAST).log();
        let expected = match &self.prior {
            None => mean(frequencies),
            Some(prior) => total(frequencies * prior.clone()),
        };
        let loss = mean(seen.log()).neg() - expected * BALANCE + self.regression.network().half_squared_norm() * DECAY;
        self.regression.step(LEARNING_RATE * (1.0 - done), &loss)
    }

    /// Returns the logits of images of the pool, `[images, classes]`.
    fn logits(&self, lesson: &Lesson<'_>, images: &[usize]) -> Tensor<2> {
        let images: Vec<i64> = images.iter().map(|&image| image as i64).collect();
        let images = Tensor::<1, Int>::from_data(&images[..], lesson.device);
        self.regression.network().forward(self.projected.clone().select(0, images))
    }
}

/// Returns the assumed probabilities that the label at a place is given if it is right, and if a certain other class is. A doubt of 1
/// makes both equal.
fn noise(lesson: &Lesson<'_>, place: usize) -> [f32; 2] {
    let others = (lesson.classes().max(2) - 1) as f64;
    let random = others / (others + 1.0);
    let doubt = lesson.doubts.map_or(0.0, |doubts| f64::from(doubts[place]));
    let wrong = random * (WRONG + (1.0 - WRONG) * doubt);
    [1.0 - wrong, wrong / others].map(|probability| probability as f32)
}

impl Method for Linear {
    fn title(&self) -> &'static str {
        "linear"
    }

    fn measures(&self) -> &'static [&'static str] {
        &["loss"]
    }

    fn reads_vectors(&self) -> bool {
        true
    }

    fn settings(&self, config: &StudentConfig) -> Value {
        json!({ "prior": config.prior })
    }

    fn passes(&self, _: &StudentConfig) -> Passes {
        Passes { epochs: EPOCHS, epoch_images: EPOCH_IMAGES, batch: BATCH, evaluate_every: EVALUATE_EVERY }
    }

    /// A training takes seconds, so its time is measured as it is.
    fn trial(&self, config: &StudentConfig, _: u32, _: usize) -> StudentConfig {
        config.clone()
    }

    fn labelled_only(&self, config: &StudentConfig, _: usize) -> Option<StudentConfig> {
        Some(config.clone())
    }

    fn parameters(&self, _: &StudentConfig, shape: ImageShape) -> usize {
        shape.pixels() * (components(shape) + 1)
    }

    fn least_parameters(&self, _: &StudentConfig, shape: ImageShape, classes: usize) -> usize {
        shape.pixels() * components(shape) + components(shape) * classes
    }

    fn classifier(&self, _: &StudentConfig, shape: ImageShape, classes: usize, device: &Device) -> BoxedClassifier {
        Box::new(LinearNetwork::template(shape, classes, device))
    }

    fn start(&self, lesson: &Lesson<'_>) -> Box<dyn Training> {
        Box::new(LinearTraining::new(lesson))
    }
}

impl Training for LinearTraining {
    fn run_epoch(&mut self, lesson: &Lesson<'_>, epoch: &mut Epoch) -> Result<Vec<Option<f64>>, StudentError> {
        let steps = Linear.passes(lesson.config).steps(lesson.pool.len());
        let cycle = |length: usize| Cycle::new((0..length).collect());
        let (mut labelled, mut pool) = (cycle(lesson.labelled.len()), cycle(lesson.pool.len()));
        let draw = |cycle: &mut Cycle, count: usize, stream: &mut Stream| -> Vec<usize> {
            (0..count).map(|_| cycle.next(stream)).collect()
        };
        let mut sum = 0.0;
        for step in 0..steps {
            let done = (f64::from(epoch.number - 1) + step as f64 / steps as f64) / f64::from(EPOCHS);
            let labelled = draw(&mut labelled, BATCH, &mut epoch.stream);
            let pool = draw(&mut pool, BATCH, &mut epoch.stream);
            let loss = self.step(lesson, done, &labelled, &pool);
            sum += loss.map_err(|error| StudentError::from_step(error, "classifier", epoch.number, step + 1))?;
        }
        Ok(vec![Some(sum / steps as f64)])
    }

    fn last(&self) -> BoxedClassifier {
        self.with_output(self.regression.frozen())
    }

    fn averaged(&self) -> BoxedClassifier {
        self.with_output(self.regression.averaged())
    }

    fn to_records(&self) -> Result<Vec<Vec<u8>>, ParameterError> {
        Ok(self.regression.to_records()?.into())
    }

    fn with_records(self: Box<Self>, records: Vec<Vec<u8>>) -> Result<Box<dyn Training>, CheckpointError> {
        let records = records.try_into().map_err(|_| CheckpointError::Damaged)?;
        Ok(Box::new(Self { regression: self.regression.with_records(&records)?, ..*self }))
    }
}

impl LinearTraining {
    fn with_output(&self, output: Dense) -> BoxedClassifier {
        Box::new(number_parameters(LinearNetwork { output, ..self.network.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use rand_distr::{Distribution, StandardNormal};
    use speed_core::random::Streams;
    use speed_data::Split;

    use super::*;
    use crate::test_support::{Bits, Data, run};
    use crate::{ClassPrior, Images, StudentMethod};

    const CLASSES: u8 = 4;
    const VALUES: usize = 24;

    /// Returns vectors of four classes around a common mean, with one frequent difference that says nothing about the class.
    fn vectors(images: usize, index: u64) -> Split {
        let mut stream = Streams::new(6).stream("vectors", index);
        let labels: Vec<u8> = (0..images).map(|_| stream.random_range(0..CLASSES)).collect();
        let mut pixels = Vec::new();
        for &label in &labels {
            let light = 30.0 * Distribution::<f64>::sample(&StandardNormal, &mut stream);
            pixels.extend((0..VALUES).map(|value| {
                let of_class = if value % usize::from(CLASSES) == usize::from(label) { 24.0 } else { 0.0 };
                let common = if value < 4 { 20.0 + light } else { 10.0 };
                let noise = 9.0 * Distribution::<f64>::sample(&StandardNormal, &mut stream);
                (128.0 + common + of_class + noise).clamp(1.0, 255.0) as u8
            }));
        }
        let shape = ImageShape { channels: 1, height: 1, width: VALUES };
        Split::new(shape, CLASSES.into(), pixels, labels).expect("a split")
    }

    /// Returns a pool with labels, of which 40 % are wrong.
    fn data() -> Data {
        let (pool, test) = (vectors(400, 0), vectors(300, 1));
        let mut stream = Streams::new(7).stream("labels", 0);
        let label = |image: usize| {
            let is_wrong = stream.random::<f64>() < 0.4;
            (
                image,
                if is_wrong {
                    (pool.label(image) + stream.random_range(1..CLASSES)) % CLASSES
                } else {
                    pool.label(image)
                },
            )
        };
        let labelled = (0..400).map(label).collect();
        Data { pool, labelled, test }
    }

    #[test]
    fn wrong_labels_are_outvoted_and_a_training_resumes_to_the_same_bits() {
        let (data, config) = (data(), StudentConfig::default());
        let (outcome, checkpoints) = run(StudentMethod::LINEAR, &config, &data, 1, None);
        let accuracy = outcome.as_ref().expect("a training").accuracy.expect("test images");
        assert!(accuracy > 0.9, "{accuracy}");
        let middle = checkpoints.into_iter().nth(20).expect("a checkpoint");
        let (resumed, rest) = run(StudentMethod::LINEAR, &config, &data, 1, Some(middle));
        assert_eq!(rest.len(), EPOCHS as usize - 21);
        assert_eq!(Bits::new(resumed), Bits::new(outcome));
    }

    #[test]
    fn a_prior_keeps_a_rare_class_rare() {
        // Two classes of vectors, of which one in twenty is rare, and ten right labels of each.
        let shape = ImageShape { channels: 1, height: 1, width: VALUES };
        let split = |images: usize, index: u64| {
            let mut stream = Streams::new(8).stream("rare", index);
            let labels: Vec<u8> = (0..images).map(|image| u8::from(image % 20 == 0)).collect();
            let pixels = labels.iter().flat_map(|&label| {
                let value = |value: usize| {
                    let of_class = if value % 2 == usize::from(label) { 30.0 } else { 0.0 };
                    let noise = 30.0 * Distribution::<f64>::sample(&StandardNormal, &mut stream);
                    (128.0 + of_class + noise).clamp(1.0, 255.0) as u8
                };
                (0..VALUES).map(value).collect::<Vec<u8>>()
            });
            let pixels = pixels.collect();
            Split::new(shape, 2, pixels, labels).expect("a split")
        };
        let (pool, test) = (split(400, 0), split(400, 1));
        let of = |class: u8| (0..400).filter(|&image| pool.label(image) == class).take(10).collect::<Vec<_>>();
        let labelled = [0, 1].into_iter().flat_map(|class| of(class).into_iter().map(move |image| (image, class)));
        let data = Data { labelled: labelled.collect(), pool: pool.clone(), test };
        let rare = |prior: ClassPrior| {
            let config = StudentConfig { prior, ..StudentConfig::default() };
            let (outcome, _) = run(StudentMethod::LINEAR, &config, &data, 1, None);
            outcome.expect("a training").predictions.iter().filter(|class| **class == 1).count()
        };
        let (equal, given) = (rare(ClassPrior::Uniform), rare(ClassPrior::Given(vec![0.95, 0.05])));
        assert!(given.abs_diff(20) < equal.abs_diff(20), "{equal} and {given} of 400, of which 20 are rare");
    }

    #[test]
    fn the_assumed_noise_never_prefers_another_class() {
        for classes in [2, 10] {
            let shape = ImageShape { channels: 1, height: 1, width: 2 };
            let pool = Split::new(shape, classes, vec![1; 4], vec![0; 2]).expect("a split");
            let (config, streams, device) = (&StudentConfig::default(), &Streams::new(1), &Device::flex());
            let (labelled, doubts) = (&[(0, 0), (1, 1)], [0.0, 0.999]);
            let (pool, doubts) = (Images::new(&pool), Some(&doubts[..]));
            let lesson = Lesson { config, pool, labelled, doubts, test: None, streams, device };
            let [sure, doubted] = [0, 1].map(|place| noise(&lesson, place));
            for [right, other] in [sure, doubted] {
                assert!(right > other, "{right} {other}");
                assert!((right + other * (classes - 1) as f32 - 1.0).abs() < 1e-6);
            }
            assert!(sure[0] > doubted[0] && doubted[0] - doubted[1] < 1e-3);
        }
    }

    #[test]
    fn a_template_takes_the_parameters_of_a_training_on_a_small_pool() {
        let (pool, test) = (vectors(9, 0), vectors(5, 1));
        let data = Data { pool, labelled: vec![(0, 1), (3, 2)], test };
        let (outcome, _) = run(StudentMethod::LINEAR, &StudentConfig::default(), &data, 1, None);
        let record = outcome.expect("a training").student.network().to_record().expect("a record");
        let template = LinearNetwork::template(data.pool.shape(), CLASSES.into(), &Device::flex());
        assert!(speed_nn::training::AnyClassifier::with_record(&template, &record).is_ok());
    }
}
