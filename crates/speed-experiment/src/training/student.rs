//! The student of a round: a model from public images and labels for some of them.

use std::collections::HashMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use burn::tensor::Device;
use serde::Serialize;
use speed_core::random::Streams;
use speed_core::vote_files::{Pair, parse_pairs};
use speed_core::{Classes, Digest, ExitCode, class_list, printable, printable_path};
use speed_data::Split;
use speed_nn::threads;
use speed_nn::training::logits;
use speed_student::pseudo_labels::PseudoLabelsConfig;
use speed_student::{EpochReport, Images, Lesson, StudentOutcome};

use super::images::{ImagesOptions, NamedImages};
use super::queries::{positions, read_queries};
use super::settings::{of_pool, settings};
use super::{
    by_class, check_classes_option, check_folders, check_new, other_line, seed, unknown_query, warn_of_missing,
    warn_of_one_class, write_output, write_private_output,
};
use crate::config::Config;
use crate::encoder::{PictureEncoder, check_shape};
use crate::error::ExperimentError;
use crate::image_warnings::{MEASURES_LITTLE, known};
use crate::model::{Description, Network, Origin, probabilities, to_bytes};
use crate::progress::Progress;
use crate::report::{Classification, EVEN, EncoderFacts};
use crate::store::read_text;

/// The options of a student's training.
#[derive(Clone, Debug)]
pub struct StudentOptions {
    /// The public images without labels.
    pub pool: ImagesOptions,
    /// The labels: lines `query,label` with a query's number, or `name,label` with the name of an image or of a group, and
    /// labels are names of classes.
    pub labels: PathBuf,
    /// The list of the queries by name, pictures or groups; without it, a query's number is a position in the pool.
    pub queries: Option<PathBuf>,
    /// Labelled images that measure the student.
    pub test: Option<PathBuf>,
    /// The labels of a test array.
    pub test_labels: Option<PathBuf>,
    /// The probability of the second of two classes above which a test image counts as that class in the report.
    pub threshold: f64,
    /// The names of the classes in the order of the labels; by default the names of the test directories.
    pub classes: Option<Vec<String>>,
    /// The round that gave the labels, if it is known.
    pub round: Option<RoundOrigin>,
    /// The epochs; `None` for the method's default.
    pub epochs: Option<NonZeroU32>,
    /// The seed; `None` draws one.
    pub seed: Option<u64>,
    /// Changes of keys of `[student]`, as `KEY=VALUE`.
    pub sets: Vec<String>,
    /// Number of threads of an encoder. The vectors do not depend on it.
    pub threads: NonZeroUsize,
    /// The new model file.
    pub out: PathBuf,
}

/// The facts about a round that a student's model records.
#[derive(Clone, Debug)]
pub struct RoundOrigin {
    /// Its id in hexadecimal digits.
    pub id: String,
    /// Number of queries.
    pub queries: usize,
    /// Its classes.
    pub classes: Classes,
    /// Whether keys or noise come from a seed.
    pub simulation: bool,
    /// The digest of the list of queries that the round is about, if it states one.
    pub query_list: Option<Digest>,
    /// Whether a finite data-independent claim covers the labels, whose noise is real; `None` if it is unknown.
    pub publishable: Option<bool>,
}

/// The result of a student's training.
#[derive(Clone, Debug, Serialize)]
pub struct StudentReport {
    /// The model file.
    pub out: PathBuf,
    /// The method.
    pub method: &'static str,
    /// The seed of the training.
    pub seed: u64,
    /// Channels, height and width of the images.
    pub shape: [usize; 3],
    /// The encoder that turned the images into vectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoder: Option<EncoderFacts>,
    /// The names of the classes in the order of the labels.
    pub class_names: Vec<String>,
    /// Number of queries with a label.
    pub labelled: usize,
    /// Number of queries without an answer.
    pub unanswered: usize,
    /// Number of images with a label: all images of the queries with a label.
    pub labelled_images: usize,
    /// The predictions for the pool.
    pub pool: PoolSummary,
    /// The test images; `None` without them, and then the accuracy is unknown.
    pub test: Option<Classification>,
}

/// Facts about a student's predictions for its pool, which has no true labels.
#[derive(Clone, Debug, Serialize)]
pub struct PoolSummary {
    /// Number of images.
    pub images: usize,
    /// Share of the labelled images that the student classifies as labelled, 0 to 1. It is not an accuracy, because the
    /// student learned from these labels and some of them may be wrong.
    pub agreement: f64,
    /// Mean over the pool of the largest probability that the student states, 0 to 1.
    pub confidence: f64,
    /// Number of images by predicted class.
    pub predicted: Vec<usize>,
}

