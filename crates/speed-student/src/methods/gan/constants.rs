//! Constants of the GANs, in one place.

use serde::{Deserialize, Serialize};

/// Constants of both GANs. The default is the paper's published code, except for `average_rate`. No config changes them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GanConstants {
    /// Images of each kind (labelled, unlabelled, generated) per step, at least two: batch norm over a single generated image
    /// would remove all of its information. The images that remain after the last full batch of an epoch are not used in that
    /// epoch. If the pool is smaller than a batch, a batch contains images several times.
    pub batch: usize,
    /// Step size of Adam for the dense networks, constant.
    pub learning_rate: f64,
    /// Decay of Adam's first moment.
    pub beta1: f64,
    /// Decay of Adam's second moment.
    pub beta2: f64,
    /// Smallest deviation by which Adam divides. The reference divides by `sqrt(v + 1e-8)`, which is at least 1e-4;
    /// with 1e-8 instead, the student learns clearly worse.
    pub adam_epsilon: f64,
    /// Rate per step of the parameter average, whose accuracy is the student's. The reference uses 1e-4 from a start at
    /// zero (erratum 19); its accuracy is reported too. 2e-3, with the start divided out, was better at every epoch.
    pub average_rate: f64,
    /// Weight of the unlabelled loss relative to the labelled loss. It is 0 in a training on labelled images alone.
    pub unlabelled_weight: f64,
    /// Length of the generator's latent vector, uniform in 0..1.
    pub latent: usize,
    /// Images of the pool on which the discriminator's scales and biases are initialised (at most all of them).
    pub initial_images: usize,
    /// Deviation of the Gaussian noise on the dense discriminator's input, whose pixels are within 0..=1.
    pub input_noise: f64,
    /// Deviation of the Gaussian noise on each hidden layer of the dense discriminator.
    pub hidden_noise: f64,
    /// Units of the dense discriminator's hidden layers, from the image on; feature matching uses the last layer.
    pub discriminator: Vec<usize>,
    /// Units of the dense generator's hidden layers, from the latent vector on.
    pub generator: Vec<usize>,
    /// The paper's convolutional networks.
    pub convolutional: ConvolutionalConstants,
}

/// Constants of the convolutional networks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConvolutionalConstants {
    /// Channels of the discriminator's blocks. A block has three 3x3 convolutions, the last of which halves rows and columns. Three more
    /// convolutions with the last number of channels follow the blocks.
    pub channels: Vec<usize>,
    /// Channels of the generator's maps, from the smallest map on; rows and columns double after each map.
    pub generator: Vec<usize>,
    /// Step size of Adam, constant.
    pub learning_rate: f64,
    /// Share of the discriminator's inputs that is dropped in training.
    pub input_dropout: f64,
    /// Share of the values that is dropped after every block in training.
    pub dropout: f64,
}

/// The size of the convolutional networks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GanSize {
    /// As in the paper's published code.
    #[default]
    Paper,
    /// A quarter of the discriminator's channels and an eighth of the generator's, and a step size of 0.001, for experiments in
    /// minutes.
    Small,
}

impl Default for GanConstants {
    fn default() -> Self {
        Self {
            batch: 100,
            learning_rate: 0.001,
            beta1: 0.5,
            beta2: 0.999,
            adam_epsilon: 1e-4,
            average_rate: 2e-3,
            unlabelled_weight: 1.0,
            latent: 100,
            initial_images: 500,
            input_noise: 0.3,
            hidden_noise: 0.5,
            discriminator: vec![1000, 500, 250, 250, 250],
            generator: vec![500, 500],
            convolutional: ConvolutionalConstants::default(),
        }
    }
}

impl Default for ConvolutionalConstants {
    fn default() -> Self {
        Self {
            channels: vec![64, 128],
            generator: vec![512, 256, 128],
            learning_rate: 0.0003,
            input_dropout: 0.2,
            dropout: 0.5,
        }
    }
}

impl ConvolutionalConstants {
    pub(super) fn of_size(&self, size: GanSize) -> Self {
        match size {
            GanSize::Paper => self.clone(),
            GanSize::Small => {
                let smaller = |channels: &[usize], by: usize| channels.iter().map(|&count| count / by).collect();
                let (channels, generator) = (smaller(&self.channels, 4), smaller(&self.generator, 8));
                Self { channels, generator, learning_rate: 0.001, ..*self }
            }
        }
    }
}
