//! The server's program: messages in, one result out, on ciphertexts only.

mod inbox;
mod store;

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::Serialize;
use speed_aggregation::{
    AnswerList, Circuit, EncryptedAnswer, EvaluationKey, NoisePlace, SeededEvaluationKey, Server, ServerError,
    TeacherStatus,
};

use crate::files::{Access, MAX_EVALUATION_KEY, read_input, write_new};
use crate::{RolesError, RoundFile, Simulation};

pub use inbox::Refusal;
use store::Store;

/// What a server is told.
#[derive(Clone, Debug)]
pub struct Options {
    /// The student's evaluation key.
    pub evaluation_key: PathBuf,
    /// The round's file.
    pub round: PathBuf,
    /// The folder of the teachers' messages.
    pub answers: PathBuf,
    /// The result to write.
    pub out: PathBuf,
    /// Number of teachers that must answer, if more than the round says.
    pub min_teachers: Option<usize>,
    /// Where to keep what is done; [`default_state`] if none.
    pub state: Option<PathBuf>,
    /// The circuit.
    pub circuit: Circuit,
    /// Threads; answers do not depend on it.
    pub threads: NonZeroUsize,
    /// A seed instead of the operating system's generator.
    pub simulation: Option<Simulation>,
}

/// Where a server keeps what is done if nothing else is said: the result's name with `.state` after it.
#[must_use]
pub fn default_state(out: &Path) -> PathBuf {
    let mut name = OsString::from(out);
    name.push(".state");
    PathBuf::from(name)
}

/// What happens while a server works.
pub trait Progress: Sync {
    /// A file was refused.
    fn refused(&self, refusal: &Refusal);
    /// The argmax begins: queries of the round, and how many were answered before an interruption.
    fn begin(&self, queries: usize, done: usize);
    /// So many queries more are answered.
    fn advance(&self, queries: usize);
}

/// What a server did.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The round's id.
    pub round: String,
    /// The round's name.
    pub name: String,
    /// Whether the round is a simulation.
    pub simulation: bool,
    /// Number of queries.
    pub queries: usize,
    /// Teachers of the round.
    pub teachers: usize,
    /// Teachers that had to answer.
    pub minimum: usize,
    /// Teachers in the sum.
    pub counted: usize,
    /// The largest honest ratio that an accountant may use: see [`AnswerList::honest_ratio`].
    pub honest_ratio: f64,
    /// Whether the server added the noise.
    pub noise_by_server: bool,
    /// Files that were not counted, and why.
    pub refused: Vec<Refusal>,
    /// Teachers without any message when the sum was closed.
    pub missing: Vec<usize>,
    /// Queries that an earlier, interrupted run had answered.
    pub resumed: usize,
    /// The result.
    pub out: PathBuf,
    /// Its length.
    pub bytes: usize,
}

/// Sums the messages of a round and computes the encrypted winners. Interrupted at any moment and called again it goes on:
/// once the sum is closed the same teachers stay in it, noise of the server is not drawn again, and answers that are done
/// are kept. Called again after it is done it only reports.
///
/// # Errors
/// If an input is missing or does not fit the round, too few teachers gave a usable answer, another result is there, or
/// something cannot be written. Messages that are refused are no error.
pub fn aggregate(options: &Options, progress: &dyn Progress) -> Result<Report, RolesError> {
    let file = RoundFile::read(&options.round)?;
    file.check_simulation(options.simulation.is_some())?;
    let minimum = minimum(&file, options.min_teachers)?;
    if options.out.exists() {
        return finished(options, &file, minimum, progress);
    }
    let bytes = read_input(&options.evaluation_key, MAX_EVALUATION_KEY)?;
    let key = SeededEvaluationKey::from_bytes(&bytes)
        .map_err(|error| RolesError::Input { path: options.evaluation_key.clone(), message: error.to_string() })?;
    drop(bytes);
    file.check_key(&options.evaluation_key, key.id())?;

    let state = options.state.clone().unwrap_or_else(|| default_state(&options.out));
    let store = Store::open(&state)?;
    let (server, refused) = summed(options, &file, key.expand(), minimum, &store, progress)?;
    let (answers, resumed) = answered(options, &server, &store, progress)?;
    let list = AnswerList::new(file.round(), file.key(), server.statuses().to_vec(), &answers)?;
    let bytes = list.to_bytes();
    write_new(&options.out, &bytes, Access::Shared)?;
    store.remove();
    Ok(report(options, &file, minimum, &list, refused, resumed, bytes.len()))
}

/// The number of teachers that must answer: an operator may ask for more than the round, not for fewer.
fn minimum(file: &RoundFile, asked: Option<usize>) -> Result<usize, RolesError> {
    let (least, most) = (file.round().min_teachers(), file.round().teachers());
    match asked {
        Some(asked) if !(least..=most).contains(&asked) => Err(RolesError::Options(format!(
            "--min-teachers {asked}: the round asks for at least {least} of its {most} teachers"
        ))),
        asked => Ok(asked.unwrap_or(least)),
    }
}

