//! The check before a query, at given votes: both outcomes exactly, at the votes and at every neighbour.
//!
//! A query is checked, and answered if it reaches the threshold. Let `P` be the probabilities at the votes, `P'` those
//! at a neighbour, and `m` the moment of the answer. The moment of both steps together is
//! `P[no] (P[no] / P'[no])^l + P[reached] (P[reached] / P'[reached])^l m`, because the noise of the steps is
//! independent and the answer is given only after "reached".
//!
//! The largest count and its possible moves are exact: it grows if another class has a vote or a vote is empty, and falls
//! if only one class has it, because a vote for that class may become empty. docs/privacy.md, "Check", says why the moments are
//! added up over all checked queries.

use speed_mechanism::{Gaussian, Lattice, Mechanism};

use crate::event::PrivacyEvent;
use crate::lattice_noise::LatticeNoise;
use crate::noise_case::{NoiseCase, OtherNoise};
use crate::query_group::QueryGroup;
use crate::sound::larger;
use crate::three_answers::{Answer, Excess, LONGEST, ROUNDING};

/// The checks of all rows, in one case of the other teachers' noise.
pub(super) struct CheckCase {
    event: PrivacyEvent,
    threshold: f64,
    /// `None` if the bound for any votes is used.
    tails: Option<Tails>,
    /// Outcomes that are less likely are left out.
    removed: f64,
}

enum Tails {
    Integers(Lattice),
    Gaussian(Gaussian),
}

/// The check of one row: both outcomes, reached first, at the votes and at each neighbour.
#[derive(Clone)]
pub(super) struct CheckRow {
    moves: Vec<[Answer; 2]>,
    rounding: f64,
    removed: f64,
}

impl CheckCase {
    /// Prepares the checks of rows of votes. Known noise is a known shift of the mark, so then the bound for any votes is
    /// used; also for continuous Laplace noise, and if a threshold is too far from the votes for a table.
    pub(super) fn new(check: &PrivacyEvent, removed: f64, case: &NoiseCase, teachers: u64) -> Self {
        let event = check.with_tau(case.event.tau());
        let threshold = event.threshold().unwrap_or(0.0);
        let reach = threshold.abs() + teachers as f64 + 4.0;
        let tails = match (case.others, event.mechanism()) {
            (OtherNoise::Known(_), _) => None,
            (OtherNoise::Missing, Mechanism::Gaussian { sigma }) => {
                Some(Tails::Gaussian(Gaussian::of_class(sigma, event.tau())))
            }
            (OtherNoise::Missing, _) if reach > LONGEST as f64 => None,
            (OtherNoise::Missing, _) => {
                LatticeNoise::new(&event).map(|noise| Tails::Integers(noise.of_class(reach as usize)))
            }
        };
        Self { event, threshold, tails, removed }
    }

    /// Returns the data-independent moment of order `l` of a check, if rows have none of their own.
    pub(super) fn without_votes(&self, l: f64) -> Option<f64> {
        let group = || QueryGroup::new(self.event, usize::MAX, 1);
        self.tails.is_none().then(|| group().moment(l, self.removed))
    }

    pub(super) fn row(&self, counts: &[u32], has_empty_vote: bool) -> Option<CheckRow> {
        let tails = self.tails.as_ref()?;
        let largest = counts.iter().copied().max().unwrap_or(0);
        let mark = |count: f64| self.threshold - count;
        let at = |mark: f64| tails.log_outcomes(mark);
        let here = at(mark(f64::from(largest)));
        let moves: Vec<[Answer; 2]> = largest_at_neighbours(counts, has_empty_vote)
            .map(|count| {
                let there = at(mark(count));
                [0, 1].map(|i| Answer::of_logarithms(here[i], there[i]))
            })
            .collect();
        let length = here.iter().fold(0.0, |most, log: &f64| if log.is_finite() { log.abs().max(most) } else { most });
        let length = length.max(mark(0.0).abs() + f64::from(largest));
        Some(CheckRow { moves, rounding: ROUNDING.0 + ROUNDING.1 * length, removed: self.removed })
    }
}

/// Returns the largest counts at all neighbours; at some of them it stays the same.
fn largest_at_neighbours(counts: &[u32], has_empty_vote: bool) -> impl Iterator<Item = f64> {
    let largest = counts.iter().copied().max().unwrap_or(0);
    let at_top = counts.iter().filter(|count| **count == largest).count();
    // A vote of another class, or an empty one, moves to the largest.
    let up = has_empty_vote || at_top > 1 && largest > 0 || counts.iter().any(|count| *count > 0 && *count != largest);
    // A vote for the only largest count becomes empty.
    let down = at_top == 1;
    let largest = f64::from(largest);
    [Some(largest), up.then_some(largest + 1.0), down.then_some(largest - 1.0)].into_iter().flatten()
}

impl Tails {
    /// Returns the logarithms of the probabilities that the noise reaches a mark, and that it does not.
    fn log_outcomes(&self, mark: f64) -> [f64; 2] {
        match self {
            Self::Integers(lattice) => [lattice.log_survival(mark as i64), lattice.log_below(mark as i64 - 1)],
            Self::Gaussian(noise) => [noise.log_survival(mark), noise.log_survival(-mark)],
        }
    }
}

impl CheckRow {
    pub(super) fn key(&self) -> Vec<u64> {
        self.moves.iter().flatten().flat_map(|answer| [answer.here.to_bits(), answer.there.to_bits()]).collect()
    }

    /// Adds the check to the moments of order `l` of the answer, from the votes to a neighbour's and back.
    pub(super) fn with_answer(&self, l: f64, (there, back): (f64, f64)) -> (f64, f64) {
        (self.one_way(l, there, false), self.one_way(l, back, true))
    }

    fn one_way(&self, l: f64, answer: f64, reversed: bool) -> f64 {
        let excess = Excess { l, removed: self.removed, rounding: self.rounding };
        let answered = answer.exp_m1();
        if answered == f64::INFINITY {
            return answered;
        }
        let of = |outcomes: &[Answer; 2]| {
            let [reached, no] = outcomes.map(|outcome| if reversed { outcome.reversed() } else { outcome });
            reached.excess(&excess) + no.excess(&excess) + reached.moment(&excess) * answered
        };
        (self.moves.iter().map(of).fold(0.0, larger) * (1.0 + 1e-11)).ln_1p()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::neighbours::neighbours;

    #[test]
    fn the_largest_count_moves_as_it_does_at_all_neighbours() {
        let all = [
            vec![5, 0, 0],
            vec![4, 1, 0],
            vec![3, 2, 0],
            vec![2, 2, 1],
            vec![3, 2],
            vec![2, 2],
            vec![5, 0],
            vec![1, 1, 1],
            vec![1, 0],
            vec![2, 1, 1],
            vec![3, 1, 1],
            vec![1, 1],
            vec![0, 0],
        ];
        for (counts, empty) in all.iter().flat_map(|counts| [(counts, 0), (counts, 1)]) {
            let own: Vec<i64> = counts.iter().map(|&count: &u32| count.into()).collect();
            let others = neighbours(&own, own.iter().sum::<i64>() + i64::from(empty));
            let largest = |row: &Vec<i64>| row.iter().copied().max().expect("classes") as u32;
            let mut expected: Vec<u32> = others.iter().chain([&own]).map(largest).collect();
            expected.sort_unstable();
            expected.dedup();
            let mut found: Vec<u32> = largest_at_neighbours(counts, empty > 0).map(|count| count as u32).collect();
            found.sort_unstable();
            assert_eq!(found, expected, "{counts:?}, {empty} empty");
        }
    }
}
