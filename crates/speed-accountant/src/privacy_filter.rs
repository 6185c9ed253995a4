//! A privacy filter: composition of queries that may be chosen after looking at answers.
//!
//! docs/privacy.md, "Calibration, ledger, audit", has its three rules and their sources. The second rule, for queries of one
//! kind, uses the fraction [`ONE_KIND`] of delta, and the third, for several kinds, the rest.
//!
//! The rules also hold together. Answers that end within the first rule never lose more than epsilon. Answers to queries
//! of one kind exceed epsilon with at most the second rule's fraction of delta, and all others with at most the third rule's
//! fraction.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::composition::{MAX_QUERIES, improved_epsilon};
use crate::data_independent::{least_epsilon_of_groups, merged};
use crate::delta::Delta;
use crate::error::AccountError;
use crate::event::PrivacyEvent;
use crate::memo::Memo;
use crate::moments::pure_moment;
use crate::orders::best_real;
use crate::query_group::QueryGroup;
use crate::sound::larger;
use crate::spent::{CompositionRule, Samplers, Spent};
use crate::three_answers::{Envelope, ThreeAnswers};

/// The fraction of delta for queries of one kind. The rest is for queries of several kinds.
const ONE_KIND: f64 = 0.9;
/// The fraction of delta that is reserved for samplers.
const SAMPLERS: f64 = 1e-3;
/// The first epsilon that the search for a budget for queries of several kinds tries.
const NOMINAL: f64 = 10.0;
/// The number of times that the search raises its epsilon. After that the plain sum is used, which is always valid.
const RAISES: usize = 12;
/// Margin for rounding, relative to epsilon.
const ROUNDING: f64 = 1e-9;
/// The fraction of delta that pays, for each of as many queries as can be composed, for answers which moments leave out.
/// It comes from the part for samplers.
const LEFT_OUT: f64 = 1e-6 / MAX_QUERIES as f64;

/// A privacy budget.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// Epsilon of all queries together; `None` for a record without a limit.
    pub epsilon: Option<f64>,
    /// Delta of all queries together, samplers included.
    pub delta: Delta,
}

/// A batch of queries of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueryBatch {
    /// The privacy event of each query.
    pub event: PrivacyEvent,
    /// Number of classes that the queries choose between; `None` if it is not known, so that the claim holds for any
    /// number, or for up to [`PrivacyEvent::MAX_PARTY_CLASSES`] if neighbours differ in several teachers.
    pub classes: Option<usize>,
    /// Number of queries.
    pub queries: usize,
}

impl QueryBatch {
    /// Creates a batch of `queries` queries between `classes` classes, or between any number of classes for `None`.
    pub fn new(event: PrivacyEvent, classes: impl Into<Option<usize>>, queries: usize) -> Self {
        Self { event, classes: classes.into(), queries }
    }

    /// Returns the smallest proved pure epsilon of one query.
    pub fn per_query_epsilon(&self) -> f64 {
        self.group().epsilon
    }

    fn group(&self) -> QueryGroup {
        QueryGroup::new(self.event, self.classes.unwrap_or(usize::MAX), self.queries)
    }
}

/// A privacy filter: composes queries without votes, in the worst case, and compares them with a budget that is fixed
/// before the first answer. Queries may be chosen by looking at earlier answers.
///
/// ```
/// use speed_accountant::{AccountError, Budget, Delta, PrivacyEvent, PrivacyFilter, QueryBatch};
/// use speed_mechanism::{HonestRatio, InverseScale, Mechanism};
///
/// let event = PrivacyEvent::new(Mechanism::discrete_laplace(InverseScale::new(0.1)?), HonestRatio::ALL);
/// let mut filter = PrivacyFilter::new(Budget { epsilon: Some(6.0), delta: Delta::new(1e-5)? });
/// filter.try_compose(&[QueryBatch::new(event, 10, 100)])?;
/// let refused = filter.try_compose(&[QueryBatch::new(event, 10, 100)]);
/// assert!(matches!(refused, Err(AccountError::OverBudget { .. })) && filter.queries() == 100);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct PrivacyFilter {
    pub(crate) budget: Budget,
    groups: Vec<QueryGroup>,
    /// Total variation distance of all samplers together.
    distance: f64,
    /// Number of queries whose sampler is not known.
    without_sampler: usize,
}

