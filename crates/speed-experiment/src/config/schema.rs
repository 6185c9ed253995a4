//! The checked config: the only thing that runs. Every field is documented in `configs/default.toml`.

use serde::{Deserialize, Serialize};
use speed_nn::matrix::Arithmetic;
use speed_student::{StudentConfig, StudentMethod};
use speed_teacher::TeacherConfig;

use super::{ConfigError, Source};

/// Version of the config format.
pub const SCHEMA_VERSION: u32 = 1;

/// A whole experiment, checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Format version.
    pub schema: u32,
    /// Experiment name: a folder below the results.
    pub name: String,
    /// Root seed of experiment randomness.
    pub seed: u64,
    /// What computes the trainings that can be computed together.
    // Left out where it is the processor, so that runs of configs without it keep their ids.
    #[serde(default, skip_serializing_if = "ComputeDevice::is_cpu")]
    pub device: ComputeDevice,
    /// What the trainings' bits depend on.
    #[serde(default, skip_serializing_if = "Arithmetic::is_fastest")]
    pub arithmetic: Arithmetic,
    /// Where images come from and how the public ones are split.
    pub data: DataConfig,
    /// The data holders.
    pub ensemble: EnsembleConfig,
    /// How each of them trains.
    pub teacher: TeacherConfig,
    /// Where votes come from.
    pub votes: VotesConfig,
    /// Which pool images are labelled.
    pub queries: QueriesConfig,
    /// Privacy noise.
    pub noise: NoiseConfig,
    /// Privacy target.
    pub privacy: PrivacyConfig,
    /// How the student trains.
    pub student: StudentConfig,
    /// The table.
    pub table: TableConfig,
    /// Its rows.
    pub row: Vec<RowConfig>,
}

/// `device`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComputeDevice {
    /// The processor, one student or teacher a thread.
    #[default]
    Cpu,
    /// A GPU, through Vulkan, Metal or DirectX 12: small teachers, and students of the paper's method, as one computation.
    Wgpu,
    /// What a GPU computes, on the processor: slower than `Cpu`, for comparisons.
    Flex,
}

impl ComputeDevice {
    fn is_cpu(&self) -> bool {
        *self == Self::Cpu
    }
}

/// `[data]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct DataConfig {
    pub source: DataSource,
    pub train_images: usize,
    pub test_images: usize,
    pub pool_images: usize,
}

/// `data.source`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DataSource {
    /// Built-in procedural digits.
    Digits,
    /// The MNIST files.
    Mnist,
    /// No images: accounting and aggregation of a vote file.
    None,
}

/// `[ensemble]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct EnsembleConfig {
    pub teachers: usize,
}

/// `[votes]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct VotesConfig {
    pub source: VotesSource,
    pub file: String,
}

/// `votes.source`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VotesSource {
    /// Train the ensemble.
    Teachers,
    /// Read labels or histograms.
    File,
    /// Every teacher votes for a class at random.
    Uniform,
    /// Every teacher votes for the pool's true label.
    Truth,
}

/// `[queries]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct QueriesConfig {
    pub count: usize,
    pub selection: QuerySelection,
    pub file: String,
}

/// `queries.selection`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuerySelection {
    /// Distinct pool images by the seed.
    Random,
    /// The first pool images.
    First,
    /// As many of every class, by the pool's true labels and the seed.
    Balanced,
    /// Indices from a file.
    File,
}

/// `[noise]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct NoiseConfig {
    pub mechanism: NoiseMechanism,
    pub gamma: f64,
    pub source: NoiseSourceKind,
}

/// `noise.mechanism`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseMechanism {
    /// Per-teacher differences of negative binomials; their sum over all teachers is discrete Laplace.
    DiscreteLaplace,
}

/// `noise.source`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseSourceKind {
    /// The operating system's cryptographic generator.
    OperatingSystem,
    /// The config's seed: reproducible, not private.
    Simulation,
}

/// `[privacy]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct PrivacyConfig {
    pub delta: f64,
    // Left out where there is none, so that runs of configs without it keep their ids.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub budget: f64,
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

/// `[table]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct TableConfig {
    pub repeats: usize,
}

/// `[[row]]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct RowConfig {
    pub name: String,
    pub aggregation: AggregationKind,
    // Reports of earlier versions lack the next two.
    #[serde(default)]
    pub circuit: CircuitKind,
    #[serde(default)]
    pub queries: usize,
    pub honest_ratio: f64,
    // As do these two.
    #[serde(default)]
    pub labels_of: String,
    #[serde(default)]
    pub student: RowStudent,
    pub paper_epsilon: f64,
    pub paper_accuracy: f64,
    pub paper_deviation: f64,
    pub paper_minutes: f64,
}

/// `row.aggregation`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AggregationKind {
    /// Plurality without noise or encryption.
    NonPrivate,
    /// Noise, and a trusted server that sees the sums.
    Trusted,
    /// Noise, and a server that sees ciphertexts only.
    Encrypted,
}

/// `row.circuit`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CircuitKind {
    /// Exact: matches in rounds.
    #[default]
    Tournament,
    /// Exact: every class against every other.
    AllPairs,
    /// The paper's own, with its parameters: for comparison only.
    Paper,
}

/// `row.student`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowStudent {
    /// `student.method`.
    #[default]
    Default,
    /// The paper's GAN.
    Gan,
    /// The student on pseudo-labels.
    PseudoLabels,
}

impl RowConfig {
    /// How many of `all` queries the row answers: the first so many.
    #[must_use]
    pub fn query_count(&self, all: usize) -> usize {
        if self.queries == 0 { all } else { self.queries.min(all) }
    }
}

impl Config {
    /// Reads and checks a config.
    ///
    /// # Errors
    /// If the text is not TOML, or a key is unknown, has the wrong type, or a value that is not allowed.
    pub fn load(source: &Source) -> Result<Self, ConfigError> {
        let config: Self = source.resolve()?;
        config.check().map_err(|(key, message)| source.error(&key, message))?;
        Ok(config)
    }

    /// How the students of `row` learn.
    #[must_use]
    pub fn method_of(&self, row: &RowConfig) -> StudentMethod {
        match row.student {
            RowStudent::Default => self.student.method,
            RowStudent::Gan => StudentMethod::Gan,
            RowStudent::PseudoLabels => StudentMethod::PseudoLabels,
        }
    }

    /// The position of the row whose labels row `index` learns from: its own, unless it names an earlier one.
    #[must_use]
    pub fn labels_of(&self, index: usize) -> usize {
        let named = &self.row[index].labels_of;
        self.row[..index].iter().position(|row| !named.is_empty() && row.name == *named).unwrap_or(index)
    }

    /// The config as TOML, every key written out.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("a config holds only tables, numbers, strings and flags")
    }

    /// Whether noise and keys come from the seed.
    #[must_use]
    pub fn is_simulation(&self) -> bool {
        self.noise.source == NoiseSourceKind::Simulation
    }
}
