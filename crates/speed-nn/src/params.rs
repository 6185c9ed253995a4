//! Parameter names that are stable from run to run, and records of parameter values.

use burn::module::{Module, ModuleMapper, Param, ParamId};
use burn::store::{ModuleRecord, RecordError};
use burn::tensor::{Bool, Bytes, Int, Tensor};

use crate::device::DeviceError;

/// Numbers the parameters of a model 1, 2, ... in the order of its fields.
///
/// Burn gives every parameter a random identifier and writes it into records, so two equal models have different bytes.
/// With numbers instead, equal models have equal bytes. Call it once, before passing the model to an optimizer.
pub fn number_parameters<M: Module>(model: M) -> M {
    model.map(&mut Numbers { used: 0 })
}

/// The reason why parameters cannot be written, or why a record does not belong to this network.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the fields")]
#[non_exhaustive]
pub enum ParameterError {
    /// Burn cannot write or read the record.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The record is longer or shorter than one of this network.
    #[error("expected the {expected} bytes of this network's record, found {found} bytes")]
    Length { expected: usize, found: usize },
    /// The record has other parameters.
    #[error("the record belongs to another network")]
    Other,
    /// Values could not be read from the device.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// Returns Burn's record of a network's parameters. Numbered networks with equal parameters have equal records.
///
/// # Errors
/// If Burn cannot write it.
pub fn to_record(model: &impl Module) -> Result<Vec<u8>, ParameterError> {
    Ok(model.clone().into_record().into_bytes()?.to_vec())
}

/// Returns the network with the parameters of a record.
pub(crate) fn with_record<M: Module>(model: M, record: &[u8]) -> Result<M, ParameterError> {
    let (expected, found) = (to_record(&model)?.len(), record.len());
    if expected != found {
        return Err(ParameterError::Length { expected, found });
    }
    let read = ModuleRecord::from_bytes(Bytes::from_bytes_vec(record.to_vec()))?;
    let model = model.try_load_record(read.cast_to_module_dtype())?;
    // Burn reads the parts of a record that it knows, and adopts the record's numbers.
    if to_record(&model)? == record { Ok(model) } else { Err(ParameterError::Other) }
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
