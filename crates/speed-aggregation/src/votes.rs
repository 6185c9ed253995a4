//! The input of an aggregation in one process: every teacher's noisy integer votes.

use speed_core::VoteShape;

use crate::getters::debug_as;

/// Noisy votes of all teachers for all queries: `teachers x queries x classes` integers, each a vote (0 or 1) plus a
/// share of privacy noise. They are the teachers' secret and not printable. Alternatively the server adds the noise
/// ([`Self::with_server_noise`]). Answers may require a minimum number of votes ([`Self::with_threshold`]).
#[derive(Clone, PartialEq, Eq)]
pub struct NoisyVotes {
    shape: VoteShape,
    /// Bound on the total noise in one class, in votes.
    pub(crate) noise_bound: u64,
    /// The values of every message.
    values: Vec<i64>,
    /// The number of teachers of each party, if parties send messages for several teachers; otherwise empty.
    pub(crate) parties: Vec<u32>,
    /// The server's noise, queries x classes, if the server adds the noise.
    pub(crate) server_noise: Option<Vec<i64>>,
    /// The number of votes that an answer requires, if there is a threshold.
    pub(crate) threshold: Option<i64>,
    /// Whether the queries are checks.
    pub(crate) is_check: bool,
}

/// The reason why values are not noisy votes, with the found and the expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct VotesError(String);

impl NoisyVotes {
    /// Checks and wraps `values`, teacher by teacher, query by query, class by class. `noise_bound` bounds the absolute
    /// value of the noise in one class summed over teachers (in votes); it follows from the mechanism's tail.
    ///
    /// # Errors
    /// If there is only one class, the length is not the product of the dimensions, or a value is beyond `2^32`.
    pub fn new(shape: VoteShape, noise_bound: u64, values: Vec<i64>) -> Result<Self, VotesError> {
        if shape.classes() < 2 {
            return Err(VotesError(format!("{shape}: at least 2 classes are needed")));
        }
        // The limits of a shape keep this product at most 2^52.
        if values.len() != shape.teachers() * shape.counts() {
            return Err(VotesError(format!("{} values, expected those of {shape}", values.len())));
        }
        if let Some(bad) = values.iter().position(|value| value.unsigned_abs() > 1 << 32) {
            let classes = shape.classes();
            let (teacher, query, class) = (bad / shape.counts(), bad / classes % shape.queries(), bad % classes);
            return Err(VotesError(format!(
                "teacher {teacher}, query {query}, class {class}: the value is beyond 2^32 in absolute value"
            )));
        }
        Ok(Self {
            shape,
            noise_bound,
            values,
            parties: Vec::new(),
            server_noise: None,
            threshold: None,
            is_check: false,
        })
    }

    /// Groups consecutive teachers into parties, given the number of teachers of each. A party's message has the sums of its
    /// teachers' values. No parties leave every teacher a party.
    ///
    /// # Errors
    /// If a party has no teachers, or the numbers do not add up to the number of teachers.
    pub fn with_parties(self, parties: Vec<u32>) -> Result<Self, VotesError> {
        if parties.is_empty() {
            return Ok(self);
        }
        let found: u64 = parties.iter().map(|&teachers| u64::from(teachers)).sum();
        if parties.contains(&0) || found != self.shape.teachers() as u64 || !self.parties.is_empty() {
            return Err(VotesError(format!(
                "parties have {found} teachers together, expected those of {}, at least one in each party",
                self.shape
            )));
        }
        let (size, mut values, mut first) = (self.shape.counts(), Vec::new(), 0);
        for &teachers in &parties {
            let own = &self.values[first * size..][..teachers as usize * size];
            let sum = |value: usize| own[value..].iter().step_by(size).sum::<i64>();
            values.extend((0..size).map(sum));
            first += teachers as usize;
        }
        Ok(Self { values, parties, ..self })
    }

    /// Returns the number of messages: one of each party.
    pub(crate) fn messages(&self) -> usize {
        if self.parties.is_empty() { self.shape.teachers() } else { self.parties.len() }
    }

    /// Adds the server's privacy noise, queries x classes. It is all the noise: the teachers' values must then be votes
    /// only.
    ///
    /// # Errors
    /// If it does not have one value for each query and class, or has a value beyond `2^32`.
    pub fn with_server_noise(self, noise: Vec<i64>) -> Result<Self, VotesError> {
        if noise.len() != self.shape.counts() || noise.iter().any(|value| value.unsigned_abs() > 1 << 32) {
            return Err(VotesError(format!(
                "noise of the server: expected {} values within 2^32, one for each query and class",
                self.shape.counts()
            )));
        }
        Ok(Self { server_noise: Some(noise), ..self })
    }

    /// Sets the number of votes that the noisy maximum of a query must reach for an answer. The maximum is that of the
    /// sums of the values. The noise must allow a threshold
    /// ([`PrivacyNoise::check_threshold`](crate::PrivacyNoise::check_threshold)).
    #[must_use]
    pub fn with_threshold(self, votes: i64) -> Self {
        Self { threshold: Some(votes), ..self }
    }

    /// Turns the queries into checks: only whether the noisy maximum reaches `votes` is an outcome. Every teacher's values of
    /// a query are its votes plus one share of noise ([`check_values`](crate::check_values)), and so are those of a server.
    #[must_use]
    pub fn with_check(self, votes: i64) -> Self {
        Self { is_check: true, ..self.with_threshold(votes) }
    }

