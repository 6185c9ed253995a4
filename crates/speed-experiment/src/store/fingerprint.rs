//! Fingerprints of stages: hashes of all inputs of a stage.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use speed_core::Digest;

use super::layout::ARITHMETIC;

/// The SHA-256 of everything that determines a result: a part of the config, hashes of inputs and a code version.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Fingerprint(Digest);

impl Fingerprint {
    /// Hashes raw bytes.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        Self(Digest::of(bytes))
    }

    /// Hashes a value's JSON. Object keys are sorted, so the order of fields is irrelevant.
    pub(crate) fn of(value: &Value) -> Self {
        Self::of_bytes(value.to_string().as_bytes())
    }

    /// Returns all 64 hexadecimal digits.
    pub(crate) fn to_hex(self) -> String {
        self.0.to_hex()
    }

    /// Returns the first twelve digits, for directory names.
    pub(crate) fn short(self) -> String {
        let mut text = self.to_hex();
        text.truncate(12);
        text
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short())
    }
}

/// The name of the part of an identity that holds the version of the stage's code.
const CODE: &str = "version of the stage's code";

/// The identity of a stage: the name of its directory, and its inputs.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// The name of the stage's directory.
    pub(crate) name: String,
    /// The name in the stage's fingerprint. Stages of one kind and fingerprint are the same under any directory name.
    pub(crate) kind: String,
    /// The hash of the kind, the code version and the inputs.
    pub(crate) fingerprint: Fingerprint,
    /// An earlier version of the code whose finished stages are valid, too.
    earlier_version: Option<u32>,
    /// The side files: files that later steps read although they are not outputs.
    side_files: Vec<&'static str>,
    code_version: u32,
    inputs: Value,
}

impl Identity {
    /// Creates the identity of the stage in the directory `name`.
    pub(crate) fn new(name: &str, kind: &str, code_version: u32, inputs: Value) -> Self {
        let fingerprint = hash(kind, code_version, &inputs);
        Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            fingerprint,
            earlier_version: None,
            side_files: Vec::new(),
            code_version,
            inputs,
        }
    }

    /// Accepts finished stages of an earlier version of the code.
    pub(crate) fn with_earlier(self, earlier_version: Option<u32>) -> Self {
        Self { earlier_version, ..self }
    }

    /// Sets the side files. A finished stage is valid only with them.
    pub(crate) fn with_side_files(self, side_files: Vec<&'static str>) -> Self {
        Self { side_files, ..self }
    }

    /// Returns the names of the side files.
    pub(super) fn side_files(&self) -> &[&'static str] {
        &self.side_files
    }

    /// Returns the fingerprint of a stage in the directory `name` under the earlier version of the code, which hashed
    /// the directory's name as the kind.
    pub(super) fn earlier(&self, name: &str) -> Option<Fingerprint> {
        self.earlier_version.map(|version| hash(name, version, &self.inputs))
    }
}

impl Identity {
    /// Returns the kind of machine that began the stage, if the stage's bits depend on it.
    pub(super) fn arithmetic(&self) -> Option<&str> {
        self.inputs.get(ARITHMETIC)?.as_str()
    }

    /// Returns the hash of each part of the identity, so that an error can name the parts that differ.
    pub(super) fn parts(&self) -> BTreeMap<String, Fingerprint> {
        let mut parts = match &self.inputs {
            Value::Object(inputs) => {
                inputs.iter().map(|(key, value)| (key.clone(), Fingerprint::of(value))).collect::<BTreeMap<_, _>>()
            }
            all => BTreeMap::from([("inputs".to_owned(), Fingerprint::of(all))]),
        };
        parts.insert(CODE.to_owned(), Fingerprint::of(&json!(self.code_version)));
        parts
    }
}

fn hash(stage: &str, code_version: u32, inputs: &Value) -> Fingerprint {
    Fingerprint::of(&json!({ "stage": stage, "code": code_version, "inputs": inputs }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_those_of_finished_runs() {
        // Python: hashlib.sha256(b'{"code":3,"inputs":{"a":1,"b":[]},"stage":"votes"}').hexdigest()
        let identity = Identity::new("votes", "votes", 3, json!({ "b": [], "a": 1 }));
        assert_eq!(identity.fingerprint.to_hex(), "e85726f7487fbd667cd83f59831651f51a9f6a4809299ae0d9b0b0992922f627");
        assert_eq!(identity.fingerprint.short(), identity.fingerprint.to_hex()[..12]);
        assert_eq!(identity.earlier("votes"), None);
        let identity = identity.with_earlier(Some(2));
        assert_eq!(identity.earlier("x"), Some(Identity::new("x", "x", 2, json!({ "a": 1, "b": [] })).fingerprint));
    }
}
