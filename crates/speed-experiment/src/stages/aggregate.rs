//! One row's labels: noise shares, then plurality, clear-text argmax, or the homomorphic one.

use std::cell::{OnceCell, RefCell};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use rand::RngExt;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};
use serde_json::json;
use speed_aggregation::paper::{PaperAnswer, PaperArgmax};
use speed_aggregation::{
    Aggregated, AggregationError, Aggregator, ClearText, Encoding, Encrypted, NoisyVotes, PrivacyNoise,
    PrivacyNoiseError, VoteRange, processor_time, teacher_values,
};
use speed_core::{Circuit, Randomness, VoteShape, Votes, VotesError};
use speed_mechanism::{HonestRatio, MechanismError, MechanismKind};

use super::ledger::{NoiseKey, Paid};
use super::{Context, Images, Labelling, fingerprint, stage_of_row};
use crate::ExperimentError;
use crate::config::{AggregationKind, CircuitKind, RowConfig};
use crate::store::{Stage, StageFolder, StageState};

/// Of answers, whatever their row is called.
const CODE_VERSION: u32 = 3;
/// Of earlier versions, where the name of the row belonged to it.
const CODE_VERSION_BY_NAME: u32 = 2;

/// The labels of a row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Aggregate {
    /// One label a query; none where the circuit found no winner or several.
    pub(crate) labels: Vec<Option<u8>>,
    /// Queries on which they are those of the clear-text argmax of the same noisy votes.
    pub(crate) agreement: usize,
    /// Queries without a label, for the circuit that can leave one without.
    pub(crate) unresolved: Option<usize>,
    /// Share of right labels; unknown without images.
    pub(crate) label_accuracy: Option<f64>,
    /// Teachers that added noise.
    pub(crate) noisy_teachers: usize,
    /// Bytes that each teacher sends for all queries; 0 in clear text.
    pub(crate) message_bytes: usize,
}

