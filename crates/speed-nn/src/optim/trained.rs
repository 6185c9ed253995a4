//! A network and its optimiser.

use std::collections::BTreeMap;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::optim::{AdamState, AdaptiveMomentumState, GradientsParams, Optimizer};
use burn::tensor::{Tensor, TensorData};

use super::Adam;
use crate::device::{DeviceError, values};
use crate::params::{ParameterError, to_record, with_record};

/// A network in training, and the optimiser with its state.
///
/// A step changes parameters in place. Clones and copies without gradients share the memory, so as long as one exists,
/// a step copies all parameters.
pub struct Trained<M, O: Optimizer = Adam> {
    /// Absent only during a step.
    network: Option<M>,
    optimizer: O,
    states: States<O>,
}

/// The state of every parameter that a step has changed, keyed by the parameter's number, flat.
type States<O> = BTreeMap<u64, <O as Optimizer>::State<1>>;

/// The reason why a step was not made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the fields")]
pub enum StepError {
    /// The loss is infinite or not a number.
    #[error("the loss is {loss}")]
    NotFinite { loss: f64 },
    /// The loss could not be read.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl<M: Module, O: Optimizer> Trained<M, O> {
    /// Takes a network on a device with gradients.
    pub fn new(network: M, optimizer: O) -> Self {
        Self { network: Some(network), optimizer, states: BTreeMap::new() }
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
    pub fn frozen(&self) -> M {
        self.network().valid()
    }

    /// Makes a step at a learning rate against the gradient of a loss of shape `[1]`. Returns the loss before the step.
    ///
    /// # Errors
    /// [`StepError`]; the network is then unchanged.
    ///
    /// # Panics
    /// If the loss is not one value or was computed without gradients, and after a step that panicked.
    pub fn step(&mut self, rate: f64, loss: &Tensor<1>) -> Result<f64, StepError> {
        assert_eq!(loss.dims(), [1], "shape of a loss");
        let value = f64::from(values(loss.clone().inner())?[0]);
        if !value.is_finite() {
            return Err(StepError::NotFinite { loss: value });
        }
        let network = self.network.take().expect("a network between steps");
        let gradients = GradientsParams::from_grads(loss.backward(), &network);
        let mut step = OptimizerStep { optimizer: &self.optimizer, rate, gradients, states: &mut self.states };
        self.network = Some(network.map(&mut step));
        Ok(value)
    }
}

/// A step for every parameter that has a gradient.
struct OptimizerStep<'a, O: Optimizer> {
    optimizer: &'a O,
    rate: f64,
    gradients: GradientsParams,
    states: &'a mut States<O>,
}

impl<O: Optimizer> ModuleMapper for OptimizerStep<'_, O> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(gradient) = self.gradients.remove::<D>(param.id) else { return param };
        let (id, tensor, mapper) = param.consume();
        let (dims, is_trained) = (tensor.dims(), tensor.is_require_grad());
        let length = dims.iter().product::<usize>();
        let (tensor, gradient) = (tensor.inner().reshape([length]), gradient.reshape([length]));
        let (tensor, state) = self.optimizer.step(self.rate, tensor, gradient, self.states.remove(&id.val()));
        if let Some(state) = state {
            self.states.insert(id.val(), state);
        }
        let tensor = Tensor::from_inner(tensor.reshape(dims)).set_require_grad(is_trained);
        Param::from_mapped_value(id, tensor, mapper)
    }
}

impl<M: Module> Trained<M, Adam> {
    /// Returns Burn's record of the network, and the optimiser's state: for every parameter in network order its
    /// number, its steps, its length (`u64`), and both moments (`f32`), all little-endian. The state is empty before
    /// the first step.
    ///
    /// # Errors
    /// [`ParameterError`].
    pub fn to_records(&self) -> Result<[Vec<u8>; 2], ParameterError> {
        let mut state = Vec::new();
        for (id, length) in trained(self.network()) {
            let Some(AdamState { momentum, .. }) = self.states.get(&id) else { continue };
            for number in [id, momentum.time as u64, length as u64] {
                state.extend(number.to_le_bytes());
            }
            for moment in [&momentum.moment_1, &momentum.moment_2] {
                state.extend(values(moment.clone())?.iter().flat_map(|value| value.to_le_bytes()));
            }
        }
        Ok([to_record(&self.frozen())?, state])
    }

