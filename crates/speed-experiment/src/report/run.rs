//! The report of a finished run.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::json;
use speed_accountant::ledger::Statement;
use speed_core::moves_the_cursor;
use speed_nn::onnx::EncoderPreparation;
use speed_student::StudentMethod;

use crate::config::RawConfig;
use crate::error::ExperimentError;
use crate::report::plausible::{MAX_FOLDER, check_classes, check_count, check_names, check_rows};
use crate::report::row::ReportRow;
use crate::report::table::percent;

/// The version of reports, of sweeps and of everything that is printed as JSON: their first field.
pub const SCHEMA: u32 = 1;

/// A value with the version of its format before it.
#[derive(Serialize)]
pub struct Versioned<T> {
    schema: u32,
    #[serde(flatten)]
    value: T,
}

impl<T> Versioned<T> {
    /// Adds [`SCHEMA`] to a value.
    pub fn new(value: T) -> Self {
        Self { schema: SCHEMA, value }
    }
}

/// The largest number of stages of a run; each student is a stage.
const MAX_STAGES: usize = 1_000_000;

/// Wall-clock time of a stage.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StageTime {
    /// The stage.
    pub stage: String,
    /// The time of the attempt that finished it, in seconds.
    pub seconds: f64,
    /// Units of work from earlier attempts; their time is not in `seconds`.
    pub resumed_units: usize,
}

/// The ensemble's votes on the pool. Accuracies are `None` if the pool has no labels.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EnsembleQuality {
    /// Number of teachers.
    pub teachers: usize,
    /// Number of pool images.
    pub pool_images: usize,
    /// Mean accuracy of the teachers, 0 to 1.
    pub mean_accuracy: Option<f64>,
    /// Accuracy of the plurality of the votes, 0 to 1.
    pub plurality_accuracy: Option<f64>,
    /// Share of the votes that are empty, 0 to 1; `None` if no vote is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_votes: Option<f64>,
    /// Mean accuracy of the teachers on the students' test images, 0 to 1; measured only as a baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_accuracy: Option<f64>,
}

impl EnsembleQuality {
    /// Returns the share of empty votes as the end of a list; empty if no vote is.
    pub(crate) fn empty_in_words(&self) -> String {
        self.empty_votes.map_or_else(String::new, |share| format!(", {} % of the votes empty", percent(share)))
    }
}

/// Returns the title of a method of students; the name of an unknown one.
pub(crate) fn title_of(method: &str) -> &str {
    StudentMethod::find(method).map_or(method, |known| known.title())
}

/// The condition on an encoder under which claims hold as stated.
pub(crate) const FROM_PUBLIC_DATA: &str =
    "The encoder must come from public data: epsilon does not cover pictures that trained it.";

/// Largest length of the name of an encoder's file in bytes.
const MAX_NAME: usize = 1024;

/// The encoder that turned pictures into vectors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncoderFacts {
    /// The name of its file.
    pub file: String,
    /// The SHA-256 of its model, external weights and preparation, in hexadecimal digits.
    pub digest: String,
    /// Number of values of a vector.
    pub width: usize,
    /// The preparation of its pictures.
    pub preparation: EncoderPreparation,
}

impl EncoderFacts {
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.digest.len() != 64 || !self.digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(format!("expected the digest of an encoder in 64 hexadecimal digits, found {:?}", self.digest));
        }
        if self.file.len() > MAX_NAME || self.file.contains(moves_the_cursor) {
            return Err(format!(
                "expected a file of an encoder of at most {MAX_NAME} characters, none of them control characters"
            ));
        }
        self.preparation.check().map_err(|error| format!("encoder: {error}"))
    }

    /// Describes it in one line, with the file's name as it is.
    pub fn in_words(&self) -> String {
        let [height, width] = self.preparation.size;
        let Self { file, digest, width: values, .. } = self;
        let pictures = if self.preparation.mirror { "pictures and their mirror images" } else { "pictures" };
        format!("{file}, SHA-256 {digest}: {pictures} of {height} x {width} pixels become vectors of {values} values")
    }
}

/// The machine and the versions of a run; it contains no host name, user or path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of SPEED.
    pub speed: String,
    /// Version of Burn.
    pub burn: String,
    /// Version of TFHE-rs.
    pub tfhe: String,
    /// Operating system and architecture.
    pub system: String,
    /// Processor model, if the system reports it.
    pub processor: String,
    /// Logical processors that the process may use.
    pub processors: usize,
    /// The unit that multiplies the matrices of students and small teachers, which determines their last bits.
    pub products: String,
    /// The kind of machine with respect to the bits of trainings: machines of the same kind give the same bits.
    pub arithmetic: String,
    /// The device of the trainings that the config's `device` selects.
    pub device: String,
    /// Memory in GiB, if the system reports it.
    pub memory_gib: Option<f64>,
}

