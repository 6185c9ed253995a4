//! One student: the labels that it learns from, its method, and its randomness.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use speed_core::ExitCode;
use speed_core::random::Streams;
use speed_data::Split;
use speed_student::{StudentConfig, StudentError, StudentMethod};

use crate::config::Config;
use crate::error::ExperimentError;
use crate::stages::context::Context;
use crate::stages::images::Images;
use crate::store::Fingerprint;

/// The name of the kind, which is the prefix of the stages' names.
pub(crate) const KIND: &str = crate::report::STUDENT_STAGE;

const LABELLED_ONLY: &str = "baseline-labelled";

/// The labels of a row, and the queries with these labels.
pub(in crate::stages) struct LabelledQueries<'a> {
    pub(in crate::stages) row: &'a str,
    pub(in crate::stages) queries: Vec<usize>,
    pub(in crate::stages) labels: Vec<u8>,
    /// The probability that each label is wrong, if the labels are beliefs.
    pub(in crate::stages) doubts: Option<Vec<f32>>,
}

pub(in crate::stages) struct StudentSpec<'a> {
    pub(in crate::stages) labelled: LabelledQueries<'a>,
    pub(in crate::stages) method: StudentMethod,
}

impl StudentSpec<'_> {
    /// Returns whether there is no label to learn from, because no query reached the row's threshold.
    pub(in crate::stages) fn is_empty(&self) -> bool {
        self.labelled.labels.is_empty()
    }

    /// Returns the name of a student. Rows with the same labels and method share it, because the name contains the
    /// labels' hash.
    pub(super) fn stage_name(&self, repeat: usize) -> String {
        self.name_of(KIND, repeat)
    }

    /// Returns the hash of the labels, as a part of names.
    pub(in crate::stages) fn hash(&self) -> String {
        let LabelledQueries { queries, labels, doubts, .. } = &self.labelled;
        match doubts {
            None => Fingerprint::of(&json!([queries, labels])).short(),
            Some(doubts) => Fingerprint::of(&json!([queries, labels, doubts])).short(),
        }
    }

    fn name_of(&self, prefix: &str, repeat: usize) -> String {
        // The paper's students have no method in their names, because they were once the only ones.
        let is_gan = self.method == StudentMethod::GAN;
        let method = if is_gan { String::new() } else { format!("{}-", self.method.name()) };
        format!("{prefix}-{method}{}-{repeat}", self.hash())
    }
}

impl LabelledQueries<'_> {
    pub(super) fn add(&mut self, images: &[usize], label: u8, doubt: Option<f32>) {
        self.queries.extend(images);
        self.labels.extend(images.iter().map(|_| label));
        if let (Some(doubts), Some(doubt)) = (&mut self.doubts, doubt) {
            doubts.extend(images.iter().map(|_| doubt));
        }
    }
}

#[derive(Clone, Copy)]
enum Purpose<'a> {
    /// A student of a row, which learns from the pool.
    OfRow,
    /// A baseline that learns from these labelled images alone.
    Alone(&'a Split),
}

#[derive(Clone)]
pub(super) struct Student<'a> {
    pub(super) name: String,
    pub(super) images: &'a Images,
    pub(super) spec: &'a StudentSpec<'a>,
    pub(super) repeat: usize,
    /// Its number among the students of the run, from 1, and their total number.
    pub(super) place: (usize, usize),
    stop: Option<&'a AtomicBool>,
    purpose: Purpose<'a>,
}

impl<'a> Student<'a> {
    pub(super) fn new(images: &'a Images, spec: &'a StudentSpec<'a>, repeat: usize) -> Self {
        let name = spec.stage_name(repeat);
        Self { name, images, spec, repeat, place: (1, 1), stop: None, purpose: Purpose::OfRow }
    }

    pub(super) fn alone(self, labelled: &'a Split) -> Self {
        Self { name: self.spec.name_of(LABELLED_ONLY, self.repeat), purpose: Purpose::Alone(labelled), ..self }
    }

    pub(super) fn pool(&self) -> &'a Split {
        match self.purpose {
            Purpose::Alone(labelled) => labelled,
            Purpose::OfRow => &self.images.pool,
        }
    }

    pub(super) fn is_alone(&self) -> bool {
        matches!(self.purpose, Purpose::Alone(_))
    }

    pub(super) fn settings<'c>(&self, config: &'c Config) -> Cow<'c, StudentConfig> {
        let labelled_only = match self.purpose {
            Purpose::Alone(_) => self.method().labelled_only(&config.student, self.images.pool.len()),
            Purpose::OfRow => None,
        };
        labelled_only.map_or(Cow::Borrowed(&config.student), Cow::Owned)
    }

    pub(super) fn epochs(&self, context: &Context<'_>) -> u32 {
        self.method().passes(&context.config.student).epochs
    }

    pub(super) fn method(&self) -> StudentMethod {
        self.spec.method
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

    pub(super) fn labelled(&self) -> Vec<(usize, u8)> {
        let LabelledQueries { queries, labels, .. } = &self.spec.labelled;
        let images =
            queries.iter().copied().enumerate().map(|(place, image)| if self.is_alone() { place } else { image });
        images.zip(labels.iter().copied()).collect()
    }

    pub(super) fn streams(&self, context: &Context<'_>) -> Streams {
        context.streams.child("student", self.repeat as u64)
    }

    pub(super) fn error(&self, error: StudentError) -> ExperimentError {
        let failed = |error: StudentError| {
            let student = format!("student repeat {} on the labels of row {:?}", self.repeat, self.row());
            ExperimentError::new(ExitCode::Computation, format_args!("{student}: {error}"))
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
