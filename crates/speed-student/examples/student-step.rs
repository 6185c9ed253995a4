//! Times the student's steps, with the paper's networks on random images, for the comparison by `scripts/peers/run`.
//!
//! Each line on standard input is a number of steps. The program runs about this number (complete epochs) and answers
//! with a line of JSON. A step includes everything that a training does: batches, noise or dropout, both networks,
//! averages of parameters.
//!
//! - `student-step`: the networks for MNIST, epochs of ten steps
//! - `student-step conv-student`: the convolutional networks for SVHN, epochs of one step
//!
//! ```console
//! $ echo 100 | cargo run --release -p speed-student --example student-step
//! ```
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::time::Instant;

use rand::RngExt;
use speed_core::random::Streams;
use speed_data::{ImageShape, Split};
use speed_student::{Device, EpochReport, Images, Lesson, ReportError, StudentConfig, StudentError, StudentMethod};

#[global_allocator]
static GLOBAL: speed_nn::allocator::Allocator = speed_nn::allocator::ALLOCATOR;

/// A student to be timed. Steps are counted in epochs, so a network with longer steps has shorter epochs.
struct Work {
    method: StudentMethod,
    shape: ImageShape,
    steps_an_epoch: usize,
}

fn student() -> Work {
    Work { method: StudentMethod::GAN, shape: ImageShape { channels: 1, height: 28, width: 28 }, steps_an_epoch: 10 }
}

/// The student of `configs/svhn-paper.toml`.
fn conv_student() -> Work {
    Work {
        method: StudentMethod::CONV_GAN,
        shape: ImageShape { channels: 3, height: 32, width: 32 },
        steps_an_epoch: 1,
    }
}

/// The error that ends a training when there is no more input.
#[derive(Debug, thiserror::Error)]
#[error("no more input")]
struct End;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    speed_nn::allocator::keep_freed_memory();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [] => steps(student()),
        ["conv-student"] => steps(conv_student()),
        _ => Err("usage: student-step [conv-student]".into()),
    }
}

fn steps(work: Work) -> Result<(), Box<dyn std::error::Error>> {
    let Work { method, shape, steps_an_epoch } = work;
    let streams = Streams::new(1);
    let mut stream = streams.stream("images", 0);
    let mut split = |images: usize| {
        let pixels = (0..images * shape.pixels()).map(|_| stream.random()).collect();
        Split::new(shape, 10, pixels, (0..images).map(|i| (i % 10) as u8).collect())
    };
    let config =
        StudentConfig { epochs: u32::MAX, epoch_images: 0, evaluate_every: u32::MAX, ..StudentConfig::default() };
    let (pool, test) = (split(steps_an_epoch * config.gan.batch)?, split(1)?);
    let labelled: Vec<(usize, u8)> = (0..100).map(|i| (i, (i % 10) as u8)).collect();

    // The first epoch is a warm-up; later epochs are counted from the answer to the previous line.
    let (mut left, mut asked, mut start) = (steps_an_epoch, 0, None::<Instant>);
    let mut lines = std::io::stdin().lines();
    let mut on_epoch = |_: &EpochReport<'_>| -> Result<(), ReportError> {
        left = left.saturating_sub(steps_an_epoch);
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
        asked = steps.div_ceil(steps_an_epoch).max(1) * steps_an_epoch;
        (left, start) = (asked, Some(Instant::now()));
        Ok(())
    };
    let lesson = Lesson {
        config: &config,
        pool: Images::new(&pool),
        labelled: &labelled,
        doubts: None,
        test: Some(&test),
        streams: &streams,
        device: &Device::flex(),
    };
    match method.train(&lesson, None, &mut on_epoch) {
        Err(StudentError::Report(error)) if error.is::<End>() => Ok(()),
        other => Ok(other.map(|_| ())?),
    }
}
