//! The proof key of a round.

use std::path::Path;

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
