//! The complete config, as written and checked. Every key is documented in `configs/default.toml`.

use std::ops::Deref;

use serde::{Deserialize, Serialize, Serializer};
use speed_accountant::Delta;
use speed_core::RandomnessKind;
use speed_data::pictures::Reading;
use speed_data::{Facts, ImageShape};
use speed_nn::matrix::Arithmetic;
use speed_nn::onnx::EncoderSettings;
use speed_student::{ClassPrior, StudentConfig, StudentMethod};
use speed_teacher::{Architecture, TeacherConfig, TeacherError};

use super::data::{ComputeDevice, DataConfig, DataSource, EnsembleConfig, MAX_PIXELS, SKEW, TableConfig};
use super::document::Source;
use super::fault::{Fault, refuse};
use super::features::{ENCODER, FeaturesConfig, reads_pictures};
use super::noise::NoiseConfig;
use super::privacy::PrivacyConfig;
use super::queries::QueriesConfig;
use super::row::{self, RawRow, RowConfig, Surroundings};
use super::votes::{VotesConfig, VotesSource};
use crate::error::ExperimentError;
use crate::store::PUBLISHED;

pub(crate) const SCHEMA_VERSION: u32 = 1;

const PRIOR: &str = "student.prior";

/// A complete config as written; only types are checked. A key without an effect by default is written only if it is set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct RawConfig {
    pub schema: u32,
    pub name: String,
    pub seed: u64,
    #[serde(default, skip_serializing_if = "speed_core::is_default")]
    pub device: ComputeDevice,
    #[serde(default, skip_serializing_if = "speed_core::is_default")]
    pub arithmetic: Arithmetic,
    pub data: DataConfig,
    #[serde(default, skip_serializing_if = "speed_core::is_default")]
    pub features: FeaturesConfig,
    pub ensemble: EnsembleConfig,
    pub teacher: TeacherConfig,
    pub votes: VotesConfig,
    pub queries: QueriesConfig,
    pub noise: NoiseConfig,
    pub privacy: PrivacyConfig,
    pub student: StudentConfig,
    pub table: TableConfig,
    pub row: Vec<RawRow>,
}

/// A complete, checked config: the only form that can run. Its sections are those of [`RawConfig`].
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    written: RawConfig,
    /// The delta of every bound.
    pub delta: Delta,
    /// The table's rows.
    pub rows: Vec<RowConfig>,
}

impl Deref for Config {
    type Target = RawConfig;

    fn deref(&self) -> &RawConfig {
        &self.written
    }
}

