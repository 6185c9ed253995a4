//! The steps of an experiment for several machines; each step is a job or an array of jobs.
//!
//! The steps follow from the graph. The units of a stage are an array of jobs, one for each shard. Before it, one job
//! completes the stages that the units depend on. The last job completes the run.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::config::{Config, Sweep};
use crate::cost::Cost;
use crate::error::ExperimentError;
use crate::stages::{Graph, KINDS, Kind, Units};
use crate::store::{RunStore, config_path, report_path, sweep_report_path};
use crate::sweep::folder_of;

/// Seconds of a shard besides its units, for keys and for reading votes, if its units use several processors.
const KEYS: f64 = 10.0;

const REPORT: &str = "report";
const ALL: &str = "-all";

/// A step of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step {
    /// The place of the kind of stage in [`KINDS`], or their number for the last step.
    kind: usize,
    /// Whether it completes the stages up to this kind, or does only units of this kind.
    completes: bool,
}

impl Step {
    /// The last step, which is a complete run.
    pub const REPORT: Self = Self { kind: KINDS.len(), completes: true };

    fn all() -> impl Iterator<Item = Self> {
        let with_units = |(kind, stage): (usize, &&Kind)| stage.units.as_ref().map(|_| Self { kind, completes: false });
        let completing = (0..=KINDS.len()).map(|kind| Self { kind, completes: true });
        KINDS.iter().enumerate().filter_map(with_units).chain(completing)
    }

    fn kind(self) -> Option<&'static Kind> {
        KINDS.get(self.kind).copied()
    }

    /// Returns its name, which is also the name of its script: the stage, with `-all` if another step does the units of
    /// the same stage.
    pub fn name(self) -> String {
        let Some(kind) = self.kind() else { return REPORT.to_owned() };
        let end = if self.completes && kind.units.is_some() { ALL } else { "" };
        format!("{}{end}", kind.name)
    }

    /// Returns its name in `speed run --stage`; `None` for the last step.
    pub fn stage(self) -> Option<&'static str> {
        self.kind().map(|kind| kind.name)
    }

    /// Returns whether it has shards.
    pub fn has_shards(self) -> bool {
        !self.completes
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            None => f.write_str("the tables, and every stage that is not done"),
            Some(kind) if self.completes => write!(f, "the stages up to {}", kind.name),
            Some(kind) => f.write_str(kind.units.as_ref().map_or("", |units| units.name)),
        }
    }
}

impl Serialize for Step {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
    }
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = String::deserialize(deserializer)?;
        Self::all()
            .find(|step| step.name() == read)
            .ok_or_else(|| serde::de::Error::custom(format!("{read:?} is not a step")))
    }
}

/// The work of a step that is not done.
#[derive(Debug)]
pub struct StepState {
    /// The step.
    pub step: Step,
    /// The number of its shards; 1 for a step without shards.
    pub of: usize,
    /// The numbers, from 1, of its shards that are not done, empty for a step without shards; `None` if the step is
    /// done.
    pub open: Option<Vec<usize>>,
}

/// The steps of a run, or of a sweep's runs.
pub struct Steps<'a> {
    configs: Vec<&'a Config>,
    folder: PathBuf,
    is_sweep: bool,
    results: &'a Path,
}

impl<'a> Steps<'a> {
    /// Creates the steps of a run, or of a sweep's runs.
    pub fn new(sweep: &'a Sweep, results: &'a Path) -> Self {
        let folder = folder_of(sweep, results);
        Self { configs: sweep.configs().collect(), folder, is_sweep: !sweep.is_plain(), results }
    }

    /// Creates the steps of the run or sweep in `folder` from the configs of its runs.
    pub fn in_folder(folder: PathBuf, configs: &'a [Config], results: &'a Path) -> Self {
        let is_sweep = !config_path(&folder).exists();
        Self { configs: configs.iter().collect(), folder, is_sweep, results }
    }

    /// Returns the directory of the run or of the sweep.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the directories of the runs.
    pub fn runs(&self) -> Vec<PathBuf> {
        self.configs.iter().map(|config| RunStore::folder_of(self.results, config)).collect()
    }

    pub(crate) fn list(&self) -> Result<Vec<Step>, ExperimentError> {
        let mut steps = Vec::new();
        for (place, kind) in KINDS.iter().enumerate() {
            let Some(Units { name: units, .. }) = &kind.units else { continue };
            let with = self.configs.iter().filter(|config| units_in(config, kind) > 0).count();
            if (1..self.configs.len()).contains(&with) {
                let message = format!("some of its settings have {units} and others have none: submit them one by one");
                return Err(ExperimentError::key("config", "sweep", message));
            }
            if with > 0 {
                let has = |kind: &Kind| {
                    self.configs.iter().any(|config| Graph::for_config(config).of_kind(kind.name).next().is_some())
                };
                let needed = |before: &usize| KINDS[*before].is_needed_by_shards && has(KINDS[*before]);
                let before = (0..place).rev().find(needed).map(|kind| Step { kind, completes: true });
                steps.extend(before);
                steps.push(Step { kind: place, completes: false });
            }
        }
        steps.push(Step::REPORT);
        Ok(steps)
    }

    /// Returns the largest number of units of a step, which is 1 for a step without shards.
    pub fn units(&self, step: Step) -> usize {
        match step.kind().filter(|_| step.has_shards()) {
            Some(kind) => self.configs.iter().map(|config| units_in(config, kind)).sum(),
            None => 1,
        }
    }

