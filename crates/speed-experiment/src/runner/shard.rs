//! A shard: a share of one stage's units, in one process of many.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;
use speed_random::Streams;

use super::steps::{ask, courses, label_rows, question, record_images};
use crate::config::{Config, ConfigError, Sweep};
use crate::device::Device;
use crate::environment::Environment;
use crate::error::ExperimentError;
use crate::ledger::check;
use crate::options::RunOptions;
use crate::plan::check_run_price;
use crate::progress::{Progress, Recorder};
use crate::stages::{
    Context, Divided, Images, Keys, LabellingStage, StageName, StageNames, StudentShare, TeachersStage, do_share,
    identity, planned_classes,
};
use crate::store::{Identity, RunStore, ShardMark, StageMark, SweepStore, is_called, shard_progress_path};
use crate::sweep::sweep_id;

/// A share of one stage's units: of units 0, 1, 2, ... those that leave `number - 1` when divided by `of`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    kind: Kind,
    number: usize,
    of: usize,
}

/// The stages that divide into units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Teachers,
    Aggregate,
    Student,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Teachers, Self::Aggregate, Self::Student];

    fn name(self) -> &'static str {
        match self {
            Self::Teachers => "teachers",
            Self::Aggregate => "aggregate",
            Self::Student => "student",
        }
    }
}

impl Shard {
    /// Reads `--stage STAGE --shard I/N`.
    ///
    /// # Errors
    /// If the stage has no units, or the share is not I of N with 1 <= I <= N.
    pub fn parse(stage: &str, share: &str) -> Result<Self, ConfigError> {
        let refuse = |key: String, message: String| ConfigError::Key { place: "command line".into(), key, message };
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == stage).ok_or_else(|| {
            let message = "with --shard, expected a stage that divides into units: teachers, aggregate or student";
            refuse(format!("--stage {stage}"), message.into())
        })?;
        let numbers = share.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Self { kind, number, of }),
            _ => Err(refuse(format!("--shard {share}"), "expected I/N, whole numbers with 1 <= I <= N".into())),
        }
    }

    /// Returns the name of its files.
    fn name(&self) -> String {
        format!("{}-{}-of-{}", self.kind.name(), self.number, self.of)
    }

    fn has(&self, unit: usize) -> bool {
        unit % self.of == self.number - 1
    }
}

/// The work of a shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShardReport {
    /// The folder of the run, or of the sweep.
    pub folder: PathBuf,
    /// The stage, by its kind.
    pub stage: String,
    /// The shard's number, from 1.
    pub shard: usize,
    /// How many shards there are.
    pub of: usize,
    /// Units of the shard; all of them are done. None where an earlier process of this shard left word that they are.
    pub units: Option<usize>,
    /// Those that this process did.
    pub done_here: usize,
}

/// Does a share of one stage's units in every run of `configs`, which are one config or the settings of a `sweep`: each unit once,
/// whichever of them have it.
///
/// # Errors
/// See [`ExperimentError`]; also if an earlier stage is not done, or the stage's folder holds something else.
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
        stage: shard.kind.name().to_owned(),
        shard: shard.number,
        of: shard.of,
        units,
        done_here,
    };
    for config in configs {
        StageNames::of(config).last_called(shard.kind.name())?;
    }
    let all_done =
        |config: &&Config| ShardMark::all_hold(&RunStore::folder_of(&options.results, config), shard.kind.name());
    if ShardMark::holds(&folder, &shard.name()) || configs.iter().all(all_done) {
        return Ok(report(None, 0));
    }
    let mut work = Work {
        shard,
        options,
        progress,
        images: None,
        seen: BTreeSet::new(),
        next: 0,
        units: 0,
        here: 0,
        marks: Vec::new(),
    };
    for config in configs {
        work.in_run(config)?;
    }
    let (units, here) = (work.units, work.here);
    ShardMark::write(&folder, &shard.name(), work.marks)?;
    Ok(report(Some(units), here))
}

/// Leaves word for shards, in the folder of a run, of which stages' units all are done: those up to `last`, or all.
///
/// # Errors
/// If the disk refuses.
pub(super) fn leave_word(
    store: &RunStore,
    names: &StageNames,
    last: Option<&StageName>,
) -> Result<(), ExperimentError> {
    let place = |name: &StageName| names.all().position(|other| other == name);
    let end = last.map_or(usize::MAX, |last| place(last).unwrap_or_default());
    // Those that divide, and the queries, which are made in one piece before some of them.
    for kind in Kind::ALL.map(Kind::name).into_iter().chain([&*names.queries]) {
        let done = names.last_called(kind).ok().and_then(place);
        if done.is_some_and(|done| done <= end) {
            ShardMark::write_all(store, kind, before(names, kind))?;
        }
    }
    Ok(())
}

/// Returns the names of the stages before the first one of a kind: what they leave is what its units are made from.
fn before(names: &StageNames, kind: &str) -> Vec<String> {
    names.all().map(ToString::to_string).take_while(|name| !is_called(name, kind)).collect()
}

/// Returns the numbers, from 1, of those of `of` shards of a stage that have not left their word that all is done, in the folder of a run or
/// of a sweep of `runs`.
///
/// # Errors
/// If the stage has no units.
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

