//! Votes, query indices and true labels in `.npy` files; files from users may also be CSV.

use std::io::Write as _;
use std::path::Path;

use npyz::WriterBuilder;
use speed_core::npy::{RealNumbers, WholeNumbers};
use speed_core::vote_files::{EMPTY, FormError, Known, Table, VoteFile, parse_numbers};
use speed_core::{Vote, VoteShape, Votes, printable_path};

use crate::config::Config;
use crate::error::ExperimentError;

/// Reads votes from the bytes of a file. Histograms become one-hot votes with the same sums, which an aggregator cannot
/// distinguish from the original votes. Only the first `data.pool_images` columns or rows are used.
pub(crate) fn parse_votes(
    bytes: &[u8],
    config: &Config,
    of_images: Option<usize>,
) -> Result<VoteFile, ExperimentError> {
    let path = config.votes.path();
    let (teachers, pool) = (config.ensemble.teachers, config.data.pool_images);
    let table = Table::parse(bytes).map_err(|fault| ExperimentError::input(path, fault))?;
    let known = Known { teachers: Some(teachers), queries: Some(pool), classes: of_images.or(config.votes.classes()) };
    let key = |key: &str, message: String| ExperimentError::key(printable_path(path), key, message);
    let votes = VoteFile::new(table, config.votes.form(), &known).map_err(|fault| match fault {
        FormError::Undecided(_) => key("votes.form", format!("{fault}: set \"labels\" or \"histograms\"")),
        fault => {
            let of_config = format!("ensemble.teachers = {teachers} and data.pool_images = {pool}");
            ExperimentError::input(path, format_args!("{fault}; the config has {of_config}"))
        }
    })?;
    if votes.classes().is_none() {
        return Err(key("votes.classes", format!("{votes}: {}: set their number", FormError::ClassesUnknown)));
    }
    Ok(votes)
}

/// Reads labels that [`votes_to_bytes`] wrote, of a known shape.
pub(crate) fn read_labels(path: &Path, shape: VoteShape) -> Result<Votes, ExperimentError> {
    let (teachers, pool, classes) = (shape.teachers(), shape.queries(), shape.classes());
    let WholeNumbers { shape: found, values } = read(path)?;
    if found != [teachers, pool] {
        let expected = format_args!("expected shape {teachers} x {pool}, found {found:?}");
        return Err(ExperimentError::input(path, expected));
    }
    Ok(Votes::new(shape, votes_below(classes, values).map_err(|error| error.at(path))?)?)
}

/// Returns saved votes: labels below `classes`, or -1.
pub(crate) fn votes_below(classes: usize, values: Vec<i64>) -> Result<Vec<Vote>, ExperimentError> {
    let vote = |(position, found): (usize, i64)| {
        let label = u8::try_from(found).ok().filter(|label| usize::from(*label) < classes);
        let expected = || format!("entry {position}: class {found}, expected 0 to {}", classes - 1);
        if found == EMPTY { Ok(None) } else { label.map(Some).ok_or_else(|| ExperimentError::fault(expected())) }
    };
    values.into_iter().enumerate().map(vote).collect()
}

pub(crate) fn read_indices(path: &Path, count: usize, pool: usize) -> Result<Vec<usize>, ExperimentError> {
    let WholeNumbers { shape, values } = read(path)?;
    if values.len() != count {
        let expected = format_args!("shape {shape:?}, expected queries.count = {count} indices");
        return Err(ExperimentError::input(path, expected));
    }
    let mut seen = vec![false; pool];
    let mut indices = Vec::with_capacity(count);
    for (position, value) in values.into_iter().enumerate() {
        let index = index_below(pool, position, value).map_err(|error| error.at(path))?;
        if std::mem::replace(&mut seen[index], true) {
            let fault = format_args!("entry {position}: index {index} appears twice");
            return Err(ExperimentError::input(path, fault));
        }
        indices.push(index);
    }
    Ok(indices)
}

pub(crate) fn read_reals(path: &Path) -> Result<Vec<f32>, ExperimentError> {
    let numbers = RealNumbers::parse(&read_bytes(path)?).map_err(|fault| ExperimentError::input(path, fault))?;
    Ok(numbers.values)
}

