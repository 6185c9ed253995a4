//! The cost of an argmax under encryption: 250 teachers, votes and keys from fixed seeds.
//!
//! ```console
//! $ cargo run --release -p speed-aggregation --example cost -- tournament --queries 8 --threads 2
//! $ cargo run --release -p speed-aggregation --example cost -- tournament --classes 100 --noise-bound 12000
//! $ cargo run --release -p speed-aggregation --example cost -- keys --threads 2
//! $ cargo run --release -p speed-aggregation --example cost -- sizes
//! ```
//!
//! Peak memory is that of the process: all roles and key generation. `scripts/bench-argmax` compares.
#![expect(clippy::print_stdout, reason = "a program that reports")]

use std::error::Error;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use rand::RngExt;
use serde_json::{Value, json};
use speed_aggregation::cost::{Operations, processor_time};
use speed_aggregation::encoding::{Encoding, VoteRange};
use speed_aggregation::error::AggregationError;
use speed_aggregation::paper::PaperArgmax;
use speed_aggregation::{Aggregator, ClearText, Encrypted, NoisyVotes, Round, RoundSpec, Teacher, generate_keys};
use speed_core::random::Streams;
use speed_core::{Circuit, Randomness, VoteShape};

const TEACHERS: usize = 250;
/// Classes of the paper's circuit.
const CLASSES: usize = 10;
const NOISE_BOUND: u64 = 1000;
const KEYS: Randomness = Randomness::simulation([1; 32]);

/// Measures an encrypted argmax.
#[derive(Parser)]
struct CostOptions {
    /// The measurement.
    #[arg(default_value = "tournament")]
    what: What,
    /// Queries of the round. The server works on groups of eight.
    #[arg(long, default_value = "8")]
    queries: NonZeroUsize,
    /// Threads of the argmax.
    #[arg(long, default_value = "1")]
    threads: NonZeroUsize,
    /// Classes, except of the paper's circuit, which has ten.
    #[arg(long, default_value = "10", value_parser = clap::value_parser!(u8).range(2..=128))]
    classes: u8,
    /// Bound on the privacy noise of a class, except of the paper's circuit. It decides the parameter set.
    #[arg(long, default_value_t = NOISE_BOUND)]
    noise_bound: u64,
    /// One line of JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum What {
    /// The tournament, in a complete round.
    Tournament,
    /// All pairs, in a complete round.
    AllPairs,
    /// The paper's circuit with its parameters: the argmax only.
    Paper,
    /// Bytes of keys and messages.
    Sizes,
    /// The time of key generation, and of the expansion by the server.
    Keys,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = CostOptions::parse();
    let figures = match options.what {
        What::Tournament => round(Circuit::Tournament, &options)?,
        What::AllPairs => round(Circuit::AllPairs, &options)?,
        What::Paper => paper(&options)?,
        What::Sizes => sizes(&options)?,
        What::Keys => keys(&options)?,
    };
    println!("{}", if options.json { figures.to_string() } else { format!("{figures:#}") });
    Ok(())
}

/// Runs a round of the protocol: the cost of the argmax by kind of operation, and that of the other steps.
fn round(circuit: Circuit, options: &CostOptions) -> Result<Value, Box<dyn Error>> {
    let (classes, range) = (options.classes.into(), VoteRange::new(TEACHERS, options.noise_bound));
    let parameters = Encoding::choose_parameters(classes, range)?;
    let encrypted = Encrypted::new(&parameters, KEYS, b"cost", options.threads)?.with_circuit(circuit)?;
    let votes = votes(options.queries.get(), classes, options.noise_bound)?;
    let clear = ClearText.aggregate(&votes, &|_, _| {})?;
    let result = encrypted.aggregate(&votes, &|_, _| {})?;
    let agree = result.outcomes.iter().zip(&clear.outcomes).filter(|(a, b)| a == b).count();
    let guarantee = Encoding::guarantee(&parameters, circuit, classes, range)?;
    let queries = options.queries.get() as f64;
    let operations = |operations: Operations| {
        let count = operations.count as f64;
        json!({ "a_query": count / queries, "milliseconds_each": 1e3 * operations.time.as_secs_f64() / count.max(1.0) })
    };
    Ok(json!({
        "parameters": parameters.name(),
        "classes": classes,
        "queries": options.queries,
        "threads": options.threads,
        "agree": agree,
        "failure_log2": guarantee.query_log2,
        "leakage_log2": guarantee.distance_log2,
        "core_seconds_per_query": result.argmax_processor.map(|time| time.as_secs_f64() / queries),
        "wall_seconds_per_query": result.argmax.as_secs_f64() / queries,
        "work": {
            "coarse bootstraps": operations(result.work.coarse_bootstraps),
            "fine bootstraps": operations(result.work.fine_bootstraps),
            "key switches": operations(result.work.key_switches),
            "packings": operations(result.work.packings),
        },
        "seconds": {
            "keys": result.key_generation.as_secs_f64(),
            "all encryptions": result.encryption.as_secs_f64(),
            "sum": result.sum.as_secs_f64(),
            "argmax": result.argmax.as_secs_f64(),
            "opening": result.opening.as_secs_f64(),
        },
        "evaluation_key_memory_bytes": encrypted.evaluation_key().size(),
        "peak_memory_bytes": peak_memory_bytes()?,
    }))
}

