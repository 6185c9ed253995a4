//! The accuracy of the trained teachers on the students' test images.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use speed_teacher::Unknown;

use crate::error::ExperimentError;
use crate::report::BASELINE_STAGE;
use crate::stages::context::Context;
use crate::stages::images::Images;
use crate::stages::stage::{Stage, StageFacts, StageName};
use crate::stages::teachers::TrainedTeachers;
use crate::stages::votes::ask_teachers;
use crate::store::{FinishedStage, StageFolder};

/// The file of the accuracy.
const RESULT: &str = "teachers.json";

/// The mean accuracy of the teachers.
#[derive(Serialize, Deserialize)]
struct Measured {
    /// Number of teachers.
    teachers: usize,
    /// Number of test images.
    images: usize,
    /// From 0 to 1.
    mean_accuracy: f64,
}

/// The classification of the test images by every teacher.
pub(super) struct TeachersStage<'a> {
    name: StageName,
    trained: &'a TrainedTeachers,
    images: &'a Images,
}

impl<'a> TeachersStage<'a> {
    pub(super) fn new(trained: &'a TrainedTeachers, images: &'a Images) -> Self {
        Self { name: StageName::of(&[BASELINE_STAGE, "teachers"]), trained, images }
    }
}

impl Stage for TeachersStage<'_> {
    type Output = f64;

    fn facts(&self) -> StageFacts<'_> {
        StageFacts { depends_on_machine: true, ..StageFacts::new(&self.name) }
    }

    fn inputs(&self, _: &Context<'_>) -> Result<Value, ExperimentError> {
        Ok(json!({ "teachers": self.trained.hash(), "test": Images::digest(&self.images.test) }))
    }

    fn run(&self, context: &Context<'_>, folder: &mut StageFolder) -> Result<Vec<String>, ExperimentError> {
        let test = &self.images.test;
        let votes = ask_teachers(context, self.trained, test, Unknown::Vote, "teachers on the test images")?;
        let mean_accuracy = votes.mean_accuracy(test.labels())?;
        let measured = Measured { teachers: votes.shape().teachers(), images: test.len(), mean_accuracy };
        folder.write_json(RESULT, &measured)?;
        let figure = context.unless_secret(format!(": accuracy {:.1} %", 100.0 * mean_accuracy));
        context.progress.end(&format!("mean teacher on the test images{figure}"));
        Ok(vec![RESULT.into()])
    }

    fn load(&self, _: &Context<'_>, done: &FinishedStage) -> Result<f64, ExperimentError> {
        Ok(done.read_json::<Measured>(RESULT)?.mean_accuracy)
    }
}
