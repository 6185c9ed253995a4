//! A network in training together with the average of its parameters.

use burn::module::Module;
use burn::tensor::Tensor;

use super::{Adam, StepError, Trained};
use crate::average::Average;
use crate::params::ParameterError;

/// A network in training, and an [`Average`] that is updated with its parameters after every step.
#[derive(Debug)]
pub struct Averaged<M> {
    network: Trained<M>,
    average: Average<M>,
}

impl<M: Module> Averaged<M> {
    /// Takes a network on a device with gradients, its optimiser, and the average's rate per step.
    pub fn new(network: M, optimizer: Adam, rate: f64) -> Self {
        Self { average: Average::new(rate, &network), network: Trained::new(network, optimizer) }
    }

    /// Returns the network.
    ///
    /// # Panics
    /// After a step that panicked.
    pub fn network(&self) -> &M {
        self.network.network()
    }

    /// Returns the network without gradients.
    ///
    /// # Panics
    /// After a step that panicked.
    pub fn frozen(&self) -> M {
        self.network.frozen()
    }

    /// Returns the network with the average of its parameters, without gradients.
    ///
    /// # Panics
    /// After a step that panicked.
    pub fn averaged(&self) -> M {
        self.average.corrected(self.network())
    }

    /// Makes a step as [`Trained::step`] does.
    ///
    /// # Errors
    /// [`StepError`]; network and average are then unchanged.
    ///
    /// # Panics
    /// Like [`Trained::step`].
    pub fn step(&mut self, rate: f64, loss: &Tensor<1>) -> Result<f64, StepError> {
        let loss = self.network.step(rate, loss)?;
        self.average.update(1, self.network.network());
        Ok(loss)
    }

    /// Returns the records of network, optimiser and average.
    ///
    /// # Errors
    /// [`ParameterError`].
    pub fn to_records(&self) -> Result<[Vec<u8>; 3], ParameterError> {
        let [network, optimizer] = self.network.to_records()?;
        Ok([network, optimizer, self.average.to_record()?])
    }

    /// Returns the training with the state of the given records.
    ///
    /// # Errors
    /// [`ParameterError`] if they are not records of this network.
    pub fn with_records(self, [network, optimizer, average]: &[Vec<u8>; 3]) -> Result<Self, ParameterError> {
        let network = self.network.with_records(network, optimizer)?;
        Ok(Self { network, average: self.average.with_record(average)? })
    }
}
