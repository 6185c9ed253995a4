//! Training of the private ensemble: one unit of work a teacher, each saved when it is finished.

use serde_json::json;
use speed_batched::{Accelerator, train_teachers};
use speed_data::partition;
use speed_teacher::{Architecture, TeacherMetrics, TrainedTeacher, train_ensemble};

use super::{Context, Images};
use crate::ExperimentError;
use crate::device::Device;
use crate::store::Stage;

const CODE_VERSION: u32 = 4;

/// File name, without ending, of a teacher's weights and metrics.
pub(super) fn unit(teacher: usize) -> String {
    format!("teacher-{teacher:04}")
}

/// Trains the teachers that are not there yet.
pub(crate) fn train(context: &Context<'_>, images: &Images) -> Result<Stage, ExperimentError> {
    let config = context.config;
    let teachers = config.ensemble.teachers;
    let partitions = partition::blocks(images.train.len(), teachers)?;
    let together = match context.device {
        Device::Together(accelerator, name) if config.teacher.architecture == Architecture::Small => {
            Some((accelerator, name))
        }
        _ => None,
    };
    let mut inputs = json!({
        "images": Images::digest(&images.train),
        "teachers": teachers,
        "teacher": config.teacher,
        "seed": config.seed,
    });
    if let Some((_, name)) = together {
        inputs["device"] = json!(name);
    }
    let inputs = context.with_arithmetic("teachers", CODE_VERSION, inputs)?;
    context.stage("teachers", CODE_VERSION, &inputs, |folder| {
        context.note_arithmetic(folder)?;
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
        let (train, streams, threads) = (&images.train, &context.streams, context.threads);
        match together {
            Some((Accelerator { device, .. }, _)) => {
                train_teachers(&config.teacher, train, &partitions, &todo, streams, device, &mut &finished)?;
            }
            None => train_ensemble(&config.teacher, train, &partitions, &todo, streams, threads, &finished)?,
        }
        let mut metrics = String::from("teacher,images,steps,final_loss,train_accuracy,validation_accuracy,seconds\n");
        for (teacher, partition) in partitions.iter().enumerate() {
            let Some((_, unit)) = folder.read_unit::<TeacherMetrics>(&unit(teacher)) else {
                return Err(ExperimentError::Mismatch(format!("teacher {teacher} was saved and cannot be read back")));
            };
            let validation = unit.validation_accuracy.map_or_else(String::new, |accuracy| accuracy.to_string());
            metrics.push_str(&format!(
                "{teacher},{},{},{},{},{validation},{:.3}\n",
                partition.len(),
                unit.steps,
                unit.final_loss,
                unit.train_accuracy,
                unit.seconds
            ));
        }
        folder.write("metrics.csv", metrics.as_bytes())?;
        context.progress.end(&format!("{teachers} teachers trained"));
        Ok((0..teachers).map(|teacher| format!("{}.bin", unit(teacher))).collect())
    })
}
