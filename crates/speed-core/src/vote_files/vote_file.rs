//! The votes of all teachers, read from a table.

use std::fmt;

use crate::{Vote, VoteShape, Votes, VotesError, getters};

use crate::vote_files::form::{FormError, Known, VotesForm, decide};
use crate::vote_files::table::{EMPTY, Table};

/// The largest number of counts in memory: one gigabyte.
const MAX_COUNTS: usize = 1 << 28;

/// The checked votes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoteFile {
    table: Table,
    form: VotesForm,
    teachers: usize,
    queries: usize,
    queries_in_file: usize,
    classes: Option<usize>,
    teachers_from_sum: bool,
}

impl VoteFile {
    /// Reads a table as the votes of all teachers, of the given form, or of the only form that fits the known facts.
    ///
    /// # Errors
    /// As for [`VoteFile::of_party`], and if all votes are empty.
    pub fn new(table: Table, form: Option<VotesForm>, known: &Known) -> Result<Self, FormError> {
        let votes = Self::of_party(table, form, known)?;
        if votes.is_all_empty() {
            return Err(FormError::Invalid("all votes are empty: expected at least one vote for a class".to_owned()));
        }
        Ok(votes)
    }

    /// Reads a table as the votes of a party's teachers, which may all be empty: were they refused, a missing message would
    /// reveal it.
    ///
    /// # Errors
    /// If both forms are possible, or neither; if the sizes differ from the known ones; or if an entry or row is
    /// invalid. The error names the first invalid entry or row.
    pub fn of_party(table: Table, form: Option<VotesForm>, known: &Known) -> Result<Self, FormError> {
        check_classes(known)?;
        let is_given = form.is_some();
        let form = form.map_or_else(|| decide(&table, known), Ok)?;
        check_entries(&table, form)?;
        match form {
            VotesForm::Labels => Self::of_labels(table, known),
            VotesForm::Histograms => Self::of_histograms(table, known, is_given),
        }
    }

    fn of_labels(table: Table, known: &Known) -> Result<Self, FormError> {
        let form = VotesForm::Labels;
        let (teachers, queries_in_file) = (table.rows, table.columns);
        let queries = used(form, known, queries_in_file)?;
        if let Some(expected) = known.teachers.filter(|expected| *expected != teachers) {
            return Err(side(teachers, "teachers", form, expected));
        }
        let max = known.classes.unwrap_or(VoteShape::MAX_CLASSES) - 1;
        for teacher in 0..teachers {
            let row = &table.row(teacher)[..queries];
            let is_beyond = |&label: &i64| label != EMPTY && usize::try_from(label).map_or(true, |label| label > max);
            if let Some(query) = row.iter().position(is_beyond) {
                let location = table.location_of_entry(teacher, query);
                return Err(FormError::Invalid(format!(
                    "{location}: teacher {teacher} votes for class {} on query {query}, expected 0 to {max}",
                    row[query]
                )));
            }
        }
        let classes = known.classes;
        Ok(Self { table, form, teachers, queries, queries_in_file, classes, teachers_from_sum: false })
    }

