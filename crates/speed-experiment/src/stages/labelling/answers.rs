//! The queries of a row on ciphertexts: each is a unit of work, saved when it is answered.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use speed_aggregation::cost::processor_time;
use speed_aggregation::{Aggregated, Aggregator, ClearText, Message, NoisyVotes};
use speed_core::Circuit;
use speed_nn::threads;

use super::argmax::{LabellingOutcome, Method, Winner, labels};
use super::noise::NoisyTeachers;
use super::question::RowQuestion;
use crate::error::ExperimentError;
use crate::stages::context::Context;
use crate::store::StageFolder;

/// Largest number of queries of one round: every teacher encrypts for all of them at once, and packs their counts.
const BATCH: usize = 128;

/// A bound on the seconds of an answer: thirty years.
const MOST_SECONDS: f64 = 1e9;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    /// 0 for a check that reached the threshold; `None` if no count reached it, or the paper's circuit found no winner or
    /// several.
    label: Option<u8>,
    /// The digest of the noise that was charged; empty in a simulation.
    noise: String,
    /// Wall-clock time of its argmax on its thread.
    query_seconds: f64,
    /// Its share of the times of its round.
    encrypt_seconds: f64,
    sum_seconds: f64,
    argmax_seconds: f64,
    core_seconds: Option<f64>,
    /// The time of key generation; the keys serve other queries too.
    key_generation_seconds: f64,
}

impl Answer {
    /// Returns whether its times are plausible, because a file is untrusted input.
    fn has_times(&self) -> bool {
        let Self { query_seconds, encrypt_seconds, sum_seconds, argmax_seconds, key_generation_seconds, .. } = *self;
        let times = [query_seconds, encrypt_seconds, sum_seconds, argmax_seconds, key_generation_seconds];
        times.into_iter().chain(self.core_seconds).all(|seconds| (0.0..MOST_SECONDS).contains(&seconds))
    }
}

pub(super) const UNIT: &str = "query-";

pub(crate) fn unit(query: usize) -> String {
    format!("{UNIT}{query:04}")
}

pub(super) struct Answers<'a> {
    context: &'a Context<'a>,
    question: RowQuestion<'a>,
    folder: &'a StageFolder,
    noise: &'a NoisyTeachers,
    /// Created for the first query that is not done, because keys take seconds.
    method: Option<&'a Method<'a>>,
    /// `None` if no query is asked.
    noisy: Option<NoisyVotes>,
    done: Mutex<BTreeMap<usize, Answer>>,
}

impl<'a> Answers<'a> {
    /// Finds the saved answers to `queries`; calls `method` if one is missing.
    pub(super) fn open(
        context: &'a Context<'a>,
        question: RowQuestion<'a>,
        folder: &'a StageFolder,
        noise: &'a NoisyTeachers,
        queries: &[usize],
        method: impl FnOnce() -> Result<&'a Method<'a>, ExperimentError>,
    ) -> Result<Self, ExperimentError> {
        let noisy = if question.len() == 0 { None } else { Some(noise.votes(context, &question)?) };
        let mut answers = Self { context, question, folder, noise, method: None, noisy, done: Mutex::default() };
        let missing = queries.iter().filter(|&&query| !answers.find(query)).count();
        let there = queries.len() - missing;
        context.progress.begin(&question.title(), "queries", queries.len() as u64, there as u64);
        if missing > 0 {
            answers.method = Some(method()?);
        }
        Ok(answers)
    }

    /// Ensures that queries are answered, and returns how many this process answered.
    pub(super) fn complete(&self, queries: &[usize]) -> Result<usize, ExperimentError> {
        let todo: Vec<usize> = queries.iter().copied().filter(|query| !self.done().contains_key(query)).collect();
        let batches: Vec<&[usize]> = todo.chunks(BATCH).collect();
        // Each batch uses all threads.
        threads::for_each(&batches, 1, |batch, _| self.answer(batch))?;
        Ok(todo.len())
    }

    fn answer(&self, queries: &[usize]) -> Result<(), ExperimentError> {
        let (Some(method), Some(noisy)) = (self.method, &self.noisy) else { return Ok(()) };
        let meter = Mutex::new(QueryClock::new());
        let on_sum = |encryption, sum| {
            meter.lock().unwrap_or_else(PoisonError::into_inner).summed(encryption, sum, queries.len());
        };
        let on_winners = |winners: &[Winner]| {
            let mut meter = meter.lock().unwrap_or_else(PoisonError::into_inner);
            let (argmax_seconds, core_seconds) = meter.passed(winners.len());
            let (encrypt_seconds, sum_seconds) = (meter.each_encryption, meter.each_sum);
            drop(meter);
            winners.iter().try_for_each(|&Winner { query, label, time }| {
                let answer = Answer {
                    label,
                    noise: self.noise_digest(),
                    query_seconds: time.as_secs_f64(),
                    encrypt_seconds,
                    sum_seconds,
                    argmax_seconds,
                    core_seconds,
                    key_generation_seconds: method.key_generation().as_secs_f64(),
                };
                self.save(answer, query)
            })
        };
        method.find_winners(self.context, &self.question, noisy, queries, on_sum, &on_winners)
    }

