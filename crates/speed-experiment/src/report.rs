//! Reports of SPEED runs: the table with its legend and claims, plots, pages, comparisons and sweeps.
//!
//! - Show a run: [`Report::summary`], [`Report::to_markdown`], [`Report::to_html`], and all files with
//!   [`Report::files`].
//! - Compare runs: [`Comparison::new`].
//! - Show a classification against true labels: [`Classification::table`].
//! - Show a sweep: [`SweepReport::summary`], [`SweepReport::to_html`].
//!
//! The module reads and writes no files, and depends on the accountant and the ledger, whose claims it shows, and on configs, but not on
//! the run store or networks.

mod asked;
mod baselines;
mod by_class;
mod card;
mod classification;
mod columns;
mod compare;
pub mod csv;
mod encoder;
mod environment;
mod noise;
mod page;
mod picture;
mod plausible;
pub mod plot;
mod proportion;
mod row;
mod run;
mod statistics;
mod sweep;
mod table;
mod text;
mod two_classes;

pub use asked::{AskedQueries, RowAnswers};
pub use card::{
    CARD_FORMAT, CardSource, MAX_CARD_DELTA, ModelCard, ModelFile, NoiseSource, Participants, PartyPrivacy, Privacy,
    Task, TrainingData, Versions, covers_labels,
};
pub(crate) use classification::check_class_names;
pub use classification::{ClassResult, Classification, ClassificationError};
pub(crate) use columns::{
    DATA_DEPENDENT, DATA_DEPENDENT_COLLUSION, DATA_INDEPENDENT, DATA_INDEPENDENT_PARTY, PAPER_FORMULAS,
};
pub use compare::{
    ClaimDifference, ComparedRun, Comparison, Difference, Figure, FigureComparison, Measure, RowComparison,
    SettingDifference, WithoutSpread,
};
pub use encoder::EncoderFacts;
pub(crate) use encoder::FROM_PUBLIC_DATA;
pub use environment::Environment;
pub use noise::RunNoise;
pub(crate) use page::{BASELINE_STAGE, STUDENT_STAGE};
pub use page::{PageParts, Sheet};
pub(crate) use picture::{SHEET_COLUMNS, SHOWN_QUERIES, png, reduced_png};
pub(crate) use plausible::{MAX_CLASS_NAME, MAX_ROW_NAME, check_rows};
pub use proportion::Interval;
pub use row::{AggregationKind, Baselines, EpochAccuracy, LabellingTimes, PaperFigures, ReportRow, Score, StudentRun};
pub use run::{EnsembleQuality, Report, ReportFile, SCHEMA, StageTime, Versioned};
pub(crate) use statistics::{mean_and_deviation, median};
pub use sweep::{SettingReport, SweepReport};
pub use table::Table;
pub use two_classes::{EVEN, RocPoint, TwoClasses};
