//! Steps of several students together to be timed, with the paper's networks on images at random.
//!
//! For every number of students given it trains so many on the device, an epoch of ten steps at a time, and prints a line of
//! JSON: the fastest epoch in milliseconds a step of all of them, and the same a student. The first epoch, in which a GPU's
//! kernels are compiled, is printed by itself.
//!
//! ```console
//! $ cargo run --release -p speed-batched --features wgpu --example batched-step -- wgpu 1 4 10
//! $ cargo run --release -p speed-batched --example batched-step -- flex 1 4 10
//! ```
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::time::Instant;

use rand::RngExt;
use speed_batched::{BatchError, DeviceKind, EpochReport, Student, open, train_students};
use speed_data::{ImageShape, Split};
use speed_random::Streams;
use speed_student::StudentConfig;

#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Steps of an epoch.
const STEPS: usize = 10;

/// Epochs after the first: at least two, and more for as long as this.
const SECONDS: f64 = 20.0;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let kind = match arguments.next().as_deref() {
        Some("flex") => DeviceKind::Flex,
        Some("wgpu") => DeviceKind::Wgpu,
        _ => return Err("expected flex or wgpu, and numbers of students".into()),
    };
    let accelerator = open(kind)?;
    println!(r#"{{"device": "{}"}}"#, accelerator.name);

    let mut stream = Streams::new(1).stream("images", 0);
    let mut split = |images: usize| {
        let shape = ImageShape { channels: 1, height: 28, width: 28 };
        let pixels = (0..images * shape.pixels()).map(|_| stream.random()).collect();
        Split::new(shape, 10, pixels, (0..images).map(|i| (i % 10) as u8).collect())
    };
    let config = StudentConfig { epochs: u32::MAX, evaluate_every: u32::MAX, ..StudentConfig::default() };
    let (pool, test) = (split(STEPS * config.batch)?, split(1)?);
    let labelled: Vec<(usize, u8)> = (0..100).map(|i| (i, (i % 10) as u8)).collect();

    for count in arguments {
        let count: usize = count.parse()?;
        let student = |index: u64| Student { labelled: &labelled, streams: Streams::new(index), resume: None };
        let students = (0..count as u64).map(student).collect();
        let (mut seconds, start) = (Vec::new(), Instant::now());
        let mut on_epoch = |report: &EpochReport<'_>| {
            seconds.push(report.metrics()[0].seconds);
            if seconds.len() > 2 && start.elapsed().as_secs_f64() > SECONDS { Err(()) } else { Ok(()) }
        };
        match train_students(&config, &pool, students, &test, &accelerator.device, &mut on_epoch) {
            Err(BatchError::Report(())) => {}
            other => return Err(format!("the training ended: {other:?}").into()),
        }
        let a_step = |seconds: f64| 1e3 * seconds / STEPS as f64;
        let best = seconds[1..].iter().copied().fold(f64::INFINITY, f64::min);
        println!(
            r#"{{"students": {count}, "epochs": {}, "first_epoch_seconds": {:.2}, "milliseconds_a_step": {:.2}, "milliseconds_a_step_a_student": {:.2}}}"#,
            seconds.len(),
            seconds[0],
            a_step(best),
            a_step(best) / count as f64
        );
    }
    Ok(())
}
