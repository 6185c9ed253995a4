//! A student that trains one dense layer on the labels only. It shows the parts of a method, and the value of the
//! unlabelled images.

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData, activation};
use serde_json::{Value, json};
use speed_data::ImageShape;
use speed_nn::init;
use speed_nn::layers::Dense;
use speed_nn::ops::activation::Activation;
use speed_nn::optim::{Adam, Averaged, Epsilon};
use speed_nn::params::{ParameterError, number_parameters};
use speed_student::{
    BoxedClassifier, CheckpointError, Classifier, Epoch, Lesson, Method, Passes, StudentConfig, StudentError, Training,
};

/// Step size of Adam.
const LEARNING_RATE: f64 = 0.001;
/// The rate of the parameter average.
const AVERAGE_RATE: f64 = 0.05;

/// A dense layer.
#[derive(Module, Debug)]
pub struct Linear {
    layer: Dense,
}

impl Classifier for Linear {
    fn logits(&self, images: Tensor<4>) -> Tensor<2> {
        self.layer.forward(images.flatten(1, 3))
    }
}

/// The method.
pub struct LabelsOnly;

impl Method for LabelsOnly {
    fn title(&self) -> &'static str {
        "labels only"
    }

    fn measures(&self) -> &'static [&'static str] {
        &["loss"]
    }

    fn settings(&self, config: &StudentConfig) -> Value {
        json!([config.epochs, LEARNING_RATE, config.evaluate_every])
    }

    fn passes(&self, config: &StudentConfig) -> Passes {
        let StudentConfig { epochs, evaluate_every, .. } = *config;
        // An epoch is one step on all labels, for pools of any size.
        Passes { epochs, epoch_images: 1, batch: 1, evaluate_every }
    }

    /// A step uses all labels, whatever the batch.
    fn trial(&self, config: &StudentConfig, epochs: u32, _batch: usize) -> StudentConfig {
        StudentConfig { epochs, ..config.clone() }
    }

    fn parameters(&self, _: &StudentConfig, shape: ImageShape) -> usize {
        10 * shape.pixels()
    }

    fn least_parameters(&self, _: &StudentConfig, shape: ImageShape, classes: usize) -> usize {
        shape.pixels() * classes
    }

    fn classifier(&self, _: &StudentConfig, shape: ImageShape, classes: usize, device: &Device) -> BoxedClassifier {
        let weight = init::constant([shape.pixels(), classes], 0.0, device);
        let layer = Dense::new(weight, init::constant([classes], 0.0, device), Activation::Linear);
        Box::new(number_parameters(Linear { layer }))
    }

    fn start(&self, lesson: &Lesson<'_>) -> Box<dyn Training> {
        let (shape, device) = (lesson.pool.shape(), lesson.device.clone().autodiff());
        let sizes @ [_, classes] = [shape.pixels(), lesson.classes()];
        let weight = init::normal(sizes, 0.01, &mut lesson.streams.stream("weights", 0), &device);
        let layer = Dense::new(weight, init::constant([classes], 0.0, &device), Activation::Linear);
        let network = number_parameters(Linear { layer });
        let adam = Adam { beta1: 0.9, beta2: 0.999, epsilon: Epsilon::Outside(1e-8) };
        Box::new(LayerTraining(Averaged::new(network, adam, AVERAGE_RATE)))
    }
}

/// The layer in training.
struct LayerTraining(Averaged<Linear>);

impl Training for LayerTraining {
    /// Makes one step on all labels.
    fn run_epoch(&mut self, lesson: &Lesson<'_>, epoch: &mut Epoch) -> Result<Vec<Option<f64>>, StudentError> {
        let (images, labels): (Vec<usize>, Vec<i32>) =
            lesson.labelled.iter().map(|&(image, label)| (image, i32::from(label))).unzip();
        let labels = TensorData::new(labels, [images.len(), 1]);
        let labels = Tensor::<2, Int>::from_data(labels, lesson.device);
        let logits = self.0.network().logits(lesson.batch::<Linear>(&images).into_tensor(lesson.device));
        let loss = activation::log_softmax(logits, 1).gather(1, labels).mean().neg();
        let loss = self.0.step(LEARNING_RATE, &loss);
        let loss = loss.map_err(|error| StudentError::from_step(error, "layer", epoch.number, 1))?;
        Ok(vec![Some(loss)])
    }

    fn last(&self) -> BoxedClassifier {
        Box::new(self.0.frozen())
    }

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
