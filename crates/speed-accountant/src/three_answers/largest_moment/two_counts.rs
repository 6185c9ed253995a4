//! Two noisy counts between which a party moves all of its votes, for log-concave noise on the integers.
//!
//! An answer reveals no more than the two counts. They bound noise that is narrow for the party, for which the marks of
//! the answer are not examined. The largest moment is that of a move of all votes from one class to another
//! ([`super::LargestMoment`]), or from or to none: then one of the two counts does not move. The moment of what is kept of
//! the other one is not below 1 by more than [`super::log_of_rest`] has.

use std::sync::Arc;

use super::integers::{LONGEST, ROUNDING};
use super::part_of_party;
use crate::event::PrivacyEvent;
use crate::lattice_noise::LatticeNoise;
use crate::logarithms::log_sum_exp;
use crate::memo::Memo;
use crate::sound::larger;

/// The noise of two counts, for a party of several teachers.
pub(crate) struct TwoCounts {
    /// For every noise that is kept: the logarithms of its probability, and of that probability over the one a party's
    /// votes further up and further down.
    kept: Vec<(f64, [f64; 2])>,
    rounding: f64,
    ends_early: bool,
    known: Memo<1, f64>,
}

impl TwoCounts {
    /// Returns the counts of an event whose neighbours differ in several teachers. Answers may be left out that cost
    /// `2 removed` of delta for each query. Returns `None` for other events, for checks, for continuous noise, for noise that
    /// is not log-concave, or if the tables would be too long.
    pub(crate) fn of_event(event: &PrivacyEvent, removed: f64) -> Option<Arc<Self>> {
        static KNOWN: Memo<5, Option<Arc<TwoCounts>>> = Memo::new();
        if !event.is_of_party() || event.is_check() || !(super::LEAST_REMOVED..=0.5).contains(&removed) {
            return None;
        }
        let [kind, scale, tau, moved] = event.noise_key();
        KNOWN.get_or([kind, scale, tau, moved, removed], || Self::new(event, removed).map(Arc::new))
    }

    fn new(event: &PrivacyEvent, removed: f64) -> Option<Self> {
        let noise = LatticeNoise::new(event).filter(LatticeNoise::is_log_concave)?;
        let votes = i64::from(event.party_teachers());
        // Two tails of two counts.
        let log_tail = (0.25 * part_of_party(event, removed)).ln();
        let mut length = (8.0 * noise.deviation()).ceil() as i64 + 8 + votes;
        let (lattice, furthest) = loop {
            if length > LONGEST {
                return None;
            }
            let lattice = noise.of_class(length as usize);
            let enough = |k: &i64| lattice.log_survival(*k + 1).max(lattice.log_below(-*k - 1)) <= log_tail;
            match (0..length - votes - 2).find(enough) {
                Some(furthest) => break (lattice, furthest),
                None => length *= 2,
            }
        };
        let ratio = |from: i64, to: i64| {
            let (from, to) = (lattice.log_pmf(from), lattice.log_pmf(to));
            if from == f64::NEG_INFINITY { f64::NEG_INFINITY } else { from - to }
        };
        let kept = (-furthest..=furthest).map(|k| (lattice.log_pmf(k), [ratio(k, k + votes), ratio(k, k - votes)]));
        Some(Self {
            kept: kept.filter(|(log_pmf, _)| *log_pmf > f64::NEG_INFINITY).collect(),
            rounding: ROUNDING.0 + ROUNDING.1 * length as f64,
            ends_early: noise.support().is_some_and(|end| end <= furthest + votes),
            known: Memo::new(),
        })
    }

    /// Returns whether the noise ends where it is not negligible, so that leaving out more may help.
    pub(crate) fn ends_early(&self) -> bool {
        self.ends_early
    }

    /// Bounds the moment of order `l`, in both directions, for any number of classes up to the largest.
    pub(crate) fn moment(&self, l: f64) -> f64 {
        self.known.get_or([l], || {
            let of_count = |direction: usize| {
                let term = |(log_pmf, ratios): &(f64, [f64; 2])| log_pmf + l * (ratios[direction] + self.rounding);
                log_sum_exp(self.kept.iter().map(term))
            };
            // One count falls and the other one rises, at the votes and at the neighbour.
            let sum = of_count(0) + of_count(1) + super::log_of_rest(l);
            larger(sum * (1.0 + 1e-11) + 1e-11, 0.0)
        })
    }
}
