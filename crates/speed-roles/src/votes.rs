//! A teacher's votes: one label a query, as `.npy` or `.csv`.

use npyz::{NpyFile, Order};

/// Reads exactly `queries` labels below `classes`.
///
/// Bytes that begin like an `.npy` file must be an array of whole numbers with one axis, or with one axis longer than 1;
/// all others text: a label a line, or `query,label` with the queries 0, 1, 2, ... in order, with or without a header.
///
/// # Errors
/// With the query, what was expected and what was found. Labels that are valid are never named.
pub fn parse_labels(bytes: &[u8], queries: usize, classes: usize) -> Result<Vec<u8>, String> {
    let labels = if bytes.starts_with(b"\x93NUMPY") { npy(bytes)? } else { text(bytes)? };
    if labels.len() != queries {
        return Err(format!("{} labels, the round has {queries} queries", labels.len()));
    }
    let label = |(query, label): (usize, i64)| {
        u8::try_from(label)
            .ok()
            .filter(|label| usize::from(*label) < classes)
            .ok_or_else(|| format!("query {query}: label {label}, expected 0 to {}", classes - 1))
    };
    labels.into_iter().enumerate().map(label).collect()
}

/// The header, whose length is two bytes in version 1 and four from version 2 on; none if it is longer than the file.
fn header(bytes: &[u8]) -> Option<&[u8]> {
    let (length, start) = match bytes.get(6)? {
        1 => (bytes.get(8..10)?, 10),
        _ => (bytes.get(8..12)?, 12),
    };
    let length = length.iter().rev().fold(0, |length, &byte| length << 8 | usize::from(byte));
    bytes.get(start..)?.get(..length)
}

/// Checks the header before `npyz` parses it: it allocates the header's length before it reads, and takes time exponential
/// in the depth of nested brackets. An array of numbers has one dictionary, with one tuple in it.
fn check_header(bytes: &[u8]) -> Result<(), String> {
    let header = header(bytes).ok_or("not an .npy array: the header is longer than the file")?;
    let count = |bracket| header.iter().filter(|&&byte| byte == bracket).count();
    if count(b'{') > 1 || count(b'(') > 1 || count(b'[') > 0 {
        return Err("expected whole numbers, found a structured array".into());
    }
    Ok(())
}

fn npy(bytes: &[u8]) -> Result<Vec<i64>, String> {
    check_header(bytes)?;
    let file = NpyFile::new(bytes).map_err(|error| format!("not an .npy array: {error}"))?;
    let shape = file.shape().to_vec();
    if shape.iter().filter(|&&length| length != 1).count() > 1 || (shape.len() > 1 && file.order() != Order::C) {
        return Err(format!("shape {shape:?}, expected one label a query"));
    }
    // Every entry takes at least a byte: a header that promises more than the file holds is refused before anything of
    // that size is allocated.
    let entries = shape.iter().try_fold(1_u64, |entries, &length| entries.checked_mul(length));
    if entries.is_none_or(|entries| entries > bytes.len() as u64) {
        return Err(format!("truncated: the header promises shape {shape:?}, the file has {} bytes", bytes.len()));
    }
    macro_rules! integers {
        ($file:ident, $($kind:ty),+) => {$(
            let $file = match $file.try_data::<$kind>() {
                Ok(data) => {
                    return data
                        .map(|value| {
                            let value = value.map_err(|error| format!("truncated: {error}"))?;
                            i64::try_from(value).map_err(|_| format!("{value} is too large"))
                        })
                        .collect();
                }
                Err(file) => file,
            };
        )+};
    }
    integers!(file, u8, i8, u16, i16, u32, i32, u64, i64);
    Err(format!("expected whole numbers, found dtype {}", file.dtype().descr()))
}

fn text(bytes: &[u8]) -> Result<Vec<i64>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "neither an .npy array nor text".to_owned())?;
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
        labels.push(label.ok_or_else(|| format!("line {}: expected the label of query {query}", position + 1))?);
    }
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_come_as_text_with_or_without_queries_and_header() {
        for text in ["0\n2\n1\n", "label\n0\n2\n1", "query,label\n0,0\n1,2\n2,1\n", "0,0\r\n1,2\r\n2, 1\r\n\r\n"] {
            assert_eq!(parse_labels(text.as_bytes(), 3, 3), Ok(vec![0, 2, 1]), "{text:?}");
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
            assert_eq!(parse_labels(&bytes, 3, 3), Ok(vec![0, 2, 1]), "{shape:?}");
            for length in 0..bytes.len() {
                assert!(parse_labels(&bytes[..length], 3, 3).is_err(), "{shape:?} cut to {length}");
            }
        }
    }

    #[test]
    fn headers_that_would_take_memory_or_time_are_refused() {
        // Both found by fuzzing.
        assert!(parse_labels(b"\x93NUMPY\x02\x00\xff\xff\xff\x7f{'descr'", 3, 3).is_err());
        let header = format!("{{'descr': '<i4', 'fortran_order': False, 'shape': (3, ), {}", "{".repeat(60));
        let bytes = [b"\x93NUMPY\x01\x00", [header.len() as u8, 0].as_slice(), header.as_bytes()].concat();
        assert!(parse_labels(&bytes, 3, 3).expect_err("refused").contains("structured"));
    }

    #[test]
    fn every_fault_is_named() {
        let fails = |text: &str| parse_labels(text.as_bytes(), 3, 3).expect_err("refused");
        assert_eq!(fails("0\n1\n"), "2 labels, the round has 3 queries");
        assert_eq!(fails("0\n1\n3\n"), "query 2: label 3, expected 0 to 2");
        assert_eq!(fails("0\n-1\n3\n"), "query 1: label -1, expected 0 to 2");
        assert_eq!(fails("0\n1\nx\n"), "line 3: expected the label of query 2");
        assert_eq!(fails("0,1\n2,1\n1,1\n"), "line 2: expected the label of query 1");
        assert!(parse_labels(&[0xff, 0xfe], 3, 3).expect_err("refused").contains("neither"));
        assert!(parse_labels(b"\x93NUMPY rubbish", 3, 3).expect_err("refused").contains(".npy"));
    }
}
