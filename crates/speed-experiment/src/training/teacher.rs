//! The teachers of one organisation: one model, or several on disjoint parts of its images.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use burn::tensor::Device;
use serde::Serialize;
use speed_core::printable;
use speed_core::random::Streams;
use speed_data::Split;
use speed_report::Classification;
use speed_teacher::{EnsembleTraining, TeacherMetrics, TrainedTeacher, train_ensemble};

use super::division::divide;
use super::groups::{Grouping, groups};
use super::images::{ImagesOptions, Labelled};
use super::settings::settings;
use super::{at, check_new, seed};
use crate::config::{Config, ConfigError};
use crate::error::{ExperimentError, InputFault, Mismatch, ModelFault};
use crate::model::{Description, Network, Origin, check_names, to_bytes};
use crate::progress::Progress;
use crate::store::{write_new_secret, write_secret_folder};

/// The options of a training of teachers.
#[derive(Clone, Debug)]
pub struct TeacherOptions {
    /// The labelled images.
    pub images: ImagesOptions,
    /// The names of the classes in the order of the labels; by default the names of the directories in their order.
    pub classes: Option<Vec<String>>,
    /// The number of teachers on disjoint parts; `None` trains one teacher on all images.
    pub parts: Option<NonZeroUsize>,
    /// The rule by which images stay together in one part, and on one side of the held-out images.
    pub grouping: Option<Grouping>,
    /// The fraction of every part that is held out to measure its teacher, 0 to 1, without 1.
    pub validation: f64,
    /// Passes over the training images of the largest part; `None` for the default number of steps.
    pub epochs: Option<NonZeroUsize>,
    /// The seed; `None` draws one.
    pub seed: Option<u64>,
    /// Number of teachers that are trained at the same time. Results do not depend on it.
    pub threads: NonZeroUsize,
    /// Changes of keys of `[teacher]`, as `KEY=VALUE`.
    pub sets: Vec<String>,
    /// The new model file, or with `parts` the new directory of model files.
    pub out: PathBuf,
}

/// The result of a training of teachers.
#[derive(Clone, Debug, Serialize)]
pub struct TeachersReport {
    /// The model file, or the directory of model files.
    pub out: PathBuf,
    /// The seed of the training.
    pub seed: u64,
    /// Channels, height and width of the images.
    pub shape: [usize; 3],
    /// Number of images.
    pub images: usize,
    /// Number of groups of images, if a rule for groups was given.
    pub groups: Option<usize>,
    /// Name of the network.
    pub architecture: &'static str,
    /// Steps of the optimizer of every teacher.
    pub steps: usize,
    /// The teachers in order.
    pub teachers: Vec<TeacherReport>,
    /// The held-out images of all parts, each classified by the teacher of its part; `None` if none are held out.
    pub validation: Option<Classification>,
}

/// The result of one teacher.
#[derive(Clone, Debug, Serialize)]
pub struct TeacherReport {
    /// The model file.
    pub file: PathBuf,
    /// Number of images that it was trained on.
    pub images: usize,
    /// Share of them that it classifies as labelled, 0 to 1.
    pub train_accuracy: f64,
    /// Number of held-out images.
    pub validation_images: usize,
    /// Share of the held-out images that it classifies as labelled, 0 to 1; `None` without held-out images.
    pub validation_accuracy: Option<f64>,
}

/// The images of one teacher.
struct Part {
    training: Vec<usize>,
    held_out: Vec<usize>,
}

/// A trained teacher: its metrics, the classes of its held-out images, and the bytes of its model file.
type Finished = (TeacherMetrics, Vec<u8>, Vec<u8>);

