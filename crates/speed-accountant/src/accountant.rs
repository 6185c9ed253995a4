//! From votes to epsilon.

mod least_epsilon;

use rand::CryptoRng;
use rayon::prelude::*;
use speed_mechanism::HonestRatio;

use crate::account::{Account, Method};
use crate::claim::Claim;
use crate::composition::optimal_epsilon;
use crate::costs::{Costs, CostsRequest, Others};
use crate::orders::Best;
use crate::outcome::Gaps;
use crate::per_query::{self, Within, per_query_epsilon, tight_per_query_epsilon};
use crate::sound::larger;
use crate::{AccountError, Assume, Bound, Delta, Directions, Extent, PrivacyEvent, Release, ReleaseOptions};
use least_epsilon::{Outcome, ROUNDING};

pub use least_epsilon::LARGEST_ORDER;

/// The part of delta that is set aside for the sampler, if that is enough.
const SET_ASIDE: f64 = 1e-6;
/// An account at votes that is smaller than this part of the optimal composition of the pure epsilons is not compared with
/// what is known without votes.
const WORTH_COMPARING: f64 = 0.25;
/// The part of delta that may be charged for losses beyond those that one query hardly ever has.
const BEYOND: f64 = 1e-6;
/// Compositions of more queries take too long.
pub(crate) const MOST_QUERIES: usize = 1_000_000;
/// More are not counted one by one.
const MOST_TEACHERS: u64 = 2_000;

/// Accounts for queries: which noise, which delta, and under which assumptions.
///
/// The default is the tightest valid claim at given votes: [`Bound::Tight`], [`Directions::Both`], [`Assume::Dropout`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accountant {
    event: PrivacyEvent,
    delta: Delta,
    assume: Assume,
    extent: Extent,
    directions: Directions,
    bound: Bound,
    largest_order: Option<f64>,
    integrals: bool,
    classes: Option<usize>,
}

impl Accountant {
    /// The tightest valid bounds.
    #[must_use]
    pub fn new(event: PrivacyEvent, delta: Delta) -> Self {
        Self {
            event,
            delta,
            assume: Assume::default(),
            extent: Extent::default(),
            directions: Directions::default(),
            bound: Bound::default(),
            largest_order: None,
            integrals: true,
            classes: None,
        }
    }

    /// The paper's Algorithm 1: one direction, noise of the others missing.
    #[must_use]
    pub fn paper(event: PrivacyEvent, delta: Delta) -> Self {
        Self { directions: Directions::One, bound: Bound::Paper, ..Self::new(event, delta) }
    }

    /// With another assumption about the other teachers' noise.
    #[must_use]
    pub fn with_assume(self, assume: Assume) -> Self {
        Self { assume, ..self }
    }

    /// With exactly so many teachers' noise missing or known, or with up to so many.
    #[must_use]
    pub fn with_extent(self, extent: Extent) -> Self {
        Self { extent, ..self }
    }

    /// In one or both directions.
    #[must_use]
    pub fn with_directions(self, directions: Directions) -> Self {
        Self { directions, ..self }
    }

    /// With other formulas.
    #[must_use]
    pub fn with_bound(self, bound: Bound) -> Self {
        Self { bound, ..self }
    }

    /// With moment orders up to `largest`: whole ones for [`Bound::Paper`] (25 by default), real ones otherwise (4096).
    #[must_use]
    pub fn with_largest_order(self, largest: f64) -> Self {
        Self { largest_order: Some(largest), ..self }
    }

    /// Whether `q` of close votes is integrated, or bounded by pairs of classes: faster by an order of magnitude, and
    /// larger by a few percent. Continuous Laplace noise of less than a tenth of the teachers is not integrated.
    #[must_use]
    pub fn with_integrals(self, integrals: bool) -> Self {
        Self { integrals, ..self }
    }

    /// Epsilon of one query from no votes: that of the chosen bound, between `classes` classes. For Gaussian and Skellam
    /// noise, which have no pure epsilon, that at delta.
    #[must_use]
    pub fn per_query_epsilon(&self, classes: usize) -> f64 {
        if self.event.noise().gamma().is_none() {
            return self.renyi_without_votes(1, self.delta.get()).map_or(f64::INFINITY, |outcome| outcome.best.epsilon);
        }
        match self.bound {
            Bound::Paper => per_query_epsilon(&self.event),
            Bound::Outcome | Bound::Tight => tight_per_query_epsilon(&self.event, classes),
        }
    }

