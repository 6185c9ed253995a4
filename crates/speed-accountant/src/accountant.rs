//! From votes to epsilon.

mod least_epsilon;

use rand::CryptoRng;

use crate::account::{Account, Method};
use crate::claim::Claim;
use crate::costs::Costs;
use crate::orders::Best;
use crate::outcome::Gaps;
use crate::per_query::{per_query_epsilon, tight_per_query_epsilon};
use crate::{AccountError, Assume, Bound, Delta, Directions, PrivacyEvent, Release, ReleaseOptions};
use least_epsilon::{Outcome, ROUNDING};

pub use least_epsilon::LARGEST_ORDER;

/// Accounts for queries: which noise, which delta, and under which assumptions.
///
/// The default is the tightest valid claim at given votes: [`Bound::Tight`], [`Directions::Both`], [`Assume::Dropout`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accountant {
    event: PrivacyEvent,
    delta: Delta,
    assume: Assume,
    directions: Directions,
    bound: Bound,
    largest_order: Option<f64>,
    integrals: bool,
}

impl Accountant {
    /// The tightest valid bounds.
    #[must_use]
    pub fn new(event: PrivacyEvent, delta: Delta) -> Self {
        Self {
            event,
            delta,
            assume: Assume::default(),
            directions: Directions::default(),
            bound: Bound::default(),
            largest_order: None,
            integrals: true,
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
    /// larger by a few percent.
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
    /// two classes or no votes, if no order is allowed, if a trusted aggregator is assumed and `tau` is not 1, or if the
    /// sampler's distance uses up delta.
    pub fn account(&self, counts: &[Vec<u32>]) -> Result<Account, AccountError> {
        self.check()?;
        let gaps = checked_gaps(counts)?;
        let classes = counts.first().map_or(2, Vec::len);
        let teachers = counts.first().map_or(0, |row| row.iter().copied().map(u64::from).sum());
        let epsilon = self.per_query_epsilon(classes);
        let rows: Vec<(Gaps, &[u32])> = gaps.into_iter().zip(counts.iter().map(Vec::as_slice)).collect();
        let costs =
            |assume| Costs::new(&self.event, epsilon, assume, self.directions, self.bound, self.integrals, &rows);
        let asked = costs(self.assume);
        // Known noise may make votes less close than they are: colluders who leave theirs out are covered as well.
        let left_out = (self.assume == Assume::Collusion && self.bound == Bound::Tight && self.event.tau().get() < 1.0)
            .then(|| costs(Assume::Dropout));
        let best = |delta: f64| {
            let with_votes = match &left_out {
                None => self.with_votes(&asked, None, delta)?,
                Some(left_out) => {
                    let dropout = self.with_votes(left_out, None, delta)?;
                    let known = self.with_votes(&asked, Some(dropout.best.order), delta)?;
                    if known.best.epsilon > dropout.best.epsilon { known } else { dropout }
                }
            };
            if self.bound == Bound::Paper {
                return Ok(with_votes);
            }
            // A bound that looks at no votes holds at these as well.
            let without = self.without_votes(counts.len(), epsilon, delta)?;
            Ok(if without.best.epsilon < with_votes.best.epsilon { without } else { with_votes })
        };
        self.finish(counts.len(), epsilon, best, Some(teachers))
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
        // The noise is drawn once; the sampler's distance is charged beforehand, at the worst case.
        let without = both.without_votes(counts.len(), epsilon, self.delta.get())?.best.epsilon;
        let left = match self.event.sampling_distance() {
            0.0 => self.delta.get(),
            distance => {
                let charge = (1.0 + (without + 1.0).exp()) * distance * (1.0 + 4.0 * f64::EPSILON);
                self.delta.get() - charge
            }
        };
        if left.is_nan() || left <= 0.0 {
            return Err(AccountError::DeltaUsedUp { charge: self.delta.get() - left, delta: self.delta.get() });
        }
        let released = both.released(&gaps, epsilon, left, options, rng, simulation)?;
        let best = Best { order: released.order, epsilon: released.epsilon * (1.0 + ROUNDING), at_edge: false };
        let dependent = if released.helps { counts.len() } else { 0 };
        let outcome = Outcome { best, by: Method::Moments, dependent };
        Ok(both.claimed(counts.len(), epsilon, outcome, Some(teachers), Some(released.release)))
    }

    pub(crate) fn event(&self) -> &PrivacyEvent {
        &self.event
    }

    pub(crate) fn assume(&self) -> Assume {
        self.assume
    }

    /// Accounts for `queries` queries whatever the votes are, between any number of classes. Holds in both directions
    /// and with known noise, and may be published.
    ///
    /// # Errors
    /// [`AccountError::NoQueries`] for no queries, [`AccountError::NoOrders`] if no order is allowed,
    /// [`AccountError::CentralRatio`] and [`AccountError::DeltaUsedUp`] as for [`Self::account`].
    pub fn account_queries(&self, queries: usize) -> Result<Account, AccountError> {
        self.check()?;
        if queries == 0 {
            return Err(AccountError::NoQueries);
        }
        let epsilon = self.per_query_epsilon(usize::MAX);
        self.finish(queries, epsilon, |delta| self.without_votes(queries, epsilon, delta), None)
    }

    fn check(&self) -> Result<(), AccountError> {
        let tau = self.event.tau().get();
        if self.assume == Assume::Central && tau != 1.0 {
            return Err(AccountError::CentralRatio { tau });
        }
        Ok(())
    }

    /// Charges the sampler to delta and writes the claim.
    fn finish(
        &self,
        queries: usize,
        per_query_epsilon: f64,
        best: impl Fn(f64) -> Result<Outcome, AccountError>,
        teachers: Option<u64>,
    ) -> Result<Account, AccountError> {
        let delta = self.delta.get();
        let mut outcome = best(delta)?;
        let distance = self.event.sampling_distance();
        if distance > 0.0 {
            // A mechanism within a total variation of `d` of an (epsilon, delta')-private one is (epsilon, delta' + (1 +
            // e^epsilon) d) -private. Set aside what that costs for an epsilon of at most one more than without.
            let ceiling = outcome.best.epsilon + 1.0;
            let charge = (1.0 + ceiling.exp()) * distance * (1.0 + 4.0 * f64::EPSILON);
            let used_up = AccountError::DeltaUsedUp { charge, delta };
            let left = (delta - charge).next_down();
            if left.is_nan() || left <= 0.0 {
                return Err(used_up);
            }
            outcome = best(left)?;
            if outcome.best.epsilon > ceiling {
                return Err(used_up);
            }
        }
        Ok(self.claimed(queries, per_query_epsilon, outcome, teachers, None))
    }

    fn claimed(
        &self,
        queries: usize,
        per_query_epsilon: f64,
        outcome: Outcome,
        teachers: Option<u64>,
        release: Option<Release>,
    ) -> Account {
        let (epsilon, delta) = (outcome.best.epsilon, self.delta.get());
        let claim = Claim {
            event: &self.event,
            assume: self.assume,
            directions: if teachers.is_some() { self.directions } else { Directions::Both },
            bound: self.bound,
            teachers,
            epsilon,
            delta,
            release: release.as_ref(),
        };
        Account {
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
            directions: claim.directions,
            publishable: release.as_ref().map_or(teachers.is_none(), |release| !release.simulation),
            claim: claim.in_words(),
            release,
        }
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
