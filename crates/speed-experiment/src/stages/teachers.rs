//! Training of the private ensemble: one unit of work per teacher, each saved when it is finished.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use speed_data::Split;
use speed_nn::threads;
use speed_teacher::{EnsembleTraining, TeacherConfig, TeacherMetrics, Unknown, train_member};

use super::complete::complete;
use super::context::Context;
use super::images::Images;
use super::kind::{Kind, Units};
use super::stage::{Stage, StageFacts};
use super::units::StageUnits;
use crate::config::{Config, VotesSource};
use crate::cost::StageCost;
use crate::error::ExperimentError;
use crate::report::csv;
use crate::store::{Fingerprint, FinishedStage, StageFolder, part_of_stage, unit_payload};

pub(crate) const TEACHERS: &str = "teachers";

/// The key of the version of the architecture among the inputs.
const VERSION: &str = "architecture_version";

const METRICS: &str = "metrics.csv";
const METRICS_HEAD: [&str; 7] = ["teacher", "images", "steps", "final_loss", "train_accuracy", "seconds", "arithmetic"];

pub(super) static TEACHER_TRAINING: Kind = Kind {
    units: Some(Units {
        name: "teachers",
        count: |config, _| if trains_teachers(config) { config.ensemble.teachers } else { 0 },
        are_serial: true,
        work: |context, node, _, shard| {
            let Some(images) = context.images() else { return Ok(()) };
            let stage = TeachersStage { name: &node.name, images };
            shard.work_on(context, &stage, node.units(context.config), |folder, own| {
                let done = Training::new(&stage, context, folder).train(own.to_vec())?;
                context.progress.end(&format!("{} teachers trained", own.len()));
                Ok(done)
            })
        },
        found: |run, config, node, _| Some(StageUnits::in_stage(run, &node.name, config.ensemble.teachers, unit)),
    }),
    cost: |config, meter| {
        let Some(teacher) = meter.teacher(config)? else { return Ok(Vec::new()) };
        let steps = (config.ensemble.teachers * config.teacher.steps) as f64;
        let (core_seconds, memory_bytes) = (Some(steps * teacher.step), meter.threads() * teacher.memory_bytes);
        Ok(vec![StageCost { stage: TEACHERS, kind: TEACHERS.to_owned(), core_seconds, memory_bytes }])
    },
    ..Kind::new(
        TEACHERS,
        |config, _| trains_teachers(config),
        |context, node, outputs| {
            if let Some(images) = context.images() {
                outputs.put(complete(context, &TeachersStage { name: &node.name, images })?);
            }
            Ok(())
        },
    )
};

fn trains_teachers(config: &Config) -> bool {
    config.votes.source == VotesSource::Teachers
}

struct TeachersStage<'a> {
    name: &'a str,
    images: &'a Images,
}

pub(crate) struct TrainedTeachers(FinishedStage);

impl TrainedTeachers {
    pub(super) fn hash(&self) -> Fingerprint {
        self.0.outputs_hash()
    }

    pub(super) fn weights(&self, teacher: usize) -> Result<Vec<u8>, ExperimentError> {
        self.0.read(&unit_payload(&unit(teacher)))
    }
}

/// Returns whether the teachers of the run in the directory `run` have this version of their architecture, according to the
/// inputs of their stage.
pub(crate) fn is_version_of_teachers(run: &Path, version: u32) -> bool {
    part_of_stage(run, TEACHERS, VERSION) == Some(Fingerprint::of(&json!(version)))
}

fn unit(teacher: usize) -> String {
    format!("teacher-{teacher:04}")
}

