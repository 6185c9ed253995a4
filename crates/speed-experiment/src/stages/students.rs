//! The training of the students, one for each distinct set of labels and repeat. One training runs on each thread.

mod record;
mod session;
mod stage;
mod student;

pub(crate) use record::{METRICS, PICTURE, kept_weights, read_epochs};
pub(super) use student::{LabelledQueries, StudentSpec};

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use speed_data::Split;
use speed_nn::threads;
use speed_student::StudentMethod;

pub(crate) use self::student::KIND;
use self::student::Student;
use super::beliefs::{self, KIND as BELIEFS, RowBeliefs};
use super::complete::{identify, perform};
use super::context::Context;
use super::images::Images;
use super::kind::{Kind, Node, Units};
use super::labelling::{KIND as LABELLING, RowLabellings, RowLabels, RunKeys};
use super::outputs::Outputs;
use super::queries::{KIND as QUERIES, Queries, QueryList, chosen};
use super::units::StageUnits;
use crate::config::{Config, DataSource, RowConfig};
use crate::cost::{Meter, StageCost};
use crate::error::ExperimentError;
use crate::report::{BASELINE_STAGE as BASELINE, StudentRun};
use crate::store::RunStore;

/// The trained students of every row, by the rows' places in the config.
#[derive(Default)]
pub(crate) struct RowStudents(pub(crate) Vec<Vec<StudentRun>>);

pub(super) static STUDENT_TRAINING: Kind = Kind {
    units: Some(Units {
        name: "students",
        count: |config, _| match config.data.source {
            DataSource::None => 0,
            _ => config.rows.len() * config.table.repeats,
        },
        are_serial: true,
        work: |context, _, outputs, shard| {
            let Some(images) = context.images() else { return Ok(()) };
            let specs = specs_of_run(context.config, outputs);
            let work = Training { context, kind: KIND, stages: students(context, images, &specs) };
            let mut own = Vec::new();
            for (unit, student) in work.stages.iter().enumerate() {
                own.extend(shard.own(&identify(context, student)?, unit..unit + 1));
            }
            shard.done_here += work.train(&own)?.1;
            Ok(())
        },
        found: |run, config, node, earlier| {
            Some(match recorded(run, config, earlier) {
                Some(names) => StageUnits::count(KIND, names.len(), |unit| RunStore::is_finished(run, &names[unit])),
                None => StageUnits { at_most: true, ..StageUnits::count(KIND, node.units(config), |_| false) },
            })
        },
    }),
    // Each student has a record of its own.
    is_finished: |run, config, _, earlier| {
        recorded(run, config, earlier).is_some_and(|names| names.iter().all(|name| RunStore::is_finished(run, name)))
    },
    // The largest possible cost, because rows with the same labels share their students.
    cost: |config, meter| costs(config, meter, KIND, "students"),
    ..Kind::new(KIND, |config, _| config.table.repeats > 0, train_rows)
};

fn train_rows(context: &Context<'_>, _: &Node, outputs: &mut Outputs) -> Result<(), ExperimentError> {
    let Some(images) = context.images() else { return Ok(()) };
    // No later stage uses the keys, and the trainings need the memory.
    outputs.remove::<RunKeys>();
    let specs = specs_of_run(context.config, outputs);
    for spec in specs.iter().filter(|spec| spec.is_empty()) {
        context.progress.note(&format!("{}: no query has an answer, so no student learns", spec.labelled.row));
    }
    let trained = Training { context, kind: KIND, stages: students(context, images, &specs) }.train_all()?;
    let of_spec = |spec: &StudentSpec<'_>| -> Vec<StudentRun> {
        let find = |repeat| trained.iter().find(|run| run.stage == spec.stage_name(repeat)).cloned();
        (0..context.config.table.repeats).filter_map(find).collect()
    };
    let students = RowStudents(specs.iter().map(of_spec).collect());
    outputs.put(students);
    Ok(())
}

