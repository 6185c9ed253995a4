//! Checks of messages, receipts and results of a round.

use std::path::Path;

use speed_aggregation::log::{Receipt, RoundLog};
use speed_aggregation::protocol::{SignedResult, Submission};
use speed_core::Digest;

use crate::error::RolesError;
use crate::fault::{InputFault, LogFault, OpeningFault};
use crate::file_kind::FileKind;
use crate::files::{read_input, refused};
use crate::round_file::RoundFile;

/// Reads the file of a teacher's message, up to the largest size of a message of the round.
///
/// # Errors
/// If it cannot be read.
pub fn read_message(path: &Path, file: &RoundFile) -> Result<Vec<u8>, RolesError> {
    read_input(path, FileKind::message(Submission::max_size(file.round()) as u64))
}

/// Checks that the round's server signed a receipt for this round and for a teacher's message with this SHA-256.
///
/// # Errors
/// [`LogFault`]: it belongs to another round, or the server did not sign it for this message.
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

/// Checks that a log belongs to the round and is signed by its server.
pub(crate) fn check_log_signature(log: &RoundLog, file: &RoundFile) -> Result<(), LogFault> {
    if log.round() != file.id() {
        return Err(LogFault::OtherRound { expected: file.id(), found: log.round() });
    }
    let ((digest, signature), server) = (log.signed(), file.roster().server());
    if server.key().verifies(digest, signature) {
        Ok(())
    } else {
        Err(LogFault::Unsigned { server: server.name().to_owned() })
    }
}

/// Reads the file of a round's result, up to the size of a result of this round, checks it with [`check_result`], and returns
/// it with the SHA-256 of the same bytes.
pub(crate) fn read_signed_result(path: &Path, file: &RoundFile) -> Result<(SignedResult, Digest), RolesError> {
    let kind = FileKind::result(file.round());
    let bytes = read_input(path, kind)?;
    let result = SignedResult::from_bytes(&bytes).map_err(|fault| refused(path, kind, fault))?;
    check_result(&result, file).map_err(RolesError::input(path))?;
    Ok((result, Digest::of(&bytes)))
}

/// Checks that a result belongs to the round, is signed by its server, and counts enough teachers.
///
/// # Errors
/// [`InputFault`]: it belongs to another round, is not signed by the server, contradicts the round's file, or counts fewer teachers than its
/// minimum.
pub fn check_result(result: &SignedResult, file: &RoundFile) -> Result<(), InputFault> {
    let (list, server) = (result.list(), file.roster().server());
    if list.round() != file.id() {
        return Err(InputFault::OtherRound { expected: file.id(), found: list.round() });
    }
    let (digest, signature) = result.signed();
    if !server.key().verifies(digest, signature) {
        return Err(InputFault::Unsigned { server: server.name().to_owned() });
    }
    if !list.agrees_with(file.round()) {
        return Err(InputFault::Contradiction);
    }
    let (found, minimum) = (file.round().teachers_counted(list.statuses()), file.round().min_teachers());
    if found < minimum { Err(InputFault::TooFewCounted { found, minimum }) } else { Ok(()) }
}

/// Checks that the round's evaluation key is the one that was generated with a share of the secret key. With another evaluation
/// key the circuit could make answers that read the share, and a verification with that key would still succeed.
pub(crate) fn check_evaluation_key(file: &RoundFile, of_share: Digest) -> Result<(), InputFault> {
    match file.round().evaluation_key() {
        Some(found) if found == of_share => Ok(()),
        // In the round's id, zeros mean that nothing is stated.
        found => {
            Err(OpeningFault::EvaluationKey { expected: of_share, found: found.unwrap_or(Digest::from_bytes([0; 32])) }
                .into())
        }
    }
}
