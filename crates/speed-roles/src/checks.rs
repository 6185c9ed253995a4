//! Checks of what a round's server gives.

use std::path::Path;

use speed_aggregation::{Receipt, SignedResult, Submission};
use speed_core::Digest;

use crate::error::RolesError;
use crate::fault::{InputFault, LogFault};
use crate::file_kind::FileKind;
use crate::files::read_input;
use crate::round_file::RoundFile;

/// Reads the file of a teacher's message, which may have as many bytes as one of the round has at most.
///
/// # Errors
/// If it cannot be read.
pub fn read_message(path: &Path, file: &RoundFile) -> Result<Vec<u8>, RolesError> {
    read_input(path, FileKind::message(Submission::max_size(file.round()) as u64))
}

/// Checks that the round's server signed a receipt for this round and this message of a teacher (its SHA-256).
///
/// # Errors
/// [`LogFault`]: it is another round's, or not signed by the server for this message.
pub fn check_receipt(receipt: &Receipt, file: &RoundFile, teacher: usize, message: Digest) -> Result<(), LogFault> {
    if receipt.round() != file.id() {
        return Err(LogFault::OtherRound { expected: file.id(), found: receipt.round() });
    }
    let ((digest, signature), server) = (receipt.signed(teacher, message), file.roster().server());
    if server.key().verifies(digest, signature) {
        Ok(())
    } else {
        Err(LogFault::NotForMessage { server: server.name().to_owned() })
    }
}

/// Checks that a result is the round's, and signed by its server.
///
/// # Errors
/// [`InputFault`]: it is another round's, not signed by the server, or says other things of the round than its file.
pub fn check_result(result: &SignedResult, file: &RoundFile) -> Result<(), InputFault> {
    let (list, server) = (result.list(), file.roster().server());
    if list.round() != file.id() {
        return Err(InputFault::OtherRound { expected: file.id(), found: list.round() });
    }
    let (digest, signature) = result.signed();
    if !server.key().verifies(digest, signature) {
        return Err(InputFault::Unsigned { server: server.name().to_owned() });
    }
    if list.agrees_with(file.round()) { Ok(()) } else { Err(InputFault::Contradiction) }
}
