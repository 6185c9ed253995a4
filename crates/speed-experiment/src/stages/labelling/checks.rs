//! The checks of a row's queries, for rows whose checks have noise of their own.

use std::path::Path;

use serde_json::Value;

use super::answers;
use super::asking::Asking;
use super::checked::{Checked, RowChecks};
use super::keys::RunKeys;
use super::question::RowQuestion;
use super::record::{self, TIMES};
use crate::config::{AggregationKind, Config, RowConfig};
use crate::cost::labelling_cost;
use crate::error::ExperimentError;
use crate::ledger::planned_charge;
use crate::report::csv;
use crate::stages::complete::complete;
use crate::stages::context::Context;
use crate::stages::kind::{Kind, Node, Units};
use crate::stages::outputs::Outputs;
use crate::stages::stage::{Stage, StageFacts};
use crate::stages::units::StageUnits;
use crate::store::{FinishedStage, Identity, RunStore, StageFolder, StageState};

const KIND: &str = "check";
const OUTCOMES: &str = "checks.csv";
const RECORD: &str = "check.json";

pub(crate) static CHECKING: Kind = Kind {
    is_per_row: true,
    precedes_all_rows: true,
    units: Some(Units {
        name: "checks on ciphertexts",
        count: on_ciphertexts,
        are_serial: false,
        work: |context, node, outputs, shard| {
            let Some(row) = node.row else { return Ok(()) };
            let Some(stage) = CheckingStage::of_row(context, node, row, outputs) else { return Ok(()) };
            shard.work_on(context, &stage, stage.0.units(), |folder, own| stage.0.answer(context, folder, own))
        },
        found: |run, config, node, _| {
            let units = node.units(config);
            (units > 0).then(|| StageUnits::in_stage(run, &node.name, units, answers::unit))
        },
    }),
    charge: |config, row, classes| {
        let row = &config.rows[row];
        let queries = row.query_count(config.queries.count);
        row.check.as_ref().map(|check| planned_charge(config, row, check, queries, classes)).transpose()
    },
    cost: |config, _| Ok(labelling_cost(config, KIND, on_ciphertexts)),
    ..Kind::new(
        KIND,
        |config, row| checked_row(config, row).is_some(),
        |context, node, outputs| {
            let Some(row) = node.row else { return Ok(()) };
            let Some(stage) = CheckingStage::of_row(context, node, row, outputs) else { return Ok(()) };
            let checked = complete(context, &stage)?;
            outputs.get_mut::<RowChecks>().0.insert(row, checked);
            Ok(())
        },
    )
};

fn checked_row(config: &Config, row: Option<usize>) -> Option<&RowConfig> {
    row.map(|row| &config.rows[row]).filter(|row| row.check.is_some())
}

fn on_ciphertexts(config: &Config, row: Option<usize>) -> usize {
    let row = checked_row(config, row).filter(|row| row.aggregation == AggregationKind::Encrypted);
    row.map_or(0, |row| row.query_count(config.queries.count))
}

/// Returns the number of queries that reached the threshold of a row's checks in the directory of a run; `None` before the
/// checks are done.
pub(super) fn reached_in(run: &Path, row: Option<usize>, earlier: &[Node]) -> Option<usize> {
    let node = earlier.iter().find(|node| node.kind.name == KIND && node.row == row)?;
    let remains = RunStore::is_finished(run, &node.name).then(|| RunStore::remains_in(run, &node.name))?;
    let checked: Checked = serde_json::from_str(&remains.read(RECORD)?).ok()?;
    Some(checked.reached.len())
}

struct CheckingStage<'a>(Asking<'a>);

impl<'a> CheckingStage<'a> {
    fn of_row(context: &Context<'a>, node: &'a Node, row: usize, outputs: &'a mut Outputs) -> Option<Self> {
        outputs.get_mut::<RunKeys>();
        let question = RowQuestion::of_checks(context, row, outputs)?;
        Some(Self(Asking::new(&node.name, question, outputs.get())))
    }
}

impl Stage for CheckingStage<'_> {
    type Output = Checked;

    fn facts(&self) -> StageFacts<'_> {
        StageFacts { kind: KIND, ..StageFacts::new(self.0.name) }
    }

    fn inputs(&self, context: &Context<'_>) -> Result<Value, ExperimentError> {
        // Not the largest number of answers: the same checks serve any.
        self.0.inputs(context)
    }

    fn open(&self, context: &Context<'_>, identity: &Identity) -> Result<StageState, ExperimentError> {
        self.0.open(context, identity)
    }

    fn run(&self, context: &Context<'_>, folder: &mut StageFolder) -> Result<Vec<String>, ExperimentError> {
        let question = self.0.question;
        let outcome = self.0.outcomes(context, folder)?;
        let times = record::times(&outcome, context.threads);
        let reached: Vec<usize> = (0..question.len()).filter(|&query| outcome.labels[query].is_some()).collect();
        let checked = Checked {
            passed: Vec::new(),
            agreement: outcome.labels.iter().zip(&outcome.clear).filter(|(found, clear)| found == clear).count(),
            message_bytes: outcome.aggregated.message_bytes,
            times: None,
            reached,
        };
        let (row, all) = (&question.row.name, question.len());
        context.progress.end(&format!("{row}: {} of {all} queries reach the threshold", checked.reached.len()));
        let lines =
            question.queries.images().iter().zip(&outcome.labels).enumerate().map(|(query, (image, reached))| {
                vec![query.to_string(), image.to_string(), u8::from(reached.is_some()).to_string()]
            });
        folder.write(OUTCOMES, csv::write(["query", "pool_image", "reached"], lines).as_bytes())?;
        folder.write_json(RECORD, &checked)?;
        if self.0.is_encrypted() {
            folder.write_checked_json(TIMES, &times)?;
        }
        Ok(vec![OUTCOMES.into(), RECORD.into()])
    }

    fn clean_up(&self, context: &Context<'_>, identity: &Identity) -> Result<(), ExperimentError> {
        self.0.clean_up(context, identity)
    }

    fn load(&self, _: &Context<'_>, done: &FinishedStage) -> Result<Checked, ExperimentError> {
        let checked: Checked = done.read_json(RECORD)?;
        let times = if self.0.is_encrypted() { Some(done.read_json(TIMES)?) } else { None };
        let RowQuestion { row, queries, .. } = self.0.question;
        // The file is untrusted input.
        let known = checked.reached.iter().copied().filter(|&place| place < queries.len());
        Ok(Checked { passed: known.take(row.most_answers(queries.len())).collect(), times, ..checked })
    }
}
