//! Summarises trained teachers, and predicts the time of experiments on clusters of 10, 100 and 1000 cores from
//! measured units of work. Simulations of the schedule check the arithmetic.
//!
//! `scripts/reference-teachers` writes TEACHERS. COSTS has a line for every step of an experiment, in order:
//! `experiment,step,units,shards,core_seconds,overhead,spreads,measured`. The core-seconds are per unit; the default is
//! the mean over the TEACHERS trained on MACHINE. The overhead is a shard's core-seconds besides its units. Units of
//! steps with `spreads` vary independently about their mean, as these teachers did. All cores are equal and initially
//! free, and a step starts when the previous step has ended. Queue times, contention for memory and disks, and slow
//! nodes are not included.
//!
//! ```console
//! $ cargo run --release -p speed-experiment --example cluster -- costs.csv teachers.csv 2
//! ```
#![expect(clippy::print_stdout, reason = "the program prints tables")]

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::error::Error;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde::Deserialize;
use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::statistics::Statistics;

const CORES: [usize; 3] = [10, 100, 1000];
const SIMULATIONS: usize = 1000;
/// Number of simulations on each side of the printed range.
const TAIL: usize = SIMULATIONS / 40;
const HOUR: f64 = 3600.0;
/// The probability below the upper end of a 95 % interval.
const UPPER: f64 = 0.975;
/// Largest rounding error of simulated times, in seconds.
const ROUNDING: f64 = 1.0;

/// A trained teacher.
#[derive(Clone, Debug, Deserialize)]
struct Teacher {
    /// Accuracy on MNIST's test images.
    test_accuracy: f64,
    /// Accuracy on its own images.
    own_accuracy: f64,
    /// `None` if the training resumed after an interruption of the script.
    core_seconds: Option<f64>,
    /// The number of the machine.
    machine: u32,
}

/// A step of an experiment: an array of shards, or a single job.
#[derive(Clone, Debug, Deserialize)]
struct MeasuredStep {
    experiment: String,
    step: String,
    units: usize,
    shards: usize,
    /// Core-seconds of a unit; `None` if the unit is a teacher.
    core_seconds: Option<f64>,
    /// Core-seconds of a shard besides its units.
    overhead: f64,
    /// Whether the times of units vary.
    spreads: bool,
}

impl Teacher {
    fn is_valid(&self) -> bool {
        let are_shares = [self.test_accuracy, self.own_accuracy].iter().all(|share| (0.0..=1.0).contains(share));
        are_shares && self.core_seconds.is_none_or(|time| time.is_finite() && time > 0.0)
    }
}

impl MeasuredStep {
    fn is_valid(&self) -> bool {
        let are_times = [self.unit(), self.overhead].iter().all(|time| time.is_finite() && *time >= 0.0);
        (1..=self.units).contains(&self.shards) && are_times
    }

    fn unit(&self) -> f64 {
        self.core_seconds.unwrap_or(f64::NAN)
    }

    fn core_seconds(&self) -> f64 {
        self.shards as f64 * self.overhead + self.units as f64 * self.unit()
    }

    /// Returns an upper bound of the time on `cores` for equal units, in seconds: the number of rounds times the
    /// longest shard.
    fn predicted(&self, cores: usize) -> f64 {
        let longest = self.overhead + self.units.div_ceil(self.shards) as f64 * self.unit();
        self.shards.div_ceil(cores) as f64 * longest
    }

    /// Returns the simulated time on `cores`, in seconds. Each free core takes the next shard; a unit takes `spread`
    /// times its mean time.
    fn simulated(&self, cores: usize, mut spread: impl FnMut() -> f64) -> f64 {
        // Times are integer milliseconds, because they must be ordered.
        let mut free: BinaryHeap<Reverse<u64>> = (0..cores).map(|_| Reverse(0)).collect();
        let mut end = 0;
        for shard in 0..self.shards {
            let units = (shard..self.units).step_by(self.shards);
            let work: f64 = units.map(|_| self.unit() * if self.spreads { spread() } else { 1.0 }).sum();
            let Reverse(begin) = free.pop().unwrap_or_default();
            let done = begin + (1000.0 * (self.overhead + work)).round() as u64;
            free.push(Reverse(done));
            end = end.max(done);
        }
        end as f64 / 1000.0
    }

