//! Vote counts as they are expected before the teachers vote.

use serde::{Deserialize, Serialize};
use speed_mechanism::{HonestRatio, MechanismError, NoiseShare};

use crate::error::AccountError;

/// The largest number of teachers of a forecast.
pub const MAX_TEACHERS: usize = NoiseShare::MAX_TEACHERS;

/// Expected share of the teachers that vote for the right class, above 0 and at most 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Agreement(f64);

impl Agreement {
    /// Checks and wraps a share.
    ///
    /// # Errors
    /// [`AccountError::Invalid`] if it is not a number above 0 and at most 1.
    pub fn new(share: f64) -> Result<Self, AccountError> {
        if share > 0.0 && share <= 1.0 {
            return Ok(Self(share));
        }
        let text = format!("agreement is {share:?}, but it must be a share of the teachers above 0 and at most 1");
        Err(AccountError::Invalid(text))
    }

    /// Returns the value.
    pub fn get(self) -> f64 {
        self.0
    }

    /// Returns the number of `teachers` teachers that vote for the right class, rounded down. A product within rounding
    /// error of an integer counts as that integer.
    pub(crate) fn votes_of(self, teachers: usize) -> usize {
        HonestRatio::new(self.0).and_then(|ratio| ratio.noisy_teachers(teachers)).unwrap_or(0)
    }
}

impl TryFrom<f64> for Agreement {
    type Error = AccountError;

    fn try_from(share: f64) -> Result<Self, Self::Error> {
        Self::new(share)
    }
}

impl From<Agreement> for f64 {
    fn from(agreement: Agreement) -> Self {
        agreement.0
    }
}

/// The vote counts of a query, and its right class.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QueryVotes {
    counts: Vec<u32>,
    right: usize,
}

impl QueryVotes {
    /// Creates the votes of a query: a count for each class, and the index of the right class.
    ///
    /// # Errors
    /// [`AccountError::TooFewClasses`] for fewer than two classes, [`AccountError::Invalid`] if the right class is not one
    /// of them.
    pub fn new(counts: Vec<u32>, right: usize) -> Result<Self, AccountError> {
        match counts.len() {
            found @ ..=1 => Err(AccountError::TooFewClasses { row: 0, found }),
            classes if right >= classes => Err(AccountError::Invalid(format!(
                "right class is {right}, but there are {classes} classes, counted from 0"
            ))),
            _ => Ok(Self { counts, right }),
        }
    }

    /// Creates the votes of a query whose right class is the class with the most votes, in a tie the lowest one.
    ///
    /// # Errors
    /// [`AccountError::TooFewClasses`] for fewer than two classes.
    pub(crate) fn with_plurality(counts: Vec<u32>) -> Result<Self, AccountError> {
        let most = counts.iter().max();
        let right = counts.iter().position(|count| Some(count) == most).unwrap_or(0);
        Self::new(counts, right)
    }

    /// Returns the count of each class, in votes.
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// Returns the index of the right class.
    pub fn right(&self) -> usize {
        self.right
    }

    /// Returns the distances of the right class from each lower class, in votes. Lower classes win ties.
    pub(super) fn gaps_before(&self) -> impl Iterator<Item = i64> + '_ {
        self.gaps(&self.counts[..self.right])
    }

    /// Returns the same for each higher class. Higher classes lose ties.
    pub(super) fn gaps_after(&self) -> impl Iterator<Item = i64> + '_ {
        self.gaps(&self.counts[self.right + 1..])
    }

    fn gaps<'a>(&self, others: &'a [u32]) -> impl Iterator<Item = i64> + 'a {
        let right = i64::from(self.counts[self.right]);
        others.iter().map(move |&count| right - i64::from(count))
    }

    /// Returns the counts of `teachers` teachers with the same shares of `found` teachers: each rounded down, and the rest of
    /// the votes to the largest remainders, in a tie to the lowest class and last to empty votes.
    fn scaled(&self, found: usize, teachers: usize) -> Self {
        if found == teachers {
            return self.clone();
        }
        let (found, wanted) = (found as u128, teachers as u128);
        let empty = found - self.counts.iter().map(|&count| u128::from(count)).sum::<u128>();
        // Empty votes are scaled like those for one more class, so that they stay empty.
        let all = self.counts.iter().map(|&count| u128::from(count)).chain([empty]);
        let products = all.map(|count| count * wanted);
        let mut counts: Vec<u32> = products.clone().map(|product| (product / found) as u32).collect();
        let mut remainders: Vec<(u128, usize)> =
            products.zip(0..).map(|(product, class)| (product % found, class)).collect();
        remainders.sort_by_key(|&(remainder, class)| (std::cmp::Reverse(remainder), class));
        let given: usize = counts.iter().map(|&count| count as usize).sum();
        for &(_, class) in remainders.iter().take(teachers - given) {
            counts[class] += 1;
        }
        counts.truncate(self.counts.len());
        Self { counts, right: self.right }
    }
}

