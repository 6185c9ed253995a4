//! Trains one student on MNIST with true labels and prints its metrics: for timing, and to see it learn.
//!
//! `SPEED_DATASETS=folder cargo run --release -p speed-student --example mnist -- [epochs] [seed]`
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::path::PathBuf;

use rand::seq::SliceRandom;
use speed_random::Streams;
use speed_student::{EpochReport, Images, StudentConfig, train};

#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).map(|argument| argument.parse::<u32>());
    let epochs = numbers.next().transpose()?.unwrap_or(3);
    let seed = numbers.next().transpose()?.unwrap_or(1);
    let folder = PathBuf::from(std::env::var_os("SPEED_DATASETS").unwrap_or_else(|| "datasets".into()));
    let test = speed_data::mnist::load(&folder)?.test;
    let (pool, test) = (&test.slice(0..9000), &test.slice(9000..10_000));

    // Ten labels of every class, as the reference intends (errata 18).
    let streams = Streams::new(u64::from(seed));
    let mut order: Vec<usize> = (0..pool.len()).collect();
    order.shuffle(&mut streams.stream("labels", 0));
    let labelled: Vec<(usize, u8)> = (0..10)
        .flat_map(|class| {
            let images = order.iter().filter(move |&&i| pool.label(i) == class).take(10);
            images.map(move |&i| (i, class)).collect::<Vec<_>>()
        })
        .collect();

    let config = StudentConfig { epochs, ..StudentConfig::default() };
    let steps = (pool.len() / config.batch) as f64;
    let mut on_epoch = |report: &EpochReport<'_>| {
        let metrics = report.metrics();
        println!("{:.1} ms a step, {metrics:.4?}", 1e3 * metrics.seconds / steps);
        Ok::<(), std::convert::Infallible>(())
    };
    let outcome = train(&config, Images::of(pool), &labelled, test, &streams, None, &mut on_epoch)?;
    println!("accuracy {} (parameters of the last step: {})", outcome.accuracy, outcome.accuracy_raw);
    Ok(())
}