    fn of_histograms(table: Table, known: &Known, is_given: bool) -> Result<Self, FormError> {
        let form = VotesForm::Histograms;
        let (queries_in_file, classes) = (table.rows, table.columns);
        let queries = used(form, known, queries_in_file)?;
        if !(2..=VoteShape::MAX_CLASSES).contains(&classes) {
            return Err(side(classes, "classes", form, format_args!("2 to {}", VoteShape::MAX_CLASSES)));
        }
        if let Some(expected) = known.classes.filter(|expected| *expected != classes) {
            return Err(side(classes, "classes", form, expected));
        }
        let sum = |row: usize| table.row(row).iter().map(|&count| count.unsigned_abs()).sum::<u64>();
        let teachers = known.teachers.map_or_else(|| sum(0), |teachers| teachers as u64);
        for row in 0..queries {
            let found = sum(row);
            // Smaller sums are empty votes only if the number of teachers is known: otherwise they may be damage.
            if found > teachers || (known.teachers.is_none() && found != teachers) {
                let sums = format!("{} sums to {found}, expected", table.location_of(row));
                if known.teachers.is_some() {
                    return Err(FormError::Invalid(format!("{sums} at most the number of teachers, {teachers}")));
                }
                // Entries too large for labels of a round made these histograms.
                let is_inferred = !is_given && known.classes.is_none();
                let next = if is_inferred { "; give the form for labels of more than 128 classes" } else { "" };
                let expected = format!("the number of teachers, {teachers} on {}", table.location_of(0));
                return Err(FormError::TeachersUnknown(format!("{sums} {expected}{next}")));
            }
        }
        let teachers = usize::try_from(teachers).unwrap_or(usize::MAX);
        if !(1..=VoteShape::MAX_TEACHERS).contains(&teachers) {
            return Err(side(teachers, "teachers", form, format_args!("1 to {}", VoteShape::MAX_TEACHERS)));
        }
        let (classes, teachers_from_sum) = (Some(classes), known.teachers.is_none());
        Ok(Self { table, form, teachers, queries, queries_in_file, classes, teachers_from_sum })
    }

    /// Returns whether no teacher votes for a class on a query that is used.
    fn is_all_empty(&self) -> bool {
        match self.form {
            VotesForm::Labels => {
                (0..self.teachers).all(|row| self.table.row(row)[..self.queries].iter().all(|&label| label == EMPTY))
            }
            VotesForm::Histograms => (0..self.queries).all(|row| self.table.row(row).iter().all(|&count| count == 0)),
        }
    }

    getters! {
        /// Returns the form of the file.
        form: VotesForm,
        /// Returns the number of teachers.
        teachers: usize,
        /// Returns whether the number of teachers is only the sum of every histogram. It is too small if a teacher's votes are
        /// empty on every query.
        has_teachers_from_sum: bool = teachers_from_sum,
        /// Returns the number of queries that are used.
        queries: usize,
        /// Returns the number of queries in the file.
        queries_in_file: usize,
        /// Returns the number of classes; `None` for labels with an unknown number of classes.
        classes: Option<usize>,
    }

    /// Returns the histograms of some queries.
    ///
    /// # Errors
    /// If these are labels with an unknown number of classes, or the counts exceed the memory limit.
    pub fn histograms(&self, queries: &[usize]) -> Result<Vec<Vec<u32>>, FormError> {
        let classes = self.limited(queries.len())?;
        let histogram = |&query: &usize| match self.form {
            VotesForm::Histograms => self.table.row(query).iter().map(|&count| count as u32).collect(),
            VotesForm::Labels => {
                let mut counts = vec![0; classes];
                let labels = (0..self.teachers).filter_map(|teacher| vote(self.table.row(teacher)[query]));
                labels.for_each(|label| counts[usize::from(label)] += 1);
                counts
            }
        };
        Ok(queries.iter().map(histogram).collect())
    }

    /// Returns the number of classes if histograms of this number of queries are within the memory limit.
    fn limited(&self, queries: usize) -> Result<usize, FormError> {
        let classes = self.classes.ok_or(FormError::ClassesUnknown)?;
        match queries.checked_mul(classes).filter(|counts| *counts <= MAX_COUNTS) {
            Some(_) => Ok(classes),
            None => Err(too_many(queries, classes)),
        }
    }

    /// Returns the votes on the queries that are used. Histograms are converted to votes of single teachers with the
    /// same sums.
    ///
    /// # Errors
    /// If these are labels with an unknown number of classes, or the shape is too large.
    pub fn votes(&self) -> Result<Votes, FormError> {
        let classes = self.limited(self.queries)?;
        let of_values = || -> Result<Votes, VotesError> {
            let shape = VoteShape::new(self.teachers, self.queries, classes)?;
            match self.form {
                VotesForm::Labels => {
                    let rows = (0..self.teachers).flat_map(|teacher| &self.table.row(teacher)[..self.queries]);
                    Votes::new(shape, rows.map(|&label| vote(label)).collect::<Vec<Vote>>())
                }
                VotesForm::Histograms => {
                    let counts = self.table.values[..self.queries * classes].iter().map(|&count| count as u32);
                    Votes::from_counts(shape, &counts.collect::<Vec<_>>())
                }
            }
        };
        of_values().map_err(|_| too_many(self.queries, classes))
    }
}