/// The expected votes on the queries.
#[derive(Clone, Debug, PartialEq)]
pub struct VotesModel(Kind);

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Even { agreement: Agreement, classes: usize },
    OneRival { agreement: Agreement, classes: usize },
    Pilot { teachers: usize, votes: Vec<QueryVotes> },
}

impl VotesModel {
    /// Creates the expected case of an agreement: the votes of the other teachers are spread evenly over the other classes.
    /// All classes are equally often the right one. If the votes cannot be spread evenly, the classes that follow the right
    /// class get one more.
    ///
    /// # Errors
    /// [`AccountError::TooFewClasses`] for fewer than two classes.
    pub fn even(agreement: Agreement, classes: usize) -> Result<Self, AccountError> {
        check_classes(classes)?;
        Ok(Self(Kind::Even { agreement, classes }))
    }

    /// Creates the pessimistic case of an agreement: the votes of the other teachers are all for one class, and the right
    /// class loses every tie.
    ///
    /// # Errors
    /// [`AccountError::TooFewClasses`] for fewer than two classes.
    pub fn one_rival(agreement: Agreement, classes: usize) -> Result<Self, AccountError> {
        check_classes(classes)?;
        Ok(Self(Kind::OneRival { agreement, classes }))
    }

    /// Creates the votes of a public pilot with `teachers` teachers: one histogram for each query. The class with the most
    /// votes is the right one. The votes that a histogram lacks are empty.
    ///
    /// # Errors
    /// [`AccountError::NoQueries`] for no histogram, [`AccountError::TooFewClasses`] or [`AccountError::Invalid`] for a
    /// histogram that is not one of votes of these teachers on the same classes.
    pub fn pilot(histograms: Vec<Vec<u32>>, teachers: usize) -> Result<Self, AccountError> {
        let Some(expected) = histograms.first().map(Vec::len) else { return Err(AccountError::NoQueries) };
        let query = |(row, counts): (usize, Vec<u32>)| match counts.len() {
            found @ ..=1 => Err(AccountError::TooFewClasses { row, found }),
            found if found != expected => Err(AccountError::classes(row, found, expected)),
            _ => match counts.iter().map(|&count| u64::from(count)).sum::<u64>() {
                0 => Err(AccountError::no_votes(row)),
                found if found > teachers as u64 => Err(AccountError::too_many_votes(row, found, teachers)),
                _ => QueryVotes::with_plurality(counts),
            },
        };
        let votes = histograms.into_iter().enumerate().map(query).collect::<Result<_, _>>()?;
        Ok(Self(Kind::Pilot { teachers, votes }))
    }

    pub(super) fn is_pilot_of(&self, queries: usize) -> bool {
        matches!(&self.0, Kind::Pilot { votes, .. } if votes.len() == queries)
    }

    /// Returns the counts of `teachers` teachers: equally likely votes of a query, or the votes on each query of the pilot.
    /// The pilot's counts are scaled from its number of teachers to this one.
    ///
    /// # Errors
    /// [`MechanismError::Teachers`] if the number of teachers is not from 1 to [`MAX_TEACHERS`].
    pub fn votes(&self, teachers: usize) -> Result<Vec<QueryVotes>, AccountError> {
        if !(1..=MAX_TEACHERS).contains(&teachers) {
            return Err(MechanismError::Teachers { found: teachers, max: MAX_TEACHERS }.into());
        }
        Ok(match &self.0 {
            Kind::Even { agreement, classes } => {
                (0..*classes).map(|right| even_votes(agreement.votes_of(teachers), teachers, *classes, right)).collect()
            }
            Kind::OneRival { agreement, classes } => {
                let (right, votes) = (classes - 1, agreement.votes_of(teachers));
                let mut counts = vec![0; *classes];
                counts[0] = (teachers - votes) as u32;
                counts[right] = votes as u32;
                vec![QueryVotes { counts, right }]
            }
            Kind::Pilot { teachers: found, votes } => {
                votes.iter().map(|votes| votes.scaled(*found, teachers)).collect()
            }
        })
    }
}

