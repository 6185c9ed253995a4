//! The file that the student writes for a round and hands to everyone: what its parties agree on.

use std::path::Path;

use serde::{Deserialize, Serialize};
use speed_aggregation::{Encoding, KeyId, NoisePlace, PublicKey, Round, RoundId};

use crate::files::{MAX_ROUND, read_input};
use crate::{Mechanism, RolesError};

/// Version of the file's format.
const FORMAT: u32 = 2;

/// What a student decides for a round.
#[derive(Clone, Debug)]
pub struct Terms {
    /// Names the round: a run id, for example. Two rounds of one key need different names.
    pub name: String,
    /// Number of queries.
    pub queries: usize,
    /// SHA-256 of a file that lists them.
    pub query_list: Option<[u8; 32]>,
    /// Number of classes.
    pub classes: usize,
    /// Number of teachers.
    pub teachers: usize,
    /// Number of teachers that must answer.
    pub min_teachers: usize,
    /// The noise.
    pub mechanism: Mechanism,
    /// Who adds it.
    pub place: NoisePlace,
    /// Votes that a noisy maximum must reach for an answer.
    pub threshold: Option<i64>,
    /// Whether keys or noise come from a seed.
    pub simulation: bool,
}

/// A round and the key that it is for.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundFile {
    name: String,
    round: Round,
    key: KeyId,
    mechanism: Mechanism,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format: u32,
    id: String,
    name: String,
    key: String,
    simulation: bool,
    queries: Queries,
    teachers: Teachers,
    noise: Noise,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Queries {
    count: usize,
    classes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold: Option<i64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Teachers {
    count: usize,
    minimum: usize,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Noise {
    place: Place,
    mechanism: String,
    gamma: f64,
    bound: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Place {
    Teachers,
    Server,
}

impl RoundFile {
    /// The round with these terms under a key. The noise's bound holds but for a probability of 2^-64.
    ///
    /// # Errors
    /// If the terms make no round, or one without an exact encoding under the key.
    pub fn new(terms: &Terms, key: &PublicKey) -> Result<Self, RolesError> {
        let bound = terms.mechanism.bound(terms.queries.saturating_mul(terms.classes))?;
        let file = Self::build(terms, bound, key.id())?;
        Encoding::new(key.parameters(), file.round.outcomes().count(), file.round.range())?;
        Ok(file)
    }

    fn build(terms: &Terms, bound: u64, key: KeyId) -> Result<Self, RolesError> {
        let name = &terms.name;
        if name.is_empty() || name.len() > 200 || name.chars().any(char::is_control) {
            return Err(RolesError::Options("the round's name needs 1 to 200 printable characters".into()));
        }
        let mut round = Round::new(name.as_bytes(), terms.queries, terms.classes, terms.teachers, bound)?
            .with_min_teachers(terms.min_teachers)?
            .with_noise(terms.place, &terms.mechanism.description())?
            .with_query_list(terms.query_list.unwrap_or([0; 32]));
        if let Some(threshold) = terms.threshold {
            round = round.with_threshold(threshold)?;
        }
        if terms.simulation {
            round = round.as_simulation();
        }
        Ok(Self { name: name.clone(), round, key, mechanism: terms.mechanism })
    }

    /// The round.
    #[must_use]
    pub fn round(&self) -> &Round {
        &self.round
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The key that it is for.
    #[must_use]
    pub fn key(&self) -> KeyId {
        self.key
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> RoundId {
        self.round.id(self.key)
    }

    /// Its noise.
    #[must_use]
    pub fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    /// The file's text.
    ///
    /// # Panics
    /// Never: the document has no value that TOML could not hold.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let round = &self.round;
        let document = Document {
            format: FORMAT,
            id: self.id().to_hex(),
            name: self.name.clone(),
            key: self.key.to_hex(),
            simulation: round.is_simulation(),
            queries: Queries {
                count: round.queries(),
                classes: round.classes(),
                sha256: Some(*round.query_list()).filter(|hash| *hash != [0; 32]).map(|hash| hex(&hash)),
                threshold: round.threshold(),
            },
            teachers: Teachers { count: round.teachers(), minimum: round.min_teachers() },
            noise: Noise {
                place: match round.noise_place() {
                    NoisePlace::Teachers => Place::Teachers,
                    NoisePlace::Server => Place::Server,
                },
                mechanism: self.mechanism.name().to_owned(),
                gamma: self.mechanism.gamma(),
                bound: round.range().noise_bound(),
            },
        };
        let text = toml::to_string(&document).expect("the document has no value that TOML could not hold");
        let simulation =
            if round.is_simulation() { "# SIMULATION: keys or noise come from a seed. No privacy.\n" } else { "" };
        format!("# A labelling round of SPEED. Its id covers everything below; change nothing.\n{simulation}{text}")
    }

    /// Reads a round's file, strictly: no unknown key, limits as in [`Round`], a bound that its noise respects, and the id
    /// must be that of the rest.
    ///
    /// # Errors
    /// With what was expected and found, and the line where there is one.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        let document: Document = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        if document.format != FORMAT {
            return Err(format!("format {}, this program reads format {FORMAT}", document.format));
        }
        let noise = &document.noise;
        let terms = Terms {
            name: document.name,
            queries: document.queries.count,
            query_list: document.queries.sha256.as_deref().map(unhex).transpose()?,
            classes: document.queries.classes,
            teachers: document.teachers.count,
            min_teachers: document.teachers.minimum,
            mechanism: Mechanism::new(&noise.mechanism, noise.gamma).map_err(|error| error.to_string())?,
            place: match noise.place {
                Place::Teachers => NoisePlace::Teachers,
                Place::Server => NoisePlace::Server,
            },
            threshold: document.queries.threshold,
            simulation: document.simulation,
        };
        let key: KeyId = document.key.parse().map_err(|error| format!("key: {error}"))?;
        let id: RoundId = document.id.parse().map_err(|error| format!("id: {error}"))?;
        let file = Self::build(&terms, noise.bound, key).map_err(|error| error.to_string())?;
        // After `build`, which limits the number of values.
        let needed = terms.mechanism.bound(file.round.values()).map_err(|error| error.to_string())?;
        if noise.bound < needed {
            return Err(format!("noise.bound is {}, this noise needs at least {needed}", noise.bound));
        }
        if file.id() != id {
            return Err(format!("the id is {id}.., but the file's content has {}..: it was changed", file.id()));
        }
        Ok(file)
    }

    /// Reads a round's file.
    ///
    /// # Errors
    /// [`RolesError::Round`] with what is wrong.
    pub fn read(path: &Path) -> Result<Self, RolesError> {
        let fail = |message| RolesError::Round { path: path.to_path_buf(), message };
        let bytes = read_input(path, MAX_ROUND).map_err(|error| match error {
            RolesError::Input { message, .. } => fail(message),
            other => other,
        })?;
        let text = std::str::from_utf8(&bytes).map_err(|_| fail("not a round's file: expected text".into()))?;
        Self::from_toml(text).map_err(fail)
    }

    /// Checks that a program's key is the round's.
    pub(crate) fn check_key(&self, path: &Path, key: KeyId) -> Result<(), RolesError> {
        if key == self.key {
            return Ok(());
        }
        let message = format!("is key {key}, the round is for key {}", self.key);
        Err(RolesError::Input { path: path.to_path_buf(), message })
    }

    /// Checks that a program simulates if and only if the round says so.
    pub(crate) fn check_simulation(&self, simulates: bool) -> Result<(), RolesError> {
        match (self.round.is_simulation(), simulates) {
            (true, false) => Err(RolesError::Options("this round is a simulation: give --simulation SEED".into())),
            (false, true) => Err(RolesError::Options(
                "this round is no simulation: --simulation is for rounds that were made with it".into(),
            )),
            _ => Ok(()),
        }
    }
}

fn hex(bytes: &[u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Result<[u8; 32], String> {
    text.parse::<RoundId>().map(|id| *id.as_bytes()).map_err(|error| format!("queries.sha256: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> RoundFile {
        let terms = Terms {
            name: "a round".into(),
            queries: 100,
            query_list: Some([3; 32]),
            classes: 10,
            teachers: 250,
            min_teachers: 200,
            mechanism: Mechanism::new("discrete-laplace", 0.1).expect("valid"),
            place: NoisePlace::Teachers,
            threshold: Some(-7),
            simulation: true,
        };
        let bound = terms.mechanism.bound(1000).expect("bounded");
        RoundFile::build(&terms, bound, "ab".repeat(32).parse().expect("hex")).expect("valid")
    }

    #[test]
    fn a_round_survives_its_file() {
        let text = file().to_toml();
        assert_eq!(RoundFile::from_toml(&text), Ok(file()), "{text}");
        assert!(text.contains("SIMULATION"));
    }

    #[test]
    fn whatever_is_changed_is_refused() {
        let text = file().to_toml();
        for (from, to, words) in [
            ("format = 2", "format = 1", "this program reads format 2"),
            ("name = \"a round\"", "name = \"another\"", "it was changed"),
            ("name = \"a round\"", "name = \"\"", "1 to 200"),
            ("simulation = true", "simulation = false", "it was changed"),
            ("count = 100", "count = 99", "it was changed"),
            ("count = 100", "count = 0", "0 queries"),
            ("count = 100", "count = 99999999", "queries"),
            ("count = 100", "count = -1", "invalid value"),
            ("count = 250", "count = 251", "it was changed"),
            ("minimum = 200", "minimum = 251", "251 teachers must answer"),
            ("threshold = -7", "threshold = -8", "it was changed"),
            ("threshold = -7", "threshold = 99999", "threshold 99999"),
            ("place = \"teachers\"", "place = \"server\"", "it was changed"),
            ("place = \"teachers\"", "place = \"student\"", "unknown variant"),
            ("discrete-laplace", "gaussian", "expected one of discrete-laplace"),
            ("gamma = 0.1", "gamma = 0.2", "it was changed"),
            ("gamma = 0.1", "gamma = 0.05", "this noise needs at least"),
            ("gamma = 0.1", "gamma = nan", "gamma is NaN"),
            ("gamma = 0.1", "gamma = 0.0001", "at least 0.001"),
            ("key = \"ab", "key = \"ac", "it was changed"),
            ("key = \"ab", "key = \"", "64 hexadecimal digits"),
            ("[teachers]", "[teachers]\nextra = 1", "unknown field"),
            ("[teachers]", "[teacher]", "unknown field"),
        ] {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text, "{from}");
            let error = RoundFile::from_toml(&changed).expect_err(to);
            assert!(error.contains(words), "{to}: {error}");
        }
        for length in 0..text.len() - 2 {
            assert!(RoundFile::from_toml(&text[..length]).is_err(), "cut to {length}: {}", &text[..length]);
        }
    }
}
