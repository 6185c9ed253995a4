//! The influence of one teacher whose message is proven.

use std::fmt;

use serde::Serialize;

use crate::round_file::RoundFile;

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
