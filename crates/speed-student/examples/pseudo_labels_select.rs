//! Chooses the settings of the pseudo-label student without a test image.
//!
//! Everything comes from MNIST's training images: pools of 9000 of them, labels for 100, and 5000 others to validate on. The
//! labels are as wrong as bought ones: a nearest-neighbour classifier over a few more training images gives them, so that
//! images that are hard to read have the wrong label.
//!
//! `SPEED_DATASETS=folder cargo run --release --workspace --example pseudo_labels_select -- [--seeds N] [--first K]
//! [--neighbours M] [key=value]...`
#![expect(clippy::print_stdout, reason = "a table is what this program is for")]

use std::path::PathBuf;

use rand::seq::SliceRandom;
use speed_data::Split;
use speed_random::Streams;
use speed_student::Images;
use speed_student::pseudo_labels::{PseudoLabelsConfig, PseudoLabelsReport, train};

#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(std::env::var_os("SPEED_DATASETS").unwrap_or_else(|| "datasets".into()));
    let data = speed_data::mnist::load(&folder)?.train;
    let mut config = serde_json::to_value(PseudoLabelsConfig::default())?;
    let mut show = false;
    let mut labels_file: Option<String> = None;
    let (mut seeds, mut first, mut neighbours, mut verbose) = (2_u64, 0, 5000, false);
    for argument in std::env::args().skip(1) {
        let (key, value) = argument.split_once('=').ok_or("expected key=value")?;
        match key {
            "seeds" => seeds = value.parse()?,
            "first" => first = value.parse()?,
            "neighbours" => neighbours = value.parse()?,
            "labels" => labels_file = Some(value.to_owned()),
            "show" => show = value.parse()?,
            "verbose" => verbose = value.parse()?,
            _ => {
                let mut place = &mut config;
                for part in key.split('.') {
                    place = place.get_mut(part).ok_or_else(|| format!("no setting {key}"))?;
                }
                *place = serde_json::from_str(value)?;
            }
        }
    }
    let config: PseudoLabelsConfig = serde_json::from_value(config)?;
    for seed in first..first + seeds {
        let streams = Streams::new(seed);
        let mut order: Vec<usize> = (0..data.len()).collect();
        order.shuffle(&mut streams.stream("selection", 0));
        let pool = pick(&data, &order[..9000])?;
        let validation = pick(&data, &order[9000..14_000])?;
        let known = pick(&data, &order[14_000..14_000 + neighbours])?;
        let mut pool = pool;
        let mut validation = validation;
        let labelled: Vec<(usize, u8)> = if let Some(path) = &labels_file {
            let test = speed_data::mnist::load(&folder)?.test;
            pool = test.slice(0..9000);
            validation = test.slice(9000..10_000);
            std::fs::read_to_string(path)?
                .lines()
                .skip(1)
                .map(|l| {
                    let mut p = l.split(',').skip(1);
                    (p.next().unwrap().parse().unwrap(), p.next().unwrap().parse().unwrap())
                })
                .collect()
        } else {
            (0..100)
                .map(|i| (i, if neighbours == 1 { pool.label(i) } else { nearest(pool.pixels(i), &known) }))
                .collect()
        };
        let right = labelled.iter().filter(|(i, label)| pool.label(*i) == *label).count();
        let start = core_seconds();
        let mut on_epoch = |report: &PseudoLabelsReport<'_>| {
            let m = report.metrics();
            if verbose && m.accuracy_average.is_some() {
                println!("  {m:.4?}");
            }
            Ok::<(), std::convert::Infallible>(())
        };
        let outcome = train(&config, Images::of(&pool), &labelled, &validation, &streams, None, &mut on_epoch)?;
        if verbose {
            let wrong: Vec<_> =
                labelled.iter().filter(|(i, l)| pool.label(*i) != *l).map(|(i, l)| (pool.label(*i), *l)).collect();
            let count = |c: u8| labelled.iter().filter(|(_, l)| *l == c).count();
            println!("  wrong labels {wrong:?}, labels a class {:?}", (0..10).map(count).collect::<Vec<_>>());
            let found = outcome.classifier.predict(Images::of(&validation));
            let mut confusion = std::collections::BTreeMap::new();
            for (f, &t) in found.iter().zip(validation.labels()) {
                if *f != t {
                    *confusion.entry((t, *f)).or_insert(0) += 1;
                }
            }
            if show {
                let bad: Vec<usize> =
                    (0..found.len()).filter(|&i| found[i] == 2 && validation.label(i) == 7).take(8).collect();
                for chunk in bad.chunks(4) {
                    for y in 0..28 {
                        println!(
                            "{}",
                            chunk
                                .iter()
                                .map(|&i| (0..28)
                                    .map(|x| [' ', '.', 'o', '#'][validation.pixels(i)[y * 28 + x] as usize / 64])
                                    .collect::<String>())
                                .collect::<Vec<_>>()
                                .join("|")
                        );
                    }
                }
                let own: Vec<usize> = labelled.iter().filter(|(_, l)| *l == 7).map(|(i, _)| *i).collect();
                for chunk in own.chunks(4) {
                    for y in 0..28 {
                        println!(
                            "{}",
                            chunk
                                .iter()
                                .map(|&i| (0..28)
                                    .map(|x| [' ', '.', 'o', '#'][pool.pixels(i)[y * 28 + x] as usize / 64])
                                    .collect::<String>())
                                .collect::<Vec<_>>()
                                .join("|")
                        );
                    }
                }
            }
            let mut confusion: Vec<_> = confusion.into_iter().collect();
            confusion.sort_by_key(|(_, n)| -n);
            println!("  {:?}", &confusion[..8]);
        }
        let curve: Vec<String> =
            outcome.metrics.iter().filter_map(|m| m.accuracy_average).map(|a| format!("{:.2}", 100.0 * a)).collect();
        let last = outcome.metrics.last().ok_or("no epoch")?;
        println!(
            "seed {seed}: labels {right} right, accuracy {:.2} (raw {:.2}), confident {:.3}, disputed {}, {:.0} s; {}",
            100.0 * outcome.accuracy,
            100.0 * outcome.accuracy_raw,
            last.confident,
            last.disputed,
            core_seconds() - start,
            curve.join(" ")
        );
    }
    Ok(())
}

/// Processor time of this thread so far.
fn core_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).map_or(f64::NAN, |ns| ns * 1e-9)
}

fn pick(data: &Split, chosen: &[usize]) -> Result<Split, speed_data::DataError> {
    let pixels = chosen.iter().flat_map(|&i| data.pixels(i)).copied().collect();
    Split::new(data.shape(), data.classes(), pixels, chosen.iter().map(|&i| data.label(i)).collect())
}

/// The label of the image in `known` with the least squared distance.
fn nearest(image: &[u8], known: &Split) -> u8 {
    let distance = |i: &usize| -> u64 {
        let squares = image.iter().zip(known.pixels(*i)).map(|(&a, &b)| u64::from(a.abs_diff(b)).pow(2));
        squares.sum()
    };
    (0..known.len()).min_by_key(distance).map_or(0, |i| known.label(i))
}
