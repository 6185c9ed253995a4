//! The second questions of a row: parts of clusters to which its first student gives another class than their label.

use std::collections::BTreeMap;

use speed_core::{Votes, VotesError};
use speed_pool::Disagreement;

use super::{Queries, TeacherAnswers};
use crate::store::StageRemains;

/// The name of the kind of their choice, which is the prefix of its stages' names.
pub(in crate::stages) const KIND: &str = "queries-again";
/// The file of the questions.
pub(in crate::stages) const QUESTIONS: &str = "questions.json";

/// The second questions of every row, by the rows' places in the config.
#[derive(Default)]
pub(crate) struct QueriesAgain(pub(crate) BTreeMap<usize, RowAgain>);

/// The second questions of a row.
pub(crate) struct RowAgain {
    /// The disagreements of the first student with the clusters, in the order of the questions.
    pub(crate) disagreements: Vec<Disagreement>,
    /// The same questions as groups of images.
    pub(crate) queries: Queries,
    /// The teachers' answers; `None` if there are no questions.
    pub(in crate::stages) answers: Option<TeacherAnswers>,
}

impl RowAgain {
    /// Lets the teachers answer the questions with their votes on all images of the pool.
    ///
    /// # Errors
    /// If the votes have no such images.
    pub(in crate::stages) fn new(disagreements: Vec<Disagreement>, votes: &Votes) -> Result<Self, VotesError> {
        let queries = queries(&disagreements);
        let answers = (!disagreements.is_empty()).then(|| queries.all().answers(votes)).transpose()?;
        Ok(Self { disagreements, queries, answers: answers.map(TeacherAnswers) })
    }

    /// Returns the vote counts of every question.
    pub(crate) fn counts(&self) -> Vec<Vec<u32>> {
        self.answers.as_ref().map_or_else(Vec::new, |answers| answers.counts(self.disagreements.len()))
    }
}

/// Reads the second questions of a finished stage in `remains` as groups of images of a pool.
pub(in crate::stages) fn read(remains: &StageRemains, pool: usize) -> Option<Queries> {
    let questions: Vec<Disagreement> = serde_json::from_str(&remains.read(QUESTIONS)?).ok()?;
    are_of_pool(&questions, pool).then(|| queries(&questions))
}

/// Returns the questions as groups; the typical image of a group is the nearest one to its centre.
fn queries(questions: &[Disagreement]) -> Queries {
    Queries {
        images: questions.iter().map(|question| question.core[0]).collect(),
        groups: Some(questions.iter().map(|question| question.core.clone()).collect()),
    }
}

/// Returns whether the questions are groups of images of a pool, and no image is in two of them.
pub(in crate::stages) fn are_of_pool(questions: &[Disagreement], pool: usize) -> bool {
    let mut is_asked = vec![false; pool];
    let mut take = |&image: &usize| is_asked.get_mut(image).is_some_and(|asked| !std::mem::replace(asked, true));
    questions.iter().all(|question| !question.core.is_empty() && question.core.iter().all(&mut take))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_that_are_not_of_the_pool_are_refused() {
        let question =
            |core: &[usize]| Disagreement { cluster: 0, label: 1, predicted: 2, size: 30, core: core.to_vec() };
        assert!(are_of_pool(&[question(&[3, 1]), question(&[2])], 4) && are_of_pool(&[], 4));
        for questions in [vec![question(&[4])], vec![question(&[])], vec![question(&[1]), question(&[2, 1])]] {
            assert!(!are_of_pool(&questions, 4), "{questions:?}");
        }
    }
}
