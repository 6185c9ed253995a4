//! The training of the students, one for each distinct set of labels and repeat. One training runs on each thread.

mod record;
mod session;
mod stage;
mod student;

pub(crate) use record::{EpochAccuracy, METRICS, PICTURE, StudentRun, read_epochs};
pub(crate) use student::{Course, Labelled};

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};

use self::student::Student;
use super::complete::{identified, identify, perform};
use super::context::Context;
use super::data::Images;
use super::names::StudentNames;
use super::sharing::{Pace, Units, share};
use crate::error::ExperimentError;
use crate::store::Identity;

/// The trained students of a run.
#[derive(Default)]
pub(crate) struct Students(Vec<StudentRun>);

impl Students {
    /// Trains every student that is not trained yet.
    ///
    /// # Errors
    /// If a training fails; the first error stops the others at their next epoch.
    pub(crate) fn train(
        context: &Context<'_>,
        names: &StudentNames,
        images: &Images,
        courses: &[Course<'_>],
    ) -> Result<Self, ExperimentError> {
        let work = Training::new(context, distinct(context, names, images, courses))?;
        work.train(names, &(0..work.stages.len()).collect::<Vec<_>>())?;
        Ok(Self(work.into_runs()))
    }

    /// Returns the students of one course, one per repeat.
    pub(crate) fn of(&self, names: &StudentNames, course: &Course<'_>, repeats: usize) -> Vec<StudentRun> {
        let find = |repeat| self.0.iter().find(|run| run.stage == *course.stage_name(names, repeat)).cloned();
        (0..repeats).filter_map(find).collect()
    }
}

/// Returns the distinct students of all courses.
fn distinct<'a>(
    context: &Context<'_>,
    names: &StudentNames,
    images: &'a Images,
    courses: &'a [Course<'a>],
) -> Vec<Student<'a>> {
    let mut stages: Vec<Student<'_>> = Vec::new();
    for course in courses.iter().filter(|course| !course.is_empty()) {
        for repeat in 0..context.config.table.repeats {
            let stage = Student::new(names, images, course, repeat);
            if stages.iter().all(|other| !other.is_same(&stage)) {
                stages.push(stage);
            }
        }
    }
    stages
}

/// The name of a student's lease in its folder.
const LEASE: &str = "student";

/// The training of students; each student is a unit of work and a separate stage.
struct Training<'a> {
    context: &'a Context<'a>,
    stages: Vec<Student<'a>>,
    /// The identities of the students. If another kind of machine has begun a student, the identity names that kind.
    identities: Mutex<Vec<Identity>>,
    runs: Mutex<Vec<StudentRun>>,
}

impl<'a> Training<'a> {
    fn new(context: &'a Context<'a>, stages: Vec<Student<'a>>) -> Result<Self, ExperimentError> {
        let identities: Vec<Identity> =
            stages.iter().map(|stage| identify(context, stage)).collect::<Result<_, _>>()?;
        Ok(Self { context, stages, identities: identities.into(), runs: Mutex::default() })
    }

    /// Ensures that these students are trained, and returns how many this process trained.
    fn train(&self, names: &StudentNames, units: &[usize]) -> Result<usize, ExperimentError> {
        let Context { progress, threads, .. } = self.context;
        let epochs = units.iter().map(|&unit| u64::from(self.stages[unit].epochs(self.context))).sum();
        progress.started(names.kind());
        progress.begin(&format!("train {} students", units.len()), "epochs", epochs, 0);
        let done = share(self.context, units, Pace { threads: threads.get(), batch: 1 }, self)?;
        progress.end(&format!("{} students trained", units.len()));
        progress.finished(names.kind(), false);
        Ok(done)
    }

    fn identities(&self) -> MutexGuard<'_, Vec<Identity>> {
        self.identities.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn identity(&self, unit: usize) -> Identity {
        self.identities()[unit].clone()
    }

    fn keep(&self, run: StudentRun) {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).push(run);
    }

    fn into_runs(self) -> Vec<StudentRun> {
        self.runs.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn perform(&self, unit: usize, stop: &AtomicBool) -> Result<(), ExperimentError> {
        let stage = self.stages[unit].until(stop, (unit + 1, self.stages.len()));
        self.keep(perform(self.context, &stage)?);
        Ok(())
    }
}

impl Units for Training<'_> {
    fn place(&self, unit: usize) -> Result<(PathBuf, String), ExperimentError> {
        let place = |identity: &Identity| self.context.store.place_of(identity);
        let (folder, identity) = identified(self.context, &self.stages[unit], self.identity(unit), place)?;
        self.identities()[unit] = identity;
        Ok((folder, LEASE.to_owned()))
    }

    fn take(&self, unit: usize) -> Result<bool, ExperimentError> {
        let is_done = self.context.store.done(&self.identity(unit)).is_some();
        if is_done {
            self.perform(unit, &AtomicBool::new(false))?;
        }
        Ok(is_done)
    }

    fn work(&self, units: &[usize], stop: &AtomicBool) -> Result<(), ExperimentError> {
        units.iter().try_for_each(|&unit| self.perform(unit, stop))
    }
}

/// The students of a run, for shards.
pub(crate) struct StudentShare<'a> {
    names: &'a StudentNames,
    work: Training<'a>,
}

impl<'a> StudentShare<'a> {
    /// Finds the distinct students of the courses.
    ///
    /// # Errors
    /// If inputs cannot be read.
    pub(crate) fn new(
        context: &'a Context<'a>,
        names: &'a StudentNames,
        images: &'a Images,
        courses: &'a [Course<'a>],
    ) -> Result<Self, ExperimentError> {
        Ok(Self { names, work: Training::new(context, distinct(context, names, images, courses))? })
    }

    /// Returns the identity of each student, as currently known.
    pub(crate) fn identities(&self) -> Vec<Identity> {
        self.work.identities().clone()
    }

    /// Ensures that these students are trained, and returns how many this process trained.
    ///
    /// # Errors
    /// If a training fails.
    pub(crate) fn train(&self, units: &[usize]) -> Result<usize, ExperimentError> {
        self.work.train(self.names, units)
    }
}
