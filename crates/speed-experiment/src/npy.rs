//! Votes, query indices and true labels in `.npy` files; files from users may also be CSV.

use std::io::Write as _;
use std::path::Path;

use npyz::WriterBuilder;
use speed_core::npy::{RealNumbers, WholeNumbers};
use speed_core::vote_files::{EMPTY, FormError, Known, Table, VoteFile, parse_numbers};
use speed_core::{Vote, VoteShape, Votes, printable_path};

use crate::config::{Config, VotesInFile};
use crate::error::ExperimentError;

/// Reads votes from the bytes of a file. Histograms become one-hot votes with the same sums, which an aggregator cannot
/// distinguish from the original votes. Only the first `data.pool_images` columns or rows are used.
///
/// # Errors
/// If the form of the file is not given and cannot be inferred from the config, or if the file does not fit the config.
pub(crate) fn parse_votes(
    file: &VotesInFile,
    bytes: &[u8],
    config: &Config,
    of_images: Option<usize>,
) -> Result<VoteFile, ExperimentError> {
    let path = &file.path;
    let (teachers, pool) = (config.ensemble.teachers, config.data.pool_images);
    let table = Table::parse(bytes).map_err(|fault| ExperimentError::input(path, fault))?;
    let known = Known { teachers: Some(teachers), queries: Some(pool), classes: of_images.or(file.classes) };
    let key = |key: &str, message: String| ExperimentError::key(printable_path(path), key, message);
    let votes = VoteFile::new(table, file.form, &known).map_err(|fault| match fault {
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

/// Returns the smallest number of classes for these votes, at least 2.
pub(crate) fn classes_of(votes: &Votes) -> usize {
    votes.all().iter().flatten().max().map_or(2, |&max| (usize::from(max) + 1).max(2))
}

/// Reads `count` distinct pool indices.
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

/// Reads a table of numbers that [`reals_to_bytes`] wrote.
pub(crate) fn read_reals(path: &Path) -> Result<Vec<f32>, ExperimentError> {
    let numbers = RealNumbers::parse(&read_bytes(path)?).map_err(|fault| ExperimentError::input(path, fault))?;
    Ok(numbers.values)
}

/// Reads the true labels of the first `pool` images.
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

/// Writes indices as the bytes of an `.npy` file.
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

/// Reads integers from an array or CSV.
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
    use crate::config::{Source, VotesSource};

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
        let VotesSource::File(file) = &config.votes else { panic!("a file") };
        Ok(parse_votes(file, bytes, &config, None)?.votes().expect("votes"))
    }

    #[test]
    fn labels_and_histograms_come_back() {
        let labels = vec![0u8, 1, 2, 2, 1, 0, 0, 0];
        let bytes = to_bytes(&[2, 4], labels.iter().copied());
        let votes = parse(&bytes, (2, 4, 3)).expect("labels");
        assert!([votes.teacher(0), votes.teacher(1)].concat().iter().flatten().eq(&labels));
        assert_eq!(votes_to_bytes(&votes), bytes);
        assert_eq!(parse(b"0,1,2,2\r\n1,0,0,0\r\n", (2, 4, 3)).expect("labels"), votes);

        // Reading with a known shape keeps the last class, which no teacher votes for, and the single query.
        let shape = VoteShape::new(2, 1, 7).expect("a shape");
        let votes = Votes::new(shape, vec![4_u8, 0]).expect("votes");
        let path = file(&votes_to_bytes(&votes));
        assert_eq!(read_labels(path.path(), shape).expect("labels"), votes);
        assert!(read_labels(path.path(), VoteShape::new(2, 1, 4).expect("a shape")).is_err());
        assert!(read_labels(path.path(), VoteShape::new(1, 2, 7).expect("a shape")).is_err());

        // Empty votes, in every form.
        let bytes = to_bytes(&[2, 4], [0_i16, -1, 2, 2, 1, 0, -1, 0].into_iter());
        let votes = parse(&bytes, (2, 4, 3)).expect("labels");
        assert_eq!((votes_to_bytes(&votes), votes.empty()), (bytes, 2));
        assert_eq!(parse(b"0,,2,2\r\n1,0,NA,0\r\n", (2, 4, 3)).expect("labels"), votes);
        assert_eq!(read_labels(file(&votes_to_bytes(&votes)).path(), votes.shape()).expect("labels"), votes);
        let counts = [0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0];
        let votes = parse(&to_bytes(&[3, 3], counts.into_iter()), (2, 3, 3)).expect("histograms");
        assert_eq!((votes.counts(0), votes.counts(1), votes.counts(2)), (vec![0, 1, 1], vec![0, 1, 0], vec![0; 3]));

        let votes =
            parse(&to_bytes(&[2, 3], [2.0, 1.0, 0.0, 0.0, 0.0, 3.0].into_iter()), (3, 2, 0)).expect("histograms");
        assert_eq!(votes.counts(0), [2, 1, 0]);
        assert_eq!(votes.counts(1), [0, 0, 3]);
    }

    #[test]
    fn every_fault_is_named() {
        let fails = |bytes: &[u8], sides: (usize, usize, usize), words: &str| {
            let message = parse(bytes, sides).expect_err("refused").to_string();
            assert!(message.contains(words), "{message}");
        };
        let labels = to_bytes(&[2, 4], [0u8, 1, 2, 3, 1, 0, 0, 0].into_iter());
        fails(&labels, (2, 4, 3), "teacher 0 votes for class 3 on query 3, expected 0 to 2");
        fails(&labels, (2, 4, 0), "key `votes.classes`");
        fails(&to_bytes(&[3, 3], [1u8; 9].into_iter()), (3, 3, 3), "key `votes.form`");
        // A damaged histogram is not accepted as a label matrix.
        fails(&to_bytes(&[3, 3], [1u8, 1, 0, 1, 1, 1, 1, 1, 1].into_iter()), (3, 3, 3), "key `votes.form`");
        let histograms = |values: [f64; 6]| to_bytes(&[2, 3], values.into_iter());
        fails(
            &histograms([2.0, 1.0, 0.0, 0.0, 1.0, 3.0]),
            (3, 2, 0),
            "row 1 sums to 4, expected at most the number of teachers, 3",
        );
        fails(&histograms([2.5, 0.5, 0.0, 3.0, 0.0, 0.0]), (3, 2, 0), "expected integers, found 2.5");
        fails(
            &histograms([4.0, -1.0, 0.0, 3.0, 0.0, 0.0]),
            (3, 2, 0),
            "row 0, column 1: expected a count of votes, found -1",
        );
        fails(&to_bytes(&[2, 4], [-1_i8; 8].into_iter()), (2, 4, 3), "all votes are empty");
        fails(&histograms([3.0; 6]), (3, 9, 0), "ensemble.teachers = 3 and data.pool_images = 9");
        for length in 0..labels.len() {
            assert!(parse(&labels[..length], (2, 4, 3)).is_err(), "cut to {length} bytes");
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