    /// Returns whether a simulation with equal units agrees with the prediction: exactly if all shards have equally
    /// many units, otherwise as an upper bound.
    fn is_consistent(&self, cores: usize) -> bool {
        let (simulated, predicted) = (self.simulated(cores, || 1.0), self.predicted(cores));
        let is_equal = (simulated - predicted).abs() <= ROUNDING;
        is_equal || (!self.units.is_multiple_of(self.shards) && simulated < predicted)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [costs, teachers, machine] = &arguments[..] else {
        return Err("usage: cluster COSTS.csv TEACHERS.csv MACHINE".into());
    };
    let trained: Vec<Teacher> = csv::Reader::from_path(teachers)?.deserialize().collect::<Result<_, _>>()?;
    if let Some(teacher) = trained.iter().find(|teacher| !teacher.is_valid()) {
        return Err(format!("{teachers}: expected accuracies from 0 to 1 and finite times, found {teacher:?}").into());
    }
    let machine: u32 = machine.parse().map_err(|_| format!("expected the number of a machine, found {machine:?}"))?;
    let seconds = seconds(&trained, machine);
    if seconds.len() < 2 {
        return Err(format!("{teachers}: expected the times of at least two teachers on machine {machine}").into());
    }
    let mean = seconds.iter().mean();
    let mut steps: Vec<MeasuredStep> = csv::Reader::from_path(costs)?.deserialize().collect::<Result<_, _>>()?;
    for step in &mut steps {
        step.core_seconds.get_or_insert(mean);
        if !step.is_valid() {
            let expected = "expected at least one shard, at most one shard per unit, and finite times";
            return Err(format!("{costs}: {expected}, found {step:?}").into());
        }
    }
    print_teachers(&trained);
    print_costs(&steps);
    print_clusters(&steps, &seconds.iter().map(|time| time / mean).collect::<Vec<_>>())
}

/// Returns the core-seconds of the teachers that were trained on a machine.
fn seconds(teachers: &[Teacher], machine: u32) -> Vec<f64> {
    teachers.iter().filter(|teacher| teacher.machine == machine).filter_map(|teacher| teacher.core_seconds).collect()
}

/// Prints a line for each measure of the teachers, with Student's interval of the mean.
fn print_teachers(teachers: &[Teacher]) {
    println!("| of {} teachers | mean | deviation | 95 % interval of the mean | lowest | highest |", teachers.len());
    println!("|---|---:|---:|---:|---:|---:|");
    let percent = |accuracy: fn(&Teacher) -> f64| -> Vec<f64> {
        teachers.iter().map(|teacher| 100.0 * accuracy(teacher)).collect()
    };
    let accuracies = [
        ("accuracy on the test images, %".to_owned(), percent(|teacher| teacher.test_accuracy)),
        ("accuracy on their own images, %".to_owned(), percent(|teacher| teacher.own_accuracy)),
    ];
    let machines: BTreeSet<u32> = teachers.iter().map(|teacher| teacher.machine).collect();
    let times = machines.into_iter().map(|machine| {
        let minutes: Vec<f64> = seconds(teachers, machine).iter().map(|time| time / 60.0).collect();
        (format!("core-minutes of {} on machine {machine}", minutes.len()), minutes)
    });
    for (name, values) in accuracies.into_iter().chain(times).filter(|(_, values)| values.len() > 1) {
        let (mean, deviation) = (values.iter().mean(), values.iter().std_dev());
        let degrees = values.len() as f64 - 1.0;
        let half = StudentsT::new(0.0, 1.0, degrees).map_or(f64::NAN, |t| t.inverse_cdf(UPPER))
            * (deviation / (values.len() as f64).sqrt());
        let (low, high, least, most) = (mean - half, mean + half, Statistics::min(&values), Statistics::max(&values));
        println!("| {name} | {mean:.2} | {deviation:.2} | {low:.2} to {high:.2} | {least:.2} | {most:.2} |");
    }
}

fn print_costs(steps: &[MeasuredStep]) {
    println!("\n| experiment | step | units | core-seconds each | shards | core-seconds of each beside | core-hours |");
    println!("|---|---|---:|---:|---:|---:|---:|");
    for step in steps {
        let MeasuredStep { experiment, step: name, units, shards, overhead, .. } = step;
        let (unit, hours) = (step.unit(), step.core_seconds() / HOUR);
        println!("| {experiment} | {name} | {units} | {unit:.2} | {shards} | {overhead:.2} | {hours:.2} |");
    }
}

/// Prints the hours of every experiment on clusters.
///
/// # Errors
/// If a prediction does not agree with a simulation of equal units.
fn print_clusters(steps: &[MeasuredStep], spread: &[f64]) -> Result<(), Box<dyn Error>> {
    println!(
        "\n| experiment | cores | core-hours | hours, predicted | simulated: mean (95 % of {SIMULATIONS}) | busy |"
    );
    println!("|---|---:|---:|---:|---:|---:|");
    for experiment in steps.chunk_by(|one, next| one.experiment == next.experiment) {
        let work: f64 = experiment.iter().map(MeasuredStep::core_seconds).sum::<f64>() / HOUR;
        for cores in CORES {
            if let Some(step) = experiment.iter().find(|step| !step.is_consistent(cores)) {
                return Err(format!("prediction and simulation differ on {cores} cores: {step:?}").into());
            }
            let predicted: f64 = experiment.iter().map(|step| step.predicted(cores)).sum::<f64>() / HOUR;
            let hours = simulations(experiment, cores, spread);
            let mean = hours.iter().mean();
            let (low, high) = (hours[TAIL], hours[SIMULATIONS - 1 - TAIL]);
            let (name, busy) = (&experiment[0].experiment, 100.0 * work / (mean * cores as f64));
            println!(
                "| {name} | {cores} | {work:.1} | {predicted:.2} | {mean:.2} ({low:.2} to {high:.2}) | {busy:.0} % |"
            );
        }
    }
    Ok(())
}

fn simulations(steps: &[MeasuredStep], cores: usize, spread: &[f64]) -> Vec<f64> {
    let mut generator = SmallRng::seed_from_u64(1);
    let mut one = || spread[generator.random_range(0..spread.len())];
    let mut run = |_| steps.iter().map(|step| step.simulated(cores, &mut one)).sum::<f64>() / HOUR;
    let mut hours: Vec<f64> = (0..SIMULATIONS).map(&mut run).collect();
    hours.sort_by(f64::total_cmp);
    hours
}
