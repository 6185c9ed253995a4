//! The steps of a round at its server: sum, noise, argmax, result.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use speed_aggregation::error::ServerError;
use speed_aggregation::log::{LogEntry, LogEvent};
use speed_aggregation::protocol::{AnswerList, AnswerSeed, ExactCircuit, SignedResult, Submission, TeacherStatus};
use speed_aggregation::{EncryptedAnswer, EvaluationKey, Server};
use speed_core::{Digest, NoisePlacement};

use super::inbox::Inbox;
use super::notes::Notes;
use super::round_server::{RoundServer, read_evaluation_key};
use crate::error::Refused;
use crate::files::{Access, hash_file, write_once_for};
use crate::proofs::Influence;
use crate::refusal::Refusal;

/// Events while a server works.
pub trait Progress: Sync {
    /// Reports that a file was refused.
    fn refused(&self, refusal: &Refusal);
    /// Reports that the argmax begins: the number of queries of the round, and how many were answered before an
    /// interruption.
    fn begin(&self, queries: usize, done: usize);
    /// Reports that `queries` more queries are answered.
    fn advance(&self, queries: usize);
}

/// The report of a server.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct ServerReport {
    /// The round's id.
    pub round: String,
    /// The round's name.
    pub name: String,
    /// True if the round is a simulation.
    pub simulation: bool,
    /// Number of queries.
    pub queries: usize,
    /// Number of teachers of the round.
    pub teachers: usize,
    /// Number of teachers that had to answer.
    pub minimum: usize,
    /// Number of parties of the round, each of which sends one message for its teachers.
    pub parties: usize,
    /// Number of teachers in the sum. A party counts with all its teachers.
    pub counted: usize,
    /// The largest honest ratio that an accountant may use: see
    /// [`AnswerList::honest_ratio`](speed_aggregation::protocol::AnswerList::honest_ratio).
    pub honest_ratio: f64,
    /// True if the messages in the sum are proved to be well formed.
    pub proven: bool,
    /// The influence of one proven teacher on a count; `None` without proofs.
    pub one_teacher: Option<Influence>,
    /// True if the server added the noise.
    pub noise_by_server: bool,
    /// Files that were not counted, with the reasons.
    pub refused: Vec<Refusal>,
    /// Indices of the parties without any message when the sum was closed.
    pub missing: Vec<usize>,
    /// Queries that an earlier, interrupted run had answered.
    pub resumed: usize,
    /// The path of the result.
    pub out: PathBuf,
    /// The result's length in bytes.
    pub bytes: usize,
}

pub(super) struct EvaluatedRound {
    pub(super) result: SignedResult,
    /// The result in its wire format.
    pub(super) bytes: Vec<u8>,
    pub(super) refused: Vec<Refusal>,
    /// Queries that an earlier, interrupted run had answered.
    pub(super) resumed: usize,
}

impl RoundServer {
    /// Sums the messages that came over a network, computes the encrypted winners, and returns the number of counted
    /// teachers. No message may be stored during this call: call [`Reception::close`](super::Reception::close) first.
    pub(crate) fn evaluate_received(&self, progress: &dyn Progress) -> Result<usize, Refused> {
        Ok(self.file.round().teachers_counted(self.evaluate(&[], progress)?.result.list().statuses()))
    }

    /// Sums the messages that came over a network and those of files, and computes the encrypted winners, or returns the
    /// stored result. A step that is in the registry is not repeated.
    pub(super) fn evaluate(&self, files: &[PathBuf], progress: &dyn Progress) -> Result<EvaluatedRound, Refused> {
        let inbox = &Inbox { network: Some((&self.registry, self.file.id())), files };
        if let Some(bytes) = self.result()? {
            let result = SignedResult::from_bytes(&bytes).map_err(Refused::input(self.registry.path()))?;
            let refused = self.late(inbox, result.list().statuses(), progress)?;
            return Ok(EvaluatedRound { result, bytes, refused, resumed: self.file.round().shape().queries() });
        }
        let key = read_evaluation_key(&self.options.evaluation_key, &self.file)?.expand();
        self.label(key, inbox, progress)
    }

    /// Sums, copies the counted messages, computes the argmax, and assembles the result. A step that is in the registry is
    /// not repeated. If a copy is missing, no result is made, because the registry deletes the messages when it stores the result.
    fn label(&self, key: EvaluationKey, inbox: &Inbox<'_>, progress: &dyn Progress) -> Result<EvaluatedRound, Refused> {
        let (server, sum, refused) = match self.registry.sum(self.file.id())? {
            Some(state) => self.resume(key, &state, inbox, progress)?,
            None => self.sum(key, inbox, progress)?,
        };
        // The server's ledger is about all parties, so it states the largest.
        self.ledger().charge(server.teachers_received(), self.file.round().largest_party(), sum)?;
        self.copy_messages(inbox)?;
        let (answers, resumed) = self.answer(&server, progress)?;
        let list = AnswerList::new(self.file.round(), self.file.key(), server.statuses().to_vec(), &answers)?;
        let result = SignedResult::new(list, sum, |digest| self.identity.sign(digest));
        let bytes = result.to_bytes();
        let made = LogEntry::of_round(LogEvent::Result, Digest::of(&bytes));
        self.registry.finish(self.file.id(), &bytes, &[made])?;
        Ok(EvaluatedRound { result, bytes, refused, resumed })
    }

