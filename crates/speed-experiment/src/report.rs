//! Reports of SPEED runs: the table with its legend and claims, plots, pages, comparisons and sweeps.
//!
//! - Show a run: [`Report::summary`], [`Report::to_markdown`].
//! - Compare runs: [`Comparison::new`].
//! - Show a classification against true labels: [`Classification::table`].
//! - Show a sweep: [`SweepReport::summary`], [`SweepReport::to_html`].
//!
//! The module reads and writes no files, and depends on the accountant and the ledger, whose claims it shows, and on configs, but not on
//! the run store or networks.

mod by_class;
mod card;
mod classification;
mod columns;
mod compare;
pub mod csv;
mod page;
mod picture;
mod plausible;
pub mod plot;
mod row;
mod run;
mod statistics;
mod sweep;
mod table;
mod text;
mod two_classes;

pub use card::{
    CARD_FORMAT, CardSource, MAX_CARD_DELTA, ModelCard, ModelFile, NoiseSource, Participants, PartyPrivacy, Privacy,
    Task, TrainingData, Versions, covers_labels,
};
pub(crate) use classification::check_class_names;
pub use classification::{ClassResult, Classification, ClassificationError};
pub(crate) use columns::{
    DATA_DEPENDENT, DATA_DEPENDENT_COLLUSION, DATA_INDEPENDENT, DATA_INDEPENDENT_PARTY, PAPER_FORMULAS,
};
pub use columns::{largest_epsilon, without_epsilon};
pub use compare::{
    ClaimDifference, ComparedRun, Comparison, Difference, FigureComparison, Measure, RowComparison, SettingDifference,
    WithoutSpread,
};
pub(crate) use page::{AskedQueries, BASELINE_STAGE, RowAnswers, STUDENT_STAGE, Sheet};
pub(crate) use picture::{SHEET_COLUMNS, SHOWN_QUERIES, png, reduced_png};
pub(crate) use plausible::{MAX_CLASS_NAME, MAX_ROW_NAME, check_rows};
pub use row::{AggregationKind, Baselines, EpochAccuracy, LabellingTimes, PaperFigures, ReportRow, Score, StudentRun};
pub(crate) use run::FROM_PUBLIC_DATA;
pub use run::{EncoderFacts, EnsembleQuality, Environment, Report, RunNoise, SCHEMA, StageTime, Versioned};
pub use statistics::Interval;
pub(crate) use statistics::{mean_and_deviation, median};
pub use sweep::{SettingReport, SweepReport};
pub use table::Table;
pub use two_classes::{EVEN, RocPoint, TwoClasses};
