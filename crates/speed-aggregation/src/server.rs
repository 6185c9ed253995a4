//! The server's role: sums the teachers' messages and computes the argmax, on ciphertexts only.

mod error;
mod evaluate;

use std::sync::{Mutex, PoisonError};

use speed_core::{Circuit, NoisePlacement, Randomness};
use tfhe::core_crypto::prelude::*;

use crate::answer_seed::AnswerSeed;
use crate::circuit::Work;
use crate::codec::{Content, Kind, Limits, encode_in_order, open};
use crate::encoding::Encoding;
use crate::exact_circuit::{ExactCircuit, InexactCircuit};
use crate::getters::{debug_as, getters};
use crate::ids::{KeyId, RoundId};
use crate::keys::EvaluationKey;
use crate::layout::Layout;
use crate::message::{Message, list_words};
use crate::round::Round;
use crate::status::TeacherStatus;

pub use error::ServerError;

/// The server of one round.
///
/// It is created from an [`EvaluationKey`]. Passing a [`SecretKey`](crate::SecretKey) does not compile:
///
/// ```no_run
/// # use speed_aggregation::{generate_keys, Parameters, Round, RoundSpec, Server};
/// # use speed_core::{Randomness, VoteShape};
/// let keys = generate_keys(&Parameters::TOURNAMENT_128, &Randomness::OperatingSystem)?;
/// let round = Round::new(RoundSpec::new(b"run 1", VoteShape::new(250, 100, 10)?, 900))?;
/// let server = Server::new(keys.evaluation.expand(), round)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// ```compile_fail,E0308
/// # use speed_aggregation::{generate_keys, Parameters, Round, RoundSpec, Server};
/// # use speed_core::{Randomness, VoteShape};
/// let keys = generate_keys(&Parameters::TOURNAMENT_128, &Randomness::OperatingSystem)?;
/// let round = Round::new(RoundSpec::new(b"run 1", VoteShape::new(250, 100, 10)?, 900))?;
/// let server = Server::new(keys.secret, round)?; // expected `EvaluationKey`, found `SecretKey`
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Server {
    key: EvaluationKey,
    round: Round,
    id: RoundId,
    layout: Layout,
    circuit: ExactCircuit,
    randomness: Randomness,
    answer_seed: Option<AnswerSeed>,
    sum: LweCompactCiphertextListOwned<u64>,
    work: Mutex<Work>,
    statuses: Vec<TeacherStatus>,
    noise_added: bool,
    closed: bool,
}

impl Server {
    /// Creates a server for one round, with the tournament circuit and the operating system's randomness.
    ///
    /// # Errors
    /// If the round's counts have no exact encoding under the key's parameters.
    pub fn new(key: EvaluationKey, round: Round) -> Result<Self, ServerError> {
        let layout = Encoding::of_round(key.parameters(), &round)?.layout();
        let sum = LweCompactCiphertextList::new(
            0,
            key.parameters().big_dimension().to_lwe_size(),
            LweCiphertextCount(round.values()),
            CiphertextModulus::new_native(),
        );
        Ok(Self {
            id: round.id(key.id()),
            statuses: vec![TeacherStatus::Missing; round.parties()],
            noise_added: false,
            closed: false,
            circuit: ExactCircuit::default(),
            randomness: Randomness::OperatingSystem,
            answer_seed: None,
            key,
            round,
            layout,
            sum,
            work: Mutex::default(),
        })
    }

    /// Changes the circuit.
    ///
    /// # Errors
    /// If it is the paper's circuit, which is not exact.
    pub fn with_circuit(mut self, circuit: Circuit) -> Result<Self, InexactCircuit> {
        self.circuit = circuit.try_into()?;
        Ok(self)
    }

    /// Changes the randomness that re-randomises the answers.
    #[must_use]
    pub fn with_randomness(mut self, randomness: Randomness) -> Self {
        self.randomness = randomness;
        self
    }

    /// Re-randomises the answers with a stored seed, so that a party to which the server reveals it can compute the same
    /// answers again.
    #[must_use]
    pub fn with_answer_seed(mut self, seed: AnswerSeed) -> Self {
        self.answer_seed = Some(seed);
        self
    }

