//! The server's role: sum the teachers' messages and compute the argmax, on ciphertexts only.

mod error;
mod evaluate;
mod state;

use std::sync::{Mutex, PoisonError};

use speed_core::Randomness;
use tfhe::core_crypto::prelude::*;

use crate::circuit::{Circuit, Work};
use crate::keys::EvaluationKey;
use crate::message::Message;
use crate::range::Encoding;
use crate::round::{NoisePlace, Round, RoundId};
use crate::status::TeacherStatus;

pub use error::ServerError;

/// The server of one round.
///
/// It is made from an [`EvaluationKey`]; there is no way to hand it a [`SecretKey`](crate::SecretKey):
///
/// ```no_run
/// # use speed_aggregation::{generate_keys, Parameters, Round, Server};
/// let keys = generate_keys(&Parameters::TOURNAMENT_128, &Randomness::OperatingSystem)?;
/// let round = Round::new(b"run 1", 100, 10, 250, 900)?;
/// let server = Server::new(keys.evaluation.expand(), round)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// ```compile_fail,E0308
/// # use speed_aggregation::{generate_keys, Parameters, Round, Server};
/// let keys = generate_keys(&Parameters::TOURNAMENT_128, &Randomness::OperatingSystem)?;
/// let round = Round::new(b"run 1", 100, 10, 250, 900)?;
/// let server = Server::new(keys.secret, round)?; // expected `EvaluationKey`, found `SecretKey`
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Server {
    key: EvaluationKey,
    round: Round,
    id: RoundId,
    encoding: Encoding,
    circuit: Circuit,
    source: Randomness,
    sum: LweCompactCiphertextListOwned<u64>,
    work: Mutex<Work>,
    statuses: Vec<TeacherStatus>,
    noise_added: bool,
    closed: bool,
}

impl Server {
    /// A server for one round: tournament circuit, randomness of the operating system.
    ///
    /// # Errors
    /// If the round's counts have no exact encoding under the key's parameters.
    pub fn new(key: EvaluationKey, round: Round) -> Result<Self, ServerError> {
        let encoding = Encoding::new(key.parameters(), round.outcomes().count(), round.range())?;
        let sum = LweCompactCiphertextList::new(
            0,
            key.parameters().big_dimension().to_lwe_size(),
            LweCiphertextCount(round.values()),
            CiphertextModulus::new_native(),
        );
        Ok(Self {
            id: round.id(key.id()),
            statuses: vec![TeacherStatus::Missing; round.teachers()],
            noise_added: false,
            closed: false,
            circuit: Circuit::default(),
            source: Randomness::OperatingSystem,
            key,
            round,
            encoding,
            sum,
            work: Mutex::default(),
        })
    }

    /// The same server with another circuit.
    #[must_use]
    pub fn with_circuit(mut self, circuit: Circuit) -> Self {
        self.circuit = circuit;
        self
    }

    /// The same server with another source of randomness for re-randomising its answers.
    #[must_use]
    pub fn with_source(mut self, source: Randomness) -> Self {
        self.source = source;
        self
    }

