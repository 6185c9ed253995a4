//! The cost of proofs that messages are well formed: a round of 250 teachers and ten classes, one thread.
//!
//! ```console
//! $ RAYON_NUM_THREADS=1 cargo run --release -p speed-aggregation --features proofs --example proof-cost -- 100
//! ```
//!
//! The argument is the number of queries. Prints one line of JSON: processor seconds, and bytes of the proof.
#![expect(clippy::print_stdout, reason = "a program that reports")]

use std::error::Error;
use std::num::NonZeroUsize;

use serde_json::json;
use speed_aggregation::cost::processor_time;
use speed_aggregation::proofs::ProofKey;
use speed_aggregation::{Encrypted, Parameters, Round, RoundSpec, Teacher};
use speed_core::{Randomness, VoteShape};

const KEYS: Randomness = Randomness::simulation([1; 32]);

fn main() -> Result<(), Box<dyn Error>> {
    let queries: usize = std::env::args().nth(1).ok_or("usage: proof-cost QUERIES")?.parse()?;
    let keys = Encrypted::new(&Parameters::TOURNAMENT_128, KEYS, b"proof-cost", NonZeroUsize::MIN)?;
    let public = keys.public_key();
    let round = Round::new(RoundSpec::new(b"proof-cost", VoteShape::new(250, queries, 10)?, 900))?;
    let values: Vec<i64> = (0..10 * queries as i64).map(|value| value % 41 - 20).collect();

    let (key, key_seconds) = timed(|| ProofKey::generate(public.parameters(), &round, &KEYS));
    let key = key?;
    let (answer, proof_seconds) = timed(|| Teacher::new(0).answer_with_proof(public, &round, &values, &key, &KEYS));
    let (message, proof) = answer?;
    let (outcome, verification_seconds) = timed(|| key.verify(public, &round, &message, &proof));
    outcome?;
    let bytes = proof.to_bytes()?.len();
    println!(
        "{}",
        json!({
            "queries": queries, "key_seconds": key_seconds, "proof_seconds": proof_seconds,
            "verification_seconds": verification_seconds, "proof_bytes": bytes,
        })
    );
    Ok(())
}

/// Returns the result of `work` and its processor seconds, if the system reports them.
fn timed<T>(work: impl FnOnce() -> T) -> (T, Option<f64>) {
    let start = processor_time();
    let outcome = work();
    let spent = start.zip(processor_time()).map(|(start, end)| (end - start).as_secs_f64());
    (outcome, spent)
}
