//! The student's terms for a round.

use speed_aggregation::error::PrivacyNoiseError;
use speed_aggregation::{PrivacyNoise, Round, RoundSpec};
use speed_core::{Classes, Digest, NoisePlacement, RandomnessKind, ShapeError, VoteShape, composed, is_legible};

use crate::error::{Refused, beginning};
use crate::roster::{Party, Roster};

/// The student's terms for a round.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The name of the round, for example a run id. Two rounds of one key need different names.
    pub name: String,
    /// The server and the teachers.
    pub roster: Roster,
    /// The number of queries.
    pub queries: usize,
    /// The classes. All parties name them by the names here.
    pub classes: Classes,
    /// SHA-256 of a file that lists the queries.
    pub query_list: Option<Digest>,
    /// The number of teachers that must answer. A party counts with all its teachers.
    pub min_teachers: usize,
    /// The privacy noise.
    pub noise: PrivacyNoise,
    /// The parties that add it.
    pub placement: NoisePlacement,
    /// The threshold of the noisy maximum, in votes.
    pub threshold: Option<i64>,
    /// SHA-256 of the proof key, if messages need proofs that they are well formed.
    pub proofs: Option<Digest>,
    /// SHA-256 of the evaluation key's file, if stated. Server and verifier refuse another file.
    pub evaluation_key: Option<Digest>,
    /// The name of the party that opens the result together with the student, if the opening is joint.
    pub opener: Option<String>,
    /// The source of keys and noise.
    pub randomness: RandomnessKind,
}

impl Terms {
    /// The largest number of bytes of a name.
    const MAX_NAME: usize = 200;

    /// Returns the numbers of teachers, queries and classes.
    pub(crate) fn shape(&self) -> Result<VoteShape, ShapeError> {
        VoteShape::new(self.roster.teacher_count(), self.queries, self.classes.len())
    }

    /// Returns the index of the opener.
    fn opener(&self) -> Result<Option<usize>, Refused> {
        let Some(name) = &self.opener else { return Ok(None) };
        let teachers = self.roster.teachers();
        let composed = composed(name);
        let index = teachers.iter().position(|party| party.name() == composed);
        index.map(Some).ok_or_else(|| {
            let names: Vec<String> = teachers.iter().take(3).map(|party| format!("{:?}", party.name())).collect();
            let more = if teachers.len() > 3 { ", .." } else { "" };
            Refused::usage(format!(
                "the opener {:?} is not the name of one of the parties that answer: expected one of {}{more}",
                beginning(name),
                names.join(", ")
            ))
        })
    }

    /// Creates the round with these terms and a bound on its privacy noise.
    pub(crate) fn round(&self, noise_bound: u64) -> Result<Round, Refused> {
        let name = &self.name;
        if name.len() > Self::MAX_NAME || !is_legible(name) {
            let (max, found) = (Self::MAX_NAME, beginning(name));
            return Err(Refused::usage(format!(
                "the round's name needs 1 to {max} bytes of visible characters, without spaces at its ends, found {found:?}"
            )));
        }
        let shape = self.shape()?;
        self.roster.voters(&self.classes)?;
        if self.noise.coins_of_teacher(shape.teachers()).is_some() {
            // The round's file states the coins of one teacher.
            self.noise.share_of(shape.teachers()).map_err(PrivacyNoiseError::from)?;
        }
        Ok(Round::new(RoundSpec {
            query_list: self.query_list,
            class_list: self.classes.digest(),
            min_teachers: self.min_teachers,
            placement: self.placement,
            mechanism: Some(self.noise.mechanism()),
            threshold: self.threshold,
            parties: self.roster.teachers().iter().map(Party::teachers).collect(),
            roster: Some(self.roster.digest()),
            proofs: self.proofs,
            evaluation_key: self.evaluation_key,
            opener: self.opener()?,
            randomness: self.randomness,
            ..RoundSpec::new(name.as_bytes(), shape, noise_bound)
        })?)
    }
}