    /// Returns the states of the steps in their order, according to the records of the runs' stages and units. A step has
    /// `shards_of(step)` shards, if it has any. A step after one that is not done is not done.
    ///
    /// # Errors
    /// If settings of a sweep differ in their steps.
    pub fn states(&self, shards_of: impl Fn(Step) -> usize) -> Result<Vec<StepState>, ExperimentError> {
        let mut is_behind = false;
        let state = |step: Step| {
            let of = if step.has_shards() { shards_of(step) } else { 1 };
            let open = match step.has_shards() {
                false => (is_behind || !self.is_done(step)).then(Vec::new),
                true if is_behind => Some((1..=of).collect()),
                true => Some(self.open_shards(step, of)).filter(|open| !open.is_empty()),
            };
            is_behind |= open.is_some();
            StepState { step, of, open }
        };
        Ok(self.list()?.into_iter().map(state).collect())
    }

    fn is_done(&self, step: Step) -> bool {
        let is_finished = |config: &&Config, stage| {
            let run = RunStore::folder_of(self.results, config);
            Graph::for_config(config).of_kind(stage).all(|node| RunStore::is_finished(&run, &node.name))
        };
        match step.stage() {
            Some(stage) => self.configs.iter().all(|config| is_finished(config, stage)),
            None if self.is_sweep => sweep_report_path(&self.folder).exists(),
            None => self.runs().iter().all(|run| report_path(run).exists()),
        }
    }

    /// Returns the numbers, from 1, of the shards of a step with missing units. The units are numbered as by
    /// [`ShardUnits`](crate::stages::ShardUnits); units of a stage that another setting of the sweep does count as missing
    /// until this setting's run has the stage.
    fn open_shards(&self, step: Step, of: usize) -> Vec<usize> {
        let (mut open, mut first) = (BTreeSet::new(), 0);
        for config in &self.configs {
            let (run, graph) = (RunStore::folder_of(self.results, config), Graph::for_config(config));
            for (at, node) in graph.nodes().iter().enumerate().filter(|(_, node)| Some(node.kind.name) == step.stage())
            {
                let missing = graph.found_units(&run, config, at).into_iter().flat_map(|units| units.missing);
                open.extend(missing.map(|unit| (first + unit) % of + 1));
                first += node.units(config);
            }
        }
        open.into_iter().collect()
    }

    /// Returns the seconds of the longest of `of` shards of a step on `cpus` processors, estimated by `cost`, which is
    /// the cost of the first run; `None` if unknown. A step without shards takes as long as all stages without units.
    pub fn seconds(&self, step: Step, of: usize, cpus: u16, cost: &Cost) -> Option<f64> {
        let kind = step.kind().filter(|_| step.has_shards());
        let has_no_units = |stage: &str| KINDS.iter().any(|kind| kind.name == stage && kind.units.is_none());
        let is_part = |stage: &str| kind.map_or_else(|| has_no_units(stage), |kind| kind.name == stage);
        let stages = cost.stages.iter().filter(|cost| is_part(cost.stage));
        let one: f64 = stages.map(|stage| stage.core_seconds).sum::<Option<f64>>()?;
        let units = self.units(step).max(1);
        let unit = one * self.configs.len() as f64 / units as f64;
        Some(longest_shard(kind, units.div_ceil(of.max(1)), unit, cpus))
    }
}

/// Returns the seconds of a shard of `units` units of `unit` core-seconds each, or of a step without shards.
fn longest_shard(kind: Option<&Kind>, units: usize, unit: f64, cpus: u16) -> f64 {
    let cpus = usize::from(cpus.max(1));
    let evenly = unit * units as f64 / cpus as f64;
    match kind {
        Some(kind) if kind.units.as_ref().is_none_or(|units| units.are_serial) => unit * units.div_ceil(cpus) as f64,
        Some(_) => KEYS + evenly,
        None => evenly,
    }
}

fn units_in(config: &Config, kind: &Kind) -> usize {
    Graph::for_config(config).of_kind(kind.name).map(|node| node.units(config)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Source;

    fn steps(overrides: &[&str]) -> Vec<String> {
        let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
        let source = Source::new("test.toml", "").with_overrides(&overrides).expect("keys");
        let sweep = Sweep::load(&source).expect("a config");
        let steps = Steps::new(&sweep, Path::new("none"));
        steps.list().expect("steps").into_iter().map(Step::name).collect()
    }

    fn kind(name: &str) -> Option<&'static Kind> {
        KINDS.iter().copied().find(|kind| kind.name == name)
    }

    #[test]
    fn processors_beside_one_training_do_not_shorten_it() {
        assert_eq!(longest_shard(kind("teachers"), 1, 1000.0, 8), 1000.0);
        assert_eq!(longest_shard(kind("student"), 9, 1000.0, 8), 2000.0);
        assert_eq!(longest_shard(kind("aggregate"), 8, 1.0, 4), KEYS + 2.0);
        assert_eq!(longest_shard(None, 1, 1000.0, 4), 250.0);
    }

    #[test]
    fn a_config_has_the_steps_that_it_needs() {
        let all = steps(&["row.0.aggregation=encrypted"]);
        assert_eq!(all, ["data", "teachers", "queries", "aggregate", "aggregate-all", "student", "report"]);
        assert_eq!(steps(&["row.*.aggregation=trusted"]), ["data", "teachers", "aggregate-all", "student", "report"]);
        let without = ["row.*.aggregation=trusted", "table.repeats=0"];
        assert_eq!(steps(&without), ["data", "teachers", "report"]);
    }

    #[test]
    fn steps_are_read_by_their_names() {
        for step in Step::all() {
            let text = serde_json::to_string(&step).expect("a name");
            assert_eq!(serde_json::from_str::<Step>(&text).expect("the same step"), step);
        }
        for other in ["account-a", "students", ""] {
            assert!(serde_json::from_value::<Step>(other.into()).is_err(), "{other}");
        }
    }
}
