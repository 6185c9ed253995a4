//! A shard: a share of one stage's units, done by one of several processes.

use std::path::{Path, PathBuf};

use serde::Serialize;
use speed_core::random::Streams;

use crate::config::{Config, ConfigError, Sweep};
use crate::device::Device;
use crate::environment::current_environment;
use crate::error::ExperimentError;
use crate::ledger::check;
use crate::options::RunOptions;
use crate::plan::check_run_price;
use crate::progress::{Progress, Recorder};
use crate::stages::{Context, Graph, Images, KINDS, Node, Outputs, ShardUnits, Truth, divided_kind, planned_classes};
use crate::store::{RunStore, ShardMark, StageMark, SweepStore, shard_progress_path};
use crate::sweep::sweep_id;

/// A share of one stage's units: the units whose index (0, 1, 2, ...) has the remainder `number - 1` modulo `of`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The kind of the stage.
    stage: &'static str,
    number: usize,
    of: usize,
}

impl Shard {
    /// Reads `--stage STAGE --shard I/N`.
    ///
    /// # Errors
    /// If the stage cannot be divided, or the share is not I of N with 1 <= I <= N.
    pub fn parse(stage: &str, share: &str) -> Result<Self, ConfigError> {
        let refuse = |key: String, message: String| ConfigError::Key { place: "command line".into(), key, message };
        let kind = divided_kind(stage).ok_or_else(|| {
            let divided = KINDS.iter().filter(|kind| kind.unit_name().is_some());
            let names: Vec<&str> = divided.map(|kind| kind.name()).collect();
            let message = format!("with --shard, expected a stage that divides into units: {}", names.join(", "));
            refuse(format!("--stage {stage}"), message)
        })?;
        let numbers = share.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Self { stage: kind.name(), number, of }),
            _ => Err(refuse(format!("--shard {share}"), "expected I/N, integers with 1 <= I <= N".into())),
        }
    }

    /// Returns the name of the shard's files.
    fn name(&self) -> String {
        format!("{}-{}-of-{}", self.stage, self.number, self.of)
    }
}

/// The report of a shard's work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShardReport {
    /// The directory of the run or of the sweep.
    pub folder: PathBuf,
    /// The kind of the stage.
    pub stage: String,
    /// The shard's number, from 1.
    pub shard: usize,
    /// The number of all shards.
    pub of: usize,
    /// The number of units of the shard, all of which are done. `None` if an earlier process already recorded the shard
    /// as done.
    pub units: Option<usize>,
    /// Number of units that this process did.
    pub done_here: usize,
}

/// Does a share of one stage's units in every run of `configs`, which are one config or the settings of a `sweep`. A unit
/// that several settings share is done once.
///
/// # Errors
/// [`ExperimentError`], for example if an earlier stage is not done or the stage's directory has other content.
pub fn run_shard(
    configs: &[&Config],
    sweep: Option<&Sweep>,
    options: &RunOptions,
    shard: &Shard,
    progress: &dyn Progress,
) -> Result<ShardReport, ExperimentError> {
    let folder = folder_of(configs, sweep, &options.results);
    let report = |units, done_here| ShardReport {
        folder: folder.clone(),
        stage: shard.stage.to_owned(),
        shard: shard.number,
        of: shard.of,
        units,
        done_here,
    };
    for config in configs {
        Graph::for_config(config).up_to(shard.stage)?;
    }
    let all_done = |config: &&Config| ShardMark::all_hold(&RunStore::folder_of(&options.results, config), shard.stage);
    if ShardMark::holds(&folder, &shard.name()) || configs.iter().all(all_done) {
        return Ok(report(None, 0));
    }
    let units = ShardUnits::new(shard.number, shard.of);
    let mut process = ShardProcess { shard, options, progress, images: None, units };
    for config in configs {
        process.work_in_run(config)?;
    }
    let ShardUnits { units, done_here, marks, .. } = process.units;
    ShardMark::write(&folder, &shard.name(), marks)?;
    Ok(report(Some(units), done_here))
}

/// Records the finished kinds of stages in the run's directory, for shards. A kind is finished if its last stage is
/// among the stages `done`. Kinds that only the report reads are not recorded.
///
/// # Errors
/// If the directory cannot be written.
pub(super) fn record_finished(store: &RunStore, graph: &Graph, done: &[Node]) -> Result<(), ExperimentError> {
    for kind in KINDS.iter().filter(|kind| kind.is_needed_by_shards()) {
        let is_done = |node: &Node| done.iter().any(|other| other.name == node.name);
        if graph.of_kind(kind.name()).last().is_some_and(is_done) {
            ShardMark::write_all(store, kind.name(), graph.before(kind.name()))?;
        }
    }
    Ok(())
}

