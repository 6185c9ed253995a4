//! Votes and query indices as NumPy `.npy` files.

use std::io::Write as _;
use std::path::Path;

use npyz::WriterBuilder;
use speed_core::{VoteCounts, VoteShape, Votes, VotesError};
use speed_npy::WholeNumbers;

use crate::error::{ExperimentError, InputFault};

/// Reads votes: labels (teachers x pool) or histograms (pool or more rows x classes, every row summing to `teachers`).
/// Histograms become an assignment of one-hot votes with the same sums, which no aggregator can tell from the real one.
/// Only the first `pool` columns or rows are used.
///
/// # Errors
/// If the file is not a two-dimensional array of whole numbers that fits, with the row and the expected value.
pub(crate) fn read_votes(
    path: &Path,
    teachers: usize,
    pool: usize,
    classes: Option<usize>,
) -> Result<Votes, ExperimentError> {
    parse_votes(path, &read_bytes(path)?, teachers, pool, classes)
}

/// Does what [`read_votes`] does with the bytes of a file that was read; `path` stands for it in errors.
///
/// # Errors
/// Those of [`read_votes`].
pub(crate) fn parse_votes(
    path: &Path,
    bytes: &[u8],
    teachers: usize,
    pool: usize,
    classes: Option<usize>,
) -> Result<Votes, ExperimentError> {
    let array = parse(path, bytes)?;
    let votes = match *array.shape.as_slice() {
        [rows, columns] if rows == teachers && columns >= pool && columns > 1 => {
            votes_of_labels(&array, VotesSize { teachers, pool, classes }, columns)
        }
        [_, columns] => votes_of_histograms(&array, VotesSize { teachers, pool, classes }, columns),
        _ => Err(InputFault::Dimensions { expected: "", shape: array.shape }),
    };
    votes.map_err(|fault| at(path, fault))
}

/// Reads labels that [`votes_to_bytes`] wrote, of a known shape.
///
/// # Errors
/// If the file holds no votes of this shape.
pub(crate) fn read_labels(path: &Path, shape: VoteShape) -> Result<Votes, ExperimentError> {
    let array = read(path)?;
    let (teachers, pool) = (shape.teachers(), shape.queries());
    match *array.shape.as_slice() {
        [rows, columns] if (rows, columns) == (teachers, pool) => {
            let size = VotesSize { teachers, pool, classes: Some(shape.classes()) };
            votes_of_labels(&array, size, columns).map_err(|fault| at(path, fault))
        }
        [rows, columns] => Err(at(path, InputFault::Size { rows, columns, teachers, pool })),
        _ => Err(at(path, InputFault::Dimensions { expected: "", shape: array.shape })),
    }
}

/// The size that votes are expected to have; unknown classes are those of the file.
#[derive(Clone, Copy)]
struct VotesSize {
    teachers: usize,
    pool: usize,
    classes: Option<usize>,
}

fn votes_of_labels(array: &WholeNumbers, size: VotesSize, columns: usize) -> Result<Votes, InputFault> {
    let VotesSize { teachers, pool, classes } = size;
    let classes = classes.unwrap_or_else(|| classes_of(&array.values));
    let mut labels = Vec::with_capacity(teachers * pool);
    for (teacher, row) in array.values.chunks_exact(columns).enumerate() {
        for (image, &found) in row.iter().take(pool).enumerate() {
            let label = u8::try_from(found).ok().filter(|label| usize::from(*label) < classes);
            labels.push(label.ok_or(InputFault::Class { teacher, image, found, max: classes - 1 })?);
        }
    }
    let shape = VoteShape::new(teachers, pool, classes).map_err(VotesError::from)?;
    Ok(Votes::new(shape, labels)?)
}

/// Returns the number of classes that labels tell of by themselves.
pub(crate) fn classes_of<T: Copy + Ord + TryInto<usize>>(labels: &[T]) -> usize {
    let greatest = labels.iter().max().and_then(|&max| max.try_into().ok());
    greatest.map_or(2, |max| (max + 1).max(2))
}

