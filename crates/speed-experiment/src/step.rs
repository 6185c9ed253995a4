//! The steps of an experiment for several machines; each step is a job or an array of jobs.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::config::{AggregationKind, Config, ConfigError, DataSource, Sweep};
use crate::cost::Cost;
use crate::runner::{folder_of, open_shards};
use crate::stages::{STUDENT, StageNames};
use crate::store::{RunStore, ShardMark, SweepStore, report_path};

/// Seconds of a shard of encrypted queries besides the queries: for its keys, and for reading votes.
const KEYS: f64 = 10.0;

/// A step of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// The record of the images, which shards of the teachers' training read.
    Data,
    /// The teachers' training, by shards.
    Teachers,
    /// The teachers' votes, and the queries.
    Votes,
    /// The queries on ciphertexts, by shards.
    Aggregate,
    /// The labels of all rows, and everything before them that is not done.
    Labels,
    /// The students' training, by shards.
    Students,
    /// The tables, and everything that is not done.
    Report,
}

impl Step {
    /// Returns its name, which is also the name of its script.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Teachers => "teachers",
            Self::Votes => "votes",
            Self::Aggregate => "aggregate",
            Self::Labels => "labels",
            Self::Students => "students",
            Self::Report => "report",
        }
    }

    /// Returns its name in `speed run --stage`; `None` for the last step, which is a complete run.
    #[must_use]
    pub fn stage(self) -> Option<&'static str> {
        match self {
            Self::Data => Some("data"),
            Self::Teachers => Some("teachers"),
            Self::Votes => Some("queries"),
            Self::Aggregate | Self::Labels => Some("aggregate"),
            Self::Students => Some("student"),
            Self::Report => None,
        }
    }

    /// Returns whether it is divided into shards.
    #[must_use]
    pub fn is_divided(self) -> bool {
        matches!(self, Self::Teachers | Self::Aggregate | Self::Students)
    }
}

/// The work of a run, or of a sweep's runs, step by step.
pub struct Work<'a> {
    configs: Vec<&'a Config>,
    /// The folder of the run, or of the sweep.
    folder: PathBuf,
    is_sweep: bool,
    results: &'a Path,
}

impl<'a> Work<'a> {
    /// Creates the work of one run.
    #[must_use]
    pub fn of_run(config: &'a Config, results: &'a Path) -> Self {
        Self { configs: vec![config], folder: RunStore::folder_of(results, config), is_sweep: false, results }
    }

    /// Creates the work of a sweep's runs.
    #[must_use]
    pub fn of_sweep(sweep: &'a Sweep, results: &'a Path) -> Self {
        let configs: Vec<&Config> = sweep.settings.iter().map(|setting| &setting.config).collect();
        let folder = folder_of(&configs, Some(sweep), results);
        Self { configs, folder, is_sweep: true, results }
    }

    /// Creates the work of a sweep in `folder` from the configs of its runs.
    #[must_use]
    pub fn of_sweep_folder(folder: PathBuf, configs: &'a [Config], results: &'a Path) -> Self {
        Self { configs: configs.iter().collect(), folder, is_sweep: true, results }
    }

    /// Returns the folder of the run, or of the sweep.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the folders of the runs.
    #[must_use]
    pub fn runs(&self) -> Vec<PathBuf> {
        self.configs.iter().map(|config| RunStore::folder_of(self.results, config)).collect()
    }

    /// Returns the steps in their order.
    ///
    /// # Errors
    /// If settings of a sweep differ in their steps.
    pub fn steps(&self) -> Result<Vec<Step>, ConfigError> {
        let has = |what: &str, has: fn(&Config) -> bool| {
            let with = self.configs.iter().filter(|config| has(config)).count();
            if (1..self.configs.len()).contains(&with) {
                let message = format!("some of its settings have {what} and others have none: submit them one by one");
                return Err(ConfigError::Key { place: "config".into(), key: "sweep".into(), message });
            }
            Ok(with > 0)
        };
        let teachers = has("teachers", |config| StageNames::of(config).teachers.is_some())?;
        let encrypted = has("queries on ciphertexts", |config| queries(config) > 0)?;
        let students = has("students", has_students)?;
        let all = [
            (Step::Data, teachers),
            (Step::Teachers, teachers),
            // Without encrypted queries, the votes are computed together with the labels.
            (Step::Votes, encrypted),
            (Step::Aggregate, encrypted),
            (Step::Labels, students),
            (Step::Students, students),
            (Step::Report, true),
        ];
        Ok(all.into_iter().filter(|(_, has)| *has).map(|(step, _)| step).collect())
    }

    /// Returns the largest number of units of a step; 1 for a step that is not divided.
    #[must_use]
    pub fn units(&self, step: Step) -> usize {
        let sum = |units: fn(&Config) -> usize| self.configs.iter().map(|config| units(config)).sum();
        match step {
            Step::Teachers => sum(|config| config.ensemble.teachers),
            Step::Aggregate => sum(queries),
            Step::Students => sum(|config| config.rows.len() * config.table.repeats),
            Step::Data | Step::Votes | Step::Labels | Step::Report => 1,
        }
    }

