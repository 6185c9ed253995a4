//! Draws accuracy over epsilon: the mean of the seeds of every row, and published results.
//!
//! `cargo run --release -p speed-experiment --example frontier -- SEEDS.csv PUBLISHED.csv OUT.svg`. The seeds are printed by
//! scripts/frontier-seeds; published results have the columns name, epsilon and accuracy (percent).

use std::collections::BTreeMap;
use std::error::Error;

use speed_experiment::report::csv;
use speed_experiment::report::plot::{Axis, Chart, Line, Point, Series};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [seeds, published, out] = &arguments[..] else { return Err("expected SEEDS.csv PUBLISHED.csv OUT.svg".into()) };
    let mut series = ours(&csv::read(&std::fs::read_to_string(seeds)?))?;
    for line in csv::read(&std::fs::read_to_string(published)?).iter().skip(1) {
        let [name, epsilon, accuracy] = &line[..3] else { return Err("expected name, epsilon, accuracy".into()) };
        let point = Point { x: epsilon.parse()?, y: accuracy.parse()?, spread: None };
        series.push(Series { name: name.clone(), points: vec![point], line: Line::Marked });
    }
    let chart = Chart {
        title: "MNIST: accuracy of the student over epsilon".into(),
        x: Axis {
            title: "epsilon at delta 1e-5 (units and public data differ)".into(),
            logarithmic: true,
            names: Vec::new(),
        },
        y: Axis { title: "accuracy, %".into(), logarithmic: false, names: Vec::new() },
        series,
        asymptote: None,
    };
    std::fs::write(out, chart.to_svg().ok_or("no points")?)?;
    Ok(())
}

/// Returns a series for each experiment and pool: the mean and standard deviation of the seeds at each epsilon.
fn ours(lines: &[Vec<String>]) -> Result<Vec<Series>, Box<dyn Error>> {
    let mut seeds: BTreeMap<String, BTreeMap<String, (f64, Vec<f64>)>> = BTreeMap::new();
    for line in lines.iter().skip(1) {
        let [experiment, pool, _, row, epsilon, _, accuracy] = &line[..] else {
            return Err("expected seven columns".into());
        };
        let of_row =
            seeds.entry(format!("ours, {experiment}, {pool} pool (one teacher, data-independent)")).or_default();
        let (largest, accuracies) = of_row.entry(row.clone()).or_default();
        *largest = largest.max(epsilon.parse()?);
        accuracies.push(accuracy.parse()?);
    }
    let point = |(epsilon, accuracies): &(f64, Vec<f64>)| {
        let count = accuracies.len() as f64;
        let mean = accuracies.iter().sum::<f64>() / count;
        let squares: f64 = accuracies.iter().map(|value| (value - mean).powi(2)).sum();
        Point { x: *epsilon, y: mean, spread: (count > 1.0).then(|| (squares / (count - 1.0)).sqrt()) }
    };
    let series = |(name, rows): (String, BTreeMap<_, _>)| {
        let mut points: Vec<Point> = rows.values().map(point).collect();
        points.sort_by(|one, other| one.x.total_cmp(&other.x));
        Series { name, points, line: Line::Marked }
    };
    Ok(seeds.into_iter().map(series).collect())
}