/// Trains the teachers of one organisation and writes their model files, which only their owner can read.
///
/// # Errors
/// If the output exists, images or options are wrong, or a training fails.
pub fn train_teachers(options: &TeacherOptions, progress: &dyn Progress) -> Result<TeachersReport, ExperimentError> {
    check_new(&options.out)?;
    if !(0.0..1.0).contains(&options.validation) {
        return Err(usage("--validation", format!("expected at least 0 and below 1, found {}", options.validation)));
    }
    if let Some(set) = options.sets.iter().find(|set| set.trim_start().starts_with("teacher.validation")) {
        return Err(usage("--set", format!("{set}: use --validation, which holds out whole groups of images")));
    }
    let nameless = |fault| ExperimentError::Model { path: options.out.clone(), fault };
    options.classes.as_deref().map_or(Ok(()), check_names).map_err(nameless)?;
    let seed = seed(options.seed);
    let fixed = ["table.repeats=0".to_owned()];
    let mut config = settings("teacher", &options.images, seed, &fixed, &options.sets)?;
    let data = options.images.labelled(&config, options.classes.as_deref())?;
    data.notes.iter().for_each(|note| progress.note(note));
    check_names(&data.class_names).map_err(nameless)?;
    config.check_images(data.images.shape())?;
    let group_of = groups(&options.images.path, &data.names, options.grouping.as_ref(), progress)?;
    let streams = Streams::new(seed);
    let parts = parts(options, &data, &group_of, &streams)?;
    note_missing_classes(&parts, &data, progress);
    if let Some(epochs) = options.epochs {
        let largest = parts.iter().map(|part| part.training.len()).max().unwrap_or(0);
        config.teacher.steps = epochs.get().saturating_mul(largest).div_ceil(config.teacher.batch);
    }
    let finished = train(options, &config, &data, &parts, &streams, progress)?;
    let files = write(options, &finished)?;

    let pairs = parts.iter().zip(&finished).flat_map(|(part, (_, predicted, _))| {
        part.held_out.iter().map(|&image| data.images.label(image)).zip(predicted.iter().copied())
    });
    let classification = Classification::new(&data.class_names, pairs).map_err(Mismatch::from)?;
    let report = |((part, file), (metrics, predicted, _)): ((&Part, PathBuf), &Finished)| {
        let images = &data.images;
        let right = part.held_out.iter().zip(predicted).filter(|(image, class)| images.label(**image) == **class);
        let (right, validation_images) = (right.count(), part.held_out.len());
        TeacherReport {
            file,
            images: part.training.len(),
            train_accuracy: metrics.train_accuracy,
            validation_images,
            validation_accuracy: (validation_images > 0).then(|| right as f64 / validation_images as f64),
        }
    };
    let shape = data.images.shape();
    Ok(TeachersReport {
        out: options.out.clone(),
        seed,
        shape: [shape.channels, shape.height, shape.width],
        images: data.images.len(),
        groups: options.grouping.is_some().then(|| group_of.iter().max().map_or(0, |last| last + 1)),
        architecture: config.teacher.architecture.name(),
        steps: config.teacher.steps,
        teachers: parts.iter().zip(files).zip(&finished).map(report).collect(),
        validation: (classification.images() > 0).then_some(classification),
    })
}

fn usage(key: &str, message: String) -> ExperimentError {
    ConfigError::Key { place: "command line".into(), key: key.into(), message }.into()
}

/// Divides the images into parts, and every part into training images and held-out images.
fn parts(
    options: &TeacherOptions,
    data: &Labelled,
    group_of: &[usize],
    streams: &Streams,
) -> Result<Vec<Part>, ExperimentError> {
    let all: Vec<usize> = (0..data.images.len()).collect();
    let labels = data.images.labels();
    let number = options.parts.map_or(1, NonZeroUsize::get);
    let groups = group_of.iter().max().map_or(0, |last| last + 1);
    if number > groups {
        return Err(at(&options.images.path, InputFault::Parts { parts: number, groups }));
    }
    let shares = vec![1.0 / number as f64; number];
    let parts = divide(&all, group_of, labels, &shares, &mut streams.stream("parts", 0));
    let part = |(index, images): (usize, Vec<usize>)| {
        let shares = [1.0 - options.validation, options.validation];
        let mut sides = divide(&images, group_of, labels, &shares, &mut streams.stream("held-out", index as u64));
        let held_out = sides.pop().unwrap_or_default();
        let training = sides.pop().unwrap_or_default();
        if training.is_empty() || (held_out.is_empty() && options.validation > 0.0) {
            let fault = InputFault::FewForValidation { part: index, images: images.len() };
            return Err(at(&options.images.path, fault));
        }
        Ok(Part { training, held_out })
    };
    parts.into_iter().enumerate().map(part).collect()
}

