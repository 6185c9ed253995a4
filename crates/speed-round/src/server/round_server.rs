//! The server's side of one round, independent of the transport of messages.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use speed_aggregation::keys::SeededEvaluationKey;
use speed_aggregation::log::RoundLog;
use speed_aggregation::protocol::{SignedResult, TeacherStatus};
use speed_core::{Digest, NoisePlacement, getters};

use super::admission::{Admission, ProofChecks};
use super::inbox::{FolderInbox, RegistryInbox};
use super::labelling::{EvaluatedRound, Labelling, copy_messages, late};
use super::options::ServerOptions;
use super::report::{Progress, ServerReport};
use super::reveal::server_identity;
use crate::charge::RoundLedger;
use crate::error::Refused;
use crate::file_kind::FileKind;
use crate::files::decode_input;
use crate::identity::Identity;
use crate::influence::Influence;
use crate::key_bits::KeyBits;
use crate::proofs;
use crate::registry::RoundRegistry;
use crate::round_file::RoundFile;

/// The server's side of one round: the round's file, the server's keys and the server's registry, which is locked against
/// other programs.
pub struct RoundServer {
    options: ServerOptions,
    file: RoundFile,
    identity: Identity,
    /// `None` once the result exists; then messages are no longer read.
    checks: Option<ProofChecks>,
    registry: RoundRegistry,
    minimum: usize,
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

    /// Checks, before messages are accepted, that the round can be charged when its sum is closed. The ledger must be
    /// writable, must have budget for the smallest number of teachers, and must not contain a charge for this round if the
    /// registry has no sum of it.
    fn expect_to_be_charged(&self) -> Result<(), Refused> {
        let ledger = RoundLedger::of_server(&self.options.ledger, &self.file);
        if !self.is_closed()? {
            ledger.expect_uncharged(self.registry.path())?;
        }
        ledger.expect_budget(self.minimum)?;
        ledger.expect_writable()
    }

    getters! {
        /// Returns the round's file.
        pub(crate) file: &RoundFile,
        /// Returns the smallest number of teachers whose messages the sum needs.
        pub(crate) minimum: usize,
        /// Returns the server's signing key.
        pub(crate) identity: &Identity,
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

    /// Returns a number that differs after each change of the log.
    pub(crate) fn changes(&self) -> u64 {
        self.registry.changes()
    }

    /// Returns whether the student confirmed that it has the result.
    pub(crate) fn is_fetched(&self) -> Result<bool, Refused> {
        self.registry.is_fetched(self.file.id())
    }

    /// Records that the student has the result.
    pub(crate) fn note_fetched(&self) -> Result<(), Refused> {
        self.registry.keep_fetched(self.file.id())
    }

    /// Returns whether the sum is closed, so that new messages are late.
    pub(crate) fn is_closed(&self) -> Result<bool, Refused> {
        Ok(self.registry.sum(self.file.id())?.is_some() || self.result()?.is_some())
    }

    /// Sums the messages that came over a network, computes the encrypted winners, and returns the number of counted
    /// teachers. No message may be stored during this call: call [`Reception::close`](super::Reception::close) first.
    pub(crate) fn evaluate_received(&self, progress: &dyn Progress) -> Result<usize, Refused> {
        Ok(self.file.round().teachers_counted(self.evaluate(None, progress)?.result.list().statuses()))
    }

    /// Sums the messages that came over a network and those of a directory, and computes the encrypted winners, or
    /// returns the stored result. A step that is in the registry is not repeated.
    pub(super) fn evaluate(
        &self,
        then: Option<&FolderInbox>,
        progress: &dyn Progress,
    ) -> Result<EvaluatedRound, Refused> {
        let inbox = &RegistryInbox { registry: &self.registry, round: self.file.id(), then };
        if let Some(bytes) = self.result()? {
            let result = SignedResult::from_bytes(&bytes).map_err(Refused::input(self.registry.path()))?;
            let counted = self.registry.counted(self.file.id())?;
            let refused = late(inbox, self.admission(), (result.list().statuses(), &counted), progress)?;
            return Ok(EvaluatedRound { result, bytes, refused, resumed: self.file.round().shape().queries() });
        }
        let labelling = Labelling {
            file: &self.file,
            admission: self.admission(),
            identity: &self.identity,
            minimum: self.minimum,
            options: &self.options,
            inbox,
            registry: &self.registry,
            progress,
        };
        labelling.run(read_evaluation_key(&self.options.evaluation_key, &self.file)?.expand())
    }

    /// Copies the counted messages that are in a directory, for a result that exists, if copies are asked for.
    ///
    /// # Errors
    /// If a copy is then missing or cannot be written.
    pub(super) fn copy_messages(&self, inbox: &FolderInbox) -> Result<(), Refused> {
        match &self.options.copies {
            Some(copies) => copy_messages(copies, &self.file, inbox, &self.registry),
            None => Ok(()),
        }
    }

    pub(super) fn registry(&self) -> &RoundRegistry {
        &self.registry
    }

    pub(super) fn admission(&self) -> Admission<'_> {
        Admission { file: &self.file, checks: self.checks.as_ref() }
    }

    /// Creates the report of a labelled round whose result was written to `out`.
    pub(super) fn report(&self, labelled: EvaluatedRound, out: &Path) -> ServerReport {
        let EvaluatedRound { result, bytes, refused, resumed } = labelled;
        let list = result.list();
        let missing = list.statuses().iter().enumerate().filter(|(_, status)| **status == TeacherStatus::Missing);
        ServerReport {
            round: self.file.id().to_hex(),
            name: self.file.name().to_owned(),
            simulation: list.is_simulation(),
            queries: list.shape().queries(),
            teachers: self.file.round().shape().teachers(),
            parties: self.file.round().parties(),
            minimum: self.minimum,
            counted: self.file.round().teachers_counted(list.statuses()),
            honest_ratio: list.honest_ratio(self.file.round()),
            proven: self.file.round().proofs().is_some(),
            one_teacher: Influence::of(&self.file),
            noise_by_server: list.placement() == NoisePlacement::Central,
            refused,
            missing: missing.map(|(teacher, _)| teacher).collect(),
            resumed,
            out: out.to_path_buf(),
            bytes: bytes.len(),
        }
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
