//! What queries of Laplace noise cost whatever the votes are: composition of the distributions that dominate each of them.

use crate::PrivacyEvent;
use crate::account::Method;
use crate::composition::{
    Composition, LossDistribution, Profile, best_tilt, optimal_epsilon, optimal_epsilon_of, pure_excess,
};
use crate::memo::Memo;
use crate::per_query::tight_per_query_epsilon;
use crate::three_answers::ThreeAnswers;

/// Grid steps in the smallest and in the largest epsilon of queries of several kinds.
const FEWEST_STEPS: f64 = 24.0;
const MOST_STEPS: f64 = 2_048.0;

/// Queries of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Kind {
    pub(crate) event: PrivacyEvent,
    /// Pure epsilon of one query.
    pub(crate) epsilon: f64,
    pub(crate) queries: usize,
}

impl Kind {
    /// `queries` queries between `classes` classes.
    pub(crate) fn new(event: PrivacyEvent, classes: usize, queries: usize) -> Self {
        Self { event, epsilon: tight_per_query_epsilon(&event, classes), queries }
    }

    /// Gamma, where whoever sees both noisy counts that a vote moves between sees the sum of two gamma-private losses.
    fn each_of_two_counts(&self) -> Option<f64> {
        self.event.noise().gamma().filter(|_| self.event.tau().get() == 1.0).map(|gamma| gamma.get())
    }

    /// Distributions that dominate one query, on a grid of `step`, each with how many there are of it.
    fn losses(&self, step: f64) -> Option<Vec<(LossDistribution, u32)>> {
        static KNOWN: Memo<4, LossDistribution> = Memo::new();
        let times = u32::try_from(self.queries).ok()?;
        let half = |epsilon: f64| ((epsilon / step * (1.0 + 1e-12)).ceil() as usize).max(1);
        if let (Some(three), Some(gamma)) = (ThreeAnswers::new(&self.event, self.epsilon), self.event.noise().gamma()) {
            let arguments = [gamma.get(), self.event.tau().get(), self.epsilon, step];
            let losses = KNOWN.get_or(arguments, || three.profile(step, half(self.epsilon)).connect());
            return Some(vec![(losses, times)]);
        }
        let (epsilon, times) = match self.each_of_two_counts() {
            Some(gamma) => (gamma, times.checked_mul(2)?),
            None => (self.epsilon, times),
        };
        Some(vec![(Profile::new(step, half(epsilon), |at| pure_excess(epsilon, at)).connect(), times)])
    }
}

/// The least epsilon known here of queries of one kind, how it came about, and the order by which losses were tilted;
/// `epsilon` is that of one of them.
pub(crate) fn least_epsilon_without_votes(
    event: &PrivacyEvent,
    epsilon: f64,
    queries: usize,
    delta: f64,
) -> (f64, Method, f64) {
    let kind = Kind { event: *event, epsilon, queries };
    let two_counts = kind
        .each_of_two_counts()
        .map_or(f64::INFINITY, |gamma| optimal_epsilon(gamma, queries.saturating_mul(2), delta));
    let closed = optimal_epsilon(epsilon, queries, delta).min(two_counts);
    let composed = three_answers(&kind).and_then(|losses| {
        let parts = [(losses, u32::try_from(queries).ok()?)];
        let tilt = best_tilt(&parts, delta);
        Some((Composition::new(&parts, tilt)?.epsilon(delta), tilt))
    });
    match composed {
        Some((composed, tilt)) if composed < closed => (composed, Method::LossDistributions, tilt),
        _ => (closed, Method::Optimal, 0.0),
    }
}

/// Queries of the same kind as one.
pub(crate) fn merged(kinds: &[Kind]) -> Vec<Kind> {
    let mut distinct: Vec<Kind> = Vec::new();
    for kind in kinds.iter().filter(|kind| kind.queries > 0) {
        match distinct.iter_mut().find(|other| Kind { queries: kind.queries, ..**other } == *kind) {
            Some(same) => same.queries = same.queries.saturating_add(kind.queries),
            None => distinct.push(*kind),
        }
    }
    distinct
}

/// The least epsilon known here of queries of several kinds, their numbers and order fixed beforehand. Never more than the
/// plain sum.
pub(crate) fn least_epsilon_of_kinds(kinds: &[Kind], delta: f64) -> f64 {
    let distinct = merged(kinds);
    match distinct.as_slice() {
        [] => return 0.0,
        [one] => return least_epsilon_without_votes(&one.event, one.epsilon, one.queries, delta).0,
        _ => {}
    }
    let pure: Vec<(f64, usize)> = distinct.iter().map(|kind| (kind.epsilon, kind.queries)).collect();
    let sum: f64 = pure.iter().map(|&(epsilon, queries)| epsilon * queries as f64).sum();
    let closed = optimal_epsilon_of(&pure, delta).min(sum * (1.0 + 1e-12));
    let epsilons = || pure.iter().map(|pure| pure.0);
    let step =
        (epsilons().fold(f64::INFINITY, f64::min) / FEWEST_STEPS).max(epsilons().fold(0.0, f64::max) / MOST_STEPS);
    let composed = distinct.iter().map(|kind| kind.losses(step)).collect::<Option<Vec<_>>>().and_then(|parts| {
        let parts = parts.concat();
        Some(Composition::new(&parts, best_tilt(&parts, delta))?.epsilon(delta))
    });
    composed.unwrap_or(f64::INFINITY).min(closed)
}

/// The distribution that dominates one query. It depends on no votes and on no threshold.
fn three_answers(kind: &Kind) -> Option<LossDistribution> {
    static KNOWN: Memo<3, LossDistribution> = Memo::new();
    let gamma = kind.event.noise().gamma()?;
    let three = ThreeAnswers::new(&kind.event, kind.epsilon)?;
    Some(KNOWN.get_or([gamma.get(), kind.event.tau().get(), kind.epsilon], || three.losses()))
}
