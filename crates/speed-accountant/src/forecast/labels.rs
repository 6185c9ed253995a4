//! The forecast of the labels of several queries.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::answer::AnswerForecast;
use super::right_labels::RightLabels;
use super::votes::{Agreement, QueryVotes, VotesModel};
use crate::composition::MAX_QUERIES;
use crate::error::AccountError;
use crate::event::PrivacyEvent;

/// The forecast of the labels of some queries: how many of them are the right class.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Forecast {
    /// Number of queries.
    pub queries: usize,
    /// Mean share of right labels, from 0 to 1, over the noise.
    pub right_share: f64,
    /// The least number of right labels of the interval: fewer have a probability of at most 2.5 %.
    pub low: usize,
    /// The largest number of right labels of the interval: more have a probability of at most 2.5 %.
    pub high: usize,
    /// Probability that all labels are right.
    pub all_right: f64,
}

impl Forecast {
    /// Forecasts the labels of `queries` queries that `teachers` teachers answer as `model` expects. `event` has the noise that
    /// is added and perhaps a threshold; a query without an answer has no right label. The noise of different queries is
    /// independent.
    ///
    /// With a pilot of this number of queries, each query has the counts of one query of the pilot. In all other cases the
    /// counts of each query are drawn from the model at random.
    ///
    /// # Errors
    /// [`AccountError::NoQueries`] or [`AccountError::Queries`] for a number of queries out of range, and the errors of
    /// [`VotesModel::votes`] and [`AnswerForecast::new`].
    pub fn new(
        event: &PrivacyEvent,
        model: &VotesModel,
        teachers: usize,
        queries: usize,
    ) -> Result<Self, AccountError> {
        match queries {
            0 => return Err(AccountError::NoQueries),
            1..=MAX_QUERIES => {}
            found => return Err(AccountError::Queries { found }),
        }
        let wrong = wrong(&AnswerForecast::new(event)?, &model.votes(teachers)?)?;
        let right = if model.is_pilot_of(queries) {
            RightLabels::new(wrong.into_iter().map(|wrong| (wrong, 1)))
        } else {
            RightLabels::new([(mean(&wrong), queries)])
        };
        let (low, high) = right.interval();
        let forecast = Self { queries, right_share: right.share, low, high, all_right: right.all() };
        match [forecast.right_share, forecast.all_right].into_iter().find(|found| !found.is_finite()) {
            Some(found) => Err(AccountError::NotFinite { found }),
            None => Ok(forecast),
        }
    }
}

pub(super) fn right_share(event: &PrivacyEvent, model: &VotesModel, teachers: usize) -> Result<f64, AccountError> {
    Ok(1.0 - mean(&wrong(&AnswerForecast::new(event)?, &model.votes(teachers)?)?))
}

/// Returns for each query the probability that its label is not the right class. Equal queries are computed once.
fn wrong(argmax: &AnswerForecast, votes: &[QueryVotes]) -> Result<Vec<f64>, AccountError> {
    let mut known: HashMap<&QueryVotes, f64> = HashMap::new();
    votes
        .iter()
        .map(|votes| match known.get(votes) {
            Some(&wrong) => Ok(wrong),
            None => {
                let wrong = argmax.wrong(votes)?;
                known.insert(votes, wrong);
                Ok(wrong)
            }
        })
        .collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The forecasts of the two ways in which the teachers that do not agree may vote.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgreementForecast {
    /// The other votes are spread evenly over the other classes: expected.
    pub even: Forecast,
    /// The other votes are all for one class: pessimistic.
    pub one_rival: Forecast,
}

impl AgreementForecast {
    /// Forecasts both ways for an agreement of `teachers` teachers on `queries` queries of `classes` classes.
    ///
    /// # Errors
    /// The errors of [`Forecast::new`].
    pub fn new(
        event: &PrivacyEvent,
        (agreement, classes): (Agreement, usize),
        teachers: usize,
        queries: usize,
    ) -> Result<Self, AccountError> {
        let forecast = |model: VotesModel| Forecast::new(event, &model, teachers, queries);
        Ok(Self {
            even: forecast(VotesModel::even(agreement, classes)?)?,
            one_rival: forecast(VotesModel::one_rival(agreement, classes)?)?,
        })
    }
}

impl std::fmt::Display for Forecast {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { queries, low, high, .. } = self;
        write!(f, "{} % right labels (95 % interval {low} to {high} of {queries})", self.percent())
    }
}

impl std::fmt::Display for AgreementForecast {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { even, one_rival } = self;
        write!(f, "forecast: {even} if the other votes are spread evenly, {one_rival} if they are all for one class")
    }
}

impl Forecast {
    /// Forecasts the labels of a unanimous vote. No votes of `teachers` teachers give more right labels with this noise.
    ///
    /// # Errors
    /// The errors of [`Forecast::new`].
    pub fn unanimous(
        event: &PrivacyEvent,
        classes: usize,
        teachers: usize,
        queries: usize,
    ) -> Result<Self, AccountError> {
        Self::new(event, &VotesModel::even(Agreement::new(1.0)?, classes)?, teachers, queries)
    }

    /// Returns whether so few labels of a unanimous vote are right that the round is questionable: less than 95 %.
    pub fn loses_unanimity(&self) -> bool {
        self.right_share.is_nan() || self.right_share < 0.95
    }

    /// Returns the mean share of right labels in percent with two decimals, rounded down.
    pub(crate) fn percent(&self) -> String {
        format!("{:.2}", (self.right_share * 1e4 + 1e-9).floor() / 1e2)
    }
}
