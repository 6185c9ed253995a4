//! The votes of one teacher on the queries of a round: labels in order, labels by query, or one-hot histograms.

use std::collections::HashMap;

use crate::npy::WholeNumbers;
use crate::{Classes, Vote, class_list, decode_text, printable};

use crate::vote_files::error::{Location, TableError};
use crate::vote_files::form::VotesForm;
use crate::vote_files::records::Records;
use crate::vote_files::table::{EMPTY, is_array, is_empty_vote, number};

/// The round's question to a teacher.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// Number of queries.
    pub queries: usize,
    /// The classes. A text gives them by their names, an array by their numbers.
    pub classes: &'a Classes,
    /// The form of the file, if given.
    pub form: Option<VotesForm>,
    /// The names of the queries.
    pub names: QueryNames<'a>,
}

/// The names by which votes may refer to the queries.
#[derive(Clone, Copy, Debug)]
pub enum QueryNames<'a> {
    /// Queries without a list have numbers only.
    NoList,
    /// There is a list, but its names cannot be read. A number could then be a name, so votes refer to queries by their
    /// order, or by numbers below the column name `query`.
    Unreadable,
    /// The names in order.
    Known(&'a [String]),
}

impl QueryNames<'_> {
    /// Returns a query as messages show it: by its name, or else by its number.
    fn show(self, query: usize) -> String {
        match self {
            Self::Known(names) => format!("{:?}", printable(&names[query])),
            Self::NoList | Self::Unreadable => query.to_string(),
        }
    }
}

/// The advice for a teacher that does not know a query's class.
const UNSURE: &str = "a teacher that is unsure may leave its vote empty: -1, NA or an empty cell";

/// A file that is not one teacher's votes on the queries.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// Lines of two numbers: either a query and its label, or a histogram of two classes.
    #[error("lines of two numbers may be query,label or histograms of two classes")]
    Undecided,
    /// Lines that may refer to queries by name, while the names are not readable.
    #[error("{0} may be the name of a query, but the names of the list cannot be read")]
    UnreadableNames(String),
    /// Any other fault, with the location, the expected, and the found if it is no vote.
    #[error("{0}")]
    Invalid(String),
}

impl AnswerError {
    fn columns(line: usize, found: usize, classes: usize) -> Self {
        Self::Invalid(format!(
            "line {line}: found {found} columns, expected 1 (label), 2 (query,label) or {classes} (a one-hot histogram)"
        ))
    }

    fn count(expected: usize, found: usize) -> Self {
        Self::Invalid(format!("{found} labels, the round has {expected} queries"))
    }
}

impl From<TableError> for AnswerError {
    fn from(error: TableError) -> Self {
        Self::Invalid(error.to_string())
    }
}

/// Parses one teacher's vote on each query.
///
/// An array holds the number of a class per query, or is queries x classes and one-hot. A text has one of three forms, with or
/// without a line of column names: labels in query order, one per line or all on one line; lines `query,label` in any
/// order, by index or by name; or one-hot histograms, one per line.
///
/// An empty vote is -1 in place of a label, and in a text also NA or an empty cell, unless a class has this name. In a
/// histogram all its counts are 0. A blank line is not a vote, because files may end with such lines. All votes may be empty:
/// were they refused, the missing message would reveal it.
///
/// If the classes have names, arrays are refused, labels are names, and a text begins with names of columns: `label`, or those of all classes above
/// histograms. Otherwise the numbers of another program, which may count from 1, would be other classes.
///
/// # Errors
/// The error states the query and the expected value, and the found one if it is no vote.
pub fn parse_answer(bytes: &[u8], question: &Question<'_>) -> Result<Vec<Vote>, AnswerError> {
    match (is_array(bytes)?, question.classes.names()) {
        (true, Some(names)) => Err(AnswerError::Invalid(format!(
            "an array has no names, and the round's classes have ({}): expected CSV with names of classes",
            class_list(names)
        ))),
        (true, None) => array(bytes, question),
        (false, _) => text(bytes, question),
    }
}