/// The noise of a run's answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunNoise {
    /// No row has noise.
    None,
    /// The noise comes from a seed, so it protects against no adversary.
    Simulation,
    /// The noise comes from the operating system.
    Real,
}

impl RunNoise {
    /// Returns the noise of a run, given whether any row has noise and whether the run is a simulation.
    pub(crate) fn new(is_noisy: bool, is_simulation: bool) -> Self {
        match (is_noisy, is_simulation) {
            (false, _) => Self::None,
            (true, true) => Self::Simulation,
            (true, false) => Self::Real,
        }
    }
}

impl fmt::Display for RunNoise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "no noise",
            Self::Simulation => "simulation",
            Self::Real => "real noise",
        })
    }
}

/// The report of a finished run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Experiment name.
    pub experiment: String,
    /// Run id.
    pub run: String,
    /// True if noise and keys came from the seed: reproducible, not private.
    pub simulation: bool,
    /// The resolved config.
    pub config: RawConfig,
    /// The dataset from whose digits the street digits are made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handwriting: Option<String>,
    /// The encoder that turned pictures into vectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoder: Option<EncoderFacts>,
    /// The names of the classes; empty without images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
    /// The number of parties with private images of each class; empty if no party lacks a class, or noise protects the parties.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parties_by_class: Vec<usize>,
    /// The accuracy of the ensemble on the pool.
    pub ensemble: EnsembleQuality,
    /// The lines of the table.
    pub rows: Vec<ReportRow>,
    /// Machine and versions.
    pub environment: Environment,
    /// The kinds of machine that trained; more than one only with `--mix-machines`.
    pub kinds_of_machine: Vec<String>,
    /// Times of the stages.
    pub stage_times: Vec<StageTime>,
    /// The statement of the experiment's ledger over all its runs; `None` for simulations, which charge nothing.
    pub ledger: Option<Statement>,
}

impl Report {
    /// Returns the names and contents of the files of the report except its page. `table.*`, `students.*`, `classes.csv`,
    /// `confusion.csv` and `epochs.*` hold the part that config and seed determine; `report.*` also contains times and
    /// machine.
    pub(crate) fn files(&self) -> Vec<(&'static str, String)> {
        let rows: Vec<ReportRow> = self.rows.iter().map(ReportRow::figures_only).collect();
        let rows = json!({ "simulation": self.simulation, "ensemble": self.ensemble, "rows": rows });
        let files = [
            ("table.md", Some(self.table().to_markdown())),
            ("students.csv", Some(self.students().to_csv())),
            ("students.svg", self.strip_plot()),
            ("classes.csv", self.classes_csv()),
            ("confusion.csv", self.confusion_csv()),
            ("baselines.csv", self.baselines().map(|table| table.to_csv())),
            ("epochs.csv", Some(self.students_by_epoch().to_csv())),
            ("epochs.svg", self.epochs_plot()),
            ("table.json", Some(format!("{rows:#}\n"))),
            ("report.md", Some(self.to_markdown())),
            ("report.csv", Some(self.table_with_times().to_csv())),
        ];
        files.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
    }

    /// Returns whether noise protects the answers, so parts of the report are not public.
    pub fn is_protected(&self) -> bool {
        !self.simulation && self.rows.iter().any(ReportRow::is_noisy)
    }

    pub(crate) fn noise(&self) -> RunNoise {
        RunNoise::new(self.rows.iter().any(ReportRow::is_noisy), self.simulation)
    }

    /// Checks a report that was read from a file, which is untrusted input.
    pub(crate) fn check(&self) -> Result<(), ExperimentError> {
        let stages = self.stage_times.iter().map(|time| &time.stage);
        check_count("stages", self.stage_times.len(), MAX_STAGES)?;
        check_names(MAX_FOLDER, [&self.experiment, &self.run].into_iter().chain(&self.handwriting).chain(stages))?;
        if self.encoder.is_some() != self.config.features.encoder().is_some() {
            return Err(ExperimentError::unlikely("an encoder if the config has one, and else none", "another report"));
        }
        let facts = self.encoder.as_ref().map_or(Ok(()), EncoderFacts::check);
        facts.map_err(|fault| ExperimentError::unlikely("possible facts of an encoder", fault))?;
        check_classes(&self.classes)?;
        if ![0, self.classes.len()].contains(&self.parties_by_class.len()) {
            return Err(ExperimentError::unlikely(
                "a number of parties for each class, or none",
                self.parties_by_class.len(),
            ));
        }
        check_rows(&self.rows)
    }
}
