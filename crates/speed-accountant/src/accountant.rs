//! The accountant: it computes an epsilon from votes and the parameters of the noise.

use rayon::prelude::*;
use speed_mechanism::{Mechanism, NoiseGenerator};

use crate::account::Account;
use crate::assumption::{Adversary, Assumptions, Bound, Extent, NeighbouringRelation};
use crate::checks::Checks;
use crate::claim::Claim;
use crate::composition::{MAX_QUERIES, optimal_epsilon};
use crate::data_dependent::{CostsRequest, DataDependentCosts};
use crate::data_independent::least_bound_of_kinds;
use crate::delta::Delta;
use crate::epsilon_bound::{CompositionMethod, EpsilonBound, ROUNDING};
use crate::error::AccountError;
use crate::event::PrivacyEvent;
use crate::least_epsilon::{LEFT_OUT, LeastEpsilon, left_out};
use crate::memo::Memo;
use crate::neighbour_losses::Unlikely;
use crate::noise_case::NoiseCase;
use crate::orders::Best;
use crate::per_query::{self, Within, per_query_epsilon, tight_per_query_epsilon};
use crate::query_group::QueryGroup;
use crate::release::{Release, ReleaseOptions};
use crate::sampler::SharedDelta;
use crate::smooth_release::MomentRelease;
use crate::sound::larger;
use crate::votes::CheckedCounts;

/// An account at given votes is compared with the data-independent bounds only if it is at least this fraction of the
/// optimal composition of the pure epsilons.
const WORTH_COMPARING: f64 = 0.25;
/// The least share of delta of a query from which answers are left out.
const MIN_SHARE: f64 = 1e-120;
/// The largest fraction of delta that may pay for the event that a query exceeds the epsilon of `per_query::within`.
const BEYOND: f64 = 1e-6;

/// An accountant of queries: their noise, the delta of the claim and its assumptions.
///
/// The default is the tightest valid claim at given votes: [`Bound::Tight`], [`NeighbouringRelation::BothWays`],
/// [`Adversary::ExternalWithDropout`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accountant {
    event: PrivacyEvent,
    delta: Delta,
    assumptions: Assumptions,
    max_order: Option<f64>,
    integrals: bool,
    classes: Option<usize>,
    checks: Option<Checks>,
}

impl Accountant {
    /// Creates an accountant with the tightest valid bounds.
    pub fn new(event: PrivacyEvent, delta: Delta) -> Self {
        let assumptions = Assumptions::default();
        Self { event, delta, assumptions, max_order: None, integrals: true, classes: None, checks: None }
    }

    /// Creates an accountant with the paper's Algorithm 1, with its errata: Theorem 3 for each query and order, the sum over
    /// queries, and the least tail bound `(alpha(l) - ln delta) / l` over `l = 1..=25`; one direction, and the noise of the
    /// other teachers missing.
    pub fn paper(event: PrivacyEvent, delta: Delta) -> Self {
        Self::new(event, delta).with_relation(NeighbouringRelation::OneSided).with_bound(Bound::Paper)
    }

    /// Sets the adversary, which also determines how the other teachers' noise is treated.
    #[must_use]
    pub fn with_adversary(mut self, adversary: Adversary) -> Self {
        self.assumptions.adversary = adversary;
        self
    }

    /// Sets the number of teachers whose noise is missing or known: exactly the fraction `1 - tau`, or any number up to
    /// this fraction.
    #[must_use]
    pub fn with_extent(mut self, extent: Extent) -> Self {
        self.assumptions.extent = extent;
        self
    }

    /// Sets the direction of the inequality between neighbours.
    #[must_use]
    pub fn with_relation(mut self, relation: NeighbouringRelation) -> Self {
        self.assumptions.relation = relation;
        self
    }

    /// Sets the formulas of the bound.
    #[must_use]
    pub fn with_bound(mut self, bound: Bound) -> Self {
        self.assumptions.bound = bound;
        self
    }

    /// Sets the largest moment order that is tried: an integer for [`Bound::Paper`] (25 by default), a real number
    /// otherwise (4096 by default).
    #[must_use]
    pub fn with_max_order(self, max: f64) -> Self {
        Self { max_order: Some(max), ..self }
    }