fn array(bytes: &[u8], question: &Question<'_>) -> Result<Vec<Vote>, AnswerError> {
    let &Question { queries, form, .. } = question;
    let classes = question.classes.len();
    // Uses only the header, so an unsuitable array is not decoded.
    let shape = crate::npy::shape(bytes).map_err(TableError::from)?;
    let entries: usize = shape.iter().product();
    let is_line = shape.iter().filter(|&&length| length != 1).count() <= 1;
    let read = || WholeNumbers::parse(bytes).map(|array| array.values).map_err(TableError::from);
    if shape == [queries, classes] && form != Some(VotesForm::Labels) {
        let values = read()?;
        return values
            .chunks_exact(classes)
            .enumerate()
            .map(|(row, counts)| one_hot(counts, Location::Row(row)))
            .collect();
    }
    if !is_line || form == Some(VotesForm::Histograms) {
        return Err(AnswerError::Invalid(format!(
            "found shape {shape:?}, expected {queries} labels, or {queries} x {classes} one-hot histograms"
        )));
    }
    if entries != queries {
        return Err(AnswerError::count(queries, entries));
    }
    read()?.into_iter().enumerate().map(|(query, found)| label(query, found, classes)).collect()
}

fn label(query: usize, found: i64, classes: usize) -> Result<Vote, AnswerError> {
    if found == EMPTY {
        return Ok(None);
    }
    let label = u8::try_from(found).ok().filter(|label| usize::from(*label) < classes);
    label.map(Some).ok_or_else(|| {
        let next = if found < 0 { format!(": {UNSURE}") } else { String::new() };
        AnswerError::Invalid(format!("query {query}: label {found}, expected 0 to {}{next}", classes - 1))
    })
}

/// Returns the class of the single vote, or an empty vote if all counts are 0.
fn one_hot(counts: &[i64], location: Location) -> Result<Vote, AnswerError> {
    if counts.iter().any(|count| ![0, 1].contains(count)) || counts.iter().sum::<i64>() > 1 {
        let expected = "expected a one-hot histogram: at most a single 1, and 0 elsewhere";
        return Err(AnswerError::Invalid(format!("{location}: {expected}")));
    }
    Ok(counts.iter().position(|&count| count == 1).and_then(|class| u8::try_from(class).ok()))
}

struct Line {
    number: usize,
    cells: Vec<String>,
}

/// The records of a text, without the line of column names.
struct Lines {
    header: Option<Vec<String>>,
    lines: Vec<Line>,
}

impl Lines {
    fn read(bytes: &[u8], question: &Question<'_>) -> Result<Self, AnswerError> {
        let (queries, classes) = (question.queries, question.classes.len());
        let mut records = Records::of_votes(decode_text(bytes).map_err(TableError::from)?)?;
        let (mut header, mut lines, mut found) = (None, Vec::<Line>::new(), 0);
        while let Some((at, record)) = records.next()? {
            // A round limits the product of queries and classes, so this limits memory too.
            if record.len() > queries.max(classes).max(2) + 1 {
                return Err(AnswerError::columns(at, record.len(), classes));
            }
            let cells: Vec<String> = record.iter().map(str::to_owned).collect();
            let is_header = question.classes.names().is_some() || is_head(&cells);
            if found == 0 && header.is_none() && is_header {
                header = Some(head(cells, question.classes)?);
                continue;
            }
            let width = lines.first().map(|first| first.cells.len()).or(header.as_ref().map(Vec::len));
            if let Some(expected) = width.filter(|width| *width != cells.len()) {
                return Err(TableError::ragged(at, expected, cells.len()).into());
            }
            found += 1;
            if lines.len() <= queries {
                lines.push(Line { number: at, cells });
            }
        }
        let is_one_line = found == 1 && lines[0].cells.len() == queries;
        if found != queries && !is_one_line {
            return Err(AnswerError::count(queries, found));
        }
        Ok(Self { header, lines })
    }
}

/// Returns whether the first line of a text that gives classes by their numbers is names of columns: no cell is a number or NA. A name
/// with an empty cell is a query with an empty vote.
fn is_head(cells: &[String]) -> bool {
    let is_value = |cell: &String| number(cell).is_some() || (!cell.is_empty() && is_empty_vote(cell));
    let is_query = cells.len() == 2 && cells[1].is_empty();
    !is_query && !cells.iter().any(is_value)
}

/// Checks the column names of a text that gives classes by their names.
fn head(cells: Vec<String>, classes: &Classes) -> Result<Vec<String>, AnswerError> {
    match classes.names() {
        Some(names) if names != cells && !cells.iter().any(|cell| cell.to_lowercase() == "label") => {
            // The line may hold votes, so it is not shown.
            Err(AnswerError::Invalid(format!(
                "line 1: expected the names of columns: label, or query and label, or name and label; or the name of each class \
                 of the round in their order ({})",
                class_list(names)
            )))
        }
        _ => Ok(cells),
    }
}

