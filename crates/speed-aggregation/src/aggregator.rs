//! A common interface for aggregation in the clear and under encryption.

use std::fmt::Display;
use std::time::{Duration, Instant};

use speed_core::EntropyError;

use crate::answer::OpenError;
use crate::circuit::Work;
use crate::codec::DecodeError;
use crate::encoding::EncodingError;
use crate::exact_circuit::InexactCircuit;
use crate::getters::messages_of;
use crate::outcome::Outcome;
use crate::round::RoundError;
use crate::server::ServerError;
use crate::threads::ThreadsError;
use crate::votes::NoisyVotes;

/// Turns noisy votes into labels. [`ClearText`] and [`Encrypted`](crate::Encrypted) give the same outcomes.
pub trait Aggregator {
    /// Returns the outcome of every query. Calls `on_query` with a query's index and duration when its argmax is done,
    /// possibly from several threads.
    ///
    /// # Errors
    /// If the votes cannot be aggregated exactly, or a step fails.
    fn aggregate(
        &self,
        votes: &NoisyVotes,
        on_query: &(dyn Fn(usize, Duration) + Sync),
    ) -> Result<Aggregated, AggregationError>;
}

/// The labels of a round, and their cost. Times are wall-clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aggregated {
    /// The outcome of every query: the winning class (the lowest on a tie), or no answer if the maximum is below the
    /// threshold.
    pub outcomes: Vec<Outcome>,
    /// Time of each query's argmax on its thread.
    pub query_times: Vec<Duration>,
    /// Bytes that one teacher sends for the round; 0 in the clear.
    pub message_bytes: usize,
    /// Bytes that the server sends to the student for the round; 0 in the clear.
    pub answer_bytes: usize,
    /// Time of key generation, once for all rounds of an aggregator.
    pub key_generation: Duration,
    /// Time of all teachers' encryptions.
    pub encryption: Duration,
    /// Time of the server's decoding and sum.
    pub sum: Duration,
    /// Time of the argmax of all queries.
    pub argmax: Duration,
    /// Processor time of the process during the argmax, if the system reports it; `None` in the clear.
    pub argmax_processor: Option<Duration>,
    /// Time of the student's decryptions.
    pub opening: Duration,
    /// Operations of the argmax circuits by kind; none in the clear.
    pub work: Work,
}

impl Aggregated {
    /// Returns the label of every query, or `None` if the query has no answer.
    pub fn labels(&self) -> Vec<Option<u8>> {
        self.outcomes.iter().map(|outcome| outcome.label()).collect()
    }

    /// Returns whether every query of a check reached the threshold.
    pub fn reached(&self) -> Vec<bool> {
        self.outcomes.iter().map(|outcome| *outcome == Outcome::Reached).collect()
    }
}

/// The reason why an aggregation failed: votes that no round can hold exactly, noise beyond its bound, a refusal of a
/// role, or a failure of the system.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AggregationError(String);

impl AggregationError {
    /// Creates an error of one step, for example of one teacher.
    pub fn of_step(step: impl Display, error: impl Display) -> Self {
        Self(format!("{step}: {error}"))
    }
}

messages_of!(
    AggregationError, AggregationError: RoundError, EncodingError, ServerError, DecodeError = "answer of the server: ",
    OpenError, EntropyError, ThreadsError, InexactCircuit
);

/// Aggregation by a trusted party, which sums and compares in the clear. The reference for
/// [`Encrypted`](crate::Encrypted), with the same rule for ties.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClearText;

impl Aggregator for ClearText {
    fn aggregate(
        &self,
        votes: &NoisyVotes,
        on_query: &(dyn Fn(usize, Duration) + Sync),
    ) -> Result<Aggregated, AggregationError> {
        let start = Instant::now();
        let counts = votes.counts();
        let sum = start.elapsed();
        let start = Instant::now();
        let (outcomes, query_times) = counts
            .chunks_exact(votes.shape().classes())
            .enumerate()
            .map(|(query, counts)| {
                let start = Instant::now();
                let winner = first_maximum(counts);
                let answered = votes.threshold.is_none_or(|least| counts[usize::from(winner)] >= least);
                let time = start.elapsed();
                on_query(query, time);
                let outcome = match answered {
                    true if votes.is_check => Outcome::Reached,
                    true => Outcome::Label(winner),
                    false => Outcome::NoAnswer,
                };
                (outcome, time)
            })
            .unzip();
        Ok(Aggregated { outcomes, query_times, sum, argmax: start.elapsed(), ..Aggregated::default() })
    }
}

