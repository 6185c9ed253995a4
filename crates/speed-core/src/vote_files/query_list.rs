//! The list of a round's queries: names of pictures, or pictures with the groups to which they belong.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use csv::StringRecord;

use crate::vote_files::error::TableError;
use crate::vote_files::records::{Records, csv_cell};
use crate::{Digest, decode_text, is_legible, printable};

/// Largest list of queries that is read, in bytes.
pub const MAX_QUERY_LIST: u64 = 16 << 20;

const NAME: &str = "name";
const GROUP: &str = "group";
const ENCODER: &str = "encoder";

/// The queries of a round by their names, in order. A query is a picture, or a group of pictures with one label for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedQueries {
    names: Vec<String>,
    /// The pictures of each group; `None` if every query is one picture.
    groups: Option<Vec<Vec<String>>>,
    encoder: Option<Digest>,
}

impl NamedQueries {
    /// The largest number of pictures of a list.
    pub(crate) const MAX_PICTURES: usize = 1 << 20;
    /// The longest name of a group in bytes.
    pub(crate) const MAX_GROUP_NAME: usize = 100;

    /// Parses a list of queries, one line for each picture.
    ///
    /// The first line has the names of the columns, `name`, `group` and `encoder` in any order, in upper or lower case. Without
    /// the column `group` every picture is a query. With it every group is a query; the groups have the order of their first
    /// pictures. The column `encoder` has the digest of the encoder in every line. A list of one column may omit the line of
    /// column names.
    ///
    /// # Errors
    /// If the list is empty, too long, or has another column; if a picture occurs twice, or a cell is empty; if the name of a
    /// group is not legible, or is a path; or if the encoder is not a digest, or not the same in all lines.
    pub fn parse(bytes: &[u8]) -> Result<Self, TableError> {
        let mut records = Records::new(decode_text(bytes)?)?;
        let mut list = Lines::default();
        let mut columns = None;
        while let Some((line, record)) = records.next()? {
            let Some(Columns { width, name, group, encoder }) = columns else {
                let (found, is_header) = Columns::find(line, record)?;
                columns = Some(found);
                if !is_header {
                    list.add(line, &record[0], None)?;
                }
                continue;
            };
            if record.len() != width {
                return Err(TableError::ragged(line, width, record.len()));
            }
            list.add(line, &record[name], group.map(|group| &record[group]))?;
            encoder.map_or(Ok(()), |encoder| list.check_encoder(line, &record[encoder]))?;
        }
        list.finish(columns.is_some_and(|columns| columns.group.is_some()))
    }

    /// Checks the number of queries.
    ///
    /// # Errors
    /// If the list has another number of queries.
    pub fn expect_count(self, expected: usize) -> Result<Self, TableError> {
        let found = self.names.len();
        if found == expected {
            return Ok(self);
        }
        let kind = if self.is_grouped() { "groups" } else { "names; a line of column names needs the column name" };
        Err(TableError(format!("expected a name for each of {expected} queries, found {found} {kind}")))
    }

    /// Returns the names of the queries in order: of pictures, or of groups.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns a list of some of the queries, which [`Self::parse`] reads.
    pub fn to_csv(&self, queries: Range<usize>) -> String {
        let line = |name: &str, group: &str, encoder: &str| {
            let group = self.is_grouped().then(|| format!(",{group}"));
            let encoder = self.encoder.map(|_| format!(",{encoder}"));
            [name, &group.unwrap_or_default(), &encoder.unwrap_or_default(), "\n"].concat()
        };
        let encoder = self.encoder.map(|encoder| encoder.to_hex()).unwrap_or_default();
        let mut text = line(NAME, GROUP, ENCODER);
        for query in queries {
            let group = csv_cell(&self.names[query]);
            text.extend(self.pictures(query).iter().map(|picture| line(&csv_cell(picture), &group, &encoder)));
        }
        text
    }

    /// Returns the digest of the encoder from whose vectors the queries were chosen, if the list states one.
    pub fn encoder(&self) -> Option<Digest> {
        self.encoder
    }

