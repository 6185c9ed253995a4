//! The server's role: sum the teachers' messages and compute the argmax, on ciphertexts only.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rayon::prelude::*;
use tfhe::core_crypto::commons::generators::NoiseRandomGenerator;
use tfhe::core_crypto::commons::math::random::{DefaultRandomGenerator, DynamicDistribution};
use tfhe::core_crypto::prelude::*;

use crate::answer::EncryptedAnswer;
use crate::circuit::{Circuit, Engine, Lwe, READ_OUTS, Work, add};
use crate::keys::EvaluationKey;
use crate::message::Message;
use crate::random::{EntropyError, KeySource};
use crate::range::{Encoding, EncodingError};
use crate::round::{Round, RoundId};

/// The server of one round.
///
/// It is made from an [`EvaluationKey`]; there is no way to hand it a [`SecretKey`](crate::SecretKey):
///
/// ```no_run
/// # use speed_aggregation::{generate_keys, KeySource, Parameters, Round, Server};
/// let keys = generate_keys(&Parameters::TOURNAMENT_128, KeySource::OperatingSystem)?;
/// let round = Round::new(b"run 1", 100, 10, 250, 900)?;
/// let server = Server::new(keys.evaluation, round)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// ```compile_fail,E0308
/// # use speed_aggregation::{generate_keys, KeySource, Parameters, Round, Server};
/// let keys = generate_keys(&Parameters::TOURNAMENT_128, KeySource::OperatingSystem)?;
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
    source: KeySource,
    sum: LweCompactCiphertextListOwned<u64>,
    work: Mutex<Work>,
    received: Vec<bool>,
}

/// Why the server refuses.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The teacher is not one of the round's.
    #[error("teacher {teacher} in a round of {teachers} teachers (counted from 0)")]
    UnknownTeacher {
        /// The teacher's index.
        teacher: usize,
        /// Number of teachers of the round.
        teachers: usize,
    },
    /// The message names another teacher as its sender.
    #[error("the message of teacher {teacher} says that it comes from teacher {found}")]
    WrongTeacher {
        /// The teacher that delivered it.
        teacher: usize,
        /// The teacher that it names.
        found: usize,
    },
    /// The teacher has answered already.
    #[error("teacher {teacher} answered twice")]
    Duplicate {
        /// The teacher.
        teacher: usize,
    },
    /// The message is for another round, another run or another key.
    #[error("teacher {teacher} answered round {found}, this is round {expected}")]
    WrongRound {
        /// The teacher.
        teacher: usize,
        /// This round.
        expected: RoundId,
        /// The message's round.
        found: RoundId,
    },
    /// The message holds another number of queries or classes.
    #[error(
        "teacher {teacher} answered {} queries of {} classes, expected {} of {}", found.0, found.1, expected.0, expected.1
    )]
    Shape {
        /// The teacher.
        teacher: usize,
        /// Queries and classes of the round.
        expected: (usize, usize),
        /// Queries and classes of the message.
        found: (usize, usize),
    },
    /// Teachers are missing.
    #[error("{} of {teachers} teachers have not answered, the first of them teacher {}", missing.len(), missing[0])]
    Missing {
        /// The teachers that have not answered.
        missing: Vec<usize>,
        /// Number of teachers of the round.
        teachers: usize,
    },
    /// The round has no exact encoding.
    #[error(transparent)]
    Encoding(#[from] EncodingError),
    /// The operating system gave no randomness.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// The threads could not be started.
    #[error("cannot start {threads} threads: {reason}")]
    Threads {
        /// Number of threads asked for.
        threads: usize,
        /// What rayon says.
        reason: String,
    },
}

impl Server {
    /// Queries that a thread computes together.
    pub const GROUP: usize = 4;

