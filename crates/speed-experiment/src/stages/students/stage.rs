//! The training of one student as a stage.

use serde_json::{Value, json};
use speed_student::{InvalidData, StudentError};

use super::record;
use super::session::{CHECKPOINT, Session};
use super::student::{LabelledQueries, Student};
use crate::error::ExperimentError;
use crate::model::weights_to_bytes;
use crate::report::StudentRun;
use crate::stages::context::Context;
use crate::stages::images::Images;
use crate::stages::stage::{Stage, StageFacts};
use crate::store::{FinishedStage, StageFolder};

impl Stage for Student<'_> {
    type Output = StudentRun;

    fn facts(&self) -> StageFacts<'_> {
        StageFacts { version: 5, depends_on_machine: true, ..StageFacts::new(&self.name) }
    }

    fn inputs(&self, context: &Context<'_>) -> Result<Value, ExperimentError> {
        let (config, LabelledQueries { queries, labels, doubts, .. }) = (context.config, &self.spec.labelled);
        Ok(json!({
            "queries": queries,
            "labels": labels,
            "doubts": doubts,
            "pool": Images::digest(self.pool()),
            "test": Images::digest(&self.images.test),
            "student": self.method().settings(&self.settings(config)),
            "method_version": self.method().version(),
            "device": context.device.fingerprint,
            "seed": config.seed,
            "repeat": self.repeat,
        }))
    }

    fn was_done(&self, context: &Context<'_>) {
        context.progress.found(self.epochs(context).into());
    }

    fn run(&self, context: &Context<'_>, folder: &mut StageFolder) -> Result<Vec<String>, ExperimentError> {
        let outcome = Session::new(context, self, folder).train()?;
        if !self.is_alone() {
            self.keep(folder, &outcome.student)?;
        }
        let accuracies = outcome.accuracy.zip(outcome.accuracy_raw);
        let accuracies = accuracies.ok_or_else(|| self.error(StudentError::Data(InvalidData::no_test())))?;
        let outputs = record::write(folder, &self.name, self.method(), &outcome, accuracies, self.images)?;
        folder.remove(CHECKPOINT);
        Ok(outputs)
    }

    fn load(&self, _: &Context<'_>, done: &FinishedStage) -> Result<StudentRun, ExperimentError> {
        record::read(done, &self.images.class_names)
    }
}

impl Student<'_> {
    /// Writes the trained student's weights. Their file is not an output, because a student is the same with and without it.
    fn keep(&self, folder: &StageFolder, trained: &speed_student::Student) -> Result<(), ExperimentError> {
        let bytes = weights_to_bytes(trained.network());
        let bytes = bytes.map_err(|error| error.at(folder.path().join(record::WEIGHTS)))?;
        folder.write_checked(record::WEIGHTS, &bytes)
    }
}