fn votes_of_histograms(array: &WholeNumbers, size: VotesSize, columns: usize) -> Result<Votes, InputFault> {
    let VotesSize { teachers, pool, classes } = size;
    let rows = array.shape[0];
    if rows < pool {
        return Err(InputFault::Size { rows, columns, teachers, pool });
    }
    if let Some(expected) = classes.filter(|classes| *classes != columns) {
        return Err(InputFault::Classes { found: columns, expected });
    }
    let mut counts = Vec::with_capacity(pool * columns);
    for (row, histogram) in array.values.chunks_exact(columns).take(pool).enumerate() {
        let votes = counts_of(row, histogram)?;
        let found: u64 = votes.iter().map(|&count| u64::from(count)).sum();
        if found != teachers as u64 {
            return Err(InputFault::Sum { row, found, teachers });
        }
        counts.extend(votes);
    }
    let shape = VoteShape::new(teachers, pool, columns).map_err(VotesError::from)?;
    Ok(Votes::from_counts(&VoteCounts::new(shape, counts)?))
}

fn counts_of(row: usize, histogram: &[i64]) -> Result<Vec<u32>, InputFault> {
    let counts: Option<Vec<u32>> = histogram.iter().map(|&count| u32::try_from(count).ok()).collect();
    counts.ok_or(InputFault::Count { row })
}

/// Returns the number of queries of a file of votes, labels of `teachers` or histograms; none if it is no such file.
pub(crate) fn queries_in(bytes: &[u8], teachers: usize) -> Option<usize> {
    match WholeNumbers::parse(bytes).ok()?.shape.as_slice() {
        &[rows, columns] => Some(if rows == teachers && columns > 1 { columns } else { rows }),
        _ => None,
    }
}

/// Reads `count` distinct pool indices.
///
/// # Errors
/// If the file is not one row of `count` distinct indices below `pool`.
pub(crate) fn read_indices(path: &Path, count: usize, pool: usize) -> Result<Vec<usize>, ExperimentError> {
    let WholeNumbers { shape, values } = read(path)?;
    if values.len() != count {
        return Err(at(path, InputFault::IndexCount { shape, expected: count }));
    }
    let mut seen = vec![false; pool];
    let mut indices = Vec::with_capacity(count);
    for (position, value) in values.into_iter().enumerate() {
        let index = index_below(pool, position, value).map_err(|fault| at(path, fault))?;
        if std::mem::replace(&mut seen[index], true) {
            return Err(at(path, InputFault::IndexTwice { position, index }));
        }
        indices.push(index);
    }
    Ok(indices)
}

/// Reads the true labels of the first `pool` images.
///
/// # Errors
/// If the file is not one row of as many labels or more, each 0 to 255.
pub(crate) fn read_true_labels(path: &Path, pool: usize) -> Result<Vec<u8>, ExperimentError> {
    let WholeNumbers { shape, values } = read(path)?;
    if values.len() < pool || shape.iter().filter(|&&length| length != 1).count() > 1 {
        return Err(at(path, InputFault::TrueLabels { shape, pool }));
    }
    let label = |(position, &found): (usize, &i64)| {
        u8::try_from(found).map_err(|_| at(path, InputFault::NoLabel { position, found }))
    };
    values.iter().take(pool).enumerate().map(label).collect()
}

/// Reads vote histograms: a row for each query, a column for each class.
///
/// # Errors
/// If the file is not a two-dimensional array of counts, with the row and the expected value.
pub fn read_histograms(path: &Path) -> Result<Vec<Vec<u32>>, ExperimentError> {
    let WholeNumbers { shape, values } = read(path)?;
    let &[rows, columns] = shape.as_slice() else {
        return Err(at(path, InputFault::Dimensions { expected: " (queries x classes)", shape }));
    };
    if columns < 2 || rows == 0 {
        return Err(at(path, InputFault::Empty { rows, columns }));
    }
    let histograms = values.chunks_exact(columns).enumerate();
    histograms.map(|(row, counts)| counts_of(row, counts).map_err(|fault| at(path, fault))).collect()
}

/// Reads indices of rows; a row may be asked for more than once.
///
/// # Errors
/// If the file is not one row of indices below `rows`.
pub fn read_row_indices(path: &Path, rows: usize) -> Result<Vec<usize>, ExperimentError> {
    let WholeNumbers { shape, values } = read(path)?;
    // Votes in place of indices would be as many indices as there are votes.
    if shape.iter().filter(|&&length| length != 1).count() > 1 {
        return Err(at(path, InputFault::IndexRows { shape }));
    }
    let index = |(position, value): (usize, i64)| index_below(rows, position, value).map_err(|fault| at(path, fault));
    values.into_iter().enumerate().map(index).collect()
}

