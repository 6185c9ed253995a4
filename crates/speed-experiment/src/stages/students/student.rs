//! One student: the labels that it learns from, its method, and its randomness.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use speed_core::random::Streams;
use speed_student::{StudentError, StudentMethod};

use crate::error::ExperimentError;
use crate::stages::context::Context;
use crate::stages::images::Images;
use crate::stages::stage::StageName;
use crate::store::Fingerprint;

/// The name of the kind, which is the prefix of the stages' names.
pub(crate) const KIND: &str = speed_report::STUDENT_STAGE;

/// The labels of a row, and the queries with these labels.
pub(super) struct LabelledQueries<'a> {
    pub(super) row: &'a str,
    pub(super) queries: Vec<usize>,
    pub(super) labels: Vec<u8>,
}

/// The specification of a row's students: their labels and their method.
pub(super) struct StudentSpec<'a> {
    pub(super) labelled: LabelledQueries<'a>,
    pub(super) method: StudentMethod,
    /// Whether noise protects the labels.
    pub(super) is_noisy: bool,
}

impl StudentSpec<'_> {
    /// Returns whether there is no label to learn from, because no query reached the row's threshold.
    pub(super) fn is_empty(&self) -> bool {
        self.labelled.labels.is_empty()
    }

    /// Returns the name of a student. Rows with the same labels and method share it, because the name contains the
    /// labels' hash.
    pub(super) fn stage_name(&self, repeat: usize) -> StageName {
        let hash = Fingerprint::of(&json!([self.labelled.queries, self.labelled.labels]));
        // The paper's students have no method in their names, because they were once the only ones.
        let is_gan = self.method == StudentMethod::GAN;
        let method = if is_gan { String::new() } else { format!("{}-", self.method.name()) };
        StageName(format!("{KIND}-{method}{}-{repeat}", hash.short()))
    }
}

/// The training of one student.
#[derive(Clone)]
pub(super) struct Student<'a> {
    pub(super) name: StageName,
    pub(super) images: &'a Images,
    pub(super) spec: &'a StudentSpec<'a>,
    /// The specification whose row the student's model names.
    named_after: &'a StudentSpec<'a>,
    pub(super) repeat: usize,
    /// Its number among the students of the run, from 1, and their total number.
    pub(super) place: (usize, usize),
    stop: Option<&'a AtomicBool>,
}

impl<'a> Student<'a> {
    pub(super) fn new(images: &'a Images, spec: &'a StudentSpec<'a>, repeat: usize) -> Self {
        Self { name: spec.stage_name(repeat), images, spec, named_after: spec, repeat, place: (1, 1), stop: None }
    }

    /// Returns the number of epochs of its training.
    pub(super) fn epochs(&self, context: &Context<'_>) -> u32 {
        self.method().passes(&context.config.student).epochs
    }

    /// Returns whether another specification has the same student.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.name == other.name
    }

    pub(super) fn method(&self) -> StudentMethod {
        self.spec.method
    }

    /// Adds another specification of the same student. A model names a row with noise if there is one: the name of a row
    /// without noise would tell that the noise changed no label.
    pub(super) fn add(&mut self, other: &'a StudentSpec<'a>) {
        if other.is_noisy && !self.named_after.is_noisy {
            self.named_after = other;
        }
    }

    /// Returns the row that the student's model names.
    pub(super) fn row_of_model(&self) -> &'a str {
        self.named_after.labelled.row
    }

    pub(super) fn row(&self) -> &'a str {
        self.spec.labelled.row
    }

    /// Returns the same training with its place among others; it ends once `stop` is true.
    pub(super) fn until(&self, stop: &'a AtomicBool, place: (usize, usize)) -> Self {
        Self { stop: Some(stop), place, ..self.clone() }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Returns the queries with their labels.
    pub(super) fn labelled(&self) -> Vec<(usize, u8)> {
        let LabelledQueries { queries, labels, .. } = &self.spec.labelled;
        queries.iter().copied().zip(labels.iter().copied()).collect()
    }

    /// Returns the randomness of this student only.
    pub(super) fn streams(&self, context: &Context<'_>) -> Streams {
        context.streams.child("student", self.repeat as u64)
    }

    pub(super) fn error(&self, error: StudentError) -> ExperimentError {
        let failed = |error| ExperimentError::Student {
            repeat: self.repeat,
            row: self.row().to_owned(),
            source: Box::new(error),
        };
        match error {
            // Errors of reports are this crate's own errors.
            StudentError::Report(error) => {
                error.downcast().map_or_else(|error| failed(StudentError::Report(error)), |error| *error)
            }
            error => failed(error),
        }
    }
}
