//! The text of a round's file.

use serde::{Deserialize, Serialize};
use speed_aggregation::{KeyId, PrivacyNoise, RoundId};
use speed_core::{Digest, DigestError, NoisePlacement, RandomnessKind, VoteShape};
use speed_mechanism::MechanismError;

use super::RoundFile;
use super::terms::{Terms, TermsError};
use crate::error::ReadFault;

/// Version of the file's format.
const FORMAT: u32 = 2;

/// A round's file that is missing, damaged, or changed.
#[derive(Debug, thiserror::Error)]
pub enum RoundFileFault {
    /// A file that was not read.
    #[error(transparent)]
    Read(#[from] ReadFault),
    /// Bytes that are no text.
    #[error("not a round's file: expected text")]
    NotText,
    /// A text that is not TOML, or has other keys.
    #[error("{}", .0.to_string().trim_end())]
    Toml(#[from] Box<toml::de::Error>),
    /// A file of another version.
    #[error("format {found}, this program reads format {expected}")]
    Format {
        /// The version that is read.
        expected: u32,
        /// The version found.
        found: u32,
    },
    /// A field that is no digest.
    #[error("{field}: {source}")]
    Digest {
        /// The field.
        field: &'static str,
        /// The cause.
        source: DigestError,
    },
    /// Terms that make no round.
    #[error(transparent)]
    Terms(#[from] TermsError),
    /// Privacy noise that cannot be bounded.
    #[error(transparent)]
    Mechanism(#[from] MechanismError),
    /// A bound that the noise does not respect.
    #[error("noise.bound is {found}, this noise needs at least {min}")]
    Bound {
        /// The smallest bound.
        min: u64,
        /// The bound found.
        found: u64,
    },
    /// A content that is not the id's.
    #[error("the id is {id}.., but the file's content has {content}..: it was changed")]
    Changed {
        /// The id in the file.
        id: RoundId,
        /// The id of its content.
        content: RoundId,
    },
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
pub(super) fn write(file: &RoundFile) -> String {
    let (round, mechanism) = (file.round(), file.noise().mechanism());
    let document = Document {
        format: FORMAT,
        id: file.id().to_hex(),
        name: file.name().to_owned(),
        key: file.key().to_hex(),
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

/// Reads the text of a round's file.
pub(super) fn read(text: &str) -> Result<RoundFile, RoundFileFault> {
    let document: Document = toml::from_str(text).map_err(Box::new)?;
    if document.format != FORMAT {
        return Err(RoundFileFault::Format { expected: FORMAT, found: document.format });
    }
    let bound = document.noise.bound;
    let key: KeyId = digest("key", &document.key)?;
    let id: RoundId = digest("id", &document.id)?;
    let terms = terms(document)?;
    let file = RoundFile::build(&terms, bound, key)?;
    // After `build`, which limits the number of values.
    let min = terms.noise.bound(terms.shape)?;
    if bound < min {
        return Err(RoundFileFault::Bound { min, found: bound });
    }
    if file.id() != id {
        return Err(RoundFileFault::Changed { id, content: file.id() });
    }
    Ok(file)
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
