//! Lists of queries: the public images that a round labels, by their names.

use std::collections::HashMap;
use std::path::Path;

use rand::seq::SliceRandom;
use speed_core::random::Streams;
use speed_data::pictures::find;
use speed_votes::parse_name_list;

use super::images::relative;
use super::{at, check_new, read_text, seed, write_output};
use crate::error::{ExperimentError, InputFault};

/// Draws `count` pictures of a directory at random, and writes their names to the new file `out`: a query list of a round.
/// Returns the seed.
///
/// # Errors
/// If there are too few pictures, a name would not survive in CSV, or the file exists.
pub fn choose_queries(pool: &Path, count: usize, given: Option<u64>, out: &Path) -> Result<u64, ExperimentError> {
    check_new(out)?;
    let mut names = relative(pool, &find(pool)?.files);
    if !(1..=names.len()).contains(&count) {
        return Err(at(pool, InputFault::QueryCount { images: names.len(), found: count }));
    }
    let seed = seed(given);
    names.shuffle(&mut Streams::new(seed).stream("queries", 0));
    names.truncate(count);
    names.sort_unstable();
    let text = speed_report::csv::write(["name"], names.into_iter().map(|name| [name]));
    write_output(out, text.as_bytes())?;
    Ok(seed)
}

/// Reads a list of queries: their names in order. Any number of them is accepted.
pub(super) fn read_queries(path: &Path) -> Result<Vec<String>, ExperimentError> {
    parse_name_list(&read_text(path)?).map_err(|fault| at(path, InputFault::Answer(Box::new(fault))))
}

/// Returns the position of every name among the names of images.
///
/// # Errors
/// Names the first query that is not an image.
pub(super) fn positions(
    path: &Path,
    queries: &[String],
    folder: &Path,
    names: &[String],
) -> Result<Vec<usize>, ExperimentError> {
    let places: HashMap<&str, usize> = names.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
    let position = |query: &String| {
        let fault = || InputFault::UnknownQuery { name: query.clone(), folder: folder.to_path_buf() };
        places.get(query.as_str()).copied().ok_or_else(|| at(path, fault()))
    };
    queries.iter().map(position).collect()
}
