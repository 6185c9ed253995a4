//! The server's program: it turns messages into one result, on ciphertexts only.

mod admission;
mod inbox;
mod labelling;
mod notes;
mod reception;
mod reveal;
mod round_server;
mod verify;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::error::Refused;
use crate::files::{NO_FILE, OTHER_CONTENT, lock, visible_files, write_once};

pub use crate::refusal::Refusal;
use inbox::Inbox;
pub use labelling::{Progress, ServerReport};
pub use reception::{Admitted, Reception};
pub use reveal::{RevealOptions, RevealReport, reveal};
pub use round_server::{RoundServer, ServerOptions};
pub(crate) use verify::check_verification;
pub use verify::{VerifyOptions, VerifyReport, verify};

/// Returns the file of the log that is written beside a result: the result's name with `.log` after it.
pub fn log_of(out: &Path) -> PathBuf {
    out.with_added_extension("log")
}

/// Sums the messages of a round in the directory `answers`, computes the encrypted winners, and writes the result to
/// `out` and the round's log beside it. A round is evaluated once. A call after an interruption at any moment resumes:
/// once the sum is closed, the same teachers stay in it, the server's noise is not drawn again, and finished answers
/// are kept. A call after the end writes the same bytes, to any path.
///
/// # Errors
/// If an input is missing or does not fit the round, too few teachers gave a usable answer, the ledger has no budget
/// for the round, another file is in the result's place, copies of counted messages are asked for and one is missing, or
/// something cannot be written. Refused messages are not an
/// error.
pub fn aggregate(
    options: &ServerOptions,
    answers: &Path,
    out: &Path,
    progress: &dyn Progress,
) -> Result<ServerReport, Refused> {
    // Checks before the argmax, not after it, that the result can be written there and that no other program is about
    // to write it.
    let _lock = ResultLock::take(out)?;
    let server = RoundServer::open(options.clone())?;
    for path in [out, &log_of(out)] {
        if fs::symlink_metadata(path).is_ok() && server.result()?.is_none() {
            return Err(Refused::results(path, OTHER_CONTENT));
        }
    }
    let files = visible_files(answers)?;
    let labelled = server.evaluate(&files, progress)?;
    write_once(out, &labelled.bytes)?;
    write_once(&log_of(out), &server.log()?.to_bytes())?;
    // The result may be of an earlier call, without copies or without all of them.
    server.copy_messages(&Inbox { network: None, files: &files })?;
    Ok(server.report(labelled, out))
}

/// A result's place, while one server works on it.
struct ResultLock {
    path: PathBuf,
    _file: File,
}

impl ResultLock {
    fn take(out: &Path) -> Result<Self, Refused> {
        if fs::symlink_metadata(out).is_ok() && !out.is_file() {
            return Err(Refused::results(out, NO_FILE));
        }
        let path = out.with_added_extension("lock");
        Ok(Self { _file: lock(&path)?, path })
    }
}

impl Drop for ResultLock {
    fn drop(&mut self) {
        // A program that opened it in between finds it locked; a lock file that is left over is harmless.
        let _ = fs::remove_file(&self.path);
    }
}