    /// Returns the training with the network and the optimiser's state of the given records.
    ///
    /// # Errors
    /// [`ParameterError`] if they are not records of this network.
    pub fn with_records(self, network: &[u8], state: &[u8]) -> Result<Self, ParameterError> {
        let parameters = trained(self.network());
        let device = self.frozen().devices().into_iter().next().unwrap_or_default();
        let expected = parameters.iter().map(|(_, length)| 24 + 8 * length).sum();
        let (mut states, mut rest) = (BTreeMap::new(), state);
        if !state.is_empty() && state.len() != expected {
            return Err(ParameterError::Length { expected, found: state.len() });
        }
        for (id, length) in parameters.into_iter().filter(|_| !state.is_empty()) {
            let (head, tail) = rest.split_at(24);
            let [own, time, own_length] =
                [0, 8, 16].map(|at| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes")));
            if (own, own_length) != (id, length as u64) {
                return Err(ParameterError::Other);
            }
            let (moments, tail) = tail.split_at(8 * length);
            let moment = |bytes: &[u8]| {
                let values: Vec<f32> = bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
                Tensor::<1>::from_data(TensorData::new(values, [length]), &device)
            };
            let (first, second) = moments.split_at(4 * length);
            let time = usize::try_from(time).map_err(|_| ParameterError::Other)?;
            let momentum = AdaptiveMomentumState::new(time, moment(first), moment(second));
            states.insert(id, AdamState::new(momentum));
            rest = tail;
        }
        let network = self.network.map(|own| with_record(own, network)).transpose()?;
        Ok(Self { network, states, ..self })
    }
}

/// Returns the numbers and lengths of the trained parameters, in network order.
fn trained(network: &impl Module) -> Vec<(u64, usize)> {
    struct Trained(Vec<(u64, usize)>);
    impl ModuleVisitor for Trained {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let value = param.val();
            if value.is_require_grad() {
                self.0.push((param.id.val(), value.shape().num_elements()));
            }
        }
    }
    let mut trained = Trained(Vec::new());
    network.visit(&mut trained);
    trained.0
}

impl<M, O: Optimizer> std::fmt::Debug for Trained<M, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trained").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use burn::backend::{BackendTensor, DispatchTensorKind};
    use burn::tensor::Device;

    use super::*;
    use crate::flex;
    use crate::init::constant;
    use crate::layers::Dense;
    use crate::ops::activation::Activation;
    use crate::optim::{Adam, Epsilon};

    /// The memory addresses of the values of every parameter.
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

    fn numbered() -> Trained<Dense> {
        let Trained { network, optimizer, states } = trained();
        Trained { network: network.map(crate::params::number_parameters), optimizer, states }
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
        // A clone shares the parameters, so a step has to copy them.
        let clone = trained.network().clone();
        let loss = loss(trained.network());
        trained.step(0.1, &loss).expect("a finite loss");
        assert_eq!(addresses(&clone), before);
        assert!(addresses(trained.network()).iter().zip(&before).all(|(now, before)| now != before));
    }

    #[test]
    fn a_training_resumes_from_its_own_records_only() {
        let step = |trained: &mut Trained<Dense>| {
            let loss = loss(trained.network());
            trained.step(0.1, &loss).expect("a finite loss");
        };
        let mut one = numbered();
        let [network, state] = one.to_records().expect("records");
        assert!(state.is_empty());
        assert!(numbered().with_records(&network, &state).is_ok());
        (0..3).for_each(|_| step(&mut one));
        let [network, state] = one.to_records().expect("records");
        assert_eq!(state.len(), 2 * 24 + 8 * (12 + 4));
        let mut other = numbered().with_records(&network, &state).expect("its own");
        for trained in [&mut one, &mut other] {
            step(trained);
        }
        assert_eq!(one.to_records().expect("records"), other.to_records().expect("records"));

        for length in 1..state.len() {
            let found = numbered().with_records(&network, &state[..length]).err();
            assert!(matches!(found, Some(ParameterError::Length { .. })), "{length}");
        }
        // The parameter's number, and its length.
        for place in [0, 16] {
            let mut state = state.clone();
            state[place] ^= 1;
            assert!(matches!(numbered().with_records(&network, &state).err(), Some(ParameterError::Other)));
        }
        let mut late = state;
        late[8..16].fill(0xff);
        let mut late = numbered().with_records(&network, &late).expect("many steps");
        step(&mut late);
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