/// Returns the folder of a run, or that of a sweep.
pub(crate) fn folder_of(configs: &[&Config], sweep: Option<&Sweep>, results: &Path) -> PathBuf {
    match (sweep, configs.first()) {
        (Some(sweep), Some(config)) => SweepStore::folder_of(results, &config.name, &sweep_id(sweep)),
        (None, Some(config)) => RunStore::folder_of(results, config),
        (_, None) => results.to_path_buf(),
    }
}

/// The work of a shard in one run after the other.
struct Work<'a> {
    shard: &'a Shard,
    options: &'a RunOptions,
    progress: &'a dyn Progress,
    /// The images of the last run, with its config: most settings of a sweep have the same.
    images: Option<(&'a Config, Option<Images>)>,
    /// Stages whose units have numbers.
    seen: BTreeSet<(String, String)>,
    /// The number of the next unit.
    next: usize,
    units: usize,
    here: usize,
    marks: Vec<StageMark>,
}

impl<'a> Work<'a> {
    fn in_run(&mut self, config: &'a Config) -> Result<(), ExperimentError> {
        let names = StageNames::of(config);
        let _arithmetic = config.arithmetic.hold()?;
        let device = Device::open(config.device)?;
        let environment = Environment::current(&device.name);
        let store = RunStore::join(&self.options.results, config, self.options.mix_machines)?;
        let recorder = Recorder::new(self.progress, shard_progress_path(store.folder(), &self.shard.name()));
        recorder.planned(&[self.shard.kind.name().to_owned()]);
        let streams = Streams::new(config.seed);
        let images = self.images(config, &streams)?;
        if self.shard.kind == Kind::Aggregate {
            let classes = planned_classes(config, images.as_ref().map(|images| images.pool.classes()))?;
            check_run_price(config, self.options, &names, classes)?;
        }
        let context = Context {
            config,
            store: &store,
            streams,
            threads: self.options.threads,
            device: &device,
            arithmetic: &environment.arithmetic,
            mix_machines: self.options.mix_machines,
            latency_wait: self.options.latency_wait,
            progress: &recorder,
        };
        let earlier = || StageMark::of_done(&store, before(&names, self.shard.kind.name()));
        let read = earlier();
        let done = self.share(&context, &names, images.as_ref());
        self.images = Some((config, images));
        // As they were when they were read; others may have been waited for.
        let waited_for = earlier().into_iter().filter(|mark| read.iter().all(|other| !other.is_of_same_folder(mark)));
        self.marks.extend(waited_for);
        self.marks.extend(read);
        done
    }

    /// Returns the images of a run, those of the last one where they are the same.
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

    fn share(
        &mut self,
        context: &Context<'_>,
        names: &StageNames,
        images: Option<&Images>,
    ) -> Result<(), ExperimentError> {
        match self.shard.kind {
            Kind::Teachers => {
                record_images(context, names, images)?;
                let (Some(name), Some(images)) = (&names.teachers, images) else { return Ok(()) };
                self.divide(context, &TeachersStage { name, images })
            }
            Kind::Aggregate => {
                check(context.store, context.config, context.progress)?;
                let Some(asked) = ask(context, names, images, None)? else { return Ok(()) };
                let keys = Keys::default();
                names.rows.iter().try_for_each(|stages| {
                    let question = question(&asked, &context.config.rows[stages.row]);
                    self.divide(context, &LabellingStage::new(&stages.labelling, question, &keys))
                })
            }
            Kind::Student => self.train_students(context, names, images),
        }
    }

    fn train_students(
        &mut self,
        context: &Context<'_>,
        names: &StageNames,
        images: Option<&Images>,
    ) -> Result<(), ExperimentError> {
        let (Some(student), Some(images)) = (&names.students, images) else { return Ok(()) };
        let Some(asked) = ask(context, names, Some(images), None)? else { return Ok(()) };
        let Some(rows) = label_rows(context, names, &asked, None)? else { return Ok(()) };
        let courses = courses(context.config, &asked.queries, &rows);
        let students = StudentShare::new(context, student, images, &courses)?;
        let identities = students.identities();
        let mine: Vec<usize> =
            (0..identities.len()).filter(|&unit| !self.number(&identities[unit], 1).is_empty()).collect();
        self.here += students.train(&mine)?;
        // Of the first kind of machine, where another began some of them in the meantime.
        let identities = students.identities();
        let marks = mine.iter().map(|&unit| StageMark::of(context.store, &identities[unit], Vec::new()));
        self.marks.extend(marks);
        Ok(())
    }

    /// Does the shard's units of a stage, unless another run had it before.
    fn divide<S: Divided>(&mut self, context: &Context<'_>, stage: &S) -> Result<(), ExperimentError> {
        let identity = identity(context, stage)?;
        let mine = self.number(&identity, stage.units(context));
        if mine.is_empty() {
            return Ok(());
        }
        let (here, identity) = do_share(context, stage, identity, &mine)?;
        self.here += here;
        let files = mine.iter().flat_map(|&unit| stage.files(unit)).collect();
        self.marks.push(StageMark::of(context.store, &identity, files));
        Ok(())
    }

    /// Numbers the units of a stage, unless another run had it before, and returns those of the shard.
    fn number(&mut self, identity: &Identity, units: usize) -> Vec<usize> {
        if !self.seen.insert((identity.kind.clone(), identity.fingerprint.to_hex())) {
            return Vec::new();
        }
        let mine: Vec<usize> = (0..units).filter(|unit| self.shard.has(self.next + unit)).collect();
        self.next += units;
        self.units += mine.len();
        mine
    }
}