impl Aggregate {
    /// The queries that have a label, of `queries` or the first of them, and their labels.
    pub(crate) fn labelling<'a>(&self, row: &'a str, queries: &[usize]) -> Labelling<'a> {
        let labelled = queries.iter().zip(&self.labels).filter_map(|(&query, &label)| Some((query, label?)));
        let (queries, labels) = labelled.unzip();
        Labelling { row, queries, labels }
    }
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
    fn new(release: &Release, threads: usize) -> Self {
        let Release { aggregated, core_seconds, .. } = release;
        Self {
            key_generation_seconds: aggregated.key_generation.as_secs_f64(),
            encrypt_seconds: aggregated.encryption.as_secs_f64(),
            sum_seconds: aggregated.sum.as_secs_f64(),
            argmax_seconds: aggregated.argmax.as_secs_f64(),
            threads,
            core_seconds: *core_seconds,
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
    let noisy = HonestRatio::new(row.honest_ratio)?.noisy_teachers(votes.shape().teachers())?;
    let inputs = json!({
        "votes": votes_stage.outputs_hash(),
        "queries": queries,
        "aggregation": row.aggregation,
        "circuit": row.circuit,
        "noisy_teachers": noisy,
        "noise": config.noise,
        "seed": config.seed,
        "pool": images.map(|images| Images::digest(&images.pool)),
    });
    let name = stage_of_row("aggregate", config, row);
    let question = fingerprint("aggregate", CODE_VERSION, &inputs);
    let finish = |folder: &StageFolder, way: Way, key: Option<NoiseKey>| -> Result<Vec<String>, ExperimentError> {
        let released = release(context, keys, row, votes, queries, &NoisyTeachers { noisy, key }, way)?;
        let times = AggregateTimes::new(&released, context.threads);
        let Release { labels, clear, aggregated, .. } = released;
        let aggregate = Aggregate {
            agreement: labels.iter().zip(&clear).filter(|(released, clear)| **released == Some(**clear)).count(),
            unresolved: (row.circuit == CircuitKind::Paper)
                .then(|| labels.iter().filter(|label| label.is_none()).count()),
            label_accuracy: images.and_then(|images| share_right(&labels, queries, images)),
            noisy_teachers: if row.aggregation == AggregationKind::NonPrivate { 0 } else { noisy },
            message_bytes: aggregated.message_bytes,
            labels,
        };
        let mut csv = String::from("query,pool_image,label\n");
        for (query, (image, label)) in queries.iter().zip(&aggregate.labels).enumerate() {
            let label = label.map_or_else(String::new, |label| label.to_string());
            csv.push_str(&format!("{query},{image},{label}\n"));
        }
        folder.write("labels.csv", csv.as_bytes())?;
        folder.write_json("aggregate.json", &aggregate)?;
        if row.aggregation == AggregationKind::Encrypted {
            folder.write_json("times.json", &times)?;
        }
        Ok(vec!["labels.csv".into(), "aggregate.json".into()])
    };
    let earlier = |name: &str| Some(fingerprint(name, CODE_VERSION_BY_NAME, &inputs));
    let paid = Paid {
        context,
        row,
        stage: &name,
        question: &question,
        queries: queries.len(),
        classes: votes.shape().classes(),
    };
    let is_done = || context.store.done("aggregate", &name, &question, &earlier).is_some();
    let begun = if !paid.is_underway()? && is_done() {
        None
    } else {
        // What can fail without a query comes before the charge, and every answer after it: one may be charged and not given
        // yet, never the other way round.
        let way = Way::open(context, keys, row, votes, queries.len())?;
        paid.settle(is_done)?.map(|(folder, key)| (folder, way, key))
    };
    let stage = match begun {
        Some((folder, way, key)) => {
            let outputs = finish(&folder, way, key)?;
            folder.finish(&outputs)?
        }
        None => match context.store.stage("aggregate", &name, &question, &earlier)? {
            StageState::Done(stage) => {
                context.progress.note(&format!("{name}: done already"));
                stage
            }
            StageState::Outstanding(_) => {
                let message = "was taken away by another run of the experiment: run again".into();
                return Err(ExperimentError::Results {
                    path: context.store.folder().join("stages").join(&name),
                    message,
                });
            }
        },
    };
    paid.forget_noise()?;
    let times = match row.aggregation {
        AggregationKind::Encrypted => Some(stage.read_json("times.json")?),
        AggregationKind::NonPrivate | AggregationKind::Trusted => None,
    };
    Ok((stage.read_json("aggregate.json")?, times))
}

/// The keys of a run, made when the first encrypted row needs them.
#[derive(Default)]
pub(crate) struct Keys {
    encrypted: RefCell<Option<Encrypted>>,
    paper: OnceCell<(PaperArgmax, Duration)>,
}

impl Keys {
    /// Keys of the fastest parameter set for the range of these votes; the last ones, if they serve.
    fn encrypted(
        &self,
        context: &Context<'_>,
        classes: usize,
        range: VoteRange,
    ) -> Result<Encrypted, AggregationError> {
        let serves = |keys: &Encrypted| Encoding::new(keys.public_key().parameters(), classes, range).is_ok();
        let mut last = self.encrypted.borrow_mut();
        if let Some(keys) = last.as_ref().filter(|keys| serves(keys)) {
            return Ok(keys.clone());
        }
        let parameters = Encoding::choose_parameters(classes, range)?;
        let keys = Encrypted::new(&parameters, key_source(context), b"", thread_count(context))?;
        Ok(last.insert(keys).clone())
    }

    /// The keys of the paper's circuit and the time that they took.
    fn paper(&self, context: &Context<'_>) -> Result<&(PaperArgmax, Duration), AggregationError> {
        if let Some(keys) = self.paper.get() {
            return Ok(keys);
        }
        let start = Instant::now();
        let keys = PaperArgmax::new(key_source(context), context.config.ensemble.teachers)?;
        Ok(self.paper.get_or_init(|| (keys, start.elapsed())))
    }
}

fn key_source(context: &Context<'_>) -> Randomness {
    simulation_seed(context, "keys", 0).map_or(Randomness::OperatingSystem, Randomness::simulation)
}

fn thread_count(context: &Context<'_>) -> NonZeroUsize {
    NonZeroUsize::new(context.threads).unwrap_or(NonZeroUsize::MIN)
}

/// What a row's aggregation gave.
struct Release {
    /// One a query; none where the circuit found no winner or several.
    labels: Vec<Option<u8>>,
    /// Labels of the clear-text argmax of the same votes.
    clear: Vec<u8>,
    /// What it took.
    aggregated: Aggregated,
    /// Processor time of the encrypted round.
    core_seconds: Option<f64>,
}

impl Release {
    /// Of an aggregation that always has a winner.
    fn exact(aggregated: Aggregated, clear: Option<Vec<u8>>, core_seconds: Option<f64>) -> Self {
        let clear = clear.unwrap_or_else(|| aggregated.winners.clone());
        Self { labels: aggregated.winners.iter().copied().map(Some).collect(), clear, aggregated, core_seconds }
    }
}

/// How a row's answers come about, with the keys for it.
enum Way {
    Plurality,
    Clear,
    Encrypted(Box<Encrypted>),
    Paper,
}

impl Way {
    fn open(
        context: &Context<'_>,
        keys: &Keys,
        row: &RowConfig,
        votes: &Votes,
        queries: usize,
    ) -> Result<Self, ExperimentError> {
        let circuit = match (row.aggregation, row.circuit) {
            (AggregationKind::NonPrivate, _) => return Ok(Self::Plurality),
            (AggregationKind::Trusted, _) => return Ok(Self::Clear),
            (AggregationKind::Encrypted, CircuitKind::Paper) => {
                keys.paper(context)?;
                return Ok(Self::Paper);
            }
            (AggregationKind::Encrypted, CircuitKind::Tournament) => Circuit::Tournament,
            (AggregationKind::Encrypted, CircuitKind::AllPairs) => Circuit::AllPairs,
        };
        let shape = votes.shape().with_queries(queries).map_err(VotesError::from)?;
        let range = VoteRange::new(shape.teachers(), noise_bound(context, shape)?);
        // A round belongs to one run and row: its label says which.
        let label = format!("{}\n{}", context.config.to_toml(), row.name);
        let encrypted = keys.encrypted(context, votes.shape().classes(), range)?;
        Ok(Self::Encrypted(Box::new(
            encrypted.with_circuit(circuit).map_err(AggregationError::from)?.with_label(label.as_bytes()),
        )))
    }
}

/// The teachers that add noise, and the key of it where it was charged.
struct NoisyTeachers {
    noisy: usize,
    key: Option<NoiseKey>,
}

fn release(
    context: &Context<'_>,
    keys: &Keys,
    row: &RowConfig,
    votes: &Votes,
    queries: &[usize],
    noisy: &NoisyTeachers,
    way: Way,
) -> Result<Release, ExperimentError> {
    let title = format!("aggregate {}", row.name);
    context.progress.begin(&title, "queries", queries.len() as u64, 0);
    let on_query = |_: usize, _: Duration| context.progress.advance(1, "");
    let released = match way {
        Way::Plurality => {
            let winners: Vec<u8> = queries.iter().map(|&image| votes.plurality(image)).collect();
            Release::exact(Aggregated { winners, ..Aggregated::default() }, None, None)
        }
        Way::Clear => {
            let noisy_votes = noisy_votes(context, votes, queries, noisy)?;
            Release::exact(ClearText.aggregate(&noisy_votes, &on_query)?, None, None)
        }
        Way::Paper => {
            let noisy_votes = noisy_votes(context, votes, queries, noisy)?;
            let clear = ClearText.aggregate(&noisy_votes, &|_, _| {})?.winners;
            return paper_release(context, keys, &noisy_votes, clear, &on_query);
        }
        Way::Encrypted(encrypted) => {
            let noisy_votes = noisy_votes(context, votes, queries, noisy)?;
            let clear = ClearText.aggregate(&noisy_votes, &|_, _| {})?.winners;
            let before = processor_time();
            let released = encrypted.aggregate(&noisy_votes, &on_query)?;
            Release::exact(released, Some(clear), seconds_since(before))
        }
    };
    context.progress.end(&format!("{}: {} labels", row.name, released.labels.len()));
    Ok(released)
}

/// The paper's circuit on counts that are summed in the clear: only the argmax is on ciphertexts.
fn paper_release(
    context: &Context<'_>,
    keys: &Keys,
    votes: &NoisyVotes,
    clear: Vec<u8>,
    on_query: &(dyn Fn(usize, Duration) + Sync),
) -> Result<Release, ExperimentError> {
    let (paper, key_generation) = keys.paper(context)?;
    let (start, before) = (Instant::now(), processor_time());
    let answers = paper.aggregate(votes, thread_count(context), on_query)?;
    let aggregated = Aggregated {
        query_times: answers.iter().map(|answer| answer.time).collect(),
        key_generation: *key_generation,
        argmax: start.elapsed(),
        ..Aggregated::default()
    };
    let core_seconds = seconds_since(before);
    let label = |answer: &PaperAnswer| answer.winner().and_then(|winner| u8::try_from(winner).ok());
    let labels: Vec<Option<u8>> = answers.iter().map(label).collect();
    context.progress.end(&format!("{} labels of {} queries", labels.iter().flatten().count(), labels.len()));
    Ok(Release { labels, clear, aggregated, core_seconds })
}

fn seconds_since(before: Option<Duration>) -> Option<f64> {
    Some((processor_time()? - before?).as_secs_f64())
}

/// One-hot votes with each noisy teacher's own shares. In a simulation a teacher's shares are the same in every row.
fn noisy_votes(
    context: &Context<'_>,
    votes: &Votes,
    queries: &[usize],
    NoisyTeachers { noisy, key }: &NoisyTeachers,
) -> Result<NoisyVotes, ExperimentError> {
    let shape = votes.shape().with_queries(queries.len()).map_err(VotesError::from)?;
    let share = privacy_noise(context)?.share_of(shape.teachers())?;
    let bound = noise_bound(context, shape)?;
    let honest = honest_teachers(context, shape.teachers(), *noisy);

    let mut values = Vec::with_capacity(shape.teachers() * shape.counts());
    for (teacher, honest) in honest.into_iter().enumerate() {
        let labels: Vec<u8> = queries.iter().map(|&image| votes.label(teacher, image)).collect();
        let randomness = match (simulation_seed(context, "noise", teacher as u64), key) {
            (Some(seed), _) => Randomness::simulation(seed),
            (None, Some(key)) => key.of_teacher(teacher),
            (None, None) => Randomness::OperatingSystem,
        };
        let noise = honest.then_some((&share, &randomness));
        values.extend_from_slice(&teacher_values(shape, &labels, noise).map_err(MechanismError::from)?);
    }
    NoisyVotes::new(shape, bound, values).map_err(|error| ExperimentError::Mismatch(error.to_string()))
}

/// Returns the privacy noise that the config asks for.
fn privacy_noise(context: &Context<'_>) -> Result<PrivacyNoise, ExperimentError> {
    let mechanism = MechanismKind::DiscreteLaplace.with_scale(context.config.noise.gamma)?;
    PrivacyNoise::new(mechanism).map_err(|error| match error {
        PrivacyNoiseError::Mechanism(error) => error.into(),
        error @ PrivacyNoiseError::Unsupported { .. } => ExperimentError::Mismatch(error.to_string()),
    })
}

/// Returns a bound that the noise of any class of any query exceeds with a probability of 2^-64.
fn noise_bound(context: &Context<'_>, shape: VoteShape) -> Result<u64, ExperimentError> {
    Ok(privacy_noise(context)?.bound(shape)?)
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

fn share_right(labels: &[Option<u8>], queries: &[usize], images: &Images) -> Option<f64> {
    let right = labels.iter().zip(queries).filter(|(label, image)| **label == Some(images.pool.label(**image))).count();
    let answered = labels.iter().flatten().count();
    (answered > 0).then(|| right as f64 / answered as f64)
}
