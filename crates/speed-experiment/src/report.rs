//! The report: our figures beside the paper's, with all information that reproduces them.

mod asked;
mod columns;
mod finished;
mod plausible;
mod row;
mod statistics;
mod text;

pub(crate) use asked::AskedQueries;
pub(crate) use columns::{AGREEMENT, DATA_INDEPENDENT, NONE, largest_epsilon, two_digits_up, without_epsilon};
pub use finished::{Report, StageTime};
pub(crate) use plausible::{MAX_FOLDER, check_count, check_names, check_rows};
pub use row::ReportRow;
pub(crate) use row::RowResult;
pub(crate) use statistics::{mean_and_deviation, median};
pub(crate) use text::noise;
