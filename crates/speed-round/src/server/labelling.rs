//! The steps of a round at its server: sum, noise, argmax, result.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use speed_aggregation::error::ServerError;
use speed_aggregation::log::{LogEntry, LogEvent};
use speed_aggregation::protocol::{AnswerList, AnswerSeed, ExactCircuit, SignedResult, Submission, TeacherStatus};
use speed_aggregation::{EncryptedAnswer, EvaluationKey, Server};
use speed_core::{Digest, NoisePlacement};

use super::admission::Admission;
use super::inbox::Inbox;
use super::notes::Notes;
use super::options::ServerOptions;
use super::report::Progress;
use crate::charge::RoundLedger;
use crate::error::Refused;
use crate::files::{Access, hash_file, write_once_for};
use crate::identity::Identity;
use crate::refusal::Refusal;
use crate::registry::RoundRegistry;
use crate::round_file::RoundFile;

/// The labelling of one round: messages come from an inbox, and finished steps go to a registry.
pub(super) struct Labelling<'a> {
    pub(super) file: &'a RoundFile,
    pub(super) admission: Admission<'a>,
    /// The server's identity, which signs the result.
    pub(super) identity: &'a Identity,
    /// The number of teachers that must answer.
    pub(super) minimum: usize,
    pub(super) options: &'a ServerOptions,
    pub(super) inbox: &'a dyn Inbox,
    pub(super) registry: &'a RoundRegistry,
    pub(super) progress: &'a dyn Progress,
}

/// A labelled round.
pub(super) struct EvaluatedRound {
    pub(super) result: SignedResult,
    /// The result in its wire format.
    pub(super) bytes: Vec<u8>,
    pub(super) refused: Vec<Refusal>,
    /// Queries that an earlier, interrupted run had answered.
    pub(super) resumed: usize,
}