/// Runs the paper's circuit on the sums of the same votes.
fn paper(options: &CostOptions) -> Result<Value, Box<dyn Error>> {
    let paper = PaperArgmax::new(KEYS, TEACHERS)?;
    let votes = votes(options.queries.get(), CLASSES, NOISE_BOUND)?;
    let clear = ClearText.aggregate(&votes, &|_, _| {})?;
    let start = (Instant::now(), processor_time());
    let (queries, answers): (Vec<usize>, _) = ((0..options.queries.get()).collect(), Mutex::new(Vec::new()));
    paper.aggregate_queries::<AggregationError>(&votes, &queries, options.threads, &|query, answer| {
        answers.lock().unwrap_or_else(PoisonError::into_inner).push((query, answer));
        Ok(())
    })?;
    let (wall, core) = (start.0.elapsed(), processor_time().zip(start.1).map(|(end, start)| end - start));
    let (clear, answers) = (clear.labels(), answers.into_inner().unwrap_or_else(PoisonError::into_inner));
    let agree = answers.iter().filter(|(query, answer)| answer.winner() == clear[*query].map(usize::from));
    let queries = options.queries.get() as f64;
    let bootstraps: usize = answers.iter().map(|(_, answer)| answer.bootstraps).sum();
    let time: Duration = answers.iter().map(|(_, answer)| answer.time).sum();
    Ok(json!({
        "parameters": "the paper's, 110 bits",
        "queries": options.queries,
        "threads": options.threads,
        "agree": agree.count(),
        "core_seconds_per_query": core.map(|time| time.as_secs_f64() / queries),
        "wall_seconds_per_query": wall.as_secs_f64() / queries,
        "work": {
            "coarse bootstraps": {
                "a_query": bootstraps as f64 / queries,
                "milliseconds_each": 1e3 * time.as_secs_f64() / bootstraps as f64,
            },
        },
        "evaluation_key_memory_bytes": paper.bootstrapping_key_size(),
        "peak_memory_bytes": peak_memory_bytes()?,
        // One ciphertext per count; nothing is packed.
        "message_bytes": { "1": CLASSES * PaperArgmax::ciphertext_size(), "100": 100 * CLASSES * PaperArgmax::ciphertext_size() },
    }))
}

/// Generates keys, and expands them as the server does.
fn keys(options: &CostOptions) -> Result<Value, Box<dyn Error>> {
    let range = VoteRange::new(TEACHERS, options.noise_bound);
    let parameters = Encoding::choose_parameters(options.classes.into(), range)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.threads.get()).build()?;
    let start = (Instant::now(), processor_time());
    let keys = pool.install(|| generate_keys(&parameters, &KEYS))?;
    let (wall, core) = (start.0.elapsed(), processor_time().zip(start.1).map(|(end, start)| end - start));
    let peak_memory = peak_memory_bytes()?;
    let start = Instant::now();
    let expanded = pool.install(|| keys.evaluation.expand());
    Ok(json!({
        "parameters": parameters.name(),
        "threads": options.threads,
        "generation_seconds": wall.as_secs_f64(),
        "generation_core_seconds": core.map(|time| time.as_secs_f64()),
        "generation_peak_memory_bytes": peak_memory,
        "expansion_seconds": start.elapsed().as_secs_f64(),
        "evaluation_key_memory_bytes": expanded.size(),
    }))
}

/// Returns the bytes of keys and messages on the wire.
fn sizes(options: &CostOptions) -> Result<Value, Box<dyn Error>> {
    let (classes, bound) = (options.classes.into(), options.noise_bound);
    let keys = generate_keys(&Encoding::choose_parameters(classes, VoteRange::new(TEACHERS, bound))?, &KEYS)?;
    let message = |queries: usize| -> Result<usize, Box<dyn Error>> {
        let round = Round::new(RoundSpec::new(b"cost", VoteShape::new(TEACHERS, queries, classes)?, bound))?;
        let values = vec![0; queries * classes];
        Ok(Teacher::new(0).answer(&keys.public, &round, &values, &KEYS)?.to_bytes().len())
    };
    Ok(json!({
        "message_bytes": { "1": message(1)?, "100": message(100)? },
        "public_key_bytes": keys.public.to_bytes().len(),
        "evaluation_key_bytes": keys.evaluation.to_bytes().len(),
    }))
}

/// Returns votes in which seven teachers of ten vote for the same class and the others at random, so that every circuit
/// finds the winner. The time does not depend on the votes.
fn votes(queries: usize, classes: usize, noise_bound: u64) -> Result<NoisyVotes, Box<dyn Error>> {
    let mut rng = Streams::new(1).stream("cost", 0);
    let mut values = vec![0; TEACHERS * queries * classes];
    for (answer, vote) in values.chunks_exact_mut(classes).enumerate() {
        let right = answer % queries % classes;
        let class = if rng.random_bool(0.7) { right } else { rng.random_range(0..classes) };
        vote[class] = 1;
    }
    Ok(NoisyVotes::new(VoteShape::new(TEACHERS, queries, classes)?, noise_bound, values)?)
}

/// Returns the peak memory of this process, in bytes (Linux).
fn peak_memory_bytes() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM in /proc/self/status")?;
    Ok(1024 * line.trim().trim_end_matches(" kB").parse::<u64>()?)
}