/// Trains a student and writes its model file.
///
/// # Errors
/// If the output exists, images, labels or options are wrong, or the training fails.
pub fn train_student(options: &StudentOptions, progress: &dyn Progress) -> Result<StudentReport, ExperimentError> {
    check_new(&options.out)?;
    let seed = seed(options.seed);
    let config = config(options, seed)?;
    check_classes_option(options.classes.as_deref())?;
    if !(options.threshold > 0.0 && options.threshold < 1.0) {
        let expected = format_args!("expected a probability above 0 and below 1, found {}", options.threshold);
        return Err(ExperimentError::option("--threshold", expected));
    }
    let encoder = options.pool.read_encoder(&config)?;
    let (class_names, test) = classes_and_test(options, &config, encoder.as_ref(), progress)?;
    options.test.as_deref().map_or(Ok(()), |test| check_folders(&class_names, test))?;
    if options.threshold != EVEN && class_names.len() != 2 {
        let expected =
            format_args!("expected two classes, whose second one has the threshold, found {}", class_names.len());
        return Err(ExperimentError::option("--threshold", expected));
    }
    config.check_classes(class_names.len())?;
    let mut pool = options.pool.unlabelled(&config, class_names.len(), encoder.as_ref())?;
    pool.warnings.iter().for_each(|warning| progress.warn(warning));
    let shape = pool.images.shape();
    options.pool.large(shape).iter().for_each(|warning| progress.warn(warning));
    check_shape(&config, encoder.as_ref(), shape)?;
    let Labels { images: labelled, answered, unanswered } = labels(options, &pool, &class_names)?;
    pool.images = options.pool.encoded(pool.images, &pool.names, encoder.as_ref(), options.threads, progress)?;
    if let (Some(test), Some(path)) = (&test, &options.test) {
        let name = |image: usize| printable(&test.names[image]);
        let warning = known(&printable_path(path), &test.images, ("in the pool", &pool.images), name, MEASURES_LITTLE);
        warning.iter().for_each(|warning| progress.warn(warning));
    }
    let outcome = train(&config, &pool.images, &labelled, test.as_ref().map(|test| &test.images), progress)?;

    let encoder = encoder.map(|encoder| encoder.of_model(&config, shape.channels));
    let method = config.student.method;
    let network = Network::Student { method, version: method.version(), config: Box::new(config.student.clone()) };
    let round = options.round.as_ref();
    let origin = Origin {
        round: round.map(|round| round.id.clone()),
        simulation: round.is_some_and(|round| round.simulation),
        publishable: round.and_then(|round| round.publishable),
        ..Origin::of_command(seed)
    };
    let description =
        Description::of_run(&config, network, (pool.images.shape(), encoder.clone()), class_names.clone(), origin);
    let bytes = to_bytes(&description, outcome.student.network(), None).map_err(|error| error.at(&options.out))?;
    let write = if description.is_private() { write_private_output } else { write_output };
    write(&options.out, &bytes)?;

    let test = test.map(|test| {
        let labels = [test.images.labels(), &outcome.predictions];
        Classification::ranked(&class_names, labels, &outcome.margins, options.threshold)
    });
    let pool = summary(&pool.images, &labelled, &outcome)?;
    let labels = by_class(labelled.iter().map(|(_, label)| label), class_names.len());
    warn_of_one_class(
        (&pool.predicted, &labels),
        &class_names,
        "the student decides",
        "labels of several classes, and for noise that is not too wide",
        progress,
    );
    warn_of_missing(&pool.predicted, &class_names, "the student never chooses", progress);
    Ok(StudentReport {
        out: options.out.clone(),
        method: method.name(),
        seed,
        shape: [shape.channels, shape.height, shape.width],
        encoder: encoder.map(|encoder| encoder.facts),
        pool,
        class_names,
        labelled: answered,
        unanswered,
        labelled_images: labelled.len(),
        test: test.transpose()?,
    })
}

/// Returns the settings, by default of pseudo-labels, or with an encoder of the linear student. The epochs of a shorter or longer
/// training keep their number of images, and the phases of pseudo-labels keep their shares of the epochs.
fn config(options: &StudentOptions, seed: u64) -> Result<Config, ExperimentError> {
    let mut fixed = of_pool();
    let method = if options.pool.encoder.is_some() { "linear" } else { "pseudo-labels" };
    fixed.push(format!("student.method={method}"));
    if let Some(epochs) = options.epochs {
        let ours = PseudoLabelsConfig::default();
        let scaled = |phase: u32| (u64::from(phase) * u64::from(epochs.get())).div_ceil(u64::from(ours.epochs));
        fixed.extend([
            format!("student.epochs={epochs}"),
            format!("student.pseudo_labels.epochs={epochs}"),
            format!("student.pseudo_labels.warmup_epochs={}", scaled(ours.warmup_epochs)),
            format!("student.pseudo_labels.label_epochs={}", scaled(ours.label_epochs)),
        ]);
    }
    settings("student", &options.pool, seed, &fixed, &options.sets)
}