    /// Returns the votes on some of the queries, in the order given, with their noise.
    ///
    /// # Errors
    /// If there are no queries, or more than a table of votes can hold.
    ///
    /// # Panics
    /// If a query is not in the votes.
    pub fn of_queries(&self, queries: &[usize]) -> Result<Self, speed_core::ShapeError> {
        let (shape, classes) = (self.shape.with_queries(queries.len())?, self.shape.classes());
        let chosen = |table: &[i64]| -> Vec<i64> {
            queries.iter().flat_map(|query| table[query * classes..(query + 1) * classes].iter().copied()).collect()
        };
        Ok(Self {
            shape,
            noise_bound: self.noise_bound,
            values: (0..self.messages()).flat_map(|party| chosen(self.message(party))).collect(),
            parties: self.parties.clone(),
            server_noise: self.server_noise.as_deref().map(chosen),
            threshold: self.threshold,
            is_check: self.is_check,
        })
    }

    /// Returns the numbers of teachers, queries and classes.
    pub fn shape(&self) -> VoteShape {
        self.shape
    }

    /// Returns the values of the message of one party, queries x classes.
    ///
    /// # Panics
    /// If there is no such party.
    pub(crate) fn message(&self, party: usize) -> &[i64] {
        let size = self.shape.counts();
        &self.values[party * size..(party + 1) * size]
    }

    /// Returns the summed counts, queries x classes.
    pub(crate) fn counts(&self) -> Vec<i64> {
        let mut counts = self.server_noise.clone().unwrap_or_else(|| vec![0; self.shape.counts()]);
        for teacher in self.values.chunks_exact(counts.len()) {
            for (count, value) in counts.iter_mut().zip(teacher) {
                *count += value;
            }
        }
        counts
    }
}

debug_as!(NoisyVotes, this => "NoisyVotes({}, ..)", this.shape);

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(teachers: usize, queries: usize, classes: usize) -> VoteShape {
        VoteShape::new(teachers, queries, classes).expect("a shape")
    }

    #[test]
    fn a_party_sends_the_sum_of_its_teachers_values() {
        let shape = VoteShape::new(5, 1, 2).expect("a shape");
        let values = vec![1, 0, 2, -1, 0, 1, 5, 5, -3, 4];
        let votes = NoisyVotes::new(shape, 9, values).expect("valid");
        let counts = votes.counts();
        let parties = votes.clone().with_parties(vec![2, 3]).expect("five teachers");
        assert_eq!((parties.messages(), parties.shape().teachers()), (2, 5));
        assert_eq!([parties.message(0), parties.message(1)], [[3, -1].as_slice(), &[2, 10]]);
        assert_eq!(parties.counts(), counts);
        let some = parties.of_queries(&[0]).expect("one");
        assert!(some.message(1) == parties.message(1) && some.parties == [2, 3]);
        assert_eq!(votes.clone().with_parties(Vec::new()).as_ref().map(NoisyVotes::messages), Ok(5));
        for (refused, found) in [(vec![2, 2], 4), (vec![5, 0], 5), (vec![6], 6)] {
            let error = votes.clone().with_parties(refused).expect_err("refused").to_string();
            assert!(error.starts_with(&format!("parties have {found} teachers together, expected those of {shape}")));
        }
    }

    #[test]
    fn wrong_shapes_and_values_are_refused() {
        let refused = |shape, values| NoisyVotes::new(shape, 0, values).expect_err("refused").to_string();
        assert!(refused(shape(1, 1, 1), vec![0]).contains("at least 2 classes"));
        assert!(refused(shape(2, 2, 2), vec![0; 7]).starts_with("7 values, expected those of"));
        let largest = shape(VoteShape::MAX_TEACHERS, VoteShape::MAX_QUERIES, VoteShape::MAX_CLASSES);
        assert!(refused(largest, vec![0; 4]).starts_with("4 values, expected those of"));
        let mut values = vec![0; 2 * 3 * 4];
        values[12 + 2 * 4 + 3] = i64::MIN;
        assert!(refused(shape(2, 3, 4), values).starts_with("teacher 1, query 2, class 3:"));
        let votes = NoisyVotes::new(shape(2, 1, 2), 0, vec![0; 4]).expect("valid");
        for noise in [vec![0; 3], vec![0, i64::MIN]] {
            let error = votes.clone().with_server_noise(noise).expect_err("refused").to_string();
            assert!(error.starts_with("noise of the server: expected 2 values"), "{error}");
        }
        assert_eq!(votes.with_server_noise(vec![3, -2]).expect("valid").counts(), [3, -2]);
    }

    #[test]
    fn some_queries_keep_their_values_and_noise() {
        let values = (0..2 * 3 * 2).collect();
        let votes = NoisyVotes::new(shape(2, 3, 2), 9, values).expect("valid").with_threshold(4);
        let votes = votes.with_server_noise(vec![10, 20, 30, 40, 50, 60]).expect("valid");
        let some = votes.of_queries(&[2, 0]).expect("two queries");
        assert_eq!((some.message(0), some.message(1)), ([4, 5, 0, 1].as_slice(), [10, 11, 6, 7].as_slice()));
        assert_eq!(
            (some.server_noise.as_deref(), some.threshold, some.noise_bound),
            (Some(&[50, 60, 10, 20][..]), Some(4), 9)
        );
        let counts = votes.counts();
        assert_eq!(some.counts(), [&counts[4..], &counts[..2]].concat());
        assert!(votes.of_queries(&[]).is_err());
    }

    #[test]
    fn debug_shows_no_value() {
        let votes = NoisyVotes::new(shape(1, 1, 2), 0, vec![7777, 8888]).expect("valid");
        assert!(!format!("{votes:?}").contains("7777"));
    }
}
