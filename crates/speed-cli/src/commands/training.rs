//! `speed teacher train` and `vote`, `speed student queries`, `plurality` and `train`

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use speed_core::{printable, printable_path};
use speed_experiment::model::Model;
use speed_experiment::report::{Classification, ModelFile, Table};
use speed_experiment::training::{
    self, Grouping, ImagesOptions, OnnxOptions, PoolSummary, QueriesChoice, QueriesReport, StudentReport,
    TeacherReport, TeachersReport, VoteReport, check_new, write_output,
};
use speed_round::hash_file;

use super::card::{RoundFacts, card, card_paths};
use super::{Failure, mark, print_report, threads};
use crate::options::{
    LogFormat, PluralityOptions, StudentQueriesOptions, StudentTrainOptions, TeacherTrainOptions, TeacherVoteOptions,
};
use crate::progress::Reporter;
use crate::terminal;

/// Runs work that reports progress, and clears the bars before its results.
fn reported<T>(
    work: impl FnOnce(&dyn speed_experiment::Progress) -> Result<T, speed_experiment::ExperimentError>,
) -> Result<T, Failure> {
    let reporter = Reporter::new(LogFormat::Text);
    Ok(work(reporter.progress())?)
}

pub(super) fn train_teachers(options: TeacherTrainOptions) -> Result<(), Failure> {
    let TeacherTrainOptions { images, labels, parts, division_key, group_by_prefix, groups, common, sets, .. } =
        options;
    let options = training::TeacherOptions {
        images: ImagesOptions { path: images, labels, size: common.size, grey: common.grey },
        classes: common.classes.map(|names| names.0),
        parts,
        division_key,
        grouping: group_by_prefix.map(Grouping::Prefix).or_else(|| groups.map(Grouping::File)),
        validation: options.validation,
        epochs: options.epochs,
        seed: common.seed,
        threads: threads(options.threads),
        sets,
        out: options.out,
    };
    let report = reported(|progress| training::train_teachers(&options, progress))?;
    print_report(common.json, &report, || teachers_text(&report))
}

fn teachers_text(report: &TeachersReport) -> String {
    let TeachersReport { seed, shape, images, groups, architecture, teachers, validation, .. } = report;
    let [channels, height, width] = shape;
    let of_groups = groups.map_or_else(String::new, |groups| format!(" in {groups} groups"));
    let mut text =
        format!("{images} images of {channels}x{height}x{width}{of_groups}: network {architecture}, seed {seed}\n");
    let mut table = Table::new(["model", "images", "steps", "fits %", "held out", "right %"]);
    for TeacherReport { file, images, steps, train_accuracy, validation_images, validation_accuracy } in teachers {
        table.push(vec![
            printable_path(file),
            images.to_string(),
            steps.to_string(),
            percent(*train_accuracy),
            validation_images.to_string(),
            validation_accuracy.map_or_else(|| "-".to_owned(), percent),
        ]);
    }
    text.push_str(&terminal::table(&table));
    match validation {
        Some(validation) => text.push_str(&of_classes("held-out images", validation)),
        None => text.push_str("accuracy unknown: no group of images was held out (--validation)\n"),
    }
    text
}

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

/// Returns the results by class, with the most frequent confusions.
fn of_classes(images: &str, result: &Classification) -> String {
    let mut text = format!("\n{images}, by class:\n{}", terminal::table(&result.table()));
    let name = |class: usize| printable(&result.names()[class]);
    let confusions = result.confusions().into_iter().take(3);
    let confusions: Vec<String> =
        confusions.map(|(truth, found, images)| format!("{} as {} ({images})", name(truth), name(found))).collect();
    if !confusions.is_empty() {
        let _ = writeln!(text, "most frequent confusions: {}", confusions.join(", "));
    }
    text
}

pub(super) fn vote(options: TeacherVoteOptions) -> Result<(), Failure> {
    let TeacherVoteOptions { model, onnx, classes, fit, images, query_list, known, out, json, .. } = options;
    let (models, onnx) = if onnx.is_empty() {
        (model, None)
    } else {
        (onnx, Some(OnnxOptions { classes: classes.map(|names| names.0), fits: fit }))
    };
    let options = training::VoteOptions {
        models,
        onnx,
        images,
        queries: query_list,
        known,
        threads: threads(options.threads),
        out,
    };
    let report = reported(|progress| training::vote(&options, progress))?;
    print_report(json, &report, || vote_text(&report))
}

fn vote_text(report: &VoteReport) -> String {
    let VoteReport { out, models, queries, images, class_names, shares, right } = report;
    let classes =
        class_names.iter().zip(shares).map(|(name, share)| format!("{} {} %", printable(name), percent(*share)));
    let asked = if queries == images { String::new() } else { format!("{queries} groups of ") };
    let right = right.iter().flatten().zip(models);
    let right: String = right
        .map(|(right, model)| format!("{}: {} % of the known answers\n", printable_path(model), percent(*right)))
        .collect();
    format!(
        "{} model{} voted on {asked}{images} images of {} classes: {}\nvotes by class: {}\n{right}the votes are private: only `speed teacher answer` protects them\n",
        models.len(),
        if models.len() == 1 { "" } else { "s" },
        class_names.len(),
        printable_path(out),
        classes.collect::<Vec<_>>().join(", ")
    )
}

