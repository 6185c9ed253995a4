//! Lines of a name and a value, below a line of column names: labels of queries, groups of pictures.

use std::collections::HashMap;

use crate::{decode_text, printable};

use crate::vote_files::error::TableError;
use crate::vote_files::records::Records;

/// Two cells of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The line, from 1.
    pub line: usize,
    /// The cell that names the line's subject; no two lines have the same.
    pub key: String,
    /// The other cell; it may be empty.
    pub value: String,
}

/// Pairs of two columns of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pairs {
    /// The name of the column of the keys, in lower case.
    pub head: String,
    /// The pairs in the order of the lines.
    pub pairs: Vec<Pair>,
}

/// Parses CSV with a line of column names, which may have further columns. The keys are in the column with a name of
/// `keys`, and the values in the column `value`; upper and lower case are equal.
///
/// # Errors
/// If a column is missing or there are several, a line has another number of columns, or a key is empty or occurs twice.
pub fn parse_pairs(bytes: &[u8], keys: &[&str], value: &str) -> Result<Pairs, TableError> {
    let mut records = Records::new(decode_text(bytes)?)?;
    let head: Vec<String> = match records.next()? {
        Some((_, record)) => record.iter().map(str::to_lowercase).collect(),
        None => return Err(TableError::empty()),
    };
    let column = |names: &[&str]| {
        let mut found = head.iter().enumerate().filter(|(_, column)| names.contains(&column.as_str()));
        match (found.next(), found.next()) {
            (Some((column, _)), None) => Ok(column),
            (None, _) => Err(TableError::no_column(&names.join(" or "), &head.join(", "))),
            (Some(_), Some(_)) => {
                let (expected, found) = (names.join(" or "), printable(&head.join(", ")));
                Err(TableError(format!("expected one column {expected}, found {found}")))
            }
        }
    };
    let (key_column, value_column) = (column(keys)?, column(&[value])?);
    let (mut pairs, mut seen) = (Vec::new(), HashMap::new());
    while let Some((line, record)) = records.next()? {
        if record.len() != head.len() {
            return Err(TableError::ragged(line, head.len(), record.len()));
        }
        let key = record[key_column].to_owned();
        if key.is_empty() {
            return Err(TableError::no_key(line, &head[key_column]));
        }
        if let Some(first) = seen.insert(key.clone(), line) {
            return Err(TableError::key_twice(line, &key, first));
        }
        pairs.push(Pair { line, key, value: record[value_column].to_owned() });
    }
    if pairs.is_empty() {
        return Err(TableError::empty());
    }
    Ok(Pairs { head: head[key_column].clone(), pairs })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Pairs, TableError> {
        parse_pairs(text.as_bytes(), &["query", "name"], "label")
    }

    #[test]
    fn pairs_of_any_two_columns_are_read() {
        let found = parse("\u{feff}Label;more;Name\r\n3;x;\"a;b\"\r\n;;c\r\n").expect("pairs");
        let pair = |line, key: &str, value: &str| Pair { line, key: key.into(), value: value.into() };
        assert_eq!(found, Pairs { head: "name".into(), pairs: vec![pair(2, "a;b", "3"), pair(3, "c", "")] });
    }

    #[test]
    fn other_texts_are_refused_with_the_line() {
        for (text, words) in [
            ("", "at least one row"),
            ("query,label\n", "at least one row"),
            ("query,group\n0,1\n", "expected a column label, found query, group"),
            ("0,1\n1,2\n", "expected a column query or name"),
            ("query,name,label\n0,a,1\n", "expected one column query or name, found query, name, label"),
            ("query,label,label\n0,1,2\n", "expected one column label"),
            ("query,label\n0\n", "line 2"),
            ("query,label\n,1\n", "line 2: the column query is empty"),
            ("query,label\n0,1\n1,1\n0,2\n", "line 4: \"0\" occurs on line 2 already"),
        ] {
            let error = parse(text).expect_err("refused").to_string();
            assert!(error.contains(words), "{text:?}: {error}");
        }
    }
}
