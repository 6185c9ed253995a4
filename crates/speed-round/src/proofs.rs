//! The proof key of a round, and the influence that proofs leave to one party.

use std::fmt;
use std::path::Path;

use serde::Serialize;
use speed_aggregation::Parameters;
use speed_aggregation::error::ProofError;
use speed_aggregation::proofs::ProofKey;
use speed_core::Digest;

use crate::error::Refused;
use crate::file_kind::FileKind;
use crate::files::{read_input, refused};
use crate::round_file::RoundFile;

/// Reads the proof key that a round names; `None` if the round requires no proofs. A key for values of another range than
/// the round's is refused, even if the round names it: a wider one would let a teacher send more, and a narrower one
/// would refuse honest values and so tell about them.
pub(crate) fn read(
    path: Option<&Path>,
    file: &RoundFile,
    parameters: &Parameters,
) -> Result<Option<ProofKey>, Refused> {
    let (expected, path) = match (file.round().proofs(), path) {
        (None, None) => return Ok(None),
        (None, Some(_)) => return Err(Refused::usage("this round asks for no proofs: remove --proof-key")),
        (Some(_), None) => {
            return Err(Refused::usage(
                "this round asks for proofs that messages are well formed: give --proof-key FILE, which the student created with the round",
            ));
        }
        (Some(expected), Some(path)) => (expected, path),
    };
    let bytes = read_input(path, FileKind::PROOF_KEY)?;
    // Checked before any of it is decoded.
    let found = Digest::of(&bytes);
    let key =
        if found == expected { ProofKey::from_bytes(&bytes) } else { Err(ProofError::other_key(expected, found)) };
    let key = key.and_then(|key| key.check(parameters, file.round()).map(|()| key));
    key.map(Some).map_err(|error| refused(path, FileKind::PROOF_KEY, error))
}

/// The influence of one party whose message is proven, the one with the most teachers: it can send any value in the proofs'
/// range. The sentence of its `Display` is printed wherever a round is shown.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Influence {
    /// Teachers of the party.
    pub teachers: usize,
    /// Bits of the values of one proof, for which the round's proof key is generated.
    pub bits: u32,
    /// The smallest value that a proof allows, in votes.
    pub least: i64,
    /// The largest value that a proof allows, in votes.
    pub most: i64,
    /// The largest number of votes by which it can move a count, from the mean of honest noise.
    pub moves: f64,
}

impl Influence {
    /// Returns the influence in a round; `None` if the round requires no proofs, because nothing limits it then.
    pub fn of(file: &RoundFile) -> Option<Self> {
        let (round, range) = (file.round(), file.round().proof_range());
        round.proofs().map(|_| Self {
            teachers: round.largest_party(),
            bits: range.bits(),
            least: range.least(),
            most: range.most(),
            moves: round.largest_move(),
        })
    }
}

impl fmt::Display for Influence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { teachers, least, most, moves, .. } = self;
        let who = if *teachers == 1 { "teacher".to_owned() } else { format!("party with {teachers} teachers") };
        write!(
            f,
            "one dishonest {who} can move each noisy count by at most {moves} votes, because its values are proven to be from \
             {least} to {most}"
        )
    }
}