/// Estimates the largest possible cost of the students of all rows. `what` names them in the plan.
pub(super) fn costs(
    config: &Config,
    meter: &Meter,
    stage: &'static str,
    what: &str,
) -> Result<Vec<StageCost>, ExperimentError> {
    let mut costs = Vec::new();
    for method in StudentMethod::all() {
        let rows = config.rows.iter().filter(|row| config.method_of(row) == method).count();
        let students = rows * config.table.repeats;
        let measured = (students > 0).then(|| meter.student(config, method)).transpose()?.flatten();
        let Some((per_image, memory_bytes)) = measured else { continue };
        let images = (students * method.passes(&config.student).images(config.data.pool_images)) as f64;
        costs.push(StageCost {
            stage,
            kind: format!("{what} by {}, at most", method.name()),
            core_seconds: per_image.map(|seconds| images * seconds),
            memory_bytes: meter.threads() * memory_bytes,
        });
    }
    Ok(costs)
}

/// Trains the students of all specifications on the labelled images alone, and returns them by specification. `splits` has
/// the labelled images of each. A method without such a training has none.
pub(super) fn train_labelled_only<'a>(
    context: &'a Context<'a>,
    images: &'a Images,
    specs: &'a [StudentSpec<'a>],
    splits: &'a [Split],
) -> Result<Vec<Vec<StudentRun>>, ExperimentError> {
    let (student, pool) = (&context.config.student, images.pool.len());
    let mut stages: Vec<Student<'_>> = Vec::new();
    let mut names: Vec<Vec<String>> = vec![Vec::new(); specs.len()];
    for ((spec, split), names) in specs.iter().zip(splits).zip(&mut names) {
        if spec.is_empty() || spec.method.labelled_only(student, pool).is_none() {
            continue;
        }
        for repeat in 0..context.config.table.repeats {
            let stage = Student::new(images, spec, repeat).alone(split);
            names.push(stage.name.clone());
            if !stages.iter().any(|other| other.name == stage.name) {
                stages.push(stage);
            }
        }
    }
    if stages.is_empty() {
        return Ok(vec![Vec::new(); specs.len()]);
    }
    let trained = Training { context, kind: BASELINE, stages }.train_all()?;
    let find = |name: &String| trained.iter().find(|run| run.stage == *name).cloned();
    Ok(names.iter().map(|names| names.iter().filter_map(find).collect()).collect())
}

/// Returns the labels and the method of every row's students, from the outputs of the earlier stages.
pub(super) fn specs_of_run<'a>(config: &'a Config, outputs: &Outputs) -> Vec<StudentSpec<'a>> {
    let none = RowBeliefs::default();
    let beliefs = outputs.find::<RowBeliefs>().unwrap_or(&none);
    let labels = outputs.get::<RowLabellings>().0.iter().map(|(row, (labels, _))| (*row, labels)).collect();
    student_specs(config, outputs.get::<Queries>().all(), &labels, beliefs)
}

/// Returns the labels and the method of every row's students, from the labels of the queries by the rows' places in the config.
fn student_specs<'a>(
    config: &'a Config,
    queries: QueryList<'_>,
    labels: &BTreeMap<usize, &RowLabels>,
    RowBeliefs(beliefs): &RowBeliefs,
) -> Vec<StudentSpec<'a>> {
    let spec = |(index, row): (usize, &'a RowConfig)| {
        let of = config.labels_of(index);
        let beliefs = beliefs.get(&of);
        let mut labelled = LabelledQueries { row: &row.name, queries: Vec::new(), labels: Vec::new(), doubts: None };
        labelled.doubts = beliefs.map(|_| Vec::new());
        let mut beliefs = beliefs.into_iter().flatten();
        for (query, label) in labels[&of].answers() {
            // `speed show` reads the file of a run that may be damaged; a student without all doubts is refused.
            let belief = beliefs.next();
            let (label, doubt) = belief.map_or((label, None), |belief| (belief.label, Some(belief.doubt)));
            labelled.add(queries.members(query), label, doubt);
        }
        StudentSpec { labelled, method: config.method_of(row) }
    };
    config.rows.iter().enumerate().map(spec).collect()
}

