//! An accountant with the field's verbs: events are composed, and epsilon is computed for a delta or delta for an
//! epsilon.

use crate::accountant::Accountant;
use crate::delta::Delta;
use crate::error::AccountError;
use crate::event::PrivacyEvent;
use crate::privacy_filter::{Budget, PrivacyFilter, QueryBatch};

/// Relative accuracy of a delta that is searched.
const ACCURACY: f64 = 1e-5;

/// An accountant that composes events without votes, as `dp_accounting` does: numbers and kinds of the queries are fixed
/// before the first answer, and the claims are data-independent, so they may be published.
///
/// Queries of one kind cost the epsilon of [`Accountant::account_queries`], and queries of several kinds that of
/// [`PrivacyFilter::fixed_epsilon`]. Both hold in both directions of the neighbouring relation. For answers at given
/// votes use [`Accountant::account`], and for queries that are chosen by looking at answers [`PrivacyFilter`].
///
/// ```
/// use speed_accountant::{Delta, EventAccountant, HonestRatio, InverseScale, Mechanism, PrivacyEvent};
///
/// let event = |gamma| -> Result<_, Box<dyn std::error::Error>> {
///     Ok(PrivacyEvent::new(Mechanism::discrete_laplace(InverseScale::new(gamma)?), HonestRatio::ALL))
/// };
/// let mut accountant = EventAccountant::new();
/// accountant.compose(event(0.1)?, 100).compose(event(0.05)?, 10);
/// let epsilon = accountant.epsilon(Delta::new(1e-5)?)?;
/// assert!(accountant.delta(epsilon)? <= 1.0001e-5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventAccountant {
    batches: Vec<QueryBatch>,
}

impl EventAccountant {
    /// Creates an accountant without events.
    pub fn new() -> Self {
        Self::default()
    }

    /// Composes `count` queries of one kind, between any number of classes. The distance of the event's sampler is that
    /// of all draws of these queries together ([`PrivacyEvent::with_sampling_total_variation`]).
    pub fn compose(&mut self, event: PrivacyEvent, count: usize) -> &mut Self {
        self.compose_batch(QueryBatch::new(event, None, count))
    }

    /// Composes a batch of queries, which may state its number of classes: two classes cost less than more.
    pub fn compose_batch(&mut self, batch: QueryBatch) -> &mut Self {
        self.batches.push(batch);
        self
    }

    /// Computes an epsilon for which all queries together are (epsilon, `delta`)-differentially private. It is 0 without
    /// queries.
    ///
    /// # Errors
    /// [`AccountError::Queries`] for more than a million queries, [`AccountError::TooFewClasses`] for fewer than two
    /// classes, [`AccountError::DeltaUsedUp`] or [`AccountError::TotalVariation`] if the samplers cost too much, and
    /// [`AccountError::NotFinite`] if no finite epsilon is known.
    pub fn epsilon(&self, delta: Delta) -> Result<f64, AccountError> {
        match self.kinds()?.as_slice() {
            [] => Ok(0.0),
            [one] => {
                let accountant = Accountant::new(one.event, delta);
                let accountant = one.classes.map_or(accountant, |classes| accountant.with_classes(classes));
                Ok(accountant.account_queries(one.queries)?.epsilon)
            }
            several => epsilon_of_several_kinds(several, delta),
        }
    }

    /// Computes a delta for which all queries together are (`epsilon`, delta)-differentially private: the least one
    /// found, from [`Delta::MIN`], or 1 if none below 1 is known. [`Self::epsilon`] is at most `epsilon` at this delta.
    /// The search computes about 30 epsilons.
    ///
    /// # Errors
    /// The errors of [`Self::epsilon`], except [`AccountError::DeltaUsedUp`] and [`AccountError::NotFinite`]: a delta at
    /// which they occur is not enough.
    pub fn delta(&self, epsilon: f64) -> Result<f64, AccountError> {
        let is_enough = |delta: f64| match self.epsilon(Delta::new(delta)?) {
            Ok(found) => Ok(found <= epsilon),
            Err(AccountError::DeltaUsedUp { .. } | AccountError::NotFinite { .. }) => Ok(false),
            Err(error) => Err(error),
        };
        if is_enough(Delta::MIN)? {
            return Ok(Delta::MIN);
        }
        // Every claim holds with a delta of 1.
        let (mut low, mut high) = (Delta::MIN.ln(), 0.0);
        while high - low > ACCURACY {
            let middle = 0.5 * (low + high);
            if is_enough(middle.exp())? { high = middle } else { low = middle }
        }
        Ok(high.exp())
    }