    getters! {
        /// Returns the key.
        key: &EvaluationKey,
        /// Returns the round.
        round: &Round,
        /// Returns the status of every teacher.
        statuses: &[TeacherStatus],
    }

    /// Returns the operations of the argmax circuits so far.
    pub fn work(&self) -> Work {
        *self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of teachers whose messages are in the sum.
    pub fn received(&self) -> usize {
        self.statuses.iter().filter(|&&status| status == TeacherStatus::Counted).count()
    }

    /// Returns the number of teachers of the parties whose messages are in the sum.
    pub fn teachers_received(&self) -> usize {
        self.round.teachers_counted(&self.statuses)
    }

    /// Adds a teacher's message to the sum. Memory does not grow with the number of teachers, and a refused message
    /// changes nothing.
    ///
    /// # Errors
    /// If the teacher is unknown, has already answered or is too late, if the message was made for another key, round
    /// or shape, or if the round requires proofs. Each error names the teacher. (The signature of a
    /// [`Submission`](crate::protocol::Submission) shows that the message is the teacher's.)
    pub fn add(&mut self, message: &Message) -> Result<(), ServerError> {
        self.check(message)?;
        if self.round.proofs().is_some() {
            return Err(ServerError::Unproven { teacher: message.teacher() });
        }
        self.count(message);
        Ok(())
    }

    /// Adds a message whose proofs the caller has verified if the round requires them: first [`Self::check`], then
    /// [`ProofKey::verify`](crate::proofs::ProofKey::verify).
    ///
    /// # Errors
    /// The errors of [`Self::check`].
    #[cfg(feature = "proofs")]
    pub fn add_checked(&mut self, message: &Message) -> Result<(), ServerError> {
        self.check(message)?;
        self.count(message);
        Ok(())
    }

    /// Checks a message except for its proofs.
    ///
    /// # Errors
    /// If the teacher is unknown, has already answered or is too late, or if the message was made for another key,
    /// round or shape.
    pub fn check(&self, message: &Message) -> Result<(), ServerError> {
        let (teacher, teachers) = (message.teacher(), self.round.parties());
        if teacher >= teachers {
            return Err(ServerError::UnknownTeacher { teacher, teachers });
        }
        message.check_terms((self.key.id(), self.id), &self.round)?;
        if self.statuses[teacher] == TeacherStatus::Counted {
            return Err(ServerError::Duplicate { teacher });
        }
        if self.closed {
            return Err(ServerError::Late { teacher });
        }
        Ok(())
    }

    /// Adds a checked message to the sum.
    fn count(&mut self, message: &Message) {
        self.statuses[message.teacher()] = TeacherStatus::Counted;
        for (sum, word) in self.sum.as_mut().iter_mut().zip(message.list().as_ref()) {
            *sum = sum.wrapping_add(*word);
        }
    }

    /// Records why a teacher is not in the sum; the worst reason is kept. Does nothing if the teacher is in the sum or
    /// the sum is closed.
    pub fn note(&mut self, teacher: usize, status: TeacherStatus) {
        if let Some(noted) = self.statuses.get_mut(teacher)
            && *noted != TeacherStatus::Counted
            && status.is_worse_than(*noted)
            && !self.closed
        {
            *noted = status;
        }
    }

    /// Adds the server's own privacy noise (queries x classes, row major, in votes) to the sum, if the round requires
    /// it.
    ///
    /// # Errors
    /// If the teachers add the noise of this round, if it was already added, or if it has another shape.
    pub fn add_noise(&mut self, noise: &[i64]) -> Result<(), ServerError> {
        if self.round.placement() != NoisePlacement::Central {
            let text = "the teachers add the noise of this round, the server adds none";
            return Err(ServerError::Other(text.to_owned()));
        }
        if self.noise_added || self.closed {
            return Err(ServerError::Other("the server's noise is in the sum already".to_owned()));
        }
        if noise.len() != self.round.values() {
            let (expected, found) = (self.round.values(), noise.len());
            return Err(ServerError::Other(format!(
                "the server's noise has {found} values, expected {expected}: one for each class of each query"
            )));
        }
        let bodies = self.sum.as_ref().len() - self.round.values();
        for (body, &noise) in self.sum.as_mut()[bodies..].iter_mut().zip(noise) {
            *body = body.wrapping_add(self.layout.value(noise));
        }
        self.noise_added = true;
        Ok(())
    }

    /// Closes the sum; later messages are refused as late. The sum must contain at least `min_teachers` teachers and at
    /// least the round's own minimum.
    ///
    /// # Errors
    /// If it contains fewer, or if the server's noise is required and missing.
    pub fn close(&mut self, min_teachers: usize) -> Result<(), ServerError> {
        self.check_complete(min_teachers.max(self.round.min_teachers()))?;
        self.closed = true;
        Ok(())
    }

    fn check_complete(&self, minimum: usize) -> Result<(), ServerError> {
        if self.teachers_received() < minimum {
            let missing = (0..).zip(&self.statuses).filter(|(_, status)| **status != TeacherStatus::Counted);
            let missing = missing.map(|(teacher, _)| teacher).collect();
            return Err(ServerError::Missing { missing, teachers: self.round.shape().teachers(), minimum });
        }
        if self.round.placement() == NoisePlacement::Central && !self.noise_added {
            let text = "the server's noise, which this round requires, is missing";
            return Err(ServerError::Other(text.to_owned()));
        }
        Ok(())
    }

    /// Returns the closed sum and the teachers' statuses, from which [`Self::resume`] continues. The sum is encrypted.
    /// It includes central noise, so a resumed server does not draw it again.
    ///
    /// # Errors
    /// If the sum is not closed.
    pub fn state(&self) -> Result<Vec<u8>, ServerError> {
        self.check_complete(self.round.min_teachers())?;
        let shape = self.round.shape();
        let sum = ClosedSum {
            key: self.key.id(),
            round: self.id,
            teachers: self.round.parties(),
            queries: shape.queries(),
            classes: shape.classes(),
            statuses: &self.statuses,
            words: self.sum.as_ref(),
        };
        Ok(sum.seal())
    }

    /// Restores the server of a round whose sum was closed. Memory is bounded by the length of `state` and the round.
    ///
    /// # Errors
    /// The errors of [`Self::new`], and if the bytes are not exactly one well-formed state of this round, with enough
    /// teachers.
    pub fn resume(key: EvaluationKey, round: Round, state: &[u8]) -> Result<Self, ServerError> {
        let mut server = Self::new(key, round)?;
        let mut reader = open(state, ClosedSum::KIND)?;
        let (key, found): (KeyId, RoundId) = (reader.read()?, reader.read()?);
        if key != server.key.id() || found != server.id {
            return Err(ServerError::Other(format!("state of round {found}, this is round {}", server.id)));
        }
        let (shape, parties) = (server.round.shape(), server.round.parties());
        for (field, value) in [("teachers", parties), ("queries", shape.queries()), ("classes", shape.classes())] {
            reader.read_with::<_, usize>(Limits::exactly(field, value))?;
        }
        server.statuses = reader.read_with(parties)?;
        let words: Vec<u64> = reader.read_with(list_words(server.round.values()))?;
        reader.end()?;
        server.sum.as_mut().copy_from_slice(&words);
        // A state is saved after the noise was added.
        server.noise_added = true;
        server.close(server.round.min_teachers())?;
        Ok(server)
    }
}

debug_as!(
    Server,
    this => "Server(round {}, {:?}, {} of {} messages)", this.id, this.circuit, this.received(), this.statuses.len()
);

/// A closed sum in its encoded form.
struct ClosedSum<'a> {
    key: KeyId,
    round: RoundId,
    teachers: usize,
    queries: usize,
    classes: usize,
    statuses: &'a Vec<TeacherStatus>,
    words: &'a [u64],
}

encode_in_order!(ClosedSum<'_>: key, round, teachers, queries, classes, statuses, words);

impl Content for ClosedSum<'_> {
    const KIND: Kind = Kind::ServerState;
}
