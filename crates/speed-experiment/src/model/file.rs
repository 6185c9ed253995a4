//! The bytes of a model's file: safetensors with one entry of metadata.

use std::collections::HashMap;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensorError, SafeTensors};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use speed_nn::training::{AnyClassifier, NamedTensors, TensorValues};

use super::card::{FORMAT, ModelCard};
use crate::error::ModelFault;

/// The entry of the metadata.
const ENTRY: &str = "speed";
/// Maximum length of the header in bytes: hundreds of tensors, and 256 long names of classes.
const MAX_HEADER: u64 = 1 << 20;
/// The bytes of the header's length.
const LENGTH: usize = 8;

/// The entry of the metadata, in JSON.
#[derive(Serialize, Deserialize)]
struct Sealed<C> {
    /// The checksum of card and tensors.
    sha256: String,
    model: C,
}

/// Returns the bytes of the file of a network with its description. Equal networks and descriptions give equal bytes.
///
/// # Errors
/// If the network has parameters that are not floating-point tensors, or its device fails.
pub fn to_bytes(card: &ModelCard, network: &dyn AnyClassifier) -> Result<Vec<u8>, ModelFault> {
    let unwritable = |reason: String| ModelFault::Unwritable { reason };
    let tensors = network.tensors()?;
    let bytes: Vec<(&String, &TensorValues, Vec<u8>)> =
        tensors.iter().map(|(name, tensor)| (name, tensor, little_endian(&tensor.values))).collect();
    let views = bytes.iter().map(|(name, tensor, bytes)| {
        let view = TensorView::new(Dtype::F32, tensor.shape.clone(), bytes);
        view.map(|view| (name.as_str(), view)).map_err(|error| unwritable(error.to_string()))
    });
    let views = views.collect::<Result<Vec<_>, _>>()?;
    let sealed = Sealed { sha256: checksum(card, &tensors)?, model: card };
    let entry = serde_json::to_string(&sealed).map_err(|error| unwritable(error.to_string()))?;
    // The order of several entries would be random.
    let metadata = HashMap::from([(ENTRY.to_owned(), entry)]);
    safetensors::serialize(views, Some(metadata)).map_err(|error| unwritable(error.to_string()))
}

/// Reads the bytes of a file. Card, names, shapes and values are as they were written, but the card's network may not
/// exist. Memory is bounded by a small multiple of the length of `bytes`.
///
/// # Errors
/// If the bytes are not a model, or were changed.
pub(super) fn from_bytes(bytes: &[u8]) -> Result<(ModelCard, NamedTensors), ModelFault> {
    if let Some(length) = bytes.first_chunk::<LENGTH>().map(|length| u64::from_le_bytes(*length))
        && length > MAX_HEADER
        && bytes.len() as u64 > MAX_HEADER
    {
        return Err(ModelFault::LongHeader { max: MAX_HEADER, found: length });
    }
    let format = |error: SafeTensorError| ModelFault::Format { reason: error.to_string() };
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(format)?;
    let entry = metadata.metadata().as_ref().and_then(|entries| entries.get(ENTRY)).ok_or(ModelFault::Foreign)?;
    let Sealed { sha256, model: card } = read_entry(entry)?;
    card.check()?;
    let tensors = SafeTensors::deserialize(bytes).map_err(format)?.tensors();
    let tensors = tensors.into_iter().map(|(name, view)| {
        if view.dtype() != Dtype::F32 {
            return Err(ModelFault::Type { name, found: format!("{:?}", view.dtype()) });
        }
        Ok((name, TensorValues { shape: view.shape().to_vec(), values: values(view.data()) }))
    });
    let tensors = tensors.collect::<Result<NamedTensors, _>>()?;
    if checksum(&card, &tensors)? != sha256 {
        return Err(ModelFault::Damaged);
    }
    Ok((card, tensors))
}

/// Reads the entry of the metadata; the version decides first, because other versions have other fields.
fn read_entry(entry: &str) -> Result<Sealed<ModelCard>, ModelFault> {
    let invalid = |error: serde_json::Error| ModelFault::Card { reason: error.to_string() };
    let any: Sealed<Value> = serde_json::from_str(entry).map_err(invalid)?;
    match any.model.get("format").and_then(Value::as_u64) {
        Some(found) if found != u64::from(FORMAT) => Err(ModelFault::Version { found, expected: FORMAT }),
        _ => serde_json::from_str(entry).map_err(invalid),
    }
}

/// Returns the checksum of a card and tensors, in hexadecimal digits.
fn checksum(card: &ModelCard, tensors: &NamedTensors) -> Result<String, ModelFault> {
    let card = serde_json::to_vec(card).map_err(|error| ModelFault::Unwritable { reason: error.to_string() })?;
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    part(&card);
    for (name, TensorValues { shape, values }) in tensors {
        part(name.as_bytes());
        part(&shape.iter().flat_map(|&length| (length as u64).to_le_bytes()).collect::<Vec<u8>>());
        part(&little_endian(values));
    }
    Ok(hex::encode(hash.finalize()))
}

fn little_endian(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn values(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)).collect()
}