    /// The identifier of the round.
    #[must_use]
    pub fn round_id(&self) -> RoundId {
        self.id
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &EvaluationKey {
        &self.key
    }

    /// The round.
    #[must_use]
    pub fn round(&self) -> &Round {
        &self.round
    }

    /// What the argmax circuits have done so far.
    #[must_use]
    pub fn work(&self) -> Work {
        *self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of teachers whose messages are in the sum.
    #[must_use]
    pub fn received(&self) -> usize {
        self.statuses.iter().filter(|&&status| status == TeacherStatus::Counted).count()
    }

    /// What became of every teacher.
    #[must_use]
    pub fn statuses(&self) -> &[TeacherStatus] {
        &self.statuses
    }

    /// Adds a teacher's message to the sum. Memory does not grow with the number of teachers, and a refused message
    /// changes nothing.
    ///
    /// # Errors
    /// If the teacher is unknown, has answered already, or comes too late, or the message is another teacher's, or made for
    /// another key, round or shape. Each error names the teacher.
    pub fn add(&mut self, teacher: usize, message: &Message) -> Result<(), ServerError> {
        let teachers = self.round.teachers();
        if teacher >= teachers {
            return Err(ServerError::UnknownTeacher { teacher, teachers });
        }
        if message.key() != self.key.id() {
            return Err(ServerError::WrongKey { teacher, expected: self.key.id(), found: message.key() });
        }
        if message.round() != self.id {
            return Err(ServerError::WrongRound { teacher, expected: self.id, found: message.round() });
        }
        if message.teacher() != teacher {
            return Err(ServerError::WrongTeacher { teacher, found: message.teacher() });
        }
        let (expected, found) = ((self.round.queries(), self.round.classes()), (message.queries(), message.classes()));
        if expected != found {
            return Err(ServerError::Shape { teacher, expected, found });
        }
        if self.statuses[teacher] == TeacherStatus::Counted {
            return Err(ServerError::Duplicate { teacher });
        }
        if self.closed {
            return Err(ServerError::Late { teacher });
        }
        self.statuses[teacher] = TeacherStatus::Counted;
        for (sum, word) in self.sum.as_mut().iter_mut().zip(message.list().as_ref()) {
            *sum = sum.wrapping_add(*word);
        }
        Ok(())
    }

    /// Notes why a teacher is not in the sum. Nothing changes for a teacher who is, or after the sum was closed.
    pub fn note(&mut self, teacher: usize, status: TeacherStatus) {
        if let Some(noted) = self.statuses.get_mut(teacher)
            && *noted != TeacherStatus::Counted
            && status != TeacherStatus::Counted
            && !self.closed
        {
            *noted = status;
        }
    }

    /// Adds the server's own noise (queries x classes, row major, in votes) to the sum, where the round asks for it.
    ///
    /// # Errors
    /// If the noise of this round comes from the teachers, is there already, or has another shape.
    pub fn add_noise(&mut self, noise: &[i64]) -> Result<(), ServerError> {
        if self.round.noise_place() != NoisePlace::Server {
            return Err(ServerError::Noise("the teachers add the noise of this round, the server adds none"));
        }
        if self.noise_added || self.closed {
            return Err(ServerError::Noise("the server's noise is in the sum already"));
        }
        if noise.len() != self.round.values() {
            return Err(ServerError::Noise("the server's noise is not one value for each class of each query"));
        }
        let bodies = self.sum.as_ref().len() - self.round.values();
        for (body, &noise) in self.sum.as_mut()[bodies..].iter_mut().zip(noise) {
            *body = body.wrapping_add(self.encoding.value(noise));
        }
        self.noise_added = true;
        Ok(())
    }

    /// Closes the sum: what comes later is late. At least `min_teachers` must be in it, and no fewer than the round says.
    ///
    /// # Errors
    /// If fewer are, or the noise that the round asks of the server is missing.
    pub fn close(&mut self, min_teachers: usize) -> Result<(), ServerError> {
        self.check_complete(min_teachers.max(self.round.min_teachers()))?;
        self.closed = true;
        Ok(())
    }

    fn check_complete(&self, minimum: usize) -> Result<(), ServerError> {
        if self.received() < minimum {
            let missing = (0..).zip(&self.statuses).filter(|(_, status)| **status != TeacherStatus::Counted);
            let missing = missing.map(|(teacher, _)| teacher).collect();
            return Err(ServerError::Missing { missing, teachers: self.round.teachers(), minimum });
        }
        if self.round.noise_place() == NoisePlace::Server && !self.noise_added {
            return Err(ServerError::Noise("the noise that this round asks of the server is missing"));
        }
        Ok(())
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Server(round {}, {:?}, {} of {} teachers)",
            self.id,
            self.circuit,
            self.received(),
            self.statuses.len()
        )
    }
}
