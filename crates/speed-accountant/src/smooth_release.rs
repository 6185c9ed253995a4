//! A data-dependent epsilon that may itself be published: a smooth upper bound of the moments, released with noise.
//!
//! The plain sum of moments jumps with the votes, so publishing it reveals information about them. Instead (Nissim,
//! Raskhodnikova and Smith 2007, in logarithms; Papernot et al. 2018, appendix B, for the idea):
//!
//! 1. For a row with sorted gaps `g_1 <= g_2 <= ...` between its largest count and the others let `Q(t)` be the union
//!    bound of `q` (exact pairs; with all noise unknown for collusion) at the gaps `g_i - 2 t`, or 1 once `g_1 < 2 t`.
//!    One teacher changes each count by at most 1, and so each order statistic by at most 1, and sorted gaps by at most 2,
//!    also where its vote is empty.
//!    So for neighbours `d, d'` `Q_d'(t) <= Q_d(t + 1)`, and `Q_d(1)` bounds `q` at all neighbours. (With a threshold
//!    the largest count less `t` is compared with it.)
//! 2. Let `T(q)` be a bound of the moment of one order that does not fall with `q` and is at most the worst case: the
//!    worst moment given an upper bound of `q`, or the chord for collusion, and for integer Laplace noise the envelope
//!    of three answers if that is smaller. For Gaussian and Skellam noise it is Theorem 6 of PATE 2018 at 24 pairs of
//!    higher orders that do not depend on `q`. For given orders it grows with `q` up to the limit of its Prop. 9, from
//!    which on the bound without votes is used. Under collusion Gaussian and Skellam noise use the bound without votes.
//! 3. `F(d) = max over t >= 0 of e^{-beta t} sum over rows of T(Q(t + 1))`. With `t = 0`: `F` is at least the sum of
//!    moments, in both directions. From the first item,
//!    `e^{-beta t} sum T(Q_d'(t + 1)) <= e^beta e^{-beta (t+1)} sum T(Q_d(t + 2)) <= e^beta F(d)`. So `F` is a
//!    `beta`-smooth upper bound (Nissim, Raskhodnikova and Smith 2007, Def. 2.1), and `ln F` has sensitivity `beta`,
//!    for any votes. The largest of several smooth bounds is a smooth bound.
//! 4. `ln F` is rounded up to a multiple of `beta / 32`, which makes its sensitivity 33 steps. It gets discrete
//!    Gaussian noise of deviation `33 s` steps, where `s` is the noise multiple. Its Rényi divergence of order `l + 1`
//!    is at most `(l + 1) / (2 s^2)` (Canonne, Kamath and Steinke 2020, Prop. 5), so the moment of the released value
//!    is `l (l + 1) / (2 s^2)`. No floating-point noise is involved.
//! 5. A number of steps is added that makes the value fall below `ln F` with a probability of at most
//!    [`Release::failure`](crate::release::Release::failure) (Prop. 25 there). The value is capped at the worst case,
//!    which needs no votes. Epsilon is the conversion of the published sum **and** the release's own moment at the rest
//!    of delta.
//!
//! The order of the moments and everything else in [`ReleaseOptions`](crate::release::ReleaseOptions) must not depend
//! on the votes.

mod moments;

use speed_mechanism::{DiscreteGaussian, Mechanism, NoiseDeviation, NoiseGenerator};

use crate::assumption::Bound;
use crate::composition::improved_epsilon;
use crate::error::AccountError;
use crate::least_epsilon::{LEFT_OUT, left_out};
use crate::moment_bound::MomentBound;
use crate::noise_case::{NoiseCase, OtherNoise};
use crate::orders::best_real;
use crate::outcome::Gaps;
use crate::per_query::tight_per_query_epsilon;
use crate::release::{Release, ReleaseOptions};
use crate::sound::larger;
use crate::three_answers::{Envelope, ThreeAnswers};
use moments::SmoothMoments;

/// Steps of the grid in one `beta`; rounding adds one step to the sensitivity.
const STEPS: f64 = 32.0;
/// Sensitivity of the rounded value, in steps.
const SENSITIVITY: f64 = STEPS + 1.0;
/// The part of delta that may be spent on a released value that is too small.
const FAILURE: f64 = 0.1;
/// The default order is best if the queries cost this part of their worst case.
const EXPECTED: f64 = 0.08;

/// Votes whose sum of moments will be released, with everything that the noise depends on.
pub(crate) struct MomentRelease<'a> {
    pub(crate) cases: &'a [NoiseCase],
    pub(crate) rows: &'a [Gaps],
    pub(crate) classes: usize,
    pub(crate) delta: f64,
    pub(crate) options: &'a ReleaseOptions,
}

