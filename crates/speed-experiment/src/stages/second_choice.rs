//! The choice of the second questions of a row, after its first student has learned.

use serde_json::{Value, json};
use speed_pool::{Cluster, Disagreement};

use super::beliefs::RowBeliefs;
use super::complete::complete;
use super::context::Context;
use super::kind::{Kind, Node};
use super::labelling::RowLabellings;
use super::map::MappedPool;
use super::outputs::Outputs;
use super::queries::{AGAIN as KIND, GROUPS, KIND as QUERIES, QUESTIONS, Queries, QueriesAgain, RowAgain, are_of_pool};
use super::stage::{Stage, StageName};
use super::students::FirstPredictions;
use super::votes::CollectedVotes;
use crate::config::{Config, RowConfig};
use crate::error::{ExperimentError, ResultsFault};
use crate::store::{FinishedStage, StageFolder};

/// The choice of the second questions of every row.
pub(super) struct SecondChoice;

impl Kind for SecondChoice {
    fn name(&self) -> &'static str {
        KIND
    }

    fn is_per_row(&self) -> bool {
        true
    }

    fn is_in(&self, config: &Config, _: Option<usize>) -> bool {
        config.queries.again.is_some()
    }

    fn complete(&self, context: &Context<'_>, node: &Node, outputs: &mut Outputs) -> Result<(), ExperimentError> {
        let Some(index) = node.row else { return Ok(()) };
        let stage = QuestionsStage {
            name: &node.name,
            row: &context.config.rows[index],
            mapped: outputs.get(),
            first: outputs.get(),
            labels: labels(index, outputs),
            predictions: outputs.get::<FirstPredictions>().0.get(&index).map(Vec::as_slice),
        };
        let disagreements = complete(context, &stage)?;
        let again = RowAgain::new(disagreements, &outputs.get::<CollectedVotes>().votes)?;
        outputs.get_mut::<QueriesAgain>().0.insert(index, again);
        Ok(())
    }
}

/// Returns the label of every cluster, if the row has one: the released label, or the belief that replaces it.
fn labels(row: usize, outputs: &Outputs) -> Vec<Option<u8>> {
    let (released, _) = &outputs.get::<RowLabellings>().0[&row];
    let mut labels = released.labels.clone();
    if let Some(beliefs) = outputs.find::<RowBeliefs>().and_then(|RowBeliefs(beliefs)| beliefs.get(&row)) {
        labels.iter_mut().flatten().zip(beliefs).for_each(|(label, belief)| *label = belief.label);
    }
    labels
}

/// The choice of the second questions of one row. Its inputs are public or released: neither votes nor true labels.
struct QuestionsStage<'a> {
    name: &'a StageName,
    row: &'a RowConfig,
    mapped: &'a MappedPool,
    /// The queries of the first round: the cores of the clusters.
    first: &'a Queries,
    /// The label of every cluster.
    labels: Vec<Option<u8>>,
    /// The classes of all pool images by the row's first student, if it has one.
    predictions: Option<&'a [u8]>,
}

impl QuestionsStage<'_> {
    fn choose(&self, context: &Context<'_>) -> Result<Vec<Disagreement>, ExperimentError> {
        let (Some(most), Some(predictions)) = (context.config.queries.again, self.predictions) else {
            return Ok(Vec::new());
        };
        let clusters = self.mapped.clusters(context);
        // The clusters are computed again from the map; they must be those of the first queries.
        let cores = clusters.all().iter().map(Cluster::core);
        if !self.first.all().groups().into_iter().flatten().map(Vec::as_slice).eq(cores) {
            let path = context.store.remains_of(QUERIES).folder().join(GROUPS);
            return Err(ExperimentError::Results { path, fault: ResultsFault::DamagedGroups });
        }
        Ok(self.mapped.map.disagreements(clusters, &self.labels, predictions, most.get()))
    }
}

impl Stage for QuestionsStage<'_> {
    type Output = Vec<Disagreement>;

    fn name(&self) -> &StageName {
        self.name
    }

    fn kind(&self) -> &str {
        KIND
    }

    fn code_version(&self) -> u32 {
        1
    }

    fn inputs(&self, context: &Context<'_>) -> Result<Value, ExperimentError> {
        Ok(json!({
            "map": self.mapped.hash,
            "clusters": self.first.all().groups(),
            "labels": self.labels,
            "predictions": self.predictions,
            "again": context.config.queries.again,
            "seed": context.config.seed,
        }))
    }

    fn run(&self, context: &Context<'_>, folder: &mut StageFolder) -> Result<Vec<String>, ExperimentError> {
        let questions = self.choose(context)?;
        folder.write_json(QUESTIONS, &questions)?;
        context.progress.note(&format!("{}: {} second questions", self.row.name, questions.len()));
        Ok(vec![QUESTIONS.into()])
    }

    fn load(&self, context: &Context<'_>, done: &FinishedStage) -> Result<Vec<Disagreement>, ExperimentError> {
        let questions: Vec<Disagreement> = done.read_json(QUESTIONS)?;
        if are_of_pool(&questions, context.config.data.pool_images) {
            return Ok(questions);
        }
        Err(ExperimentError::Results { path: done.path(QUESTIONS), fault: ResultsFault::DamagedGroups })
    }
}