    /// Returns a list with these pictures as its queries, chosen from the vectors of the same encoder.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn with_pictures(&self, names: impl IntoIterator<Item = String>) -> Result<Self, TableError> {
        let mut list = Lines { encoder: self.encoder, ..Lines::default() };
        (2..).zip(names).try_for_each(|(line, name)| list.add(line, &name, None))?;
        list.finish(false)
    }

    /// Returns whether the queries are groups of pictures.
    pub fn is_grouped(&self) -> bool {
        self.groups.is_some()
    }

    /// Returns the names of the pictures of a query, at least one.
    pub fn pictures(&self, query: usize) -> &[String] {
        self.groups.as_ref().map_or_else(|| std::slice::from_ref(&self.names[query]), |groups| &groups[query])
    }

    /// Returns the names of all pictures, query after query.
    pub fn all_pictures(&self) -> impl Iterator<Item = &String> {
        (0..self.names.len()).flat_map(|query| self.pictures(query))
    }
}

#[derive(Clone, Copy)]
struct Columns {
    width: usize,
    name: usize,
    group: Option<usize>,
    encoder: Option<usize>,
}

impl Columns {
    /// Returns the columns according to the first line, and whether it has their names or is the first picture.
    fn find(line: usize, record: &StringRecord) -> Result<(Self, bool), TableError> {
        let (width, mut name, mut group, mut encoder) = (record.len(), None, None, None);
        for (at, cell) in record.iter().enumerate() {
            let place = match cell {
                cell if cell.eq_ignore_ascii_case(NAME) => &mut name,
                cell if cell.eq_ignore_ascii_case(GROUP) => &mut group,
                cell if cell.eq_ignore_ascii_case(ENCODER) => &mut encoder,
                _ if width == 1 => return Ok((Self { width, name: 0, group: None, encoder: None }, false)),
                other => return Err(other_column(line, other)),
            };
            if place.replace(at).is_some() {
                return Err(other_column(line, cell));
            }
        }
        let missing = || TableError::no_column(NAME, &record.iter().collect::<Vec<_>>().join(", "));
        Ok((Self { width, name: name.ok_or_else(missing)?, group, encoder }, true))
    }
}

#[derive(Default)]
struct Lines {
    /// The pictures with their lines.
    lines: HashMap<String, usize>,
    /// Every query that is a picture, or every group.
    names: Vec<String>,
    groups: Vec<Vec<String>>,
    places: HashMap<String, usize>,
    encoder: Option<Digest>,
}

impl Lines {
    fn add(&mut self, line: usize, name: &str, group: Option<&str>) -> Result<(), TableError> {
        if self.lines.len() == NamedQueries::MAX_PICTURES {
            let max = NamedQueries::MAX_PICTURES;
            return Err(TableError(format!("line {line}: expected at most {max} pictures, found more")));
        }
        let column = |cell: &str, column: &str| match cell {
            "" => Err(TableError::no_key(line, column)),
            _ => Ok(()),
        };
        column(name, NAME)?;
        match self.lines.entry(name.to_owned()) {
            Entry::Occupied(entry) => {
                return Err(TableError::key_twice(line, &beginning(name), *entry.get()));
            }
            Entry::Vacant(entry) => entry.insert(line),
        };
        let Some(group) = group else {
            self.names.push(name.to_owned());
            return Ok(());
        };
        column(group, GROUP)?;
        let place = match self.places.get(group) {
            Some(&place) => place,
            None => {
                let is_path = group.contains(['/', '\\']) || matches!(group, "." | "..");
                if group.len() > NamedQueries::MAX_GROUP_NAME || is_path || !is_legible(group) {
                    let (max, found) = (NamedQueries::MAX_GROUP_NAME, printable(&beginning(group)));
                    return Err(TableError(format!(
                        "line {line}: expected a legible group name of 1 to {max} bytes without / and \\, and not . or .., \
                         found {found:?}"
                    )));
                }
                self.names.push(group.to_owned());
                self.groups.push(Vec::new());
                self.places.insert(group.to_owned(), self.groups.len() - 1);
                self.groups.len() - 1
            }
        };
        self.groups[place].push(name.to_owned());
        Ok(())
    }

