//! Beliefs: the most probable class of every answer, given all answers of the row and the map of the pool.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use speed_pool::Answer;

use super::complete::complete;
use super::context::Context;
use super::kind::{Kind, Node};
use super::labelling::{RowLabellings, RowLabels};
use super::map::MappedPool;
use super::outputs::Outputs;
use super::queries::{Queries, QueryList};
use super::stage::{Stage, StageName};
use super::votes::CollectedVotes;
use crate::config::Config;
use crate::error::ExperimentError;
use crate::store::{FinishedStage, StageFolder, StageRemains};

/// The name of the kind, which is the prefix of the stages' names.
pub(super) const KIND: &str = "beliefs";
/// The file of the beliefs.
const BELIEFS: &str = "beliefs.json";

/// The belief about one answered query.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct QueryBelief {
    label: u8,
    /// The probability that another class is right.
    doubt: f32,
}

/// The beliefs of every row about its answered queries, by the rows' places in the config.
#[derive(Default)]
pub(crate) struct RowBeliefs(pub(crate) BTreeMap<usize, Vec<QueryBelief>>);

/// Reads the beliefs of a finished stage in `remains`.
pub(super) fn read(remains: &StageRemains) -> Option<Vec<QueryBelief>> {
    serde_json::from_str(&remains.read(BELIEFS)?).ok()
}

/// Returns the answered queries of a row with their beliefs: query, class and doubt.
pub(super) fn of_answers(labels: &RowLabels, beliefs: &[QueryBelief]) -> Vec<(usize, u8, f32)> {
    labels.answers().zip(beliefs).map(|((query, _), belief)| (query, belief.label, belief.doubt)).collect()
}

/// The update of the beliefs of every row, if students learn beliefs.
pub(super) struct BeliefUpdate;

impl Kind for BeliefUpdate {
    fn name(&self) -> &'static str {
        KIND
    }

    fn is_per_row(&self) -> bool {
        true
    }

    fn is_in(&self, config: &Config, _: Option<usize>) -> bool {
        config.queries.beliefs
    }

    fn complete(&self, context: &Context<'_>, node: &Node, outputs: &mut Outputs) -> Result<(), ExperimentError> {
        let (Some(index), Some(mapped)) = (node.row, outputs.find::<MappedPool>()) else { return Ok(()) };
        let stage = BeliefStage {
            name: &node.name,
            mapped,
            queries: outputs.get::<Queries>().of_row(&context.config.rows[index]),
            labels: &outputs.get::<RowLabellings>().0[&index].0,
            classes: outputs.get::<CollectedVotes>().votes.shape().classes(),
        };
        let beliefs = complete(context, &stage)?;
        outputs.get_mut::<RowBeliefs>().0.insert(index, beliefs);
        Ok(())
    }
}

/// The beliefs of one row.
struct BeliefStage<'a> {
    name: &'a StageName,
    mapped: &'a MappedPool,
    queries: QueryList<'a>,
    labels: &'a RowLabels,
    classes: usize,
}

impl Stage for BeliefStage<'_> {
    type Output = Vec<QueryBelief>;

    fn name(&self) -> &StageName {
        self.name
    }

    fn kind(&self) -> &str {
        KIND
    }

    fn code_version(&self) -> u32 {
        1
    }

    fn inputs(&self, _: &Context<'_>) -> Result<Value, ExperimentError> {
        let (queries, groups, labels) = (self.queries.images(), self.queries.groups(), &self.labels.labels);
        Ok(json!({ "map": self.mapped.hash, "queries": queries, "groups": groups, "labels": labels }))
    }

    fn run(&self, context: &Context<'_>, folder: &mut StageFolder) -> Result<Vec<String>, ExperimentError> {
        let answered: Vec<(usize, u8)> = self.labels.answers().collect();
        context.progress.begin("weigh the answers", "answers", answered.len() as u64, 0);
        let answer = |&(query, label): &(usize, u8)| Answer { images: self.queries.members(query), label };
        let answers: Vec<Answer<'_>> = answered.iter().map(answer).collect();
        let beliefs = self.mapped.map.beliefs(&answers, self.classes);
        let changed = beliefs.iter().zip(&answered).filter(|(belief, (_, label))| belief.label != *label).count();
        // Below 1 in single precision too.
        let beliefs: Vec<QueryBelief> = beliefs
            .iter()
            .map(|belief| QueryBelief { label: belief.label, doubt: (belief.doubt as f32).min(0.999) })
            .collect();
        folder.write_json(BELIEFS, &beliefs)?;
        context.progress.end(&format!("{} of {} answers replaced by other classes", changed, answered.len()));
        Ok(vec![BELIEFS.into()])
    }

    fn load(&self, _: &Context<'_>, done: &FinishedStage) -> Result<Vec<QueryBelief>, ExperimentError> {
        done.read_json(BELIEFS)
    }
}
