//! The second questions of a row: the parts of clusters to which its first student gives another class than their label.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use speed_pool::{Cluster, Disagreement};

use super::{GROUPS, Queries, TeacherAnswers};
use crate::config::{Config, RowConfig};
use crate::error::{ExperimentError, ResultsFault};
use crate::stages::beliefs::RowBeliefs;
use crate::stages::complete::complete;
use crate::stages::context::Context;
use crate::stages::kind::{Kind, Node};
use crate::stages::labelling::RowLabellings;
use crate::stages::map::MappedPool;
use crate::stages::outputs::Outputs;
use crate::stages::stage::{Stage, StageName};
use crate::stages::students::FirstPredictions;
use crate::stages::votes::CollectedVotes;
use crate::store::{FinishedStage, StageFolder, StageRemains};

/// The name of the kind, which is the prefix of its stages' names.
pub(in crate::stages) const KIND: &str = "queries-again";
/// The file of the questions.
const QUESTIONS: &str = "questions.json";

/// The second questions of every row, by the rows' places in the config.
#[derive(Default)]
pub(crate) struct QueriesAgain(pub(crate) BTreeMap<usize, RowAgain>);

/// The second questions of a row.
pub(crate) struct RowAgain {
    /// The disagreements of the first student with the clusters, in the order of the questions.
    pub(crate) disagreements: Vec<Disagreement>,
    /// The same questions as groups of images.
    pub(crate) queries: Queries,
    /// The teachers' answers; `None` if there are no questions.
    pub(in crate::stages) answers: Option<TeacherAnswers>,
}

impl RowAgain {
    /// Returns the vote counts of every question.
    pub(crate) fn counts(&self) -> Vec<Vec<u32>> {
        self.answers.as_ref().map_or_else(Vec::new, |answers| answers.counts(self.disagreements.len()))
    }
}

/// Reads the second questions of a finished stage in `remains` as groups of images of a pool.
pub(in crate::stages) fn read(remains: &StageRemains, pool: usize) -> Option<Queries> {
    let questions: Vec<Disagreement> = serde_json::from_str(&remains.read(QUESTIONS)?).ok()?;
    are_of_pool(&questions, pool).then(|| queries(&questions))
}

/// Returns the questions as groups; the typical image of a group is the nearest one to its centre.
fn queries(questions: &[Disagreement]) -> Queries {
    Queries {
        images: questions.iter().map(|question| question.core[0]).collect(),
        groups: Some(questions.iter().map(|question| question.core.clone()).collect()),
    }
}

/// Returns whether the questions are groups of images of a pool, and no image is in two of them.
fn are_of_pool(questions: &[Disagreement], pool: usize) -> bool {
    let mut is_asked = vec![false; pool];
    let mut take = |&image: &usize| is_asked.get_mut(image).is_some_and(|asked| !std::mem::replace(asked, true));
    questions.iter().all(|question| !question.core.is_empty() && question.core.iter().all(&mut take))
}

/// The choice of the second questions of every row.
pub(in crate::stages) struct SecondChoice;

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
        let queries = queries(&disagreements);
        let votes = &outputs.get::<CollectedVotes>().votes;
        let answers = (!disagreements.is_empty()).then(|| queries.all().answers(votes)).transpose()?;
        let again = RowAgain { disagreements, queries, answers: answers.map(TeacherAnswers) };
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
        if !self.first.groups.iter().flatten().map(Vec::as_slice).eq(cores) {
            let path = context.store.remains_of(super::KIND).folder().join(GROUPS);
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
            "clusters": self.first.groups,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_that_are_not_of_the_pool_are_refused() {
        let question =
            |core: &[usize]| Disagreement { cluster: 0, label: 1, predicted: 2, size: 30, core: core.to_vec() };
        assert!(are_of_pool(&[question(&[3, 1]), question(&[2])], 4) && are_of_pool(&[], 4));
        for questions in [vec![question(&[4])], vec![question(&[])], vec![question(&[1]), question(&[2, 1])]] {
            assert!(!are_of_pool(&questions, 4), "{questions:?}");
        }
    }
}
