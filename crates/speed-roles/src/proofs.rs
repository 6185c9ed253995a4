//! The proof key of a round.

use std::path::Path;

#[cfg(feature = "student")]
use speed_aggregation::Parameters;
use speed_aggregation::error::ProofError;
use speed_aggregation::proofs::ProofKey;
use speed_core::Digest;
#[cfg(feature = "student")]
use speed_core::{NoisePlacement, Randomness};

use crate::error::{OptionsFault, RolesError};
use crate::fault::InputFault;
use crate::file_kind::FileKind;
use crate::files::{read_input, refused};
use crate::round_file::RoundFile;

/// Generates the proof key of a round that does not name one yet. Takes about 20 core-seconds for a thousand values.
#[cfg(feature = "student")]
pub(crate) fn generate(
    file: &RoundFile,
    parameters: &Parameters,
    randomness: &Randomness,
) -> Result<ProofKey, ProofError> {
    let noise = match file.round().placement() {
        // A share is within the bound of the sum of all shares, because the rest of the sum is equally likely to
        // increase it and to decrease it.
        NoisePlacement::Distributed => file.round().range().noise_bound(),
        NoisePlacement::Central => 0,
    };
    // A vote plus the noise, in the range [-2^(b - 1), 2^(b - 1)), except with the probability of the noise's bound.
    let range_log = (noise + 2).next_power_of_two().ilog2() + 1;
    ProofKey::generate(parameters, file.round(), range_log, randomness)
}

/// Reads the proof key that a round names; `None` if the round requires no proofs.
pub(crate) fn read(path: Option<&Path>, file: &RoundFile) -> Result<Option<ProofKey>, RolesError> {
    let (expected, path) = match (file.round().proofs(), path) {
        (None, None) => return Ok(None),
        (None, Some(_)) => return Err(OptionsFault::ProofKeyRefused.into()),
        (Some(_), None) => return Err(OptionsFault::ProofKeyMissing.into()),
        (Some(expected), Some(path)) => (expected, path),
    };
    let bytes = read_input(path, FileKind::PROOF_KEY)?;
    // Checked before any of it is decoded.
    let found = Digest::of(&bytes);
    let key =
        if found == expected { ProofKey::from_bytes(&bytes) } else { Err(ProofError::OtherKey { expected, found }) };
    key.map(Some).map_err(|error| refused(path, FileKind::PROOF_KEY, InputFault::Proof(error.into())))
}
