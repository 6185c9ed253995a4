//! The server's program: messages in, one result out, on ciphertexts only.

mod admission;
mod inbox;
mod labelling;
mod report;
mod store;

use std::ffi::OsString;
use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use speed_aggregation::{EncryptedAnswer, SeededEvaluationKey, SignedResult, TeacherStatus};
use speed_core::{Circuit, NoisePlacement};

use crate::error::{OptionsFault, RolesError};
use crate::fault::{InputFault, ResultsFault};
use crate::files::{Access, MAX_EVALUATION_KEY, decode_input, lock, read_input, write_new};
use crate::identity::Identity;
use crate::proofs;
use crate::randomness::RoundRandomness;
use crate::round_file::RoundFile;

pub use crate::refusal::{MessageFault, Refusal};
use admission::Admission;
use inbox::FolderInbox;
use labelling::{Labelled, Labelling, late};
pub use report::{Progress, ServerReport};
use store::FolderStore;

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
    /// The folder of the teachers' messages.
    pub answers: PathBuf,
    /// The result to write.
    pub out: PathBuf,
    /// The number of teachers that must answer, if more than the round says.
    pub min_teachers: Option<usize>,
    /// The folder that keeps finished steps; [`default_state`] if none.
    pub state: Option<PathBuf>,
    /// The circuit.
    pub circuit: Circuit,
    /// Threads; answers do not depend on it.
    pub threads: NonZeroUsize,
    /// The origin of noise and re-randomisation.
    pub randomness: RoundRandomness,
}

/// Returns the folder that keeps finished steps if no other is named: the result's name with `.state` after it.
#[must_use]
pub fn default_state(out: &Path) -> PathBuf {
    beside(out, ".state")
}

fn beside(out: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(out);
    name.push(suffix);
    PathBuf::from(name)
}

/// A result's place, while one server works on it.
struct ResultLock {
    path: PathBuf,
    _file: File,
}

impl ResultLock {
    fn take(out: &Path) -> Result<Self, RolesError> {
        let path = beside(out, ".lock");
        Ok(Self { _file: lock(&path)?, path })
    }
}

impl Drop for ResultLock {
    fn drop(&mut self) {
        // Whoever opened it in between finds it locked; one that is left is harmless.
        let _ = fs::remove_file(&self.path);
    }
}

/// Sums the messages of a round and computes the encrypted winners. Interrupted at any moment and called again it goes on:
/// once the sum is closed the same teachers stay in it, noise of the server is not drawn again, and answers that are done
/// are kept. Called again after it is done it only reports.
///
/// # Errors
/// If an input is missing or does not fit the round, too few teachers gave a usable answer, another result is there, or
/// something cannot be written. Messages that are refused are no error.
pub fn aggregate(options: &ServerOptions, progress: &dyn Progress) -> Result<ServerReport, RolesError> {
    let file = RoundFile::read(&options.round)?;
    file.check_randomness(options.randomness.kind())?;
    let minimum = minimum(&file, options.min_teachers)?;
    let identity = Identity::read(&options.signing_key)?;
    if identity.key() != file.roster().server().key() {
        let fault = InputFault::Party { found: identity.key(), is: "not the round's server" };
        return Err(RolesError::input(&options.signing_key)(fault));
    }
    let proof_key = proofs::read(options.proof_key.as_deref(), &file)?;
    let admission = Admission { file: &file, proof_key: proof_key.as_ref() };
    match fs::symlink_metadata(&options.out) {
        Ok(_) if options.out.is_file() => return finished(options, admission, minimum, progress),
        Ok(_) => return Err(RolesError::results(&options.out, ResultsFault::NoFile)),
        Err(_) => {}
    }
    // Before the argmax, not after it: whether the result can be written there, and that nobody else is about to.
    let _lock = ResultLock::take(&options.out)?;
    let key = decode_input(&options.evaluation_key, MAX_EVALUATION_KEY, SeededEvaluationKey::from_bytes)?;
    file.check_key(&options.evaluation_key, key.id())?;

    let state = options.state.clone().unwrap_or_else(|| default_state(&options.out));
    let store = FolderStore::open(&state, file.id(), EncryptedAnswer::size(file.round().outcomes()))?;
    let labelling = Labelling {
        file: &file,
        admission,
        identity: &identity,
        minimum,
        circuit: options.circuit,
        threads: options.threads,
        randomness: options.randomness,
        inbox: &FolderInbox::open(&options.answers)?,
        store: &store,
        progress,
    };
    let labelled = labelling.run(key.expand())?;
    let bytes = labelled.result.to_bytes();
    write_new(&options.out, &bytes, Access::Shared)?;
    store.remove();
    Ok(report(options, &file, minimum, labelled, bytes.len()))
}

/// Returns the number of teachers that must answer: an operator may ask for more than the round, not for fewer.
fn minimum(file: &RoundFile, asked: Option<usize>) -> Result<usize, OptionsFault> {
    let (min, max) = (file.round().min_teachers(), file.round().shape().teachers());
    match asked {
        Some(asked) if !(min..=max).contains(&asked) => Err(OptionsFault::MinTeachers { asked, min, max }),
        asked => Ok(asked.unwrap_or(min)),
    }
}

/// Reports on a result that is there already.
fn finished(
    options: &ServerOptions,
    admission: Admission<'_>,
    minimum: usize,
    progress: &dyn Progress,
) -> Result<ServerReport, RolesError> {
    let file = admission.file;
    let other = || RolesError::results(&options.out, ResultsFault::Other);
    let bytes = read_input(&options.out, SignedResult::size(file.round()) as u64).map_err(|_| other())?;
    let result = SignedResult::from_bytes(&bytes).map_err(|_| other())?;
    if result.list().round() != file.id() || result.list().shape() != file.round().shape() {
        return Err(other());
    }
    let refused = late(&FolderInbox::open(&options.answers)?, admission, result.list().statuses(), progress);
    let labelled = Labelled { result, refused, resumed: file.round().shape().queries() };
    Ok(report(options, file, minimum, labelled, bytes.len()))
}

fn report(
    options: &ServerOptions,
    file: &RoundFile,
    minimum: usize,
    Labelled { result, refused, resumed }: Labelled,
    bytes: usize,
) -> ServerReport {
    let list = result.list();
    let missing = list.statuses().iter().enumerate().filter(|(_, status)| **status == TeacherStatus::Missing);
    ServerReport {
        round: file.id().to_hex(),
        name: file.name().to_owned(),
        simulation: list.is_simulation(),
        queries: list.shape().queries(),
        teachers: list.shape().teachers(),
        minimum,
        counted: list.counted(),
        honest_ratio: list.honest_ratio(),
        proven: file.round().proofs().is_some(),
        noise_by_server: list.placement() == NoisePlacement::Central,
        refused,
        missing: missing.map(|(teacher, _)| teacher).collect(),
        resumed,
        out: options.out.clone(),
        bytes,
    }
}
