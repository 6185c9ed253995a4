//! The teachers of one organisation: one model, or several on disjoint parts of its images.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use burn::tensor::Device;
use serde::Serialize;
use speed_core::random::Streams;
use speed_core::{printable, printable_path};
use speed_data::partition::consecutive;
use speed_nn::threads;
use speed_nn::training::{greatest, logits, margins};
use speed_teacher::{
    EnsembleError, EnsembleTraining, TeacherConfig, TeacherError, TeacherMetrics, TrainedTeacher, Unknown, train_member,
};

use super::images::{ImagesOptions, NamedImages};
use super::settings::settings;
use super::{check_classes_option, check_folders, check_new, seed, write_private_output};
use crate::config::{Config, PatientRule};
use crate::encoder::check_shape;
use crate::error::ExperimentError;
use crate::image_warnings::in_several_parts;
use crate::model::{Description, ModelEncoder, Network, Origin, to_bytes};
use crate::patients::{Division, Patients, patients};
use crate::progress::Progress;
use crate::report::{Classification, EVEN, EncoderFacts};
use crate::store::write_folder;

/// The options of a training of teachers.
#[derive(Clone, Debug)]
pub struct TeacherOptions {
    /// The labelled images.
    pub images: ImagesOptions,
    /// The names of the classes in the order of the labels; by default the names of the directories in their order.
    pub classes: Option<Vec<String>>,
    /// The number of teachers on disjoint parts; `None` trains one teacher on all images.
    pub parts: Option<NonZeroUsize>,
    /// The file of the key that divides the images into parts, which is made if it is missing; used only with `parts`.
    pub division_key: PathBuf,
    /// The rule for patients, whose images stay together in one part, and on one side of the held-out images.
    pub patients: Option<PatientRule>,
    /// The fraction of patients that is held out to measure their teacher, 0 to 1, without 1.
    pub validation: f64,
    /// Passes of every teacher over its training images; `None` for the default number of steps.
    pub epochs: Option<NonZeroUsize>,
    /// The seed; `None` draws one.
    pub seed: Option<u64>,
    /// Number of teachers that are trained at the same time. Results do not depend on it.
    pub threads: NonZeroUsize,
    /// The weights of the classes, as the key `teacher.class_weights`; `None` for its default.
    pub class_weights: Option<String>,
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
    /// The encoder that turned the images into vectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoder: Option<EncoderFacts>,
    /// Number of images.
    pub images: usize,
    /// Number of patients, if a rule for patients was given.
    pub patients: Option<usize>,
    /// Name of the network.
    pub architecture: &'static str,
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
    /// Steps of its optimizer.
    pub steps: usize,
    /// Share of them that it classifies as labelled, 0 to 1.
    pub train_accuracy: f64,
    /// Number of held-out images.
    pub validation_images: usize,
    /// Share of the held-out images that it classifies as labelled, 0 to 1; `None` without held-out images.
    pub validation_accuracy: Option<f64>,
}

struct Part {
    training: Vec<usize>,
    held_out: Vec<usize>,
}

/// A trained teacher: its metrics, the classes of its held-out images, their margins if there are two classes, and the bytes
/// of its model file.
type Finished = (TeacherMetrics, Vec<u8>, Vec<f64>, Vec<u8>);