    /// Sets whether `q` (docs/privacy.md) is computed by integration if votes are close. Otherwise `q` is bounded by
    /// pairs of classes: this is faster by an order of magnitude, and the bound is larger by a few percent. Continuous
    /// Laplace noise of less than a tenth of the teachers is never integrated.
    #[must_use]
    pub fn with_integrals(self, integrals: bool) -> Self {
        Self { integrals, ..self }
    }

    /// Sets the number of classes, for accounts without votes: two classes cost less than three or more. With votes,
    /// the rows determine the number of classes.
    #[must_use]
    pub fn with_classes(self, classes: usize) -> Self {
        Self { classes: Some(classes), ..self }
    }

    /// Adds checks before the answers. With votes, the rows are those of all checked queries, whether they were answered
    /// or not: the account covers both steps and every outcome of the checks. Without votes, the number of queries is the
    /// largest number of answers, fixed before the first check.
    #[must_use]
    pub fn after(self, checks: Checks) -> Self {
        Self { checks: Some(checks), ..self }
    }

    /// Returns the data-independent epsilon of one query with `classes` classes, by the formulas of the chosen bound.
    /// For Gaussian, Skellam and binomial noise, which have no pure epsilon, it returns the epsilon of one query at delta.
    pub fn per_query_epsilon(&self, classes: usize) -> f64 {
        if self.event.mechanism().gamma().is_none() {
            static KNOWN: Memo<8, f64> = Memo::new();
            let ([kind, scale, tau, moved], delta) = (self.event.noise_key(), self.delta.get());
            let two_classes = f64::from(u8::from(self.event.is_one_difference(classes)));
            let bound = f64::from(self.assumptions.bound as u8);
            let max_order = self.max_order.unwrap_or(-1.0);
            return KNOWN.get_or([kind, scale, tau, moved, delta, two_classes, bound, max_order], || {
                let one = self.least(delta).whatever_the_votes(&self.event, f64::INFINITY, classes, 1);
                one.map_or(f64::INFINITY, |bound| bound.best.epsilon)
            });
        }
        match self.assumptions.bound {
            Bound::Paper => per_query_epsilon(&self.event),
            Bound::Outcome | Bound::Tight => tight_per_query_epsilon(&self.event, classes),
        }
    }

    /// Accounts for queries with these votes of `teachers` teachers: one row for each query, one column for each class. The
    /// votes that a row lacks are empty. The number of teachers is never taken from the rows: if a teacher's votes were
    /// empty on every query, the sums would be too small, and so would the claim.
    ///
    /// # Errors
    /// [`AccountError`] in one of these cases:
    /// - Rows or teachers are missing, rows differ in length, or a row has more votes than teachers.
    /// - There are fewer than two classes, or no order is allowed.
    /// - A trusted aggregator is assumed and `tau` is not 1.
    /// - The sampler's distance uses up delta.
    /// - There are more than 2000 teachers, and every number of them would have to be tried.
    /// - The checks do not fit the answers or the number of rows, or have no answers.
    /// - No finite epsilon is known.
    pub fn account(&self, counts: &[Vec<u32>], teachers: usize) -> Result<Account, AccountError> {
        self.check_at_votes()?;
        let votes = CheckedCounts::new(counts, teachers)?;
        if let Some(checks) = self.checks.filter(|checks| checks.queries != votes.queries()) {
            let (found, expected) = (votes.queries().to_string().into(), checks.queries.to_string().into());
            return Err(AccountError::Checks { what: "rows of checked queries", found, expected });
        }
        let (queries, epsilon) = (votes.queries(), self.per_query_epsilon(votes.classes));
        let cases = NoiseCase::all(self.event, &self.assumptions, votes.teachers)?;
        let bound = self.shared_delta().least(|delta| {
            let at_votes = self.worst_of(&cases, &votes, delta)?;
            if let Some(checks) = &self.checks {
                let without = self.whatever_the_votes_after(checks, votes.classes, queries, delta);
                return Ok(if without.best.epsilon < at_votes.best.epsilon { without } else { at_votes });
            }
            // A data-independent bound holds at these votes as well. It is slow to compute, and hardly ever smaller
            // than `WORTH_COMPARING` times the simplest bound.
            let simplest = optimal_epsilon(epsilon, queries, delta);
            let pure = self.event.mechanism().gamma().is_some();
            if self.assumptions.bound == Bound::Paper || pure && at_votes.best.epsilon < WORTH_COMPARING * simplest {
                return Ok(at_votes);
            }
            let least = self.least(delta);
            if least.is_below_any_votes(&self.event, at_votes.best.epsilon, votes.classes, queries) {
                return Ok(at_votes);
            }
            let without = least.whatever_the_votes(&self.event, epsilon, votes.classes, queries)?;
            Ok(if without.best.epsilon < at_votes.best.epsilon { without } else { at_votes })
        })?;
        self.claimed(queries, epsilon, Some(votes.teachers), bound, None)
    }

