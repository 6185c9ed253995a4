//! `speed teacher train` and `vote`, `speed student queries`, `plurality` and `train`

use std::fmt::Write as _;
use std::num::{NonZeroU16, NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};
use speed_accountant::Delta;
use speed_core::{Classes, printable, printable_path};
use speed_experiment::config::PatientRule;
use speed_experiment::model::Model;
use speed_experiment::report::{Classification, EVEN, EncoderFacts, ModelFile, Table};
use speed_experiment::training::{
    self, Features, ImagesOptions, OnnxOptions, PoolSummary, QueriesChoice, QueriesReport, StudentReport,
    TeacherReport, TeachersReport, VoteReport, check_new, write_output,
};
use speed_round::hash_file;

use super::card::{RoundFacts, card, card_paths};
use super::{Failure, mark, print_report, threads};
use crate::options::{ClassNames, MAX_SEED, class_names, classes, delta};
use crate::progress::{LogFormat, Reporter};
use crate::terminal;

/// The form of pictures and the seed of a training.
#[derive(Debug, Args)]
pub(crate) struct CommonTrainOptions {
    /// The names of the classes in the order of the labels, separated by commas (a name with a comma in double quotes); all parties of a round need the same
    /// [default: the names of the folders, in their order]
    #[arg(long, value_name = "NAMES", value_parser = class_names)]
    classes: Option<ClassNames>,
    /// For photographs: an ONNX file that turns pictures of any size into vectors, from which the model learns
    /// (docs/first-model.md). All parties of a round need the same; it must come from public data
    #[arg(long, value_name = "FILE", conflicts_with = "grey")]
    encoder: Option<PathBuf>,
    /// Resize all pictures to HEIGHTxWIDTH; without it all must have the same size. With --encoder: the size of its pictures,
    /// if it leaves them open
    #[arg(long, value_name = "HxW")]
    size: Option<String>,
    /// Convert all pictures to grey
    #[arg(long)]
    grey: bool,
    /// Seed of the training [default: drawn, and printed]
    #[arg(long, value_name = "SEED", value_parser = clap::value_parser!(u64).range(..=MAX_SEED))]
    seed: Option<u64>,
    /// Print JSON (docs/json.md)
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TeacherTrainOptions {
    /// A folder with one subfolder of PNG and JPEG pictures for each class, or an .npy array: images x height x width (x
    /// channels), uint8
    #[arg(long, value_name = "FOLDER")]
    images: PathBuf,
    /// The labels of an array: .npy, classes from 0
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// Train this number of teachers on disjoint parts; --out is then a folder. A keyed hash of a patient's id decides
    /// about its part. Needs --classes
    #[arg(long, value_name = "M")]
    parts: Option<NonZeroUsize>,
    /// With --parts: the key of the division. Keep it secret, and keep it for all rounds; it is made if it is missing
    #[arg(long, value_name = "FILE", default_value = "division.key")]
    division_key: PathBuf,
    /// Keep all images of a patient together, as data.patients of a config does: prefix:_ (the patient of 07_left.png is 07), a
    /// CSV file with the columns file and patient, or dicom (the patient id of DICOM files)
    #[arg(long, value_name = "RULE")]
    patients: Option<PatientRule>,
    /// Fraction of the patients, or else of the images, that is held out to measure the teacher
    #[arg(long, value_name = "FRACTION", default_value_t = 0.2)]
    validation: f64,
    /// Passes over the training images [default: teacher.steps = 300 steps of 30 images]
    #[arg(long, value_name = "N")]
    epochs: Option<NonZeroUsize>,
    /// Change a key of [teacher], or with --encoder of [features] (configs/default.toml), for example --set
    /// teacher.architecture=deeper [default architecture: small, or linear with --encoder]. A teacher that lacks classes leaves
    /// its vote on pictures unlike its own empty, unless --set teacher.unknown=vote or random
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Weights of the classes: none, or balanced, so that rare classes count as much as frequent ones [default: none]
    #[arg(long, value_name = "RULE", value_parser = ["none", "balanced"], hide_possible_values = true)]
    class_weights: Option<String>,
    /// Number of teachers that are trained at the same time; results do not depend on it [default: all processors]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroU16>,
    #[command(flatten)]
    common: CommonTrainOptions,
    /// The new model file, or with --parts the new folder of model files; only their owner can read them
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct TeacherVoteOptions {
    /// The models: files, or folders of .safetensors files; each is one teacher
    #[arg(long, value_name = "FILE", required_unless_present = "onnx", num_args = 1..)]
    model: Vec<PathBuf>,
    /// ONNX models of other programs: files, or folders of .onnx files; each is one teacher. Input N x channels x height x
    /// width, uint8 or float32 from 0 to 1; first output N x classes, scores or probabilities. Use only models that you trust
    #[arg(long, value_name = "FILE", conflicts_with = "model", num_args = 1..)]
    onnx: Vec<PathBuf>,
    /// The names of the classes of ONNX models, in the order of their scores, separated by commas [default: the file's
    /// metadata entry classes, a JSON list]
    #[arg(long, value_name = "NAMES", value_parser = class_names, conflicts_with = "model")]
    classes: Option<ClassNames>,
    /// Resize images to the size of the ONNX model and convert them to its colours; without it, other images are refused
    #[arg(long, conflicts_with = "model")]
    fit: bool,
    /// The encoder with which the models were trained (teacher train --encoder)
    #[arg(long, value_name = "FILE", conflicts_with = "onnx")]
    encoder: Option<PathBuf>,
    /// The public images: a folder of pictures, or an .npy array
    #[arg(long, value_name = "FOLDER")]
    images: PathBuf,
    /// The round's list of queries, which names images by their paths in the folder; the votes have its order. If it has
    /// groups, the answer to a group is the most frequent class of its images [default: all images in the order of their
    /// names]
    #[arg(long, value_name = "FILE")]
    query_list: Option<PathBuf>,
    /// Known answers that measure the models, which are then reported beside the votes: a CSV file with the columns name (of an
    /// image or group among the queries) and label (the name of its class)
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,
    /// The new votes: .csv with lines of name,label for one model; .npy, teachers x queries; or otherwise a folder with a
    /// CSV file for each model
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Number of threads; votes do not depend on it [default: all processors]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroU16>,
    /// Print JSON (docs/json.md)
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("by cluster").args(["clusters", "groups"]).multiple(true))]
pub(crate) struct StudentQueriesOptions {
    /// The public images: a folder of pictures; with --clusters or --groups also an .npy array
    #[arg(long, value_name = "FOLDER")]
    pool: PathBuf,
    /// Number of queries
    #[arg(long, value_name = "N")]
    count: usize,
    /// Divide the pool into as many clusters of similar images, and choose the typical image of each [default: a random choice]
    #[arg(long)]
    clusters: bool,
    /// Divide the pool into as many clusters of similar images, and choose the core of each: a query is then a group of
    /// images, which get one label together
    #[arg(long)]
    groups: bool,
    /// The vectors by which images are similar: straightened (grey levels, centred and without slant, for handwriting on a
    /// dark background), gradients (directions of edges, for photographs) or pixels [default: straightened]
    #[arg(long, value_name = "NAME", requires = "by cluster")]
    features: Option<Features>,
    /// For photographs, in place of --features: an ONNX file that turns pictures of any size into vectors
    /// (docs/first-model.md). The list of queries states its SHA-256
    #[arg(long, value_name = "FILE", requires = "by cluster", conflicts_with_all = ["features", "grey"])]
    encoder: Option<PathBuf>,
    /// Change a key of [features] (configs/default.toml), for example --set features.pool=first
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "encoder")]
    sets: Vec<String>,
    /// Resize all pictures to HEIGHTxWIDTH; without it all must have the same size. A random choice keeps all sizes. With
    /// --encoder: the size of its pictures, if it leaves them open
    #[arg(long, value_name = "HxW")]
    size: Option<String>,
    /// Convert all pictures to grey
    #[arg(long)]
    grey: bool,
    /// Seed of the choice [default: drawn, and printed]
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// Number of threads; the choice does not depend on it [default: all processors]
    #[arg(long, value_name = "N", requires = "by cluster")]
    threads: Option<NonZeroU16>,
    /// The new list of queries, for `student round --query-list`
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Print JSON (docs/json.md)
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PluralityOptions {
    /// Files of votes: CSV or .npy of one teacher, or .npy tables of teachers x queries. Empty votes are not counted
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    votes: Vec<PathBuf>,
    /// The list of queries that the teachers voted on
    #[arg(long, value_name = "FILE")]
    query_list: PathBuf,
    /// The names of the classes in their order, separated by commas; or their number, if they are called 0, 1 and so on
    #[arg(long, value_name = "NAMES", value_parser = classes)]
    classes: Classes,
    /// The new file of labels, lines of query,label
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Print JSON (docs/json.md)
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StudentTrainOptions {
    /// The public images without labels: a folder of pictures, or an .npy array
    #[arg(long, value_name = "FOLDER")]
    pool: PathBuf,
    /// The labels of `student open`, lines of query,label; or lines of name,label; labels are names of classes. Queries without a label are skipped, and
    /// the label of a group is the label of all its images
    #[arg(long, value_name = "FILE")]
    labels: PathBuf,
    /// The round's list of queries; without it, query 0 is the first image of the pool in the order of names, and so on
    #[arg(long, value_name = "FILE")]
    query_list: Option<PathBuf>,
    /// The round's file: its id is recorded in the model, its numbers of queries and classes are checked, and the model's
    /// card states its privacy cost
    #[arg(long, value_name = "FILE")]
    round: Option<PathBuf>,
    /// The round's result: the card states the cost for the teachers that were counted; without it, for the smallest number
    /// that the round accepts
    #[arg(long, value_name = "FILE", requires = "round")]
    result: Option<PathBuf>,
    /// Delta of the epsilon in the model's card
    #[arg(long, value_name = "D", default_value = "1e-5", value_parser = delta)]
    delta: Delta,
    /// Labelled images that measure the model, with one subfolder for each class, or an .npy array
    #[arg(long, value_name = "FOLDER")]
    test: Option<PathBuf>,
    /// The labels of a test array: .npy, classes from 0
    #[arg(long, value_name = "FILE", requires = "test")]
    test_labels: Option<PathBuf>,
    /// With two classes and --test: the probability of the second class above which an image counts as that class in the
    /// report; the model does not depend on it
    #[arg(long, value_name = "P", requires = "test", default_value_t = EVEN)]
    threshold: f64,
    /// Epochs of student.epoch_images images each [default: 40 for pseudo-labels, 100 for the GANs]
    #[arg(long, value_name = "N", conflicts_with = "encoder")]
    epochs: Option<NonZeroU32>,
    /// Change a key of [student], or with --encoder of [features] (configs/default.toml), for example --set student.method=gan
    /// [default method: pseudo-labels, or linear with --encoder]
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Number of threads of the encoder; the model does not depend on it [default: all processors]
    #[arg(long, value_name = "N", requires = "encoder")]
    threads: Option<NonZeroU16>,
    #[command(flatten)]
    common: CommonTrainOptions,
    /// The new model file, for `speed predict`; its card is written beside it, as -card.json and -card.md
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// Runs work that reports progress, and clears the bars before its results.
fn reported<T>(
    work: impl FnOnce(&dyn speed_experiment::Progress) -> Result<T, speed_experiment::ExperimentError>,
) -> Result<T, Failure> {
    Ok(work(&Reporter::new(LogFormat::Text))?)
}

pub(super) fn train_teachers(options: TeacherTrainOptions) -> Result<(), Failure> {
    let TeacherTrainOptions { images, labels, parts, division_key, patients, common, sets, .. } = options;
    let options = training::TeacherOptions {
        images: ImagesOptions { path: images, labels, size: common.size, grey: common.grey, encoder: common.encoder },
        classes: common.classes.map(|names| names.0),
        parts,
        division_key,
        patients,
        validation: options.validation,
        epochs: options.epochs,
        seed: common.seed,
        threads: threads(options.threads),
        class_weights: options.class_weights,
        sets,
        out: options.out,
    };
    let report = reported(|progress| training::train_teachers(&options, progress))?;
    print_report(common.json, &report, || teachers_text(&report))
}

fn teachers_text(report: &TeachersReport) -> String {
    let TeachersReport { seed, shape, images, patients, architecture, teachers, validation, encoder, .. } = report;
    let [channels, height, width] = shape;
    let of_patients = patients.map_or_else(String::new, |patients| format!(" of {patients} patients"));
    let mut text =
        format!("{images} images of {channels}x{height}x{width}{of_patients}: network {architecture}, seed {seed}\n");
    text.push_str(&encoder_text(encoder.as_ref()));
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
        None => text.push_str("accuracy unknown: no image was held out (--validation)\n"),
    }
    text
}

fn encoder_text(encoder: Option<&EncoderFacts>) -> String {
    encoder.map_or_else(String::new, |encoder| format!("encoder {}\n", encoder.in_words()))
}

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

/// Returns the results by class, with the most frequent confusions.
fn of_classes(images: &str, result: &Classification) -> String {
    let mut text = format!("\n{images}, by class:\n{}", terminal::table(&result.table()));
    let words: String = result.in_words().iter().map(|line| format!("{line}\n")).collect();
    text.push_str(&terminal::text(&words));
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
    let TeacherVoteOptions { model, onnx, classes, fit, encoder, images, query_list, known, out, json, .. } = options;
    let (models, onnx) = if onnx.is_empty() {
        (model, None)
    } else {
        (onnx, Some(OnnxOptions { classes: classes.map(|names| names.0), fits: fit }))
    };
    let options = training::VoteOptions {
        models,
        onnx,
        encoder,
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
    let VoteReport { out, models, queries, images, class_names, shares, empty, right } = report;
    let classes =
        class_names.iter().zip(shares).map(|(name, share)| format!("{} {} %", printable(name), percent(*share)));
    let asked = if queries == images { String::new() } else { format!("{queries} groups of ") };
    let right = right.iter().flatten().zip(models);
    let right: String = right
        .map(|(right, model)| format!("{}: {} % of the known answers\n", printable_path(model), percent(*right)))
        .collect();
    let empty = empty.iter().zip(models).filter(|(share, _)| **share > 0.0);
    let empty: String = empty
        .map(|(share, model)| format!("{}: {} % of its votes are empty\n", printable_path(model), percent(*share)))
        .collect();
    format!(
        "{} model{} voted on {asked}{images} images of {} classes: {}\nvotes by class: {}\n{empty}{right}the votes are private: only `speed teacher answer` protects them\n",
        models.len(),
        if models.len() == 1 { "" } else { "s" },
        class_names.len(),
        printable_path(out),
        classes.collect::<Vec<_>>().join(", ")
    )
}

pub(super) fn queries(options: StudentQueriesOptions) -> Result<(), Failure> {
    let features = if options.encoder.is_some() { Features::Encoded } else { options.features.unwrap_or_default() };
    let choice = match (options.clusters, options.groups) {
        (_, true) => QueriesChoice::Groups(features),
        (true, false) => QueriesChoice::Typical(features),
        (false, false) => QueriesChoice::Random,
    };
    let StudentQueriesOptions { pool, count, encoder, sets, size, grey, seed, out, json, .. } = options;
    let pool = ImagesOptions { path: pool, labels: None, size, grey, encoder };
    let threads = threads(options.threads);
    let options = training::QueriesOptions { pool, count, choice, sets, seed, threads, out };
    let report = reported(|progress| training::choose_queries(&options, progress))?;
    print_report(json, &report, || queries_text(choice, &report, &options.out))
}

fn queries_text(choice: QueriesChoice, report: &QueriesReport, out: &Path) -> String {
    let (QueriesReport { seed, queries, images, pool_images, encoder }, out) = (report, printable_path(out));
    let text = match choice {
        QueriesChoice::Random => format!("{queries} queries, drawn with seed {seed}, in {out}\n"),
        QueriesChoice::Typical(_) => {
            format!(
                "{queries} queries, the typical images of {queries} clusters of {pool_images} images, seed {seed}, in {out}\n"
            )
        }
        QueriesChoice::Groups(_) => {
            format!("{queries} queries, groups with {images} of {pool_images} images, seed {seed}, in {out}\n")
        }
    };
    text + &encoder_text(encoder.as_ref())
}

pub(super) fn plurality(options: PluralityOptions) -> Result<(), Failure> {
    let PluralityOptions { votes, query_list, classes, out, json } = options;
    let options = training::PluralityOptions { votes, queries: query_list, classes, out };
    let report = training::plurality(&options)?;
    print_report(json, &report, || {
        let unanswered = match report.unanswered {
            0 => String::new(),
            unanswered => format!(" ({unanswered} without a label: all votes are empty)"),
        };
        format!(
            "NOT PRIVATE: votes were counted in clear text, without noise; for trials only\n{} queries{unanswered} labelled by the plurality of {} teachers, who all agree on {}: {}\n",
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
        pool: ImagesOptions { path: pool, labels: None, size: common.size, grey: common.grey, encoder: common.encoder },
        labels,
        queries: query_list,
        test,
        test_labels,
        threshold: options.threshold,
        classes: common.classes.map(|names| names.0),
        round: round.as_ref().map(|round| round.origin.clone()),
        epochs,
        seed: common.seed,
        sets,
        threads: threads(options.threads),
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
    let encoder = encoder_text(report.encoder.as_ref());
    let PoolSummary { images, agreement, confidence, predicted } = pool;
    let labels = if labelled == labelled_images {
        format!("{labelled} labels for {images} images")
    } else {
        format!("{labelled} labels of groups with {labelled_images} of {images} images")
    };
    let mut text = format!(
        "{labels}, {unanswered} queries without an answer; method {method}, seed {seed}\n{encoder}model: {}\n",
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
