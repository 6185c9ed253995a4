//! Checks of messages, receipts and results of a round.

use std::path::Path;

use speed_aggregation::log::{Receipt, RoundLog};
use speed_aggregation::protocol::{RoundId, Signature, SignedResult, Submission};
use speed_core::Digest;

use crate::error::Refused;
use crate::file_kind::FileKind;
use crate::files::{read_input, refused};
use crate::round_file::RoundFile;

/// Reads the file of a teacher's message, up to the largest size of a message of the round.
pub(crate) fn read_message(path: &Path, file: &RoundFile) -> Result<Vec<u8>, Refused> {
    read_input(path, FileKind::message(Submission::max_size(file.round()) as u64))
}

/// Checks that a file is the round's.
pub(crate) fn expect_round(file: &RoundFile, found: RoundId) -> Result<(), Refused> {
    let expected = file.id();
    Refused::unless(found == expected, || format!("is of round {found}, expected round {expected}"))
}

/// Checks that a file is about the result with this SHA-256.
pub(crate) fn expect_result(expected: Digest, found: Digest) -> Result<(), Refused> {
    Refused::unless(found == expected, || format!("is of the result with SHA-256 {found}, this result has {expected}"))
}

/// Checks that the round's server signed a file.
pub(crate) fn expect_signed(file: &RoundFile, (digest, signature): (Digest, &Signature)) -> Result<(), Refused> {
    let server = file.roster().server();
    Refused::unless(server.key().verifies(digest, signature), || {
        format!("is not signed by the round's server {:?}: it was changed, or another party made it", server.name())
    })
}

/// Checks that the round's server signed a receipt for this round and for a teacher's message with this SHA-256.
pub(crate) fn check_receipt(
    receipt: &Receipt,
    file: &RoundFile,
    teacher: usize,
    message: Digest,
) -> Result<(), Refused> {
    expect_round(file, receipt.round())?;
    let ((digest, signature), server) = (receipt.signed(teacher, message), file.roster().server());
    Refused::unless(server.key().verifies(digest, signature), || {
        let words = "for this message: it belongs to another message, or was changed";
        format!("is not a receipt of the round's server {:?} {words}", server.name())
    })
}

/// Checks that a log belongs to the round and is signed by its server.
pub(crate) fn check_log_signature(log: &RoundLog, file: &RoundFile) -> Result<(), Refused> {
    expect_round(file, log.round())?;
    expect_signed(file, log.signed())
}

/// Reads the file of a round's result, up to the size of a result of this round, checks it with [`check_result`], and returns
/// it with the SHA-256 of the same bytes.
pub(crate) fn read_signed_result(path: &Path, file: &RoundFile) -> Result<(SignedResult, Digest), Refused> {
    let kind = FileKind::result(file.round());
    let bytes = read_input(path, kind)?;
    let result = SignedResult::from_bytes(&bytes).map_err(|fault| refused(path, kind, fault))?;
    check_result(&result, file).map_err(Refused::input(path))?;
    Ok((result, Digest::of(&bytes)))
}

/// Checks that a result belongs to the round, is signed by its server, and counts enough teachers.
pub(crate) fn check_result(result: &SignedResult, file: &RoundFile) -> Result<(), Refused> {
    let list = result.list();
    expect_round(file, list.round())?;
    expect_signed(file, result.signed())?;
    Refused::unless(list.agrees_with(file.round()), || "contradicts the round's file".to_owned())?;
    let (found, minimum) = (file.round().teachers_counted(list.statuses()), file.round().min_teachers());
    Refused::unless(found >= minimum, || {
        format!("counts {found} teachers, but at least {minimum} must answer: the server signed it, which convicts it")
    })
}

/// Checks that the round's evaluation key is the one that was generated with a share of the secret key. With another evaluation
/// key the circuit could make answers that read the share, and a verification with that key would still succeed.
pub(crate) fn check_evaluation_key(file: &RoundFile, of_share: Digest) -> Result<(), Refused> {
    let stated = file.round().evaluation_key();
    Refused::unless(stated == Some(of_share), || {
        // In the round's id, zeros mean that nothing is stated.
        let found = stated.unwrap_or(Digest::from_bytes([0; 32]));
        format!(
            "was generated with the evaluation key {of_share}, the round states {found}: with another evaluation key a verified answer could read \
             the opener's share of the key"
        )
    })
}
