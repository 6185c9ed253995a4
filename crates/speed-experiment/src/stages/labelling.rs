//! The labelling of a row's queries: adds noise shares, and computes the plurality, the clear-text argmax or the
//! homomorphic argmax.

mod answers;
mod argmax;
mod asking;
mod checked;
mod checks;
mod keys;
mod noise;
mod question;
mod record;

use std::collections::BTreeMap;

pub(super) use checks::CHECKING;
pub(super) use keys::RunKeys;
pub(crate) use record::RowLabels;
use serde_json::Value;

use self::asking::Asking;
use self::checked::{Checked, RowChecks};
use self::question::RowQuestion;
use self::record::{RECORD, TIMES};
use super::complete::complete;
use super::context::Context;
use super::kind::{Kind, Node, Units};
use super::outputs::Outputs;
use super::stage::{Stage, StageFacts};
use super::units::StageUnits;
use crate::config::{AggregationKind, Config, RowConfig};
use crate::cost::labelling_cost;
use crate::error::ExperimentError;
use crate::ledger::planned_charge;
use crate::report::LabellingTimes;
use crate::store::{FinishedStage, Identity, StageFolder, StageState};

/// The name of the kind in directories and fingerprints. Fingerprints do not contain the row's name, because answers do
/// not depend on it.
pub(super) const KIND: &str = "aggregate";

const LABELS: &str = "labels.csv";

/// The labels of all rows with their own labels, by the rows' places in the config, and times of the homomorphic part.
#[derive(Default)]
pub(crate) struct RowLabellings(pub(crate) BTreeMap<usize, (RowLabels, Option<LabellingTimes>)>);

pub(super) static LABELLING: Kind = Kind {
    is_per_row: true,
    units: Some(Units {
        name: "queries on ciphertexts",
        count: on_ciphertexts,
        are_serial: false,
        work: |context, node, outputs, shard| {
            let Some(row) = node.row else { return Ok(()) };
            let stage = LabellingStage::of_row(context, node, row, outputs);
            shard.work_on(context, &stage, stage.0.units(), |folder, own| stage.0.answer(context, folder, own))
        },
        found: |run, config, node, earlier| {
            let most = Some(on_ciphertexts(config, node.row)).filter(|most| *most > 0)?;
            let has_checks = config.rows[node.row?].check.is_some();
            // Only queries that reach the threshold of the row's checks are asked.
            let asked = if has_checks { checks::reached_in(run, node.row, earlier) } else { Some(most) };
            let units = asked.map_or(most, |asked| asked.min(most));
            let units = StageUnits::in_stage(run, &node.name, units, answers::unit);
            Some(StageUnits { at_most: asked.is_none(), ..units })
        },
    }),
    charge: |config, row, classes| {
        let row = &config.rows[row];
        planned_charge(config, row, &row.noise, most_answers(config, row), classes).map(Some)
    },
    cost: |config, _| Ok(labelling_cost(config, KIND, on_ciphertexts)),
    ..Kind::new(
        KIND,
        |_, _| true,
        |context, node, outputs| {
            let Some(row) = node.row else { return Ok(()) };
            let labelled = complete(context, &LabellingStage::of_row(context, node, row, outputs))?;
            let labelled = with_checks(labelled, outputs.find::<RowChecks>().and_then(|checks| checks.0.get(&row)));
            outputs.get_mut::<RowLabellings>().0.insert(row, labelled);
            Ok(())
        },
    )
};

/// Returns the largest number of queries of a row that are labelled on ciphertexts.
fn on_ciphertexts(config: &Config, row: Option<usize>) -> usize {
    let row = row.map(|row| &config.rows[row]).filter(|row| row.aggregation == AggregationKind::Encrypted);
    row.map_or(0, |row| most_answers(config, row))
}

fn most_answers(config: &Config, row: &RowConfig) -> usize {
    row.most_answers(row.query_count(config.queries.count))
}

fn with_checks(
    (labels, times): (RowLabels, Option<LabellingTimes>),
    checks: Option<&Checked>,
) -> (RowLabels, Option<LabellingTimes>) {
    let Some(checks) = checks else { return (labels, times) };
    let message_bytes = labels.message_bytes + checks.message_bytes;
    let times = times.zip(checks.times.clone()).map(|(times, checks)| checks.with(&times));
    (RowLabels { message_bytes, ..labels }, times)
}

struct LabellingStage<'a>(Asking<'a>);

impl<'a> LabellingStage<'a> {
    fn of_row(context: &Context<'a>, node: &'a Node, row: usize, outputs: &'a mut Outputs) -> Self {
        outputs.get_mut::<RunKeys>();
        let question = RowQuestion::of_row(context, row, outputs);
        Self(Asking::new(&node.name, question, outputs.get()))
    }
}

impl Stage for LabellingStage<'_> {
    type Output = (RowLabels, Option<LabellingTimes>);

    fn facts(&self) -> StageFacts<'_> {
        StageFacts { kind: KIND, version: 3, ..StageFacts::new(self.0.name) }
    }

    fn inputs(&self, context: &Context<'_>) -> Result<Value, ExperimentError> {
        self.0.inputs(context)
    }

    fn open(&self, context: &Context<'_>, identity: &Identity) -> Result<StageState, ExperimentError> {
        self.0.open(context, identity)
    }

    fn run(&self, context: &Context<'_>, folder: &mut StageFolder) -> Result<Vec<String>, ExperimentError> {
        let question = self.0.question;
        let (queries, truth) = (question.queries, question.truth);
        let labelled = self.0.outcomes(context, folder)?;
        let (row, all, given) = (&question.row.name, queries.len(), labelled.labels.iter().flatten().count());
        let of = if given < all { format!(" of {all} queries") } else { String::new() };
        context.progress.end(&format!("{row}: {given} labels{of}"));
        let times = record::times(&labelled, context.threads);
        let of_images = truth.filter(|truth| truth.digest().is_some());
        let all = record::of_all(&question, &labelled.labels);
        let accuracy = of_images.and_then(|truth| record::share_right(&all, queries, truth));
        let labels = RowLabels::new(&question, labelled, self.0.noisy_teachers()?, accuracy);
        folder.write(LABELS, labels.to_csv(queries).as_bytes())?;
        folder.write_json(RECORD, &labels)?;
        if self.0.is_encrypted() {
            folder.write_checked_json(TIMES, &times)?;
        }
        Ok(vec![LABELS.into(), RECORD.into()])
    }

    fn clean_up(&self, context: &Context<'_>, identity: &Identity) -> Result<(), ExperimentError> {
        self.0.clean_up(context, identity)
    }

    fn load(&self, _: &Context<'_>, done: &FinishedStage) -> Result<Self::Output, ExperimentError> {
        let RowQuestion { row, queries, truth, .. } = self.0.question;
        let times = match row.aggregation {
            AggregationKind::Encrypted => Some(done.read_json(TIMES)?),
            AggregationKind::NonPrivate | AggregationKind::Trusted => None,
        };
        let mut labels: RowLabels = done.read_json(RECORD)?;
        if let Some(truth) = truth.filter(|truth| truth.digest().is_none()) {
            labels.label_accuracy = record::share_right(&labels.labels, queries, truth);
        }
        labels.label_balanced_accuracy =
            truth.and_then(|truth| record::mean_share_right(&labels.labels, queries, truth));
        Ok((labels, times))
    }
}
