//! The resources that a job requests: from the user's options, else from a few steps measured here.

use speed_experiment::{Cost, Step, Steps};

use super::options::SubmitOptions;
use crate::slurm::Needs;

/// The factor on the measured values, which are estimates within a factor of two.
const MARGIN: f64 = 2.0;
/// Smallest time limit of a shard, in minutes.
const LEAST: f64 = 10.0;
/// Smallest time limit of a job without shards, in minutes. It reads all results and runs the accountant, which is not
/// measured.
const LEAST_WHOLE: f64 = 60.0;
/// Smallest memory in megabytes, and the unit to which it is rounded up.
const LEAST_MEMORY: f64 = 500.0;
const MEMORY_STEP: f64 = 100.0;

/// Returns the resources for the jobs of a step with `of` shards.
pub(super) fn for_step(
    options: &SubmitOptions,
    steps: &Steps<'_>,
    step: Step,
    of: usize,
    cost: Option<&Cost>,
) -> Needs {
    let measured = cost.and_then(|cost| steps.seconds(step, of, options.cpus, cost));
    let bytes = cost.map_or(0.0, |cost| cost.memory_bytes);
    Needs {
        cpus: options.cpus,
        time: options.time.clone().or_else(|| measured.map(|seconds| time(step, seconds))),
        memory: options.memory.clone().unwrap_or_else(|| memory(bytes)),
        partition: options.partition.clone(),
        account: options.account.clone(),
    }
}

/// Returns a time limit as `hours:minutes:seconds`.
fn time(step: Step, seconds: f64) -> String {
    let least = if step.has_shards() { LEAST } else { LEAST_WHOLE };
    let minutes = (MARGIN * seconds / 60.0).max(least).ceil();
    format!("{:.0}:{:02.0}:00", (minutes / 60.0).floor(), minutes % 60.0)
}

fn memory(bytes: f64) -> String {
    let megabytes = (MARGIN * bytes / 1e6 / MEMORY_STEP).ceil() * MEMORY_STEP;
    format!("{:.0}M", megabytes.max(LEAST_MEMORY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_are_rounded_up_generously() {
        let teachers: Step = serde_json::from_value("teachers".into()).expect("a step");
        assert_eq!(time(teachers, 1.0), "0:10:00");
        assert_eq!(time(Step::REPORT, 1.0), "1:00:00");
        assert_eq!(time(teachers, 3601.0), "2:01:00");
        assert_eq!(time(teachers, 100.0 * 3600.0), "200:00:00");
        assert_eq!(memory(1e6), "500M");
        assert_eq!(memory(550e6), "1100M");
        assert_eq!(memory(551e6), "1200M");
    }
}
