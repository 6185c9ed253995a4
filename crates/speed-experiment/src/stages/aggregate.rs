//! One row's labels: noise shares, then plurality, clear-text argmax, or the homomorphic one.

use std::cell::OnceCell;
use std::num::NonZeroUsize;
use std::time::Duration;

use rand::RngExt;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};
use serde_json::json;
use speed_aggregation::{
    Aggregated, AggregationError, Aggregator, ClearText, Encrypted, KeySource, NoisyVotes, Parameters,
};
use speed_mechanism::{HonestRatio, InverseScale, NoiseShare, NoiseSource, noise_generator, sum_support_bound};
use speed_teacher::Votes;

use super::{Context, Images, slug};
use crate::ExperimentError;
use crate::config::{AggregationKind, RowConfig};
use crate::environment::process_cpu_seconds;
use crate::store::Stage;

/// Probability that the noise of any class of any query leaves the range that the encoding is checked for.
const RANGE_FAILURE: f64 = 1.0 / (1u128 << 64) as f64;

const CODE_VERSION: u32 = 1;

/// The labels of a row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Aggregate {
    /// One label a query.
    pub(crate) labels: Vec<u8>,
    /// Queries on which they are those of the clear-text argmax of the same noisy votes.
    pub(crate) agreement: usize,
    /// Share of right labels; unknown without images.
    pub(crate) label_accuracy: Option<f64>,
    /// Teachers that added noise.
    pub(crate) noisy_teachers: usize,
    /// Bytes that each teacher sends for all queries; 0 in clear text.
    pub(crate) message_bytes: usize,
}

/// Times of the homomorphic part, in seconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct AggregateTimes {
    pub(crate) key_generation_seconds: f64,
    pub(crate) encrypt_seconds: f64,
    pub(crate) sum_seconds: f64,
    /// Wall clock of the argmax of all queries.
    pub(crate) argmax_seconds: f64,
    pub(crate) threads: usize,
    /// Wall clock of each query on its thread.
    pub(crate) query_seconds: Vec<f64>,
    /// Processor time of all threads for the whole round, encryption, sum and decryption included.
    pub(crate) core_seconds: Option<f64>,
}

impl AggregateTimes {
    fn new(aggregated: &Aggregated, threads: usize, core_seconds: Option<f64>) -> Self {
        Self {
            key_generation_seconds: aggregated.key_generation.as_secs_f64(),
            encrypt_seconds: aggregated.encryption.as_secs_f64(),
            sum_seconds: aggregated.sum.as_secs_f64(),
            argmax_seconds: aggregated.argmax.as_secs_f64(),
            threads,
            core_seconds,
            query_seconds: aggregated.query_times.iter().map(Duration::as_secs_f64).collect(),
        }
    }

    /// Processor time a query, everything included; unknown where the system does not tell it.
    pub(crate) fn core_seconds_per_query(&self) -> Option<f64> {
        self.core_seconds.map(|seconds| seconds / self.query_seconds.len().max(1) as f64)
    }
}

/// Labels the queries as `row` says.
pub(crate) fn aggregate(
    context: &Context<'_>,
    keys: &Keys,
    row: &RowConfig,
    votes: &Votes,
    votes_stage: &Stage,
    queries: &[usize],
    images: Option<&Images>,
) -> Result<(Aggregate, Option<AggregateTimes>), ExperimentError> {
    let config = context.config;
    let noisy = HonestRatio::new(row.honest_ratio)?.noisy_teachers(votes.teachers())?;
    let inputs = json!({
        "votes": votes_stage.outputs_hash(),
        "queries": queries,
        "aggregation": row.aggregation,
        "noisy_teachers": noisy,
        "noise": config.noise,
        "seed": config.seed,
        "pool": images.map(|images| Images::digest(&images.pool)),
    });
    let name = format!("aggregate-{}", slug(&row.name));
    let stage = context.stage(&name, CODE_VERSION, &inputs, |folder| {
        let (aggregated, clear, core_seconds) = release(context, keys, row, votes, queries, noisy)?;
        let times = AggregateTimes::new(&aggregated, context.threads, core_seconds);
        let labels = aggregated.winners;
        let aggregate = Aggregate {
            agreement: labels.iter().zip(&clear).filter(|(released, clear)| released == clear).count(),
            label_accuracy: images.map(|images| share_right(&labels, queries, images)),
            noisy_teachers: if row.aggregation == AggregationKind::NonPrivate { 0 } else { noisy },
            message_bytes: aggregated.message_bytes,
            labels,
        };
        let mut csv = String::from("query,pool_image,label\n");
        for (query, (image, label)) in queries.iter().zip(&aggregate.labels).enumerate() {
            csv.push_str(&format!("{query},{image},{label}\n"));
        }
        folder.write("labels.csv", csv.as_bytes())?;
        folder.write_json("aggregate.json", &aggregate)?;
        if row.aggregation == AggregationKind::Encrypted {
            folder.write_json("times.json", &times)?;
        }
        Ok(vec!["labels.csv".into(), "aggregate.json".into()])
    })?;
    let times = match row.aggregation {
        AggregationKind::Encrypted => Some(stage.read_json("times.json")?),
        AggregationKind::NonPrivate | AggregationKind::Trusted => None,
    };
    Ok((stage.read_json("aggregate.json")?, times))
}