    /// Accounts for queries with these votes: a row for each query, a column for each class.
    ///
    /// # Errors
    /// [`AccountError`] if there are no rows, if rows differ in length or in the number of votes, if there are fewer than
    /// two classes or no votes, if no order is allowed, if a trusted aggregator is assumed and `tau` is not 1, if the
    /// sampler's distance uses up delta, if there are more than 2000 teachers to try every number of, or if no finite epsilon
    /// is known.
    pub fn account(&self, counts: &[Vec<u32>]) -> Result<Account, AccountError> {
        self.check()?;
        let gaps = checked_gaps(counts)?;
        let classes = counts.first().map_or(2, Vec::len);
        let teachers = counts.first().map_or(0, |row| row.iter().copied().map(u64::from).sum());
        let epsilon = self.per_query_epsilon(classes);
        let rows: Vec<(Gaps, &[u32])> = gaps.into_iter().zip(counts.iter().map(Vec::as_slice)).collect();
        let cases = self.cases(teachers)?;
        let best = |delta: f64| {
            let with_votes = self.worst_of(&cases, &rows, classes, delta)?;
            // A bound that looks at no votes holds at these as well; it takes long, and is hardly ever less than this part
            // of the simplest one.
            let simplest = optimal_epsilon(epsilon, counts.len(), delta);
            let pure = self.event.noise().gamma().is_some();
            if self.bound == Bound::Paper || pure && with_votes.best.epsilon < WORTH_COMPARING * simplest {
                return Ok(with_votes);
            }
            let without = self.without_votes(counts.len(), epsilon, delta)?;
            Ok(if without.best.epsilon < with_votes.best.epsilon { without } else { with_votes })
        };
        self.finish(counts.len(), epsilon, best, Some(teachers))
    }

    /// What may have become of the noise, each to be covered: the noise that nobody knows, and what the adversary knows.
    fn cases(&self, teachers: u64) -> Result<Vec<(PrivacyEvent, Others)>, AccountError> {
        let tau = self.event.tau();
        let (n, most) = (teachers as f64, 1.0 - tau.get());
        // Numbers of teachers beyond the ratio, as ratios.
        let counted = || (1..=teachers).map(|j| j as f64 / n);
        let ratio = |ratio: f64| HonestRatio::new(ratio).map_err(|_| AccountError::Teachers { found: teachers });
        if self.extent == Extent::UpTo && teachers > MOST_TEACHERS {
            return Err(AccountError::Teachers { found: teachers });
        }
        let mut cases = vec![(self.event, Others::Missing)];
        match (self.assume, self.extent) {
            _ if tau.get() == 1.0 => {}
            (Assume::Central, _) | (Assume::Dropout, Extent::Exactly) => {}
            // The paper's formulas know one case only.
            (Assume::Collusion, _) if self.bound == Bound::Paper => {
                cases = vec![(self.event, Others::Known(ratio(most)?))];
            }
            (Assume::Collusion, Extent::Exactly) => cases.push((self.event, Others::Known(ratio(most)?))),
            (Assume::Collusion, Extent::UpTo) => {
                // Noise that is secret costs no more than if it were known.
                let known = counted().filter(|known| *known < most * (1.0 - 1e-12)).chain([most]);
                for known in known {
                    cases.push((self.event, Others::Known(ratio(known)?)));
                }
            }
            (Assume::Dropout, Extent::UpTo) => {
                for more in counted().filter(|more| *more > tau.get() * (1.0 + 1e-12)) {
                    cases.push((self.event.with_tau(ratio(more)?), Others::Missing));
                }
            }
        }
        Ok(cases)
    }

    /// An epsilon that one query keeps but for a probability that hardly shows in delta: the pure one if none is less.
    fn within(&self, epsilon: f64, classes: usize, queries: usize, delta: f64) -> Within {
        let pure = Within { epsilon, beyond: 0.0 };
        let two_classes = classes == 2 && self.event.threshold().is_none();
        if self.bound == Bound::Paper || self.event.tau().get() == 1.0 || two_classes {
            return pure;
        }
        match per_query::within(&self.event) {
            Some(within) if within.epsilon < epsilon && queries as f64 * within.beyond < BEYOND * delta => within,
            _ => pure,
        }
    }

