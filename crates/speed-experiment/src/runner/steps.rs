//! The stages of a run in the order of its data, up to one of them.

use speed_core::Votes;

use crate::config::{Config, RowConfig};
use crate::error::ExperimentError;
use crate::report::RowResult;
use crate::stages::{
    AccountStage, CollectedVotes, Context, Course, DataStage, Images, Keys, Labelled, LabellingStage, QueriesStage,
    Question, RowStages, StageName, StageNames, Students, TeachersStage, Truth, VotesStage, complete, select_queries,
};

/// The results of all stages.
pub(super) struct Results<'a> {
    pub(super) asked: Asked<'a>,
    pub(super) rows: Vec<RowResult>,
}

/// Completes the stages and returns their results; none where `last` was to be the last of them.
///
/// # Errors
/// If a stage fails, or a shard finds one not done.
pub(super) fn results<'a>(
    context: &Context<'a>,
    names: &StageNames,
    images: Option<&'a Images>,
    last: Option<&StageName>,
) -> Result<Option<Results<'a>>, ExperimentError> {
    let Some(asked) = ask(context, names, images, last)? else { return Ok(None) };
    let Some(mut rows) = label_rows(context, names, &asked, last)? else { return Ok(None) };
    train_students(context, names, images, &asked.queries, &mut rows)?;
    Ok(Some(Results { asked, rows }))
}

/// Everything that rows are labelled from.
pub(super) struct Asked<'a> {
    pub(super) truth: Option<Truth<'a>>,
    pub(super) collected: CollectedVotes,
    /// Pool indices.
    pub(super) queries: Vec<usize>,
}

/// Completes the stages before the rows'.
///
/// # Errors
/// If a stage fails, or a shard finds one not done.
pub(super) fn ask<'a>(
    context: &Context<'a>,
    names: &StageNames,
    images: Option<&'a Images>,
    last: Option<&StageName>,
) -> Result<Option<Asked<'a>>, ExperimentError> {
    record_images(context, names, images)?;
    if last.is_some() && last == names.data.as_ref() {
        return Ok(None);
    }
    let truth = Truth::of(context.config, images)?;
    let teachers = match (&names.teachers, images) {
        (Some(name), Some(images)) => Some(complete(context, &TeachersStage { name, images })?),
        _ => None,
    };
    if last.is_some() && last == names.teachers.as_ref() {
        return Ok(None);
    }
    let votes = VotesStage::new(&names.votes, context, images, truth.as_ref(), teachers.as_ref())?;
    let collected = complete(context, &votes)?;
    if last == Some(&names.votes) {
        return Ok(None);
    }
    let queries = select_queries(context.config, &context.streams, images)?;
    complete(context, &QueriesStage { name: &names.queries, queries: &queries })?;
    if last == Some(&names.queries) {
        return Ok(None);
    }
    Ok(Some(Asked { truth, collected, queries }))
}

/// Completes the record of the images, where there are any.
///
/// # Errors
/// If it fails, or a shard finds it not done.
pub(super) fn record_images(
    context: &Context<'_>,
    names: &StageNames,
    images: Option<&Images>,
) -> Result<(), ExperimentError> {
    if let (Some(name), Some(images)) = (&names.data, images) {
        complete(context, &DataStage { name, images })?;
    }
    Ok(())
}

/// Labels the queries for every row, and accounts for the answers; none where `last` was to be the last stage. Keys serve all rows and
/// end here.
///
/// # Errors
/// If a stage fails, or a shard finds one not done.
pub(super) fn label_rows(
    context: &Context<'_>,
    names: &StageNames,
    asked: &Asked<'_>,
    last: Option<&StageName>,
) -> Result<Option<Vec<RowResult>>, ExperimentError> {
    let config = context.config;
    let keys = Keys::default();
    let mut results: Vec<RowResult> = Vec::new();
    for (index, row) in config.rows.iter().enumerate() {
        let Some(stages) = names.rows.iter().find(|stages| stages.row == index) else {
            // Nothing is labelled again, so nothing is paid again.
            results.push(results[config.labels_of(index)].clone());
            continue;
        };
        let Some(result) = label_row(context, stages, question(asked, row), &keys, last)? else { return Ok(None) };
        results.push(result);
    }
    Ok(Some(results))
}

/// Returns the question of a row.
pub(super) fn question<'a>(asked: &'a Asked<'_>, row: &'a RowConfig) -> Question<'a> {
    let Asked { truth, collected: CollectedVotes { votes, hash, .. }, queries } = asked;
    let queries = &queries[..row.query_count(queries.len())];
    Question { row, votes, votes_hash: *hash, queries, truth: truth.as_ref() }
}

fn label_row(
    context: &Context<'_>,
    stages: &RowStages,
    question: Question<'_>,
    keys: &Keys,
    last: Option<&StageName>,
) -> Result<Option<RowResult>, ExperimentError> {
    let (labels, times) = complete(context, &LabellingStage::new(&stages.labelling, question, keys))?;
    if last == Some(&stages.labelling) {
        return Ok(None);
    }
    let bounds = match &stages.account {
        // No unit of a shard depends on it.
        Some(name) if !context.store.is_shard() => {
            let counts = counts(question.votes, question.queries);
            Some(complete(context, &AccountStage { name, row: question.row, counts: &counts })?)
        }
        _ => None,
    };
    if last.is_some() && last == stages.account.as_ref() {
        return Ok(None);
    }
    Ok(Some(RowResult { labels, times, bounds, students: Vec::new() }))
}

/// Returns the counts of the votes on the queries.
pub(super) fn counts(votes: &Votes, queries: &[usize]) -> Vec<Vec<u32>> {
    queries.iter().map(|&image| votes.counts(image)).collect()
}

/// Trains the students of every row on its labels.
fn train_students(
    context: &Context<'_>,
    names: &StageNames,
    images: Option<&Images>,
    queries: &[usize],
    results: &mut [RowResult],
) -> Result<(), ExperimentError> {
    let (Some(names), Some(images), config) = (&names.students, images, context.config) else { return Ok(()) };
    let courses = courses(config, queries, results);
    for course in courses.iter().filter(|course| course.is_empty()) {
        context.progress.note(&format!("{}: no query has an answer, so no student learns", course.labelled.row));
    }
    let students = Students::train(context, names, images, &courses)?;
    for (result, course) in results.iter_mut().zip(&courses) {
        result.students = students.of(names, course, config.table.repeats);
    }
    Ok(())
}

/// Returns what the students of every row learn from.
pub(super) fn courses<'a>(config: &'a Config, queries: &[usize], results: &[RowResult]) -> Vec<Course<'a>> {
    let courses = config.rows.iter().zip(results).map(|(row, result)| {
        let (queries, labels) = result.labels.labelled(queries);
        Course { labelled: Labelled { row: &row.name, queries, labels }, method: config.method_of(row) }
    });
    courses.collect()
}
