//! A teacher's votes: one label per query, as `.npy` or `.csv`.
//!
//! Text is read here and not by the crate `csv`: one or two whole numbers a line and nothing else, and a fault is named with its line, which
//! `csv` counts wrongly where lines end in CR LF.

use speed_npy::{NpyError, WholeNumbers};

/// Bytes that are no votes for a round.
#[derive(Debug, thiserror::Error)]
pub enum LabelsError {
    /// A damaged array, or one of something else.
    #[error(transparent)]
    Array(#[from] NpyError),
    /// An array with more than one axis that is longer than 1.
    #[error("shape {found:?}, expected one label per query")]
    Shape {
        /// Lengths of the axes.
        found: Vec<usize>,
    },
    /// Bytes that are no text either.
    #[error("neither an .npy array nor text")]
    NotText,
    /// A line that is not the next query's.
    #[error("line {line}: expected the label of query {query}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// The next query.
        query: usize,
    },
    /// Another number of labels than queries.
    #[error("{found} labels, the round has {expected} queries")]
    Count {
        /// Queries of the round.
        expected: usize,
        /// Labels found.
        found: usize,
    },
    /// A label that is no class.
    #[error("query {query}: label {found}, expected 0 to {}", classes - 1)]
    Label {
        /// The query.
        query: usize,
        /// The label.
        found: i64,
        /// Number of classes.
        classes: usize,
    },
}

/// Reads exactly `queries` labels below `classes`.
///
/// Bytes that begin like an `.npy` file must be an array of whole numbers with one axis, or with one axis longer than 1;
/// all others text: a label per line, or `query,label` with the queries 0, 1, 2, ... in order, with or without a header.
///
/// # Errors
/// With the query, the expected and the found. Labels that are valid are never named.
pub fn parse_labels(bytes: &[u8], queries: usize, classes: usize) -> Result<Vec<u8>, LabelsError> {
    let labels = if bytes.starts_with(b"\x93NUMPY") { npy(bytes)? } else { text(bytes)? };
    if labels.len() != queries {
        return Err(LabelsError::Count { expected: queries, found: labels.len() });
    }
    let label = |(query, found): (usize, i64)| {
        let label = u8::try_from(found).ok().filter(|label| usize::from(*label) < classes);
        label.ok_or(LabelsError::Label { query, found, classes })
    };
    labels.into_iter().enumerate().map(label).collect()
}

fn npy(bytes: &[u8]) -> Result<Vec<i64>, LabelsError> {
    let WholeNumbers { shape, values } = WholeNumbers::parse(bytes)?;
    if shape.iter().filter(|&&length| length != 1).count() > 1 {
        return Err(LabelsError::Shape { found: shape });
    }
    Ok(values)
}

fn text(bytes: &[u8]) -> Result<Vec<i64>, LabelsError> {
    let text = std::str::from_utf8(bytes).map_err(|_| LabelsError::NotText)?;
    let mut lines = text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty()).peekable();
    if lines.peek().is_some_and(|(_, line)| ["label", "query,label"].contains(line)) {
        lines.next();
    }
    let mut labels = Vec::new();
    for (position, line) in lines {
        let number = |field: &str| field.trim().parse::<i64>().ok();
        let label = match line.split_once(',') {
            None => number(line),
            Some((query, label)) => {
                let expected = i64::try_from(labels.len()).ok();
                number(query).filter(|query| Some(*query) == expected).and_then(|_| number(label))
            }
        };
        let query = labels.len();
        labels.push(label.ok_or(LabelsError::Line { line: position + 1, query })?);
    }
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_come_as_text_with_or_without_queries_and_header() {
        for text in ["0\n2\n1\n", "label\n0\n2\n1", "query,label\n0,0\n1,2\n2,1\n", "0,0\r\n1,2\r\n2, 1\r\n\r\n"] {
            assert_eq!(parse_labels(text.as_bytes(), 3, 3).expect("labels"), [0, 2, 1], "{text:?}");
        }
    }

    #[test]
    fn labels_come_as_arrays() {
        let array = |shape: &[u64]| {
            let mut bytes = Vec::new();
            let mut writer = {
                use npyz::WriterBuilder;
                npyz::WriteOptions::new().default_dtype().shape(shape).writer(&mut bytes).begin_nd().expect("memory")
            };
            writer.extend([0_i32, 2, 1]).expect("memory");
            writer.finish().expect("memory");
            bytes
        };
        for shape in [&[3][..], &[1, 3], &[3, 1]] {
            let bytes = array(shape);
            assert_eq!(parse_labels(&bytes, 3, 3).expect("labels"), [0, 2, 1], "{shape:?}");
            for length in 0..bytes.len() {
                assert!(parse_labels(&bytes[..length], 3, 3).is_err(), "{shape:?} cut to {length}");
            }
        }
    }

    #[test]
    fn every_fault_is_named() {
        let fails = |text: &str| parse_labels(text.as_bytes(), 3, 3).expect_err("refused").to_string();
        assert_eq!(fails("0\n1\n"), "2 labels, the round has 3 queries");
        assert_eq!(fails("0\n1\n3\n"), "query 2: label 3, expected 0 to 2");
        assert_eq!(fails("0\n-1\n3\n"), "query 1: label -1, expected 0 to 2");
        assert_eq!(fails("0\n1\nx\n"), "line 3: expected the label of query 2");
        assert_eq!(fails("0,1\n2,1\n1,1\n"), "line 2: expected the label of query 1");
        assert!(parse_labels(&[0xff, 0xfe], 3, 3).expect_err("refused").to_string().contains("neither"));
        assert!(parse_labels(b"\x93NUMPY rubbish", 3, 3).expect_err("refused").to_string().contains(".npy"));
    }
}
