//! Settings of the convolutional networks.

use serde::{Deserialize, Serialize};
use speed_nn::training::InvalidField;

/// Settings of the convolutional networks; [`StudentConfig`](crate::StudentConfig) has the settings of their training. The default is the paper's published code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvolutionalConfig {
    /// Channels of the discriminator's blocks. A block has three 3x3 convolutions, the last of which halves rows and columns. Three more
    /// convolutions with the last number of channels follow the blocks.
    pub channels: Vec<usize>,
    /// Channels of the generator's maps, from the smallest map on; rows and columns double after each map.
    pub generator: Vec<usize>,
    /// Share of the discriminator's inputs that is dropped in training.
    pub input_dropout: f64,
    /// Share of the values that is dropped after every block in training.
    pub dropout: f64,
}

impl Default for ConvolutionalConfig {
    fn default() -> Self {
        Self { channels: vec![64, 128], generator: vec![512, 256, 128], input_dropout: 0.2, dropout: 0.5 }
    }
}

impl ConvolutionalConfig {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Checks every field separately.
    pub(crate) fn check(&self) -> Result<(), InvalidField> {
        const MOST: usize = 4096;
        for (field, sizes) in [("convolutional.channels", &self.channels), ("convolutional.generator", &self.generator)]
        {
            let is_possible = (1..=8).contains(&sizes.len()) && sizes.iter().all(|size| (1..=MOST).contains(size));
            InvalidField::unless(is_possible, field, || {
                format!("must have 1 to 8 numbers from 1 to {MOST}, not {sizes:?}")
            })?;
        }
        InvalidField::within("convolutional.input_dropout", self.input_dropout, 0.0..=0.99)?;
        InvalidField::within("convolutional.dropout", self.dropout, 0.0..=0.99)
    }
}
