//! Weights of a model in files of their own, beside the model's file. Both are untrusted.

use std::collections::btree_map::{BTreeMap, Entry};
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Component, Path};

use speed_core::{Digest, open_regular, printable_path};
use tract_onnx::pb::tensor_proto::{DataLocation, DataType};
use tract_onnx::pb::{GraphProto, TensorProto};

use crate::onnx::OnnxError;
use crate::onnx::untrusted::MAX_MODEL;

/// Reads the external weights of the model `model` into its graph, from files in its own directory only, whose names begin like the
/// model's: no other file there, such as a key, can leave with an exported model. `length` is that of the model's own file. Returns
/// the weights' digests.
pub(crate) fn embed(
    graph: &mut GraphProto,
    model: &Path,
    directory: &Path,
    length: u64,
) -> Result<Vec<Digest>, OnnxError> {
    let is_external = |tensor: &TensorProto| tensor.data_location == Some(DataLocation::External as i32);
    let attributes = graph.node.iter().flat_map(|node| &node.attribute);
    let mut constants = attributes.flat_map(|attribute| attribute.t.iter().chain(&attribute.tensors));
    if constants.any(is_external) {
        let found = "an external constant of an operation: export the model with its weights in its own file";
        return Err(OnnxError::form("external weights as initializers only", found));
    }
    let (mut files, mut digests, mut total) = (BTreeMap::new(), Vec::new(), length);
    for tensor in graph.initializer.iter_mut().filter(|tensor| is_external(tensor)) {
        let part = Part::of(tensor)?;
        let stem = model.file_stem().unwrap_or_default().to_string_lossy();
        if !part.file.starts_with(&*stem) {
            let found = format!("{:?}: rename the file, and export the model again", part.file);
            return Err(OnnxError::form(format!("external weights in a file whose name begins with {stem:?}"), found));
        }
        total = total.saturating_add(part.length);
        if total > MAX_MODEL {
            let found = format!("at least {total}: use a smaller encoder");
            return Err(OnnxError::form(format!("at most {MAX_MODEL} bytes of a model with its weights"), found));
        }
        let file = match files.entry(part.file.to_owned()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(open(directory, part.file)?),
        };
        let bytes = part.read(file)?;
        digests.push(Digest::of(&bytes));
        tensor.raw_data = bytes;
        tensor.external_data.clear();
        tensor.data_location = None;
    }
    Ok(digests)
}

struct Part<'a> {
    file: &'a str,
    offset: u64,
    length: u64,
}

impl<'a> Part<'a> {
    fn of(tensor: &'a TensorProto) -> Result<Self, OnnxError> {
        let entry = |key: &str| tensor.external_data.iter().find(|entry| entry.key == key);
        let damaged = |expected: &str, found: &str| {
            let expected = format!("{expected} of the external weights {}", tensor.name);
            OnnxError::form(expected, format!("{found}: export the model again"))
        };
        let file = entry("location").map_or("", |entry| entry.value.as_str());
        let mut components = Path::new(file).components();
        let is_name = matches!(
            (components.next(), components.next()),
            (Some(Component::Normal(name)), None) if name == file && !file.contains(['/', '\\', '\0'])
        );
        if !is_name {
            let found = format!("{file:?}: put the file beside the model, and export the model again");
            return Err(OnnxError::form(format!("a plain file name of the external weights {}", tensor.name), found));
        }
        let number = |key: &str| {
            let parsed = entry(key).map(|entry| {
                entry
                    .value
                    .parse::<u64>()
                    .map_err(|_| damaged(&format!("a number of bytes as {key}"), &format!("{:?}", entry.value)))
            });
            parsed.transpose()
        };
        let expected = length(tensor).ok_or_else(|| damaged("a type and a shape", "others"))?;
        let found = number("length")?.unwrap_or(expected);
        if found != expected {
            return Err(damaged(&format!("{expected} bytes"), &found.to_string()));
        }
        Ok(Self { file, offset: number("offset")?.unwrap_or(0), length: expected })
    }

    fn read(&self, file: &mut File) -> Result<Vec<u8>, OnnxError> {
        let Self { file: name, offset, length } = *self;
        let failed = |error: io::Error| OnnxError::unreadable(Path::new(name), error);
        let found = file.metadata().map_err(failed)?.len();
        let end = offset.checked_add(length).filter(|end| *end <= found);
        if end.is_none() {
            let expected = format!("at least {offset} + {length} bytes of external weights in {name}");
            return Err(OnnxError::form(expected, format!("{found}: copy the whole file, or export the model again")));
        }
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
        file.seek(SeekFrom::Start(offset)).and_then(|_| file.read_exact(&mut bytes)).map_err(failed)?;
        Ok(bytes)
    }
}

fn length(tensor: &TensorProto) -> Option<u64> {
    let width = match DataType::try_from(tensor.data_type).ok()? {
        DataType::Bool | DataType::Int8 | DataType::Uint8 => 1,
        DataType::Float16 | DataType::Bfloat16 | DataType::Int16 | DataType::Uint16 => 2,
        DataType::Float | DataType::Int32 | DataType::Uint32 => 4,
        DataType::Double | DataType::Int64 | DataType::Uint64 => 8,
        _ => return None,
    };
    tensor.dims.iter().try_fold(width, |all: u64, &dim| all.checked_mul(u64::try_from(dim).ok()?))
}

/// Opens a file of a directory, unless it is a link that leaves the directory.
fn open(directory: &Path, name: &str) -> Result<File, OnnxError> {
    let path = directory.join(name);
    let failed = |error: io::Error| OnnxError::unreadable(&path, error);
    let (own, real) = (fs::canonicalize(directory).map_err(failed)?, fs::canonicalize(&path).map_err(failed)?);
    if real.parent() != Some(&own) {
        let found = format!("{} is a link to another directory: copy the file beside the model", printable_path(&path));
        return Err(OnnxError::form("external weights in the model's own directory", found));
    }
    open_regular(&real).map_err(failed)
}
