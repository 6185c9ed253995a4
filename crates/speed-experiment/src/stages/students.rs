//! Students: one for each distinct set of labels and repeat, as many at a time as there are threads.

mod record;
mod session;
mod stage;
mod student;

pub(crate) use record::{EpochAccuracy, PICTURE, StudentRun, read_epochs};
pub(crate) use student::{Course, Labelled};

use std::sync::{Mutex, PoisonError};

use speed_nn::threads;

use self::student::Student;
use super::complete::complete;
use super::context::Context;
use super::data::Images;
use super::names::StudentNames;
use crate::error::ExperimentError;

/// The trained students of a run.
#[derive(Default)]
pub(crate) struct Students(Vec<StudentRun>);

impl Students {
    /// Trains every student that is not there yet.
    ///
    /// # Errors
    /// If a training fails; the first error stops the others at their next epoch.
    pub(crate) fn train(
        context: &Context<'_>,
        names: &StudentNames,
        images: &Images,
        courses: &[Course<'_>],
    ) -> Result<Self, ExperimentError> {
        let mut stages: Vec<Student<'_>> = Vec::new();
        for course in courses.iter().filter(|course| !course.is_empty()) {
            for repeat in 0..context.config.table.repeats {
                let stage = Student::new(names, images, course, repeat);
                if stages.iter().all(|other| !other.is_same(&stage)) {
                    stages.push(stage);
                }
            }
        }
        let epochs = stages.iter().map(|stage| u64::from(stage.epochs(context))).sum();
        context.progress.started(names.kind());
        context.progress.begin(&format!("train {} students", stages.len()), "epochs", epochs, 0);
        let students = Self(train_all(context, &stages)?);
        context.progress.end(&format!("{} students trained", stages.len()));
        context.progress.finished(names.kind(), false);
        Ok(students)
    }

    /// Returns the students of one course, one per repeat.
    pub(crate) fn of(&self, names: &StudentNames, course: &Course<'_>, repeats: usize) -> Vec<StudentRun> {
        let find = |repeat| self.0.iter().find(|run| run.stage == *course.stage_name(names, repeat)).cloned();
        (0..repeats).filter_map(find).collect()
    }
}

fn train_all(context: &Context<'_>, stages: &[Student<'_>]) -> Result<Vec<StudentRun>, ExperimentError> {
    let finished = Mutex::new(Vec::new());
    threads::for_each(stages, context.threads.get(), |stage, stop| {
        let number = 1 + stages.iter().position(|other| other.is_same(stage)).unwrap_or(0);
        let run = complete(context, &stage.until(stop, (number, stages.len())))?;
        finished.lock().unwrap_or_else(PoisonError::into_inner).push(run);
        Ok(())
    })?;
    Ok(finished.into_inner().unwrap_or_else(PoisonError::into_inner))
}