    /// A server for one round: tournament circuit, randomness of the operating system.
    ///
    /// # Errors
    /// If the round's counts have no exact encoding under the key's parameters.
    pub fn new(key: EvaluationKey, round: Round) -> Result<Self, ServerError> {
        let encoding = Encoding::new(key.parameters(), round.classes(), round.range())?;
        let sum = LweCompactCiphertextList::new(
            0,
            key.parameters().big_dimension().to_lwe_size(),
            LweCiphertextCount(round.values()),
            CiphertextModulus::new_native(),
        );
        Ok(Self {
            id: round.id(key.id()),
            received: vec![false; round.teachers()],
            circuit: Circuit::default(),
            source: KeySource::OperatingSystem,
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
    pub fn with_source(mut self, source: KeySource) -> Self {
        self.source = source;
        self
    }

    /// The identifier of the round.
    #[must_use]
    pub fn round_id(&self) -> RoundId {
        self.id
    }

    /// What the argmax circuits have done so far.
    #[must_use]
    pub fn work(&self) -> Work {
        *self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of teachers that have answered.
    #[must_use]
    pub fn received(&self) -> usize {
        self.received.iter().filter(|received| **received).count()
    }

    /// Adds a teacher's message to the sum. Memory does not grow with the number of teachers, and a refused message
    /// changes nothing.
    ///
    /// # Errors
    /// If the teacher is unknown or has answered already, or the message is another teacher's, of another round or of
    /// another shape. Each error names the teacher.
    pub fn add(&mut self, teacher: usize, message: &Message) -> Result<(), ServerError> {
        let teachers = self.round.teachers();
        if teacher >= teachers {
            return Err(ServerError::UnknownTeacher { teacher, teachers });
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
        if std::mem::replace(&mut self.received[teacher], true) {
            return Err(ServerError::Duplicate { teacher });
        }
        for (sum, word) in self.sum.as_mut().iter_mut().zip(message.list().as_ref()) {
            *sum = sum.wrapping_add(*word);
        }
        Ok(())
    }

    /// The encrypted winner of every query, in order. Queries run in parallel, one a thread; the answers do not depend
    /// on the number of threads. `on_query` is called from the threads as queries finish, with the query's index and the
    /// time it took on its thread.
    ///
    /// # Errors
    /// If teachers are missing, threads cannot be started, or the operating system gives no randomness.
    pub fn argmax(
        &self,
        threads: NonZeroUsize,
        on_query: &(dyn Fn(usize, Duration) + Sync),
    ) -> Result<Vec<EncryptedAnswer>, ServerError> {
        let teachers = self.round.teachers();
        let missing: Vec<usize> = (0..teachers).filter(|&teacher| !self.received[teacher]).collect();
        if !missing.is_empty() {
            return Err(ServerError::Missing { missing, teachers });
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.get())
            .build()
            .map_err(|error| ServerError::Threads { threads: threads.get(), reason: error.to_string() })?;
        pool.install(|| {
            let queries: Vec<usize> = (0..self.round.queries()).collect();
            let groups: Vec<Vec<EncryptedAnswer>> = queries
                .par_chunks(Self::GROUP)
                .with_max_len(1)
                .map(|group| {
                    let start = Instant::now();
                    let answers = self.evaluate_group(group)?;
                    let time = start.elapsed() / u32::try_from(group.len()).expect("a group is small");
                    group.iter().for_each(|&query| on_query(query, time));
                    Ok(answers)
                })
                .collect::<Result<_, ServerError>>()?;
            Ok(groups.concat())
        })
    }

    /// The encrypted winners of a few queries, computed in lockstep: every key is read once for all of them.
    fn evaluate_group(&self, queries: &[usize]) -> Result<Vec<EncryptedAnswer>, ServerError> {
        let mut engine = Engine::new(&self.key, self.encoding);
        let counts: Vec<Vec<Lwe>> = queries.iter().map(|&query| self.counts(query)).collect();
        let winners = engine.argmax(self.circuit, &counts);
        let places = self.encoding.digit_count();
        let mut digits: Vec<Lwe> = winners.into_iter().flatten().collect();
        for stage in 0..=READ_OUTS {
            for (position, digit) in digits.iter_mut().enumerate() {
                add(digit, &self.encrypted_zero(queries[position / places], position % places, stage)?);
            }
            if stage < READ_OUTS {
                digits = engine.read_out(&digits);
            }
        }
        *self.work.lock().unwrap_or_else(PoisonError::into_inner) += engine.work;
        let answers = queries.iter().zip(digits.chunks_exact(places)).map(|(&query, digits)| {
            let words = digits.iter().flat_map(|digit| digit.as_ref()).copied().collect();
            EncryptedAnswer::new(self.key.id(), self.id, query, self.round.classes(), words)
        });
        Ok(answers.collect())
    }

    /// The summed counts of a query, one ciphertext a class.
    pub(crate) fn counts(&self, query: usize) -> Vec<Lwe> {
        let classes = self.round.classes();
        (query * classes..(query + 1) * classes).map(|value| unpack(&self.sum, value)).collect()
    }

    /// A fresh public-key encryption of zero with flooding noise in its body: that of a read-out, or the last.
    pub(crate) fn encrypted_zero(&self, query: usize, place: usize, stage: usize) -> Result<Lwe, EntropyError> {
        let p = self.key.parameters();
        let context = [self.id.as_bytes().as_slice(), &[place as u8, stage as u8]].concat();
        let mut seeder = self.source.seeder("re-randomise", query as u64, &context)?;
        let flooding = if stage < READ_OUTS { p.read_out_flooding_log } else { p.flooding_log };
        let mut generator = NoiseRandomGenerator::<DefaultRandomGenerator>::new(&mut seeder);
        let mut zero = LweCompactCiphertextList::new(
            0,
            p.big_dimension().to_lwe_size(),
            LweCiphertextCount(1),
            CiphertextModulus::new_native(),
        );
        encrypt_lwe_compact_ciphertext_list_with_compact_public_key(
            &self.key.public_key().key,
            &mut zero,
            &PlaintextList::new(0, PlaintextCount(1)),
            p.glwe_noise(),
            DynamicDistribution::new_t_uniform(flooding),
            &mut generator,
        );
        Ok(unpack(&zero, 0))
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
            self.received.len()
        )
    }
}

/// One value of a packed list: the mask of its ring element, turned to the value's place, and its body. (tfhe's own
/// expansion does the same for all values at once, which takes 16 kB each.)
fn unpack(list: &LweCompactCiphertextListOwned<u64>, value: usize) -> Lwe {
    let dimension = list.lwe_size().to_lwe_dimension().0;
    let (masks, bodies) = list.as_ref().split_at(list.lwe_mask_count().0 * dimension);
    let mask = &masks[value / dimension * dimension..][..dimension];
    let mut words = vec![0; dimension + 1];
    polynomial_algorithms::polynomial_wrapping_monic_monomial_mul(
        &mut Polynomial::from_container(&mut words[..dimension]),
        &Polynomial::from_container(mask),
        MonomialDegree(value % dimension),
    );
    words[dimension] = bodies[value];
    LweCiphertext::from_container(words, CiphertextModulus::new_native())
}