/// Returns the names of the students of the run in the directory `run`, in the order of [`distinct`], or `None` before every
/// row has labels.
fn recorded(run: &Path, config: &Config, earlier: &[Node]) -> Option<Vec<String>> {
    let remains = |node: &Node| RunStore::is_finished(run, &node.name).then(|| RunStore::remains_in(run, &node.name));
    let of_kind = |kind: &'static str| earlier.iter().filter(move |node| node.kind.name == kind);
    let queries = chosen(&remains(of_kind(QUERIES).next()?)?, config)?;
    let labels = |node: &Node| {
        let labels = RowLabels::read(&remains(node)?)?;
        // Nothing checked the files, so one of them may be of other queries.
        (labels.labels.len() <= queries.all().len()).then_some((node.row?, labels))
    };
    let labelled = of_kind(LABELLING).map(labels).collect::<Option<Vec<(usize, RowLabels)>>>()?;
    let beliefs = of_kind(BELIEFS).next().map(|node| beliefs::read(&remains(node)?));
    let beliefs = beliefs.unwrap_or_else(|| Some(RowBeliefs::default()))?;
    let labels = labelled.iter().map(|(row, labels)| (*row, labels)).collect();
    let specs = student_specs(config, queries.all(), &labels, &beliefs);
    let names = distinct(config, &specs).into_iter().map(|(spec, repeat)| spec.stage_name(repeat));
    Some(names.collect())
}

/// Returns the distinct students of all specifications, each with its specification and its repeat.
fn distinct<'s, 'a>(config: &Config, specs: &'s [StudentSpec<'a>]) -> Vec<(&'s StudentSpec<'a>, usize)> {
    let of_spec = |spec| (0..config.table.repeats).map(move |repeat| (spec, repeat));
    let mut names = BTreeSet::new();
    let all = specs.iter().filter(|spec| !spec.is_empty()).flat_map(of_spec);
    all.filter(|(spec, repeat)| names.insert(spec.stage_name(*repeat))).collect()
}

fn students<'a>(context: &Context<'_>, images: &'a Images, specs: &'a [StudentSpec<'a>]) -> Vec<Student<'a>> {
    let distinct = distinct(context.config, specs).into_iter();
    distinct.map(|(spec, repeat)| Student::new(images, spec, repeat)).collect()
}

/// The training of students; each student is a unit of work and a separate stage.
struct Training<'a> {
    context: &'a Context<'a>,
    kind: &'static str,
    stages: Vec<Student<'a>>,
}

impl Training<'_> {
    fn train_all(&self) -> Result<Vec<StudentRun>, ExperimentError> {
        Ok(self.train(&(0..self.stages.len()).collect::<Vec<_>>())?.0)
    }

    /// Ensures that these students are trained, and returns them and the number that this process trained.
    fn train(&self, units: &[usize]) -> Result<(Vec<StudentRun>, usize), ExperimentError> {
        let Context { progress, threads, .. } = self.context;
        let epochs = units.iter().map(|&unit| u64::from(self.stages[unit].epochs(self.context))).sum();
        progress.started(self.kind);
        progress.begin(&format!("train {} students", units.len()), "epochs", epochs, 0);
        let trained = threads::map(units, threads.get(), |&unit, stop| {
            perform(self.context, &self.stages[unit].until(stop, (unit + 1, self.stages.len())))
        })?;
        progress.end(&format!("{} students trained", units.len()));
        progress.finished(self.kind, false);
        let (trained, is_new): (Vec<StudentRun>, Vec<bool>) = trained.into_iter().unzip();
        Ok((trained, is_new.into_iter().filter(|is_new| *is_new).count()))
    }
}
