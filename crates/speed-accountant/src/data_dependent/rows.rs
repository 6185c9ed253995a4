//! Rows of votes with the same cost, counted once.

use std::collections::HashMap;

use rayon::prelude::*;

use super::check::CheckRow;
use crate::assumption::NeighbouringRelation;
use crate::collusion::KnownRow;
use crate::composition::improved_epsilon;
use crate::moment_bound::MomentBound;
use crate::neighbour_losses::NeighbourLosses;
use crate::outcome::{Gaps, OutcomeBound};
use crate::sound::larger;
use crate::votes::CheckedCounts;

/// Rows are not worth their exact distributions if all of them together make up at most this part of the sum of
/// moments.
const NOT_WORTH_DISTRIBUTIONS: f64 = 1e-3;
/// Rows without distributions of their own hardly matter. Their `ln q` is rounded up to a multiple of this, and equal
/// ones are merged.
const MERGED: f64 = 0.25;

/// The votes of a row, and the number of rows with these votes.
pub(super) struct DistinctRow<'a> {
    pub(super) counts: Vec<u32>,
    gaps: &'a Gaps,
    pub(super) has_empty_vote: bool,
    times: usize,
}

/// The probability of another outcome of a row.
#[derive(Clone, Copy)]
pub(super) struct RowBound {
    pub(super) times: f64,
    /// `ln q` at the votes.
    pub(super) log_q: f64,
    /// `ln q` at the worst neighbour, if the way back counts; at least `log_q`.
    pub(super) log_q_back: f64,
}

/// A row with everything that determines its cost.
pub(super) struct CostRow {
    pub(super) bound: RowBound,
    pub(super) neighbours: Option<NeighbourLosses>,
    /// The neighbours that matter in the search for an order.
    pub(super) leaders: Option<NeighbourLosses>,
    pub(super) known: Option<KnownRow>,
    pub(super) check: Option<CheckRow>,
}

impl<'a> DistinctRow<'a> {
    /// Lists the distinct rows in the order of their first occurrence. If `in_order`, rows that differ in the order of
    /// their classes are distinct.
    pub(super) fn list(votes: &'a CheckedCounts<'_>, in_order: bool) -> Vec<Self> {
        let mut places: HashMap<Vec<u32>, usize> = HashMap::new();
        let mut distinct: Vec<Self> = Vec::new();
        for (gaps, counts) in votes.rows() {
            let mut key = counts.to_vec();
            if !in_order {
                key.sort_unstable();
            }
            let place = *places.entry(key.clone()).or_insert(distinct.len());
            match distinct.get_mut(place) {
                Some(same) => same.times += 1,
                None => {
                    let has_empty_vote = votes.has_empty_vote(counts);
                    distinct.push(Self { counts: key, gaps, has_empty_vote, times: 1 });
                }
            }
        }
        distinct
    }

    /// Returns the bound that always holds, for moments that do not depend on it.
    pub(super) fn without_bound(&self) -> RowBound {
        RowBound { times: self.times as f64, log_q: 0.0, log_q_back: 0.0 }
    }

    pub(super) fn bound(&self, outcome: &OutcomeBound, relation: NeighbouringRelation) -> RowBound {
        let log_q = outcome.log_q(self.gaps);
        let back = match relation {
            NeighbouringRelation::BothWays => outcome.log_q_of_neighbours(self.gaps, self.has_empty_vote),
            NeighbouringRelation::OneSided => log_q,
        };
        RowBound { times: self.times as f64, log_q, log_q_back: larger(back, log_q) }
    }
}

impl RowBound {
    pub(super) fn all(rows: &[DistinctRow<'_>], outcome: &OutcomeBound, relation: NeighbouringRelation) -> Vec<Self> {
        rows.par_iter().map(|row| row.bound(outcome, relation)).collect()
    }
}

impl CostRow {
    fn is_exact(&self) -> bool {
        self.neighbours.is_some() || self.known.is_some()
    }

    /// Merges the rows that are not worth their distributions.
    pub(super) fn with_the_rest_merged(rows: Vec<Self>) -> Vec<Self> {
        let up = |log_q: f64| (log_q / MERGED).ceil() * MERGED;
        let mut merged: Vec<Self> = Vec::new();
        let mut places: HashMap<([u64; 2], Option<Vec<u64>>), usize> = HashMap::new();
        for row in rows {
            if row.is_exact() {
                merged.push(row);
                continue;
            }
            let bound = RowBound { log_q: up(row.bound.log_q), log_q_back: up(row.bound.log_q_back), ..row.bound };
            let key = ([bound.log_q, bound.log_q_back].map(f64::to_bits), row.check.as_ref().map(CheckRow::key));
            let place = *places.entry(key).or_insert(merged.len());
            match merged.get_mut(place) {
                Some(same) => same.bound.times += bound.times,
                None => merged.push(Self { bound, ..row }),
            }
        }
        merged
    }
}

/// Says for each row whether it matters enough at one of the orders that are likely to be best.
pub(super) fn worth_distributions(moments: &MomentBound, rows: &[RowBound], delta: f64) -> Vec<bool> {
    let moments = |l: f64| -> Vec<f64> {
        let (at, without) = (moments.at(l), moments.without_votes(l));
        rows.iter().map(|row| row.times * at(row.log_q_back).min(without)).collect()
    };
    // The approximate best order, from one order in each octave.
    let octaves = (-4..=12).map(|octave| 2f64.powi(octave));
    let epsilon = |l: f64| improved_epsilon(moments(l).iter().sum(), l, delta);
    let best = octaves.map(|l| (epsilon(l), l)).min_by(|a, b| a.0.total_cmp(&b.0)).map_or(1.0, |best| best.1);
    let mut worth = vec![false; rows.len()];
    for factor in [1.0, 2.5] {
        let moments = moments(factor * best);
        let mut left = NOT_WORTH_DISTRIBUTIONS * moments.iter().sum::<f64>();
        let mut rising: Vec<usize> = (0..rows.len()).collect();
        rising.sort_by(|&i, &j| moments[i].total_cmp(&moments[j]));
        for i in rising {
            left -= moments[i];
            worth[i] |= left.is_nan() || left < 0.0;
        }
    }
    worth
}