impl Stage for TeachersStage<'_> {
    type Output = TrainedTeachers;

    fn facts(&self) -> StageFacts<'_> {
        StageFacts { version: 7, depends_on_machine: true, is_read_by_shards: false, ..StageFacts::new(self.name) }
    }

    fn inputs(&self, context: &Context<'_>) -> Result<Value, ExperimentError> {
        let config = context.config;
        Ok(json!({
            "images": self.images.divided_digest(),
            "teachers": config.ensemble.teachers,
            // `unknown` affects votes only, so another value does not train the teachers again.
            "teacher": TeacherConfig { unknown: Unknown::default(), ..config.teacher.clone() },
            VERSION: config.teacher.architecture.version(),
            "device": context.device.fingerprint,
            "seed": config.seed,
        }))
    }

    fn run(&self, context: &Context<'_>, folder: &mut StageFolder) -> Result<Vec<String>, ExperimentError> {
        let teachers = context.config.ensemble.teachers;
        let work = Training::new(self, context, folder);
        let done = work.train((0..teachers).collect())?;
        let metrics = work.metrics_csv()?;
        folder.resumed(teachers - done);
        folder.write(METRICS, metrics.as_bytes())?;
        context.progress.end(&format!("{teachers} teachers trained"));
        Ok((0..teachers).map(|teacher| unit_payload(&unit(teacher))).collect())
    }

    fn load(&self, _: &Context<'_>, done: &FinishedStage) -> Result<TrainedTeachers, ExperimentError> {
        Ok(TrainedTeachers(done.clone()))
    }
}

/// The training of teachers; each teacher is a unit of work.
struct Training<'a> {
    context: &'a Context<'a>,
    folder: &'a StageFolder,
    train: &'a Split,
    parts: &'a [Range<usize>],
    done: Mutex<BTreeMap<usize, Done>>,
}

/// A finished teacher, and the kind of machine that trained it.
type Done = (TeacherMetrics, String);

impl<'a> Training<'a> {
    fn new(stage: &TeachersStage<'a>, context: &'a Context<'a>, folder: &'a StageFolder) -> Self {
        let Images { train, parts, .. } = stage.images;
        Self { context, folder, train, parts, done: Mutex::default() }
    }

    fn done(&self) -> MutexGuard<'_, BTreeMap<usize, Done>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ensures that these teachers are trained, and returns how many this process trained.
    fn train(&self, units: Vec<usize>) -> Result<usize, ExperimentError> {
        let (context, threads) = (self.context, self.context.threads.get());
        // Saved teachers are read concurrently.
        threads::for_each(&units, threads, |&teacher, _| {
            let found = self.folder.read_unit(&unit(teacher));
            self.done().extend(found.map(|found| (teacher, found)));
            Ok::<_, ExperimentError>(())
        })?;
        let (all, there) = (units.len() as u64, self.done().len() as u64);
        context.progress.begin("train teachers", "teachers", all, there);
        let todo: Vec<usize> = units.into_iter().filter(|teacher| !self.done().contains_key(teacher)).collect();
        threads::for_each(&todo, threads, |&teacher, stop| self.train_one(teacher, stop))?;
        Ok(todo.len())
    }

    /// Trains and saves a teacher. The training ends early once `stop` is true.
    fn train_one(&self, teacher: usize, stop: &AtomicBool) -> Result<(), ExperimentError> {
        let Context { config, streams, device, arithmetic, .. } = self.context;
        let training = EnsembleTraining {
            config: &config.teacher,
            data: self.train,
            partitions: self.parts,
            streams,
            device: &device.burn,
        };
        let trained = train_member(&training, teacher, stop)?;
        let metrics = trained.metrics;
        self.folder.write_unit(&unit(teacher), &trained.teacher.to_bytes()?, false, arithmetic, &metrics)?;
        self.done().insert(teacher, (metrics, (*arithmetic).to_owned()));
        let figure = format!(": fits {:.1} % of its images", 100.0 * metrics.train_accuracy);
        let figure = self.context.unless_secret(figure);
        self.context.progress.advance(1, &format!("teacher {teacher} is trained{figure}"));
        Ok(())
    }

    fn metrics_csv(&self) -> Result<String, ExperimentError> {
        let done = self.done();
        let lines = self.parts.iter().enumerate().map(|(teacher, part)| {
            let lost = || ExperimentError::fault(format_args!("teacher {teacher} was saved and cannot be read back"));
            let (metrics, arithmetic) = done.get(&teacher).ok_or_else(lost)?;
            Ok(vec![
                teacher.to_string(),
                part.len().to_string(),
                metrics.steps.to_string(),
                metrics.final_loss.to_string(),
                metrics.train_accuracy.to_string(),
                format!("{:.3}", metrics.seconds),
                arithmetic.clone(),
            ])
        });
        let lines: Result<Vec<Vec<String>>, ExperimentError> = lines.collect();
        Ok(csv::write(METRICS_HEAD, lines?))
    }
}
