//! What an encrypted round costs: `cargo run --release -p speed-aggregation --example cost -- [QUERIES] [THREADS]`.
//!
//! 250 teachers, ten classes, keys and votes from fixed seeds. Peak memory is of the whole process: all roles.
#![expect(clippy::print_stdout, reason = "a program that reports")]

use std::error::Error;
use std::num::NonZeroUsize;

use rand::RngExt;
use speed_aggregation::{
    Aggregator, Circuit, ClearText, Encoding, Encrypted, KeySource, NoisyVotes, Parameters, VoteRange,
};
use speed_random::Streams;

const TEACHERS: usize = 250;
const CLASSES: usize = 10;
const NOISE_BOUND: u64 = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<NonZeroUsize>());
    let queries = arguments.next().transpose()?.map_or(10, NonZeroUsize::get);
    let threads = arguments.next().transpose()?.unwrap_or(NonZeroUsize::MIN);
    let parameters = Parameters::TOURNAMENT_128;

    let encrypted = Encrypted::new(&parameters, KeySource::Simulation([1; 32]), b"cost", threads)?;
    println!("keys: {:.1?} on {threads} threads", encrypted.key_generation());
    println!("public key {} B, evaluation key {} B", encrypted.public_key().size(), encrypted.evaluation_key().size());

    let mut rng = Streams::new(1).stream("cost", 0);
    let mut values = vec![0; TEACHERS * queries * CLASSES];
    for vote in values.chunks_exact_mut(CLASSES) {
        vote[rng.random_range(0..CLASSES)] = 1;
    }
    let votes = NoisyVotes::new(TEACHERS, queries, CLASSES, NOISE_BOUND, values)?;
    let clear = ClearText.aggregate(&votes, &|_, _| {})?;
    for circuit in [Circuit::Tournament, Circuit::AllPairs] {
        let before = processor_seconds()?;
        let result = encrypted.clone().with_circuit(circuit).aggregate(&votes, &|_, _| {})?;
        let agree = result.winners.iter().zip(&clear.winners).filter(|(a, b)| a == b).count();
        let core = (processor_seconds()? - before) / queries as f64;
        let fastest = result.query_times.iter().min().copied().unwrap_or_default();
        println!("{circuit:?}: {agree} of {queries} agree; argmax {:.1?} in all", result.argmax);
        println!("  a query: {core:.2} core-seconds with its share of everything; fastest {fastest:.3?} on its thread");
        println!(
            "  message {} B, answers {} B; all encryptions {:.2?}, sum {:.3?}, opening {:.3?}",
            result.message_bytes, result.answer_bytes, result.encryption, result.sum, result.opening
        );
        let work = result.work;
        for (name, operations) in [
            ("coarse bootstraps", work.coarse_bootstraps),
            ("fine bootstraps", work.fine_bootstraps),
            ("key switches", work.key_switches),
            ("packings", work.packings),
        ] {
            let each = operations.time.checked_div(operations.count as u32).unwrap_or_default();
            println!("  {name}: {} of {each:.2?}, {:.2?} in all", operations.count, operations.time);
        }
        let guarantee = Encoding::guarantee(&parameters, circuit, CLASSES, VoteRange::new(TEACHERS, NOISE_BOUND))?;
        println!("  failure 2^{:.1} a query, leakage 2^{:.1}", guarantee.query_log2, guarantee.distance_log2);
    }
    if let Some(line) = std::fs::read_to_string("/proc/self/status")?.lines().find(|line| line.starts_with("VmHWM")) {
        println!("peak memory {}", line.trim_start_matches("VmHWM:").trim());
    }
    Ok(())
}

/// Processor time of all threads of this process so far, in seconds (Linux).
fn processor_seconds() -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // Fields 14 and 15, counted from 1, in hundredths; the second field may hold spaces but ends with a bracket.
    let fields: Vec<&str> = stat.rsplit_once(')').ok_or("unreadable /proc/self/stat")?.1.split_whitespace().collect();
    let ticks = fields.get(11).zip(fields.get(12)).ok_or("short /proc/self/stat")?;
    Ok((ticks.0.parse::<f64>()? + ticks.1.parse::<f64>()?) / 100.0)
}
