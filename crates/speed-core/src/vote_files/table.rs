//! Tables of integers, from `.npy` and CSV files.

use std::path::Path;

use csv::StringRecord;

use crate::npy::WholeNumbers;
use crate::vote_files::error::{Location, MAX_FILE, TableError};
use crate::vote_files::records::Records;
use crate::{decode_text, read_regular};

/// Names of a column that identifies rows and holds no votes.
const NAMES_OF_ROWS: [&str; 8] = ["", "row", "index", "id", "name", "teacher", "query", "image"];

/// The entry of an empty vote. A text may also leave its cell empty, or write `NA`.
pub const EMPTY: i64 = -1;

/// The cell of a missing value, as statistics programs write it.
const NOT_AVAILABLE: &str = "NA";

/// Least number of columns or rows whose consecutive numbers may be names.
const COUNTS: usize = 3;

/// A table of votes, in row-major order: labels or counts, and -1 for an empty vote. `Debug` shows sizes only.
#[derive(Clone, PartialEq, Eq)]
pub struct Table {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) values: Vec<i64>,
    /// Whether an empty vote is written as -1 or NA, not only as a blank cell.
    pub(crate) has_written_empty: bool,
    /// The line of each row, if the table comes from a text.
    lines: Vec<usize>,
    /// Number of columns of a text before the first value.
    names: usize,
}

impl Table {
    /// Parses a two-dimensional array, or CSV with one row per line, separated by `,`, `;` or tabs, with or without a
    /// line of column names. In CSV, an empty cell and NA are empty votes too.
    ///
    /// # Errors
    /// The error states the location, the expected and the found.
    pub fn parse(bytes: &[u8]) -> Result<Self, TableError> {
        if !is_array(bytes)? {
            return Self::of_text(decode_text(bytes)?, None);
        }
        // Uses only the header, so an unsuitable array is not decoded.
        let shape = crate::npy::shape(bytes)?;
        let &[rows, columns] = shape.as_slice() else {
            return Err(TableError(format!("expected two dimensions, found shape {shape:?}")));
        };
        if rows == 0 || columns == 0 {
            return Err(TableError::empty());
        }
        let values = WholeNumbers::parse(bytes)?.values;
        let has_written_empty = values.contains(&EMPTY);
        Ok(Self { rows, columns, values, has_written_empty, lines: Vec::new(), names: 0 })
    }

    /// Parses the counts of a round whose classes have names: CSV whose columns are named like the classes, in their order.
    ///
    /// # Errors
    /// If the bytes are an array, the first line is not the names of the classes, or a cell is not an integer.
    pub fn of_classes(bytes: &[u8], classes: &[String]) -> Result<Self, TableError> {
        if is_array(bytes)? {
            return Err(TableError::class_columns(classes));
        }
        Self::of_text(decode_text(bytes)?, Some(classes))
    }

    /// Parses a text. If the `classes` are given, the first line is their names, and otherwise it may be names of columns.
    fn of_text(text: &str, classes: Option<&[String]>) -> Result<Self, TableError> {
        let mut records = Records::of_votes(text)?;
        let (mut width, mut names, mut has_header) = (None, 0, false);
        let (mut values, mut lines, mut is_last_blank) = (Vec::new(), Vec::new(), true);
        let (mut has_written_empty, mut unsure, mut is_named, mut is_counted) = (false, None, false, true);
        while let Some((line, record)) = records.next()? {
            let expected = *width.get_or_insert(record.len());
            if record.len() != expected {
                return Err(TableError::ragged(line, expected, record.len()));
            }
            if lines.is_empty() && !has_header {
                match classes {
                    Some(classes) if !record.iter().eq(classes) => break,
                    None if !is_header(record) => {}
                    _ => {
                        has_header = true;
                        names = usize::from(classes.is_none() && record.len() > 1 && is_name_of_rows(&record[0]));
                        // An empty vote before votes that count from 0 looks like a data frame's names.
                        unsure = (names == 1 && record[0].is_empty() && number(&record[1]).is_some()).then_some(line);
                        continue;
                    }
                }
            }
            is_named |= vote(&record[0]).is_none();
            is_counted &= record[0].parse() == Ok(lines.len());
            lines.push(line);
            is_last_blank &= !has_header && record.iter().next_back().is_some_and(str::is_empty);
            for (column, cell) in record.iter().enumerate().skip(names) {
                let location = Location::Cell(line, column + 1);
                let value = vote(cell).ok_or_else(|| TableError::number(location, cell))?;
                has_written_empty |= value == EMPTY && !cell.is_empty();
                values.push(value);
            }
        }
        if let Some(classes) = classes.filter(|_| !has_header) {
            return Err(TableError::class_columns(classes));
        }
        let columns = width.unwrap_or(0) - names;
        let table = Self { rows: lines.len(), columns, values, has_written_empty, lines, names };
        if table.rows == 0 {
            return Err(TableError::empty());
        }
        if let Some(line) = unsure.filter(|_| !is_named && !is_counted) {
            return Err(TableError(format!(
                "line {line} may be votes or column names: write NA for an empty vote, or name the column of the rows"
            )));
        }
        if is_last_blank {
            return Err(TableError(format!(
                "column {columns} is empty on every line: remove it, or write NA if its votes are empty"
            )));
        }
        if !has_header {
            table.check_names()?;
        }
        Ok(table)
    }

