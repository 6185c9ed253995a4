//! Measures saved reference teachers of MNIST on its 10000 test images; `scripts/reference-teachers` makes a table from
//! its output.
//!
//! Prints a line of CSV per teacher: number, accuracy on test images, accuracy on its own images.
//!
//! ```console
//! $ cargo run --release -p speed-teacher --example saved -- FOLDER-OF-MNIST results/mnist-paper/RUN/stages/teachers/teacher-0000.bin ...
//! ```
#![expect(clippy::print_stdout, reason = "the program prints a table")]

use std::error::Error;
use std::path::Path;

use speed_data::mnist;
use speed_teacher::{Architecture, Device, Teacher};

#[global_allocator]
static ALLOCATOR: speed_nn::allocator::Allocator = speed_nn::allocator::ALLOCATOR;

fn main() -> Result<(), Box<dyn Error>> {
    speed_nn::allocator::keep_freed_memory();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (folder, files) = arguments.split_first().ok_or("usage: saved FOLDER-OF-MNIST TEACHER.bin ...")?;
    let test = mnist::load(folder.as_ref())?.test;
    for file in files.iter().map(Path::new) {
        let bytes = std::fs::read(file)?;
        let teacher =
            Teacher::from_bytes(Architecture::REFERENCE, test.shape(), test.classes(), &Device::flex(), &bytes)?;
        let guesses = teacher.predict(&test)?;
        let right = guesses.iter().zip(test.labels()).filter(|(guess, label)| guess == label).count();
        let metrics: serde_json::Value = serde_json::from_slice(&std::fs::read(file.with_extension("json"))?)?;
        let number = file.file_stem().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix("teacher-"));
        let number: usize = number.ok_or("expected files named teacher-NUMBER.bin")?.parse()?;
        let accuracy = right as f64 / test.len() as f64;
        println!("{number},{accuracy:.4},{}", metrics["train_accuracy"]);
    }
    Ok(())
}
