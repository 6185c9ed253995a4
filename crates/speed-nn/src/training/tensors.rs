//! The parameters of a network by name, for files that other programs read too.

use std::collections::BTreeMap;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Bool, Int, Tensor, TensorData};

use crate::device::{DeviceError, values};

/// The parameters of a network by name. A name is the path of fields to the parameter, for example `hidden.0.weight`.
pub type NamedTensors = BTreeMap<String, TensorValues>;

/// The shape and the values of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorValues {
    /// Length of each axis.
    pub shape: Vec<usize>,
    /// All values, in row-major order.
    pub values: Vec<f32>,
}

/// The reason why parameters cannot be collected, or why they do not belong to a network.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TensorError {
    /// A tensor differs from the network's parameter of its name, or one of them is missing: its name, with the expected and the found value.
    #[error("{0}")]
    Differs(String),
    /// Values could not be read from the device.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// Returns the parameters of a network.
pub(super) fn collect(network: &impl Module) -> Result<NamedTensors, TensorError> {
    let mut collector = Collector { path: Vec::new(), found: Ok(NamedTensors::new()) };
    network.visit(&mut collector);
    collector.found
}

/// Returns a network with these parameters.
///
/// # Errors
/// If names or shapes differ from the network's parameters, or a value is not finite.
pub(super) fn replace<M: Module>(network: M, tensors: NamedTensors) -> Result<M, TensorError> {
    let mut loader = Loader { path: Vec::new(), tensors, fault: None };
    let network = network.map(&mut loader);
    let Loader { tensors, fault, .. } = loader;
    match (fault, tensors.into_keys().next()) {
        (Some(fault), _) => Err(fault),
        (None, Some(name)) => {
            Err(TensorError::Differs(format!("expected no tensor {name:?} for this network, found one")))
        }
        (None, None) => Ok(network),
    }
}

fn other_kind(path: &[String]) -> TensorError {
    let name = path.join(".");
    TensorError::Differs(format!("expected a network of floating-point parameters, found other values in {name}"))
}

/// Reads the parameters of a network, up to the first fault.
struct Collector {
    path: Vec<String>,
    found: Result<NamedTensors, TensorError>,
}

impl Collector {
    fn refuse_kind(&mut self) {
        if self.found.is_ok() {
            self.found = Err(other_kind(&self.path));
        }
    }
}

impl ModuleVisitor for Collector {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Ok(found) = &mut self.found else { return };
        let tensor = param.val();
        let shape = tensor.dims().to_vec();
        match values(tensor) {
            Ok(values) => {
                found.insert(self.path.join("."), TensorValues { shape, values });
            }
            Err(error) => self.found = Err(error.into()),
        }
    }

    fn visit_int<const D: usize>(&mut self, _: &Param<Tensor<D, Int>>) {
        self.refuse_kind();
    }

    fn visit_bool<const D: usize>(&mut self, _: &Param<Tensor<D, Bool>>) {
        self.refuse_kind();
    }
}

/// Replaces the parameters of a network, up to the first fault.
struct Loader {
    path: Vec<String>,
    /// The parameters that are not used yet.
    tensors: NamedTensors,
    fault: Option<TensorError>,
}

impl Loader {
    fn take(&mut self, expected: &[usize]) -> Result<TensorValues, TensorError> {
        let name = self.path.join(".");
        let Some(found) = self.tensors.remove(&name) else {
            return Err(TensorError::Differs(format!("expected the tensor {name} of shape {expected:?}, found none")));
        };
        if found.shape != expected || found.values.len() != expected.iter().product::<usize>() {
            let (shape, values) = (found.shape, found.values.len());
            return Err(TensorError::Differs(format!(
                "tensor {name}: expected shape {expected:?}, found {shape:?} with {values} values"
            )));
        }
        match found.values.iter().find(|value| !value.is_finite()) {
            Some(found) => Err(TensorError::Differs(format!("tensor {name}: expected finite values, found {found}"))),
            None => Ok(found),
        }
    }

    fn refuse_kind(&mut self) {
        self.fault.get_or_insert_with(|| other_kind(&self.path));
    }
}

impl ModuleMapper for Loader {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if self.fault.is_some() {
            return param;
        }
        match self.take(&param.dims()) {
            Ok(TensorValues { values, .. }) => {
                let (id, old, mapper) = param.consume();
                let new = Tensor::from_data(TensorData::new(values, old.dims()), &old.device());
                Param::from_mapped_value(id, new, mapper)
            }
            Err(fault) => {
                self.fault = Some(fault);
                param
            }
        }
    }

    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        self.refuse_kind();
        param
    }

    fn map_bool<const D: usize>(&mut self, param: Param<Tensor<D, Bool>>) -> Param<Tensor<D, Bool>> {
        self.refuse_kind();
        param
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::init;
    use crate::layers::Dense;
    use crate::ops::activation::Activation;
    use crate::params::{number_parameters, to_record};
    use burn::tensor::Device;

    #[derive(Module, Debug)]
    struct Two {
        layers: Vec<Dense>,
    }

    fn network(bias: f32) -> Two {
        let device = Device::flex();
        let layer = |inputs, outputs| {
            let weight = init::constant([inputs, outputs], bias / 2.0, &device);
            Dense::new(weight, init::constant([outputs], bias, &device), Activation::Linear)
        };
        number_parameters(Two { layers: vec![layer(3, 2), layer(2, 4)] })
    }

    #[test]
    fn parameters_return_under_their_names() {
        let tensors = collect(&network(1.0)).expect("floating-point parameters");
        let names: Vec<&str> = tensors.keys().map(String::as_str).collect();
        assert_eq!(names, ["layers.0.bias", "layers.0.weight", "layers.1.bias", "layers.1.weight"]);
        assert_eq!(tensors["layers.1.weight"], TensorValues { shape: vec![2, 4], values: vec![0.5; 8] });
        let loaded = replace(network(3.0), tensors).expect("the same network");
        assert_eq!(to_record(&loaded).expect("a record"), to_record(&network(1.0)).expect("a record"));
    }

    #[test]
    fn other_tensors_are_refused_by_name() {
        let refused = |change: fn(&mut NamedTensors)| {
            let mut tensors = collect(&network(1.0)).expect("floating-point parameters");
            change(&mut tensors);
            replace(network(1.0), tensors).expect_err("refused").to_string()
        };
        let missing = refused(|tensors| drop(tensors.remove("layers.1.bias")));
        assert!(missing.contains("layers.1.bias of shape [4], found none"), "{missing}");
        let shape = refused(|tensors| {
            tensors.insert("layers.0.weight".into(), TensorValues { shape: vec![2, 3], values: vec![0.0; 6] });
        });
        assert!(shape.contains("expected shape [3, 2], found [2, 3]"), "{shape}");
        let unknown = refused(|tensors| {
            tensors.insert("layers.2.bias".into(), TensorValues { shape: vec![1], values: vec![0.0] });
        });
        assert!(unknown.contains("layers.2.bias"), "{unknown}");
        let nan = refused(|tensors| {
            tensors.insert("layers.1.bias".into(), TensorValues { shape: vec![4], values: vec![f32::NAN; 4] });
        });
        assert!(nan.contains("layers.1.bias: expected finite values, found NaN"), "{nan}");
    }
}