/// Formats the sizes and the form, as commands print them.
impl fmt::Display for VoteFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} teachers, {} queries", self.teachers, self.queries_in_file)?;
        if let Some(classes) = self.classes {
            write!(f, ", {classes} classes")?;
        }
        write!(f, " ({})", self.form)
    }
}

fn side(found: usize, side: &str, form: VotesForm, expected: impl fmt::Display) -> FormError {
    FormError::Invalid(format!("{found} {side} as {form}, expected {expected}"))
}

fn too_many(queries: usize, classes: usize) -> FormError {
    FormError::Invalid(format!("{queries} queries of {classes} classes exceed the memory limit"))
}

/// Returns the vote of a checked entry.
fn vote(label: i64) -> Vote {
    (label != EMPTY).then_some(label as u8)
}

fn check_classes(known: &Known) -> Result<(), FormError> {
    match known.classes.filter(|classes| !(2..=VoteShape::MAX_CLASSES).contains(classes)) {
        None => Ok(()),
        Some(found) => Err(FormError::Classes { found, max: VoteShape::MAX_CLASSES }),
    }
}

/// Checks that all entries are counts, or classes and empty votes: not negative otherwise, and not too large.
fn check_entries(table: &Table, form: VotesForm) -> Result<(), FormError> {
    let is_label = form == VotesForm::Labels;
    let is_wrong = |&value: &i64| u32::try_from(value).is_err() && !(is_label && value == EMPTY);
    match table.values.iter().position(is_wrong) {
        None => Ok(()),
        Some(at) => {
            let (location, found) = (table.location_of_entry(at / table.columns, at % table.columns), table.values[at]);
            Err(FormError::Invalid(match (is_label, found) {
                (true, ..0) => format!("{location}: expected 0 or more, or -1 for an empty vote, found {found}"),
                (false, EMPTY) => format!("{location}: expected a count of votes, found -1, NA or an empty cell"),
                (false, ..0) => format!("{location}: expected 0 or more, found {found}"),
                _ => format!("{location}: expected at most 4294967295, found {found}"),
            }))
        }
    }
}

fn used(form: VotesForm, known: &Known, found: usize) -> Result<usize, FormError> {
    let queries = known.queries.unwrap_or(found);
    if queries > found {
        return Err(side(found, "queries", form, format_args!("at least {queries}")));
    }
    Ok(queries)
}

#[cfg(test)]
mod tests {
    use npyz::WriterBuilder as _;

    use super::*;

    const ANY: Known = Known { teachers: None, queries: None, classes: None };

    fn table(rows: &[&[i64]]) -> Table {
        let mut bytes = Vec::new();
        let shape = [rows.len() as u64, rows[0].len() as u64];
        let mut writer =
            npyz::WriteOptions::new().default_dtype().shape(&shape).writer(&mut bytes).begin_nd().expect("memory");
        writer.extend(rows.concat()).expect("memory");
        writer.finish().expect("memory");
        Table::parse(&bytes).expect("a table")
    }

    fn form(rows: &[&[i64]], known: Known) -> Result<VotesForm, FormError> {
        VoteFile::new(table(rows), None, &known).map(|votes| votes.form())
    }

    #[test]
    fn debug_of_votes_shows_their_sizes_only() {
        let rows: &[&[i64]] = &[&[71, 82], &[93, 60]];
        let known = Known { teachers: Some(153), queries: Some(2), classes: Some(2) };
        let file = VoteFile::new(table(rows), None, &known).expect("histograms");
        for text in [format!("{:?}", table(rows)), format!("{file:?}")] {
            assert!(
                text.contains(", ..") && !rows.concat().iter().any(|vote| text.contains(&vote.to_string())),
                "{text}"
            );
        }
    }

