//! The votes of a party's teachers on the queries of a round.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use speed_core::Vote;
use speed_core::vote_files::{
    AnswerError, Known, NamedQueries, QueryNames, Question, Table, VoteFile, VotesForm, parse_answer,
};
use zeroize::Zeroizing;

use crate::error::Refused;
use crate::file_kind::FileKind;
use crate::files::{read_input, refused, visible_files};
use crate::round_file::RoundFile;
use crate::round_queries;

/// The votes of a party, as its command states them.
pub(crate) struct PartyVotes<'a> {
    /// A file, or a folder with a file for each teacher.
    pub(crate) votes: &'a Path,
    /// The form of the votes, if stated.
    pub(crate) form: Option<VotesForm>,
    /// The list of queries, by whose names votes may refer to them.
    pub(crate) query_list: Option<&'a Path>,
}

impl PartyVotes<'_> {
    /// Reads how many of a party's teachers chose each class of each query (queries x classes, row-major). A teacher whose vote is
    /// empty chose none; all votes may be empty.
    ///
    /// The votes of one teacher are a file of one vote per query. Those of several are a folder with such a file for each
    /// teacher, or one table: labels (teachers x queries) or counts (queries x classes), which add up to at most the number of
    /// teachers on every query.
    pub(crate) fn counts(&self, file: &RoundFile, party: usize) -> Result<Vec<u32>, Refused> {
        let teachers = file.round().teachers_of(party);
        if teachers > 1 && !self.votes.is_dir() {
            return self.of_table(file, teachers);
        }
        let paths = if teachers > 1 { teacher_files(self.votes, teachers)? } else { vec![self.votes.to_path_buf()] };
        let classes = file.round().shape().classes();
        let mut list = self.query_list.map(|list| round_queries::read(list, file));
        let mut counts = vec![0; file.round().values()];
        for path in paths {
            let votes = Zeroizing::new(self.of_teacher(&path, file, &mut list)?);
            count(&votes, classes, &mut counts);
        }
        Ok(counts)
    }

    /// Reads one teacher's vote on each query. If the votes need a list that could not be read, takes its error.
    fn of_teacher(
        &self,
        path: &Path,
        file: &RoundFile,
        list: &mut Option<Result<NamedQueries, Refused>>,
    ) -> Result<Vec<Vote>, Refused> {
        let shape = file.round().shape();
        let question = Question {
            queries: shape.queries(),
            classes: file.classes(),
            form: self.form,
            names: match &*list {
                None => QueryNames::NoList,
                Some(Ok(list)) => QueryNames::Known(list.names()),
                Some(Err(_)) => QueryNames::Unreadable,
            },
        };
        let votes = Zeroizing::new(read_input(path, FileKind::VOTES)?);
        parse_answer(&votes, &question).map_err(|fault| match (fault, list.take()) {
            (AnswerError::Undecided, _) => Refused::usage(
                "the file of votes has lines of two numbers, which may be a query and its label or a histogram of two classes: give --form labels or \
                 --form histograms",
            ),
            // A list of queries may have any format, unless the votes refer to queries by name.
            (AnswerError::UnreadableNames { .. }, Some(Err(error))) => error,
            (fault, _) => refused(path, FileKind::VOTES, fault),
        })
    }

    /// Reads the votes of several teachers from one table.
    fn of_table(&self, file: &RoundFile, teachers: usize) -> Result<Vec<u32>, Refused> {
        let shape = file.round().shape();
        let bytes = Zeroizing::new(read_input(self.votes, FileKind::VOTES)?);
        let refuse = |fault: &dyn Display| refused(self.votes, FileKind::VOTES, fault);
        let (table, form) = match file.classes().names() {
            Some(names) => (Table::of_classes(&bytes, names), Some(VotesForm::Histograms)),
            None => (Table::parse(&bytes), self.form),
        };
        let table = table.map_err(|error| refuse(&AnswerError::from(error)))?;
        let known = Known { teachers: Some(teachers), queries: Some(shape.queries()), classes: Some(shape.classes()) };
        let votes = VoteFile::of_party(table, form, &known).map_err(|error| refuse(&error))?;
        let (expected, found) = (shape.queries(), votes.queries_in_file());
        if found != expected {
            return Err(refuse(&format_args!("{found} queries, the round has {expected}")));
        }
        let all: Vec<usize> = (0..expected).collect();
        let histograms = votes.histograms(&all).map_err(|error| refuse(&error))?;
        Ok(histograms.concat())
    }
}

/// Adds one teacher's votes to the counts of each class on each query.
pub(crate) fn count<V: Copy + Into<Vote>>(votes: &[V], classes: usize, counts: &mut [u32]) {
    for (query, vote) in votes.iter().enumerate() {
        let vote: Vote = (*vote).into();
        if let Some(label) = vote {
            counts[query * classes + usize::from(label)] += 1;
        }
    }
}

/// Returns the files of a folder, in the order of their names, if there is one for each teacher. Hidden files do not count.
fn teacher_files(folder: &Path, expected: usize) -> Result<Vec<PathBuf>, Refused> {
    let files = visible_files(folder)?;
    let found = files.len();
    if found == expected {
        Ok(files)
    } else {
        let expected = format!("expected one for each of the party's {expected} teachers");
        Err(Refused::input(folder)(format!("{found} files of votes, {expected}")))
    }
}
