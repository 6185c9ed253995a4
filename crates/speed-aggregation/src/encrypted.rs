//! The complete protocol in one process.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rayon::prelude::*;
use speed_core::{Circuit, NoisePlacement, Randomness};

use crate::aggregator::{Aggregated, AggregationError, Aggregator};
use crate::answer::EncryptedAnswer;
use crate::encoding::Encoding;
use crate::exact_circuit::{ExactCircuit, InexactCircuit};
use crate::getters::debug_as;
use crate::keys::{EvaluationKey, PublicKey};
use crate::message::Message;
use crate::outcome::Outcome;
use crate::parameters::Parameters;
use crate::processor_time::processor_time;
use crate::range::RangeError;
use crate::round::{Round, RoundKind, RoundSpec};
use crate::server::{Server, ServerError};
use crate::student::{KeySet, SecretKey, generate_keys};
use crate::teacher::Teacher;
use crate::threads;
use crate::votes::NoisyVotes;

/// Teachers, server and student in one process, which exchange the encoded messages. Cloning is cheap because keys and
/// threads are shared.
#[derive(Clone)]
pub struct Encrypted {
    secret: Arc<SecretKey>,
    public: PublicKey,
    evaluation: EvaluationKey,
    key_generation: Duration,
    randomness: Randomness,
    circuit: Circuit,
    label: Vec<u8>,
    threads: NonZeroUsize,
    pool: Arc<rayon::ThreadPool>,
}

impl Encrypted {
    /// Generates keys, once for all rounds. `label` names the run and is part of the round's identifier.
    ///
    /// # Errors
    /// If the operating system provides no randomness or no threads.
    pub fn new(
        parameters: &Parameters,
        randomness: Randomness,
        label: &[u8],
        threads: NonZeroUsize,
    ) -> Result<Self, AggregationError> {
        let start = Instant::now();
        let keys = threads::pool(threads)?.install(|| generate_keys(parameters, &randomness))?;
        let generated = start.elapsed();
        let mut protocol = Self::with_keys(keys, randomness, label, threads)?;
        protocol.key_generation += generated;
        Ok(protocol)
    }

    /// Uses existing keys; otherwise like [`Encrypted::new`].
    ///
    /// # Errors
    /// If the operating system provides no threads.
    pub fn with_keys(
        keys: KeySet,
        randomness: Randomness,
        label: &[u8],
        threads: NonZeroUsize,
    ) -> Result<Self, AggregationError> {
        let pool = threads::pool(threads)?;
        let start = Instant::now();
        let evaluation = pool.install(|| keys.evaluation.expand());
        Ok(Self {
            secret: Arc::new(keys.secret),
            public: keys.public,
            evaluation,
            key_generation: start.elapsed(),
            randomness,
            circuit: Circuit::default(),
            label: label.to_vec(),
            threads,
            pool: Arc::new(pool),
        })
    }

    /// Changes the circuit.
    ///
    /// # Errors
    /// If it is the paper's circuit, which is not exact.
    pub fn with_circuit(mut self, circuit: Circuit) -> Result<Self, InexactCircuit> {
        ExactCircuit::try_from(circuit)?;
        self.circuit = circuit;
        Ok(self)
    }

    /// Changes the label, for another round with the same keys. Each round needs its own label: it binds messages to
    /// the round, and in a simulation it keeps the encryptions of two rounds apart.
    #[must_use]
    pub fn with_label(mut self, label: &[u8]) -> Self {
        self.label = label.to_vec();
        self
    }

    /// Returns the student's key.
    pub fn secret_key(&self) -> &SecretKey {
        &self.secret
    }

    /// Returns the teachers' key.
    pub fn public_key(&self) -> &PublicKey {
        &self.public
    }

    /// Returns the server's key.
    pub fn evaluation_key(&self) -> &EvaluationKey {
        &self.evaluation
    }

    /// Returns the duration of key generation and expansion.
    pub fn key_generation(&self) -> Duration {
        self.key_generation
    }

    /// Checks that the privacy noise is within its bound. Here, unlike in the protocol, the counts are known, so noise
    /// beyond the bound is an error and not a wrong label.
    fn check_range(&self, votes: &NoisyVotes) -> Result<(), AggregationError> {
        let supported = self.public.parameters().range();
        for (query, counts) in votes.counts().chunks_exact(votes.shape().classes()).enumerate() {
            let values = counts.iter().copied().chain(votes.threshold);
            let (low, high) = values.fold((0, 0), |(low, high), x| (x.min(low), x.max(high)));
            let needed = high.abs_diff(low);
            if needed > supported {
                let step = format_args!("query {query}: the noise exceeded its bound");
                return Err(AggregationError::of_step(step, RangeError { needed, supported }));
            }
        }
        Ok(())
    }

    /// Lets all teachers encrypt, one parallel batch at a time, and the server sum. Returns the bytes of a message and
    /// the times of encryption and sum.
    fn collect(
        &self,
        votes: &NoisyVotes,
        round: &Round,
        server: &mut Server,
    ) -> Result<(usize, Duration, Duration), AggregationError> {
        let (mut bytes, mut encryption, mut sum) = (0, Duration::ZERO, Duration::ZERO);
        let batch = 8 * self.threads.get();
        for first in (0..votes.messages()).step_by(batch) {
            let start = Instant::now();
            let messages = self.pool.install(|| {
                (first..votes.messages().min(first + batch))
                    .into_par_iter()
                    .map(|teacher| {
                        Teacher::new(teacher)
                            .answer(&self.public, round, votes.message(teacher), &self.randomness)
                            .map(|message| message.to_bytes())
                            .map_err(|error| AggregationError::of_step(format_args!("teacher {teacher}"), error))
                    })
                    .collect::<Result<Vec<_>, _>>()
            })?;
            encryption += start.elapsed();
            let start = Instant::now();
            for (teacher, message) in (first..).zip(messages) {
                bytes = message.len();
                let step = format_args!("message of teacher {teacher}");
                let message = Message::from_bytes(&message);
                server.add(&message.map_err(|error| AggregationError::of_step(step, error))?)?;
            }
            sum += start.elapsed();
        }
        Ok((bytes, encryption, sum))
    }
}