fn text(bytes: &[u8], question: &Question<'_>) -> Result<Vec<Vote>, AnswerError> {
    let &Question { queries, classes, form, .. } = question;
    let Lines { header, lines } = Lines::read(bytes, question)?;
    let columns = lines[0].cells.len();
    if header.is_some() && header.as_deref() == classes.names() {
        return histograms(&lines, queries);
    }
    let header: Option<Vec<String>> = header.map(|names| names.iter().map(|name| name.to_lowercase()).collect());
    let of_header = header.as_ref().and_then(|names| names.iter().position(|name| name == "label"));
    if let (Some(label), Some(header), true) = (of_header, &header, columns > 1) {
        let key = key_column(header, label)?;
        return keyed(&lines, &Columns { key, label, head: Some(&header[key]) }, question);
    }
    let count = classes.len();
    let plain = Columns { key: 0, label: 1, head: header.as_ref().map(|names| names[0].as_str()) };
    match (columns, form) {
        (1, None | Some(VotesForm::Labels)) => {
            in_order(lines.iter().map(|line| (line.number, line.cells[0].as_str())), classes)
        }
        (_, None | Some(VotesForm::Labels)) if lines.len() == 1 && queries > 1 && columns == queries => {
            in_order(lines[0].cells.iter().map(|cell| (lines[0].number, cell.as_str())), classes)
        }
        (2, Some(VotesForm::Labels)) => keyed(&lines, &plain, question),
        (2, None) if count != 2 => keyed(&lines, &plain, question),
        (2, None) => two_columns(&lines, &plain, question),
        (found, None | Some(VotesForm::Histograms)) if found == count => histograms(&lines, queries),
        (found, _) => Err(AnswerError::columns(lines[0].number, found, count)),
    }
}

/// Returns the column of the queries: the one with the name `query` or `name`, or else the only other column beside the labels.
fn key_column(header: &[String], label: usize) -> Result<usize, AnswerError> {
    let named =
        |names: &[&str]| (0..header.len()).filter(|&at| names.contains(&header[at].as_str())).collect::<Vec<_>>();
    match (&named(&["query", "name"])[..], &named(&["label"])[..]) {
        ([key], [_]) => Ok(*key),
        ([], [_]) if header.len() == 2 => Ok(1 - label),
        _ => Err(AnswerError::Invalid("line 1: expected one column query or name, and one column label".to_owned())),
    }
}

fn in_order<'a>(cells: impl Iterator<Item = (usize, &'a str)>, classes: &Classes) -> Result<Vec<Vote>, AnswerError> {
    let read = |(query, (line, cell)): (usize, (usize, &str))| vote(cell, line, query, &query.to_string(), classes);
    cells.enumerate().map(read).collect()
}

/// Reads the vote on a query, which messages `show`.
fn vote(cell: &str, line: usize, query: usize, show: &str, classes: &Classes) -> Result<Vote, AnswerError> {
    if let Some(names) = classes.names() {
        // A class may have the name NA.
        return match classes.number(cell) {
            None if is_empty_vote(cell) => Ok(None),
            None => Err(AnswerError::Invalid(format!(
                "line {line}: the label of query {show} is not the name of a class of the round: expected {}; {UNSURE}",
                class_list(names)
            ))),
            label => Ok(label),
        };
    }
    if is_empty_vote(cell) {
        return Ok(None);
    }
    let number = number(cell).ok_or_else(|| {
        let max = classes.len() - 1;
        let expected = format_args!("the label of query {show}, the number of a class from 0 to {max}");
        AnswerError::Invalid(format!("line {line}: expected {expected}: {UNSURE}"))
    })?;
    label(query, number, classes.len())
}

fn histograms(lines: &[Line], queries: usize) -> Result<Vec<Vote>, AnswerError> {
    if lines.len() != queries {
        return Err(AnswerError::count(queries, lines.len()));
    }
    let read = |line: &Line| {
        let cell = |(column, cell): (usize, &String)| {
            let location = Location::Cell(line.number, column + 1);
            number(cell).ok_or_else(|| TableError::number(location, cell))
        };
        let counts: Vec<i64> = line.cells.iter().enumerate().map(cell).collect::<Result<_, _>>()?;
        one_hot(&counts, Location::Line(line.number))
    };
    lines.iter().map(read).collect()
}