impl RawConfig {
    /// Returns the config as TOML with every key: the text whose digest is the run's id.
    ///
    /// # Panics
    /// Never: a config holds only tables, numbers, strings and flags.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("a config holds only tables, numbers, strings and flags")
    }

    fn check(self) -> Result<Config, Fault> {
        self.check_head()?;
        self.data.check(&self.ensemble, &self.table)?;
        self.check_features()?;
        self.check_networks()?;
        self.votes.check(&self.data)?;
        self.queries.check(&self.data)?;
        if self.queries.has_features() && !self.queries.use_map(self.votes.source) {
            let message =
                "is read only with queries.selection = \"clusters\", queries.beliefs, or votes.source = \"neighbours\"";
            return refuse("queries.features", message);
        }
        self.teacher.check().map_err(|bad| Fault::new(format!("teacher.{}", bad.field), bad.message))?;
        self.student.check().map_err(|bad| Fault::new(format!("student.{}", bad.field), bad.message))?;
        self.check_prior()?;
        self.noise.check(self.ensemble.teachers)?;
        let delta = self.privacy.check()?;
        let around = Surroundings { teachers: self.ensemble.teachers, queries: self.queries.count, noise: &self.noise };
        let rows = row::check(&self.row, &around)?;
        self.check_division(&rows)?;
        Ok(Config { written: self, delta, rows })
    }

    fn methods(&self) -> impl Iterator<Item = StudentMethod> {
        let rows = self.row.iter().filter(|_| self.table.repeats > 0);
        rows.map(|row| row.student.0.unwrap_or(self.student.method))
    }

    fn check_prior(&self) -> Result<(), Fault> {
        let uniform = StudentConfig { prior: ClassPrior::Uniform, ..self.student.clone() };
        if self.student == uniform {
            return Ok(());
        }
        let reads = |method: StudentMethod| method.settings(&self.student) != method.settings(&uniform);
        if !self.methods().any(reads) {
            let known: Vec<&str> =
                StudentMethod::all().into_iter().filter(|method| reads(*method)).map(StudentMethod::name).collect();
            return refuse(PRIOR, format!("is read only by students of the methods {}", known.join(", ")));
        }
        self.data.facts().map_or(Ok(()), |Facts { classes, .. }| self.check_classes(classes))
    }

    fn check_classes(&self, classes: usize) -> Result<(), Fault> {
        self.student.prior.check_classes(classes).map_err(|bad| Fault::new(PRIOR, bad.message))
    }

    fn check_head(&self) -> Result<(), Fault> {
        if self.schema != SCHEMA_VERSION {
            return refuse("schema", format!("found {}, this version reads {SCHEMA_VERSION}", self.schema));
        }
        if self.name.is_empty() || !self.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
            return refuse("name", format!("{:?}: use letters, digits, '-' and '_'", self.name));
        }
        if self.name == PUBLISHED {
            return refuse("name", format!("{PUBLISHED:?} is the folder of published runs: use another name"));
        }
        if self.arithmetic == Arithmetic::Portable && self.device != ComputeDevice::Cpu {
            return refuse(
                "arithmetic",
                "\"portable\" requires device = \"cpu\", because a GPU computes in its own way",
            );
        }
        Ok(())
    }

    /// Checks that patients or unequal parties divide images, and that no claim is made for unequal parties.
    fn check_division(&self, rows: &[RowConfig]) -> Result<(), Fault> {
        const DIVIDES: &str = "is read only with votes.source = \"teachers\" or \"neighbours\", which divide images";
        let divides = matches!(self.votes.source, VotesSource::Teachers | VotesSource::Neighbours);
        if self.data.patients().is_some() && !divides {
            return refuse("data.patients", DIVIDES);
        }
        if self.ensemble.skew == 0.0 {
            return Ok(());
        }
        if !divides {
            return refuse(SKEW, DIVIDES);
        }
        if self.data.patients().is_some() {
            return refuse(SKEW, "divides images by class, and data.patients by patient: set one of them");
        }
        if self.noise.source == RandomnessKind::OperatingSystem && rows.iter().any(RowConfig::is_noisy) {
            let reason = "the division depends on the labels of all images, so one replaced image could change the images of many \
                          teachers, and no claim for one teacher would cover it";
            return refuse(SKEW, format!("{reason}: set noise.source = \"simulation\""));
        }
        Ok(())
    }

    /// Checks the encoder, and that all other sections can work on its vectors.
    fn check_features(&self) -> Result<(), Fault> {
        self.features.check()?;
        if self.features.encoder().is_none() {
            return Ok(());
        }
        if self.data.source == DataSource::None {
            return refuse(ENCODER, "data.source = \"none\" has no pictures for an encoder");
        }
        if self.queries.has_features() {
            return refuse("queries.features", format!("is for pixels: {ENCODER} gives the vectors of the map"));
        }
        if self.votes.source == VotesSource::Teachers {
            let architecture = self.teacher.architecture;
            if !architecture.reads_vectors() {
                let known =
                    Architecture::all().into_iter().filter(|other| other.reads_vectors()).map(Architecture::name);
                return refuse("teacher.architecture", reads_pictures(architecture.name(), known));
            }
            if self.teacher.shift != 0 {
                let message =
                    format!("found {}, expected 0: the vectors of {ENCODER} cannot be shifted", self.teacher.shift);
                return refuse("teacher.shift", message);
            }
        }
        let rows = self.row.iter().enumerate().filter(|_| self.table.repeats > 0);
        for (index, row) in rows {
            let method = row.student.0.unwrap_or(self.student.method);
            if !method.reads_vectors() {
                let key = row.student.0.map_or_else(|| "student.method".to_owned(), |_| format!("row.{index}.student"));
                let known =
                    StudentMethod::all().into_iter().filter(|other| other.reads_vectors()).map(StudentMethod::name);
                return refuse(key, reads_pictures(method.name(), known) + "; or table.repeats = 0 for no students");
            }
        }
        Ok(())
    }

    /// Checks that teachers and students can learn from images of this size, if it is known. The size of vectors is known after
    /// the encoder is read.
    fn check_networks(&self) -> Result<(), Fault> {
        if self.features.encoder().is_some() {
            return Ok(());
        }
        let known = self.data.facts().map(|Facts { shape, .. }| shape).or(self.data.picture_shape()?);
        known.map_or(Ok(()), |shape| self.check_images(shape))
    }

    /// Checks that teachers and students can learn from images of this size.
    pub(super) fn check_images(&self, shape: ImageShape) -> Result<(), Fault> {
        if shape.pixels() > MAX_PIXELS {
            let message = format!("images of {shape} are too large to learn from: at most {MAX_PIXELS} values each");
            return refuse("data.size", message);
        }
        if self.votes.source == VotesSource::Teachers
            && let Err(error) = self.teacher.check_images(shape)
        {
            let key = if matches!(error, TeacherError::ShiftTooLarge { .. }) { "shift" } else { "architecture" };
            return refuse(format!("teacher.{key}"), error);
        }
        for method in self.methods() {
            if let Err(error) = method.check_images(&self.student, shape) {
                return refuse(format!("student.{}", error.field), error.message);
            }
        }
        Ok(())
    }
}

