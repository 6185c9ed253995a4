//! The text of a round's file.

use serde::{Deserialize, Serialize};
use speed_aggregation::PrivacyNoise;
use speed_aggregation::keys::KeyId;
use speed_aggregation::protocol::RoundId;
use speed_core::{Digest, DigestError, NoisePlacement, RandomnessKind};

use super::RoundFile;
use crate::fault::RoundFileFault;
use crate::roster::{Entry, Roster};
use crate::terms::{Terms, TermsError};

/// Version of the file's format.
const FORMAT: u32 = 3;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format: u32,
    id: String,
    name: String,
    key: String,
    simulation: bool,
    /// Teachers that must answer.
    minimum: usize,
    queries: Queries,
    noise: Noise,
    #[serde(skip_serializing_if = "Option::is_none")]
    proofs: Option<Proofs>,
    student: Entry,
    server: Entry,
    teacher: Vec<Entry>,
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

/// The key for the proofs that messages are well formed.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Proofs {
    sha256: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Noise {
    place: Place,
    mechanism: String,
    gamma: f64,
    bound: u64,
}

/// The word for a placement in the file.
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
    let (round, mechanism) = (&file.round, file.noise.mechanism());
    let document = Document {
        format: FORMAT,
        id: file.id().to_hex(),
        name: file.name.clone(),
        key: file.key.to_hex(),
        simulation: round.is_simulation(),
        minimum: round.min_teachers(),
        queries: Queries {
            count: round.shape().queries(),
            classes: round.shape().classes(),
            sha256: round.query_list().map(|list| list.to_hex()),
            threshold: round.threshold(),
        },
        noise: Noise {
            place: round.placement().into(),
            mechanism: mechanism.kind().to_string(),
            gamma: mechanism.scale(),
            bound: round.range().noise_bound(),
        },
        proofs: round.proofs().map(|key| Proofs { sha256: key.to_hex() }),
        student: file.roster.student().into(),
        server: file.roster.server().into(),
        teacher: file.roster.teachers().iter().map(Entry::from).collect(),
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

/// Reads the text of a round's file. The caller must check that its parts fit together.
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

fn terms(document: Document) -> Result<Terms, RoundFileFault> {
    let Document { name, simulation, minimum, queries, noise, proofs, student, server, teacher, .. } = document;
    // In the round's id, zeros mean that nothing is stated.
    let stated = |field, text: Option<String>| -> Result<Option<Digest>, RoundFileFault> {
        let digest: Option<Digest> = text.map(|text| digest(field, &text)).transpose()?;
        Ok(digest.filter(|digest| *digest.as_bytes() != [0; 32]))
    };
    Ok(Terms {
        name,
        roster: Roster::from_entries(student, server, teacher).map_err(TermsError::from)?,
        queries: queries.count,
        classes: queries.classes,
        query_list: stated("queries.sha256", queries.sha256)?,
        proofs: stated("proofs.sha256", proofs.map(|proofs| proofs.sha256))?,
        min_teachers: minimum,
        noise: PrivacyNoise::named(&noise.mechanism, noise.gamma).map_err(TermsError::from)?,
        placement: noise.place.into(),
        threshold: queries.threshold,
        randomness: if simulation { RandomnessKind::Simulation } else { RandomnessKind::OperatingSystem },
    })
}

fn digest<T: std::str::FromStr<Err = DigestError>>(field: &'static str, text: &str) -> Result<T, RoundFileFault> {
    text.parse().map_err(|source| RoundFileFault::Digest { field, source })
}
