//! The cost of proofs that messages are well formed: rounds of 250 teachers and ten classes, one thread.
//!
//! ```console
//! $ RAYON_NUM_THREADS=1 cargo run --release -p speed-aggregation --features proofs --example proof-cost -- 100
//! ```
//!
//! The argument is the number of queries. Prints a table: for each kind of noise the range of a value, the number and the
//! bits of the proofs of each mask, bytes, and processor seconds.
#![expect(clippy::print_stdout, reason = "a program that reports")]

use std::error::Error;
use std::num::NonZeroUsize;

use speed_aggregation::cost::processor_time;
use speed_aggregation::proofs::ProofKey;
use speed_aggregation::{Encrypted, Parameters, PrivacyNoise, PublicKey, Round, RoundSpec, Teacher};
use speed_core::{Randomness, VoteShape};

const KEYS: Randomness = Randomness::simulation([1; 32]);
const TEACHERS: usize = 250;
const CLASSES: usize = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let queries: usize = std::env::args().nth(1).ok_or("usage: proof-cost QUERIES")?.parse()?;
    let keys = Encrypted::new(&Parameters::TOURNAMENT_128, KEYS, b"proof-cost", NonZeroUsize::MIN)?;
    let public = keys.public_key();
    println!(
        "| noise | values | proofs of a mask | bytes of the message | of its proofs | of the proof key | seconds for the key \
         | for the proofs | for verification |\n|---|---|---|--:|--:|--:|--:|--:|--:|"
    );
    let round = |noise: PrivacyNoise| {
        let shape = VoteShape::new(TEACHERS, queries, CLASSES)?;
        let spec = RoundSpec::new(b"proof-cost", shape, noise.bound(shape)?);
        Ok::<_, Box<dyn Error>>(Round::new(RoundSpec { mechanism: Some(noise.mechanism()), ..spec })?)
    };
    let gamma = PrivacyNoise::named("discrete-laplace", 0.1)?;
    report("discrete Laplace, gamma 0.1", public, &round(gamma)?)?;
    for coins in [2, 4, 6] {
        let noise = PrivacyNoise::of_coins(coins, TEACHERS)?;
        report(&format!("binomial, {coins} coins"), public, &round(noise)?)?;
    }
    Ok(())
}

/// Proves and verifies a message of a round, and prints a row of the table.
fn report(name: &str, public: &PublicKey, round: &Round) -> Result<(), Box<dyn Error>> {
    let range = round.proof_range();
    let width = range.most() - range.least() + 1;
    let values: Vec<i64> = (0..round.values() as i64).map(|value| range.least() + value % width).collect();
    let (key, key_seconds) = timed(|| ProofKey::generate(public.parameters(), round, &KEYS));
    let key = key?;
    let (answer, proof_seconds) = timed(|| Teacher::new(0).answer_with_proof(public, round, &values, &key, &KEYS));
    let (message, proofs) = answer?;
    let (outcome, verification_seconds) = timed(|| key.verify(public, round, &message, &proofs));
    outcome?;
    let seconds = |spent: Option<f64>| spent.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.2}"));
    println!(
        "| {name} | {} to {} | {} of {} bits | {} | {} | {} | {} | {} | {} |",
        range.least(),
        range.most(),
        range.proofs(),
        range.bits(),
        message.to_bytes().len(),
        proofs.to_bytes()?.len(),
        key.to_bytes().len(),
        seconds(key_seconds),
        seconds(proof_seconds),
        seconds(verification_seconds)
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
