//! Trains students on pseudo-labels of MNIST and prints one line of CSV for each student. It serves to choose settings
//! and to measure accuracy.
//!
//! `SPEED_DATASETS=folder cargo run --release -p speed-student --example pseudo_labels -- [KEY=VALUE]...`
//!
//! Without `labels`, no test image is used: the seed chooses pools of 9000 training images, labels for 100 of them, and
//! 5000 other training images to measure accuracy on. As with teachers, the wrong labels belong to images that are hard
//! to read, because each label is that of the nearest of `neighbours` further training images (5000 give about 94
//! correct labels of 100; 0: true labels).
//!
//! `labels=FILE` is the labels.csv of a stage `aggregate-...` of a run. Pool and test images are then as in the
//! experiment: the first 9000 test images and the last 1000.
//!
//! `first=1 seeds=2` set the seeds; every other key is one of `student.pseudo_labels`, for example `batch=100` or
//! `constants.label_noise=0.1`.
#![expect(clippy::print_stdout, reason = "the program prints a table")]

use std::error::Error;
use std::path::PathBuf;

use rand::seq::SliceRandom;
use speed_core::random::Streams;
use speed_data::{DataError, Dataset, Split};
use speed_student::pseudo_labels::{PseudoLabelsConfig, PseudoLabelsConstants};
use speed_student::{Device, EpochReport, Images, Lesson, StudentConfig, StudentMethod};

#[global_allocator]
static GLOBAL: speed_nn::allocator::Allocator = speed_nn::allocator::ALLOCATOR;

/// The training images and the test images of a student.
struct Task {
    pool: Split,
    labelled: Vec<(usize, u8)>,
    test: Split,
}

fn main() -> Result<(), Box<dyn Error>> {
    speed_nn::allocator::keep_freed_memory();
    let folder = PathBuf::from(std::env::var_os("SPEED_DATASETS").unwrap_or_else(|| "datasets".into()));
    let data = speed_data::mnist::load(&folder)?;
    let (mut seeds, mut first, mut neighbours, mut labels) = (2, 1, 5000, None);
    let mut settings = serde_json::to_value(PseudoLabelsConfig::default())?;
    settings["constants"] = serde_json::to_value(PseudoLabelsConstants::default())?;
    for argument in std::env::args().skip(1) {
        let (key, value) = argument.split_once('=').ok_or_else(|| format!("{argument}: expected KEY=VALUE"))?;
        match key {
            "seeds" => seeds = value.parse()?,
            "first" => first = value.parse()?,
            "neighbours" => neighbours = value.parse()?,
            "labels" => labels = Some(read_labels(value)?),
            _ => {
                let mut place = Some(&mut settings);
                for part in key.split('.') {
                    place = place.and_then(|settings| settings.get_mut(part));
                }
                *place.ok_or_else(|| format!("no setting {key}"))? = serde_json::from_str(value)?;
            }
        }
    }
    let constants = serde_json::from_value(settings["constants"].take())?;
    settings.as_object_mut().ok_or("no settings")?.remove("constants");
    let pseudo_labels = PseudoLabelsConfig { constants, ..serde_json::from_value(settings)? };
    let config = StudentConfig { pseudo_labels, ..StudentConfig::default() };

    println!("seed,right_labels,accuracy,accuracy_raw,confident,disputed,core_seconds,accuracy_by_epoch");
    for seed in first..first + seeds {
        let streams = Streams::new(seed);
        let Task { pool, labelled, test } = match &labels {
            Some(labels) => {
                let (pool, test) = (data.test.slice(0..9000), data.test.slice(9000..10_000));
                Task { pool, labelled: labels.clone(), test }
            }
            None => validation_task(&data, neighbours, &streams)?,
        };
        let right = labelled.iter().filter(|(image, label)| pool.label(*image) == *label).count();
        let start = core_seconds();
        let lesson = Lesson {
            config: &config,
            pool: Images::new(&pool),
            labelled: &labelled,
            doubts: None,
            test: Some(&test),
            streams: &streams,
            device: &Device::flex(),
        };
        let outcome = StudentMethod::PSEUDO_LABELS.train(&lesson, None, &mut |_: &EpochReport<'_>| Ok(()))?;
        let last = outcome.metrics.last().ok_or("no epoch")?;
        let [_, _, Some(confident), Some(disputed)] = last.measures[..] else { return Err("no measures".into()) };
        let evaluated = outcome.metrics.iter().filter_map(|m| m.accuracy_average);
        println!(
            "{seed},{right},{:.4},{:.4},{:.4},{:.2},{:.1},{}",
            outcome.accuracy.ok_or("no test images")?,
            outcome.accuracy_raw.ok_or("no test images")?,
            confident,
            disputed,
            core_seconds() - start,
            evaluated.map(|accuracy| format!("{accuracy:.4}")).collect::<Vec<_>>().join(" ")
        );
    }
    Ok(())
}

/// Returns a task like the experiment's, made of training images only.
fn validation_task(data: &Dataset, neighbours: usize, streams: &Streams) -> Result<Task, DataError> {
    let mut order: Vec<usize> = (0..data.train.len()).collect();
    order.shuffle(&mut streams.stream("selection", 0));
    let pool = pick(&data.train, &order[..9000])?;
    let test = pick(&data.train, &order[9000..14_000])?;
    let known = pick(&data.train, &order[14_000..14_000 + neighbours])?;
    let label = |image: usize| nearest(pool.pixels(image), &known).unwrap_or(pool.label(image));
    let labelled = (0..100).map(|image| (image, label(image))).collect();
    Ok(Task { pool, labelled, test })
}

fn pick(data: &Split, chosen: &[usize]) -> Result<Split, DataError> {
    let pixels = chosen.iter().flat_map(|&i| data.pixels(i)).copied().collect();
    Split::new(data.shape(), data.classes(), pixels, chosen.iter().map(|&i| data.label(i)).collect())
}

/// Returns the label of the image of `known` with the least squared distance.
fn nearest(image: &[u8], known: &Split) -> Option<u8> {
    let distance = |i: &usize| -> u64 {
        let squares = image.iter().zip(known.pixels(*i)).map(|(&a, &b)| u64::from(a.abs_diff(b)).pow(2));
        squares.sum()
    };
    (0..known.len()).min_by_key(distance).map(|i| known.label(i))
}

/// Reads the pool image and label of every line `query,pool_image,label`. Queries without a label are left out.
fn read_labels(path: &str) -> Result<Vec<(usize, u8)>, csv::Error> {
    let mut labels = csv::Reader::from_path(path)?;
    let lines = labels.deserialize::<(usize, usize, Option<u8>)>();
    lines.filter_map(|line| line.map(|(_, image, label)| Some((image, label?))).transpose()).collect()
}

/// Returns the processor time of this thread in seconds, or NaN if the system does not report it.
fn core_seconds() -> f64 {
    #[cfg(unix)]
    return std::time::Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime))
        .map_or(f64::NAN, |time| time.as_secs_f64());
    #[cfg(not(unix))]
    return f64::NAN;
}