impl Labelling<'_> {
    /// Sums, copies the counted messages, computes the argmax, and assembles the result. A step that is in the registry is
    /// not repeated. If a copy is missing, no result is made, because the registry deletes the messages when it stores the result.
    pub(super) fn run(&self, key: EvaluationKey) -> Result<EvaluatedRound, Refused> {
        let (server, sum, refused) = match self.registry.sum(self.file.id())? {
            Some(state) => self.resume(key, &state)?,
            None => self.sum(key)?,
        };
        // The server's ledger is about all parties, so it states the largest.
        self.ledger().charge(server.teachers_received(), self.file.round().largest_party(), sum)?;
        if let Some(copies) = &self.options.copies {
            copy_messages(copies, self.file, self.inbox, self.registry)?;
        }
        let (answers, resumed) = self.answer(&server)?;
        let list = AnswerList::new(self.file.round(), self.file.key(), server.statuses().to_vec(), &answers)?;
        let result = SignedResult::new(list, sum, |digest| self.identity.sign(digest));
        let bytes = result.to_bytes();
        let made = LogEntry::of_round(LogEvent::Result, Digest::of(&bytes));
        self.registry.finish(self.file.id(), &bytes, &[made])?;
        Ok(EvaluatedRound { result, bytes, refused, resumed })
    }

    fn ledger(&self) -> RoundLedger<'_> {
        RoundLedger::of_server(&self.options.ledger, self.file)
    }

    /// Resumes with a closed sum: every message that was not counted is late.
    fn resume(&self, key: EvaluationKey, state: &[u8]) -> Result<(Server, Digest, Vec<Refusal>), Refused> {
        let server =
            Server::resume(key, self.file.round().clone(), state).map_err(Refused::input(self.registry.path()))?;
        let counted = self.registry.counted(self.file.id())?;
        let refused = late(self.inbox, self.admission, (server.statuses(), &counted), self.progress)?;
        let (circuit, seed) = self.registry.answer_seed(self.file.id())?;
        Ok((server.with_circuit(circuit.into())?.with_answer_seed(seed), Digest::of(state), refused))
    }

    /// Sums the available messages, adds the server's noise if the round requires it, closes the sum and keeps it.
    fn sum(&self, key: EvaluationKey) -> Result<(Server, Digest, Vec<Refusal>), Refused> {
        self.ledger().expect_uncharged(self.registry.path())?;
        let circuit = ExactCircuit::try_from(self.options.circuit)?;
        let seed = AnswerSeed::draw(&self.options.randomness.keys(), self.file.id())?;
        let server = Server::new(key, self.file.round().clone())?.with_circuit(circuit.into())?;
        let mut server = server.with_answer_seed(seed.clone());
        let (refused, mut entries) = self.collect(&mut server)?;
        self.add_noise(&mut server)?;
        server.close(self.minimum)?;
        let state = server.state()?;
        let sum = Digest::of(&state);
        entries.push(LogEntry::of_round(LogEvent::Closed, sum));
        self.registry.close(self.file.id(), (&state, (circuit, &seed)), &entries)?;
        Ok((server, sum, refused))
    }

    /// Adds every usable message, and returns the refusals of the others and the log entries about both.
    fn collect(&self, server: &mut Server) -> Result<(Vec<Refusal>, Vec<LogEntry>), Refused> {
        let (mut entries, mut counted) = (Vec::new(), HashMap::new());
        let log = self.registry.log(self.file.id())?;
        let mut notes = Notes::from_log(&log);
        let mut refused = self.inbox.offer(Submission::max_size(self.file.round()), &mut |bytes, is_proven| {
            let (digest, admitted) = (Digest::of(bytes), self.admission.admit(server, bytes, is_proven));
            if is_again(&admitted, digest, &counted) {
                return Ok(());
            }
            if let Ok(teacher) = admitted {
                counted.insert(teacher, digest);
            }
            let (event, teacher) = match &admitted {
                Ok(teacher) => (LogEvent::Counted, Some(*teacher)),
                Err(refusal) if refusal.is_duplicate() => (LogEvent::Duplicate, refusal.teacher),
                Err(refusal) => (LogEvent::Refused, refusal.teacher),
            };
            // Otherwise anyone could fill the log with unsigned messages, and a teacher with signed ones.
            if let Some(entry) = teacher.map(|teacher| LogEntry::of_message(event, teacher, digest))
                && (event == LogEvent::Counted || notes.take(&entry, log.len() + entries.len()))
            {
                entries.push(entry);
            }
            admitted.map(drop)
        })?;
        refused.retain(|refusal| refusal.stands(server.statuses()));
        for refusal in &refused {
            self.progress.refused(refusal);
            if let (Some(teacher), Some(status)) = (refusal.teacher, refusal.status) {
                server.note(teacher, status);
            }
        }
        let (counted, minimum) = (server.teachers_received(), self.minimum);
        if counted < minimum {
            let teachers = self.file.round().shape().teachers();
            return Err(Refused::fault(format!(
                "{counted} of {teachers} teachers gave a usable answer, at least {minimum} must"
            )));
        }
        Ok((refused, entries))
    }

    /// Draws and adds all of the privacy noise if the server adds it in this round.
    fn add_noise(&self, server: &mut Server) -> Result<(), Refused> {
        if self.file.round().placement() == NoisePlacement::Central {
            let randomness = self.options.randomness.server_noise(self.file.id());
            let noise = self.file.noise().share_of(1)?.draw(self.file.round().values(), &randomness)?;
            server.add_noise(&noise)?;
        }
        Ok(())
    }

    /// Returns all answers and the number of answers that were stored. The others are computed, and stored as they are
    /// finished.
    fn answer(&self, server: &Server) -> Result<(Vec<EncryptedAnswer>, usize), Refused> {
        let queries = server.round().shape().queries();
        let mut answers = self.registry.answers(self.file.id(), queries)?;
        let outstanding: Vec<usize> = (0..queries).filter(|&query| answers[query].is_none()).collect();
        let kept = queries - outstanding.len();
        self.progress.begin(queries, kept);
        let fresh = Mutex::new(Vec::with_capacity(outstanding.len()));
        server.answer::<Refused>(self.options.threads, &outstanding, &|group, _| {
            self.registry.keep_answers(self.file.id(), &group)?;
            self.progress.advance(group.len());
            fresh.lock().unwrap_or_else(PoisonError::into_inner).extend(group);
            Ok(())
        })?;
        for answer in fresh.into_inner().unwrap_or_else(PoisonError::into_inner) {
            let query = answer.query();
            answers[query] = Some(answer);
        }
        Ok((answers.into_iter().flatten().collect(), kept))
    }
}

