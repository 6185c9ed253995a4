//! Steps of the student to be timed, with the paper's networks on images at random; `scripts/peers/run` compares.
//!
//! For every line on standard input, a number of steps, it runs about so many (whole epochs of ten) and answers with a
//! line of JSON. A step is what a training does: batches, noise, both networks, averages of parameters.
//!
//! ```console
//! $ echo 100 | cargo run --release -p speed-student --example student-step
//! ```
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::time::Instant;

use rand::RngExt;
use speed_data::{ImageShape, Split};
use speed_random::Streams;
use speed_student::{Device, EpochReport, Images, Lesson, ReportError, StudentConfig, StudentError, StudentMethod};

#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

const EPOCH: usize = 10;

/// The end of a training from within.
#[derive(Debug, thiserror::Error)]
#[error("no more input")]
struct End;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let streams = Streams::new(1);
    let mut stream = streams.stream("images", 0);
    let mut split = |images: usize| {
        let shape = ImageShape { channels: 1, height: 28, width: 28 };
        let pixels = (0..images * shape.pixels()).map(|_| stream.random()).collect();
        Split::new(shape, 10, pixels, (0..images).map(|i| (i % 10) as u8).collect())
    };
    let config = StudentConfig { epochs: u32::MAX, evaluate_every: u32::MAX, ..StudentConfig::default() };
    let (pool, test) = (split(EPOCH * config.batch)?, split(1)?);
    let labelled: Vec<(usize, u8)> = (0..100).map(|i| (i, (i % 10) as u8)).collect();

    // The first epoch warms up; what follows is counted from the answer to a line.
    let (mut left, mut asked, mut start) = (EPOCH, 0, None::<Instant>);
    let mut lines = std::io::stdin().lines();
    let mut on_epoch = |_: &EpochReport<'_>| -> Result<(), ReportError> {
        left = left.saturating_sub(EPOCH);
        if left > 0 {
            return Ok(());
        }
        match start {
            Some(start) => {
                let milliseconds = 1e3 * start.elapsed().as_secs_f64() / asked as f64;
                println!(r#"{{"steps": {asked}, "milliseconds_a_step": {milliseconds:.3}}}"#);
            }
            None => println!(r#"{{"name": "ours, {}"}}"#, speed_nn::matrix::product_unit()),
        }
        let steps: usize = lines.next().ok_or(End)??.trim().parse()?;
        asked = steps.div_ceil(EPOCH).max(1) * EPOCH;
        (left, start) = (asked, Some(Instant::now()));
        Ok(())
    };
    let lesson = Lesson {
        config: &config,
        pool: Images::of(&pool),
        labelled: &labelled,
        test: &test,
        streams: &streams,
        device: &Device::flex(),
    };
    match StudentMethod::GAN.train(&lesson, None, &mut on_epoch) {
        Err(StudentError::Report(error)) if error.is::<End>() => Ok(()),
        other => Ok(other.map(|_| ())?),
    }
}