/// A callback for the outcomes of some queries, by their indices, and the time that each took.
pub type OnOutcomes<'a, E> = &'a (dyn Fn(&[(usize, Outcome)], Duration) -> Result<(), E> + Sync);

/// A round in one process after its sum, before its argmax.
struct Summed {
    server: Server,
    message_bytes: usize,
    encryption: Duration,
    sum: Duration,
}

impl Encrypted {
    /// Lets the teachers answer and the server sum.
    fn sum(&self, votes: &NoisyVotes) -> Result<Summed, AggregationError> {
        let placement =
            if votes.server_noise.is_some() { NoisePlacement::Central } else { NoisePlacement::Distributed };
        let terms = RoundSpec::new(&self.label, votes.shape(), votes.noise_bound);
        let kind = if votes.is_check { RoundKind::Check } else { RoundKind::Labels };
        let round = Round::new(RoundSpec {
            parties: votes.parties.clone(),
            placement,
            threshold: votes.threshold,
            kind,
            ..terms
        })?;
        Encoding::of_round(self.public.parameters(), &round)?;
        self.check_range(votes)?;
        let mut server = Server::new(self.evaluation.clone(), round.clone())?
            .with_circuit(self.circuit)?
            .with_randomness(self.randomness.clone());
        let (message_bytes, encryption, sum) = self.collect(votes, &round, &mut server)?;
        if let Some(noise) = &votes.server_noise {
            server.add_noise(noise)?;
        }
        Ok(Summed { server, message_bytes, encryption, sum })
    }

    fn open(&self, answer: &EncryptedAnswer) -> Result<(Outcome, usize), AggregationError> {
        let bytes = answer.to_bytes();
        Ok((self.secret.open(&EncryptedAnswer::from_bytes(&bytes)?)?, bytes.len()))
    }

    /// Aggregates as [`Aggregator::aggregate`] does, but passes the opened outcomes to `on_outcomes` as soon as they
    /// are available, so that the caller can save them: a few at a time, from the worker threads, with the index of
    /// each query and the time that each took. Calls `on_sum` first, with the durations of encryption and sum.
    ///
    /// # Errors
    /// If the votes cannot be aggregated exactly, a step fails, or `on_outcomes` fails. No further query is started
    /// after that.
    pub fn aggregate_in_parts<E: From<AggregationError> + Send>(
        &self,
        votes: &NoisyVotes,
        on_sum: impl FnOnce(Duration, Duration),
        on_outcomes: OnOutcomes<'_, E>,
    ) -> Result<(), E> {
        /// An error of the server or of the caller.
        enum Stopped<E> {
            Ours(AggregationError),
            Theirs(E),
        }
        impl<E> From<ServerError> for Stopped<E> {
            fn from(error: ServerError) -> Self {
                Self::Ours(error.into())
            }
        }
        let Summed { server, encryption, sum, .. } = self.sum(votes)?;
        on_sum(encryption, sum);
        let queries: Vec<usize> = (0..votes.shape().queries()).collect();
        let answered = server.answer(self.threads, &queries, &|answers, time| {
            let opened = answers.iter().map(|answer| Ok((answer.query(), self.open(answer)?.0)));
            let opened: Vec<_> = opened.collect::<Result<_, _>>().map_err(Stopped::Ours)?;
            on_outcomes(&opened, time).map_err(Stopped::Theirs)
        });
        answered.map_err(|stopped| match stopped {
            Stopped::Ours(error) => error.into(),
            Stopped::Theirs(error) => error,
        })
    }
}

impl Aggregator for Encrypted {
    fn aggregate(
        &self,
        votes: &NoisyVotes,
        on_query: &(dyn Fn(usize, Duration) + Sync),
    ) -> Result<Aggregated, AggregationError> {
        let Summed { server, message_bytes, encryption, sum } = self.sum(votes)?;
        let (start, processor_start) = (Instant::now(), processor_time());
        let times = Mutex::new(vec![Duration::ZERO; votes.shape().queries()]);
        let answers = server.argmax(self.threads, &|query, time| {
            // A panic in another caller's on_query must not be hidden behind a poisoned lock.
            times.lock().unwrap_or_else(std::sync::PoisonError::into_inner)[query] = time;
            on_query(query, time);
        })?;
        let argmax = start.elapsed();
        let argmax_processor = processor_time().zip(processor_start).map(|(end, start)| end - start);
        let query_times = times.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);

        let start = Instant::now();
        let opened = answers.iter().map(|answer| self.open(answer)).collect::<Result<Vec<_>, _>>()?;
        Ok(Aggregated {
            answer_bytes: opened.iter().map(|(_, bytes)| bytes).sum(),
            outcomes: opened.into_iter().map(|(outcome, _)| outcome).collect(),
            query_times,
            message_bytes,
            key_generation: self.key_generation,
            encryption,
            sum,
            argmax,
            argmax_processor,
            opening: start.elapsed(),
            work: server.work(),
        })
    }
}

debug_as!(Encrypted, this => "Encrypted({:?}, {:?}, {} threads)", this.public, this.circuit, this.threads);
