//! The labelling of a round by the server, whatever messages come from and state is kept in.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use speed_aggregation::{
    AnswerList, EncryptedAnswer, EvaluationKey, Server, ServerError, SignedResult, Submission, TeacherStatus,
};
use speed_core::{Circuit, Digest, NoisePlacement};

use super::admission::Admission;
use super::inbox::Inbox;
use super::report::Progress;
use super::store::Store;
use crate::error::RolesError;
use crate::identity::Identity;
use crate::randomness::RoundRandomness;
use crate::refusal::{Refusal, Rejection};
use crate::round_file::RoundFile;

/// The labelling of one round: messages come from an inbox, and finished steps go to a store.
pub(super) struct Labelling<'a> {
    pub(super) file: &'a RoundFile,
    pub(super) admission: Admission<'a>,
    /// The server's, which signs the result.
    pub(super) identity: &'a Identity,
    /// The number of teachers that must answer.
    pub(super) minimum: usize,
    pub(super) circuit: Circuit,
    pub(super) threads: NonZeroUsize,
    pub(super) randomness: RoundRandomness,
    pub(super) inbox: &'a dyn Inbox,
    pub(super) store: &'a dyn Store,
    pub(super) progress: &'a dyn Progress,
}

/// A labelled round.
pub(super) struct Labelled {
    pub(super) result: SignedResult,
    pub(super) refused: Vec<Refusal>,
    /// Queries that an earlier, interrupted run had answered.
    pub(super) resumed: usize,
}

impl Labelling<'_> {
    /// Sums, computes the argmax, and puts the result together. A step that the store has is not done again.
    pub(super) fn run(&self, key: EvaluationKey) -> Result<Labelled, RolesError> {
        let (server, sum, refused) = match self.store.sum(Server::state_size(self.file.round()))? {
            Some(state) => self.resume(key, &state)?,
            None => self.sum(key)?,
        };
        let (answers, resumed) = self.answer(&server, sum)?;
        let list = AnswerList::new(self.file.round(), self.file.key(), server.statuses().to_vec(), &answers)?;
        let result = SignedResult::new(list, sum, |digest| self.identity.sign(digest));
        Ok(Labelled { result, refused, resumed })
    }

    /// Goes on with a sum that was closed: every message that was not counted is late.
    fn resume(&self, key: EvaluationKey, state: &[u8]) -> Result<(Server, Digest, Vec<Refusal>), RolesError> {
        let server =
            Server::resume(key, self.file.round().clone(), state).map_err(|error| self.store.damaged_sum(error))?;
        let refused = late(self.inbox, self.admission, server.statuses(), self.progress);
        Ok((self.prepared(server)?, Digest::of(state), refused))
    }

    /// Sums the messages at hand, adds the server's noise where the round asks for it, closes the sum and keeps it.
    fn sum(&self, key: EvaluationKey) -> Result<(Server, Digest, Vec<Refusal>), RolesError> {
        let mut server = self.prepared(Server::new(key, self.file.round().clone())?)?;
        let refused = self.collect(&mut server)?;
        self.add_noise(&mut server)?;
        server.close(self.minimum)?;
        let state = server.state()?;
        self.store.keep_sum(&state)?;
        Ok((server, Digest::of(state), refused))
    }

    fn prepared(&self, server: Server) -> Result<Server, RolesError> {
        Ok(server.with_circuit(self.circuit)?.with_randomness(self.randomness.keys()))
    }

    /// Adds every message that can be used, and notes why others cannot.
    fn collect(&self, server: &mut Server) -> Result<Vec<Refusal>, RolesError> {
        let refused = self.inbox.offer(Submission::max_size(self.file.round()), &mut |bytes| self.admission.admit(server, bytes));
        for refusal in &refused {
            self.progress.refused(refusal);
            if let (Some(teacher), Some(status)) = (refusal.teacher, refusal.status) {
                server.note(teacher, status);
            }
        }
        let (counted, minimum) = (server.received(), self.minimum);
        if counted < minimum {
            let teachers = self.file.round().shape().teachers();
            return Err(RolesError::TooFew { counted, teachers, minimum, refused });
        }
        Ok(refused)
    }

    /// Draws and adds the whole privacy noise where the round has it from the server.
    fn add_noise(&self, server: &mut Server) -> Result<(), RolesError> {
        if self.file.round().placement() == NoisePlacement::Central {
            let randomness = self.randomness.server_noise(self.file.id());
            let noise = self.file.noise().share_of(1)?.draw(self.file.round().values(), &randomness)?;
            server.add_noise(&noise)?;
        }
        Ok(())
    }

    /// Returns all answers and how many of them were kept: the others are computed, and kept as they come.
    fn answer(&self, server: &Server, sum: Digest) -> Result<(Vec<EncryptedAnswer>, usize), RolesError> {
        let queries = server.round().shape().queries();
        let mut answers = self.store.answers(sum, queries)?;
        let outstanding: Vec<usize> = (0..queries).filter(|&query| answers[query].is_none()).collect();
        let kept = queries - outstanding.len();
        self.progress.begin(queries, kept);
        let fresh = Mutex::new(Vec::with_capacity(outstanding.len()));
        server.answer::<RolesError>(self.threads, &outstanding, &|group, _| {
            self.store.keep_answers(&group)?;
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

/// Returns the refusals after the sum was closed with these statuses.
pub(super) fn late(
    inbox: &dyn Inbox,
    admission: Admission<'_>,
    statuses: &[TeacherStatus],
    progress: &dyn Progress,
) -> Vec<Refusal> {
    let file = admission.file;
    let mut seen = vec![false; statuses.len()];
    let refused = inbox.offer(Submission::max_size(file.round()), &mut |bytes| {
        let submission = admission.authenticate(bytes)?;
        let (message, teacher) = (submission.message(), submission.message().teacher());
        let refuse = |error| Err(Rejection::by_server(teacher, error));
        if message.key() != file.key() {
            return refuse(ServerError::WrongKey { teacher, expected: file.key(), found: message.key() });
        }
        if message.round() != file.id() {
            return refuse(ServerError::WrongRound { teacher, expected: file.id(), found: message.round() });
        }
        match statuses[teacher] {
            TeacherStatus::Counted if std::mem::replace(&mut seen[teacher], true) => {
                refuse(ServerError::Duplicate { teacher })
            }
            TeacherStatus::Counted => Ok(()),
            _ => refuse(ServerError::Late { teacher }),
        }
    });
    refused.iter().for_each(|refusal| progress.refused(refusal));
    refused
}
