//! Messages that come to a round's server over a network, one by one.

use std::collections::HashMap;

use speed_aggregation::{
    LogEntry, LogEvent, LogHead, Receipt, RoundId, RoundLog, ServerError, Submission, TeacherStatus,
};
use speed_core::Digest;

use super::round_server::RoundServer;
use crate::error::RolesError;
use crate::identity::PartyKey;
use crate::refusal::{MessageFault, Refusal, Rejection};

/// A message of the round that its teacher signed and brought. It is not kept yet, and its proofs may not have been checked.
#[derive(Debug)]
pub struct Admitted {
    teacher: usize,
    digest: Digest,
    bytes: Vec<u8>,
}

impl RoundServer {
    /// Returns the largest number of bytes of a message of the round.
    #[must_use]
    pub fn max_message(&self) -> usize {
        Submission::max_size(self.file().round())
    }

    /// Checks a message that a party brought, all but its proofs.
    ///
    /// # Errors
    /// [`Refusal`]: as in a folder, or that another party brought the message than the teacher that signed it.
    pub fn check_message(&self, bytes: Vec<u8>, from: PartyKey) -> Result<Admitted, Refusal> {
        let admission = self.admission();
        let check = |bytes: &[u8]| {
            let submission = admission.authenticate(bytes)?;
            let teacher = submission.message().teacher();
            if self.file().roster().teacher(from) != Some(teacher) {
                let fault = MessageFault::Courier { teacher, from: from.into() };
                return Err(Rejection { teacher: None, reason: "forged", fault, status: None });
            }
            admission.check_terms(submission.message())?;
            Ok(teacher)
        };
        match check(&bytes) {
            Ok(teacher) => Ok(Admitted { teacher, digest: Digest::of(&bytes), bytes }),
            Err(rejection) => Err(rejection.of(self.brought_by(from))),
        }
    }

    /// Says who brought a message, whatever it says itself.
    fn brought_by(&self, party: PartyKey) -> String {
        let roster = self.file().roster();
        match roster.teacher(party).and_then(|index| Some((index, roster.teachers().get(index)?))) {
            Some((index, teacher)) => format!("brought by teacher {index}, {:?}", teacher.name()),
            None => format!("brought by {party}"),
        }
    }

    /// Checks the proofs of a message, where the round asks for them: about 0.1 core-seconds for a thousand values.
    ///
    /// # Errors
    /// [`Refusal`]: it is not proved to be well formed.
    pub fn check_proofs(&self, message: &Admitted) -> Result<(), Refusal> {
        let admission = self.admission();
        let checked = admission.authenticate(&message.bytes).and_then(|submission| admission.check_proofs(&submission));
        checked.map_err(|rejection| rejection.of("upload".to_owned()))
    }
}

/// The most refusals of a teacher's messages that the log notes: a teacher that sends more has been told.
const MAX_REFUSALS: usize = 8;

/// The one place where messages of a round become kept: the log grows here.
pub struct Reception<'a> {
    server: &'a RoundServer,
    head: LogHead,
    /// The message of every teacher that is kept, and the log's head right after it.
    kept: HashMap<usize, (Digest, LogHead)>,
    /// The number of refusals of every teacher's messages that the log notes.
    refusals: HashMap<usize, usize>,
    is_closed: bool,
}

/// What a step adds to the registry.
#[derive(Default)]
struct Step<'m> {
    messages: Vec<(u32, &'m [u8])>,
    refused: Vec<(u32, TeacherStatus)>,
    entries: Vec<LogEntry>,
}

impl<'a> Reception<'a> {
    /// Goes on where the registry is.
    ///
    /// # Errors
    /// If the registry cannot be read.
    pub fn open(server: &'a RoundServer) -> Result<Self, RolesError> {
        let round = server.file().id();
        let (mut head, mut kept, mut refusals) = (LogHead::empty(round), HashMap::new(), HashMap::new());
        for entry in server.registry().log(round)? {
            head = head.then(&entry);
            match (entry.event(), entry.teacher()) {
                (LogEvent::Received, Some(teacher)) => drop(kept.insert(teacher, (entry.digest(), head))),
                (LogEvent::Refused, Some(teacher)) => *refusals.entry(teacher).or_default() += 1,
                _ => {}
            }
        }
        Ok(Self { server, head, kept, refusals, is_closed: server.is_closed()? })
    }