/// Trains the teachers of one organisation and writes their model files, which only their owner can read.
///
/// # Errors
/// If the output exists, images or options are wrong, or a training fails.
pub fn train_teachers(options: &TeacherOptions, progress: &dyn Progress) -> Result<TeachersReport, ExperimentError> {
    check_new(&options.out)?;
    if !(0.0..1.0).contains(&options.validation) {
        let expected = format_args!("expected at least 0 and below 1, found {}", options.validation);
        return Err(ExperimentError::option("--validation", expected));
    }
    if options.parts.is_some() && options.classes.is_none() {
        let message = "needed with --parts: the names of the folders depend on all images, and every teacher must depend on its own only";
        return Err(ExperimentError::option("--classes", message));
    }
    check_classes_option(options.classes.as_deref())?;
    let seed = seed(options.seed);
    let mut fixed = vec!["table.repeats=0".to_owned()];
    fixed.extend(options.images.encoder.as_ref().map(|_| "teacher.architecture=linear".to_owned()));
    fixed.extend(options.class_weights.iter().map(|weights| format!("teacher.class_weights={weights}")));
    let config = settings("teacher", &options.images, seed, &fixed, &options.sets)?;
    let encoder = options.images.read_encoder(&config)?;
    let mut data = options.images.labelled(&config, options.classes.as_deref(), encoder.as_ref())?;
    data.warnings.iter().for_each(|warning| progress.warn(warning));
    options.images.large(data.images.shape()).iter().for_each(|warning| progress.warn(warning));
    check_folders(&data.class_names, &options.images.path)?;
    let shape = data.images.shape();
    check_shape(&config, encoder.as_ref(), shape)?;
    let patients = patients(&options.images.path, &data.names, &data.images, options.patients.as_ref())?;
    patients.warnings.iter().for_each(|warning| progress.warn(warning));
    if options.parts.is_some() && options.patients.is_none() {
        progress.warn("without --patients every picture is divided by itself, so a claim for one teacher covers a picture and not a person");
    }
    let division = match options.parts {
        None => Division::of_seed(seed),
        Some(_) => {
            let (division, made) = Division::read_or_make(&options.division_key)?;
            if made {
                let key = printable_path(&options.division_key);
                progress.warn(&format!(
                    "{key} did not exist: a new key divides the patients among the teachers. Keep it for all rounds; with another key, a person costs \
                     as much as two teachers"
                ));
            }
            division
        }
    };
    let parts = parts(options, &patients, &division)?;
    note_copies(&parts, &data, progress);
    note_missing_classes(&parts, &data, progress);
    data.images = options.images.encoded(data.images, &data.names, encoder.as_ref(), options.threads, progress)?;
    let encoder = encoder.map(|encoder| encoder.of_model(&config, shape.channels));
    let finished = train(options, &config, (&data, encoder.as_ref()), &parts, progress)?;
    let files = write(options, &finished)?;

    let truth: Vec<u8> = parts.iter().flat_map(|part| &part.held_out).map(|&image| data.images.label(image)).collect();
    let predicted: Vec<u8> = finished.iter().flat_map(|(_, predicted, ..)| predicted.iter().copied()).collect();
    let margins: Vec<f64> = finished.iter().flat_map(|(_, _, margins, _)| margins.iter().copied()).collect();
    let classification = Classification::ranked(&data.class_names, [&truth, &predicted], &margins, EVEN)?;
    let report = |((part, file), (metrics, predicted, ..)): ((&Part, PathBuf), &Finished)| {
        let images = &data.images;
        let right = part.held_out.iter().zip(predicted).filter(|(image, class)| images.label(**image) == **class);
        let (right, validation_images) = (right.count(), part.held_out.len());
        TeacherReport {
            file,
            images: part.training.len(),
            steps: metrics.steps,
            train_accuracy: metrics.train_accuracy,
            validation_images,
            validation_accuracy: (validation_images > 0).then(|| right as f64 / validation_images as f64),
        }
    };
    Ok(TeachersReport {
        out: options.out.clone(),
        seed,
        shape: [shape.channels, shape.height, shape.width],
        encoder: encoder.map(|encoder| encoder.facts),
        images: data.images.len(),
        patients: options.patients.is_some().then(|| patients.count()),
        architecture: config.teacher.architecture.name(),
        teachers: parts.iter().zip(files).zip(&finished).map(report).collect(),
        validation: (classification.images() > 0).then_some(classification),
    })
}

fn parts(options: &TeacherOptions, patients: &Patients, division: &Division) -> Result<Vec<Part>, ExperimentError> {
    let number = options.parts.unwrap_or(NonZeroUsize::MIN);
    let mut parts: Vec<Part> = (0..number.get()).map(|_| Part { training: Vec::new(), held_out: Vec::new() }).collect();
    for (image, patient) in patients.of_image.iter().enumerate() {
        let part = &mut parts[division.part(patient, number)];
        let held_out = division.is_held_out(patient, options.validation);
        if held_out { part.held_out.push(image) } else { part.training.push(image) }
    }
    match parts.iter().position(|part| part.training.is_empty()) {
        None => Ok(parts),
        Some(part) => {
            let count = patients.count();
            let what = if options.patients.is_some() { "patients" } else { "different images" };
            let fault = format_args!(
                "teacher {part} of {number} has no image to train on: a keyed hash divides {count} {what}; use fewer --parts, a smaller \
                 --validation, or images of more patients"
            );
            Err(ExperimentError::input(&options.images.path, fault))
        }
    }
}

