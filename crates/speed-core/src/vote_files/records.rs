//! The records of a CSV text: separated by `,`, `;` or tabs, optionally quoted, with any line ends.
//!
//! The crate `csv` reads the records. Its line numbers are not used: after CR LF it assigns a record to the previous
//! line, because the LF is consumed with the next record, and it skips blank lines without a record. This module
//! instead counts lines up to the first byte of each record.

use csv::{Reader, ReaderBuilder, StringRecord, Trim};

use crate::vote_files::error::TableError;

const DELIMITERS: [char; 3] = [',', ';', '\t'];

/// Returns a text as a cell of CSV, in quotes if it needs them.
pub fn csv_cell(text: &str) -> String {
    let is_plain = text.chars().all(|letter| letter.is_alphanumeric() || "-_./".contains(letter));
    if is_plain { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

/// A reader of records that tracks their lines.
pub(crate) struct Records<'a> {
    text: &'a str,
    reader: Reader<&'a [u8]>,
    record: StringRecord,
    /// The byte up to which lines are counted, and its line, from 1.
    counted: (usize, usize),
    /// The next step for a line of empty cells.
    next: &'static str,
}

impl<'a> Records<'a> {
    pub(crate) fn new(text: &'a str) -> Result<Self, TableError> {
        Self::with(text, "remove the line")
    }

    pub(crate) fn of_votes(text: &'a str) -> Result<Self, TableError> {
        Self::with(text, "write NA for an empty vote, or remove the line")
    }

    fn with(text: &'a str, next: &'static str) -> Result<Self, TableError> {
        let reader = ReaderBuilder::new()
            .delimiter(delimiter(text)? as u8)
            .has_headers(false)
            .flexible(true)
            .trim(Trim::All)
            .from_reader(text.as_bytes());
        Ok(Self { text, reader, record: StringRecord::new(), counted: (0, 1), next })
    }

    /// Returns the next record and its line, from 1, or `None` at the end. Skips blank lines, but not lines of empty cells: they may
    /// be a teacher or a query without votes.
    pub(crate) fn next(&mut self) -> Result<Option<(usize, &StringRecord)>, TableError> {
        while self.reader.read_record(&mut self.record).expect("text in memory, of records of any length") {
            let line = self.line();
            if self.record.iter().any(|cell| !cell.is_empty()) {
                return Ok(Some((line, &self.record)));
            }
            // A blank line is skipped, but a quoted cell is a record.
            if self.record.len() > 1 || self.text.as_bytes().get(self.counted.0) == Some(&b'"') {
                let next = self.next;
                return Err(TableError(format!("line {line}: a line of empty cells only: {next}")));
            }
        }
        Ok(None)
    }

    /// Returns the line on which the current record begins.
    fn line(&mut self) -> usize {
        let (from, line) = self.counted;
        let bytes = self.text.as_bytes();
        let position = self.record.position().map_or(0, csv::Position::byte);
        let position = usize::try_from(position).unwrap_or(bytes.len()).min(bytes.len());
        let begin = bytes[position..].iter().position(|byte| !b"\r\n".contains(byte)).unwrap_or(0) + position;
        let passed = &bytes[from.min(begin)..begin];
        let ends = passed.iter().enumerate().filter(|&(at, &byte)| {
            // CR LF is one line end, and so is a lone CR.
            byte == b'\n' || (byte == b'\r' && passed.get(at + 1) != Some(&b'\n'))
        });
        self.counted = (begin, line + ends.count());
        self.counted.1
    }
}

/// Finds the separator of a text outside of quotes; a comma if there is only one column.
fn delimiter(text: &str) -> Result<char, TableError> {
    let (mut line, mut quoted, mut before, mut found) = (1, false, '\n', None);
    for c in text.chars() {
        match c {
            '"' if quoted => quoted = false,
            '"' if before == '\n' || before == '\r' || DELIMITERS.contains(&before) || before == '"' => quoted = true,
            c if !quoted && DELIMITERS.contains(&c) => match found {
                Some(first) if first != c => {
                    return Err(TableError(format!(
                        "line {line}: found {c:?} between columns, expected {first:?} as on earlier lines: quote names that \
                         contain a separator"
                    )));
                }
                _ => found = Some(c),
            },
            _ => {}
        }
        // A line ends with LF, CR or CR LF.
        line += usize::from(c == '\n' || before == '\r');
        before = c;
    }
    Ok(found.unwrap_or(','))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Result<Vec<(usize, Vec<String>)>, TableError> {
        let mut records = Records::of_votes(text)?;
        let mut found = Vec::new();
        while let Some((line, record)) = records.next()? {
            found.push((line, record.iter().map(str::to_owned).collect()));
        }
        Ok(found)
    }

    #[test]
    fn lines_are_those_of_an_editor_whatever_ends_them() {
        for end in ["\n", "\r\n", "\r"] {
            let text = ["a,b", "", "\"c\",d", "e,\"f", "f\"", "g,h", "", ""].join(end);
            let found = all(&text).expect("records");
            assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 3, 4, 6], "{end:?}");
            assert_eq!(found[1].1, ["c", "d"]);
        }
    }

    #[test]
    fn one_separator_is_found_and_two_are_refused() {
        assert_eq!(all("1;2\n3;4").expect("records")[1], (2, vec!["3".into(), "4".into()]));
        assert_eq!(all("1\t2").expect("records")[0].1, ["1", "2"]);
        assert_eq!(all("\"a,b\";2\n\"c\"\"d,\";3").expect("records")[1].1, ["c\"d,", "3"]);
        let refused = |text: &str| all(text).expect_err("refused").to_string();
        assert!(refused("1,2\r\n3;4").contains("line 2: found ';' between columns, expected ','"));
        assert!(refused("1,0;2,0").contains("line 1: found"));
    }

    #[test]
    fn lines_of_empty_cells_only_are_refused_and_blank_lines_are_not() {
        assert_eq!(all("\n1,2\n\n \n3,4\n\n").expect("records").len(), 2);
        let expected = "line 2: a line of empty cells only: write NA for an empty vote, or remove the line";
        for text in ["1,2\n,\n,\n", "1,2\n,\n3,4\n", "1,2\n\"\", ", "1;2\r\n;\r\n\r\n", "1\n\"\"\n0\n", "1\r\n\"\""] {
            assert_eq!(all(text).expect_err("refused").to_string(), expected, "{text:?}");
        }
        let mut records = Records::new("a,b\n,\n").expect("one separator");
        records.next().expect("names");
        let refused = records.next().expect_err("refused").to_string();
        assert_eq!(refused, "line 2: a line of empty cells only: remove the line");
    }
}
