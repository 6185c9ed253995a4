//! The work of a shard: its share of one stage's units, in one run or in the runs of a sweep.

use std::path::PathBuf;
use std::sync::OnceLock;

use serde::Serialize;
use speed_core::random::Streams;

use crate::config::{Config, Sweep};
use crate::device::Device;
use crate::environment::current_environment;
use crate::error::ExperimentError;
use crate::ledger::check;
use crate::options::RunOptions;
use crate::plan::check_run_price;
use crate::progress::Progress;
use crate::stages::{Context, Graph, Images, KINDS, Outputs, ShardUnits, Truth, kind_with_units, planned_classes};
use crate::store::{RunStore, Shard};
use crate::sweep::folder_of;

impl Shard {
    /// Reads `--stage STAGE --shard I/N`.
    ///
    /// # Errors
    /// If the stage has no units, or the share is not I of N with 1 <= I <= N.
    pub fn parse(stage: &str, share: &str) -> Result<Self, ExperimentError> {
        let kind = kind_with_units(stage).ok_or_else(|| {
            let with_units = KINDS.iter().filter(|kind| kind.units.is_some());
            let names: Vec<&str> = with_units.map(|kind| kind.name).collect();
            let message = format!("with --shard, expected a stage that has units: {}", names.join(", "));
            ExperimentError::option(format_args!("--stage {stage}"), message)
        })?;
        let numbers = share.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Self { stage: kind.name.to_owned(), number, of }),
            _ => {
                let expected = "expected I/N, integers with 1 <= I <= N";
                Err(ExperimentError::option(format_args!("--shard {share}"), expected))
            }
        }
    }
}

/// The report of a shard's work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShardReport {
    /// The directory of the run or of the sweep.
    pub folder: PathBuf,
    /// The shard.
    #[serde(flatten)]
    pub shard: Shard,
    /// The number of units of the shard, all of which are done.
    pub units: usize,
    /// Number of units that this process did.
    pub done_here: usize,
}

/// Does a share of one stage's units in a run, or in every run of a sweep. A unit that several settings share is done once.
///
/// # Errors
/// [`ExperimentError`], for example if an earlier stage is not done, the stage's directory has other content, or another
/// process does the same units.
pub fn run_shard(
    sweep: &Sweep,
    options: &RunOptions,
    shard: &Shard,
    progress: &dyn Progress,
) -> Result<ShardReport, ExperimentError> {
    for config in sweep.configs() {
        Graph::for_config(config).up_to(&shard.stage)?;
    }
    let mut process = ShardProcess { shard, options, progress, images: None, units: ShardUnits::new(shard) };
    for config in sweep.configs() {
        process.work_in_run(config)?;
    }
    let ShardUnits { units, done_here, .. } = process.units;
    let folder = folder_of(sweep, &options.results);
    Ok(ShardReport { folder, shard: shard.clone(), units, done_here })
}

struct ShardProcess<'a> {
    shard: &'a Shard,
    options: &'a RunOptions,
    progress: &'a dyn Progress,
    /// The images of the last run, with its config, because most settings of a sweep use the same images.
    images: Option<(&'a Config, Option<Images>)>,
    units: ShardUnits<'a>,
}

impl<'a> ShardProcess<'a> {
    fn work_in_run(&mut self, config: &'a Config) -> Result<(), ExperimentError> {
        let graph = Graph::for_config(config);
        let stage = self.shard.stage.as_str();
        let _arithmetic = config.arithmetic.hold()?;
        let device = Device::open(config.device)?;
        let environment = current_environment(&device.name);
        let store = RunStore::join(&self.options.results, config, self.shard.clone(), self.options.mix_machines);
        self.progress.planned(&[stage.to_owned()]);
        let streams = Streams::new(config.seed);
        let images = self.images(config, &streams)?;
        // Stages that belong to rows give answers.
        if graph.of_kind(stage).any(|node| node.row.is_some()) {
            let classes = planned_classes(config, images.as_ref().map(|images| images.pool.classes()))?;
            check_run_price(config, self.options, &graph, classes)?;
            check(&store, config, self.progress)?;
        }
        let truth = Truth::for_run(config, images.as_ref())?;
        let context = Context {
            config,
            store: &store,
            pictures: images.as_ref(),
            vectors: OnceLock::new(),
            truth: truth.as_ref(),
            streams,
            threads: self.options.threads,
            device: &device,
            arithmetic: &environment.arithmetic,
            mix_machines: self.options.mix_machines,
            latency_wait: self.options.latency_wait,
            progress: self.progress,
        };
        let done = do_units(&context, &graph, stage, &mut self.units);
        drop(truth);
        self.images = Some((config, images));
        done
    }

    /// Returns the images of a run: the images of the last run if both runs use the same images.
    fn images(&mut self, config: &Config, streams: &Streams) -> Result<Option<Images>, ExperimentError> {
        let is_same = |last: &Config| {
            last.data == config.data
                && last.features == config.features
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
fn do_units(
    context: &Context<'_>,
    graph: &Graph,
    stage: &str,
    units: &mut ShardUnits<'_>,
) -> Result<(), ExperimentError> {
    let mut outputs = Outputs::default();
    for node in graph.up_to(stage)? {
        if node.kind.name == stage {
            if let Some(of_kind) = &node.kind.units {
                (of_kind.work)(context, node, &mut outputs, units)?;
            }
            units.pass(node.units(context.config));
        } else if node.kind.is_needed_by_shards {
            (node.kind.complete)(context, node, &mut outputs)?;
        }
    }
    Ok(())
}
