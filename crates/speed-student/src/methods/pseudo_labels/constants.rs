//! Constants of the method, in one place. They were chosen on training images (docs/student.md).

use serde::{Deserialize, Serialize};

use super::Augmentation;

/// Constants of the training and the network; only tests change them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PseudoLabelsConstants {
    /// Decay of Adam's first moment.
    pub beta1: f64,
    /// Decay of Adam's second moment.
    pub beta2: f64,
    /// Smallest deviation by which Adam divides.
    pub adam_epsilon: f64,
    /// Rate per step of the parameter average, which gives the pseudo-labels and the student's accuracy.
    pub average_rate: f64,
    /// Weight of the pseudo-labelled loss relative to the labelled loss.
    pub unlabelled_weight: f64,
    /// Upper limit of the threshold of pseudo-labels, which is the mean confidence over the pool.
    pub threshold: f64,
    /// Strength by which pseudo-labels are drawn towards the class frequencies of the prior: 0 not at all, 1 fully.
    pub alignment: f64,
    /// Assumed share of wrong given labels.
    pub label_noise: f64,
    /// Output channels of the convolutions, each followed by 2x2 pooling; twice as many for [`Views::PhotographedDigits`].
    pub convolutions: Vec<usize>,
    /// Side of the convolutions' kernels.
    pub kernel: usize,
    /// Units of the hidden layer; twice as many for [`Views::PhotographedDigits`].
    pub hidden: usize,
    /// Share of the hidden units that is dropped in training.
    pub dropout: f64,
}

impl Default for PseudoLabelsConstants {
    fn default() -> Self {
        Self {
            beta1: 0.9,
            beta2: 0.999,
            adam_epsilon: 1e-8,
            average_rate: 0.01,
            unlabelled_weight: 1.0,
            threshold: 0.95,
            alignment: 0.5,
            label_noise: 0.05,
            convolutions: vec![16, 32],
            kernel: 5,
            hidden: 128,
            dropout: 0.3,
        }
    }
}

/// The random views of images: weak ones, from which pseudo-labels are predicted, and strong ones, on which the network is trained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Views {
    /// For handwriting.
    #[default]
    Wide,
    /// For handwriting with few, mostly right labels (results/published/frontier).
    Narrow,
    /// For photographs.
    Photographs,
    /// For photographs of digits: the views for photographs, and a network whose first convolution sees only contrasts
    /// ([`ContrastConv`](speed_nn::layers::ContrastConv)), with twice as many channels or units in every layer.
    PhotographedDigits,
}

impl Views {
    pub(super) fn weak(self) -> Augmentation {
        let (shift, bound) = match self {
            Self::Wide => (1.0, 0.1),
            Self::Narrow => (0.5, 0.05),
            Self::Photographs | Self::PhotographedDigits => (1.0, 0.03),
        };
        Augmentation { shift, rotation: bound, scale: bound, shear: bound, elastic: 0.0, erasures: 0, erased: 0.0 }
    }

    pub(super) fn strong(self) -> Augmentation {
        let (rotation, scale, elastic, erasures) = match self {
            Self::Wide => (0.25, 0.2, 0.7, 2),
            Self::Narrow => (0.2, 0.15, 0.5, 2),
            Self::Photographs | Self::PhotographedDigits => (0.1, 0.1, 0.7, 1),
        };
        Augmentation { shift: 2.0, rotation, scale, shear: scale, elastic, erasures, erased: 0.1 }
    }
}
