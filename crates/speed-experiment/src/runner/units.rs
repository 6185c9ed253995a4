//! The units of a run's stages, read from its folder: the number of finished units, and the processes that work on
//! others.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use super::steps::courses;
use crate::config::{AggregationKind, Config};
use crate::error::ExperimentError;
use crate::report::RowResult;
use crate::stages::{RowLabels, StageNames, chosen_queries, query_unit, teacher_unit};
use crate::store::{RunStore, Worker, unit_meta, workers};

/// The units of a stage of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageUnits {
    /// The stage. All students count as one stage.
    pub stage: String,
    /// The number of finished units.
    pub done: usize,
    /// The total number of units.
    pub of: usize,
    /// True for students before the labels exist: rows may share students, so `of` is an upper bound.
    pub at_most: bool,
    /// The units that processes have leased.
    pub working: Vec<Worker>,
}

impl StageUnits {
    /// Reads the units of the divided stages of the run in `folder` without changing anything there. It counts units by
    /// their file names alone; a process that uses a unit checks it.
    ///
    /// # Errors
    /// If the run's config cannot be read.
    pub fn of_run(folder: &Path) -> Result<Vec<Self>, ExperimentError> {
        let config = RunStore::config_in(folder)?;
        let names = StageNames::of(&config);
        let mut all = Vec::new();
        if let Some(name) = &names.teachers {
            all.push(Self::of_stage(folder, name, config.ensemble.teachers, teacher_unit));
        }
        for stages in &names.rows {
            let row = &config.rows[stages.row];
            if row.aggregation == AggregationKind::Encrypted {
                let queries = row.query_count(config.queries.count);
                all.push(Self::of_stage(folder, &stages.labelling, queries, query_unit));
            }
        }
        all.extend(students(folder, &config, &names));
        Ok(all)
    }

    fn of_stage(folder: &Path, name: &str, of: usize, unit: fn(usize) -> String) -> Self {
        let remains = RunStore::remains_in(folder, name);
        let is_there = |number: &usize| remains.folder().join(unit_meta(&unit(*number))).exists();
        let is_finished = RunStore::is_finished(folder, name);
        let done = if is_finished { of } else { (0..of).filter(is_there).count() };
        Self { stage: name.to_owned(), done, of, at_most: false, working: workers(remains.folder()) }
    }
}

/// Returns the units of a run's students, if it has any.
fn students(folder: &Path, config: &Config, names: &StageNames) -> Option<StageUnits> {
    let kind = names.students.as_ref()?.kind();
    let mut units = StageUnits {
        stage: kind.to_string(),
        done: 0,
        of: config.rows.len() * config.table.repeats,
        at_most: true,
        working: Vec::new(),
    };
    let Some(students) = student_stages(folder, config, names) else { return Some(units) };
    (units.of, units.at_most) = (students.len(), false);
    for name in students {
        units.done += usize::from(RunStore::is_finished(folder, &name));
        let here = workers(RunStore::remains_in(folder, &name).folder());
        units.working.extend(here.into_iter().map(|worker| Worker { unit: name.clone(), ..worker }));
    }
    Some(units)
}

/// Returns the names of the students' stages; `None` before every row has labels.
fn student_stages(folder: &Path, config: &Config, names: &StageNames) -> Option<BTreeSet<String>> {
    let students = names.students.as_ref()?;
    let remains = |name: &str| RunStore::is_finished(folder, name).then(|| RunStore::remains_in(folder, name));
    let queries = chosen_queries(&remains(&names.queries)?, config)?;
    let mut results: Vec<RowResult> = Vec::new();
    for index in 0..config.rows.len() {
        let result = match names.rows.iter().find(|stages| stages.row == index) {
            Some(stages) => {
                let labels = RowLabels::of(&remains(&stages.labelling)?)?;
                RowResult { labels, times: None, bounds: None, students: Vec::new() }
            }
            None => results.get(config.labels_of(index))?.clone(),
        };
        results.push(result);
    }
    let courses = courses(config, &queries, &results);
    let named = courses.iter().filter(|course| !course.is_empty());
    let each = |repeat| named.clone().map(move |course| course.stage_name(students, repeat).to_string());
    Some((0..config.table.repeats).flat_map(each).collect())
}