/// Returns the numbers, from 1, of the shards of a stage that are not recorded as done in `folder`. The stage has `of`
/// shards, and `folder` belongs to a run or to a sweep of `runs`.
///
/// # Errors
/// If the stage cannot be divided.
pub(crate) fn open_shards(folder: &Path, runs: &[PathBuf], stage: &str, of: usize) -> Result<Vec<usize>, ConfigError> {
    let mut open = Vec::new();
    if runs.iter().all(|run| ShardMark::all_hold(run, stage)) {
        return Ok(open);
    }
    for number in 1..=of {
        let shard = Shard::parse(stage, &format!("{number}/{of}"))?;
        if !ShardMark::holds(folder, &shard.name()) {
            open.push(number);
        }
    }
    Ok(open)
}

/// Returns the directory of a run or of a sweep.
pub(crate) fn folder_of(configs: &[&Config], sweep: Option<&Sweep>, results: &Path) -> PathBuf {
    match (sweep, configs.first()) {
        (Some(sweep), Some(config)) => SweepStore::folder_of(results, &config.name, &sweep_id(sweep)),
        (None, Some(config)) => RunStore::folder_of(results, config),
        (_, None) => results.to_path_buf(),
    }
}

/// A process that does the units of a shard in one run after the other.
struct ShardProcess<'a> {
    shard: &'a Shard,
    options: &'a RunOptions,
    progress: &'a dyn Progress,
    /// The images of the last run, with its config, because most settings of a sweep use the same images.
    images: Option<(&'a Config, Option<Images>)>,
    units: ShardUnits,
}

impl<'a> ShardProcess<'a> {
    fn work_in_run(&mut self, config: &'a Config) -> Result<(), ExperimentError> {
        let graph = Graph::for_config(config);
        let stage = self.shard.stage;
        let _arithmetic = config.arithmetic.hold()?;
        let device = Device::open(config.device)?;
        let environment = current_environment(&device.name);
        let store = RunStore::join(&self.options.results, config, self.options.mix_machines)?;
        let recorder = Recorder::new(self.progress, shard_progress_path(store.folder(), &self.shard.name()));
        recorder.planned(&[stage.to_owned()]);
        let streams = Streams::new(config.seed);
        let images = self.images(config, &streams)?;
        // Stages that belong to rows give answers.
        if graph.of_kind(stage).any(|node| node.row.is_some()) {
            let classes = planned_classes(config, images.as_ref().map(|images| images.pool.classes()))?;
            check_run_price(config, self.options, &graph, classes)?;
            check(&store, config, &recorder)?;
        }
        let truth = Truth::for_run(config, images.as_ref())?;
        let context = Context {
            config,
            store: &store,
            images: images.as_ref(),
            truth: truth.as_ref(),
            streams,
            threads: self.options.threads,
            device: &device,
            arithmetic: &environment.arithmetic,
            mix_machines: self.options.mix_machines,
            latency_wait: self.options.latency_wait,
            progress: &recorder,
        };
        let earlier = || StageMark::of_done(&store, graph.before(stage));
        let read = earlier();
        let done = share(&context, &graph, stage, &mut self.units);
        // The marks were read before the stages' outputs, except for the stages that the shard waited for.
        let waited_for = earlier().into_iter().filter(|mark| read.iter().all(|other| !other.is_of_same_folder(mark)));
        self.units.marks.extend(waited_for);
        self.units.marks.extend(read);
        drop(truth);
        self.images = Some((config, images));
        done
    }

    /// Returns the images of a run: the images of the last run if both runs use the same images.
    fn images(&mut self, config: &Config, streams: &Streams) -> Result<Option<Images>, ExperimentError> {
        let is_same = |last: &Config| {
            last.data == config.data
                && last.seed == config.seed
                && last.ensemble == config.ensemble
                && last.rows == config.rows
        };
        match self.images.take() {
            Some((last, images)) if is_same(last) => Ok(images),
            _ => Images::load(config, streams, self.options.datasets.as_deref()),
        }
    }
}

/// Reads the outputs that the units of the kind `stage` depend on, and does the shard's units.
fn share(context: &Context<'_>, graph: &Graph, stage: &str, units: &mut ShardUnits) -> Result<(), ExperimentError> {
    let mut outputs = Outputs::default();
    for node in graph.up_to(stage)? {
        if node.kind.name() == stage {
            node.kind.share(context, node, &mut outputs, units)?;
        } else if node.kind.is_needed_by_shards() {
            node.kind.complete(context, node, &mut outputs)?;
        }
    }
    Ok(())
}