    fn check_encoder(&mut self, line: usize, cell: &str) -> Result<(), TableError> {
        let wrong = |expected: &str| {
            TableError(format!("line {line}: expected {expected}, found {:?}", printable(&beginning(cell))))
        };
        let digest = "the SHA-256 of an encoder, 64 hexadecimal digits in lower case";
        let found: Digest = cell.parse().map_err(|_| wrong(digest))?;
        let expected = *self.encoder.get_or_insert(found);
        if expected == found { Ok(()) } else { Err(wrong(&format!("one encoder in all lines, {}", expected.to_hex()))) }
    }

    fn finish(self, is_grouped: bool) -> Result<NamedQueries, TableError> {
        if self.names.is_empty() {
            return Err(TableError::empty());
        }
        let groups = is_grouped.then_some(self.groups);
        Ok(NamedQueries { names: self.names, groups, encoder: self.encoder })
    }
}

/// Returns the error of a column that a list does not have, or has twice.
fn other_column(line: usize, found: &str) -> TableError {
    TableError(format!(
        "line {line}: expected the column name, or also the columns group and encoder, each once; found the column {:?}",
        printable(&beginning(found))
    ))
}

fn beginning(cell: &str) -> String {
    cell.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> NamedQueries {
        NamedQueries::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text:?}: {error}"))
    }

    fn refused(text: &str) -> String {
        NamedQueries::parse(text.as_bytes()).expect_err(text).to_string()
    }

    #[test]
    fn a_list_of_pictures_has_one_query_for_each() {
        for text in ["a.png\nb.png\n", "name\na.png\nb.png", "\u{feff}Name\r\n\"a.png\"\r\nb.png\r\n\r\n"] {
            let queries = parse(text);
            assert_eq!(queries.names(), ["a.png", "b.png"], "{text:?}");
            assert!(!queries.is_grouped());
            assert_eq!(queries.pictures(1), ["b.png"]);
            assert!(queries.all_pictures().eq(queries.names()));
        }
    }

    #[test]
    fn a_part_of_a_list_is_a_list() {
        let one = "ab".repeat(32);
        for text in [
            "name\na.png\n\"b, \"\"b\"\".png\"\nc.png\n".to_owned(),
            "name,group\nd,two\na,one\ne,two\n\"b,b\",one\nc,three\n".to_owned(),
            format!("name,encoder\na,{one}\nb,{one}\nc,{one}\n"),
            format!("encoder,name,group\n{one},a,one\n{one},b,two\n{one},c,three\n"),
        ] {
            let whole = parse(&text);
            assert_eq!(parse(&whole.to_csv(0..3)), whole);
            let part = parse(&whole.to_csv(1..3));
            assert_eq!((part.names(), part.is_grouped()), (&whole.names()[1..], whole.is_grouped()));
            assert_eq!((part.pictures(1), part.encoder()), (whole.pictures(2), whole.encoder()));
        }
    }

    #[test]
    fn a_list_states_one_encoder_in_all_lines() {
        let [one, other] = ["ab", "cd"].map(|digits| digits.repeat(32));
        let list = parse(&format!("name,Encoder\na,{one}\nb,{one}\n"));
        assert_eq!(list.encoder().map(|encoder| encoder.to_hex()), Some(one.clone()));
        let more = list.with_pictures(["c".to_owned(), "a".to_owned()]).expect("a list");
        assert_eq!(more, parse(&format!("name,encoder\nc,{one}\na,{one}\n")));
        let error = list.with_pictures(["c".to_owned(), "c".to_owned()]).expect_err("twice").to_string();
        assert!(error.contains("\"c\" occurs"), "{error}");
        for (text, words) in [
            (
                format!("name,encoder\na,{one}\nb,{other}\n"),
                format!("line 3: expected one encoder in all lines, {one}"),
            ),
            (format!("name,encoder\na,{one}\nb,\n"), "line 3: expected the SHA-256 of an encoder".to_owned()),
            (format!("name,encoder\na,{}\n", one.to_uppercase()), "line 2: expected the SHA-256".to_owned()),
            (format!("name,encoder,encoder\na,{one},{one}\n"), "found the column \"encoder\"".to_owned()),
            (format!("encoder\n{one}\n"), "expected a column name, found encoder".to_owned()),
        ] {
            assert!(refused(&text).contains(&words), "{text:?}: {}", refused(&text));
        }
    }

    #[test]
    fn a_list_with_groups_has_one_query_for_each_group_in_order_of_appearance() {
        let expected = parse("name,group\nc.png,two\na.png,one\nd.png,two\nb.png,one\n");
        assert_eq!(expected.names(), ["two", "one"]);
        assert!(expected.is_grouped());
        assert_eq!(expected.pictures(0), ["c.png", "d.png"]);
        assert_eq!(expected.pictures(1), ["a.png", "b.png"]);
        assert_eq!(expected.all_pictures().collect::<Vec<_>>(), ["c.png", "d.png", "a.png", "b.png"]);
        let other = "\u{feff}GROUP;name\r\ntwo;c.png\r\n\"two\";d.png\r\none;a.png\r\none;b.png\r\n";
        assert_eq!(parse(other), expected);
        // Groups of one picture are groups too.
        assert!(parse("name,group\na.png,a.png\n").is_grouped());
    }

    #[test]
    fn other_lists_are_refused_with_line_and_name() {
        for (text, words) in [
            ("", "at least one row"),
            ("name\n", "at least one row"),
            ("name,group\n", "at least one row"),
            ("a\nb\na\n", "line 3: \"a\" occurs on line 1 already"),
            ("name,ward\na,1\n", "line 1: expected the column name, or also the columns group and encoder"),
            ("name,ward\na,1\n", "found the column \"ward\""),
            ("name,groups\na,1\n", "found the column \"groups\""),
            ("a.png,1\nb.png,2\n", "found the column \"a.png\""),
            ("name,group,name\na,1,b\n", "found the column \"name\""),
            ("group\na\n", "expected a column name, found group"),
            ("name,group\na,1\nb\n", "line 3: expected 2 columns, found 1"),
            ("a\nb,c\n", "line 2: expected 1 columns, found 2"),
            ("name,group\na,1\nb,2\na,2\n", "line 4: \"a\" occurs on line 2 already"),
            ("name,group\na,\n", "line 2: the column group is empty"),
            ("name,group\na,\"  \"\n", "line 2: the column group is empty"),
            ("name,group\n,one\n", "line 2: the column name is empty"),
            ("name,group\na,wards/7\n", "line 2: expected a legible group name"),
            ("name,group\na,wards\\7\n", "without / and \\"),
            ("name,group\na,..\n", "found \"..\""),
            ("name,group\na,one\u{200b}\n", "line 2: expected a legible group name"),
        ] {
            assert!(refused(text).contains(words), "{text:?}: {}", refused(text));
        }
        let name = |length| format!("name,group\na,{}\n", "g".repeat(length));
        assert!(refused(&name(101)).contains("1 to 100 bytes"));
        assert_eq!(parse(&name(100)).names()[0].len(), 100);
        assert!(NamedQueries::parse(&[0xff, 0xfe]).expect_err("refused").to_string().contains("UTF-16"));
    }

    #[test]
    fn the_number_of_queries_is_that_of_the_groups() {
        let grouped = parse("name,group\na,x\nb,x\nc,y\n");
        assert!(grouped.clone().expect_count(2).is_ok());
        let error = grouped.expect_count(3).expect_err("two groups").to_string();
        assert_eq!(error, "expected a name for each of 3 queries, found 2 groups");
        // Without the column `name`, the first line is a picture.
        let error = parse("file\na\nb\n").expect_count(2).expect_err("three names").to_string();
        assert!(error.contains("found 3 names; a line of column names needs the column name"), "{error}");
    }

    #[test]
    fn a_list_ends_at_the_limit() {
        let numbers = |count: usize| (0..count).map(|i| format!("{i:x}\n")).collect::<String>();
        let text = numbers(NamedQueries::MAX_PICTURES + 1);
        let error = NamedQueries::parse(text.as_bytes()).expect_err("too many").to_string();
        assert_eq!(error, "line 1048577: expected at most 1048576 pictures, found more");
        assert_eq!(parse(&numbers(NamedQueries::MAX_PICTURES)).names().len(), NamedQueries::MAX_PICTURES);
    }
}
