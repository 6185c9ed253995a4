//! Trains the paper's student on ten labels per class of built-in digits.
//!
//! An epoch is one pass over the pool of 2000 images.
//!
//! `cargo run --release -p speed-student --example train_student -- [epochs] [seed]`
#![expect(clippy::print_stdout, reason = "an example prints")]

use rand::seq::SliceRandom;
use speed_core::random::Streams;
use speed_data::digits::{self, DigitsConfig};
use speed_student::{Device, EpochReport, Images, Lesson, StudentConfig, StudentMethod};

// The system's allocator would return large blocks to the system after every step and allocate them again.
#[global_allocator]
static GLOBAL: speed_nn::allocator::Allocator = speed_nn::allocator::ALLOCATOR;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    speed_nn::allocator::keep_freed_memory();
    let mut numbers = std::env::args().skip(1).map(|argument| argument.parse::<u32>());
    let epochs = numbers.next().transpose()?.unwrap_or(10);
    let seed = numbers.next().transpose()?.unwrap_or(1);
    let streams = Streams::new(u64::from(seed));

    // There are no teachers: the labelled images of the pool have their true labels.
    let images = digits::generate(DigitsConfig { train: 10, test: 3000 }, &streams.child("digits", 0)).test;
    let (pool, test) = (&images.slice(0..2000), &images.slice(2000..3000));
    let mut order: Vec<usize> = (0..pool.len()).collect();
    order.shuffle(&mut streams.stream("labels", 0));
    let labelled: Vec<(usize, u8)> = (0..10)
        .flat_map(|class| {
            let images = order.iter().filter(move |&&image| pool.label(image) == class).take(10);
            images.map(move |&image| (image, class)).collect::<Vec<_>>()
        })
        .collect();

    let config = StudentConfig { epochs, epoch_images: 0, ..StudentConfig::default() };
    let mut on_epoch = |report: &EpochReport<'_>| {
        let metrics = report.metrics();
        let names = StudentMethod::GAN.measures();
        let measures = names.iter().zip(&metrics.measures).filter_map(|(name, value)| Some((name, value.as_ref()?)));
        let measures = measures.map(|(name, value)| format!("{name} {value:.3}")).collect::<Vec<_>>().join(", ");
        println!("epoch {}: {measures}, {:.2} s", metrics.epoch, metrics.seconds);
        Ok(())
    };
    let lesson = Lesson {
        config: &config,
        pool: Images::new(pool),
        labelled: &labelled,
        doubts: None,
        test: Some(test),
        streams: &streams,
        device: &Device::flex(),
    };
    let student = StudentMethod::GAN.train(&lesson, None, &mut on_epoch)?;
    println!("accuracy on {} test images: {:.1} %", test.len(), 100.0 * student.accuracy.ok_or("no test images")?);
    Ok(())
}