    /// Accounts for `queries` queries with any votes, and with any number of classes unless [`Self::with_classes`] set
    /// it. The claim holds in both directions and with known noise, and may be published.
    ///
    /// # Errors
    /// [`AccountError::NoQueries`] for no queries, [`AccountError::Invalid`] if no order is allowed,
    /// [`AccountError::Queries`] for more than a million, [`AccountError::TooFewClasses`] for fewer than two,
    /// [`AccountError::Checks`] for checks that do not fit the answers, and [`AccountError::CentralRatio`],
    /// [`AccountError::DeltaUsedUp`] and [`AccountError::NotFinite`] as for [`Self::account`].
    pub fn account_queries(&self, queries: usize) -> Result<Account, AccountError> {
        self.check()?;
        if queries == 0 {
            return Err(AccountError::NoQueries);
        }
        if queries > MAX_QUERIES {
            return Err(AccountError::Queries { found: queries });
        }
        if let Some(found) = self.classes.filter(|classes| *classes < 2) {
            return Err(AccountError::TooFewClasses { row: 0, found });
        }
        let is_too_many = |classes: &usize| self.event.is_of_party() && *classes > PrivacyEvent::MAX_PARTY_CLASSES;
        if let Some(found) = self.classes.filter(is_too_many) {
            return Err(AccountError::party_classes(found, PrivacyEvent::MAX_PARTY_CLASSES));
        }
        let classes = self.classes.unwrap_or(usize::MAX);
        let epsilon = self.per_query_epsilon(classes);
        if let Some(checks) = self.checks.filter(|checks| checks.queries < queries) {
            let (found, expected) =
                (queries.to_string().into(), format!("at most the {} checked queries", checks.queries).into());
            return Err(AccountError::Checks { what: "answers", found, expected });
        }
        let bound = self.shared_delta().least(|delta| match &self.checks {
            Some(checks) => Ok(self.whatever_the_votes_after(checks, classes, queries, delta)),
            None => self.least(delta).whatever_the_votes(&self.event, epsilon, classes, queries),
        })?;
        self.claimed(queries, epsilon, None, bound, None)
    }

    /// Releases the value of [`Self::account`] so that the value itself may be published: a smooth upper bound of the
    /// moments in both directions, with noise from `generator` ([`Release`]; docs/privacy.md, "Publication"). The claim
    /// covers the answers and the value together. The released value is larger than the account, which must stay
    /// secret. The claim is for **one** release: every further release costs its own moment again.
    ///
    /// With the generator of a simulation, the claim states that it is a simulation, and the value is not publishable.
    ///
    /// # Errors
    /// The errors of [`Self::account`], [`AccountError::ReleaseOption`] for options out of range, and
    /// [`AccountError::Checks`] for answers after checks, whose value cannot be released.
    pub fn release(
        &self,
        counts: &[Vec<u32>],
        teachers: usize,
        options: &ReleaseOptions,
        generator: &mut NoiseGenerator,
    ) -> Result<Account, AccountError> {
        self.check_at_votes()?;
        if self.checks.is_some() {
            let (found, expected) = ("answers after checks".into(), "answers without checks".into());
            return Err(AccountError::Checks { what: "release", found, expected });
        }
        let votes = CheckedCounts::new(counts, teachers)?;
        // The paper's formulas hold in one direction only.
        let both = self.with_relation(NeighbouringRelation::BothWays).with_bound(Bound::Outcome);
        let epsilon = both.per_query_epsilon(votes.classes);
        // The noise is drawn once, so the sampler's cost is set aside beforehand, independently of the votes.
        let shared = SharedDelta::new(&self.event, self.delta);
        let left = shared.with_little_set_aside()?;
        let cases = NoiseCase::all(both.event, &both.assumptions, votes.teachers)?;
        let release =
            MomentRelease { cases: &cases, rows: &votes.gaps, classes: votes.classes, delta: left.delta, options };
        let released = release.publish(generator)?;
        let best = Best { order: released.order, epsilon: released.epsilon * (1.0 + ROUNDING), at_edge: false };
        if best.epsilon.is_nan() || best.epsilon > left.max_epsilon {
            return Err(shared.used_up(best.epsilon));
        }
        let dependent = if released.helps { votes.queries() } else { 0 };
        let bound = EpsilonBound { data_dependent_queries: dependent, ..EpsilonBound::of_moments(best) };
        both.claimed(votes.queries(), epsilon, Some(votes.teachers), bound, Some(released.release))
    }

