//! Beliefs: the most probable class of every answer of a row, given all its answers and the map of the pool.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;
use speed_student::pool::{Answer, Belief};

use super::complete::complete;
use super::context::Context;
use super::kind::Kind;
use super::labelling::{RowLabellings, RowLabels};
use super::map::MappedPool;
use super::queries::{Queries, QueryList};
use super::stage::{JsonStage, StageFacts};
use super::votes::CollectedVotes;
use crate::store::StageRemains;

pub(super) const KIND: &str = "beliefs";
const BELIEFS: &str = "beliefs.json";

/// The beliefs of every row about its answered queries, by the rows' places in the config.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RowBeliefs(pub(crate) BTreeMap<usize, Vec<Belief>>);

pub(super) fn read(remains: &StageRemains) -> Option<RowBeliefs> {
    serde_json::from_str(&remains.read(BELIEFS)?).ok()
}

pub(super) static BELIEF_UPDATE: Kind = Kind::new(
    KIND,
    |config, _| config.queries.beliefs,
    |context, node, outputs| {
        let Some(mapped) = outputs.find::<MappedPool>() else { return Ok(()) };
        let queries = outputs.get::<Queries>().all();
        let labels: Vec<(usize, &RowLabels)> =
            outputs.get::<RowLabellings>().0.iter().map(|(row, (labels, _))| (*row, labels)).collect();
        let given: BTreeMap<usize, _> = labels.iter().map(|(row, labels)| (*row, &labels.labels)).collect();
        let classes = outputs.get::<CollectedVotes>().votes.shape().classes();
        let (images, groups) = (queries.images(), queries.groups());
        let stage = JsonStage {
            facts: StageFacts::new(&node.name),
            file: BELIEFS,
            inputs: json!({ "map": mapped.hash, "queries": images, "groups": groups, "labels": given }),
            work: || Ok(weigh(context, mapped, queries, &labels, classes)),
        };
        let beliefs = complete(context, &stage)?;
        outputs.put(beliefs);
        Ok(())
    },
);

fn weigh(
    context: &Context<'_>,
    mapped: &MappedPool,
    queries: QueryList<'_>,
    labels: &[(usize, &RowLabels)],
    classes: usize,
) -> RowBeliefs {
    context.progress.begin("weigh the answers", "rows", labels.len() as u64, 0);
    let (mut rows, mut changed, mut all) = (BTreeMap::new(), 0, 0);
    for &(row, labels) in labels {
        let answer = |(query, label)| Answer { images: queries.members(query), label };
        let answers: Vec<Answer<'_>> = labels.answers().map(answer).collect();
        let beliefs = mapped.map.beliefs(&answers, classes);
        changed += beliefs.iter().zip(&answers).filter(|(belief, answer)| belief.label != answer.label).count();
        all += answers.len();
        rows.insert(row, beliefs);
        context.progress.advance(1, "");
    }
    let figure = context.unless_secret(format!(": {changed} of {all} replaced by other classes"));
    context.progress.end(&format!("the answers are weighed{figure}"));
    RowBeliefs(rows)
}