fn note_copies(parts: &[Part], data: &NamedImages, progress: &dyn Progress) {
    let mut part_of = vec![0; data.images.len()];
    for (index, part) in parts.iter().enumerate() {
        part.training.iter().chain(&part.held_out).for_each(|&image| part_of[image] = index);
    }
    let warning = in_several_parts(&data.images, &part_of, |image| printable(&data.names[image]));
    warning.iter().for_each(|warning| progress.warn(warning));
}

fn note_missing_classes(parts: &[Part], data: &NamedImages, progress: &dyn Progress) {
    let has =
        |images: &[usize], class: usize| images.iter().any(|&image| usize::from(data.images.label(image)) == class);
    let all: Vec<usize> = (0..data.images.len()).collect();
    for (class, name) in data.class_names.iter().enumerate().filter(|(class, _)| has(&all, *class)) {
        let lacking = parts.iter().filter(|part| !has(&part.training, class)).count();
        if lacking > 0 {
            let (of, name) = (parts.len(), printable(name));
            progress.warn(&format!("{lacking} of {of} parts have no training images of the class {name}"));
        }
    }
}

/// Trains the teachers of all parts. No teacher's settings depend on the images of another.
fn train(
    options: &TeacherOptions,
    config: &Config,
    (data, encoder): (&NamedImages, Option<&ModelEncoder>),
    parts: &[Part],
    progress: &dyn Progress,
) -> Result<Vec<Finished>, ExperimentError> {
    let _arithmetic = config.arithmetic.hold()?;
    let (order, partitions) = consecutive(parts.iter().map(|part| &part.training));
    let images = data.images.select(&order);
    let (device, streams) = (Device::flex(), Streams::new(config.seed));
    let settings = |part: &Part| -> TeacherConfig {
        let mut settings = config.teacher.clone();
        if let Some(epochs) = options.epochs {
            settings.steps = epochs.get().saturating_mul(part.training.len()).div_ceil(settings.batch);
        }
        settings
    };
    progress.begin("train teachers", "teachers", parts.len() as u64, 0);
    let todo: Vec<usize> = (0..parts.len()).collect();
    let finished = threads::map(&todo, options.threads.get(), |&index, stop| -> Result<Finished, EnsembleError<_>> {
        let settings = settings(&parts[index]);
        let training = EnsembleTraining {
            config: &settings,
            data: &images,
            partitions: &partitions,
            streams: &streams,
            device: &device,
        };
        let TrainedTeacher { teacher, metrics, .. } = train_member(&training, index, stop)?;
        let held_out = &parts[index].held_out;
        let (scores, classes) = match held_out.as_slice() {
            [] => (Vec::new(), data.class_names.len()),
            held_out => logits(teacher.network(), &data.images, held_out, &device).map_err(TeacherError::from)?,
        };
        let (predicted, margins) = (scores.chunks_exact(classes).map(greatest).collect(), margins(&scores, classes));
        let unknown = settings.unknown;
        let network = Network::Teacher { version: settings.architecture.version(), config: settings };
        let (shape, classes) = (data.images.shape(), data.class_names.clone());
        let origin = Origin { teacher: Some(index), ..Origin::of_command(config.seed) };
        let description = Description::of_run(config, network, (shape, encoder.cloned()), classes, origin);
        // A teacher that votes on all images does not need its own.
        let own = teacher.own_images().filter(|_| unknown != Unknown::Vote);
        let bytes = to_bytes(&description, teacher.network(), own)
            .map_err(|error: ExperimentError| EnsembleError::Caller(error.at(&options.out)))?;
        progress.advance(1, &format!("teacher {index} fits {:.1} % of its images", 100.0 * metrics.train_accuracy));
        Ok((metrics, predicted, margins, bytes))
    });
    let finished = finished.map_err(EnsembleError::from)?;
    progress.end(&format!("{} teachers trained", parts.len()));
    Ok(finished)
}

fn write(options: &TeacherOptions, finished: &[Finished]) -> Result<Vec<PathBuf>, ExperimentError> {
    let out = &options.out;
    if options.parts.is_none()
        && let [(.., bytes)] = finished
    {
        write_private_output(out, bytes)?;
        return Ok(vec![out.clone()]);
    }
    let name = |index: usize| format!("teacher-{index:04}.safetensors");
    let files = finished.iter().enumerate().map(|(index, (.., bytes))| (name(index), bytes.as_slice()));
    if !write_folder(out, files, true)? {
        return Err(super::exists(out));
    }
    Ok((0..finished.len()).map(|index| out.join(name(index))).collect())
}
