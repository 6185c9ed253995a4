//! The columns of a comparison.

use crate::report::row::{PaperFigures, ReportRow};
use crate::report::run::Report;

/// The name of the paper's column.
pub(super) const PAPER: &str = "paper";

/// The content of a column.
#[derive(Clone, Copy)]
pub(super) enum Side<'a> {
    Run(&'a Report),
    Paper,
}

/// A row in one column.
#[derive(Clone, Copy)]
pub(super) enum SideRow<'a> {
    Run(&'a ReportRow),
    Paper(&'a PaperFigures),
}
