//! Data-independent cost of queries of one or several kinds. For Laplace noise the distributions that dominate each
//! query are composed; with other noise among the queries, moments are added up.

use crate::assumption::{Bound, NeighbouringRelation};
use crate::composition::{composed, optimal_epsilon_of};
use crate::epsilon_bound::{CompositionMethod, EpsilonBound};
use crate::least_epsilon::{LEFT_OUT, LeastEpsilon, left_out};
use crate::orders::Best;
use crate::query_group::{Moments, QueryGroup};

/// Grid steps in the smallest and in the largest epsilon, for queries of several kinds.
const MIN_STEPS: f64 = 24.0;
const MAX_STEPS: f64 = 2_048.0;

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
        [] => 0.0,
        [one] if one.is_pure() && !one.event.is_of_party() => one.least_epsilon_of_pure(delta).0,
        [one] => {
            let found = tight(delta).whatever_the_votes(&one.event, one.epsilon, one.classes(), one.queries);
            found.map_or(f64::INFINITY, |found| found.best.epsilon)
        }
        several => least_bound_of_kinds(several, delta).best.epsilon,
    }
}

/// Finds the same with its origin, for at least two distinct kinds.
pub(crate) fn least_bound_of_kinds(distinct: &[QueryGroup], delta: f64) -> EpsilonBound {
    if !distinct.iter().all(QueryGroup::is_pure) {
        return EpsilonBound::of_moments(by_moments(distinct, delta));
    }
    let pure: Vec<(f64, usize)> = distinct.iter().map(|group| (group.epsilon, group.queries)).collect();
    let sum: f64 = pure.iter().map(|&(epsilon, queries)| epsilon * queries as f64).sum();
    let closed = optimal_epsilon_of(&pure, delta).min(sum * (1.0 + 1e-12));
    let epsilons = || pure.iter().map(|pure| pure.0);
    let step = (epsilons().fold(f64::INFINITY, f64::min) / MIN_STEPS).max(epsilons().fold(0.0, f64::max) / MAX_STEPS);
    let parts = distinct.iter().map(|group| group.losses(step)).collect::<Option<Vec<_>>>();
    let convolved = parts.and_then(|parts| composed(&parts.concat(), delta)).filter(|convolved| convolved.0 < closed);
    let (epsilon, method, order) = convolved.unwrap_or((closed, CompositionMethod::Optimal, 0.0));
    EpsilonBound { best: Best { order, epsilon, at_edge: false }, method, data_dependent_queries: 0 }
}

fn tight(delta: f64) -> LeastEpsilon {
    LeastEpsilon { bound: Bound::Tight, relation: NeighbouringRelation::BothWays, max_order: None, delta }
}

/// Finds the order of the least epsilon that sums of moments give.
fn by_moments(groups: &[QueryGroup], delta: f64) -> Best {
    let queries: f64 = groups.iter().map(|group| group.queries as f64).sum();
    let left_out = left_out(LEFT_OUT, delta / queries);
    let delta = (delta - 2.0 * queries * left_out).next_down();
    let sum = |of: fn(&QueryGroup, f64) -> Moments| {
        let parts: Vec<_> = groups.iter().map(|group| (of(group, left_out), group.queries as f64)).collect();
        move |l: f64| parts.iter().map(|(moments, times)| times * moments(l)).sum::<f64>()
    };
    let best = tight(delta).of_moments(sum(QueryGroup::estimates), sum(QueryGroup::moments));
    best.unwrap_or(Best { order: 0.0, epsilon: f64::INFINITY, at_edge: false })
}
