//! The list of a round's queries.

use std::path::Path;

use speed_core::Digest;
use speed_core::vote_files::NamedQueries;

use crate::error::RolesError;
use crate::fault::InputFault;
use crate::file_kind::FileKind;
use crate::files::read_input;
use crate::round_file::RoundFile;

/// Reads the list of the round's queries.
pub(crate) fn read(list: &Path, file: &RoundFile) -> Result<NamedQueries, RolesError> {
    let bytes = read_input(list, FileKind::QUERY_LIST)?;
    check(file.round().query_list(), Digest::of(&bytes)).map_err(RolesError::input(list))?;
    let queries = NamedQueries::parse(&bytes).and_then(|queries| queries.expect_count(file.round().shape().queries()));
    queries.map_err(RolesError::input(list))
}

/// Checks that the teacher voted on the round's queries.
pub(crate) fn check(expected: Option<Digest>, found: Digest) -> Result<(), InputFault> {
    match expected {
        Some(expected) if expected == found => Ok(()),
        Some(expected) => Err(InputFault::QueryList { expected, found }),
        None => Err(InputFault::NoQueryList),
    }
}