    /// Returns whether a step is done according to the records of the runs' stages; for students, according to the
    /// report only. A step is not done if its units are from outputs of earlier stages that were since done again.
    #[must_use]
    pub fn is_done(&self, step: Step) -> bool {
        let is_reported = if self.is_sweep {
            SweepStore::report_of(&self.folder).exists()
        } else {
            self.runs().iter().all(|run| report_path(run).exists())
        };
        let is_finished = |config: &&Config| {
            let (folder, names) = (RunStore::folder_of(self.results, config), StageNames::of(config));
            let is_finished = |name: &str| RunStore::is_finished(&folder, name);
            match step {
                Step::Data => names.data.iter().all(|name| is_finished(name)),
                Step::Teachers => names.teachers.iter().all(|name| is_finished(name)),
                Step::Votes => is_finished(&names.queries),
                Step::Aggregate => names.rows.iter().all(|stages| {
                    config.rows[stages.row].aggregation != AggregationKind::Encrypted || is_finished(&stages.labelling)
                }),
                Step::Labels => names.rows.iter().all(|stages| is_finished(&stages.labelling)),
                Step::Students | Step::Report => false,
            }
        };
        let stage = step.stage().unwrap_or(STUDENT);
        let is_outdated = |run: &PathBuf| ShardMark::is_outdated(run, stage);
        (is_reported || self.configs.iter().all(is_finished)) && !self.runs().iter().any(is_outdated)
    }

    /// Returns the numbers, from 1, of the shards of a step that are not done, out of `of` shards.
    ///
    /// # Errors
    /// If the step is not divided.
    pub fn open_shards(&self, step: Step, of: usize) -> Result<Vec<usize>, ConfigError> {
        if self.is_done(step) {
            return Ok(Vec::new());
        }
        open_shards(&self.folder, &self.runs(), step.stage().unwrap_or_default(), of)
    }

    /// Returns the seconds of the longest of `of` shards of a step on `cpus` processors, estimated by `cost`, which is
    /// the cost of the first run; `None` if unknown.
    #[must_use]
    pub fn seconds(&self, step: Step, of: usize, cpus: u16, cost: &Cost) -> Option<f64> {
        let kind = match step {
            Step::Teachers => "teachers",
            Step::Aggregate => "encrypted argmax",
            Step::Students => "students",
            Step::Data | Step::Votes | Step::Labels | Step::Report => "votes",
        };
        let of_kind = cost.stages.iter().filter(|stage| stage.kind.starts_with(kind));
        let one: f64 = of_kind.map(|stage| stage.core_seconds).sum::<Option<f64>>()?;
        let units = self.units(step).max(1);
        let unit = one * self.configs.len() as f64 / units as f64;
        Some(longest_shard(step, units.div_ceil(of.max(1)), unit, cpus))
    }
}

/// Returns the seconds of a shard of `units` units of `unit` core-seconds each.
fn longest_shard(step: Step, units: usize, unit: f64, cpus: u16) -> f64 {
    let cpus = usize::from(cpus.max(1));
    let evenly = unit * units as f64 / cpus as f64;
    match step {
        // A training uses one thread, so more processors run more trainings, but do not speed up a single one.
        Step::Teachers | Step::Students => unit * units.div_ceil(cpus) as f64,
        Step::Aggregate => KEYS + evenly,
        Step::Data | Step::Votes | Step::Labels | Step::Report => evenly,
    }
}

/// Returns the number of queries on ciphertexts.
fn queries(config: &Config) -> usize {
    let own = config.rows.iter().enumerate().filter(|(index, _)| config.labels_of(*index) == *index);
    let encrypted = own.filter(|(_, row)| row.aggregation == AggregationKind::Encrypted);
    encrypted.map(|(_, row)| row.query_count(config.queries.count)).sum()
}

fn has_students(config: &Config) -> bool {
    config.table.repeats > 0 && config.data.source != DataSource::None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{DEFAULTS, Source};

    fn steps(overrides: &[&str]) -> Vec<&'static str> {
        let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
        let source = Source::new("test.toml", DEFAULTS).with_overrides(&overrides).expect("keys");
        let config = Config::load(&source).expect("a config");
        let work = Work::of_run(&config, Path::new("none"));
        work.steps().expect("steps").into_iter().map(Step::name).collect()
    }

    #[test]
    fn processors_beside_one_training_do_not_shorten_it() {
        assert_eq!(longest_shard(Step::Teachers, 1, 1000.0, 8), 1000.0);
        assert_eq!(longest_shard(Step::Students, 9, 1000.0, 8), 2000.0);
        assert_eq!(longest_shard(Step::Aggregate, 8, 1.0, 4), KEYS + 2.0);
        assert_eq!(longest_shard(Step::Votes, 1, 1000.0, 4), 250.0);
    }

    #[test]
    fn a_config_has_the_steps_that_it_needs() {
        let all = steps(&["row.0.aggregation=encrypted"]);
        assert_eq!(all, ["data", "teachers", "votes", "aggregate", "labels", "students", "report"]);
        assert_eq!(steps(&["row.*.aggregation=trusted"]), ["data", "teachers", "labels", "students", "report"]);
        let without = ["row.*.aggregation=trusted", "table.repeats=0"];
        assert_eq!(steps(&without), ["data", "teachers", "report"]);
    }
}
