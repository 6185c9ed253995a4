//! Reception of messages over a network by a round's server.

use std::collections::HashMap;

use speed_aggregation::error::ServerError;
use speed_aggregation::log::{LogEntry, LogEvent, LogHead, Receipt};
use speed_aggregation::protocol::{RoundId, Submission, TeacherStatus};
use speed_core::Digest;

use super::notes::Notes;
use super::round_server::RoundServer;
use crate::error::Refused;
use crate::party_key::PartyKey;
use crate::refusal::Refusal;

/// A message of the round that its teacher signed and sent. It is not stored yet, and its proofs may be unchecked.
#[derive(Debug)]
pub struct Admitted {
    teacher: usize,
    digest: Digest,
    bytes: Vec<u8>,
}

impl RoundServer {
    /// Returns the largest number of bytes of a message of the round.
    pub(crate) fn max_message(&self) -> usize {
        Submission::max_size(self.file.round())
    }

    /// Checks everything but the proofs of a message that a party brought.
    ///
    /// # Errors
    /// [`Refusal`]: as for a directory, or if the message was brought by a party other than the teacher that signed it.
    pub fn check_message(&self, bytes: Vec<u8>, from: PartyKey) -> Result<Admitted, Refusal> {
        let admission = self.admission();
        let check = |bytes: &[u8]| {
            let submission = admission.authenticate(bytes)?;
            let teacher = submission.message().teacher();
            if self.file.roster().teacher(from) != Some(teacher) {
                let message = format!("is signed by teacher {teacher}, but was brought by {from}");
                return Err(Refusal::of_stranger("forged", message));
            }
            admission.check_terms(submission.message())?;
            Ok(teacher)
        };
        match check(&bytes) {
            Ok(teacher) => Ok(Admitted { teacher, digest: Digest::of(&bytes), bytes }),
            Err(refusal) => Err(refusal.with_file(format!("brought by {}", self.name_of(from)))),
        }
    }

    /// Returns the name of a party for texts about its messages: its index and name in the roster, or its key.
    pub(crate) fn name_of(&self, party: PartyKey) -> String {
        let roster = self.file.roster();
        match roster.teacher(party).and_then(|index| Some((index, roster.teachers().get(index)?))) {
            Some((index, teacher)) => format!("teacher {index}, {:?}", teacher.name()),
            None => party.to_string(),
        }
    }

    /// Checks the proofs of a message, if the round requires them. Takes about 0.1 core-seconds for a thousand values.
    pub(crate) fn check_proofs(&self, message: &Admitted) -> Result<(), Refusal> {
        let admission = self.admission();
        let checked = admission.authenticate(&message.bytes).and_then(|submission| admission.check_proofs(&submission));
        checked.map_err(|refusal| refusal.with_file("upload"))
    }
}

/// The only place where messages of a round are stored and the log grows.
pub struct Reception<'a> {
    server: &'a RoundServer,
    head: LogHead,
    /// The stored message of every teacher, and the log's head right before it.
    kept: HashMap<usize, (Digest, LogHead)>,
    notes: Notes,
    /// The worst status that refusals gave each teacher.
    refused: HashMap<usize, TeacherStatus>,
    is_closed: bool,
}

/// The additions of one durable write to the registry.
#[derive(Default)]
struct RegistryUpdate<'m> {
    messages: Vec<(u32, &'m [u8])>,
    refused: Vec<(u32, TeacherStatus)>,
    entries: Vec<LogEntry>,
}

impl<'a> Reception<'a> {
    /// Resumes from the state of the registry.
    ///
    /// # Errors
    /// If the registry cannot be read.
    pub fn open(server: &'a RoundServer) -> Result<Self, Refused> {
        let round = server.file.id();
        let (mut head, mut kept) = (LogHead::empty(round), HashMap::new());
        let log = server.registry.log(round)?;
        for entry in &log {
            if let (LogEvent::Received, Some(teacher)) = (entry.event(), entry.teacher()) {
                kept.insert(teacher, (entry.digest(), head));
            }
            head = head.then(entry);
        }
        let refused = server.registry.refused(round)?;
        let refused = refused.into_iter().map(|(teacher, status)| (teacher as usize, status)).collect();
        Ok(Self { server, head, kept, notes: Notes::from_log(&log), refused, is_closed: server.is_closed()? })
    }

