//! A teacher's check of a round's log.

use std::path::PathBuf;

use serde::Serialize;
use speed_aggregation::log::{LogEvent, Receipt, RoundLog};
use speed_aggregation::protocol::{Submission, Verification};
use speed_core::Digest;

use crate::checks::{check_log_signature, check_receipt, read_message};
use crate::error::Refused;
use crate::file_kind::FileKind;
use crate::files::{decode_input, read_input, refused};
use crate::log_form::LogForm;
use crate::round_file::RoundFile;
use crate::server::check_verification;

/// The options of a log check.
#[derive(Clone, Debug)]
pub struct LogCheckOptions {
    /// The round's file.
    pub round: PathBuf,
    /// The teacher's message.
    pub message: PathBuf,
    /// The server's receipt for the message, if it was sent over a network.
    pub receipt: Option<PathBuf>,
    /// The round's log.
    pub log: PathBuf,
    /// A teacher's verification of the result. It must be of the same log: a server may sign a log for each teacher.
    pub verification: Option<PathBuf>,
}

/// The report of a log check.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct LogCheckReport {
    /// The round's id.
    pub round: String,
    /// The teacher's index.
    pub teacher: usize,
    /// True if the sum is closed.
    pub closed: bool,
    /// True if the server states that the message came over the network.
    pub received: bool,
    /// True if the server states that the message is in the sum.
    pub counted: bool,
    /// Number of parties whose messages are in the sum, according to the server.
    pub teachers_counted: usize,
    /// Number of entries of the log.
    pub entries: usize,
}

/// Checks the treatment of a teacher's message: that the round's server signed the log, that the log agrees with the
/// server's receipt, that the message is counted if the sum is closed, and that an honest server writes such a log.
///
/// # Errors
/// If a file is missing or damaged; if the log is another round's, contradicts the receipt, lacks the message, or has entries that no honest
/// server writes; or if the verification is of another log.
pub fn check_log(options: &LogCheckOptions) -> Result<LogCheckReport, Refused> {
    let file = RoundFile::read(&options.round)?;
    let message = read_message(&options.message, &file)?;
    let digest = Digest::of(&message);
    let submission =
        Submission::from_bytes(&message).map_err(|fault| refused(&options.message, FileKind::message(0), fault))?;
    let teacher = submission.message().teacher();
    let bytes = read_input(&options.log, FileKind::LOG)?;
    let log = RoundLog::from_bytes(&bytes).map_err(|fault| refused(&options.log, FileKind::LOG, fault))?;
    let receipt = options
        .receipt
        .as_ref()
        .map(|path| decode_input(path, FileKind::RECEIPT, Receipt::from_bytes).map(|receipt| (path, receipt)))
        .transpose()?;
    if let Some((path, receipt)) = &receipt {
        check_receipt(receipt, &file, teacher, digest).map_err(Refused::input(*path))?;
    }
    let receipt = receipt.map(|(_, receipt)| receipt);
    let report = read_log(&log, receipt.as_ref(), &file, teacher, digest);
    let report = report.map_err(Refused::input(&options.log))?;
    if let Some(path) = &options.verification {
        let verification = decode_input(path, FileKind::VERIFICATION, Verification::from_bytes)?;
        check_verification(&verification, &file, verification.result()).map_err(Refused::input(path))?;
        let (expected, found) = (verification.log(), Digest::of(&bytes));
        if found != expected {
            return Err(Refused::input(&options.log)(format!(
                "this log has SHA-256 {found}, and the verifier saw the one with {expected}: fetch the log again after the result exists; if the two still \
                 differ, the server signed two logs, and they convict it"
            )));
        }
    }
    Ok(report)
}

/// Reads a log, and the receipt that the server signed for this message.
fn read_log(
    log: &RoundLog,
    receipt: Option<&Receipt>,
    file: &RoundFile,
    teacher: usize,
    message: Digest,
) -> Result<LogCheckReport, Refused> {
    check_log_signature(log, file)?;
    let of = |event| log.entries().iter().filter(move |entry| entry.event() == event);
    // Every event that shows that the sum is closed, because no message is received after it.
    let is_end = |event| matches!(event, LogEvent::Counted | LogEvent::Closed | LogEvent::Result);
    let end = log.entries().iter().position(|entry| is_end(entry.event()));
    let closed = end.is_some();
    if let Some(receipt) = receipt {
        let head = receipt.head(teacher, message);
        match log.head(head.entries()) {
            None if end.is_none() => {
                return Err(Refused::fault(format!(
                    "has {} entries and is older than the receipt, which was signed at {} entries: fetch the log again",
                    log.entries().len(),
                    head.entries()
                )));
            }
            Some(found) if found == head && end.is_none_or(|end| receipt.entry() < end) => {}
            _ => {
                return Err(Refused::fault(format!(
                    "does not record this message at entry {}, but the receipt with the server's signature does: the server changed its log. \
                     Keep message, receipt and log, because together they prove it",
                    receipt.entry()
                )));
            }
        }
    }
    let received = of(LogEvent::Received).any(|entry| entry.teacher() == Some(teacher) && entry.digest() == message);
    let counted = of(LogEvent::Counted).any(|entry| entry.teacher() == Some(teacher) && entry.digest() == message);
    if closed && !counted {
        return Err(Refused::fault(format!(
            "states that the sum was closed without this message of teacher {teacher}"
        )));
    }
    let form = LogForm::read(log.entries(), file.round())?;
    Ok(LogCheckReport {
        round: file.id().to_hex(),
        teacher,
        closed,
        received,
        counted,
        teachers_counted: form.counted.len(),
        entries: log.entries().len(),
    })
}