fn index_below(limit: usize, position: usize, found: i64) -> Result<usize, InputFault> {
    let index = usize::try_from(found).ok().filter(|index| *index < limit);
    index.ok_or(InputFault::Index { position, found, max: limit.saturating_sub(1) })
}

fn at(path: &Path, fault: InputFault) -> ExperimentError {
    ExperimentError::Input { path: path.to_path_buf(), fault }
}

/// Writes votes as the bytes of an `.npy` file of labels, teachers x queries, unsigned bytes.
pub(crate) fn votes_to_bytes(votes: &Votes) -> Vec<u8> {
    to_bytes(&[votes.shape().teachers() as u64, votes.shape().queries() as u64], votes.labels().iter().copied())
}

/// Writes indices as the bytes of an `.npy` file.
pub(crate) fn indices_to_bytes(indices: &[usize]) -> Vec<u8> {
    to_bytes(&[indices.len() as u64], indices.iter().map(|&index| index as u64))
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
    parse(path, &read_bytes(path)?)
}

/// Reads a file of votes or indices.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, ExperimentError> {
    std::fs::read(path).map_err(|error| at(path, InputFault::Unreadable(error)))
}

fn parse(path: &Path, bytes: &[u8]) -> Result<WholeNumbers, ExperimentError> {
    WholeNumbers::parse(bytes).map_err(|error| at(path, InputFault::Npy(error.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().expect("temporary file");
        file.write_all(bytes).expect("write");
        file
    }

    fn histograms(rows: &[[f64; 3]]) -> tempfile::NamedTempFile {
        file(&to_bytes(&[rows.len() as u64, 3], rows.iter().flatten().copied()))
    }

    #[test]
    fn labels_and_histograms_come_back() {
        let labels = vec![0u8, 1, 2, 2, 1, 0, 0, 0];
        let path = file(&to_bytes(&[2, 4], labels.iter().copied()));
        let votes = read_votes(path.path(), 2, 4, Some(3)).expect("labels");
        assert_eq!([votes.teacher(0), votes.teacher(1)].concat(), labels);
        assert_eq!(votes_to_bytes(&votes), std::fs::read(path.path()).expect("bytes"));

        // With their shape they come back although nobody votes for the last class, and there is one query.
        let shape = VoteShape::new(2, 1, 7).expect("a shape");
        let votes = Votes::new(shape, vec![4, 0]).expect("votes");
        let path = file(&votes_to_bytes(&votes));
        assert_eq!(read_labels(path.path(), shape).expect("labels"), votes);
        assert!(read_labels(path.path(), VoteShape::new(2, 1, 4).expect("a shape")).is_err());
        assert!(read_labels(path.path(), VoteShape::new(1, 2, 7).expect("a shape")).is_err());

        let path = histograms(&[[2.0, 1.0, 0.0], [0.0, 0.0, 3.0]]);
        let votes = read_votes(path.path(), 3, 2, None).expect("histograms");
        assert_eq!(votes.counts(0), [2, 1, 0]);
        assert_eq!(votes.counts(1), [0, 0, 3]);
    }

    #[test]
    fn every_fault_is_named() {
        let message = |result: Result<Votes, ExperimentError>| result.expect_err("must be refused").to_string();
        let bad = file(&to_bytes(&[2, 4], [0u8, 1, 2, 3, 1, 0, 0, 0].into_iter()));
        assert!(
            message(read_votes(bad.path(), 2, 4, Some(3))).contains("teacher 0, image 3: class 3, expected 0 to 2")
        );
        let bad = histograms(&[[2.0, 1.0, 0.0], [0.0, 1.0, 3.0]]);
        assert!(
            message(read_votes(bad.path(), 3, 2, None)).contains("row 1 sums to 4, expected ensemble.teachers = 3")
        );
        let bad = histograms(&[[2.5, 0.5, 0.0]]);
        assert!(message(read_votes(bad.path(), 3, 1, None)).contains("expected whole numbers, found 2.5"));
        let bad = histograms(&[[4.0, -1.0, 0.0]]);
        assert!(message(read_votes(bad.path(), 3, 1, None)).contains("row 0: a count is negative"));
        assert!(message(read_votes(bad.path(), 3, 9, None)).contains("shape 1 x 3 is neither"));
        let whole = to_bytes(&[2, 4], [0u8; 8].into_iter());
        for length in 0..whole.len() {
            let cut = file(&whole[..length]);
            assert!(read_votes(cut.path(), 2, 4, Some(3)).is_err(), "cut to {length} bytes");
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
