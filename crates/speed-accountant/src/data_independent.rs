//! Data-independent cost of queries with Laplace noise: composition of the distributions that dominate each query.

use crate::composition::{
    Composition, PrivacyLossDistribution, PrivacyProfile, best_tilt, optimal_epsilon, optimal_epsilon_of, pure_excess,
};
use crate::epsilon_bound::CompositionMethod;
use crate::event::PrivacyEvent;
use crate::memo::Memo;
use crate::per_query::tight_per_query_epsilon;
use crate::three_answers::ThreeAnswers;

/// Grid steps in the smallest and in the largest epsilon, for queries of several kinds.
const MIN_STEPS: f64 = 24.0;
const MAX_STEPS: f64 = 2_048.0;

/// Queries of one kind: the same noise and pure epsilon.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct QueryGroup {
    pub(crate) event: PrivacyEvent,
    /// Pure epsilon of one query.
    pub(crate) epsilon: f64,
    pub(crate) queries: usize,
}

impl QueryGroup {
    /// Creates a group of `queries` queries between `classes` classes. The threshold enters only through the epsilon of
    /// one query, so groups that differ in the threshold alone are merged.
    pub(crate) fn new(event: PrivacyEvent, classes: usize, queries: usize) -> Self {
        let epsilon = tight_per_query_epsilon(&event, classes);
        Self { event: PrivacyEvent::new(event.mechanism(), event.tau()), epsilon, queries }
    }

    /// Returns gamma if an observer of both noisy counts between which a vote moves sees the sum of two gamma-private
    /// losses.
    fn each_of_two_counts(&self) -> Option<f64> {
        self.event.mechanism().gamma().filter(|_| self.event.tau().get() == 1.0).map(|gamma| gamma.get())
    }

    /// Computes the distributions that dominate one query, on a grid of `step`, each with its multiplicity.
    fn losses(&self, step: f64) -> Option<Vec<(PrivacyLossDistribution, u32)>> {
        static KNOWN: Memo<4, PrivacyLossDistribution> = Memo::new();
        let times = u32::try_from(self.queries).ok()?;
        let half = |epsilon: f64| ((epsilon / step * (1.0 + 1e-12)).ceil() as usize).max(1);
        if let (Some(three), Some(gamma)) =
            (ThreeAnswers::new(&self.event, self.epsilon), self.event.mechanism().gamma())
        {
            let arguments = [gamma.get(), self.event.tau().get(), self.epsilon, step];
            let losses = KNOWN.get_or(arguments, || three.profile(step, half(self.epsilon)).connect());
            return Some(vec![(losses, times)]);
        }
        let (epsilon, times) = match self.each_of_two_counts() {
            Some(gamma) => (gamma, times.checked_mul(2)?),
            None => (self.epsilon, times),
        };
        Some(vec![(PrivacyProfile::new(step, half(epsilon), |at| pure_excess(epsilon, at)).connect(), times)])
    }

    /// Finds the least epsilon known here, the method that gave it, and the order by which losses were tilted.
    pub(crate) fn least_epsilon(&self, delta: f64) -> (f64, CompositionMethod, f64) {
        let two_counts = self
            .each_of_two_counts()
            .map_or(f64::INFINITY, |gamma| optimal_epsilon(gamma, self.queries.saturating_mul(2), delta));
        let closed = optimal_epsilon(self.epsilon, self.queries, delta).min(two_counts);
        let convolved = self.three_answers().and_then(|losses| {
            let parts = [(losses, u32::try_from(self.queries).ok()?)];
            let tilt = best_tilt(&parts, delta);
            Some((Composition::new(&parts, tilt)?.epsilon(delta), tilt))
        });
        match convolved {
            Some((convolved, tilt)) if convolved < closed => (convolved, CompositionMethod::LossDistributions, tilt),
            _ => (closed, CompositionMethod::Optimal, 0.0),
        }
    }

    /// Returns the distribution that dominates one query. It depends neither on votes nor on a threshold.
    fn three_answers(&self) -> Option<PrivacyLossDistribution> {
        static KNOWN: Memo<3, PrivacyLossDistribution> = Memo::new();
        let gamma = self.event.mechanism().gamma()?;
        let three = ThreeAnswers::new(&self.event, self.epsilon)?;
        Some(KNOWN.get_or([gamma.get(), self.event.tau().get(), self.epsilon], || three.losses()))
    }
}

/// Merges queries of the same kind.
pub(crate) fn merged(groups: &[QueryGroup]) -> Vec<QueryGroup> {
    let mut distinct: Vec<QueryGroup> = Vec::new();
    for group in groups.iter().filter(|group| group.queries > 0) {
        match distinct.iter_mut().find(|other| QueryGroup { queries: group.queries, ..**other } == *group) {
            Some(same) => same.queries = same.queries.saturating_add(group.queries),
            None => distinct.push(*group),
        }
    }
    distinct
}

/// Finds the least epsilon known here of queries of several kinds whose numbers and order are fixed beforehand. It is
/// never more than the plain sum.
pub(crate) fn least_epsilon_of_groups(groups: &[QueryGroup], delta: f64) -> f64 {
    let distinct = merged(groups);
    match distinct.as_slice() {
        [] => return 0.0,
        [one] => return one.least_epsilon(delta).0,
        _ => {}
    }
    let pure: Vec<(f64, usize)> = distinct.iter().map(|group| (group.epsilon, group.queries)).collect();
    let sum: f64 = pure.iter().map(|&(epsilon, queries)| epsilon * queries as f64).sum();
    let closed = optimal_epsilon_of(&pure, delta).min(sum * (1.0 + 1e-12));
    let epsilons = || pure.iter().map(|pure| pure.0);
    let step = (epsilons().fold(f64::INFINITY, f64::min) / MIN_STEPS).max(epsilons().fold(0.0, f64::max) / MAX_STEPS);
    let convolved = distinct.iter().map(|group| group.losses(step)).collect::<Option<Vec<_>>>().and_then(|parts| {
        let parts = parts.concat();
        Some(Composition::new(&parts, best_tilt(&parts, delta))?.epsilon(delta))
    });
    convolved.unwrap_or(f64::INFINITY).min(closed)
}