    /// The largest of the least epsilons of all cases.
    fn worst_of(
        &self,
        cases: &[(PrivacyEvent, Others)],
        rows: &[(Gaps, &[u32])],
        classes: usize,
        delta: f64,
    ) -> Result<Outcome, AccountError> {
        let of = |&(event, others): &(PrivacyEvent, Others), order: Option<f64>| {
            let accountant = Self { event, ..*self };
            let epsilon = accountant.per_query_epsilon(classes);
            let within = accountant.within(epsilon, classes, rows.len(), delta);
            let delta = (delta - rows.len() as f64 * within.beyond).next_down();
            let request = CostsRequest {
                event: &event,
                epsilon,
                within: within.epsilon,
                others,
                directions: self.directions,
                bound: self.bound,
                integrals: self.integrals,
                delta,
            };
            accountant.with_votes(&Costs::new(&request, rows), order, delta)
        };
        let (first, others) = cases.split_first().ok_or(AccountError::NoQueries)?;
        let mut worst = of(first, None)?;
        let order = Some(worst.best.order);
        let found: Vec<Result<Outcome, AccountError>> = others.par_iter().map(|case| of(case, order)).collect();
        for outcome in found {
            let outcome = outcome?;
            if larger(outcome.best.epsilon, worst.best.epsilon) > worst.best.epsilon {
                worst = outcome;
            }
        }
        Ok(worst)
    }

    /// What [`Self::account`] says, as a value that may itself be published: a smooth upper bound of the moments in both
    /// directions, released with noise from `rng` ([`crate::Release`]; docs/privacy.md, "Publication"). The claim covers the answers
    /// and the value together. It is larger than the account that must stay secret, and it is for **one** release: each
    /// further one costs its own moment again.
    ///
    /// `simulation` says that `rng` is seeded by hand; then the claim says so too and the value is not publishable.
    ///
    /// # Errors
    /// Those of [`Self::account`], and [`AccountError::Release`] for options out of range.
    pub fn release(
        &self,
        counts: &[Vec<u32>],
        options: &ReleaseOptions,
        rng: &mut impl CryptoRng,
        simulation: bool,
    ) -> Result<Account, AccountError> {
        self.check()?;
        let gaps = checked_gaps(counts)?;
        let classes = counts.first().map_or(2, Vec::len);
        let teachers = counts.first().map_or(0, |row| row.iter().copied().map(u64::from).sum());
        // The paper's formulas hold in one direction only.
        let both = Self { directions: Directions::Both, bound: Bound::Outcome, ..*self };
        let epsilon = both.per_query_epsilon(classes);
        // The noise is drawn once, so what the sampler costs is set aside beforehand, without looking at votes.
        let (left, ceiling) = self.little_set_aside()?;
        let cases = both.cases(teachers)?;
        let released = both.released(&cases, &gaps, classes, left, options, rng, simulation)?;
        let best = Best { order: released.order, epsilon: released.epsilon * (1.0 + ROUNDING), at_edge: false };
        if best.epsilon.is_nan() || best.epsilon > ceiling {
            return Err(self.used_up(best.epsilon));
        }
        let dependent = if released.helps { counts.len() } else { 0 };
        let outcome = Outcome { best, by: Method::Moments, dependent };
        both.claimed(counts.len(), epsilon, outcome, Some(teachers), Some(released.release))
    }

    /// Between so many classes, for accounts without votes: two cost less than more. Votes say themselves how many there are.
    #[must_use]
    pub fn with_classes(self, classes: usize) -> Self {
        Self { classes: Some(classes), ..self }
    }

    /// Accounts for `queries` queries whatever the votes are, between any number of classes unless one is given. Holds in both
    /// directions and with known noise, and may be published.
    ///
    /// # Errors
    /// [`AccountError::NoQueries`] for no queries, [`AccountError::NoOrders`] if no order is allowed,
    /// [`AccountError::Queries`] for more than a million, [`AccountError::TooFewClasses`] for fewer than two,
    /// [`AccountError::CentralRatio`], [`AccountError::DeltaUsedUp`] and
    /// [`AccountError::NotFinite`] as for [`Self::account`].
    pub fn account_queries(&self, queries: usize) -> Result<Account, AccountError> {
        self.check()?;
        if queries == 0 {
            return Err(AccountError::NoQueries);
        }
        if queries > MOST_QUERIES {
            return Err(AccountError::Queries { found: queries });
        }
        if let Some(found) = self.classes.filter(|classes| *classes < 2) {
            return Err(AccountError::TooFewClasses { row: 0, found });
        }
        let epsilon = self.per_query_epsilon(self.classes.unwrap_or(usize::MAX));
        self.finish(queries, epsilon, |delta| self.without_votes(queries, epsilon, delta), None)
    }

    fn check(&self) -> Result<(), AccountError> {
        let tau = self.event.tau().get();
        if self.assume == Assume::Central && tau != 1.0 {
            return Err(AccountError::CentralRatio { tau });
        }
        Ok(())
    }

