//! The number of queries for a target epsilon.

use speed_mechanism::HonestRatio;

use super::labels::Forecast;
use super::votes::{Agreement, VotesModel};
use crate::account::Account;
use crate::calibrate::{Target, calibrate_coins_from, calibrate_coins_of_teacher};
use crate::error::AccountError;
use crate::event::PrivacyEvent;

/// The tried numbers of queries, in multiples of the number of classes.
const MULTIPLES: [usize; 6] = [1, 2, 5, 10, 20, 50];
/// The share of right labels with which the largest number of queries is chosen.
const ENOUGH: f64 = 0.99;

/// A number of queries with its binomial noise.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct QueriesChoice {
    /// Coins of one teacher for each class and query.
    pub coins: u64,
    /// The pessimistic forecast of the labels; it has the number of queries.
    pub forecast: Forecast,
    /// The cost of all queries: at most the target.
    pub account: Account,
}

impl Forecast {
    /// Returns whether at least 99 % of the labels are expected to be right, with which [`choose_queries`] is content.
    #[must_use]
    pub fn has_enough(&self) -> bool {
        self.right_share >= ENOUGH
    }

    /// Returns the mean number of right labels.
    fn expected(&self) -> f64 {
        self.right_share * self.queries as f64
    }

    /// Returns whether this forecast of more queries is preferred to another one.
    fn is_better_than(&self, other: &Self) -> bool {
        self.has_enough() || (!other.has_enough() && self.expected() > other.expected())
    }
}

/// Chooses a number of queries and the binomial noise of `teachers` teachers for a target epsilon: among 1, 2, 5, 10, 20 and 50
/// queries for each class, at most `most` in all, the largest number with at least 99 % right labels in the pessimistic case
/// of `agreement`, else the number with the most right labels, in a tie the smallest. Only public values enter.
///
/// # Errors
/// [`AccountError::TooFewQueries`] if `most` is less than the number of classes, [`AccountError::NotEnoughNoise`] if no number of
/// queries meets the target, and the errors of [`Forecast::new`].
pub fn choose_queries(
    (agreement, classes): (Agreement, usize),
    teachers: usize,
    most: usize,
    target: &Target,
) -> Result<QueriesChoice, AccountError> {
    let model = VotesModel::one_rival(agreement, classes)?;
    let mut best: Option<QueriesChoice> = None;
    // The number of queries before, and the coins of one teacher.
    let mut before: Option<(usize, u64)> = None;
    for queries in MULTIPLES.map(|times| times.saturating_mul(classes)).into_iter().filter(|number| *number <= most) {
        let calibration = match before {
            // Epsilon depends on little more than queries divided by coins.
            Some((fewer, coins)) => {
                calibrate_coins_from(coins * queries as u64 / fewer as u64, teachers, queries, target)
            }
            None => calibrate_coins_of_teacher(teachers, queries, target),
        };
        let calibration = match (calibration, &best) {
            (Ok(calibration), _) => calibration,
            // More queries would need more noise than can be drawn.
            (Err(AccountError::NotEnoughNoise { .. }), Some(_)) => break,
            (Err(error), _) => return Err(error),
        };
        let coins = (calibration.scale / teachers as f64) as u64;
        before = Some((queries, coins));
        // The labels have the noise of all teachers.
        let event = PrivacyEvent::new(calibration.account.mechanism, HonestRatio::ALL);
        let forecast = Forecast::new(&event, &model, teachers, queries)?;
        if best.as_ref().is_none_or(|best| forecast.is_better_than(&best.forecast)) {
            best = Some(QueriesChoice { coins, forecast, account: calibration.account });
        }
    }
    best.ok_or(AccountError::TooFewQueries { found: most, min: classes })
}