impl PrivacyFilter {
    /// Creates a filter that has composed no queries yet.
    pub fn new(budget: Budget) -> Self {
        Self { budget, groups: Vec::new(), distance: 0.0, without_sampler: 0 }
    }

    /// Finds a small budget of epsilon that allows these queries at `delta`; the search does not guarantee the smallest.
    /// If delta does not cover their samplers, no budget allows them, and [`Spent::samplers`] states this.
    ///
    /// # Errors
    /// [`AccountError::Queries`] for too many queries.
    pub fn least_budget(delta: Delta, batches: &[QueryBatch]) -> Result<Spent, AccountError> {
        let mut filter = Self::new(Budget { epsilon: None, delta });
        filter.try_compose(batches)?;
        Ok(filter.spent())
    }

    /// Composes queries that were answered already, regardless of the budget.
    pub fn compose(&mut self, batch: &QueryBatch) {
        self.groups.push(batch.group());
        self.distance += batch.event.sampling_total_variation();
        if !batch.event.names_sampler() {
            self.without_sampler = self.without_sampler.saturating_add(batch.queries);
        }
    }

    /// Composes queries that are to be answered, if the budget allows all of them together; otherwise composes none.
    ///
    /// # Errors
    /// [`AccountError::OverBudget`] if they would exceed the budget, [`AccountError::Queries`] if the total is more
    /// than can be composed, [`AccountError::Invalid`] for queries of a party between too many classes.
    pub fn try_compose(&mut self, batches: &[QueryBatch]) -> Result<(), AccountError> {
        // An empty batch is always allowed, even if earlier queries exceed the budget.
        if batches.is_empty() {
            return Ok(());
        }
        let queries = batches.iter().fold(0usize, |sum, batch| sum.saturating_add(batch.queries));
        let found = queries.saturating_add(self.queries());
        if found > MAX_QUERIES {
            return Err(AccountError::Queries { found });
        }
        let of_parties = batches.iter().filter(|batch| batch.event.is_of_party());
        if let Some(found) =
            of_parties.filter_map(|batch| batch.classes).find(|classes| *classes > PrivacyEvent::MAX_PARTY_CLASSES)
        {
            return Err(AccountError::party_classes(found, PrivacyEvent::MAX_PARTY_CLASSES));
        }
        let mut after = self.clone();
        batches.iter().for_each(|batch| after.compose(batch));
        if let Some(budget) = self.budget.epsilon {
            let with_them = after.spent();
            let (would_be, rule) = (with_them.with_samplers(), with_them.rule);
            if would_be.is_nan() || budget.is_nan() || would_be > budget {
                let (delta, spent) = (self.budget.delta.get(), self.spent().with_samplers());
                return Err(AccountError::OverBudget { queries, would_be, budget, delta, spent, rule });
            }
        }
        *self = after;
        Ok(())
    }

    /// Returns the number of all queries.
    pub fn queries(&self) -> usize {
        self.groups.iter().fold(0, |sum, group| sum.saturating_add(group.queries))
    }

    /// Computes the cost of all queries at the budget's delta, with the method that the budget's epsilon determines.
    pub fn spent(&self) -> Spent {
        let groups = merged(&self.groups);
        let sum: f64 = groups.iter().map(|group| group.epsilon * group.queries as f64).sum::<f64>() * (1.0 + 1e-12);
        let (adaptive, rule) = if groups.len() <= 1 {
            let delta = ONE_KIND * self.delta_without_samplers();
            (least_epsilon_of_groups(&groups, delta), CompositionRule::OneKind)
        } else {
            (self.of_several_kinds(&groups), CompositionRule::SeveralKinds)
        };
        let (epsilon, rule) =
            if adaptive <= sum { (adaptive * (1.0 + ROUNDING), rule) } else { (sum, CompositionRule::PlainSum) };
        // A mechanism at a total variation distance of `d` from an (epsilon, delta')-private one is (epsilon, delta' +
        // (1 + e^epsilon) d)-private. The charge uses the larger of the spent epsilon and the budget's epsilon, because
        // the answers decide how much of the budget is spent.
        let claimed = larger(epsilon, self.budget.epsilon.unwrap_or(0.0));
        let samplers = match self.without_sampler {
            _ if self.has_uncovered_samplers(claimed) => Samplers::BeyondDelta,
            0 if self.queries() > 0 => Samplers::Included,
            queries => Samplers::NotNamed { queries },
        };
        Spent { epsilon, samplers, rule }
    }

