//! Answers of the paper's circuit.

use std::time::Duration;

/// The answer of [`PaperArgmax::argmax`](super::PaperArgmax::argmax).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PaperAnswer {
    /// Classes whose ciphertexts claim to have won: one in most queries; none or several if counts are close.
    pub winners: Vec<usize>,
    /// Number of bootstraps of the circuit.
    pub bootstraps: usize,
    /// Time of the circuit on its thread, without encryption and decryption.
    pub time: Duration,
}

impl PaperAnswer {
    /// Returns the winner, if there is exactly one.
    pub fn winner(&self) -> Option<usize> {
        match self.winners[..] {
            [winner] => Some(winner),
            _ => None,
        }
    }
}