    fn check(&self) -> Result<(), AccountError> {
        let tau = self.event.tau().get();
        if self.assumptions.adversary == Adversary::ExternalWithCentral && tau != 1.0 {
            return Err(AccountError::CentralRatio { tau });
        }
        if self.event.is_of_party() && self.assumptions.bound == Bound::Paper {
            return Err(AccountError::party("the paper's bound"));
        }
        let checks = self.checks.filter(|checks| checks.event.party_teachers() != self.event.party_teachers());
        if checks.is_some() {
            return Err(AccountError::party("checks for another number of teachers than the answers"));
        }
        self.checks.map_or(Ok(()), |checks| checks.precede(&self.event, self.assumptions.bound))
    }

    /// Checks an account at given votes: answers depend on all counts of a row, and bounds for neighbours that differ in
    /// several teachers hold for any votes.
    fn check_at_votes(&self) -> Result<(), AccountError> {
        self.check()?;
        if self.event.is_check() {
            let (found, expected) = ("checks".into(), "queries with answers, after the checks or without".into());
            return Err(AccountError::Checks { what: "queries at given votes", found, expected });
        }
        if self.event.is_of_party() { Err(AccountError::party("an account at given votes")) } else { Ok(()) }
    }

    fn shared_delta(&self) -> SharedDelta {
        let shared = SharedDelta::new(&self.event, self.delta);
        self.checks.map_or(shared, |checks| shared.with(&checks.event))
    }

    /// Finds the data-independent least epsilon of all checks and at most `answers` answers.
    fn whatever_the_votes_after(&self, checks: &Checks, classes: usize, answers: usize, delta: f64) -> EpsilonBound {
        let groups =
            [QueryGroup::new(checks.event, usize::MAX, checks.queries), QueryGroup::new(self.event, classes, answers)];
        let bound = least_bound_of_kinds(&groups, delta);
        EpsilonBound { best: Best { epsilon: bound.best.epsilon * (1.0 + ROUNDING), ..bound.best }, ..bound }
    }

    fn least(&self, delta: f64) -> LeastEpsilon {
        let Assumptions { bound, relation, .. } = self.assumptions;
        LeastEpsilon { bound, relation, max_order: self.max_order, delta }
    }

    /// Returns the largest of the least epsilons of all cases.
    fn worst_of(
        &self,
        cases: &[NoiseCase],
        votes: &CheckedCounts<'_>,
        delta: f64,
    ) -> Result<EpsilonBound, AccountError> {
        let of = |case: &NoiseCase, order| Self { event: case.event, ..*self }.at_case(case, votes, order, delta);
        let (first, others) = cases.split_first().ok_or(AccountError::NoQueries)?;
        let mut worst = of(first, None)?;
        let order = Some(worst.best.order);
        let found: Vec<Result<EpsilonBound, AccountError>> = others.par_iter().map(|case| of(case, order)).collect();
        for bound in found {
            let bound = bound?;
            if larger(bound.best.epsilon, worst.best.epsilon) > worst.best.epsilon {
                worst = bound;
            }
        }
        Ok(worst)
    }

