//! A network and its optimiser.

use burn::module::Module;
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::store::RecordError;
use burn::tensor::{Bytes, Tensor};

use crate::device::{DeviceError, values};
use crate::params::{LoadError, to_record, with_record};

/// A network in training, and the optimiser with its state.
///
/// An optimiser takes a network by value, so that it changes parameters where they lie: clones and copies without gradients share
/// them, and as long as one lives a step copies them all.
pub struct Trained<M> {
    /// Absent only while a step is made.
    network: Option<M>,
    optimizer: ModuleOptimizer,
}

/// A step that was not made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StepError {
    /// The loss is infinite or not a number.
    #[error("the loss is {loss}")]
    NotFinite {
        /// The loss.
        loss: f64,
    },
    /// The loss could not be read.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl<M: Module> Trained<M> {
    /// Takes a network on a device with gradients.
    #[must_use]
    pub fn new(network: M, optimizer: impl Into<ModuleOptimizer>) -> Self {
        Self { network: Some(network), optimizer: optimizer.into() }
    }

    /// Returns the network.
    ///
    /// # Panics
    /// After a step that panicked.
    pub fn network(&self) -> &M {
        self.network.as_ref().expect("a network between steps")
    }

    /// Returns the network without gradients.
    ///
    /// # Panics
    /// After a step that panicked.
    #[must_use]
    pub fn frozen(&self) -> M {
        self.network().valid()
    }

    /// Makes a step at a learning rate against the gradient of a loss of shape `[1]`. Returns the loss before the step.
    ///
    /// # Errors
    /// [`StepError`]; the network is then as it was.
    ///
    /// # Panics
    /// When the loss was computed without gradients, and after a step that panicked.
    pub fn step(&mut self, rate: f64, loss: &Tensor<1>) -> Result<f64, StepError> {
        let value = f64::from(values(loss.clone().inner())?[0]);
        if !value.is_finite() {
            return Err(StepError::NotFinite { loss: value });
        }
        let network = self.network.take().expect("a network between steps");
        let gradients = GradientsParams::from_grads(loss.backward(), &network);
        self.network = Some(self.optimizer.step(rate, network, gradients));
        Ok(value)
    }

    /// Returns Burn's records of the network and of the optimiser's state.
    ///
    /// # Errors
    /// If Burn cannot write them.
    pub fn to_records(&self) -> Result<[Vec<u8>; 2], RecordError> {
        Ok([to_record(&self.frozen())?, self.optimizer.into_bytes()?.to_vec()])
    }

    /// Returns the same training with the network and the optimiser's state of other records.
    ///
    /// # Errors
    /// If they are not those of this network.
    pub fn with_records(self, network: &[u8], optimizer: &[u8]) -> Result<Self, LoadError> {
        let (found, record) = (optimizer.len(), Bytes::from_bytes_vec(optimizer.to_vec()));
        let optimizer = self.optimizer.from_bytes(record)?;
        // Burn reads no further than its record goes.
        let expected = optimizer.into_bytes()?.len();
        if expected != found {
            return Err(LoadError::Length { expected, found });
        }
        Ok(Self { network: self.network.map(|own| with_record(own, network)).transpose()?, optimizer })
    }
}

impl<M> std::fmt::Debug for Trained<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trained").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use burn::backend::{BackendTensor, DispatchTensorKind};
    use burn::module::Param;
    use burn::tensor::Device;

    use super::*;
    use crate::flex;
    use crate::init::constant;
    use crate::layers::Dense;
    use crate::ops::activation::Activation;
    use crate::optim::{Adam, Epsilon};

    /// Where the values of every parameter lie.
    #[derive(Default)]
    struct Addresses(Vec<*const f32>);

    impl burn::module::ModuleVisitor for Addresses {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            match param.val().inner().into_dispatch().kind {
                DispatchTensorKind::Flex(BackendTensor::Float(array)) => self.0.push(flex::values(&array).as_ptr()),
                _ => panic!("a tensor of Flex"),
            }
        }
    }

    fn addresses(network: &impl Module) -> Vec<*const f32> {
        let mut addresses = Addresses::default();
        network.visit(&mut addresses);
        addresses.0
    }

    fn trained() -> Trained<Dense> {
        let device = Device::flex().autodiff();
        let layer = Dense::new(constant([3, 4], 0.5, &device), constant([4], 0.5, &device), Activation::Linear);
        Trained::new(layer, Adam { beta1: 0.9, beta2: 0.999, epsilon: Epsilon::Outside(1e-8) })
    }

    fn loss(layer: &Dense) -> Tensor<1> {
        layer.forward(constant([2, 3], 1.0, &Device::flex())).sum()
    }

    #[test]
    fn a_step_changes_parameters_where_they_lie() {
        let mut trained = trained();
        let before = addresses(trained.network());
        for _ in 0..3 {
            let loss = loss(trained.network());
            trained.step(0.1, &loss).expect("a finite loss");
        }
        assert_eq!(addresses(trained.network()), before);
        // A clone shares them, so a step has to copy.
        let clone = trained.network().clone();
        let loss = loss(trained.network());
        trained.step(0.1, &loss).expect("a finite loss");
        assert_eq!(addresses(&clone), before);
        assert!(addresses(trained.network()).iter().zip(&before).all(|(now, before)| now != before));
    }

    #[test]
    fn a_loss_that_is_not_finite_changes_nothing() {
        let mut trained = trained();
        let before = trained.to_records().expect("records");
        let loss = loss(trained.network()) * f32::INFINITY;
        assert!(matches!(trained.step(0.1, &loss), Err(StepError::NotFinite { .. })));
        assert_eq!(trained.to_records().expect("records"), before);
    }
}
