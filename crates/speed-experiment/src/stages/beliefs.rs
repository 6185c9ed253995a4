//! Beliefs: the most probable class of every answer of a row, given all its answers and the map of the pool.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use speed_student::pool::{Answer, Belief};

use super::complete::complete;
use super::context::Context;
use super::kind::Kind;
use super::labelling::{RowLabellings, RowLabels};
use super::map::MappedPool;
use super::queries::{Queries, QueryList};
use super::stage::{Stage, StageFacts, StageName};
use super::votes::CollectedVotes;
use crate::error::ExperimentError;
use crate::store::{FinishedStage, StageFolder, StageRemains};

/// The name of the kind and of its stage.
pub(super) const KIND: &str = "beliefs";
/// The file of the beliefs.
const BELIEFS: &str = "beliefs.json";

/// The beliefs of every row about its answered queries, by the rows' places in the config.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RowBeliefs(pub(crate) BTreeMap<usize, Vec<Belief>>);

/// Reads the beliefs of a finished stage in `remains`.
pub(super) fn read(remains: &StageRemains) -> Option<RowBeliefs> {
    serde_json::from_str(&remains.read(BELIEFS)?).ok()
}

/// The beliefs of all rows, if students learn beliefs.
pub(super) static BELIEF_UPDATE: Kind = Kind::new(
    KIND,
    |config, _| config.queries.beliefs,
    |context, node, outputs| {
        let Some(mapped) = outputs.find::<MappedPool>() else { return Ok(()) };
        let stage = BeliefStage {
            name: &node.name,
            mapped,
            queries: outputs.get::<Queries>().all(),
            labels: outputs.get::<RowLabellings>().0.iter().map(|(row, (labels, _))| (*row, labels)).collect(),
            classes: outputs.get::<CollectedVotes>().votes.shape().classes(),
        };
        let beliefs = complete(context, &stage)?;
        outputs.put(beliefs);
        Ok(())
    },
);

/// The beliefs of all rows.
struct BeliefStage<'a> {
    name: &'a StageName,
    mapped: &'a MappedPool,
    queries: QueryList<'a>,
    labels: BTreeMap<usize, &'a RowLabels>,
    classes: usize,
}

impl Stage for BeliefStage<'_> {
    type Output = RowBeliefs;

    fn facts(&self) -> StageFacts<'_> {
        StageFacts::new(self.name)
    }

    fn inputs(&self, _: &Context<'_>) -> Result<Value, ExperimentError> {
        let (queries, groups) = (self.queries.images(), self.queries.groups());
        let labels: BTreeMap<usize, _> = self.labels.iter().map(|(row, labels)| (*row, &labels.labels)).collect();
        Ok(json!({ "map": self.mapped.hash, "queries": queries, "groups": groups, "labels": labels }))
    }

    fn run(&self, context: &Context<'_>, folder: &mut StageFolder) -> Result<Vec<String>, ExperimentError> {
        context.progress.begin("weigh the answers", "rows", self.labels.len() as u64, 0);
        let (mut rows, mut changed, mut all) = (BTreeMap::new(), 0, 0);
        for (&row, labels) in &self.labels {
            let answer = |(query, label)| Answer { images: self.queries.members(query), label };
            let answers: Vec<Answer<'_>> = labels.answers().map(answer).collect();
            let beliefs = self.mapped.map.beliefs(&answers, self.classes);
            changed += beliefs.iter().zip(&answers).filter(|(belief, answer)| belief.label != answer.label).count();
            all += answers.len();
            rows.insert(row, beliefs);
            context.progress.advance(1, "");
        }
        folder.write_json(BELIEFS, &RowBeliefs(rows))?;
        let figure = context.unless_secret(format!(": {changed} of {all} replaced by other classes"));
        context.progress.end(&format!("the answers are weighed{figure}"));
        Ok(vec![BELIEFS.into()])
    }

    fn load(&self, _: &Context<'_>, done: &FinishedStage) -> Result<RowBeliefs, ExperimentError> {
        done.read_json(BELIEFS)
    }
}