pub(super) fn queries(options: StudentQueriesOptions) -> Result<(), Failure> {
    let StudentQueriesOptions { pool, count, clusters, groups, features, size, grey, seed, out, json, .. } = options;
    let features = features.unwrap_or_default();
    let choice = match (clusters, groups) {
        (_, true) => QueriesChoice::Groups(features),
        (true, false) => QueriesChoice::Typical(features),
        (false, false) => QueriesChoice::Random,
    };
    let options = training::QueriesOptions {
        pool: ImagesOptions { path: pool, labels: None, size, grey },
        count,
        choice,
        seed,
        threads: threads(options.threads),
        out,
    };
    let report = reported(|progress| training::choose_queries(&options, progress))?;
    print_report(json, &report, || queries_text(choice, &report, &options.out))
}

fn queries_text(choice: QueriesChoice, report: &QueriesReport, out: &Path) -> String {
    let (QueriesReport { seed, queries, images, pool_images }, out) = (report, printable_path(out));
    match choice {
        QueriesChoice::Random => format!("{queries} queries, drawn with seed {seed}, in {out}\n"),
        QueriesChoice::Typical(_) => {
            format!(
                "{queries} queries, the typical images of {queries} clusters of {pool_images} images, seed {seed}, in {out}\n"
            )
        }
        QueriesChoice::Groups(_) => {
            format!("{queries} queries, groups with {images} of {pool_images} images, seed {seed}, in {out}\n")
        }
    }
}

pub(super) fn plurality(options: PluralityOptions) -> Result<(), Failure> {
    let PluralityOptions { votes, query_list, classes, out, json } = options;
    let options = training::PluralityOptions { votes, queries: query_list, classes, out };
    let report = training::plurality(&options)?;
    print_report(json, &report, || {
        format!(
            "NOT PRIVATE: votes were counted in clear text, without noise; for trials only\n{} queries labelled by the plurality of {} teachers, who all agree on {}: {}\n",
            report.queries,
            report.teachers,
            report.unanimous,
            printable_path(&report.out)
        )
    })
}

pub(super) fn train_student(options: StudentTrainOptions) -> Result<(), Failure> {
    let StudentTrainOptions { pool, labels, query_list, test, test_labels, epochs, sets, common, .. } = options;
    let round =
        options.round.map(|path| RoundFacts::read(&path, options.result.as_deref(), options.delta)).transpose()?;
    let simulation = round.as_ref().is_some_and(|round| round.origin.simulation);
    let cards = card_paths(&options.out);
    cards.iter().try_for_each(|path| check_new(path))?;
    let options = training::StudentOptions {
        pool: ImagesOptions { path: pool, labels: None, size: common.size, grey: common.grey },
        labels,
        queries: query_list,
        test,
        test_labels,
        classes: common.classes.map(|names| names.0),
        round: round.as_ref().map(|round| round.origin.clone()),
        epochs,
        seed: common.seed,
        sets,
        out: options.out,
    };
    let report = reported(|progress| training::train_student(&options, progress))?;
    write_card(&report, round.as_ref(), &cards)?;
    print_report(common.json, &report, || format!("{}{}", mark(simulation), student_text(&report)))
}

/// Writes the card of a trained student, in JSON and in Markdown.
fn write_card(report: &StudentReport, round: Option<&RoundFacts>, [json, text]: &[PathBuf; 2]) -> Result<(), Failure> {
    let (model, hash) = (Model::read(&report.out, None)?, hash_file(&report.out, Model::MAX_BYTES)?);
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let file = ModelFile { file: name(&report.out), sha256: hash.to_hex() };
    let card = card(report, model.description(), file, round);
    write_output(json, card.to_json().as_bytes())?;
    Ok(write_output(text, card.to_markdown(&name(json)).as_bytes())?)
}

fn student_text(report: &StudentReport) -> String {
    let StudentReport { out, method, seed, class_names, labelled, unanswered, labelled_images, pool, test, .. } =
        report;
    let PoolSummary { images, agreement, confidence, predicted } = pool;
    let labels = if labelled == labelled_images {
        format!("{labelled} labels for {images} images")
    } else {
        format!("{labelled} labels of groups with {labelled_images} of {images} images")
    };
    let mut text = format!(
        "{labels}, {unanswered} queries without an answer; method {method}, seed {seed}\nmodel: {}\n",
        printable_path(out)
    );
    let _ = writeln!(
        text,
        "the model agrees with {} % of the labels given; its mean confidence on the pool is {} %",
        percent(*agreement),
        percent(*confidence)
    );
    let shares = class_names
        .iter()
        .zip(predicted)
        .map(|(name, count)| format!("{} {} %", printable(name), percent(*count as f64 / *images as f64)));
    let _ = writeln!(text, "predicted classes of the pool: {}", shares.collect::<Vec<_>>().join(", "));
    match test {
        Some(test) => text.push_str(&of_classes("test images", test)),
        None => text.push_str("accuracy unknown: give labelled images with --test to measure it\n"),
    }
    text
}