fn classes_and_test(
    options: &StudentOptions,
    config: &Config,
    encoder: Option<&PictureEncoder>,
    progress: &dyn Progress,
) -> Result<(Vec<String>, Option<NamedImages>), ExperimentError> {
    let mut classes = options.classes.clone();
    let mut test = None;
    if let Some(path) = &options.test {
        let images = ImagesOptions { labels: options.test_labels.clone(), ..options.pool.of(path) };
        let mut labelled = images.labelled(config, classes.as_deref(), encoder)?;
        labelled.warnings.iter().for_each(|warning| progress.warn(warning));
        labelled.images = images.encoded(labelled.images, &labelled.names, encoder, options.threads, progress)?;
        (classes, test) = (Some(labelled.class_names.clone()), Some(labelled));
    }
    let round = options.round.as_ref().map(|round| round.classes.all_names());
    let classes = classes.or_else(|| round.clone());
    let missing = "expected the names of the classes in the order of the labels, a test set or a round";
    let classes = classes.ok_or_else(|| ExperimentError::option("--classes", missing))?;
    if let Some(expected) = round.filter(|round| *round != classes) {
        let difference = first_difference(&expected, &classes);
        let (expected, found) = (class_list(&expected), class_list(&classes));
        let fault = format_args!("expected the round's classes {expected} in this order, found {found}{difference}");
        return Err(ExperimentError::input(&options.labels, fault));
    }
    Ok((classes, test))
}

/// Returns the first number whose class differs, if the lists show no difference.
fn first_difference(expected: &[String], found: &[String]) -> String {
    match expected.iter().zip(found).position(|(one, other)| one != other) {
        Some(number) => format!("; class {number} is {:?} in the round and {:?} here", expected[number], found[number]),
        None => String::new(),
    }
}

struct Labels {
    /// The labelled images: position in the pool, and class.
    images: Vec<(usize, u8)>,
    answered: usize,
    unanswered: usize,
}

/// Reads the labels. The label of a group is the label of all its images.
fn labels(options: &StudentOptions, pool: &NamedImages, classes: &[String]) -> Result<Labels, ExperimentError> {
    let path = &options.labels;
    let parsed = parse_pairs(&read_text(path)?, &["query", "name"], "label")
        .map_err(|fault| ExperimentError::input(path, fault))?;
    if let Some(expected) = options.round.as_ref().map(|round| round.queries).filter(|all| *all != parsed.pairs.len()) {
        let found = parsed.pairs.len();
        let fault = format_args!("expected a line for each of the round's {expected} queries, found {found}");
        return Err(ExperimentError::input(path, fault));
    }
    check_list(options)?;
    let queries = Queries::read(options, pool)?;
    let (mut images, mut answered, mut unanswered) = (Vec::new(), 0, 0);
    for pair in parsed.pairs {
        let places = if parsed.head == "name" { queries.named(&pair)? } else { queries.numbered(&pair)? };
        let Pair { line, value, .. } = pair;
        if value.is_empty() {
            unanswered += 1;
            continue;
        }
        let label = classes.iter().position(|class| *class == value).and_then(|class| u8::try_from(class).ok());
        let expected = || format!("a class ({}) or no label", class_list(classes));
        let label = label.ok_or_else(|| other_line(path, line, expected(), &value))?;
        answered += 1;
        images.extend(places.iter().map(|&place| (place, label)));
    }
    if answered == 0 {
        let expected = format_args!("expected at least one query with a label, found {unanswered} without an answer");
        return Err(ExperimentError::input(path, expected));
    }
    Ok(Labels { images, answered, unanswered })
}

fn check_list(options: &StudentOptions) -> Result<(), ExperimentError> {
    let Some(expected) = options.round.as_ref().and_then(|round| round.query_list) else { return Ok(()) };
    let list = options.queries.as_deref().ok_or_else(|| {
        let expected = "expected --query-list with the list of the round, because the round's file has its SHA-256";
        ExperimentError::input(&options.labels, expected)
    })?;
    let found = Digest::of(read_text(list)?);
    if found != expected {
        let (expected, found) = (expected.to_hex(), found.to_hex());
        let fault = format_args!("expected the list of queries of the round, with SHA-256 {expected}, found {found}");
        return Err(ExperimentError::input(list, fault));
    }
    Ok(())
}

/// The queries to which labels refer.
struct Queries<'a> {
    options: &'a StudentOptions,
    /// The positions in the pool of the images of each query, by its number.
    places: Vec<Vec<usize>>,
    /// The numbers of the groups, or the positions in the pool, by name.
    numbers: HashMap<String, usize>,
    is_grouped: bool,
}