    /// Resumes with a closed sum: every message that was not counted is late.
    fn resume(
        &self,
        key: EvaluationKey,
        state: &[u8],
        inbox: &Inbox<'_>,
        progress: &dyn Progress,
    ) -> Result<(Server, Digest, Vec<Refusal>), Refused> {
        let server =
            Server::resume(key, self.file.round().clone(), state).map_err(Refused::input(self.registry.path()))?;
        let refused = self.late(inbox, server.statuses(), progress)?;
        let (circuit, seed) = self.registry.answer_seed(self.file.id())?;
        Ok((server.with_circuit(circuit.into())?.with_answer_seed(seed), Digest::of(state), refused))
    }

    /// Sums the available messages, adds the server's noise if the round requires it, closes the sum and keeps it.
    fn sum(
        &self,
        key: EvaluationKey,
        inbox: &Inbox<'_>,
        progress: &dyn Progress,
    ) -> Result<(Server, Digest, Vec<Refusal>), Refused> {
        self.ledger().expect_uncharged(self.registry.path())?;
        let circuit = ExactCircuit::try_from(self.options.circuit)?;
        let seed = AnswerSeed::draw(&self.options.randomness.keys(), self.file.id())?;
        let server = Server::new(key, self.file.round().clone())?.with_circuit(circuit.into())?;
        let mut server = server.with_answer_seed(seed.clone());
        let (refused, mut entries) = self.collect(&mut server, inbox, progress)?;
        self.add_noise(&mut server)?;
        server.close(self.minimum)?;
        let state = server.state()?;
        let sum = Digest::of(&state);
        entries.push(LogEntry::of_round(LogEvent::Closed, sum));
        self.registry.close(self.file.id(), (&state, (circuit, &seed)), &entries)?;
        Ok((server, sum, refused))
    }

    /// Adds every usable message, and returns the refusals of the others and the log entries about both.
    fn collect(
        &self,
        server: &mut Server,
        inbox: &Inbox<'_>,
        progress: &dyn Progress,
    ) -> Result<(Vec<Refusal>, Vec<LogEntry>), Refused> {
        let (mut entries, mut counted) = (Vec::new(), HashMap::new());
        let log = self.registry.log(self.file.id())?;
        let mut notes = Notes::from_log(&log);
        let mut refused = inbox.offer(Submission::max_size(self.file.round()), &mut |bytes, is_proven| {
            let (digest, admitted) = (Digest::of(bytes), self.admission().admit(server, bytes, is_proven));
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
            progress.refused(refusal);
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
    fn answer(&self, server: &Server, progress: &dyn Progress) -> Result<(Vec<EncryptedAnswer>, usize), Refused> {
        let queries = server.round().shape().queries();
        let mut answers = self.registry.answers(self.file.id(), queries)?;
        let outstanding: Vec<usize> = (0..queries).filter(|&query| answers[query].is_none()).collect();
        let kept = queries - outstanding.len();
        progress.begin(queries, kept);
        let fresh = Mutex::new(Vec::with_capacity(outstanding.len()));
        server.answer::<Refused>(self.options.threads, &outstanding, &|group, _| {
            self.registry.keep_answers(self.file.id(), &group)?;
            progress.advance(group.len());
            fresh.lock().unwrap_or_else(PoisonError::into_inner).extend(group);
            Ok(())
        })?;
        for answer in fresh.into_inner().unwrap_or_else(PoisonError::into_inner) {
            let query = answer.query();
            answers[query] = Some(answer);
        }
        Ok((answers.into_iter().flatten().collect(), kept))
    }

    /// Copies the counted messages of the inbox to the directory of copies, if there is one, which is created if necessary, for its owner only:
    /// together with the secret key they are votes. A copy that is there already is kept.
    ///
    /// # Errors
    /// If the directory then lacks a counted message, and errors of reading and writing.
    pub(super) fn copy_messages(&self, inbox: &Inbox<'_>) -> Result<(), Refused> {
        let Some(copies) = &self.options.copies else { return Ok(()) };
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(copies).map_err(Refused::io("create", copies))?;
        let longest = Submission::max_size(self.file.round());
        let counted = self.registry.counted(self.file.id())?;
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

    /// Returns the refusals after the sum was closed with these statuses.
    fn late(
        &self,
        inbox: &Inbox<'_>,
        statuses: &[TeacherStatus],
        progress: &dyn Progress,
    ) -> Result<Vec<Refusal>, Refused> {
        let (admission, counted) = (self.admission(), self.registry.counted(self.file.id())?);
        let mut refused = inbox.offer(Submission::max_size(self.file.round()), &mut |bytes, _| {
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

/// Returns whether a message was refused because it is already in the sum: the same file came by two ways.
fn is_again(admitted: &Result<usize, Refusal>, digest: Digest, counted: &HashMap<usize, Digest>) -> bool {
    match admitted {
        Err(refusal) => {
            refusal.is_duplicate() && refusal.teacher.is_some_and(|teacher| counted.get(&teacher) == Some(&digest))
        }
        Ok(_) => false,
    }
}