/// Copies the counted messages of the inbox to a directory, which is created if necessary, for its owner only: together with the
/// secret key they are votes. A copy that is there already is kept.
///
/// # Errors
/// If the directory then lacks a counted message, and errors of reading and writing.
pub(super) fn copy_messages(
    copies: &Path,
    file: &RoundFile,
    inbox: &dyn Inbox,
    registry: &RoundRegistry,
) -> Result<(), Refused> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(copies).map_err(Refused::io("create", copies))?;
    let longest = Submission::max_size(file.round());
    let counted = registry.counted(file.id())?;
    let path_of = |teacher: usize| copies.join(format!("teacher-{teacher}.message"));
    let by_digest: HashMap<Digest, usize> = counted.iter().map(|(teacher, digest)| (*digest, *teacher)).collect();
    let mut written = Ok(());
    inbox.offer(longest, &mut |bytes, _| {
        if let (true, Some(teacher)) = (written.is_ok(), by_digest.get(&Digest::of(bytes))) {
            written = write_once_for(&path_of(*teacher), bytes, Access::Owner);
        }
        Ok(())
    })?;
    written?;
    let lacks = |teacher: usize, digest: &Digest| {
        !hash_file(&path_of(teacher), longest as u64).is_ok_and(|found| found == *digest)
    };
    let missing = counted.iter().filter(|(teacher, digest)| lacks(**teacher, digest));
    let mut teachers: Vec<usize> = missing.map(|(teacher, _)| *teacher).collect();
    teachers.sort_unstable();
    if teachers.is_empty() {
        return Ok(());
    }
    // At most ten of them are named.
    let first: Vec<_> = teachers.iter().take(10).map(|teacher| format!("teacher {teacher}")).collect();
    let more = teachers.len() - first.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Err(Refused::input(copies)(format!(
        "lacks the counted messages of {}{more}: give the directory that has them with --answers, or leave --copy-messages out. A result \
         can be verified only with all of them, and the registry deletes its own when the result exists",
        first.join(", ")
    )))
}

/// Returns whether a message was refused because it is already in the sum: the same file came by two ways.
fn is_again(admitted: &Result<usize, Refusal>, digest: Digest, counted: &HashMap<usize, Digest>) -> bool {
    match admitted {
        Err(refusal) => {
            refusal.is_duplicate() && refusal.teacher.is_some_and(|teacher| counted.get(&teacher) == Some(&digest))
        }
        Ok(_) => false,
    }
}

/// Returns the refusals after the sum was closed with these statuses and messages.
pub(super) fn late(
    inbox: &dyn Inbox,
    admission: Admission<'_>,
    (statuses, counted): (&[TeacherStatus], &HashMap<usize, Digest>),
    progress: &dyn Progress,
) -> Result<Vec<Refusal>, Refused> {
    let file = admission.file;
    let mut refused = inbox.offer(Submission::max_size(file.round()), &mut |bytes, _| {
        let submission = admission.authenticate(bytes)?;
        admission.check_terms(submission.message())?;
        let teacher = submission.message().teacher();
        match statuses[teacher] {
            TeacherStatus::Counted if counted.get(&teacher) == Some(&Digest::of(bytes)) => Ok(()),
            TeacherStatus::Counted => Err(Refusal::by_server(teacher, ServerError::Duplicate { teacher })),
            _ => Err(Refusal::by_server(teacher, ServerError::Late { teacher })),
        }
    })?;
    refused.retain(|refusal| refusal.stands(statuses));
    refused.iter().for_each(|refusal| progress.refused(refusal));
    Ok(refused)
}