    /// Computes the epsilon that all queries would have at the budget's delta if their numbers and kinds had been fixed
    /// before the first answer. It holds only if delta covers the samplers, which this number does not check: see
    /// [`Spent::samplers`] of [`Self::spent`].
    pub fn fixed_epsilon(&self) -> f64 {
        self.fixed_at_most(self.spent().epsilon)
    }

    /// Returns whether the samplers cost more of delta at a claimed epsilon than the part set aside.
    fn has_uncovered_samplers(&self, claimed: f64) -> bool {
        let charge = (1.0 + claimed.exp()) * self.distance * (1.0 + 1e-12);
        let left_out =
            if self.groups.iter().all(QueryGroup::is_pure) { 0.0 } else { 2.0 * LEFT_OUT * MAX_QUERIES as f64 };
        let set_aside = (SAMPLERS - left_out) * self.budget.delta.get();
        self.distance > 0.0 && (charge.is_nan() || charge > set_aside)
    }

    fn fixed_at_most(&self, adaptive: f64) -> f64 {
        (least_epsilon_of_groups(&self.groups, self.delta_without_samplers()) * (1.0 + ROUNDING)).min(adaptive)
    }

    /// Returns delta without the fraction that is reserved for samplers. The fraction is reserved even if no sampler needs
    /// it, because the rules of composition must not depend on the answers.
    fn delta_without_samplers(&self) -> f64 {
        (self.budget.delta.get() * (1.0 - SAMPLERS)).next_down()
    }

    fn of_several_kinds(&self, groups: &[QueryGroup]) -> f64 {
        let delta = (1.0 - ONE_KIND) * self.delta_without_samplers();
        let left_out = LEFT_OUT * self.budget.delta.get();
        let of_budget = |epsilon: f64| {
            let order = order(epsilon, delta);
            // Sums in the order of the groups, so that the result does not depend on which thread finishes first.
            let moments: Vec<f64> =
                groups.par_iter().map(|group| group.queries as f64 * moment(group, order, left_out)).collect();
            improved_epsilon(moments.iter().sum(), order, delta)
        };
        self.budget.epsilon.map_or_else(|| least_that_allows(of_budget), of_budget)
    }
}

/// Finds a budget under which the epsilon of the queries is at most this budget. The budget determines the order of
/// moments, and so the epsilon. Returns infinity if the search finds no budget.
fn least_that_allows(of_budget: impl Fn(f64) -> f64) -> f64 {
    let mut budget = of_budget(NOMINAL);
    for _ in 0..RAISES {
        let found = of_budget(budget);
        if found <= budget {
            return budget;
        }
        budget = found * (1.0 + ROUNDING);
    }
    // The caller then uses the plain sum, which is smaller.
    f64::INFINITY
}

/// Returns the order at which a budget allows the most queries of small loss, whose moments grow like `l (l + 1)`.
fn order(epsilon: f64, delta: f64) -> f64 {
    // The sum of moments that costs `epsilon`, from `improved_epsilon`.
    let allowed = |l: f64| l * (epsilon + (1.0 / l).ln_1p()) + delta.ln() + l.ln_1p();
    let queries = |l: f64| allowed(l) / (l * (l + 1.0));
    best_real(1e4, |l| -queries(l)).map_or(1.0, |best| best.order)
}

