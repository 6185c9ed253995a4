//! Label spreading with the labels of a row.

use serde_json::{Value, json};
use speed_student::Images as Unlabelled;
use speed_student::label_spreading::{ALPHA, ITERATIONS, NEIGHBOURS, Spreading, TOLERANCE};

use crate::error::ExperimentError;
use crate::report::{BASELINE_STAGE, Classification};
use crate::stages::context::Context;
use crate::stages::images::Images;
use crate::stages::stage::{Stage, StageFacts, StageName};
use crate::stages::students::{LabelledQueries, StudentSpec};
use crate::store::{FinishedStage, StageFolder};

/// The file of the results by class.
const RESULT: &str = "spreading.json";

/// The classification of the test images with the labels of a row. Rows with the same labels share it.
pub(super) struct SpreadingStage<'a> {
    pub(super) name: StageName,
    labelled: &'a LabelledQueries<'a>,
    images: &'a Images,
}

impl<'a> SpreadingStage<'a> {
    pub(super) fn new(spec: &'a StudentSpec<'a>, images: &'a Images) -> Self {
        let name = StageName::of(&[BASELINE_STAGE, "spreading", &spec.hash()]);
        Self { name, labelled: &spec.labelled, images }
    }
}

impl Stage for SpreadingStage<'_> {
    type Output = Classification;

    fn facts(&self) -> StageFacts<'_> {
        StageFacts::new(&self.name)
    }

    fn inputs(&self, _: &Context<'_>) -> Result<Value, ExperimentError> {
        let LabelledQueries { queries, labels, .. } = self.labelled;
        Ok(json!({
            "queries": queries,
            "labels": labels,
            "pool": Images::digest(&self.images.pool),
            "test": Images::digest(&self.images.test),
            "settings": [json!(NEIGHBOURS), json!(ALPHA), json!(ITERATIONS), json!(TOLERANCE)],
        }))
    }

    fn run(&self, context: &Context<'_>, folder: &mut StageFolder) -> Result<Vec<String>, ExperimentError> {
        let Images { pool, test, class_names, .. } = self.images;
        let LabelledQueries { row, queries, labels, .. } = self.labelled;
        let labelled: Vec<(usize, u8)> = queries.iter().copied().zip(labels.iter().copied()).collect();
        let task = Spreading {
            pool: Unlabelled::new(pool),
            labelled: &labelled,
            test: Unlabelled::new(test),
            classes: test.classes(),
        };
        let progress = context.progress;
        progress.begin(&format!("{row}: label spreading"), "images", (pool.len() + test.len()) as u64, 0);
        let found = task.predict(context.threads.get(), &|images| progress.advance(images as u64, ""))?;
        let pairs = test.labels().iter().copied().zip(found);
        let result = Classification::new(class_names, pairs)?;
        folder.write_json(RESULT, &result)?;
        let percent = 100.0 * result.accuracy().unwrap_or_default();
        let figure = context.unless_secret(format!(", accuracy {percent:.1} %"));
        progress.end(&format!("{row}: label spreading{figure}"));
        Ok(vec![RESULT.into()])
    }

    fn load(&self, _: &Context<'_>, done: &FinishedStage) -> Result<Classification, ExperimentError> {
        done.read_json(RESULT)
    }
}
