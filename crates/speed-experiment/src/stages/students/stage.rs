//! One student: its inputs, its training and its result.

use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};
use speed_random::Streams;
use speed_student::{StudentConfig, StudentError, StudentMethod};

use super::record::{self, StudentRun};
use super::session::{CHECKPOINT, Session};
use super::{gan, pseudo_labels};
use crate::device::Device;
use crate::error::ExperimentError;
use crate::stages::complete::complete;
use crate::stages::context::Context;
use crate::stages::data::Images;
use crate::stages::names::{StageName, StudentNames};
use crate::stages::stage::Stage;
use crate::store::{Fingerprint, FinishedStage, StageFolder};

/// The labels that a row bought, and the queries that have them.
pub(crate) struct Labelled<'a> {
    pub(crate) row: &'a str,
    pub(crate) queries: Vec<usize>,
    pub(crate) labels: Vec<u8>,
}

/// The labels of a row's students, and their method.
pub(crate) struct Course<'a> {
    pub(crate) labelled: Labelled<'a>,
    pub(crate) method: StudentMethod,
}

impl Course<'_> {
    /// Returns the name of a student. Rows with the same labels and method share it: the name holds the labels' hash.
    pub(super) fn stage_name(&self, names: &StudentNames, repeat: usize) -> StageName {
        let hash = Fingerprint::of(&json!([self.labelled.queries, self.labelled.labels]));
        names.of(self.method, hash, repeat)
    }
}

/// The training of one student.
#[derive(Clone)]
pub(super) struct StudentStage<'a> {
    name: StageName,
    pub(super) images: &'a Images,
    course: &'a Course<'a>,
    repeat: usize,
    stop: Option<&'a AtomicBool>,
}

impl<'a> StudentStage<'a> {
    pub(super) fn new(names: &StudentNames, images: &'a Images, course: &'a Course<'a>, repeat: usize) -> Self {
        Self { name: course.stage_name(names, repeat), images, course, repeat, stop: None }
    }

    /// Returns whether another course has the very same student.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.name == other.name
    }

    pub(super) fn method(&self) -> StudentMethod {
        self.course.method
    }

    pub(super) fn row(&self) -> &'a str {
        self.course.labelled.row
    }

    pub(super) fn repeat(&self) -> usize {
        self.repeat
    }

    /// Trains the student, unless it is there, until `stop` turns true.
    pub(super) fn train(&self, context: &Context<'_>, stop: &AtomicBool) -> Result<StudentRun, ExperimentError> {
        complete(context, &StudentStage { stop: Some(stop), ..self.clone() })
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(std::sync::atomic::Ordering::Relaxed))
    }

    pub(super) fn epochs(&self, config: &StudentConfig) -> u32 {
        match self.method() {
            StudentMethod::Gan => config.epochs,
            StudentMethod::PseudoLabels => config.pseudo_labels.epochs,
        }
    }

    /// Returns the queries with their labels.
    pub(super) fn labelled(&self) -> Vec<(usize, u8)> {
        let Labelled { queries, labels, .. } = &self.course.labelled;
        queries.iter().copied().zip(labels.iter().copied()).collect()
    }

    /// Returns this student's own randomness.
    pub(super) fn streams(&self, context: &Context<'_>) -> Streams {
        context.streams.child("student", self.repeat as u64)
    }

    pub(super) fn error(&self, error: StudentError<ExperimentError>) -> ExperimentError {
        match error {
            StudentError::Report(error) => error,
            error => {
                ExperimentError::Student { repeat: self.repeat, row: self.row().to_owned(), source: Box::new(error) }
            }
        }
    }
}

/// Returns the settings that a method reads, for the fingerprint: those of the other change nothing.
fn settings(config: &StudentConfig, method: StudentMethod) -> Value {
    match method {
        StudentMethod::Gan => {
            let mut settings = json!(config);
            if let Some(settings) = settings.as_object_mut() {
                settings.retain(|key, _| key != "method" && key != "pseudo_labels");
            }
            settings
        }
        StudentMethod::PseudoLabels => json!(config.pseudo_labels),
    }
}

impl Stage for StudentStage<'_> {
    type Output = StudentRun;

    fn name(&self) -> &StageName {
        &self.name
    }

    fn code_version(&self) -> u32 {
        2
    }

    fn depends_on_machine(&self) -> bool {
        true
    }

    fn inputs(&self, context: &Context<'_>) -> Result<Value, ExperimentError> {
        let (config, Labelled { queries, labels, .. }) = (context.config, &self.course.labelled);
        let mut inputs = json!({
            "queries": queries,
            "labels": labels,
            "pool": Images::digest(&self.images.pool),
            "test": Images::digest(&self.images.test),
            "student": settings(&config.student, self.method()),
            "seed": config.seed,
            "repeat": self.repeat,
        });
        if let (Device::Together(_, name), StudentMethod::Gan) = (context.device, self.method()) {
            inputs["device"] = json!(name);
        }
        Ok(inputs)
    }

    /// Trains on the processor; a device trains many students as one computation instead.
    fn run(&self, context: &Context<'_>, folder: &mut StageFolder) -> Result<Vec<String>, ExperimentError> {
        let mut session = Session::new(context, self, folder);
        let trained = match self.method() {
            StudentMethod::Gan => gan::train(&mut session)?,
            StudentMethod::PseudoLabels => pseudo_labels::train(&mut session)?,
        };
        let outputs = record::write(folder, &self.name, trained)?;
        folder.remove(CHECKPOINT);
        Ok(outputs)
    }

    fn load(&self, _: &Context<'_>, done: &FinishedStage) -> Result<StudentRun, ExperimentError> {
        record::read(done)
    }
}