/// The keys of a run, made when the first encrypted row needs them.
#[derive(Default)]
pub(crate) struct Keys(OnceCell<Encrypted>);

impl Keys {
    fn get(&self, context: &Context<'_>) -> Result<&Encrypted, AggregationError> {
        if let Some(keys) = self.0.get() {
            return Ok(keys);
        }
        let source = match simulation_seed(context, "keys", 0) {
            Some(seed) => KeySource::Simulation(seed),
            None => KeySource::OperatingSystem,
        };
        let threads = NonZeroUsize::new(context.threads).unwrap_or(NonZeroUsize::MIN);
        let keys = Encrypted::new(&Parameters::TOURNAMENT_128, source, b"", threads)?;
        Ok(self.0.get_or_init(|| keys))
    }
}

/// The released labels with what they took, the labels of the clear-text argmax of the same votes, and the processor
/// time of the encrypted round.
fn release(
    context: &Context<'_>,
    keys: &Keys,
    row: &RowConfig,
    votes: &Votes,
    queries: &[usize],
    noisy: usize,
) -> Result<(Aggregated, Vec<u8>, Option<f64>), ExperimentError> {
    let title = format!("aggregate {}", row.name);
    context.progress.begin(&title, "queries", queries.len() as u64, 0);
    let on_query = |_: usize, _: Duration| context.progress.advance(1, "");
    let (released, clear, core_seconds) = match row.aggregation {
        AggregationKind::NonPrivate => {
            let winners: Vec<u8> = queries.iter().map(|&image| votes.plurality(image)).collect();
            (Aggregated { winners: winners.clone(), ..Aggregated::default() }, winners, None)
        }
        AggregationKind::Trusted => {
            let released = ClearText.aggregate(&noisy_votes(context, votes, queries, noisy)?, &on_query)?;
            let winners = released.winners.clone();
            (released, winners, None)
        }
        AggregationKind::Encrypted => {
            let noisy_votes = noisy_votes(context, votes, queries, noisy)?;
            let clear = ClearText.aggregate(&noisy_votes, &|_, _| {})?.winners;
            // A round belongs to one run and row: its label says which.
            let label = format!("{}\n{}", context.config.to_toml(), row.name);
            let encrypted = keys.get(context)?.clone().with_label(label.as_bytes());
            let before = process_cpu_seconds();
            let released = encrypted.aggregate(&noisy_votes, &on_query)?;
            let spent = process_cpu_seconds().zip(before).map(|(after, before)| after - before);
            (released, clear, spent)
        }
    };
    context.progress.end(&format!("{}: {} labels", row.name, released.winners.len()));
    Ok((released, clear, core_seconds))
}

/// One-hot votes with each noisy teacher's own shares. In a simulation a teacher's shares are the same in every row.
fn noisy_votes(
    context: &Context<'_>,
    votes: &Votes,
    queries: &[usize],
    noisy: usize,
) -> Result<NoisyVotes, ExperimentError> {
    let (teachers, classes) = (votes.teachers(), votes.classes());
    let gamma = InverseScale::new(context.config.noise.gamma)?;
    let share = NoiseShare::new(gamma, teachers)?;
    let sums = (queries.len() * classes) as u64;
    let bound = sum_support_bound(gamma, HonestRatio::new(1.0)?, sums, RANGE_FAILURE)?;
    let honest = honest_teachers(context, teachers, noisy);

    let mut values = vec![0i64; teachers * queries.len() * classes];
    for (teacher, answers) in values.chunks_exact_mut(queries.len() * classes).enumerate() {
        if honest[teacher] {
            let source = match simulation_seed(context, "noise", teacher as u64) {
                Some(seed) => NoiseSource::Simulation { seed },
                None => NoiseSource::OperatingSystem,
            };
            share.fill(&mut noise_generator(source)?, answers);
        }
        for (&image, answer) in queries.iter().zip(answers.chunks_exact_mut(classes)) {
            answer[usize::from(votes.label(teacher, image))] += 1;
        }
    }
    NoisyVotes::new(teachers, queries.len(), classes, bound, values)
        .map_err(|error| ExperimentError::Mismatch(error.to_string()))
}

/// Which teachers add noise: the first `noisy` of a seeded permutation, so that a smaller ratio is a subset.
fn honest_teachers(context: &Context<'_>, teachers: usize, noisy: usize) -> Vec<bool> {
    let mut order: Vec<usize> = (0..teachers).collect();
    order.shuffle(&mut context.streams.stream("honest teachers", 0));
    let mut honest = vec![false; teachers];
    order.iter().take(noisy).for_each(|&teacher| honest[teacher] = true);
    honest
}

/// A seed for noise or keys, only where the config asks for a simulation.
fn simulation_seed(context: &Context<'_>, name: &str, index: u64) -> Option<[u8; 32]> {
    context.config.is_simulation().then(|| context.streams.stream(name, index).random())
}

fn share_right(labels: &[u8], queries: &[usize], images: &Images) -> f64 {
    let right = labels.iter().zip(queries).filter(|(label, image)| **label == images.pool.label(**image)).count();
    right as f64 / labels.len() as f64
}