impl<'a> Queries<'a> {
    /// Reads the list of queries. Without a list, every image of the pool is a query.
    fn read(options: &'a StudentOptions, pool: &NamedImages) -> Result<Self, ExperimentError> {
        let numbers = |names: &[String]| names.iter().enumerate().map(|(at, name)| (name.clone(), at)).collect();
        let Some(path) = options.queries.as_deref() else {
            let places = (0..pool.names.len()).map(|place| vec![place]).collect();
            return Ok(Self { options, places, numbers: numbers(&pool.names), is_grouped: false });
        };
        let list = read_queries(path)?;
        let mut all = positions(path, list.all_pictures(), &options.pool.path, &pool.names)?.into_iter();
        let of_query = |query| all.by_ref().take(list.pictures(query).len()).collect();
        let places = (0..list.names().len()).map(of_query).collect();
        let is_grouped = list.is_grouped();
        let numbers = numbers(if is_grouped { list.names() } else { &pool.names });
        Ok(Self { options, places, numbers, is_grouped })
    }

    fn numbered(&self, pair: &Pair) -> Result<Vec<usize>, ExperimentError> {
        // "00" and "+0" could name query 0 a second time.
        let number = pair.key.parse().ok().filter(|query: &usize| query.to_string() == pair.key);
        let places = number.and_then(|query| self.places.get(query).cloned());
        places.ok_or_else(|| {
            let expected = format!("a query from 0 to {}", self.places.len() - 1);
            other_line(&self.options.labels, pair.line, expected, &pair.key)
        })
    }

    /// Returns the images of a query by its name: the name of a group, or else of an image of the pool.
    fn named(&self, pair: &Pair) -> Result<Vec<usize>, ExperimentError> {
        let number = self.numbers.get(&pair.key).copied();
        let StudentOptions { labels, queries, pool, .. } = self.options;
        match (number, queries) {
            (Some(number), _) if self.is_grouped => Ok(self.places[number].clone()),
            (Some(place), _) => Ok(vec![place]),
            (None, Some(list)) if self.is_grouped => {
                let expected = format!("the name of a query of {}", printable_path(list));
                Err(other_line(labels, pair.line, expected, &pair.key))
            }
            (None, _) => Err(unknown_query(labels, &pair.key, &pool.path)),
        }
    }
}

/// Trains the student on one thread, so that its bits do not depend on the machine's number of processors.
fn train(
    config: &Config,
    pool: &Split,
    labelled: &[(usize, u8)],
    test: Option<&Split>,
    progress: &dyn Progress,
) -> Result<StudentOutcome, ExperimentError> {
    let _arithmetic = config.arithmetic.hold()?;
    let (method, streams, device) =
        (config.student.method, Streams::new(config.seed).child("student", 0), Device::flex());
    let (config, pool) = (&config.student, Images::new(pool));
    let lesson = Lesson { config, pool, labelled, doubts: None, test, streams: &streams, device: &device };
    progress.begin("train a student", "epochs", method.passes(config).epochs.into(), 0);
    let mut outcomes = threads::map(&[()], 1, |(), _| {
        let mut on_epoch = |report: &EpochReport<'_>| {
            let metrics = report.metrics();
            let accuracy = metrics.accuracy_average.map(|accuracy| format!(", accuracy {:.1} %", 100.0 * accuracy));
            progress.advance(1, &format!("epoch {}{}", metrics.epoch, accuracy.unwrap_or_default()));
            Ok(())
        };
        let trained = method.train(&lesson, None, &mut on_epoch);
        trained.map_err(|error| ExperimentError::new(ExitCode::Computation, error))
    })?;
    progress.end("student trained");
    Ok(outcomes.pop().expect("an outcome of the only training"))
}

fn summary(pool: &Split, labelled: &[(usize, u8)], outcome: &StudentOutcome) -> Result<PoolSummary, ExperimentError> {
    let all: Vec<usize> = (0..pool.len()).collect();
    let (scores, classes) = logits(outcome.student.network(), pool, &all, &Device::flex())?;
    let predicted = outcome.student.predict(Images::new(pool))?;
    let confidence = |scores: &[f32]| probabilities(scores).into_iter().fold(0.0, f32::max);
    let confident: f64 = scores.chunks_exact(classes).map(|scores| f64::from(confidence(scores))).sum();
    let agreed = labelled.iter().filter(|(place, label)| predicted[*place] == *label).count();
    Ok(PoolSummary {
        images: pool.len(),
        agreement: agreed as f64 / labelled.len() as f64,
        confidence: confident / pool.len() as f64,
        predicted: by_class(&predicted, classes),
    })
}
