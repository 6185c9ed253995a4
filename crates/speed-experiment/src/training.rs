//! Trainings outside of runs: the teachers of one organisation, their votes, and the student of a round.
//!
//! Its main uses:
//! - train one teacher, or several on disjoint parts, on labelled images ([`train_teachers`]);
//! - choose the queries of a round among public images: at random, or by clusters ([`choose_queries`]);
//! - let models vote on public images ([`vote`]);
//! - label queries by the plurality of votes in clear text, for trials ([`plurality`]);
//! - train a student on public images and the labels of a round ([`train_student`]);
//! - write example images for all of this ([`write_example`]).
//!
//! The settings are the defaults of configs, with changes. Equal inputs and seeds give models of equal bytes.

mod example;
mod images;
mod queries;
mod settings;
mod student;
mod teacher;
mod votes;

use std::path::Path;

use speed_core::{printable, printable_path};

pub use example::{
    ExampleOptions, ExampleReport, ORGANISATIONS, OWN_IMAGES, PUBLIC_IMAGES, TEST_IMAGES, write_example,
};
pub use images::ImagesOptions;
pub use queries::{QueriesChoice, QueriesOptions, QueriesReport, choose_queries};
pub use speed_student::pool::Features;
pub use student::{PoolSummary, RoundOrigin, StudentOptions, StudentReport, train_student};
pub use teacher::{TeacherOptions, TeacherReport, TeachersReport, train_teachers};
pub use votes::{OnnxOptions, PluralityOptions, PluralityReport, VoteOptions, VoteReport, plurality, vote};

use crate::error::ExperimentError;
use crate::model::check_names;
use crate::progress::Progress;
use crate::store::write_new;

/// Returns an error about a line of the file `path`, whose cell `found` is untrusted text.
fn other_line(path: &Path, line: usize, expected: String, found: &str) -> ExperimentError {
    ExperimentError::input(path, format_args!("line {line}: expected {expected}, found {:?}", printable(found)))
}

/// Returns an error about a query in the file `path` that is not an image of `folder`.
fn unknown_query(path: &Path, name: &str, folder: &Path) -> ExperimentError {
    let (folder, found) = (printable_path(folder), printable(name));
    ExperimentError::input(path, format_args!("expected names of images in {folder}, found {found:?}"))
}

/// Refuses an output that exists, before any work.
///
/// # Errors
/// If a file, directory or link has this name.
pub fn check_new(path: &Path) -> Result<(), ExperimentError> {
    // A broken link is in the way too.
    if path.symlink_metadata().is_ok() { Err(exists(path)) } else { Ok(()) }
}

/// Writes a new file atomically.
///
/// # Errors
/// If something has this name, or writing fails.
pub fn write_output(path: &Path, bytes: &[u8]) -> Result<(), ExperimentError> {
    if write_new(path, bytes, false)? { Ok(()) } else { Err(exists(path)) }
}

/// Writes a new file that only its owner may read, atomically.
///
/// # Errors
/// If something has this name, or writing fails.
pub fn write_private_output(path: &Path, bytes: &[u8]) -> Result<(), ExperimentError> {
    if write_new(path, bytes, true)? { Ok(()) } else { Err(exists(path)) }
}

/// Number of images from which a model is reported that nearly always gives the same class. A round about groups has few queries.
const ENOUGH: usize = 6;

/// Warns of a model that nearly always gives the same class, and says to `check` its likely cause. `counts` are its answers by class,
/// and `usual` the labels that it learned from by class, empty if they are unknown. It may give a class as often as these do.
fn warn_of_one_class(
    (counts, usual): (&[usize], &[usize]),
    names: &[String],
    what: &str,
    check: &str,
    progress: &dyn Progress,
) {
    let (all, known): (usize, usize) = (counts.iter().sum(), usual.iter().sum());
    // Labels of one class only, and answers of one class only, are reported.
    let is_usual = |class: usize| {
        counts[class] < all && usual.get(class).is_some_and(|&times| times < known && 10 * times > 9 * known)
    };
    let nearly_all = |class: usize| all >= ENOUGH && 10 * counts[class] > 9 * all;
    for (class, name) in names.iter().enumerate().filter(|(class, _)| nearly_all(*class) && !is_usual(*class)) {
        let times = counts[class];
        progress.warn(&format!("{what} {times} of {all} times for {}: check that it gets {check}", printable(name)));
    }
}

fn warn_of_missing(counts: &[usize], names: &[String], what: &str, progress: &dyn Progress) {
    let missing = counts.iter().zip(names).filter(|(count, _)| **count == 0);
    let missing: Vec<String> = missing.map(|(_, name)| printable(name)).collect();
    if counts.iter().sum::<usize>() >= 2 * counts.len().max(ENOUGH) && !missing.is_empty() {
        progress.warn(&format!("{what} {}", missing.join(", ")));
    }
}

fn check_classes_option(names: Option<&[String]>) -> Result<(), ExperimentError> {
    names.map_or(Ok(()), check_names).map_err(|reason| ExperimentError::option("--classes", reason))
}

fn check_folders(names: &[String], path: &Path) -> Result<(), ExperimentError> {
    check_names(names).map_err(|reason| {
        ExperimentError::input(path, format_args!("its folders cannot be classes: {}", printable(&reason)))
    })
}

fn by_class<'a>(labels: impl IntoIterator<Item = &'a u8>, classes: usize) -> Vec<usize> {
    let mut counts = vec![0; classes];
    labels.into_iter().for_each(|&label| counts[usize::from(label)] += 1);
    counts
}

fn exists(path: &Path) -> ExperimentError {
    ExperimentError::results(path, "already exists and is never overwritten: move it away, or give another name")
}

/// Returns the seed that was given, or a new one. A new seed has 32 bits, so that programs in any language can repeat it.
fn seed(given: Option<u64>) -> u64 {
    given.unwrap_or_else(|| u64::from(rand::random::<u32>()))
}