    /// Returns the number of teachers whose messages are kept.
    #[must_use]
    pub fn received(&self) -> usize {
        self.kept.len()
    }

    /// Returns the round.
    #[must_use]
    pub fn round(&self) -> RoundId {
        self.server.file().id()
    }

    /// Returns what became of a message already, if it need not be looked at any further: it is kept, or cannot be.
    #[must_use]
    pub fn decided(&self, message: &Admitted) -> Option<Result<Receipt, Refusal>> {
        let refuse = |error| Some(Err(Rejection::by_server(message.teacher, error).of("upload".to_owned())));
        match self.kept.get(&message.teacher) {
            Some((kept, head)) if *kept == message.digest => Some(Ok(self.receipt(*head))),
            // That one is noted in the log when it is to be kept; a closed log is that of the result.
            Some(_) if self.is_closed => refuse(ServerError::Duplicate { teacher: message.teacher }),
            None if self.is_closed => refuse(ServerError::Late { teacher: message.teacher }),
            _ => None,
        }
    }

    /// Lets no further message in.
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    /// Keeps messages and notes refusals of others (by their SHA-256), all in one step, durably, and returns for each message, in order, the server's
    /// receipt. The same message again gets the same receipt; another one of a teacher is refused, and noted in the log.
    ///
    /// # Errors
    /// If the registry cannot be written: then none is kept, and nobody may be told otherwise: this reception has ended.
    pub fn keep(
        &mut self,
        messages: &[Admitted],
        refusals: &[(Digest, Refusal)],
    ) -> Result<Vec<Result<Receipt, Refusal>>, RolesError> {
        let mut step = Step::default();
        let outcomes: Vec<_> = messages.iter().map(|message| self.decide(message, &mut step)).collect();
        for (digest, refusal) in refusals {
            if let Some(teacher) = refusal.teacher
                && self.note_refusal(teacher, *digest, &mut step.entries)
                && let Some(status) = refusal.status
            {
                step.refused.push((index(teacher), status));
            }
        }
        if !step.entries.is_empty() {
            self.server.registry().receive(self.round(), &step.messages, &step.refused, &step.entries)?;
        }
        Ok(outcomes)
    }

    fn decide<'m>(&mut self, message: &'m Admitted, step: &mut Step<'m>) -> Result<Receipt, Refusal> {
        let Admitted { teacher, digest, bytes } = message;
        let error = match self.kept.get(teacher) {
            Some((kept, head)) if kept == digest => return Ok(self.receipt(*head)),
            Some(_) => ServerError::Duplicate { teacher: *teacher },
            None if self.is_closed => ServerError::Late { teacher: *teacher },
            None => {
                self.note(LogEntry::of_message(LogEvent::Received, *teacher, *digest), &mut step.entries);
                self.kept.insert(*teacher, (*digest, self.head));
                step.messages.push((index(*teacher), bytes));
                return Ok(self.receipt(self.head));
            }
        };
        self.note_refusal(*teacher, *digest, &mut step.entries);
        Err(Rejection::by_server(*teacher, error).of("upload".to_owned()))
    }

    /// Notes that a message was refused, unless the log is closed, which is that of the result, or has enough of that teacher's; returns whether it did.
    fn note_refusal(&mut self, teacher: usize, message: Digest, entries: &mut Vec<LogEntry>) -> bool {
        let count = self.refusals.entry(teacher).or_default();
        if self.is_closed || *count >= MAX_REFUSALS || self.head.entries() >= RoundLog::MAX_ENTRIES / 2 {
            return false;
        }
        *count += 1;
        self.note(LogEntry::of_message(LogEvent::Refused, teacher, message), entries);
        true
    }

    fn note(&mut self, entry: LogEntry, entries: &mut Vec<LogEntry>) {
        self.head = self.head.then(&entry);
        entries.push(entry);
    }

    fn receipt(&self, head: LogHead) -> Receipt {
        Receipt::new(head, |digest| self.server.identity().sign(digest))
    }
}

/// Returns a teacher's index as the registry has it.
fn index(teacher: usize) -> u32 {
    u32::try_from(teacher).unwrap_or(u32::MAX)
}