/// Returns the counts of `teachers` teachers of which `votes` vote for the class `right`.
fn even_votes(votes: usize, teachers: usize, classes: usize, right: usize) -> QueryVotes {
    let (each, more) = ((teachers - votes) / (classes - 1), (teachers - votes) % (classes - 1));
    let mut counts = vec![each as u32; classes];
    counts[right] = votes as u32;
    for following in 1..=more {
        counts[(right + following) % classes] += 1;
    }
    QueryVotes { counts, right }
}

fn check_classes(found: usize) -> Result<(), AccountError> {
    if found < 2 { Err(AccountError::TooFewClasses { row: 0, found }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_teachers_vote_and_the_agreement_is_rounded_down() {
        let agreement = Agreement::new(0.7).expect("valid");
        assert_eq!((agreement.votes_of(250), agreement.votes_of(11), agreement.votes_of(1)), (175, 7, 0));
        for votes in VotesModel::even(agreement, 4).expect("valid").votes(250).expect("votes") {
            assert_eq!(votes.counts()[votes.right()], 175);
            assert_eq!(votes.counts().iter().sum::<u32>(), 250);
            let mut others: Vec<u32> = votes.counts().to_vec();
            others.remove(votes.right());
            assert!(others.iter().all(|count| *count == 25), "{votes:?}");
        }
        let uneven = VotesModel::even(agreement, 4).expect("valid").votes(11).expect("votes");
        assert_eq!(uneven[2].counts(), [1, 1, 7, 2]);
        let pessimistic = VotesModel::one_rival(agreement, 4).expect("valid").votes(11).expect("votes");
        assert_eq!((pessimistic[0].counts(), pessimistic[0].right()), (&[4, 0, 0, 7][..], 3));
        for refused in [0.0, -0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(matches!(Agreement::new(refused), Err(AccountError::Invalid(_))), "{refused}");
        }
    }

    #[test]
    fn a_pilot_is_scaled_without_losing_votes() {
        let pilot = VotesModel::pilot(vec![vec![3, 5, 2], vec![4, 4, 2], vec![0, 0, 10]], 10).expect("a pilot");
        for teachers in [1, 7, 10, 11, 250, 999_999] {
            let votes = pilot.votes(teachers).expect("votes");
            assert_eq!(votes.iter().map(QueryVotes::right).collect::<Vec<_>>(), [1, 0, 2]);
            for votes in votes {
                assert_eq!(votes.counts().iter().sum::<u32>() as usize, teachers);
            }
        }
        assert_eq!(pilot.votes(10).expect("votes")[0].counts(), [3, 5, 2]);
        assert_eq!(pilot.votes(7).expect("votes")[0].counts(), [2, 4, 1]);
        // Empty votes stay empty: half of the teachers do not vote.
        let empty = VotesModel::pilot(vec![vec![3, 0, 2]], 10).expect("a pilot");
        for (teachers, counts) in [(10, [3, 0, 2]), (20, [6, 0, 4]), (5, [2, 0, 1]), (1, [0, 0, 0])] {
            assert_eq!(empty.votes(teachers).expect("votes")[0].counts(), counts, "{teachers}");
        }
        assert!(matches!(VotesModel::pilot(Vec::new(), 10), Err(AccountError::NoQueries)));
        assert_eq!(VotesModel::pilot(vec![vec![1, 2], vec![0, 0]], 3).err(), Some(AccountError::no_votes(1)));
        assert!(matches!(
            VotesModel::pilot(vec![vec![1, 2], vec![1]], 3),
            Err(AccountError::TooFewClasses { row: 1, .. })
        ));
        let more =
            VotesModel::pilot(vec![vec![1, 2], vec![2, 2]], 3).expect_err("more votes than teachers").to_string();
        assert_eq!(more, "row 1 has 4 votes, but there are 3 teachers, who vote at most once in every query");
        assert!(pilot.votes(0).is_err() && pilot.votes(MAX_TEACHERS + 1).is_err());
    }
}