    /// Returns one batch for each kind of query.
    fn kinds(&self) -> Result<Vec<QueryBatch>, AccountError> {
        let mut kinds: Vec<QueryBatch> = Vec::new();
        for batch in self.batches.iter().filter(|batch| batch.queries > 0) {
            match kinds.iter_mut().find(|other| kind(other) == kind(batch)) {
                Some(same) => {
                    same.queries = same.queries.saturating_add(batch.queries);
                    // Rounded up.
                    let distance = same.event.sampling_total_variation() + batch.event.sampling_total_variation();
                    let distance = distance * (1.0 + 2.0 * f64::EPSILON);
                    same.event = same.event.with_sampling_total_variation(distance)?;
                }
                None => kinds.push(*batch),
            }
        }
        Ok(kinds)
    }
}

/// Returns everything that distinguishes the kinds of queries: all but their number and their sampler.
fn kind(batch: &QueryBatch) -> (PrivacyEvent, Option<usize>) {
    (batch.event.without_sampler(), batch.classes)
}

fn epsilon_of_several_kinds(kinds: &[QueryBatch], delta: Delta) -> Result<f64, AccountError> {
    if let Some(found) = kinds.iter().filter_map(|kind| kind.classes).find(|classes| *classes < 2) {
        return Err(AccountError::TooFewClasses { row: 0, found });
    }
    let mut filter = PrivacyFilter::new(Budget { epsilon: None, delta });
    filter.try_compose(kinds)?;
    let epsilon = filter.fixed_epsilon_with_samplers()?;
    if epsilon.is_finite() { Ok(epsilon) } else { Err(AccountError::NotFinite { found: epsilon }) }
}

#[cfg(test)]
mod tests {
    use speed_mechanism::{HonestRatio, InverseScale, Mechanism, NoiseCoins, NoiseDeviation};

    use super::*;
    use crate::composition::gaussian_delta;

    fn event(gamma: f64) -> PrivacyEvent {
        let gamma = InverseScale::new(gamma).expect("a scale");
        PrivacyEvent::new(Mechanism::discrete_laplace(gamma), HonestRatio::ALL)
    }

    fn gaussian(sigma: f64) -> PrivacyEvent {
        let sigma = NoiseDeviation::new(sigma).expect("a deviation");
        PrivacyEvent::new(Mechanism::gaussian(sigma), HonestRatio::ALL)
    }

    fn coins(coins: u64) -> PrivacyEvent {
        let coins = NoiseCoins::new(coins).expect("coins");
        PrivacyEvent::new(Mechanism::binomial(coins), HonestRatio::ALL)
    }

    fn delta(delta: f64) -> Delta {
        Delta::new(delta).expect("a delta")
    }

    fn of(events: &[(PrivacyEvent, usize)]) -> EventAccountant {
        let mut accountant = EventAccountant::new();
        for &(event, count) in events {
            accountant.compose(event, count);
        }
        accountant
    }

    #[test]
    fn queries_of_one_kind_cost_the_epsilon_of_an_account() {
        for event in [event(0.1), event(0.5).with_threshold(20.0).expect("votes"), gaussian(30.0)] {
            let expected = Accountant::new(event, delta(1e-5)).account_queries(10).expect("an account").epsilon;
            let accountant = of(&[(event, 4), (event, 0), (event, 6)]);
            assert_eq!(accountant.epsilon(delta(1e-5)), Ok(expected), "{event:?}");

            let mut between_two = EventAccountant::new();
            between_two.compose_batch(QueryBatch::new(event, 2, 10));
            assert!(between_two.epsilon(delta(1e-5)).expect("an epsilon") <= expected, "{event:?}");
        }
    }

    #[test]
    fn queries_of_several_kinds_cost_the_fixed_epsilon_of_a_filter() {
        let batches = [QueryBatch::new(event(0.1), 10, 50), QueryBatch::new(event(0.05), None, 20)];
        let mut accountant = EventAccountant::new();
        accountant.compose_batch(batches[0]).compose_batch(batches[1]);
        let mut filter = PrivacyFilter::new(Budget { epsilon: None, delta: delta(1e-5) });
        filter.try_compose(&batches).expect("few queries");
        let (found, fixed) = (accountant.epsilon(delta(1e-5)).expect("an epsilon"), filter.fixed_epsilon());
        assert!(found >= fixed && found <= fixed * (1.0 + 2e-9), "{found} and {fixed}");

        let alone = Accountant::new(event(0.1), delta(1e-5)).with_classes(10).account_queries(50).expect("an account");
        assert!(found > alone.epsilon, "{found} of both, {} of one", alone.epsilon);
    }

