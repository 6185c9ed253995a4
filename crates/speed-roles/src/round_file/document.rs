//! The text of a round's file.

use serde::{Deserialize, Serialize};
use speed_aggregation::{KeyId, PrivacyNoise, Round, RoundId};
use speed_core::{Digest, DigestError, NoisePlacement, RandomnessKind, VoteShape};

use crate::fault::RoundFileFault;
use crate::terms::{Terms, TermsError};

/// Version of the file's format.
const FORMAT: u32 = 2;

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

/// The word of the file for a placement.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Place {
    Teachers,
    Server,
}

impl From<NoisePlacement> for Place {
    fn from(placement: NoisePlacement) -> Self {
        match placement {
            NoisePlacement::Distributed => Self::Teachers,
            NoisePlacement::Central => Self::Server,
        }
    }
}

impl From<Place> for NoisePlacement {
    fn from(place: Place) -> Self {
        match place {
            Place::Teachers => Self::Distributed,
            Place::Server => Self::Central,
        }
    }
}

/// Returns the text of a round's file.
pub(super) fn write(name: &str, round: &Round, key: KeyId, noise: PrivacyNoise) -> String {
    let mechanism = noise.mechanism();
    let document = Document {
        format: FORMAT,
        id: round.id(key).to_hex(),
        name: name.to_owned(),
        key: key.to_hex(),
        simulation: round.is_simulation(),
        queries: Queries {
            count: round.shape().queries(),
            classes: round.shape().classes(),
            sha256: round.query_list().map(|list| list.to_hex()),
            threshold: round.threshold(),
        },
        teachers: Teachers { count: round.shape().teachers(), minimum: round.min_teachers() },
        noise: Noise {
            place: round.placement().into(),
            mechanism: mechanism.kind().to_string(),
            gamma: mechanism.scale(),
            bound: round.range().noise_bound(),
        },
    };
    let text = toml::to_string(&document).expect("the document has no value that TOML could not hold");
    let simulation =
        if round.is_simulation() { "# SIMULATION: keys or noise come from a seed. No privacy.\n" } else { "" };
    format!("# A labelling round of SPEED. Its id covers everything below; change nothing.\n{simulation}{text}")
}

/// The content of a round's file, as it is written.
pub(super) struct Content {
    pub(super) terms: Terms,
    pub(super) key: KeyId,
    pub(super) noise_bound: u64,
    pub(super) id: RoundId,
}

/// Reads the text of a round's file; whether its parts fit together is the caller's to check.
pub(super) fn read(text: &str) -> Result<Content, RoundFileFault> {
    let document: Document = toml::from_str(text).map_err(Box::new)?;
    if document.format != FORMAT {
        return Err(RoundFileFault::Format { expected: FORMAT, found: document.format });
    }
    Ok(Content {
        noise_bound: document.noise.bound,
        key: digest("key", &document.key)?,
        id: digest("id", &document.id)?,
        terms: terms(document)?,
    })
}

fn terms(Document { name, simulation, queries, teachers, noise, .. }: Document) -> Result<Terms, RoundFileFault> {
    let query_list: Option<Digest> = queries.sha256.map(|text| digest("queries.sha256", &text)).transpose()?;
    Ok(Terms {
        name,
        shape: VoteShape::new(teachers.count, queries.count, queries.classes).map_err(TermsError::from)?,
        // Zeros stand for no list in the round's id.
        query_list: query_list.filter(|list| *list.as_bytes() != [0; 32]),
        min_teachers: teachers.minimum,
        noise: PrivacyNoise::named(&noise.mechanism, noise.gamma).map_err(TermsError::from)?,
        placement: noise.place.into(),
        threshold: queries.threshold,
        randomness: if simulation { RandomnessKind::Simulation } else { RandomnessKind::OperatingSystem },
    })
}

fn digest<T: std::str::FromStr<Err = DigestError>>(field: &'static str, text: &str) -> Result<T, RoundFileFault> {
    text.parse().map_err(|source| RoundFileFault::Digest { field, source })
}
