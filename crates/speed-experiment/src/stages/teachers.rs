//! Training of the private ensemble: one unit of work per teacher, each saved when it is finished.

use std::ops::Range;

use serde_json::{Value, json};
use speed_data::partition;
use speed_teacher::{TeacherMetrics, TrainedTeacher, train_ensemble};

use super::context::Context;
use super::data::Images;
use super::names::StageName;
use super::stage::Stage;
use crate::csv;
use crate::error::{ExperimentError, Mismatch};
use crate::store::{Fingerprint, FinishedStage, StageFolder, unit_payload};

/// Metrics of all teachers; holds times.
const METRICS: &str = "metrics.csv";
const METRICS_HEAD: [&str; 7] =
    ["teacher", "images", "steps", "final_loss", "train_accuracy", "validation_accuracy", "seconds"];

/// The training of the ensemble.
pub(crate) struct TeachersStage<'a> {
    pub(crate) name: &'a StageName,
    pub(crate) images: &'a Images,
}

/// The trained ensemble, as it lies in its stage.
pub(crate) struct TrainedTeachers(FinishedStage);

impl TrainedTeachers {
    /// Returns one hash over all teachers.
    pub(super) fn hash(&self) -> Fingerprint {
        self.0.outputs_hash()
    }

    /// Reads the weights of one teacher.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn weights(&self, teacher: usize) -> Result<Vec<u8>, ExperimentError> {
        self.0.read(&unit_payload(&unit(teacher)))
    }
}

/// Returns the name, without ending, of a teacher's weights and metrics.
fn unit(teacher: usize) -> String {
    format!("teacher-{teacher:04}")
}

impl Stage for TeachersStage<'_> {
    type Output = TrainedTeachers;

    fn name(&self) -> &StageName {
        self.name
    }

    fn code_version(&self) -> u32 {
        6
    }

    fn depends_on_machine(&self) -> bool {
        true
    }

    fn inputs(&self, context: &Context<'_>) -> Result<Value, ExperimentError> {
        let config = context.config;
        let mut inputs = json!({
            "images": Images::digest(&self.images.train),
            "teachers": config.ensemble.teachers,
            "teacher": config.teacher,
            "seed": config.seed,
        });
        // Absent for what is usual, so that a later version can still find it.
        if config.teacher.architecture.version() != 1 {
            inputs["architecture_version"] = json!(config.teacher.architecture.version());
        }
        if let Some(name) = context.device.fingerprint {
            inputs["device"] = json!(name);
        }
        Ok(inputs)
    }

    fn run(&self, context: &Context<'_>, folder: &mut StageFolder) -> Result<Vec<String>, ExperimentError> {
        let (config, train) = (&context.config.teacher, &self.images.train);
        let teachers = context.config.ensemble.teachers;
        let partitions = partition::blocks(train.len(), teachers)?;
        let todo: Vec<usize> =
            (0..teachers).filter(|i| folder.read_unit::<TeacherMetrics>(&unit(*i)).is_none()).collect();
        folder.resumed(teachers - todo.len());
        context.progress.begin("train teachers", "teachers", teachers as u64, (teachers - todo.len()) as u64);
        let finished = |trained: TrainedTeacher| -> Result<(), ExperimentError> {
            let weights = trained.teacher.to_bytes()?;
            folder.write_unit(&unit(trained.index), &weights, &trained.metrics)?;
            let note =
                format!("teacher {} fits {:.1} % of its images", trained.index, 100.0 * trained.metrics.train_accuracy);
            context.progress.advance(1, &note);
            Ok(())
        };
        let streams = &context.streams;
        let (device, threads) = (&context.device.burn, context.threads.get());
        train_ensemble(config, train, &partitions, &todo, streams, device, threads, &finished)?;
        folder.write(METRICS, metrics_csv(folder, &partitions)?.as_bytes())?;
        context.progress.end(&format!("{teachers} teachers trained"));
        Ok((0..teachers).map(|teacher| unit_payload(&unit(teacher))).collect())
    }

    fn load(&self, _: &Context<'_>, done: &FinishedStage) -> Result<TrainedTeachers, ExperimentError> {
        Ok(TrainedTeachers(done.clone()))
    }
}

fn metrics_csv(folder: &StageFolder, partitions: &[Range<usize>]) -> Result<String, ExperimentError> {
    let lines = partitions.iter().enumerate().map(|(teacher, partition)| {
        let (_, unit) = folder.read_unit::<TeacherMetrics>(&unit(teacher)).ok_or(Mismatch::LostTeacher { teacher })?;
        Ok(vec![
            teacher.to_string(),
            partition.len().to_string(),
            unit.steps.to_string(),
            unit.final_loss.to_string(),
            unit.train_accuracy.to_string(),
            unit.validation_accuracy.map_or_else(String::new, |accuracy| accuracy.to_string()),
            format!("{:.3}", unit.seconds),
        ])
    });
    let lines: Result<Vec<Vec<String>>, ExperimentError> = lines.collect();
    Ok(csv::write(METRICS_HEAD, lines?))
}
