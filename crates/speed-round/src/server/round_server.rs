//! The server's side of one round, independent of the transport of messages.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use speed_aggregation::keys::SeededEvaluationKey;
use speed_aggregation::log::RoundLog;
use speed_core::{Circuit, Digest};

use super::admission::{Admission, ProofChecks};
use super::reveal::server_identity;
use crate::error::Refused;
use crate::file_kind::FileKind;
use crate::files::decode_input;
use crate::identity::Identity;
use crate::key_bits::KeyBits;
use crate::price::{LedgerOptions, RoundLedger};
use crate::proofs;
use crate::randomness::RoundRandomness;
use crate::registry::RoundRegistry;
use crate::round_file::RoundFile;

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

/// The server's side of one round: the round's file, the server's keys and the server's registry, which is locked against
/// other programs.
pub struct RoundServer {
    pub(super) options: ServerOptions,
    pub(crate) file: RoundFile,
    pub(crate) identity: Identity,
    /// `None` once the result exists; then messages are no longer read.
    checks: Option<ProofChecks>,
    pub(crate) registry: RoundRegistry,
    /// The smallest number of teachers whose messages the sum needs.
    pub(crate) minimum: usize,
}

impl RoundServer {
    /// Reads everything that belongs to the round except the messages, and checks that it is consistent.
    ///
    /// # Errors
    /// If a file is missing, damaged or not the round's, or another program uses the registry.
    pub fn open(options: ServerOptions) -> Result<Self, Refused> {
        let file = RoundFile::read(&options.round)?;
        file.check_randomness(options.randomness.kind())?;
        let minimum = minimum(&file, options.min_teachers)?;
        let identity = server_identity(&options.signing_key, &file)?;
        let registry = RoundRegistry::open(&options.registry, options.new_registry)?;
        let is_done = registry.result(file.id())?.is_some();
        // A server whose keys were deleted after the round still provides the result and the log.
        let checks = if is_done {
            None
        } else {
            Some(ProofChecks::read(&options.evaluation_key, options.proof_key.as_deref(), &file)?)
        };
        let server = Self { options, file, identity, checks, registry, minimum };
        if !is_done {
            server.expect_to_be_charged()?;
        }
        Ok(server)
    }

    pub(super) fn ledger(&self) -> RoundLedger<'_> {
        RoundLedger { options: &self.options.ledger, file: &self.file, party: self.identity.key() }
    }

    /// Checks, before messages are accepted, that the round can be charged when its sum is closed. The ledger must be
    /// writable, must have budget for the smallest number of teachers, and must not contain a charge for this round if the
    /// registry has no sum of it.
    fn expect_to_be_charged(&self) -> Result<(), Refused> {
        let ledger = self.ledger();
        if !self.is_closed()? {
            ledger.expect_uncharged(self.registry.path())?;
        }
        ledger.expect_budget(self.minimum)?;
        ledger.expect_writable()
    }

    /// Returns the time at which the round was first served, according to the registry. If the registry has no time
    /// yet, stores and returns the current time. A time in the future means that the clock was wrong, then or now.
    pub(crate) fn opened(&self) -> Result<SystemTime, Refused> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // A damaged number of seconds, which no clock shows, counts as 1970.
        let seconds = self.registry.opened(self.file.id(), now.as_secs())?;
        Ok(UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).unwrap_or(UNIX_EPOCH))
    }

    /// Returns the log of the round, signed.
    ///
    /// # Errors
    /// If the registry cannot be read.
    pub fn log(&self) -> Result<RoundLog, Refused> {
        let entries = self.registry.log(self.file.id())?;
        Ok(RoundLog::new(self.file.id(), entries, |digest| self.identity.sign(digest)))
    }

    /// Returns the result of the round, if it exists.
    pub(crate) fn result(&self) -> Result<Option<Vec<u8>>, Refused> {
        self.registry.result(self.file.id())
    }

    /// Returns whether the sum is closed, so that new messages are late.
    pub(crate) fn is_closed(&self) -> Result<bool, Refused> {
        Ok(self.registry.sum(self.file.id())?.is_some() || self.result()?.is_some())
    }

    pub(super) fn admission(&self) -> Admission<'_> {
        Admission { file: &self.file, checks: self.checks.as_ref() }
    }
}

impl ProofChecks {
    /// Reads the keys with which the messages of a round are checked.
    pub(super) fn read(evaluation_key: &Path, proof_key: Option<&Path>, file: &RoundFile) -> Result<Self, Refused> {
        let public_key = read_evaluation_key(evaluation_key, file)?.public_key().clone();
        let proof_key = proofs::read(proof_key, file, public_key.parameters())?;
        Ok(Self { public_key, proof_key })
    }
}

/// Reads the round's evaluation key. It is large, so it is not kept in memory.
pub(super) fn read_evaluation_key(path: &Path, file: &RoundFile) -> Result<SeededEvaluationKey, Refused> {
    let key = decode_input(path, FileKind::EVALUATION_KEY, |bytes| -> Result<_, Refused> {
        // Checked before any of it is decoded.
        if let Some(expected) = file.round().evaluation_key() {
            let found = Digest::of(bytes);
            if found != expected {
                return Err(Refused::fault(format!(
                    "has SHA-256 {found}, but the round states {expected} (evaluation.sha256): it is another evaluation key, or was changed"
                )));
            }
        }
        Ok(SeededEvaluationKey::from_bytes(bytes)?)
    })?;
    file.check_key(path, key.id())?;
    KeyBits::check(file, key.public_key().parameters(), 0.0)?;
    Ok(key)
}

/// Returns the smallest number of teachers whose messages the sum needs. `asked` may be larger than the round's minimum,
/// but not smaller.
fn minimum(file: &RoundFile, asked: Option<usize>) -> Result<usize, Refused> {
    let (min, max) = (file.round().min_teachers(), file.round().shape().teachers());
    match asked {
        Some(asked) if !(min..=max).contains(&asked) => Err(Refused::usage(format!(
            "--min-teachers {asked}: the round asks for at least {min} of its {max} teachers"
        ))),
        asked => Ok(asked.unwrap_or(min)),
    }
}