    #[test]
    fn a_form_is_decided_only_where_the_other_is_impossible() {
        let undecided = |rows: &[&[i64]], known| assert!(matches!(form(rows, known), Err(FormError::Undecided(_))));
        // Unanimous teachers, disagreeing teachers, and histograms with and without an error.
        undecided(&[&[3, 0, 1], &[3, 0, 1]], ANY);
        undecided(&[&[3, 0, 1], &[3, 1, 1]], ANY);
        undecided(&[&[127, 0], &[0, 127]], ANY);
        assert_eq!(form(&[&[128, 0], &[0, 128]], ANY), Ok(VotesForm::Histograms));
        // Labels of unanimous teachers with more than 128 classes have equal sums.
        undecided(&[&[128, 0, 255], &[128, 0, 255]], ANY);
        assert_eq!(form(&[&[256, 0], &[256, 0]], ANY), Ok(VotesForm::Histograms));
        let refused = |rows: &[&[i64]], known| form(rows, known).expect_err("refused").to_string();
        assert!(refused(&[&[200, 0], &[0, 199]], ANY).contains("labels of more than 128 classes"));
        // Blank cells may also be missing counts; -1 and NA are empty votes.
        let of_text = |text: &str| {
            let table = Table::parse(text.as_bytes()).expect("a table");
            VoteFile::new(table, None, &ANY).map(|votes| votes.form())
        };
        assert!(matches!(of_text("3,,1\n3,1,\n"), Err(FormError::Undecided(_))));
        for text in ["3,NA,1\n3,1,\n", "3,,1\n3,1,-1\n"] {
            assert_eq!(of_text(text), Ok(VotesForm::Labels), "{text:?}");
        }
        // More columns than classes, and a single column.
        assert_eq!(form(&[&[1; 257], &[1; 257]], ANY), Ok(VotesForm::Labels));
        assert_eq!(form(&[&[1], &[0]], ANY), Ok(VotesForm::Labels));
        // Known numbers.
        let rows: [&[i64]; 2] = [&[3, 0, 1], &[2, 2, 0]];
        assert_eq!(form(&rows, Known { classes: Some(10), ..ANY }), Ok(VotesForm::Labels));
        assert_eq!(form(&rows, Known { classes: Some(3), ..ANY }), Ok(VotesForm::Histograms));
        assert_eq!(form(&rows, Known { teachers: Some(4), ..ANY }), Ok(VotesForm::Histograms));
        undecided(&rows, Known { teachers: Some(2), ..ANY });
        assert_eq!(form(&rows, Known { queries: Some(3), ..ANY }), Ok(VotesForm::Labels));
        assert!(refused(&rows, Known { queries: Some(4), ..ANY }).starts_with("expected 4 queries, found as labels"));
    }

    #[test]
    fn both_forms_of_the_same_votes_are_equal() {
        let known = Known { classes: Some(4), ..ANY };
        let labels = VoteFile::new(table(&[&[3, 0, 1], &[2, 0, 0]]), None, &known).expect("labels");
        assert_eq!(labels.to_string(), "2 teachers, 3 queries, 4 classes (labels)");
        let rows: [&[i64]; 3] = [&[0, 0, 1, 1], &[2, 0, 0, 0], &[1, 1, 0, 0]];
        let histograms = VoteFile::new(table(&rows), Some(VotesForm::Histograms), &ANY).expect("histograms");
        assert_eq!(labels.histograms(&[2, 0]), histograms.histograms(&[2, 0]));
        let counts = |votes: &Votes| [0, 1, 2].map(|query| votes.counts(query));
        let [one, other] = [labels, histograms].map(|file| file.votes().expect("votes"));
        assert_eq!(counts(&one), counts(&other));

        // The same with empty votes.
        let labels = VoteFile::new(table(&[&[3, -1, 1], &[2, -1, -1]]), None, &ANY);
        assert_eq!(labels.map(|file| file.form()), Ok(VotesForm::Labels), "histograms have no -1");
        let labels = VoteFile::new(table(&[&[3, -1, 1], &[2, -1, -1]]), None, &known).expect("labels");
        let of = Known { teachers: Some(2), ..ANY };
        let rows: [&[i64]; 3] = [&[0, 0, 1, 1], &[0, 0, 0, 0], &[0, 1, 0, 0]];
        let histograms = VoteFile::new(table(&rows), Some(VotesForm::Histograms), &of).expect("histograms");
        assert_eq!(labels.histograms(&[1, 2]).expect("counts"), [[0, 0, 0, 0], [0, 1, 0, 0]]);
        assert_eq!(labels.histograms(&[2, 1, 0]), histograms.histograms(&[2, 1, 0]));
        let [one, other] = [labels, histograms].map(|file| file.votes().expect("votes"));
        assert_eq!((counts(&one), one.empty()), (counts(&other), other.empty()));
        assert_eq!(one.teacher(1), [Some(2), None, None]);

        let unknown = VoteFile::new(table(&[&[3, 0, 1]]), Some(VotesForm::Labels), &ANY).expect("labels");
        assert_eq!(unknown.histograms(&[0]), Err(FormError::ClassesUnknown));
        assert_eq!(unknown.to_string(), "1 teachers, 3 queries (labels)");
    }