pub(crate) fn read_true_labels(path: &Path, pool: usize) -> Result<Vec<u8>, ExperimentError> {
    let WholeNumbers { shape, values } = read(path)?;
    if values.len() < pool || shape.iter().filter(|&&length| length != 1).count() > 1 {
        let expected =
            format_args!("expected one row of labels, data.pool_images = {pool} or more, found shape {shape:?}");
        return Err(ExperimentError::input(path, expected));
    }
    let label = |(position, &found): (usize, &i64)| {
        let expected =
            |_| ExperimentError::input(path, format_args!("entry {position}: label {found}, expected 0 to 255"));
        u8::try_from(found).map_err(expected)
    };
    values.iter().take(pool).enumerate().map(label).collect()
}

/// Reads indices of rows; an index may occur more than once.
///
/// # Errors
/// If the file is not one row of indices below `rows`.
pub fn read_row_indices(path: &Path, rows: usize) -> Result<Vec<usize>, ExperimentError> {
    let WholeNumbers { shape, values } = read(path)?;
    // A table of votes would pass as a list of indices.
    if shape.iter().filter(|&&length| length != 1).count() > 1 {
        return Err(ExperimentError::input(path, format_args!("expected one row of indices, found shape {shape:?}")));
    }
    let index = |(position, value): (usize, i64)| index_below(rows, position, value).map_err(|error| error.at(path));
    values.into_iter().enumerate().map(index).collect()
}

fn index_below(limit: usize, position: usize, found: i64) -> Result<usize, ExperimentError> {
    let index = usize::try_from(found).ok().filter(|index| *index < limit);
    let expected = || format!("entry {position}: index {found}, expected 0 to {}", limit.saturating_sub(1));
    index.ok_or_else(|| ExperimentError::fault(expected()))
}

/// Writes votes as the bytes of an `.npy` file of labels, teachers x queries: unsigned bytes, or, if there are empty votes,
/// signed integers with -1 for them.
pub(crate) fn votes_to_bytes(votes: &Votes) -> Vec<u8> {
    let shape = [votes.shape().teachers() as u64, votes.shape().queries() as u64];
    if votes.empty() == 0 {
        return to_bytes(&shape, votes.all().iter().map(|vote| vote.unwrap_or_default()));
    }
    to_bytes(&shape, votes.all().iter().map(|vote| vote.map_or(EMPTY as i16, i16::from)))
}

pub(crate) fn indices_to_bytes(indices: &[usize]) -> Vec<u8> {
    to_bytes(&[indices.len() as u64], indices.iter().map(|&index| index as u64))
}

/// Writes a table of numbers with `columns` columns as the bytes of an `.npy` file.
///
/// # Panics
/// If the number of values is not a multiple of `columns`.
pub fn reals_to_bytes(values: &[f32], columns: usize) -> Vec<u8> {
    rows_to_bytes(values, columns)
}

/// Writes rows of numbers, like [`reals_to_bytes`].
pub(crate) fn rows_to_bytes<T: npyz::AutoSerialize + Copy>(values: &[T], columns: usize) -> Vec<u8> {
    let rows = values.len() / columns.max(1);
    assert_eq!(rows * columns, values.len(), "rows of {columns} values");
    to_bytes(&[rows as u64, columns as u64], values.iter().copied())
}

fn to_bytes<T: npyz::AutoSerialize>(shape: &[u64], values: impl Iterator<Item = T>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let write = |bytes: &mut Vec<u8>| -> std::io::Result<()> {
        let mut writer = npyz::WriteOptions::new().default_dtype().shape(shape).writer(&mut *bytes).begin_nd()?;
        writer.extend(values)?;
        writer.finish()?;
        bytes.flush()
    };
    write(&mut bytes).expect("writing to memory does not fail and the shape is the number of values");
    bytes
}

fn read(path: &Path) -> Result<WholeNumbers, ExperimentError> {
    parse_numbers(&read_bytes(path)?).map_err(|fault| ExperimentError::input(path, fault))
}

