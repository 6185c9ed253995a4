//! Files of votes that privacy commands read. Every output states how its file was read.

use std::fmt::Display;
use std::ops::Range;
use std::path::Path;

use serde::Serialize;
use speed_core::vote_files::{FormError, Known, Table, VoteFile, VotesForm, read_bytes};
use speed_experiment::ExperimentError;
use speed_experiment::npy::read_row_indices;

use crate::commands::{Failure, usage};

/// The next step for a file whose number of teachers is unknown, of commands with and without `--teachers`.
pub(in crate::commands) const GIVE_TEACHERS: &str = "if some votes are empty, give --teachers N";
pub(in crate::commands) const GIVE_LABELS: &str = "if some votes are empty, give labels (teachers x queries)";

/// A summary of votes as they were read.
#[derive(Clone, Copy, Debug, Serialize)]
pub(in crate::commands) struct ReadVotes {
    form: VotesForm,
    pub(in crate::commands) teachers: usize,
    pub(in crate::commands) queries: usize,
    classes: Option<usize>,
    /// Number of queries that the command used.
    selected: usize,
    /// Whether the number of teachers is the sum of every row, so that the result holds only if no vote is empty.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    teachers_from_sum: bool,
}

impl ReadVotes {
    pub(in crate::commands) fn new(file: &VoteFile, selected: usize) -> Self {
        let (form, teachers, classes) = (file.form(), file.teachers(), file.classes());
        let (queries, teachers_from_sum) = (file.queries_in_file(), file.has_teachers_from_sum());
        Self { form, teachers, queries, classes, selected, teachers_from_sum }
    }

    /// Returns the line that a command prints.
    pub(in crate::commands) fn line(&self) -> String {
        let Self { form, teachers, queries, classes, selected, teachers_from_sum } = self;
        let classes = classes.map_or_else(String::new, |classes| format!(", {classes} classes"));
        let selected =
            if selected == queries { String::new() } else { format!("; {selected} of the queries selected") };
        let no_empty = if *teachers_from_sum {
            "The number of teachers is the sum of every row; the result holds only if no vote is empty.\n"
        } else {
            ""
        };
        format!("Votes read: {teachers} teachers, {queries} queries{classes} ({form}){selected}.\n{no_empty}")
    }
}

/// An output together with the summary of its votes.
#[derive(Serialize)]
pub(in crate::commands) struct WithVotes<'a, T> {
    #[serde(flatten)]
    pub(in crate::commands) value: &'a T,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) votes_file: Option<ReadVotes>,
}

/// Reads a file of votes in the given form, or in the only possible form. `next` is the next step if the number of teachers is
/// unknown.
pub(in crate::commands) fn read(
    path: &Path,
    form: Option<VotesForm>,
    known: &Known,
    next: &str,
) -> Result<VoteFile, Failure> {
    let bytes = read_bytes(path).and_then(|bytes| Table::parse(&bytes));
    let table = bytes.map_err(|fault| input(path, fault))?;
    VoteFile::new(table, form, known).map_err(|fault| match fault {
        FormError::TeachersUnknown(_) => input(path, format_args!("{fault}; {next}")),
        fault => refused(path, fault),
    })
}

/// Returns the histograms of the selected queries, and a summary of the file.
pub(in crate::commands) fn counts(
    path: &Path,
    file: &VoteFile,
    queries: Option<&Path>,
    rows: Option<&Range<usize>>,
) -> Result<(Vec<Vec<u32>>, ReadVotes), Failure> {
    let all = file.queries();
    let selected: Vec<usize> = match (queries, rows) {
        (Some(indices), _) => read_row_indices(indices, all)?,
        (None, Some(rows)) if rows.end > all => {
            return Err(usage("rows", format!("{}..{} is not within the file's {all} queries", rows.start, rows.end)));
        }
        (None, rows) => rows.cloned().unwrap_or(0..all).collect(),
    };
    let counts = file.histograms(&selected).map_err(|fault| refused(path, fault))?;
    Ok((counts, ReadVotes::new(file, selected.len())))
}

fn refused(path: &Path, fault: FormError) -> Failure {
    let shown = speed_core::printable_path(path);
    match fault {
        FormError::Undecided(_) => usage(
            "form",
            format!("{shown} can be read {fault}: give --form labels with --classes K, or --form histograms"),
        ),
        FormError::ClassesUnknown => usage("classes", format!("{shown}: {fault}: give --classes K")),
        FormError::Classes { .. } => usage("classes", &fault),
        fault => input(path, fault),
    }
}

fn input(path: &Path, fault: impl Display) -> Failure {
    ExperimentError::input(path, fault).into()
}
