//! The training of one student as a stage.

use serde_json::{Value, json};
use speed_student::{StudentConfig, StudentMethod};

use super::record::{self, StudentRun};
use super::session::{CHECKPOINT, Session};
use super::student::{Labelled, Student};
use super::{gan, pseudo_labels};
use crate::error::ExperimentError;
use crate::stages::context::Context;
use crate::stages::data::Images;
use crate::stages::names::StageName;
use crate::stages::stage::Stage;
use crate::store::{FinishedStage, StageFolder};

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

impl Stage for Student<'_> {
    type Output = StudentRun;

    fn name(&self) -> &StageName {
        &self.name
    }

    fn code_version(&self) -> u32 {
        3
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
        if let Some(name) = context.device.fingerprint {
            inputs["device"] = json!(name);
        }
        Ok(inputs)
    }

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