/// Reports the classes that a part lacks although the organisation has images of them.
fn note_missing_classes(parts: &[Part], data: &Labelled, progress: &dyn Progress) {
    let has =
        |images: &[usize], class: usize| images.iter().any(|&image| usize::from(data.images.label(image)) == class);
    let all: Vec<usize> = (0..data.images.len()).collect();
    for (class, name) in data.class_names.iter().enumerate().filter(|(class, _)| has(&all, *class)) {
        let lacking = parts.iter().filter(|part| !has(&part.training, class)).count();
        if lacking > 0 {
            let (of, name) = (parts.len(), printable(name));
            progress.note(&format!("warning: {lacking} of {of} parts have no training images of the class {name}"));
        }
    }
}

/// Trains the teachers of all parts.
fn train(
    options: &TeacherOptions,
    config: &Config,
    data: &Labelled,
    parts: &[Part],
    streams: &Streams,
    progress: &dyn Progress,
) -> Result<Vec<Finished>, ExperimentError> {
    let _arithmetic = config.arithmetic.hold()?;
    let (images, partitions) = consecutive(&data.images, parts);
    let device = Device::flex();
    let training =
        EnsembleTraining { config: &config.teacher, data: &images, partitions: &partitions, streams, device: &device };
    let done: Mutex<BTreeMap<usize, Finished>> = Mutex::default();
    let on_finished = |TrainedTeacher { index, teacher, metrics, .. }: TrainedTeacher| {
        let predicted = match parts[index].held_out.as_slice() {
            [] => Vec::new(),
            held_out => teacher.predict(&data.images.select(held_out))?,
        };
        let architecture = config.teacher.architecture;
        let network = Network::Teacher { version: architecture.version(), config: config.teacher.clone() };
        let (shape, classes) = (data.images.shape(), data.class_names.clone());
        let origin = Origin { teacher: Some(index), ..Origin::of_command(config.seed) };
        let description = Description::of_run(config, network, shape, classes, origin);
        let bytes = to_bytes(&description, teacher.network())
            .map_err(|fault: ModelFault| ExperimentError::Model { path: options.out.clone(), fault })?;
        done.lock().unwrap_or_else(PoisonError::into_inner).insert(index, (metrics, predicted, bytes));
        progress.advance(1, &format!("teacher {index} fits {:.1} % of its images", 100.0 * metrics.train_accuracy));
        Ok::<_, ExperimentError>(())
    };
    progress.begin("train teachers", "teachers", parts.len() as u64, 0);
    let todo: Vec<usize> = (0..parts.len()).collect();
    train_ensemble(&training, &todo, options.threads.get(), &on_finished)?;
    progress.end(&format!("{} teachers trained", parts.len()));
    Ok(done.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect())
}

/// Returns the training images, part after part, and the range of every part.
fn consecutive(images: &Split, parts: &[Part]) -> (Split, Vec<Range<usize>>) {
    let mut ranges = Vec::with_capacity(parts.len());
    let mut all = Vec::new();
    for part in parts {
        let start = all.len();
        all.extend_from_slice(&part.training);
        ranges.push(start..all.len());
    }
    (images.select(&all), ranges)
}

/// Writes the model files, and returns their paths.
fn write(options: &TeacherOptions, finished: &[Finished]) -> Result<Vec<PathBuf>, ExperimentError> {
    let out = &options.out;
    if options.parts.is_none()
        && let [(_, _, bytes)] = finished
    {
        if !write_new_secret(out, bytes)? {
            return Err(super::exists(out));
        }
        return Ok(vec![out.clone()]);
    }
    let name = |index: usize| format!("teacher-{index:04}.safetensors");
    let files = finished.iter().enumerate().map(|(index, (_, _, bytes))| (name(index), bytes.as_slice()));
    if !write_secret_folder(out, files)? {
        return Err(super::exists(out));
    }
    Ok((0..finished.len()).map(|index| out.join(name(index))).collect())
}