/// The server with its closed sum: from the store, or from the messages at hand.
fn summed(
    options: &Options,
    file: &RoundFile,
    key: EvaluationKey,
    minimum: usize,
    store: &Store,
    progress: &dyn Progress,
) -> Result<(Server, Vec<Refusal>), RolesError> {
    let round = file.round();
    let source = Simulation::key_source(options.simulation);
    let files = inbox::list(&options.answers)?;
    if let Some(state) = store.sum(Server::state_size(round, &key))? {
        let server = Server::resume(key, round.clone(), &state)
            .map_err(|error| RolesError::Input { path: store.sum_path(), message: error.to_string() })?;
        let refused = late(&files, file, server.statuses(), progress);
        return Ok((server.with_circuit(options.circuit).with_source(source), refused));
    }
    let mut server = Server::new(key, round.clone())?.with_circuit(options.circuit).with_source(source);
    let refused = inbox::offer(&files, round, |teacher, message| server.add(teacher, message));
    for refusal in &refused {
        progress.refused(refusal);
        if let (Some(teacher), Some(status)) = (refusal.teacher, refusal.status) {
            server.note(teacher, status);
        }
    }
    if server.received() < minimum {
        let refused = refused.iter().map(ToString::to_string).collect();
        let (counted, teachers) = (server.received(), round.teachers());
        return Err(RolesError::TooFew { counted, teachers, minimum, refused });
    }
    if round.noise_place() == NoisePlace::Server {
        let noise = Simulation::server_noise(options.simulation, file.id());
        server.add_noise(&file.mechanism().draw(1, round.values(), noise)?)?;
    }
    server.close(minimum)?;
    store.keep_sum(&server.state()?)?;
    Ok((server, refused))
}

/// The refusals after the sum was closed with these statuses.
fn late(files: &[PathBuf], file: &RoundFile, statuses: &[TeacherStatus], progress: &dyn Progress) -> Vec<Refusal> {
    let mut seen = vec![false; statuses.len()];
    let refused = inbox::offer(files, file.round(), |teacher, message| {
        let Some(status) = statuses.get(teacher) else {
            return Err(ServerError::UnknownTeacher { teacher, teachers: statuses.len() });
        };
        if message.key() != file.key() {
            return Err(ServerError::WrongKey { teacher, expected: file.key(), found: message.key() });
        }
        if message.round() != file.id() {
            return Err(ServerError::WrongRound { teacher, expected: file.id(), found: message.round() });
        }
        match *status {
            TeacherStatus::Counted if std::mem::replace(&mut seen[teacher], true) => {
                Err(ServerError::Duplicate { teacher })
            }
            TeacherStatus::Counted => Ok(()),
            _ => Err(ServerError::Late { teacher }),
        }
    });
    refused.iter().for_each(|refusal| progress.refused(refusal));
    refused
}

/// All answers, those of an interrupted run first taken from its journal.
fn answered(
    options: &Options,
    server: &Server,
    store: &Store,
    progress: &dyn Progress,
) -> Result<(Vec<EncryptedAnswer>, usize), RolesError> {
    let round = server.round();
    let (journal, mut answers) =
        store.journal(server.round_id(), round.queries(), EncryptedAnswer::size(round.outcomes()))?;
    let todo: Vec<usize> = (0..round.queries()).filter(|&query| answers[query].is_none()).collect();
    let done = round.queries() - todo.len();
    progress.begin(round.queries(), done);
    let fresh = Mutex::new(Vec::with_capacity(todo.len()));
    server.answer::<RolesError>(options.threads, &todo, &|group, _| {
        journal.append(&group)?;
        progress.advance(group.len());
        fresh.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend(group);
        Ok(())
    })?;
    for answer in fresh.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        let query = answer.query();
        answers[query] = Some(answer);
    }
    Ok((answers.into_iter().flatten().collect(), done))
}

/// The report on a result that is there already.
fn finished(
    options: &Options,
    file: &RoundFile,
    minimum: usize,
    progress: &dyn Progress,
) -> Result<Report, RolesError> {
    let other = || RolesError::Results {
        path: options.out.clone(),
        message: "is there already and is not the result of this round: move it away, or give another --out".into(),
    };
    let bytes = read_input(&options.out, AnswerList::size(file.round()) as u64).map_err(|_| other())?;
    let list = AnswerList::from_bytes(&bytes).map_err(|_| other())?;
    if list.round() != file.id() || list.statuses().len() != file.round().teachers() {
        return Err(other());
    }
    let refused = late(&inbox::list(&options.answers)?, file, list.statuses(), progress);
    Ok(report(options, file, minimum, &list, refused, file.round().queries(), bytes.len()))
}

fn report(
    options: &Options,
    file: &RoundFile,
    minimum: usize,
    list: &AnswerList,
    refused: Vec<Refusal>,
    resumed: usize,
    bytes: usize,
) -> Report {
    let missing = list.statuses().iter().enumerate().filter(|(_, status)| **status == TeacherStatus::Missing);
    Report {
        round: file.id().to_hex(),
        name: file.name().to_owned(),
        simulation: list.is_simulation(),
        queries: file.round().queries(),
        teachers: list.statuses().len(),
        minimum,
        counted: list.counted(),
        honest_ratio: list.honest_ratio(),
        noise_by_server: list.noise_place() == NoisePlace::Server,
        refused,
        missing: missing.map(|(teacher, _)| teacher).collect(),
        resumed,
        out: options.out.clone(),
        bytes,
    }
}
