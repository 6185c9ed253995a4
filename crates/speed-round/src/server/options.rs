//! The options of a server.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use speed_core::Circuit;

use crate::charge::LedgerOptions;
use crate::randomness::RoundRandomness;

/// The options of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The server's signing key.
    pub signing_key: PathBuf,
    /// The student's evaluation key.
    pub evaluation_key: PathBuf,
    /// The round's proof key, if the round asks for proofs.
    pub proof_key: Option<PathBuf>,
    /// The round's file.
    pub round: PathBuf,
    /// The number of teachers that must answer, if more than the round requires.
    pub min_teachers: Option<usize>,
    /// The server's registry, which holds sums, answers, results and logs of its rounds.
    pub registry: PathBuf,
    /// Whether a missing registry is created, for a key that never answered.
    pub new_registry: bool,
    /// The ledger that the round is charged to.
    pub ledger: LedgerOptions,
    /// The circuit.
    pub circuit: Circuit,
    /// Threads; answers do not depend on it.
    pub threads: NonZeroUsize,
    /// The origin of noise and re-randomisation.
    pub randomness: RoundRandomness,
    /// A directory for copies of the counted messages, for verifiers ([`verify`](super::verify())). The registry deletes
    /// messages when the result exists.
    pub copies: Option<PathBuf>,
}
