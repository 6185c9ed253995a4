//! Measures an encoder: `encoder-speed FILE THREADS COUNT` prints the milliseconds of a picture.
#![expect(clippy::print_stdout, reason = "the result")]

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use speed_nn::onnx::{Encoder, EncoderSettings};
use speed_nn::threads;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, threads, count] = &arguments[..] else { return Err("expected FILE THREADS COUNT".into()) };
    let (threads, count): (usize, usize) = (threads.parse()?, count.parse()?);
    let encoder = Encoder::read(Path::new(file), &EncoderSettings::default())?;
    let pixels = encoder.shape().pixels();
    let pictures: Vec<Vec<u8>> =
        (0..count).map(|picture| (0..pixels).map(|pixel| (pixel * (picture + 3) / 7 % 256) as u8).collect()).collect();
    let start = Instant::now();
    let vectors = threads::map(&pictures, threads, |picture, _| encoder.vector(picture))?;
    let milliseconds = start.elapsed().as_secs_f64() * 1e3;
    println!("{} vectors of {}, {:.2} ms each", vectors.len(), encoder.width(), milliseconds / count as f64);
    Ok(())
}