impl Config {
    /// Reads and checks a config.
    ///
    /// # Errors
    /// If the text is not TOML, or a key is unknown, has the wrong type, or a value that is not allowed.
    pub fn load(source: &Source) -> Result<Self, ExperimentError> {
        let mut raw: RawConfig = source.resolve()?;
        // Pictures are shifted, and vectors cannot be.
        if raw.features.encoder().is_some() && !source.sets("teacher.shift") {
            raw.teacher.shift = 0;
        }
        raw.check().map_err(|fault| source.error(&fault.key, fault.message))
    }

    pub(crate) fn reading(&self) -> Reading {
        self.data.reading().expect("a config that was checked")
    }

    /// Returns the settings of the encoder, if there is one.
    pub(crate) fn encoder_settings(&self) -> EncoderSettings {
        self.features.settings().expect("a config that was checked")
    }

    /// Checks that teachers and students can learn from images of this size, which is known only after reading them.
    pub(crate) fn check_images(&self, shape: ImageShape) -> Result<(), ExperimentError> {
        let checked = self.written.check_images(shape);
        checked.map_err(|Fault { key, message }| ExperimentError::key(format_args!("images of {shape}"), key, message))
    }

    /// Checks the settings for images of this number of classes, which may be known only after reading them.
    pub(crate) fn check_classes(&self, classes: usize) -> Result<(), ExperimentError> {
        let checked = self.written.check_classes(classes);
        checked.map_err(|Fault { key, message }| {
            ExperimentError::key(format_args!("images of {classes} classes"), key, message)
        })
    }

    pub(crate) fn method_of(&self, row: &RowConfig) -> StudentMethod {
        row.student.0.unwrap_or(self.student.method)
    }

    /// Returns the position of the row whose labels row `index` learns from: its own, unless it names an earlier row.
    pub(crate) fn labels_of(&self, index: usize) -> usize {
        self.rows[index].labels_of.unwrap_or(index)
    }

    pub(crate) fn to_raw(&self) -> RawConfig {
        self.written.clone()
    }

    /// Returns the largest data-independent epsilon of all answers in the experiment's ledger, if there is a limit.
    pub fn budget(&self) -> Option<f64> {
        Some(self.privacy.budget).filter(|&budget| budget > 0.0)
    }

    pub(crate) fn is_simulation(&self) -> bool {
        self.noise.source == RandomnessKind::Simulation
    }

    pub(crate) fn protects_answers(&self) -> bool {
        !self.is_simulation() && self.rows.iter().any(RowConfig::is_noisy)
    }
}

impl Serialize for Config {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.written.serialize(serializer)
    }
}