    /// Refuses numbers that may be column or row names, as data frames write them, because they would be read as votes.
    fn check_names(&self) -> Result<(), TableError> {
        let counts =
            |from: i64, values: &mut dyn Iterator<Item = &i64>| values.zip(from..).all(|(&found, at)| found == at);
        if self.columns >= COUNTS && counts(0, &mut self.values[..self.columns].iter()) {
            let (line, last) = (self.lines[0], self.columns - 1);
            return Err(TableError(format!(
                "line {line} counts from 0 to {last}, so it may be votes or column names: add a line of names above votes, or \
                 remove numbers that are names"
            )));
        }
        let first = || self.values.iter().step_by(self.columns);
        if self.columns > 1 && self.rows >= COUNTS && (counts(0, &mut first()) || counts(1, &mut first())) {
            return Err(TableError(
                "column 1 numbers the lines, so it may be votes or row names: add a line of column names above votes, or remove \
                 numbers that are names"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    pub(crate) fn row(&self, row: usize) -> &[i64] {
        &self.values[row * self.columns..(row + 1) * self.columns]
    }

    pub(crate) fn location_of(&self, row: usize) -> Location {
        self.lines.get(row).map_or(Location::Row(row), |&line| Location::Line(line))
    }

    pub(crate) fn location_of_entry(&self, row: usize, column: usize) -> Location {
        self.lines.get(row).map_or(Location::Entry(row, column), |&line| Location::Cell(line, column + self.names + 1))
    }
}

/// Reads a file of at most [`MAX_FILE`] bytes.
///
/// # Errors
/// If it cannot be read or is too long.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, TableError> {
    read_regular(path, MAX_FILE).map_err(|error| match error.kind() {
        std::io::ErrorKind::FileTooLarge => {
            TableError(format!("longer than {} MiB, the limit of this program", MAX_FILE >> 20))
        }
        _ => TableError(format!("cannot read: {error}")),
    })
}

/// Parses integers, such as indices or true labels: an array of any shape, or one line or column of CSV.
///
/// # Errors
/// The error states the location, the expected and the found.
pub fn parse_numbers(bytes: &[u8]) -> Result<WholeNumbers, TableError> {
    if is_array(bytes)? {
        return Ok(WholeNumbers::parse(bytes)?);
    }
    let mut records = Records::new(decode_text(bytes)?)?;
    let (mut rows, mut columns, mut values) = (0, 0, Vec::new());
    let (mut names, mut has_header) = (0, false);
    while let Some((line, record)) = records.next()? {
        if rows == 0 && !has_header && is_header(record) {
            has_header = true;
            names = usize::from(record.len() > 1 && is_name_of_rows(&record[0]));
            continue;
        }
        if rows > 0 && record.len() != columns + names {
            return Err(TableError::ragged(line, columns + names, record.len()));
        }
        columns = record.len() - names.min(record.len());
        rows += 1;
        for (column, cell) in record.iter().enumerate().skip(names) {
            let location = Location::Cell(line, column + 1);
            values.push(number(cell).ok_or_else(|| TableError::number(location, cell))?);
        }
    }
    if values.is_empty() {
        return Err(TableError::empty());
    }
    Ok(WholeNumbers { shape: if columns == 1 { vec![rows] } else { vec![rows, columns] }, values })
}

pub(crate) fn is_array(bytes: &[u8]) -> Result<bool, TableError> {
    if bytes.starts_with(b"PK\x03\x04") {
        let next = "save one array with numpy.save, or the sheet as CSV";
        return Err(TableError(format!("a ZIP archive (.npz or .xlsx), expected .npy or CSV: {next}")));
    }
    Ok(bytes.starts_with(b"\x93NUMPY"))
}

/// Returns whether the first record consists of column names: distinct and not numeric. Numbers that count the columns
/// after a name of rows are column names too, because data frames write them.
fn is_header(record: &StringRecord) -> bool {
    let is_number = |cell: &str| cell == NOT_AVAILABLE || cell.parse::<f64>().is_ok();
    let (first, rest) = (&record[0], || record.iter().skip(1));
    if is_number(first) {
        return false;
    }
    let is_counted = rest().enumerate().all(|(at, cell)| cell.parse() == Ok(at));
    if is_name_of_rows(first) && record.len() > 1 && is_counted {
        return true;
    }
    let mut names: Vec<&str> = record.iter().collect();
    names.sort_unstable();
    names.dedup();
    names.len() == record.len()
        && rest().all(|cell| !cell.is_empty() && !is_number(cell))
        && (!first.is_empty() || record.len() > 1)
}

fn is_name_of_rows(cell: &str) -> bool {
    NAMES_OF_ROWS.contains(&cell.to_ascii_lowercase().as_str())
}

pub(crate) fn is_empty_vote(cell: &str) -> bool {
    cell.is_empty() || cell == NOT_AVAILABLE || number(cell) == Some(EMPTY)
}

/// Returns the entry in a cell: an integer, or that of an empty vote.
fn vote(cell: &str) -> Option<i64> {
    if is_empty_vote(cell) { Some(EMPTY) } else { number(cell) }
}

/// Returns the integer in a cell. Some programs write integers as floating-point numbers.
pub(crate) fn number(cell: &str) -> Option<i64> {
    const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
    cell.parse().ok().or_else(|| {
        let value: f64 = cell.parse().ok()?;
        (value.fract() == 0.0 && value.abs() <= MAX_EXACT).then_some(value as i64)
    })
}

crate::debug_as!(Table, this => "Table({} x {}, ..)", this.rows, this.columns);

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Result<(usize, usize, Vec<i64>), TableError> {
        Table::parse(text.as_bytes()).map(|table| (table.rows, table.columns, table.values))
    }

    #[test]
    fn names_are_not_read_as_values() {
        let expected = (2, 2, vec![7, 0, 1, 2]);
        for text in
            ["7,0\n1,2", "cat,dog\n7,0\n1,2", ",0,1\n0,7,0\n1,1,2", "Query;cat;dog\n9;7;0\n8;1;2\n", "7.0,0e0\n1,+2"]
        {
            assert_eq!(table(text).expect(text), expected, "{text:?}");
        }
        // The first teacher may leave its first vote empty.
        for text in [",0,1\n2,0,1\n1,1,0\n", ",0\n1,1\n0,1\n", ",0\nNA,1\n1,1\n"] {
            let found = table(text).expect_err("refused").to_string();
            assert!(found.starts_with("line 1 may be votes or column names: write NA for an empty vote"), "{found}");
        }
        assert_eq!(table("NA,0,1\n2,0,1\n").expect("votes"), (2, 3, vec![-1, 0, 1, 2, 0, 1]));
        assert_eq!(table(",0,1\na,0,1\n").expect("names"), (1, 2, vec![0, 1]));
    }

    #[test]
    fn counts_of_classes_with_names_are_below_these_names() {
        let of = |names: &[&str], text: &str| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            Table::of_classes(text.as_bytes(), &names).map(|table| (table.rows, table.columns, table.values))
        };
        assert_eq!(of(&["a;b", "c"], "\"a;b\",c\n3,0\n1,2\n").expect("counts"), (2, 2, vec![3, 0, 1, 2]));
        assert_eq!(of(&["1", "2"], "1,2\n3,0\n").expect("counts"), (1, 2, vec![3, 0]));
        for text in ["c,a\n3,0\n", "3,0\n1,2\n", "A,c\n3,0\n", "a\n3\n", "", "\u{93}NUMPY", "c\na\n"] {
            let error = of(&["a", "c"], text).expect_err(text).to_string();
            assert!(error.contains("the round's classes have names (a, c)"), "{text:?}: {error}");
        }
        assert!(of(&["a", "c"], "a,c\n3\n").expect_err("ragged").to_string().contains("line 2"));
        assert_eq!(of(&["a", "c"], "a,c\n"), Err(TableError::empty()));
    }

    #[test]
    fn a_first_line_of_values_is_not_taken_for_names() {
        for text in ["x,0\n1,2\n", "7,0,\n1,2,\n", "nan,inf\n1,2\n", ",,\n"] {
            assert!(table(text).is_err(), "{text:?}");
        }
        let number = |text: &str| table(text).expect_err("refused").to_string();
        assert_eq!(number("1,2\n3,\u{1b}[2J\n"), "line 2, column 2: expected an integer, found \"\\u{1b}[2J\"");
        assert_eq!(number("1,2\nna,3\n"), "line 2, column 1: expected an integer, found \"na\"");
        assert!(number("1,2\n3,1.5\n").contains("found \"1.5\""));
        assert!(number(&format!("1\n{}\n", "x".repeat(9000))).len() < 120);
    }

    #[test]
    fn empty_votes_are_minus_one_an_empty_cell_or_na() {
        let expected = (2, 3, vec![-1, 2, 1, 0, 0, -1]);
        for text in
            ["-1,2,1\n0,0,-1\n", ",2,1\n0,0,\n", "NA;2;1\n0;0;NA\n", "a,b,c\n,2,1\n0,0,NA\n", "-1.0,2,1\n0,0,\n"]
        {
            assert_eq!(table(text).expect(text), expected, "{text:?}");
        }
        assert_eq!(table("NA\n1\n").expect("one query"), (2, 1, vec![-1, 1]));
        // A column that a spreadsheet leaves behind is not a query.
        let error = table("7,0,\n1,2,\n").expect_err("refused").to_string();
        assert!(error.starts_with("column 3 is empty on every line"), "{error}");
        assert_eq!(table("7,0,NA\n1,2,\n").expect("a query without votes").2, [7, 0, -1, 1, 2, -1]);
        // A last line of blank cells may be a teacher without votes, so it is not dropped.
        for end in ["", "\n", "\n\n", "\n,,\n"] {
            let error = table(&format!("7,0,3\n1,2,0\n,,{end}")).expect_err("refused").to_string();
            assert!(error.starts_with("line 3: a line of empty cells only"), "{error}");
        }
        assert_eq!(table("7,0\n1,2\nNA,\n\n\n").expect("a teacher without votes").2, [7, 0, 1, 2, -1, -1]);
    }

    #[test]
    fn numbers_that_may_be_names_are_refused() {
        for (text, words) in [
            ("0,1,2\n5,5,5\n", "line 1 counts from 0 to 2"),
            ("0,9\n1,9\n2,9\n", "column 1 numbers the lines"),
            ("1,9\n2,9\n3,9\n", "column 1 numbers the lines"),
        ] {
            assert!(table(text).expect_err("refused").to_string().contains(words), "{text:?}");
        }
        assert_eq!(table("a,b,c\n0,1,2\n1,1,1\n2,2,2\n").expect("votes below names").0, 3);
    }

    #[test]
    fn lists_are_a_line_or_a_column() {
        let list = |text: &str| parse_numbers(text.as_bytes()).map(|numbers| (numbers.shape, numbers.values));
        assert_eq!(list("0\n1\n2\n").expect("a column"), (vec![3], vec![0, 1, 2]));
        assert_eq!(list("index\r\n4\r\n").expect("a column"), (vec![1], vec![4]));
        assert_eq!(list("0;1;2").expect("a line"), (vec![1, 3], vec![0, 1, 2]));
        assert_eq!(list(",label\n0,5\n1,6\n").expect("a data frame"), (vec![2], vec![5, 6]));
        assert!(list("").is_err() && list("0\nx\n").is_err() && list("0,1\n2\n").is_err());
    }

    #[test]
    fn long_files_are_not_read() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().set_len(MAX_FILE + 1).expect("a sparse file");
        let refused = |path: &Path| read_bytes(path).expect_err("refused").to_string();
        assert!(refused(file.path()).contains("longer than 256 MiB"));
        #[cfg(unix)]
        assert!(refused(Path::new("/dev/zero")).contains("cannot read"));
    }
}