    #[test]
    fn other_noise_adds_up_by_moments_with_laplace_noise_and_without() {
        for (first, second) in [(event(0.1), coins(800)), (coins(800), coins(6_400)), (gaussian(40.0), coins(800))] {
            let epsilon = |events: &[(PrivacyEvent, usize)]| of(events).epsilon(delta(1e-5)).expect("an epsilon");
            let (one, two) = (epsilon(&[(first, 50)]), epsilon(&[(second, 20)]));
            let both = epsilon(&[(first, 50), (second, 20)]);
            assert!(both > one.max(two) && both < one + two, "{both} of {one} and {two}");
        }
        // Two kinds that hardly differ cost as much as one kind between them.
        let between = of(&[(coins(900), 100)]).epsilon(delta(1e-5)).expect("an epsilon");
        let both = of(&[(coins(899), 50), (coins(901), 50)]).epsilon(delta(1e-5)).expect("an epsilon");
        assert!((both / between - 1.0).abs() < 3e-3, "{both} against {between}");
    }

    #[test]
    fn a_delta_is_the_least_at_which_epsilon_is_enough() {
        let (one, two) = ([(event(0.1), 20)], [(event(0.1), 20), (event(0.2), 5)]);
        for (events, epsilon) in [(&one[..], 1.5), (&two[..], 3.0)] {
            let accountant = of(events);
            let found = accountant.delta(epsilon).expect("a delta");
            assert!(found > Delta::MIN && found < 1.0, "{events:?}: {found}");
            assert!(accountant.epsilon(delta(found)).expect("an epsilon") <= epsilon, "{events:?}: {found}");
            assert!(accountant.epsilon(delta(0.99 * found)).expect("an epsilon") > epsilon, "{events:?}: {found}");
        }
        // Noise this wide is bounded by two counts only. For narrower noise the answer reveals less than two counts.
        let of_two_counts = |sigma: f64, queries: usize| {
            let exact = gaussian_delta((2.0 * queries as f64).sqrt() / sigma, 1.0);
            (of(&[(gaussian(sigma), queries)]).delta(1.0).expect("a delta"), exact)
        };
        let (found, exact) = of_two_counts(1_000.0, 44_000);
        assert!(found >= exact && found <= 1.001 * exact, "{found} for {exact}");
        let (found, exact) = of_two_counts(30.0, 40);
        assert!(found > 0.0 && found <= 1.001 * exact, "{found} for {exact}");
    }

    #[test]
    fn delta_includes_the_samplers() {
        for scales in [[0.1, 0.1], [0.1, 0.2]] {
            let exact = of(&scales.map(|gamma| (event(gamma), 5)));
            let inexact = |gamma| event(gamma).with_sampling_total_variation(1e-12).expect("a distance");
            let inexact = of(&scales.map(|gamma| (inexact(gamma), 5)));
            let epsilon = |accountant: &EventAccountant| accountant.epsilon(delta(1e-5)).expect("an epsilon");
            assert!(epsilon(&inexact) >= epsilon(&exact), "{scales:?}");
            let used_up = inexact.epsilon(delta(1e-14));
            assert!(matches!(used_up, Err(AccountError::DeltaUsedUp { .. })), "{scales:?}: {used_up:?}");
            // More than the sum of pure epsilons, so only the samplers need a delta.
            assert_eq!(exact.delta(20.0), Ok(Delta::MIN), "{scales:?}");
            assert!(inexact.delta(20.0).expect("a delta") > 1e-12, "{scales:?}");
        }
    }

    #[test]
    fn an_unknown_epsilon_is_an_error_and_has_a_delta_of_one() {
        // The loss of so few coins is infinite with a probability above delta.
        let mixed = of(&[(coins(2), 1), (event(0.1), 1)]);
        assert!(matches!(mixed.epsilon(delta(1e-5)), Err(AccountError::NotFinite { .. })));
        assert_eq!((mixed.delta(3.0), mixed.delta(f64::NAN)), (Ok(1.0), Ok(1.0)));
        assert_eq!(EventAccountant::new().epsilon(delta(1e-5)), Ok(0.0));

        for many in [of(&[(event(0.1), usize::MAX)]), of(&[(event(0.1), usize::MAX), (event(0.2), 1)])] {
            assert!(matches!(many.epsilon(delta(1e-5)), Err(AccountError::Queries { .. })));
            assert!(matches!(many.delta(1.0), Err(AccountError::Queries { .. })));
        }
        let mut of_one_class = of(&[(event(0.2), 1)]);
        of_one_class.compose_batch(QueryBatch::new(event(0.1), 1, 3));
        assert!(matches!(of_one_class.epsilon(delta(1e-5)), Err(AccountError::TooFewClasses { found: 1, .. })));
    }
}
