//! The first students: one for each row with its own labels, whose predictions choose the row's second questions.

use std::collections::BTreeMap;
use std::path::Path;

use super::student::{FIRST, Student, StudentSpec};
use super::{Training, costs, specs_of_run};
use crate::config::Config;
use crate::cost::{Meter, StageCost};
use crate::error::ExperimentError;
use crate::stages::context::Context;
use crate::stages::kind::{Kind, Node};
use crate::stages::labelling::RunKeys;
use crate::stages::outputs::Outputs;

/// The class of every image of the pool by the first student of a row, by the rows' places in the config. A row without a label
/// has none.
pub(in crate::stages) struct FirstPredictions(pub(in crate::stages) BTreeMap<usize, Vec<u8>>);

/// The training of the first students. Rows with the same labels and method share one.
pub(in crate::stages) struct FirstStudents;

impl Kind for FirstStudents {
    fn name(&self) -> &'static str {
        FIRST
    }

    fn is_in(&self, config: &Config, _: Option<usize>) -> bool {
        config.queries.again.is_some()
    }

    fn complete(&self, context: &Context<'_>, _: &Node, outputs: &mut Outputs) -> Result<(), ExperimentError> {
        let Some(images) = context.images else { return Ok(()) };
        // The trainings need the memory. The second round generates keys again.
        outputs.remove::<RunKeys>();
        let config = context.config;
        let specs = specs_of_run(config, outputs);
        let own: BTreeMap<usize, &StudentSpec<'_>> =
            specs.iter().enumerate().filter(|(row, spec)| config.labels_of(*row) == *row && !spec.is_empty()).collect();
        let mut stages: Vec<Student<'_>> = Vec::new();
        for spec in own.values() {
            let stage = Student::new(images, spec, 0).first();
            if !stages.iter().any(|other| other.is_same(&stage)) {
                stages.push(stage);
            }
        }
        let mut predictions = BTreeMap::new();
        if !stages.is_empty() {
            let trained = Training::new(context, FIRST, stages)?.train_all()?;
            for (row, spec) in own {
                let name = Student::new(images, spec, 0).first().name;
                let of_row = trained.iter().find(|trained| trained.run.stage == *name);
                predictions.extend(of_row.and_then(|trained| Some((row, trained.pool.clone()?))));
            }
        }
        outputs.put(FirstPredictions(predictions));
        Ok(())
    }

    /// Only the report tells, because the number of students depends on the labels.
    fn is_finished(&self, _: &Path, _: &Node) -> bool {
        false
    }

    fn cost(&self, config: &Config, meter: &Meter) -> Result<Vec<StageCost>, ExperimentError> {
        if !self.is_in(config, None) {
            return Ok(Vec::new());
        }
        let own = (0..config.rows.len()).filter(|&row| config.labels_of(row) == row);
        costs(config, meter, (FIRST, "first students"), own.map(|row| (row, 1)))
    }
}