/// Returns the lowest index of a maximum of at most 256 counts.
fn first_maximum(counts: &[i64]) -> u8 {
    let mut best = 0;
    for (class, count) in counts.iter().enumerate() {
        if *count > counts[best] {
            best = class;
        }
    }
    u8::try_from(best).expect("NoisyVotes has at most 256 classes")
}

#[cfg(test)]
mod tests {
    use speed_core::{Randomness, VoteShape};

    use super::*;
    use crate::privacy_noise::PrivacyNoise;
    use crate::values::teacher_values;

    #[test]
    fn clear_text_sums_over_teachers_and_breaks_ties_downwards() {
        let values = vec![
            1, 0, 0, /**/ 0, 0, 1, /**/ 0, -1, 0, /**/ 2, 2, 2, // teacher 0, four queries
            0, 1, 3, /**/ 0, 0, 0, /**/ 0, 5, 4, /**/ 0, 1, 1, // teacher 1
        ];
        let votes = NoisyVotes::new(VoteShape::new(2, 4, 3).expect("a shape"), 9, values).expect("valid");
        let seen = std::sync::Mutex::new(Vec::new());
        let result = ClearText
            .aggregate(&votes, &|query, _| seen.lock().expect("no panic").push(query))
            .expect("clear text cannot fail");
        assert_eq!(result.labels(), [2, 2, 1, 1].map(Some));
        assert_eq!(*seen.lock().expect("no panic"), [0, 1, 2, 3]);
        assert_eq!((result.query_times.len(), result.message_bytes), (4, 0));
        // The maxima are 3, 1, 4 and 3; a maximum equal to the threshold wins.
        let confident =
            ClearText.aggregate(&votes.clone().with_threshold(3), &|_, _| {}).expect("clear text cannot fail");
        assert_eq!(confident.labels(), [Some(2), None, Some(1), Some(1)]);
        let checked = ClearText.aggregate(&votes.with_check(3), &|_, _| {}).expect("clear text cannot fail");
        assert_eq!((checked.reached(), checked.labels()), (vec![true, false, true, true], vec![None; 4]));
    }

    /// The accountant counts the noise of `k` teachers with `m` coins each as heads less `floor(k m / 2)`, and compares
    /// a vote plus this noise with the threshold. The sum of centred shares is heads less `k floor(m / 2)`.
    #[test]
    fn a_threshold_is_compared_with_noise_counted_from_half_of_all_coins() {
        for (coins, teachers, present) in [(4, 6, 6), (4, 7, 5), (2, 9, 4), (6, 5, 3), (8, 4, 1)] {
            let noise = PrivacyNoise::of_coins(coins, teachers).expect("valid");
            noise.check_threshold(teachers).expect("even");
            let shape = VoteShape::new(present, 200, 3).expect("a shape");
            let share = noise.share_of(teachers).expect("a share");
            let values = (0..present).flat_map(|teacher| {
                let labels: Vec<u8> = (0..200).map(|query| ((query + teacher) % 3) as u8).collect();
                let randomness = Randomness::simulation([teacher as u8 + 1; 32]);
                teacher_values(shape, &labels, Some((&share, &randomness))).expect("no entropy").to_vec()
            });
            let (k, m) = (present as i64, coins as i64);
            let votes = NoisyVotes::new(shape, noise.bound(shape).expect("bounded"), values.collect()).expect("valid");
            let heads_and_votes = votes.counts().iter().map(|sum| sum + k * (m / 2)).collect::<Vec<i64>>();
            for threshold in -2..=k + m {
                let clear = votes.clone().with_threshold(threshold);
                let labels = ClearText.aggregate(&clear, &|_, _| {}).expect("in the clear").labels();
                for (label, counts) in labels.iter().zip(heads_and_votes.chunks_exact(3)) {
                    let largest = counts.iter().max().expect("three classes") - k * m / 2;
                    assert_eq!(label.is_some(), largest >= threshold, "{coins} coins, {present} of {teachers}");
                }
            }
        }
    }
}