    /// What a sampler within a total variation of `d` of the exact noise costs: a mechanism within `d` of an (epsilon,
    /// delta')-private one is (epsilon, delta' + (1 + e^epsilon) d)-private.
    fn charge_of_sampler(&self, epsilon: f64) -> f64 {
        match self.event.sampling_distance() {
            0.0 => 0.0,
            distance => (1.0 + epsilon.exp()) * distance * (1.0 + 4.0 * f64::EPSILON),
        }
    }

    fn used_up(&self, epsilon: f64) -> AccountError {
        AccountError::DeltaUsedUp { charge: self.charge_of_sampler(epsilon), delta: self.delta.get(), epsilon }
    }

    /// Delta with a small part of it set aside for the sampler, and the largest epsilon for which that is enough.
    fn little_set_aside(&self) -> Result<(f64, f64), AccountError> {
        let (delta, distance) = (self.delta.get(), self.event.sampling_distance());
        if distance == 0.0 {
            return Ok((delta, f64::INFINITY));
        }
        let aside = delta * SET_ASIDE;
        let ceiling = (aside / distance * (1.0 - 1e-12) - 1.0).ln();
        if ceiling > 0.0 { Ok(((delta - aside).next_down(), ceiling)) } else { Err(self.used_up(0.0)) }
    }

    /// Charges the sampler to delta, at the claim's own epsilon, and writes the claim.
    fn finish(
        &self,
        queries: usize,
        per_query_epsilon: f64,
        best: impl Fn(f64) -> Result<Outcome, AccountError>,
        teachers: Option<u64>,
    ) -> Result<Account, AccountError> {
        let claimed = |outcome| self.claimed(queries, per_query_epsilon, outcome, teachers, None);
        if let Ok((left, ceiling)) = self.little_set_aside() {
            let outcome = best(left)?;
            if outcome.best.epsilon <= ceiling {
                return claimed(outcome);
            }
        }
        // A larger part: what an epsilon of at most one more than without a sampler costs.
        let delta = self.delta.get();
        let ceiling = best(delta)?.best.epsilon + 1.0;
        let left = (delta - self.charge_of_sampler(ceiling)).next_down();
        if left.is_nan() || left <= 0.0 {
            return Err(self.used_up(ceiling));
        }
        let outcome = best(left)?;
        if outcome.best.epsilon <= ceiling { claimed(outcome) } else { Err(self.used_up(outcome.best.epsilon)) }
    }

    fn claimed(
        &self,
        queries: usize,
        per_query_epsilon: f64,
        outcome: Outcome,
        teachers: Option<u64>,
        release: Option<Release>,
    ) -> Result<Account, AccountError> {
        let (epsilon, delta) = (outcome.best.epsilon, self.delta.get());
        if !epsilon.is_finite() {
            return Err(AccountError::NotFinite { found: epsilon });
        }
        let claim = Claim {
            event: &self.event,
            assume: self.assume,
            extent: self.extent,
            directions: if teachers.is_some() { self.directions } else { Directions::Both },
            bound: self.bound,
            teachers,
            classes: self.classes,
            epsilon,
            delta,
            release: release.as_ref(),
        };
        Ok(Account {
            epsilon,
            delta,
            order: (outcome.by != Method::Optimal).then_some(outcome.best.order),
            order_at_edge: outcome.by == Method::Moments && outcome.best.at_edge,
            composition: outcome.by,
            per_query_epsilon,
            queries,
            data_dependent_queries: outcome.dependent,
            noise: self.event.noise(),
            tau: self.event.tau(),
            threshold: self.event.threshold(),
            bound: self.bound,
            assume: self.assume,
            extent: self.extent,
            directions: claim.directions,
            publishable: release.as_ref().map_or(teachers.is_none(), |release| !release.simulation),
            claim: claim.in_words(),
            release,
        })
    }
}

fn checked_gaps(counts: &[Vec<u32>]) -> Result<Vec<Gaps>, AccountError> {
    let first = counts.first().ok_or(AccountError::NoQueries)?;
    let votes = |row: &[u32]| row.iter().copied().map(u64::from).sum::<u64>();
    let (classes, expected) = (first.len(), votes(first));
    counts
        .iter()
        .enumerate()
        .map(|(row, counts)| {
            if counts.len() != classes {
                return Err(AccountError::Classes { row, found: counts.len(), expected: classes });
            }
            let found = votes(counts);
            if found != expected {
                return Err(AccountError::Votes { row, found, expected });
            }
            Gaps::of(row, counts)
        })
        .collect()
}