/// Reads a file of votes or indices, up to a size limit.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, ExperimentError> {
    speed_core::vote_files::read_bytes(path).map_err(|fault| ExperimentError::input(path, fault))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Source;

    fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().expect("temporary file");
        file.write_all(bytes).expect("write");
        file
    }

    fn config(teachers: usize, pool: usize, classes: usize) -> Config {
        let text = format!(
            "[data]\nsource = \"none\"\npool_images = {pool}\n[ensemble]\nteachers = {teachers}\n[queries]\ncount = 1\n[votes]\nsource = \
             \"file\"\nfile = \"votes\"\nclasses = {classes}\n[table]\nrepeats = 0\n[[row]]\nname = \"a\"\naggregation = \"non-private\"\n"
        );
        Config::load(&Source::new("test", text)).expect("a config")
    }

    fn parse(bytes: &[u8], (teachers, pool, classes): (usize, usize, usize)) -> Result<Votes, ExperimentError> {
        let config = config(teachers, pool, classes);
        Ok(parse_votes(bytes, &config, None)?.votes().expect("votes"))
    }

    #[test]
    fn saved_votes_come_back() {
        // A known shape keeps the last class, which no teacher votes for, and the single query.
        for (queries, own) in [(1, vec![Some(4_u8), Some(0)]), (2, vec![Some(0), None, Some(2), Some(2)])] {
            let shape = |teachers, queries, classes| VoteShape::new(teachers, queries, classes).expect("a shape");
            let votes = Votes::new(shape(2, queries, 7), own).expect("votes");
            let path = file(&votes_to_bytes(&votes));
            assert_eq!(read_labels(path.path(), votes.shape()).expect("labels"), votes);
            assert!(read_labels(path.path(), shape(2, queries, 2)).is_err());
            assert!(read_labels(path.path(), shape(1, 2 * queries, 7)).is_err());
        }
    }

    #[test]
    fn a_users_votes_fit_the_config() {
        let labels = [0u8, 1, 2, 3, 1, 0, 0, 0];
        let labels = to_bytes(&[2, 4], labels.into_iter());
        let votes = parse(&labels, (2, 4, 4)).expect("labels");
        assert_eq!(votes_to_bytes(&votes), labels);
        assert_eq!(parse(b"2,1,0\r\n0,0,3\r\n", (3, 2, 0)).expect("histograms").counts(1), [0, 0, 3]);
        let fails = |bytes: &[u8], sides: (usize, usize, usize), words: &str| {
            let message = parse(bytes, sides).expect_err("refused").to_string();
            assert!(message.contains(words), "{message}");
        };
        fails(&labels, (2, 4, 3), "teacher 0 votes for class 3 on query 3, expected 0 to 2");
        fails(&labels, (2, 4, 0), "key `votes.classes`");
        // A damaged histogram is not accepted as a label matrix.
        for table in [[1u8; 9], [1, 1, 0, 1, 1, 1, 1, 1, 1]] {
            fails(&to_bytes(&[3, 3], table.into_iter()), (3, 3, 3), "key `votes.form`");
        }
        fails(&labels, (2, 9, 4), "ensemble.teachers = 2 and data.pool_images = 9");
        for length in 0..labels.len() {
            assert!(parse(&labels[..length], (2, 4, 4)).is_err(), "cut to {length} bytes");
        }
    }

    #[test]
    fn indices_are_distinct_and_in_the_pool() {
        let path = file(&indices_to_bytes(&[4, 2, 0]));
        assert_eq!(read_indices(path.path(), 3, 5).expect("indices"), [4, 2, 0]);
        let message = |count, pool| read_indices(path.path(), count, pool).expect_err("refused").to_string();
        assert!(message(2, 5).contains("expected queries.count = 2"));
        assert!(message(3, 4).contains("entry 0: index 4, expected 0 to 3"));
        let twice = file(&indices_to_bytes(&[1, 1]));
        assert!(read_indices(twice.path(), 2, 5).expect_err("refused").to_string().contains("index 1 appears twice"));
    }
}