    /// Returns the least epsilon of one case, whose event is this accountant's event; `order` is the order of a similar
    /// case.
    fn at_case(
        &self,
        case: &NoiseCase,
        votes: &CheckedCounts<'_>,
        order: Option<f64>,
        delta: f64,
    ) -> Result<EpsilonBound, AccountError> {
        let epsilon = self.per_query_epsilon(votes.classes);
        let within = self.within(epsilon, votes, delta);
        let queries = votes.queries() as f64;
        let unlikely = self.unlikely(epsilon, votes.classes, delta / queries);
        // A data-independent moment leaves out two answers of its own.
        let check = self.checks.map(|checks| (checks.event, self.left_out_of_check(&checks, delta / queries)));
        let of_check = check.map_or(0.0, |(_, removed)| 2.0 * removed);
        let left_out = unlikely.charge(votes.classes) + 2.0 * unlikely.left_out() + of_check;
        let delta = (delta - queries * (within.beyond + left_out)).next_down();
        let request = CostsRequest {
            case: *case,
            assumptions: self.assumptions,
            integrals: self.integrals,
            epsilon,
            within: within.epsilon,
            delta,
            unlikely,
            check,
        };
        self.least(delta).at_votes(&DataDependentCosts::new(&request, votes), order)
    }

    /// Returns the treatment of unlikely answers of one query, whose share of delta is `share`.
    fn unlikely(&self, epsilon: f64, classes: usize, share: f64) -> Unlikely {
        match self.event.mechanism() {
            // A smaller probability is not computed with.
            Mechanism::Skellam { .. } | Mechanism::Binomial { .. } if share >= MIN_SHARE => {
                Unlikely::LeftOut(left_out(LEFT_OUT, share / (classes as f64 + 4.0)))
            }
            _ => Unlikely::Bounded(epsilon),
        }
    }

    /// Returns the probability below which outcomes of a check are left out; 0 for noise with a pure epsilon.
    fn left_out_of_check(&self, checks: &Checks, share: f64) -> f64 {
        if checks.event.mechanism().gamma().is_some() { 0.0 } else { left_out(LEFT_OUT, share / 4.0) }
    }

    /// Returns an epsilon that one query exceeds only with a probability that is negligible compared with delta.
    /// Returns the pure epsilon if no smaller one is found.
    fn within(&self, epsilon: f64, votes: &CheckedCounts<'_>, delta: f64) -> Within {
        let pure = Within { epsilon, beyond: 0.0 };
        let two_classes = self.event.is_one_difference(votes.classes);
        if self.assumptions.bound == Bound::Paper || self.event.tau().get() == 1.0 || two_classes {
            return pure;
        }
        let queries = votes.queries() as f64;
        per_query::within(&self.event)
            .filter(|within| within.epsilon < epsilon && queries * within.beyond < BEYOND * delta)
            .unwrap_or(pure)
    }

    /// Returns the account that corresponds to a bound, with its claim in words. Without a number of teachers, the claim does
    /// not depend on the votes.
    fn claimed(
        &self,
        queries: usize,
        per_query_epsilon: f64,
        teachers: Option<u64>,
        bound: EpsilonBound,
        release: Option<Release>,
    ) -> Result<Account, AccountError> {
        let (epsilon, delta) = (bound.best.epsilon, self.delta.get());
        if !epsilon.is_finite() {
            return Err(AccountError::NotFinite { found: epsilon });
        }
        let mut assumptions = self.assumptions;
        if teachers.is_none() {
            assumptions.relation = NeighbouringRelation::BothWays;
        }
        let classes = self.classes.filter(|_| teachers.is_none());
        let claim = Claim {
            event: &self.event,
            assumptions,
            teachers,
            classes,
            queries,
            epsilon,
            delta,
            release: release.as_ref(),
            checks: self.checks.as_ref(),
        };
        Ok(Account {
            epsilon,
            delta,
            order: (bound.method != CompositionMethod::Optimal).then_some(bound.best.order),
            order_at_edge: bound.method == CompositionMethod::Moments && bound.best.at_edge,
            composition: bound.method,
            per_query_epsilon,
            queries,
            data_dependent_queries: bound.data_dependent_queries,
            mechanism: self.event.mechanism(),
            tau: self.event.tau(),
            classes,
            threshold: self.event.threshold(),
            checks: self.checks.map(|checks| checks.accounted()),
            is_check: self.event.is_check(),
            party_teachers: self.event.party_teachers(),
            bound: assumptions.bound,
            adversary: assumptions.adversary,
            extent: assumptions.extent,
            relation: assumptions.relation,
            publishable: release.as_ref().map_or(teachers.is_none(), |release| !release.simulation),
            claim: claim.in_words(),
            release,
        })
    }
}
