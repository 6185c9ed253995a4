//! Work of teachers for timing; `scripts/peers/run` compares implementations.
//!
//! Every line on standard input is a number N. The program answers with a line of JSON after doing N units of work:
//!
//! - `teacher-step small|reference|deeper [BATCH]`: N steps of one teacher, from its initial weights, on random images
//! - `teacher-step ensemble FOLDER`: N teachers of `configs/mnist.toml` on two threads, on MNIST in FOLDER
//!
//! ```console
//! $ echo 100 | cargo run --release -p speed-teacher --example teacher-step -- small
//! ```
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::convert::Infallible;
use std::error::Error;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rand::RngExt;
use speed_core::random::Streams;
use speed_data::{ImageShape, Split, mnist, partition};
use speed_nn::matrix::product_unit;
use speed_teacher::Device;
use speed_teacher::{
    Architecture, EnsembleTraining, OptimizerKind, Schedule, TeacherConfig, TrainedTeacher, train_ensemble,
    train_teacher,
};

#[global_allocator]
static ALLOCATOR: speed_nn::allocator::Allocator = speed_nn::allocator::ALLOCATOR;

/// The images of one batch, so that measuring the accuracy at the end adds little.
const DIGITS: (ImageShape, usize) = (ImageShape { channels: 1, height: 28, width: 28 }, 128);
/// Far fewer images than a batch, because a measurement of the deeper network is hardly longer than a step.
const PHOTOGRAPHS: (ImageShape, usize) = (ImageShape { channels: 3, height: 32, width: 32 }, 4);

fn main() -> Result<(), Box<dyn Error>> {
    speed_nn::allocator::keep_freed_memory();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["small"] => steps(&TeacherConfig::SMALL, DIGITS, 128),
        ["reference"] => steps(&reference(), DIGITS, 128),
        ["deeper"] => steps(&deeper(), PHOTOGRAPHS, 64),
        ["small", batch] => steps(&TeacherConfig::SMALL, DIGITS, batch.parse()?),
        ["reference", batch] => steps(&reference(), DIGITS, batch.parse()?),
        ["deeper", batch] => steps(&deeper(), PHOTOGRAPHS, batch.parse()?),
        ["ensemble", folder] => ensemble(folder.as_ref()),
        _ => Err("usage: teacher-step small|reference|deeper [BATCH] | teacher-step ensemble FOLDER".into()),
    }
}

/// Returns the settings of `configs/mnist-paper.toml` without the average of parameters.
fn reference() -> TeacherConfig {
    TeacherConfig {
        architecture: Architecture::REFERENCE,
        optimizer: OptimizerKind::Sgd,
        learning_rate: 0.01,
        schedule: Schedule::Constant,
        shift: 0,
        ..TeacherConfig::SMALL
    }
}

/// Returns the settings of `configs/svhn-paper.toml` without the average of parameters.
fn deeper() -> TeacherConfig {
    TeacherConfig { architecture: Architecture::DEEPER, learning_rate: 0.08, ..reference() }
}

fn steps(config: &TeacherConfig, (shape, images): (ImageShape, usize), batch: usize) -> Result<(), Box<dyn Error>> {
    let streams = Streams::new(1);
    let mut stream = streams.stream("images", 0);
    let pixels = (0..images * shape.pixels()).map(|_| stream.random()).collect();
    let data = Split::new(shape, 10, pixels, (0..images).map(|i| (i % 10) as u8).collect())?;
    answer(product_unit(), |steps| {
        let config = TeacherConfig { batch, steps, shift: 0, ..config.clone() };
        let trained = train_teacher(0, &config, &data, 0..images, &streams, &Device::flex(), &AtomicBool::new(false))?;
        Ok(format!(r#""loss": {:.4}"#, trained.metrics.final_loss))
    })
}

fn ensemble(folder: &Path) -> Result<(), Box<dyn Error>> {
    let data = mnist::load(folder)?.train;
    let partitions = partition::blocks(data.len(), 250)?;
    answer(product_unit(), |teachers| {
        let accuracies = Mutex::new(Vec::new());
        let keep = |one: TrainedTeacher| -> Result<(), Infallible> {
            let mut accuracies = accuracies.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            accuracies.push(one.metrics.train_accuracy);
            Ok(())
        };
        let todo: Vec<usize> = (0..teachers).collect();
        let training = EnsembleTraining {
            config: &TeacherConfig::SMALL,
            data: &data,
            partitions: &partitions,
            streams: &Streams::new(1),
            device: &Device::flex(),
        };
        train_ensemble(&training, &todo, 2, &keep)?;
        let sum: f64 = accuracies.into_inner()?.iter().sum();
        Ok(format!(r#""train_accuracy": {:.4}"#, sum / teachers as f64))
    })
}

/// Does a little work to warm up, reports the program and the unit that multiplies its matrices, then does the work of
/// every line.
fn answer(
    products: impl std::fmt::Display,
    work: impl Fn(usize) -> Result<String, Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    work(2)?;
    println!(r#"{{"name": "ours, {products}"}}"#);
    for line in std::io::stdin().lines() {
        let amount: usize = line?.trim().parse()?;
        let start = Instant::now();
        let outcome = work(amount)?;
        println!(r#"{{"amount": {amount}, "seconds": {:.6}, {outcome}}}"#, start.elapsed().as_secs_f64());
    }
    Ok(())
}
