//! The bytes of models' files: safetensors with one entry of metadata.

use std::collections::HashMap;
use std::fmt::Display;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensorError, SafeTensors};
use serde_json::Value;
use sha2::{Digest, Sha256};
use speed_core::{ExitCode, printable};
use speed_nn::training::{NamedTensors, TensorValues};

use super::description::{Description, FORMAT, not_valid, other_format};
use crate::error::ExperimentError;

/// Maximum length of a model's file in bytes: ten times the length of the largest network here.
pub(crate) const MAX_FILE: u64 = 1 << 30;
const ENTRY: &str = "speed";
/// Maximum length of the header in bytes: hundreds of tensors, and 256 long names of classes.
const MAX_HEADER: u64 = 1 << 20;
/// The bytes of the header's length.
const LENGTH: usize = 8;
/// The text of the entry around the checksum and around the description. The entry is JSON, but its layout is fixed, so that
/// the checksum covers the description's own bytes.
const SEAL: [&str; 3] = ["{\"sha256\":\"", "\",\"model\":", "}"];

/// Returns the bytes of the file of these tensors with a description. Equal inputs give equal bytes.
pub(super) fn described_to_bytes(
    description: &Description,
    tensors: &NamedTensors,
) -> Result<Vec<u8>, ExperimentError> {
    let text = serde_json::to_string(description).map_err(unwritable)?;
    let [before, between, after] = SEAL;
    let entry = format!("{before}{}{between}{text}{after}", checksum(&text, tensors));
    // The order of several entries would be random.
    serialize(tensors, Some(HashMap::from([(ENTRY.to_owned(), entry)])))
}

/// Reads the bytes of a model's file. Description, names, shapes and values are as they were written, but the
/// description's network may not exist. Memory is bounded by a small multiple of the length of `bytes`.
pub(super) fn described_from_bytes(bytes: &[u8]) -> Result<(Description, NamedTensors), ExperimentError> {
    check_header(bytes)?;
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(format)?;
    let entries = metadata.metadata().as_ref().filter(|entries| entries.len() == 1);
    let entry = entries.and_then(|entries| entries.get(ENTRY)).ok_or_else(|| {
        let expected = "expected a model of speed, found tensors without its description (metadata entry `speed`)";
        ExperimentError::fault(expected)
    })?;
    let (sha256, text) = opened(entry)?;
    let description = read_description(text)?;
    description.check()?;
    let tensors = from_bytes(bytes)?;
    if checksum(text, &tensors) != sha256 {
        let fault =
            "it is damaged or was changed: its contents do not match its checksum; copy it again, or train again";
        return Err(ExperimentError::fault(fault));
    }
    Ok((description, tensors))
}

/// Reads the tensors of a file. Memory is bounded by a small multiple of the length of `bytes`.
pub(super) fn from_bytes(bytes: &[u8]) -> Result<NamedTensors, ExperimentError> {
    check_header(bytes)?;
    let tensors = SafeTensors::deserialize(bytes).map_err(format)?.tensors();
    let tensors = tensors.into_iter().map(|(name, view)| {
        if view.dtype() != Dtype::F32 {
            let (name, found) = (printable(&name), view.dtype());
            return Err(ExperimentError::fault(format_args!("tensor {name}: expected type F32, found {found:?}")));
        }
        Ok((name, TensorValues { shape: view.shape().to_vec(), values: values(view.data()) }))
    });
    tensors.collect()
}

/// Returns the bytes of a file of these tensors.
pub(super) fn serialize(
    tensors: &NamedTensors,
    metadata: Option<HashMap<String, String>>,
) -> Result<Vec<u8>, ExperimentError> {
    let bytes: Vec<(&String, &TensorValues, Vec<u8>)> =
        tensors.iter().map(|(name, tensor)| (name, tensor, little_endian(&tensor.values))).collect();
    let views = bytes.iter().map(|(name, tensor, bytes)| {
        let view = TensorView::new(Dtype::F32, tensor.shape.clone(), bytes);
        view.map(|view| (name.as_str(), view)).map_err(unwritable)
    });
    let views = views.collect::<Result<Vec<_>, _>>()?;
    let bytes = safetensors::serialize(views, metadata).map_err(unwritable)?;
    check_header(&bytes)?;
    Ok(bytes)
}

/// Refuses a long header before memory is reserved for its values.
fn check_header(bytes: &[u8]) -> Result<(), ExperimentError> {
    let length = bytes.first_chunk::<LENGTH>().map_or(0, |length| u64::from_le_bytes(*length));
    if length > MAX_HEADER && bytes.len() as u64 > MAX_HEADER {
        let expected = format_args!("expected a model with a header of at most {MAX_HEADER} bytes, found {length}");
        return Err(ExperimentError::fault(expected));
    }
    Ok(())
}

/// Returns the checksum and the text of the description of an entry.
fn opened(entry: &str) -> Result<(&str, &str), ExperimentError> {
    let [before, between, after] = SEAL;
    let parts = entry.strip_prefix(before).and_then(|rest| rest.split_once(between));
    let parts = parts.and_then(|(sha256, rest)| Some((sha256, rest.strip_suffix(after)?)));
    parts.ok_or_else(|| not_valid("expected a checksum and a description"))
}

/// Reads the text of a description; the version decides first, because other versions have other fields.
fn read_description(text: &str) -> Result<Description, ExperimentError> {
    let invalid = |error: serde_json::Error| not_valid(&error.to_string());
    let any: Value = serde_json::from_str(text).map_err(invalid)?;
    match any.get("format").and_then(Value::as_u64) {
        Some(found) if found != u64::from(FORMAT) => Err(other_format(found)),
        _ => serde_json::from_str(text).map_err(invalid),
    }
}

/// Returns the checksum of a description's text and of tensors, in hexadecimal digits.
fn checksum(text: &str, tensors: &NamedTensors) -> String {
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    part(text.as_bytes());
    for (name, TensorValues { shape, values }) in tensors {
        part(name.as_bytes());
        part(&shape.iter().flat_map(|&length| (length as u64).to_le_bytes()).collect::<Vec<u8>>());
        part(&little_endian(values));
    }
    hex::encode(hash.finalize())
}

fn format(error: SafeTensorError) -> ExperimentError {
    let expected =
        "expected a model of speed (models/ROW/student-0.safetensors of a run), found other or truncated bytes";
    ExperimentError::fault(format_args!("{expected}: {}", printable(&error.to_string())))
}

pub(super) fn unwritable(reason: impl Display) -> ExperimentError {
    ExperimentError::new(ExitCode::Computation, format_args!("cannot write the model: {reason}"))
}

fn little_endian(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn values(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)).collect()
}
