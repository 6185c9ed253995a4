//! The description of a model.

use std::collections::HashSet;

use burn::tensor::Device;
use serde::{Deserialize, Serialize};
use speed_core::{composed, moves_the_cursor, printable};
use speed_data::ImageShape;
use speed_nn::matrix::Arithmetic;
use speed_nn::training::AnyClassifier;
use speed_student::{StudentConfig, StudentMethod};
use speed_teacher::TeacherConfig;

use crate::config::{Config, DataSource, MAX_PIXELS};
use crate::error::ExperimentError;
use crate::report::{EncoderFacts, MAX_CLASS_NAME, check_class_names};

/// The version of the description's format.
pub const FORMAT: u32 = 3;

/// The description of a model: everything but its weights that a prediction needs, and the origin of the model.
// The checksum of a file covers the serialised form, so a new field needs a new format version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// The version of the format: [`FORMAT`].
    pub format: u32,
    /// The network with the settings of its training.
    pub network: Network,
    /// The names of the classes, in the order of the logits.
    pub classes: Vec<String>,
    /// Channels, height and width of the images: 1, 1 and the number of values for an encoder's vectors.
    pub shape: [usize; 3],
    /// The encoder that makes vectors of pictures; `None` for a model of pictures.
    pub encoder: Option<ModelEncoder>,
    /// The changes to images of other shapes.
    pub preprocessing: Preprocessing,
    /// The arithmetic of the training, which predictions use too.
    pub arithmetic: Arithmetic,
    /// The training of the model.
    pub origin: Origin,
}

/// A network by its name, with the settings of its training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Network {
    /// A student.
    Student {
        /// The method.
        method: StudentMethod,
        /// The version of the method.
        version: u32,
        /// The settings; the method reads some of them.
        config: Box<StudentConfig>,
    },
    /// A teacher, whose weights are as private as its images.
    Teacher {
        /// The version of the architecture.
        version: u32,
        /// The settings, with the architecture.
        config: TeacherConfig,
    },
}

impl Network {
    /// Returns the name of the method or of the architecture.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Student { method, .. } => method.name(),
            Self::Teacher { config, .. } => config.architecture.name(),
        }
    }
}

/// The encoder of a model, which turns pictures into vectors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelEncoder {
    /// Its file, digest and preparation.
    pub facts: EncoderFacts,
    /// Channels, height and width of the pictures before those of the encoder: of a config with grey pictures or a size of
    /// their own.
    pub pictures: [usize; 3],
}

impl ModelEncoder {
    fn check(&self, vectors: ImageShape) -> Result<(), String> {
        let Self { facts, pictures: [channels, height, width] } = self;
        facts.check()?;
        let expected = ImageShape { channels: 1, height: 1, width: facts.width };
        if vectors != expected {
            return Err(format!("expected vectors of the encoder, {expected}, found images of {vectors}"));
        }
        let [rows, columns] = facts.preparation.size;
        let (found, max) = (ImageShape { channels: *channels, height: *height, width: *width }, 3 * rows * columns);
        if ![1, 3].contains(channels) || found.pixels() == 0 || found.pixels() > max.max(MAX_PIXELS) {
            let max = max.max(MAX_PIXELS);
            return Err(format!("expected pictures of 1 or 3 channels and 1 to {max} values, found {found}"));
        }
        Ok(())
    }
}

/// The changes to images before the network reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preprocessing {
    /// Whether images of other sizes are resized.
    pub resizes: bool,
    /// Whether colours are converted to grey and grey to colours.
    pub converts: bool,
}

/// The training of a model: in a run, or by a command of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// The name of the experiment; `None` outside of runs.
    pub experiment: Option<String>,
    /// The id of the run; `None` outside of runs.
    pub run: Option<String>,
    /// The id of the round that gave a student's labels, in hexadecimal digits, if it was stated.
    pub round: Option<String>,
    /// The row of the run whose labels the student learned from; `None` for teachers and outside of runs.
    pub row: Option<String>,
    /// The repeat of a student in its row; `None` for teachers and outside of runs.
    pub repeat: Option<usize>,
    /// The index of a teacher in its run, or among the parts of one organisation; `None` for students.
    pub teacher: Option<usize>,
    /// The root seed.
    pub seed: u64,
    /// The device of the training, if it is not a processor; a prediction on a processor rounds otherwise.
    pub device: Option<String>,
    /// Whether keys or noise of the labels come from a seed, so the model is not private.
    pub simulation: bool,
    /// Whether a finite data-independent claim covers the labels of a student with real noise. Otherwise a model of a run
    /// may reveal votes or private images. `None` if it is unknown, as outside of runs.
    pub publishable: Option<bool>,
}

impl Origin {
    /// Returns the origin of a model in the run `id` of a config, without its place in the run.
    pub(crate) fn of_run(config: &Config, id: &str) -> Self {
        Self {
            experiment: Some(config.name.clone()),
            run: Some(id.to_owned()),
            simulation: config.is_simulation(),
            publishable: Some(false),
            ..Self::of_command(config.seed)
        }
    }