pub(crate) struct Released {
    pub(crate) order: f64,
    pub(crate) epsilon: f64,
    /// True if the value is below the worst case at this order.
    pub(crate) helps: bool,
    pub(crate) release: Release,
}

impl MomentRelease<'_> {
    /// Releases the moments of these rows, the largest of all cases, with noise from `generator`.
    pub(crate) fn publish(&self, generator: &mut NoiseGenerator) -> Result<Released, AccountError> {
        self.options.check()?;
        let noise = DiscreteGaussian::new(NoiseDeviation::new(self.options.noise * SENSITIVITY)?);
        let first = self.cases.first().ok_or(AccountError::NoQueries)?;
        let order = match self.options.order {
            Some(order) => order,
            None => self.default_order(first, &noise)?,
        };
        let (log_bound, worst) = self.smooth_bound(first, order);
        let step = self.options.smoothness / STEPS;
        let place = (log_bound / step).ceil();
        if !(place.abs() < 1e15 && worst.is_finite()) {
            return Err(AccountError::NotFinite { found: worst });
        }
        let published = (place as i64 + noise.sample(generator) + self.lift(&noise)) as f64 * step;
        // A value above the worst case is useless, because the worst case holds for any votes.
        let alpha = published.exp().min(worst);
        let own = divergence(&noise, order);
        let epsilon = improved_epsilon(alpha + own, order, self.delta_of_queries());
        let release = Release {
            smoothness: self.options.smoothness,
            noise: self.options.noise,
            moment: own,
            failure: self.delta * FAILURE,
            simulation: generator.is_simulation(),
        };
        Ok(Released { order, epsilon, helps: alpha < worst, release })
    }

    /// Returns the order that is best if the queries cost as little as expected.
    fn default_order(&self, first: &NoiseCase, noise: &DiscreteGaussian) -> Result<f64, AccountError> {
        let case = NoiseCase { others: OtherNoise::Missing, ..*first };
        let epsilon = tight_per_query_epsilon(&case.event, self.classes);
        let moments = MomentBound::new(&case, epsilon, Bound::Outcome, self.left_out());
        let k = self.rows.len() as f64;
        let typical = |l: f64| EXPECTED * k * moments.without_votes(l) + divergence(noise, l);
        let best = best_real(200.0, |l| improved_epsilon(typical(l), l, self.delta_of_queries()));
        Ok(best.ok_or_else(AccountError::no_orders)?.order)
    }

    /// Returns `ln F`, the smooth upper bound of the sum of moments, which is secret, and the data-independent sum.
    fn smooth_bound(&self, first: &NoiseCase, order: f64) -> (f64, f64) {
        // The envelope of the least secret noise holds for all cases: more secret noise only averages over more marks,
        // and the envelope is concave.
        let envelope = ThreeAnswers::new(&first.event, tight_per_query_epsilon(&first.event, self.classes));
        let envelope = envelope.map(|three| Envelope::new(&three, order));
        // The largest of several smooth bounds is a smooth bound.
        let (mut log_bound, mut worst) = (f64::NEG_INFINITY, 0.0);
        for case in self.cases {
            let smooth = SmoothMoments::new(case, self.classes, self.rows, order, envelope.as_ref(), self.left_out());
            let of_case = self.rows.len() as f64 * smooth.without_votes();
            log_bound = larger(log_bound, smooth.log_bound(self.options.smoothness).min(of_case.ln()));
            worst = larger(worst, of_case);
        }
        (log_bound, worst)
    }

    /// Returns the number of steps by which the value is raised, so that the noise makes it too small with at most the
    /// allowed probability.
    fn lift(&self, noise: &DiscreteGaussian) -> i64 {
        // In logarithms, so that a part of a small delta does not underflow.
        let log_failure = self.delta.ln() + FAILURE.ln();
        let mut lift = 1;
        while noise.log_survival_bound(lift + 1) > log_failure {
            lift += 1;
        }
        lift as i64
    }

    /// Returns the probability below which a data-independent bound may leave out answers.
    fn left_out(&self) -> f64 {
        match self.cases.first().map(|case| case.event.mechanism()) {
            Some(Mechanism::Binomial { .. }) => left_out(LEFT_OUT, self.delta / self.rows.len() as f64),
            _ => 0.0,
        }
    }

    fn delta_of_queries(&self) -> f64 {
        let of_queries = self.delta * (1.0 - FAILURE);
        match 2.0 * self.rows.len() as f64 * self.left_out() {
            0.0 => of_queries,
            left_out => (of_queries - left_out).next_down(),
        }
    }
}

/// Returns the moment of order `l` of the released value itself.
fn divergence(noise: &DiscreteGaussian, l: f64) -> f64 {
    l * (l + 1.0) * SENSITIVITY * SENSITIVITY / (2.0 * noise.variance_parameter())
}
