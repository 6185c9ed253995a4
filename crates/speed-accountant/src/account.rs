//! From votes to epsilon.

use std::cell::Cell;

use rand::CryptoRng;
use serde::{Deserialize, Serialize};
use speed_mechanism::HonestRatio;

use crate::claim::Claim;
use crate::composition::{
    Composition, gaussian_epsilon, improved_epsilon, optimal_epsilon, skellam_epsilon, tail_bound_epsilon,
};
use crate::costs::{Costs, Total};
use crate::moments::{paper_without_votes, pure_moment};
use crate::orders::{Best, LARGEST_REAL, best_real, best_whole};
use crate::outcome::Gaps;
use crate::per_query::{per_query_epsilon, tight_per_query_epsilon};
use crate::renyi::{SkellamCurve, gaussian_rdp};
use crate::{AccountError, Assume, Bound, Delta, Directions, Noise, PrivacyEvent, Release, ReleaseOptions};

/// The largest moment order of the paper: "it captures the best moments accountant in every case" (Algorithm 1).
pub const LARGEST_ORDER: u32 = 25;

/// What rounding may have cost an epsilon of the tight bounds, relative to it.
const ROUNDING: f64 = 1e-9;

/// How an epsilon was composed from the queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Sums of moments of the privacy loss, converted at the best order.
    #[default]
    Moments,
    /// Convolution of distributions of the privacy loss.
    LossDistributions,
    /// In closed form: the optimal composition of one pure epsilon, or Gaussian differential privacy.
    Optimal,
}

/// What a run of queries costs, and what that means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// Epsilon of the claim. Not rounded: use [`round_up`](crate::round_up) to print it.
    pub epsilon: f64,
    /// Delta of the claim, in full: what the sampler costs is already inside.
    pub delta: f64,
    /// How the queries were composed.
    #[serde(default)]
    pub composition: Method,
    /// The moment order that gave `epsilon`, or by which loss distributions were tilted; none for an optimum that needs
    /// neither.
    pub order: Option<f64>,
    /// Whether that is the smallest or largest order that was tried, so that another might be better.
    pub order_at_edge: bool,
    /// Epsilon of one query, from no votes; for Gaussian and Skellam noise that of one query at `delta`.
    pub per_query_epsilon: f64,
    /// How many queries were accounted.
    pub queries: usize,
    /// How many of them the votes made cheaper, at the chosen order; 0 for a data-independent account.
    pub data_dependent_queries: usize,
    /// Which noise was accounted.
    #[serde(flatten)]
    pub noise: Noise,
    /// The ratio of teachers whose noise is present and secret.
    pub tau: HonestRatio,
    /// The noisy votes that an answer needs.
    #[serde(default)]
    pub threshold: Option<f64>,
    /// Which formulas.
    #[serde(default = "paper")]
    pub bound: Bound,
    /// What became of the other teachers' noise.
    #[serde(default)]
    pub assume: Assume,
    /// Which directions of the inequality.
    #[serde(default = "one")]
    pub directions: Directions,
    /// Whether the value may be published as it is: it looked at no votes.
    #[serde(default)]
    pub publishable: bool,
    /// How a value that looked at votes was released; none for other accounts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<Release>,
    /// The claim in words: between whom, under which assumption, in which direction, and whether it may be published.
    pub claim: String,
}

// What accounts that were written before these fields existed mean.
fn paper() -> Bound {
    Bound::Paper
}

fn one() -> Directions {
    Directions::One
}

/// Algorithm 1 with its errata: Theorem 3 for each query and order, the sum over queries, and the tail bound
/// `(alpha(l) - ln delta) / l`, the least over `l = 1..=25`.
///
/// `counts` has a row of votes for each query and a column for each class. The result depends on the votes; read
/// [`Account::claim`] before publishing it.
///
/// # Errors
/// Those of [`Accountant::account`].
pub fn account(counts: &[Vec<u32>], event: PrivacyEvent, delta: Delta) -> Result<Account, AccountError> {
    Accountant::paper(event, delta).account(counts)
}

/// [`account`] with moment orders `1..=largest_order`.
///
/// # Errors
/// Those of [`account`], and [`AccountError::NoOrders`] for a largest order of 0.
pub fn account_up_to(
    counts: &[Vec<u32>],
    event: PrivacyEvent,
    delta: Delta,
    largest_order: u32,
) -> Result<Account, AccountError> {
    Accountant::paper(event, delta).with_largest_order(f64::from(largest_order)).account(counts)
}

/// The same composition without votes: only the branches of Theorem 3 that do not depend on them. Holds in both
/// directions and under collusion, and may be published.
///
/// # Errors
/// Those of [`Accountant::account_queries`].
pub fn account_data_independent(queries: usize, event: PrivacyEvent, delta: Delta) -> Result<Account, AccountError> {
    Accountant::paper(event, delta).account_queries(queries)
}

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

/// An epsilon and how it came about.
struct Outcome {
    best: Best,
    by: Method,
    dependent: usize,
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

