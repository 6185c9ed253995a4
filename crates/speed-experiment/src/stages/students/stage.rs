//! The training of one student as a stage.

use serde_json::{Value, json};
use speed_report::StudentRun;

use super::record;
use super::session::{CHECKPOINT, Session};
use super::student::{LabelledQueries, Student};
use crate::error::ExperimentError;
use crate::stages::context::Context;
use crate::stages::images::Images;
use crate::stages::stage::Stage;
use crate::stages::stage::StageName;
use crate::store::{FinishedStage, StageFolder};

impl Stage for Student<'_> {
    type Output = StudentRun;

    fn name(&self) -> &StageName {
        &self.name
    }

    fn code_version(&self) -> u32 {
        4
    }

    fn depends_on_machine(&self) -> bool {
        true
    }

    fn inputs(&self, context: &Context<'_>) -> Result<Value, ExperimentError> {
        let (config, LabelledQueries { queries, labels, .. }) = (context.config, &self.spec.labelled);
        let mut inputs = json!({
            "queries": queries,
            "labels": labels,
            "pool": Images::digest(&self.images.pool),
            "test": Images::digest(&self.images.test),
            "student": self.method().settings(&config.student),
            "seed": config.seed,
            "repeat": self.repeat,
        });
        // Absent for the default, so that earlier stages are still found.
        if self.method().version() != 1 {
            inputs["method_version"] = json!(self.method().version());
        }
        if let Some(name) = context.device.fingerprint {
            inputs["device"] = json!(name);
        }
        Ok(inputs)
    }

    fn side_files(&self) -> Vec<&'static str> {
        vec![record::METRICS]
    }

    fn was_done(&self, context: &Context<'_>) {
        context.progress.found(self.epochs(context).into());
    }

    fn run(&self, context: &Context<'_>, folder: &mut StageFolder) -> Result<Vec<String>, ExperimentError> {
        let outcome = Session::new(context, self, folder).train()?;
        let outputs = record::write(folder, &self.name, self.method(), &outcome)?;
        folder.remove(CHECKPOINT);
        Ok(outputs)
    }

    fn load(&self, _: &Context<'_>, done: &FinishedStage) -> Result<StudentRun, ExperimentError> {
        record::read(done)
    }
}