    #[test]
    fn votes_in_neither_form_are_refused_by_name() {
        let fails = |rows: &[&[i64]], form: VotesForm, known: Known| {
            VoteFile::new(table(rows), Some(form), &known).expect_err("refused").to_string()
        };
        let (labels, histograms) = (VotesForm::Labels, VotesForm::Histograms);
        let (three, queries) = (Known { teachers: Some(3), ..ANY }, |queries| Known { queries: Some(queries), ..ANY });
        let empty = "all votes are empty: expected at least one vote for a class";
        for (rows, form, known, words) in [
            (&[&[1, -2][..]][..], labels, ANY, "row 0, column 1: expected 0 or more, or -1 for an empty vote"),
            (&[&[1, -2]], histograms, ANY, "row 0, column 1: expected 0 or more, found -2"),
            (&[&[1, -1]], histograms, ANY, "row 0, column 1: expected a count of votes, found -1"),
            (&[&[-1, -1], &[-1, -1]], labels, ANY, empty),
            (&[&[0, 0], &[0, 0]], histograms, three, empty),
            // Only the queries that are used count.
            (&[&[-1, 1]], labels, queries(1), empty),
            (&[&[1, 1], &[1, 0]], histograms, ANY, "row 1 sums to 1, expected the number of teachers, 2"),
            (&[&[1, 5_000_000_000]], histograms, ANY, "at most 4294967295"),
            (&[&[1, 256]], labels, ANY, "class 256 on query 1, expected 0 to 255"),
            (&[&[1], &[1]], histograms, ANY, "1 classes as histograms, expected 2 to 256"),
            (&[&[0, 0]], histograms, ANY, "0 teachers as histograms"),
            (&[&[2, 2]], histograms, three, "row 0 sums to 4, expected at most the number of teachers, 3"),
            (&[&[1, 1]], labels, queries(3), "2 queries as labels, expected at least 3"),
            (&[&[1, 1]], labels, Known { classes: Some(1), ..ANY }, "1 classes, expected 2 to 256"),
        ] {
            let found = fails(rows, form, known);
            assert!(found.contains(words), "{words:?} is not in {found:?}");
        }
        // The votes of a party may all be empty.
        let known = Known { teachers: Some(2), queries: Some(2), classes: Some(3) };
        for (rows, form) in [(&[&[-1, -1][..], &[-1, -1]][..], labels), (&[&[0, 0, 0], &[0, 0, 0]], histograms)] {
            let votes = VoteFile::of_party(table(rows), Some(form), &known).expect("votes of a party");
            assert_eq!(votes.histograms(&[0, 1]).expect("counts"), [[0; 3]; 2], "{form}");
        }
        let undecided = VoteFile::new(table(&[&[1, 1]]), None, &ANY).expect_err("refused");
        assert!(matches!(undecided, FormError::Undecided(_)));
    }
}
