//! Selects the teachers' hyper-parameters without using test images.
//!
//! Trains the first teachers of the paper's 250 partitions of MNIST with several settings, and compares them on
//! training images of partitions that belong to none of them. Usage: `select FOLDER [TEACHERS [IMAGES]]`, where FOLDER
//! holds the MNIST files.
#![expect(clippy::print_stdout, reason = "the program prints a table")]

use speed_core::random::Streams;
use speed_data::{DataError, Split, mnist, partition};
use speed_teacher::Device;
use speed_teacher::{
    EnsembleTraining, Teacher, TeacherConfig, TrainedTeacher, Unknown, ensemble_votes, train_ensemble,
};
use std::convert::Infallible;
use std::error::Error;
use std::sync::Mutex;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: speed_nn::allocator::Allocator = speed_nn::allocator::ALLOCATOR;

/// Learning rate, batch, steps, shift.
const SETTINGS: [(f64, usize, usize, usize); 7] = [
    (4e-3, 30, 200, 2),
    (4e-3, 30, 300, 2),
    (4e-3, 30, 300, 1),
    (4e-3, 30, 300, 3),
    (2e-3, 30, 300, 2),
    (8e-3, 30, 300, 2),
    (4e-3, 60, 300, 2),
];

fn main() -> Result<(), Box<dyn Error>> {
    speed_nn::allocator::keep_freed_memory();
    let arguments: Vec<String> = std::env::args().collect();
    let folder = arguments.get(1).ok_or("usage: select FOLDER [TEACHERS [IMAGES]]")?;
    let teachers: usize = arguments.get(2).map_or(Ok(16), |a| a.parse())?;
    let images: usize = arguments.get(3).map_or(Ok(2000), |a| a.parse())?;

    let data = mnist::load(folder.as_ref())?.train;
    let partitions = partition::blocks(data.len(), 250)?;
    let pool = sample(&data, partitions.get(teachers).ok_or("at most 249 teachers")?.start, images)?;
    let indices: Vec<usize> = (0..teachers).collect();

    println!("learning rate | batch | steps | shift | mean accuracy | plurality | seconds a teacher, training | votes");
    for (learning_rate, batch, steps, shift) in SETTINGS {
        let config = TeacherConfig { learning_rate, batch, steps, shift, ..TeacherConfig::SMALL };
        let trained: Mutex<Vec<Option<Teacher>>> = Mutex::new(vec![None; teachers]);
        let keep = |one: TrainedTeacher| -> Result<(), Infallible> {
            trained.lock().unwrap_or_else(|poisoned| poisoned.into_inner())[one.index] = Some(one.teacher);
            Ok(())
        };
        let start = Instant::now();
        let training = EnsembleTraining {
            config: &config,
            data: &data,
            partitions: &partitions,
            streams: &Streams::new(1),
            device: &Device::flex(),
        };
        train_ensemble(&training, &indices, 1, &keep)?;
        let seconds = start.elapsed().as_secs_f64() / teachers as f64;
        let trained = trained.into_inner()?;
        let load = |i: usize| trained[i].clone().ok_or_else(|| std::io::Error::other("not trained"));
        let start = Instant::now();
        let votes = ensemble_votes(teachers, &load, &pool, (Unknown::Vote, &Streams::new(1)), 1)?;
        let voting = start.elapsed().as_secs_f64() / teachers as f64;
        let (mean, plurality) = (votes.mean_accuracy(pool.labels())?, votes.plurality_accuracy(pool.labels())?);
        println!(
            "{learning_rate} | {batch} | {steps} | {shift} | {mean:.4} | {plurality:.4} | {seconds:.2} | {voting:.2}"
        );
    }
    Ok(())
}

/// Returns `images` images spread evenly over those from `start` on, which no teacher has seen.
fn sample(data: &Split, start: usize, images: usize) -> Result<Split, DataError> {
    let step = ((data.len() - start) / images.max(1)).max(1);
    let chosen: Vec<usize> = (start..data.len()).step_by(step).take(images).collect();
    let pixels = chosen.iter().flat_map(|&i| data.pixels(i)).copied().collect();
    Split::new(data.shape(), data.classes(), pixels, chosen.iter().map(|&i| data.label(i)).collect())
}