/// Returns the data-independent moment of one query. For noise other than Laplace noise, answers less likely than
/// `left_out` are left out.
fn moment(group: &QueryGroup, l: f64, left_out: f64) -> f64 {
    if !group.is_pure() {
        return group.moment(l, left_out);
    }
    static KNOWN: Memo<4, f64> = Memo::new();
    let pure = pure_moment(group.epsilon, l);
    let three =
        ThreeAnswers::new(&group.event, group.epsilon).zip(group.event.mechanism().gamma()).map(|(three, gamma)| {
            let arguments = [gamma.get(), group.event.tau().get(), group.epsilon, l];
            KNOWN.get_or(arguments, || Envelope::new(&three, l).largest().ln_1p())
        });
    three.filter(|moment| *moment <= pure).unwrap_or(pure)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use speed_mechanism::{HonestRatio, InverseScale, Mechanism, MechanismKind};

    use super::*;

    fn batch(gamma: f64, queries: usize) -> QueryBatch {
        batch_of(MechanismKind::DiscreteLaplace, gamma, queries)
    }

    fn batch_of(kind: MechanismKind, scale: f64, queries: usize) -> QueryBatch {
        let noise = kind.with_scale(scale).expect("a scale");
        QueryBatch::new(PrivacyEvent::new(noise, HonestRatio::ALL), 10, queries)
    }

    fn filter(budget: Budget, batches: &[QueryBatch]) -> PrivacyFilter {
        let mut filter = PrivacyFilter::new(budget);
        batches.iter().for_each(|batch| filter.compose(batch));
        filter
    }

    fn spent(budget: &Budget, batches: &[QueryBatch]) -> Spent {
        filter(*budget, batches).spent()
    }

    fn fixed(budget: &Budget, batches: &[QueryBatch], adaptive: f64) -> f64 {
        filter(*budget, batches).fixed_at_most(adaptive)
    }

    fn budget(epsilon: f64, delta: f64) -> Budget {
        Budget { epsilon: Some(epsilon), delta: Delta::new(delta).expect("a delta") }
    }

    #[test]
    fn a_further_charge_never_lowers_the_epsilon() {
        for delta in [1e-5, 1e-60] {
            let budget = budget(10.0, delta);
            for (first, second) in [(0.1, 0.05), (0.1, 0.3), (0.02, 0.1)] {
                let of = |charges: &[QueryBatch]| {
                    let adaptive = spent(&budget, charges).epsilon;
                    let fixed = fixed(&budget, charges, f64::INFINITY);
                    assert!(adaptive >= fixed, "{first} {second} {delta}: {adaptive} below {fixed}");
                    fixed
                };
                let one = of(&[batch(first, 2_000)]);
                let two = of(&[batch(first, 2_000), batch(second, 1)]);
                assert!(two >= one * (1.0 - 1e-6), "{first} {second} {delta}: {two} after {one}");
            }
        }
    }

    #[test]
    fn the_epsilon_without_a_budget_is_a_budget_that_allows_the_charges() {
        let charges =
            |kinds: &[(f64, usize)]| kinds.iter().map(|&(gamma, queries)| batch(gamma, queries)).collect::<Vec<_>>();
        for kinds in [
            &[(0.1, 2_000), (0.05, 300)][..],
            &[(0.5, 4), (0.6, 4), (0.7, 4)],
            &[(1e-3, 100_000), (2.0, 3)],
            &[(0.1, 100), (0.11, 100), (0.12, 100), (0.13, 100), (0.14, 100)],
            &[(30.0, 10), (1e-3, 1)],
        ] {
            for delta in [1e-2, 1e-5, 1e-60] {
                let open = Budget { epsilon: None, delta: Delta::new(delta).expect("a delta") };
                let needed = spent(&open, &charges(kinds)).epsilon;
                for part in 1..=kinds.len() {
                    let of_it = spent(&budget(needed, delta), &charges(&kinds[..part])).epsilon;
                    assert!(of_it <= needed, "{kinds:?} {delta} {part}: {of_it} of {needed}");
                }
            }
        }
    }

    #[test]
    fn the_spent_epsilon_is_at_most_the_plain_sum() {
        for (gamma, queries) in [(0.5, 3), (3.0, 40), (50.0, 96), (2e-3, 7)] {
            let (budget, charges) = (budget(1.0, 1e-9), [batch(gamma, queries), batch(gamma / 2.0, 1)]);
            let found = spent(&budget, &charges);
            let sum = 2.0 * gamma * queries as f64 + gamma;
            let fixed = fixed(&budget, &charges, found.epsilon);
            assert!(found.epsilon <= sum * (1.0 + 1e-9) && fixed <= found.epsilon, "{gamma}: {found:?} {fixed}");
        }
    }

    #[test]
    fn other_noise_adds_up_by_moments_with_laplace_noise_and_without() {
        let open = Budget { epsilon: None, ..budget(1.0, 1e-5) };
        let of = |batches: &[QueryBatch]| fixed(&open, batches, f64::INFINITY);
        let coins = |coins, queries| batch_of(MechanismKind::Binomial, coins, queries);
        let gaussian = batch_of(MechanismKind::Gaussian, 40.0, 50);
        for (first, second) in
            [(batch(0.1, 50), coins(800.0, 20)), (coins(800.0, 50), coins(6_400.0, 20)), (gaussian, coins(800.0, 20))]
        {
            let (one, two, both) = (of(&[first]), of(&[second]), of(&[first, second]));
            assert!(both > one.max(two) && both < one + two, "{both} of {one} and {two}");
        }
        // Two kinds that hardly differ cost as much as one kind between them.
        let (between, both) = (of(&[coins(900.0, 100)]), of(&[coins(899.0, 50), coins(901.0, 50)]));
        assert!((both / between - 1.0).abs() < 3e-3, "{both} against {between}");
        // The loss of so few coins is infinite with a probability above delta.
        assert!(of(&[coins(2.0, 1), batch(0.1, 1)]).is_infinite());
    }

    /// An adversary who sees each answer before the next charge: randomised response of two kinds.
    struct Adversary<'a> {
        kinds: [f64; 2],
        epsilon: f64,
        allowed: &'a mut dyn FnMut([usize; 2]) -> bool,
        /// Overdrafts, by the number of charges of each kind and the number of those among them that lost privacy.
        known: HashMap<([usize; 2], [usize; 2]), f64>,
    }

    impl Adversary<'_> {
        /// Returns the largest possible sum of `P - e^epsilon P'` over all paths from here, for any choice after each
        /// answer.
        fn overdraft(&mut self, charged: [usize; 2], lost: [usize; 2]) -> f64 {
            if let Some(&known) = self.known.get(&(charged, lost)) {
                return known;
            }
            let (mut log_p, mut log_there) = (0.0, 0.0);
            for kind in [0, 1] {
                let (likely, unlikely) = (-(-self.kinds[kind]).exp().ln_1p(), -self.kinds[kind].exp().ln_1p());
                let (lost, kept) = (lost[kind] as f64, (charged[kind] - lost[kind]) as f64);
                log_p += lost * likely + kept * unlikely;
                log_there += lost * unlikely + kept * likely;
            }
            let mut worst = (log_p.exp() - (self.epsilon + log_there).exp()).max(0.0);
            for kind in [0, 1] {
                let (mut next, mut loses) = (charged, lost);
                next[kind] += 1;
                loses[kind] += 1;
                if (self.allowed)(next) {
                    worst = worst.max(self.overdraft(next, loses) + self.overdraft(next, lost));
                }
            }
            self.known.insert((charged, lost), worst);
            worst
        }
    }

    #[test]
    fn no_choice_of_charges_overdraws_the_filter() {
        // Only a pure epsilon is known of this noise, so randomised response is the worst query.
        let (scales, epsilon, delta) = ([0.28, 0.14], 2.0f64, 1e-2);
        let one = |gamma: f64, queries: usize| {
            let noise = Mechanism::laplace(InverseScale::new(gamma).expect("a scale"));
            QueryBatch::new(PrivacyEvent::new(noise, HonestRatio::new(0.9).expect("a ratio")), 10, queries)
        };
        let kinds = scales.map(|gamma| one(gamma, 1).group().epsilon);
        let charges = |counts: [usize; 2]| -> Vec<QueryBatch> {
            let all = counts.into_iter().zip(scales).map(|(count, gamma)| one(gamma, count));
            all.filter(|batch| batch.queries > 0).collect()
        };
        let budget = budget(epsilon, delta);
        let overdraft = |epsilon_of: &dyn Fn(&[QueryBatch]) -> f64| {
            let mut known: HashMap<[usize; 2], bool> = HashMap::new();
            let mut allowed =
                |counts: [usize; 2]| *known.entry(counts).or_insert_with(|| epsilon_of(&charges(counts)) <= epsilon);
            Adversary { kinds, epsilon, allowed: &mut allowed, known: HashMap::new() }.overdraft([0, 0], [0, 0])
        };
        let found = overdraft(&|charges| spent(&budget, charges).epsilon);
        assert!(found > 0.0 && found <= delta, "{found}");
        // An adversary who may continue as if charges were fixed beforehand loses more.
        let loose = overdraft(&|charges| fixed(&budget, charges, f64::INFINITY));
        assert!(loose > 1.5 * found, "{loose} against {found}");
    }
}