    /// Returns the number of teachers of the parties whose messages are stored.
    pub(crate) fn received(&self) -> usize {
        self.kept.keys().map(|&party| self.server.file.round().teachers_of(party)).sum()
    }

    pub(crate) fn round(&self) -> RoundId {
        self.server.file.id()
    }

    /// Returns whether the outcome for a message is already decided. Then [`Reception::keep`] returns it whether or not
    /// its proofs are valid.
    pub(crate) fn is_decided(&self, message: &Admitted) -> bool {
        self.is_closed || self.kept.contains_key(&message.teacher)
    }

    /// Refuses all further messages.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
    }

    /// Stores messages and records refusals of others (by their SHA-256) in one durable step, and returns the server's
    /// receipt for each message, in order. The same message again gets the same receipt. Another message of the same
    /// teacher is refused and recorded in the log.
    ///
    /// # Errors
    /// If the registry cannot be written. Then no message is stored, no receipt may be given, and this reception has
    /// ended.
    pub fn keep(
        &mut self,
        messages: &[Admitted],
        refusals: &[(Digest, Refusal)],
    ) -> Result<Vec<Result<Receipt, Refusal>>, Refused> {
        let mut update = RegistryUpdate::default();
        let outcomes: Vec<_> = messages.iter().map(|message| self.decide(message, &mut update)).collect();
        for (digest, refusal) in refusals {
            if let Some(teacher) = refusal.teacher {
                self.note_refusal(LogEntry::of_message(LogEvent::Refused, teacher, *digest), &mut update);
                self.note_status(teacher, refusal.status, &mut update);
            }
        }
        if !(update.entries.is_empty() && update.refused.is_empty()) {
            self.server.registry.receive(self.round(), &update.messages, &update.refused, &update.entries)?;
        }
        Ok(outcomes)
    }

    fn decide<'m>(&mut self, message: &'m Admitted, update: &mut RegistryUpdate<'m>) -> Result<Receipt, Refusal> {
        let Admitted { teacher, digest, bytes } = message;
        let error = match self.kept.get(teacher) {
            Some((kept, before)) if kept == digest => return Ok(self.receipt(*before, message)),
            Some(_) => {
                self.note_refusal(LogEntry::of_message(LogEvent::Duplicate, *teacher, *digest), update);
                ServerError::Duplicate { teacher: *teacher }
            }
            // The log is closed too: it belongs to the result.
            None if self.is_closed => ServerError::Late { teacher: *teacher },
            None => {
                let before = self.head;
                self.note(LogEntry::of_message(LogEvent::Received, *teacher, *digest), update);
                self.kept.insert(*teacher, (*digest, before));
                update.messages.push((index(*teacher), bytes));
                return Ok(self.receipt(before, message));
            }
        };
        Err(Refusal::by_server(*teacher, error).with_file("upload"))
    }

    /// Records a refusal, unless the log is closed (it then belongs to the result) or has enough refusals.
    fn note_refusal(&mut self, entry: LogEntry, update: &mut RegistryUpdate<'_>) {
        if !self.is_closed && self.notes.take(&entry, self.head.entries()) {
            self.note(entry, update);
        }
    }

    /// Records the status that a refusal gives a teacher, unless an equal or worse one is recorded. It does not depend
    /// on room in the log.
    fn note_status(&mut self, teacher: usize, status: Option<TeacherStatus>, update: &mut RegistryUpdate<'_>) {
        let before = self.refused.get(&teacher).copied();
        if let Some(status) = status
            && !self.is_closed
            && before.is_none_or(|before| status.is_worse_than(before))
        {
            self.refused.insert(teacher, status);
            update.refused.push((index(teacher), status));
        }
    }

    fn note(&mut self, entry: LogEntry, update: &mut RegistryUpdate<'_>) {
        self.head = self.head.then(&entry);
        update.entries.push(entry);
    }

    fn receipt(&self, before: LogHead, message: &Admitted) -> Receipt {
        Receipt::new(before, message.teacher, message.digest, |digest| self.server.identity.sign(digest))
    }
}

/// Returns a teacher's index as the registry stores it.
fn index(teacher: usize) -> u32 {
    u32::try_from(teacher).unwrap_or(u32::MAX)
}
