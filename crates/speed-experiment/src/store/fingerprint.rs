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
    pub(crate) name: String,
    /// The name in the stage's fingerprint. Stages of one kind and fingerprint are the same under any directory name.
    pub(crate) kind: String,
    /// The hash of the kind, the code version and the inputs.
    pub(crate) fingerprint: Fingerprint,
    code_version: u32,
    inputs: Value,
}

impl Identity {
    pub(crate) fn new(name: &str, kind: &str, code_version: u32, inputs: Value) -> Self {
        let fingerprint = Fingerprint::of(&json!({ "stage": kind, "code": code_version, "inputs": inputs }));
        Self { name: name.to_owned(), kind: kind.to_owned(), fingerprint, code_version, inputs }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_the_hash_of_kind_code_and_inputs() {
        // Python: hashlib.sha256(b'{"code":3,"inputs":{"a":1,"b":[]},"stage":"votes"}').hexdigest()
        let identity = Identity::new("votes", "votes", 3, json!({ "b": [], "a": 1 }));
        assert_eq!(identity.fingerprint.to_hex(), "e85726f7487fbd667cd83f59831651f51a9f6a4809299ae0d9b0b0992922f627");
        assert_eq!(identity.fingerprint.short(), identity.fingerprint.to_hex()[..12]);
    }
}
