//! Votes and query indices as NumPy `.npy` files.

use std::io::Write as _;
use std::path::Path;

use npyz::WriterBuilder;
use speed_core::{VoteCounts, VoteShape, Votes};
use speed_npy::WholeNumbers;

use crate::ExperimentError;

/// Reads votes: labels (teachers x pool) or histograms (pool or more rows x classes, every row summing to `teachers`).
/// Histograms become an assignment of one-hot votes with the same sums, which no aggregator can tell from the real one.
/// Only the first `pool` columns or rows are used.
///
/// # Errors
/// If the file is not a two-dimensional array of whole numbers that fits, with the row and what was expected.
pub fn read_votes(path: &Path, teachers: usize, pool: usize, classes: Option<usize>) -> Result<Votes, ExperimentError> {
    let fail = |message: String| ExperimentError::Input { path: path.to_path_buf(), message };
    let WholeNumbers { shape, values } = read(path)?;
    let &[rows, columns] = shape.as_slice() else {
        return Err(fail(format!("expected two dimensions, found shape {shape:?}")));
    };
    if rows == teachers && columns >= pool && columns > 1 {
        let classes = classes
            .or_else(|| values.iter().max().and_then(|max| usize::try_from(*max).ok()).map(|max| max + 1))
            .unwrap_or(2)
            .max(2);
        let mut labels = Vec::with_capacity(teachers * pool);
        for (teacher, row) in values.chunks_exact(columns).enumerate() {
            for (query, &label) in row.iter().take(pool).enumerate() {
                let label =
                    u8::try_from(label).ok().filter(|label| usize::from(*label) < classes).ok_or_else(|| {
                        fail(format!("teacher {teacher}, image {query}: class {label}, expected 0 to {}", classes - 1))
                    })?;
                labels.push(label);
            }
        }
        let shape = VoteShape::new(teachers, pool, classes).map_err(|error| fail(error.to_string()))?;
        return Votes::new(shape, labels).map_err(|error| fail(error.to_string()));
    }
    if rows < pool {
        return Err(fail(format!(
            "shape {rows} x {columns} is neither labels of {teachers} teachers for {pool} pool images nor {pool} \
             histograms: set ensemble.teachers and data.pool_images to what the file holds"
        )));
    }
    if let Some(classes) = classes.filter(|classes| *classes != columns) {
        return Err(fail(format!("histograms of {columns} classes, the data has {classes}")));
    }
    let mut counts = Vec::with_capacity(pool * columns);
    for (row, histogram) in values.chunks_exact(columns).take(pool).enumerate() {
        let votes: Option<Vec<u32>> = histogram.iter().map(|&count| u32::try_from(count).ok()).collect();
        let votes = votes.ok_or_else(|| fail(format!("row {row}: a count is negative or too large")))?;
        let sum: u64 = votes.iter().map(|&count| u64::from(count)).sum();
        if sum != teachers as u64 {
            return Err(fail(format!("row {row} sums to {sum}, expected ensemble.teachers = {teachers}")));
        }
        counts.extend(votes);
    }
    let shape = VoteShape::new(teachers, pool, columns).map_err(|error| fail(error.to_string()))?;
    let counts = VoteCounts::new(shape, counts).map_err(|error| fail(error.to_string()))?;
    Ok(Votes::from_counts(&counts))
}

/// How many queries a file of votes has, labels of `teachers` or histograms; none if it is no such file.
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
pub fn read_indices(path: &Path, count: usize, pool: usize) -> Result<Vec<usize>, ExperimentError> {
    let fail = |message: String| ExperimentError::Input { path: path.to_path_buf(), message };
    let WholeNumbers { shape, values } = read(path)?;
    if values.len() != count {
        return Err(fail(format!("shape {shape:?}, expected queries.count = {count} indices")));
    }
    let mut seen = vec![false; pool];
    let mut indices = Vec::with_capacity(count);
    for (position, value) in values.into_iter().enumerate() {
        let index = usize::try_from(value)
            .ok()
            .filter(|index| *index < pool)
            .ok_or_else(|| fail(format!("entry {position}: index {value}, expected 0 to {}", pool - 1)))?;
        if std::mem::replace(&mut seen[index], true) {
            return Err(fail(format!("entry {position}: index {index} appears twice")));
        }
        indices.push(index);
    }
    Ok(indices)
}

/// Reads vote histograms: a row for each query, a column for each class.
///
/// # Errors
/// If the file is not a two-dimensional array of counts, with the row and what was expected.
pub fn read_histograms(path: &Path) -> Result<Vec<Vec<u32>>, ExperimentError> {
    let fail = |message: String| ExperimentError::Input { path: path.to_path_buf(), message };
    let WholeNumbers { shape, values } = read(path)?;
    let &[rows, columns] = shape.as_slice() else {
        return Err(fail(format!("expected two dimensions (queries x classes), found shape {shape:?}")));
    };
    if columns < 2 || rows == 0 {
        return Err(fail(format!("expected at least one row of at least two classes, found shape {rows} x {columns}")));
    }
    let histogram = |(row, counts): (usize, &[i64])| {
        let counts: Option<Vec<u32>> = counts.iter().map(|&count| u32::try_from(count).ok()).collect();
        counts.ok_or_else(|| fail(format!("row {row}: a count is negative or too large")))
    };
    values.chunks_exact(columns).enumerate().map(histogram).collect()
}

/// Reads indices of rows; a row may be asked for more than once.
///
/// # Errors
/// If the file is not one row of indices below `rows`.
pub fn read_row_indices(path: &Path, rows: usize) -> Result<Vec<usize>, ExperimentError> {
    let WholeNumbers { shape, values } = read(path)?;
    // Votes in place of indices would be as many indices as there are votes.
    if shape.iter().filter(|&&length| length != 1).count() > 1 {
        let message = format!("expected one row of indices, found shape {shape:?}");
        return Err(ExperimentError::Input { path: path.to_path_buf(), message });
    }
    let index = |(position, value): (usize, i64)| {
        usize::try_from(value).ok().filter(|index| *index < rows).ok_or_else(|| ExperimentError::Input {
            path: path.to_path_buf(),
            message: format!("entry {position}: index {value}, expected 0 to {}", rows - 1),
        })
    };
    values.into_iter().enumerate().map(index).collect()
}

/// The bytes of an `.npy` file with votes as labels, teachers x queries, unsigned bytes.
///
/// # Panics
/// Never: writing to memory does not fail.
#[must_use]
pub fn votes_to_bytes(votes: &Votes) -> Vec<u8> {
    to_bytes(&[votes.shape().teachers() as u64, votes.shape().queries() as u64], votes.labels().iter().copied())
}

/// The bytes of an `.npy` file with indices.
///
/// # Panics
/// Never: writing to memory does not fail.
#[must_use]
pub fn indices_to_bytes(indices: &[usize]) -> Vec<u8> {
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
    let bytes = std::fs::read(path).map_err(|error| ExperimentError::Input {
        path: path.to_path_buf(),
        message: format!("cannot read: {error}"),
    })?;
    WholeNumbers::parse(&bytes)
        .map_err(|error| ExperimentError::Input { path: path.to_path_buf(), message: error.to_string() })
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