    pub(super) fn labelled(&self) -> Result<LabellingOutcome, ExperimentError> {
        let done = self.done();
        let Some(noisy) = &self.noisy else { return Ok(LabellingOutcome::default()) };
        let shape = noisy.shape();
        let sum = |seconds: fn(&Answer) -> f64| Duration::from_secs_f64(done.values().map(seconds).sum());
        let key_generation = done.values().map(|answer| answer.key_generation_seconds).fold(0.0, f64::max);
        let is_papers = self.question.row.circuit == Circuit::Paper;
        let aggregated = Aggregated {
            query_times: done.values().map(|answer| Duration::from_secs_f64(answer.query_seconds)).collect(),
            message_bytes: if is_papers { 0 } else { Message::size(shape.queries(), shape.classes()) },
            key_generation: Duration::from_secs_f64(key_generation),
            encryption: sum(|answer| answer.encrypt_seconds),
            sum: sum(|answer| answer.sum_seconds),
            argmax: sum(|answer| answer.argmax_seconds),
            ..Aggregated::default()
        };
        Ok(LabellingOutcome {
            labels: done.values().map(|answer| answer.label).collect(),
            clear: labels(&ClearText.aggregate(noisy, &|_, _| {})?),
            aggregated,
            core_seconds: done.values().map(|answer| answer.core_seconds).sum(),
        })
    }

    fn done(&self) -> MutexGuard<'_, BTreeMap<usize, Answer>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn noise_digest(&self) -> String {
        self.noise.key.as_ref().map_or_else(String::new, |key| key.digest())
    }

    fn find(&self, query: usize) -> bool {
        let answer = self.folder.read_sealed::<Answer>(&unit(query));
        let answer = answer.filter(|answer| answer.has_times() && answer.noise == self.noise_digest());
        let is_found = answer.is_some();
        self.done().extend(answer.map(|answer| (query, answer)));
        is_found
    }

    fn save(&self, answer: Answer, query: usize) -> Result<(), ExperimentError> {
        self.folder.write_sealed(&unit(query), &answer)?;
        self.done().insert(query, answer);
        self.context.progress.advance(1, "");
        Ok(())
    }
}

/// The times of a round, divided among its queries so that they add up.
struct QueryClock {
    each_encryption: f64,
    each_sum: f64,
    last: (Instant, Option<Duration>),
}

impl QueryClock {
    fn new() -> Self {
        Self { each_encryption: 0.0, each_sum: 0.0, last: (Instant::now(), processor_time()) }
    }

    fn summed(&mut self, encryption: Duration, sum: Duration, queries: usize) {
        self.each_encryption = encryption.as_secs_f64() / queries as f64;
        self.each_sum = sum.as_secs_f64() / queries as f64;
        // The argmax begins; processor time covers everything.
        self.last.0 = Instant::now();
    }

    /// Returns wall-clock and processor time since the last call, for each of `queries` queries.
    fn passed(&mut self, queries: usize) -> (f64, Option<f64>) {
        let (now, processor) = (Instant::now(), processor_time());
        let each = |time: Duration| time.as_secs_f64() / queries as f64;
        let passed = (each(now - self.last.0), processor.zip(self.last.1).map(|(now, last)| each(now - last)));
        self.last = (now, processor);
        passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_times_make_an_answer_invalid() {
        let answer = Answer {
            label: None,
            noise: String::new(),
            query_seconds: 0.5,
            encrypt_seconds: 0.0,
            sum_seconds: 0.1,
            argmax_seconds: 0.6,
            core_seconds: Some(1.0),
            key_generation_seconds: 2.0,
        };
        assert!(answer.has_times() && Answer { core_seconds: None, ..answer.clone() }.has_times());
        for odd in [-1.0, 1e300, f64::NAN, f64::INFINITY] {
            assert!(!Answer { query_seconds: odd, ..answer.clone() }.has_times(), "{odd}");
            assert!(!Answer { core_seconds: Some(odd), ..answer.clone() }.has_times(), "{odd}");
        }
    }
}
