//! The cost of a planned round: sizes of its files, and times of its steps, measured on this machine.

use std::num::NonZeroUsize;

use serde::Serialize;
use speed_aggregation::cost::Clock;
use speed_aggregation::encoding::VoteRange;
use speed_aggregation::error::AggregationError;
use speed_aggregation::keys::SeededEvaluationKey;
use speed_aggregation::{
    Aggregator, Encoding, Encrypted, Message, NoisyVotes, Parameters, PrivacyNoise, PublicKey, Round, RoundSpec,
    Server, Teacher,
};
use speed_core::{Randomness, VoteShape};
use speed_experiment::ExperimentError;
use speed_mechanism::Mechanism;

use crate::bar::Bar;
use crate::commands::Failure;

/// The number of queries of a measured argmax: the server works on groups of four.
const MEASURED_QUERIES: usize = 4;
/// The number of measured encryptions and sums.
const MEASURED_MESSAGES: usize = 4;
const LABEL: &[u8] = b"plan";

/// The terms that determine the cost of a round.
pub(super) struct PlannedRound {
    pub(super) teachers: usize,
    /// The number of teachers of each party; empty if every teacher is a party.
    pub(super) parties: Vec<u32>,
    pub(super) queries: usize,
    pub(super) classes: usize,
    pub(super) noise: Mechanism,
}

#[derive(Serialize)]
pub(super) struct PlannedCost {
    /// Name of the parameter set of the keys.
    parameters: &'static str,
    /// Bytes of one party's message, without proofs.
    message_bytes: usize,
    /// Bytes of the messages of all parties.
    all_message_bytes: usize,
    public_key_bytes: usize,
    evaluation_key_bytes: usize,
    core_seconds: Option<CoreSeconds>,
}

/// Processor time of the steps of a round, in seconds.
#[derive(Serialize)]
struct CoreSeconds {
    /// Generation of the keys and their expansion on the server.
    keys: f64,
    /// Encryption of one teacher's message.
    encryption: f64,
    /// Sum of the messages of all teachers.
    sum: f64,
    /// Argmax of all queries.
    argmax: f64,
}

impl PlannedRound {
    /// Returns the cost, or the reason if these terms have no encrypted round. Times are measured on request.
    pub(super) fn cost(&self, with_times: bool) -> Result<Result<PlannedCost, String>, Failure> {
        let (round, votes, parameters) = match self.terms() {
            Ok(found) => found,
            Err(reason) => return Ok(Err(reason)),
        };
        let times = || Bar::during("measuring", || self.measure(&round, &votes, &parameters));
        let core_seconds = with_times.then(times).transpose().map_err(ExperimentError::from)?;
        Ok(Ok(PlannedCost {
            parameters: parameters.name(),
            message_bytes: Message::size(self.queries, self.classes),
            all_message_bytes: Message::size(self.queries, self.classes) * self.messages(),
            public_key_bytes: PublicKey::file_size(&parameters),
            evaluation_key_bytes: SeededEvaluationKey::file_size(&parameters),
            core_seconds,
        }))
    }

    /// Returns the number of messages: one of each party.
    fn messages(&self) -> usize {
        if self.parties.is_empty() { self.teachers } else { self.parties.len() }
    }

    /// Returns the round, the votes of a smaller round whose argmax is measured, and the fastest parameters that compare its
    /// counts.
    fn terms(&self) -> Result<(Round, NoisyVotes, Parameters), String> {
        let shape = VoteShape::new(self.teachers, self.queries, self.classes).map_err(|error| error.to_string())?;
        let noise = PrivacyNoise::new(self.noise).map_err(|error| error.to_string())?;
        let bound = noise.bound(shape).map_err(|error| error.to_string())?;
        let range = VoteRange::new(self.teachers, bound);
        let parameters = Encoding::choose_parameters(self.classes, range).map_err(|error| error.to_string())?;
        let spec = RoundSpec { parties: self.parties.clone(), ..RoundSpec::new(LABEL, shape, bound) };
        let round = Round::new(spec).map_err(|error| error.to_string())?;
        // One teacher with more noise: counts differ by as much as in the round, so they are compared at the same scales.
        let queries = self.queries.min(MEASURED_QUERIES);
        let shape = VoteShape::new(1, queries, self.classes).map_err(|error| error.to_string())?;
        let bound = (range.difference() - 1).div_ceil(2);
        let votes = NoisyVotes::new(shape, bound, vec![0; shape.counts()]).map_err(|error| error.to_string())?;
        Ok((round, votes, parameters))
    }

    /// Measures each step. Keys come from a fixed seed, because nothing is kept.
    fn measure(
        &self,
        round: &Round,
        votes: &NoisyVotes,
        parameters: &Parameters,
    ) -> Result<CoreSeconds, AggregationError> {
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let randomness = Randomness::simulation([0; 32]);
        let clock = Clock::start();
        let encrypted = Encrypted::new(parameters, randomness.clone(), LABEL, threads)?;
        let keys = clock.seconds();

        let measured = self.messages().min(MEASURED_MESSAGES);
        let values = vec![0; round.shape().counts()];
        let clock = Clock::start();
        let messages = (0..measured)
            .map(|teacher| {
                let message = Teacher::new(teacher).answer(encrypted.public_key(), round, &values, &randomness);
                message.map_err(|error| AggregationError::of_step(format_args!("teacher {teacher}"), error))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let encryption = clock.seconds() / measured as f64;

        let mut server = Server::new(encrypted.evaluation_key().clone(), round.clone())?;
        let clock = Clock::start();
        for (teacher, message) in messages.iter().enumerate() {
            let (step, message) =
                (format_args!("message of teacher {teacher}"), Message::from_bytes(&message.to_bytes()));
            server.add(&message.map_err(|error| AggregationError::of_step(step, error))?)?;
        }
        let sum = clock.seconds() * (self.messages() as f64 / measured as f64);

        let clock = Clock::start();
        let result = encrypted.with_label(b"plan argmax").aggregate(votes, &|_, _| {})?;
        let argmax = result.argmax_processor.map_or_else(|| clock.seconds(), |time| time.as_secs_f64());
        Ok(CoreSeconds {
            keys,
            encryption,
            sum,
            argmax: argmax * (self.queries as f64 / votes.shape().queries() as f64),
        })
    }
}

impl PlannedCost {
    pub(super) fn to_text(&self) -> String {
        let Self { parameters, message_bytes, all_message_bytes, public_key_bytes, evaluation_key_bytes, core_seconds } =
            self;
        let mut text = format!(
            "a teacher's message: {message_bytes} bytes, all messages {all_message_bytes}, without proofs; {parameters} keys: public key {public_key_bytes} bytes, \
             evaluation key {evaluation_key_bytes} bytes\n"
        );
        if let Some(CoreSeconds { keys, encryption, sum, argmax }) = core_seconds {
            text.push_str(&format!(
                "core-seconds, just measured here: {keys:.1} for the keys, {encryption:.4} for the encryption of each teacher, \
                 {sum:.2} for the sum, {argmax:.1} for the argmax\n"
            ));
        }
        text
    }
}