    /// Returns the origin of a model that was trained by a command of its own.
    pub(crate) fn of_command(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }
}

impl Preprocessing {
    /// Returns the preparation of the images of a config. For an encoder, all pictures are changed.
    fn of_config(config: &Config, has_encoder: bool) -> Self {
        if has_encoder {
            return Self { resizes: true, converts: true };
        }
        let converts = config.data.source == DataSource::Pictures;
        Self { resizes: converts && config.reading().size.is_some(), converts }
    }
}

impl Description {
    /// Returns the description of a network that was trained by a config, on images of this shape or on vectors of this encoder.
    pub(crate) fn of_run(
        config: &Config,
        network: Network,
        (shape, encoder): (ImageShape, Option<ModelEncoder>),
        classes: Vec<String>,
        origin: Origin,
    ) -> Self {
        Self {
            format: FORMAT,
            network,
            classes,
            shape: [shape.channels, shape.height, shape.width],
            preprocessing: Preprocessing::of_config(config, encoder.is_some()),
            encoder,
            arithmetic: config.arithmetic,
            origin,
        }
    }

    pub(crate) fn shape(&self) -> ImageShape {
        let [channels, height, width] = self.shape;
        ImageShape { channels, height, width }
    }

    /// Returns the shape of the pictures of a prediction.
    pub(super) fn pictures(&self) -> ImageShape {
        let [channels, height, width] = self.encoder.as_ref().map_or(self.shape, |encoder| encoder.pictures);
        ImageShape { channels, height, width }
    }

    /// Returns whether the model is a teacher.
    pub fn is_teacher(&self) -> bool {
        matches!(self.network, Network::Teacher { .. })
    }

    /// Checks everything but the network.
    pub(super) fn check(&self) -> Result<(), ExperimentError> {
        if self.format != FORMAT {
            return Err(other_format(self.format.into()));
        }
        let shape = self.shape();
        if shape.pixels() == 0 || shape.pixels() > MAX_PIXELS || ![1, 3].contains(&shape.channels) {
            let expected = format!("expected images of 1 or 3 channels and 1 to {MAX_PIXELS} values, found {shape}");
            return Err(not_valid(&expected));
        }
        self.encoder.as_ref().map_or(Ok(()), |encoder| encoder.check(shape)).map_err(|reason| not_valid(&reason))?;
        check_names(&self.classes).map_err(|reason| not_valid(&reason))
    }

    /// Returns whether the model must not be published: it is a teacher, or no finite data-independent claim covers its labels, whose
    /// noise is real.
    pub fn is_private(&self) -> bool {
        self.is_teacher() || self.origin.publishable == Some(false) && !self.origin.simulation
    }

    /// Returns the network with `parameters` parameters of arbitrary values.
    pub(super) fn network(
        &self,
        parameters: usize,
        device: &Device,
    ) -> Result<Box<dyn AnyClassifier>, ExperimentError> {
        let (shape, classes) = (self.shape(), self.classes.len());
        match &self.network {
            Network::Student { method, version, config } => {
                check_version(method.name(), method.version(), *version)?;
                method.network(config, shape, classes, parameters, device).map_err(|error| {
                    ExperimentError::fault(format_args!("its description names an impossible network: {error}"))
                })
            }
            Network::Teacher { version, config } => {
                let architecture = config.architecture;
                check_version(architecture.name(), architecture.version(), *version)?;
                architecture.classifier(shape, classes, parameters, device).map_err(ExperimentError::fault)
            }
        }
    }
}

/// Checks the names of classes: 1 to 256, different, not empty, not long, and without characters that could deceive a reader.
pub(crate) fn check_names(names: &[String]) -> Result<(), String> {
    check_class_names(names).map_err(|error| error.to_string())?;
    // Files of votes are read without the spaces around a name.
    let mut read = HashSet::new();
    if let Some(name) = names.iter().find(|name| !read.insert(composed(name.trim()))) {
        return Err(format!(
            "expected different names of classes, found {name:?} a second time in other characters or spaces"
        ));
    }
    if let Some(name) = names.iter().find(|name| name.contains(moves_the_cursor)) {
        return Err(format!("expected names of classes without control characters, found {name:?}"));
    }
    if let Some(name) = names.iter().find(|name| name.len() > MAX_CLASS_NAME) {
        return Err(format!("expected a name of a class of at most {MAX_CLASS_NAME} bytes, found {}", name.len()));
    }
    Ok(())
}

fn check_version(name: &'static str, expected: u32, found: u32) -> Result<(), ExperimentError> {
    if found == expected {
        return Ok(());
    }
    let next = "use the version of speed that wrote the model";
    Err(ExperimentError::fault(format_args!(
        "expected version {expected} of the network {name}, found {found}: {next}"
    )))
}

pub(super) fn other_format(found: u64) -> ExperimentError {
    let next = "use the version of speed that wrote it";
    ExperimentError::fault(format_args!("expected model format {FORMAT}, found {found}: {next}"))
}

pub(super) fn not_valid(reason: &str) -> ExperimentError {
    ExperimentError::fault(format_args!("its description is not valid: {}", printable(reason)))
}