    /// The least epsilon of these costs; `order` is that of costs alike, where it takes long to look for the best.
    fn with_votes(&self, costs: &Costs, order: Option<f64>, delta: f64) -> Result<Outcome, AccountError> {
        let total = Cell::new(Total { alpha: 0.0, dependent: 0 });
        let alpha = |l: f64| {
            total.set(costs.total(l));
            total.get().alpha
        };
        let best = match order.filter(|_| costs.is_exact_mixture()) {
            Some(order) => {
                let epsilon = improved_epsilon(alpha(order), order, delta) * (1.0 + ROUNDING);
                Best { order, epsilon, at_edge: false }
            }
            None => self.of_moments(delta, |l| costs.estimate(l), alpha)?,
        };
        let dependent =
            if self.bound == Bound::Paper { costs.total(best.order).dependent } else { total.get().dependent };
        let moments = Outcome { best, by: Method::Moments, dependent };
        if self.bound != Bound::Tight {
            return Ok(moments);
        }
        // Whole distributions of the loss say more than their moments; the best order is the best tilt.
        let composed = costs.losses().and_then(|[there, back]| {
            let epsilon = |losses: &[_]| Some(Composition::new(losses, best.order)?.epsilon(delta));
            let there = epsilon(&there)?;
            let back = if self.directions == Directions::Both { epsilon(&back)? } else { there };
            Some(there.max(back) * (1.0 + ROUNDING))
        });
        Ok(match composed {
            Some(epsilon) if epsilon < best.epsilon => {
                Outcome { best: Best { epsilon, at_edge: false, ..best }, by: Method::LossDistributions, dependent }
            }
            _ => moments,
        })
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

    /// The best order of some moments; `estimate` may be cheaper than `total` and is only followed.
    fn of_moments(
        &self,
        delta: f64,
        estimate: impl Fn(f64) -> f64,
        total: impl Fn(f64) -> f64,
    ) -> Result<Best, AccountError> {
        if self.bound == Bound::Paper {
            let largest = self.largest_order.unwrap_or(f64::from(LARGEST_ORDER));
            return best_whole(largest.max(0.0) as u32, |l| tail_bound_epsilon(total(l), l, delta))
                .ok_or(AccountError::NoOrders);
        }
        let largest = self.largest_order.unwrap_or(LARGEST_REAL);
        let best = best_real(largest, |l| improved_epsilon(estimate(l), l, delta)).ok_or(AccountError::NoOrders)?;
        let epsilon = improved_epsilon(total(best.order), best.order, delta) * (1.0 + ROUNDING);
        Ok(Best { epsilon, ..best })
    }

    fn without_votes(&self, queries: usize, epsilon: f64, delta: f64) -> Result<Outcome, AccountError> {
        let k = queries as f64;
        if self.event.noise().gamma().is_none() {
            return self.renyi_without_votes(queries, delta);
        }
        if self.bound == Bound::Paper {
            let total = |l| k * paper_without_votes(epsilon, l);
            let best = self.of_moments(delta, total, total)?;
            return Ok(Outcome { best, by: Method::Moments, dependent: 0 });
        }
        // Optimal for a pure epsilon, so no order can do better; but it is a sum over the queries.
        if queries > 2_000_000 {
            let total = |l| k * pure_moment(epsilon, l);
            return Ok(Outcome { best: self.of_moments(delta, total, total)?, by: Method::Moments, dependent: 0 });
        }
        let epsilon = optimal_epsilon(epsilon, queries, delta) * (1.0 + ROUNDING);
        Ok(Outcome { best: Best { order: 0.0, epsilon, at_edge: false }, by: Method::Optimal, dependent: 0 })
    }

    fn renyi_without_votes(&self, queries: usize, delta: f64) -> Result<Outcome, AccountError> {
        let (k, tau) = (queries as f64, self.event.tau());
        match self.event.noise() {
            Noise::Gaussian { sigma } if self.bound != Bound::Paper => {
                let mu = (2.0 * k / tau.get()).sqrt() / sigma.get();
                let epsilon = gaussian_epsilon(mu, delta) * (1.0 + ROUNDING);
                Ok(Outcome { best: Best { order: 0.0, epsilon, at_edge: false }, by: Method::Optimal, dependent: 0 })
            }
            Noise::Gaussian { sigma } => {
                let total = |l: f64| k * l * gaussian_rdp(sigma, tau, l + 1.0);
                Ok(Outcome { best: self.of_moments(delta, total, total)?, by: Method::Moments, dependent: 0 })
            }
            Noise::Skellam { sigma } => {
                let curve = SkellamCurve::new(sigma, tau);
                let total = |l: f64| k * l * curve.rdp(l + 1.0);
                let best = self.of_moments(delta, total, total)?;
                let composed = (self.bound == Bound::Tight)
                    .then(|| skellam_epsilon(sigma, tau, queries, delta, best.order))
                    .flatten()
                    .map(|epsilon| epsilon * (1.0 + ROUNDING));
                Ok(match composed {
                    Some(epsilon) if epsilon < best.epsilon => Outcome {
                        best: Best { epsilon, at_edge: false, ..best },
                        by: Method::LossDistributions,
                        dependent: 0,
                    },
                    _ => Outcome { best, by: Method::Moments, dependent: 0 },
                })
            }
            Noise::Laplace { .. } | Noise::DiscreteLaplace { .. } => Err(AccountError::NoOrders),
        }
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
