//! Names of parameters that do not change from run to run.

use burn::module::{Module, ModuleMapper, Param, ParamId};
use burn::tensor::{Bool, Int, Tensor};

/// Numbers the parameters of a model 1, 2, ... in the order of its fields.
///
/// Burn gives every parameter a random identifier and writes it into records, so two equal models have different
/// bytes. With numbers instead, equal models have equal bytes. Call it once, before an optimizer sees the model.
#[must_use]
pub fn number_parameters<M: Module>(model: M) -> M {
    model.map(&mut Numbers { used: 0 })
}

struct Numbers {
    used: u64,
}

impl Numbers {
    fn next(&mut self) -> ParamId {
        self.used += 1;
        ParamId::from(self.used)
    }
}

impl ModuleMapper for Numbers {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let (_, value, mapper) = param.consume();
        Param::from_mapped_value(self.next(), value, mapper)
    }

    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        let (_, value, mapper) = param.consume();
        Param::from_mapped_value(self.next(), value, mapper)
    }

    fn map_bool<const D: usize>(&mut self, param: Param<Tensor<D, Bool>>) -> Param<Tensor<D, Bool>> {
        let (_, value, mapper) = param.consume();
        Param::from_mapped_value(self.next(), value, mapper)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::Dense;
    use crate::init;
    use burn::tensor::Device;

    fn bytes(model: impl Module) -> Vec<u8> {
        model.into_record().into_bytes().expect("a record in memory").to_vec()
    }

    #[test]
    fn equal_models_have_equal_bytes() {
        let device = Device::flex();
        let model = |bias: f32| Dense::new(init::constant([2, 3], 0.5, &device), init::constant([3], bias, &device));
        assert_eq!(bytes(number_parameters(model(1.0))), bytes(number_parameters(model(1.0))));
        assert_ne!(bytes(number_parameters(model(1.0))), bytes(number_parameters(model(2.0))));
    }
}