/// Parses lines of two cells in a round of two classes: a query and its label, or a histogram.
fn two_columns(lines: &[Line], columns: &Columns<'_>, question: &Question<'_>) -> Result<Vec<Vote>, AnswerError> {
    let by_query = keyed(lines, columns, question);
    if matches!(columns.head, Some("query" | "name")) {
        return by_query;
    }
    if lines.iter().any(|line| line.cells.iter().any(|cell| number(cell).is_none())) {
        return by_query;
    }
    match (by_query, histograms(lines, question.queries)) {
        (Ok(labels), Ok(others)) if labels == others => Ok(labels),
        // The index of the third or a later query cannot occur in a one-hot histogram.
        (Ok(labels), Err(_)) if question.queries > 2 => Ok(labels),
        (Err(_), Ok(labels)) if question.queries > 2 => Ok(labels),
        (Err(error), Err(_)) if question.queries > 2 => Err(error),
        _ => Err(AnswerError::Undecided),
    }
}

struct Columns<'a> {
    key: usize,
    label: usize,
    /// The name of the query column, if columns have names.
    head: Option<&'a str>,
}

fn keyed(lines: &[Line], columns: &Columns<'_>, question: &Question<'_>) -> Result<Vec<Vote>, AnswerError> {
    let &Question { queries, classes, names, .. } = question;
    let keys = QueryKeys::choose(lines, columns, question)?;
    let mut found: Vec<Option<(usize, Vote)>> = vec![None; queries];
    for line in lines {
        let query = keys.query(line, &line.cells[columns.key], question)?;
        let label = vote(&line.cells[columns.label], line.number, query, &names.show(query), classes)?;
        if let Some((first, _)) = found[query] {
            let (line, query) = (line.number, names.show(query));
            return Err(AnswerError::Invalid(format!(
                "line {line}: query {query} has a label already, on line {first}"
            )));
        }
        found[query] = Some((line.number, label));
    }
    let labels = found.into_iter().enumerate();
    let missing = |query| AnswerError::Invalid(format!("no label for query {}: {UNSURE}", names.show(query)));
    labels.map(|(query, label)| Ok(label.ok_or_else(|| missing(query))?.1)).collect()
}

/// The meaning of the first cell of each line.
enum QueryKeys<'a> {
    Numbers,
    Names(HashMap<&'a str, usize>),
}

impl<'a> QueryKeys<'a> {
    /// Chooses by the column's name, or else the only meaning that fits all lines.
    fn choose(lines: &[Line], columns: &Columns<'_>, question: &Question<'a>) -> Result<Self, AnswerError> {
        let cell = |line: &Line| number_of(&line.cells[columns.key], question.queries);
        let numbers = || lines.iter().all(|line| cell(line).is_some());
        let names = match question.names {
            QueryNames::NoList => return Ok(Self::Numbers),
            QueryNames::Unreadable if columns.head == Some("query") && numbers() => return Ok(Self::Numbers),
            QueryNames::Unreadable => {
                let found = beginning(&lines[0].cells[columns.key]);
                return Err(AnswerError::UnreadableNames(format!("line {}: {found:?}", lines[0].number)));
            }
            QueryNames::Known(names) => names,
        };
        let indices: HashMap<&str, usize> = names.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
        match columns.head {
            Some("query") if numbers() => return Ok(Self::Numbers),
            Some("name") => return Ok(Self::Names(indices)),
            _ => {}
        }
        if !numbers() {
            return Ok(Self::Names(indices));
        }
        // A name that is also a number must refer to the query with that index.
        let is_other = |line: &&Line| {
            let index = indices.get(line.cells[columns.key].as_str());
            index.is_some_and(|index| Some(*index) != cell(line))
        };
        match lines.iter().find(is_other) {
            Some(line) => Err(AnswerError::Invalid(format!(
                "line {}: {:?} is the number of one query and the name of another: expected query,label or name,label as the \
                 first line",
                line.number, line.cells[columns.key]
            ))),
            None => Ok(Self::Numbers),
        }
    }

    fn query(&self, line: &Line, key: &str, question: &Question<'_>) -> Result<usize, AnswerError> {
        let query = match self {
            Self::Numbers => number_of(key, question.queries),
            Self::Names(indices) => indices.get(key).copied(),
        };
        query.ok_or_else(|| {
            let (line, found, last) = (line.number, beginning(key), question.queries - 1);
            let or = match question.names {
                QueryNames::NoList => "; names need --query-list",
                _ => ", or a name of --query-list",
            };
            AnswerError::Invalid(format!("line {line}: {found:?} is not a query: expected 0 to {last}{or}"))
        })
    }
}

fn number_of(cell: &str, queries: usize) -> Option<usize> {
    number(cell).and_then(|query| usize::try_from(query).ok()).filter(|query| *query < queries)
}

fn beginning(cell: &str) -> String {
    printable(&cell.chars().take(100).collect::<String>())
}

#[cfg(test)]
mod tests;
