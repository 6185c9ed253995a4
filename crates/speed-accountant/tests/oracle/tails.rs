//! Tails of the difference of two classes' noise, for every kind of noise except the integer Laplace noise.

use speed_mechanism::MechanismKind;

use crate::oracle::composition::log_factorial;
use crate::oracle::noise::{Noise, log_complement, log_heads};

/// The difference of two classes' noise.
pub(crate) enum Difference {
    DiscreteLaplace(Noise),
    /// Inverse scale, per vote, and twice the shape of a class.
    Laplace(f64, f64),
    /// Standard deviation, in votes.
    Gaussian(f64),
    Skellam(Poissons),
    Binomial(Coins),
}

impl Difference {
    /// Creates the difference if a ratio `secret` of the teachers adds noise, for values up to `furthest`.
    pub(crate) fn new(kind: MechanismKind, scale: f64, secret: f64, furthest: i64) -> Self {
        match kind {
            MechanismKind::DiscreteLaplace => Self::DiscreteLaplace(Noise::new(scale, 2.0 * secret, furthest)),
            MechanismKind::Laplace => Self::Laplace(scale, 2.0 * secret),
            MechanismKind::Gaussian => Self::Gaussian((2.0 * secret).sqrt() * scale),
            MechanismKind::Skellam => Self::Skellam(Poissons::new(secret * scale * scale, furthest)),
            MechanismKind::Binomial => Self::Binomial(Coins::new(2 * (secret * scale).round() as usize)),
        }
    }

    /// Returns the logarithms of the probabilities of both classes if the first class has `gap` votes more. The first
    /// class wins ties.
    pub(crate) fn log_answers(&self, gap: i64) -> [f64; 2] {
        match self {
            Self::DiscreteLaplace(noise) => [noise.log_at_least(-gap), noise.log_at_least(gap + 1)],
            Self::Skellam(noise) => [noise.log_at_least(-gap), noise.log_at_least(gap + 1)],
            Self::Binomial(noise) => [noise.log_at_least(-gap), noise.log_at_least(gap + 1)],
            Self::Laplace(gamma, shape) => [-gap, gap].map(|t| laplace(gamma * t as f64, *shape)),
            Self::Gaussian(deviation) => [-gap, gap].map(|t| normal(t as f64 / deviation)),
        }
    }
}

/// The heads of fair coins less half of them: the difference of two classes' noise, with the coins of both.
pub(crate) struct Coins {
    /// `ln P[heads >= h]`.
    log_tails: Vec<f64>,
}

impl Coins {
    fn new(coins: usize) -> Self {
        let log_pmf = log_heads(coins);
        let mut log_tails = vec![f64::NEG_INFINITY; coins + 2];
        for heads in (0..=coins).rev() {
            let (a, b) = (log_pmf[heads], log_tails[heads + 1]);
            log_tails[heads] = a.max(b) + (a.min(b) - a.max(b)).exp().ln_1p();
        }
        Self { log_tails }
    }

    /// Returns `ln P[heads - coins / 2 >= t]` for an even number of coins.
    fn log_at_least(&self, t: i64) -> f64 {
        let half = (self.log_tails.len() as i64 - 2) / 2;
        match half + t {
            ..=0 => 0.0,
            heads if heads <= half => log_complement(self.log_at_least(1 - t)),
            heads => self.log_tails.get(heads as usize).copied().unwrap_or(f64::NEG_INFINITY),
        }
    }
}

/// The difference of two Poisson variables of the same rate.
pub(crate) struct Poissons {
    log_pmf: Vec<f64>,
    /// `ln P[A >= m]`.
    log_tails: Vec<f64>,
    furthest: usize,
}

impl Poissons {
    fn new(rate: f64, furthest: i64) -> Self {
        let furthest = furthest.max(1) as usize;
        let most = (rate + furthest as f64 + 40.0 * (rate + furthest as f64).sqrt()) as usize + 200;
        let log_pmf: Vec<f64> = (0..=most).map(|j| j as f64 * rate.ln() - rate - log_factorial(j)).collect();
        let mut log_tails = log_pmf.clone();
        for m in (0..most).rev() {
            let (a, b) = (log_pmf[m].max(log_tails[m + 1]), log_pmf[m].min(log_tails[m + 1]));
            log_tails[m] = a + (b - a).exp().ln_1p();
        }
        Self { log_pmf, log_tails, furthest }
    }

    /// Returns `ln P[A - B >= t]`.
    fn log_at_least(&self, t: i64) -> f64 {
        if t < 1 {
            return log_complement(self.log_at_least(1 - t));
        }
        let t = t as usize;
        assert!(t <= self.furthest, "{t} is beyond the table");
        let terms = || self.log_pmf.iter().zip(&self.log_tails[t..]).map(|(a, b)| a + b);
        let largest = terms().fold(f64::NEG_INFINITY, f64::max);
        largest + terms().map(|term| (term - largest).exp()).sum::<f64>().ln()
    }
}

/// Returns `ln P[N >= z]` of the standard normal distribution.
pub(crate) fn normal(z: f64) -> f64 {
    if z < 0.0 {
        return log_complement(normal(-z));
    }
    let x = z * std::f64::consts::FRAC_1_SQRT_2;
    let log_root_pi = 0.5 * std::f64::consts::PI.ln();
    if x < 2.0 {
        // erf(x) = 2 / sqrt(pi) e^{-x^2} sum 2^n x^(2n + 1) / (2n + 1)!!.
        let (mut term, mut sum) = (x, x);
        for n in 1..200 {
            term *= 2.0 * x * x / (2.0 * f64::from(n) + 1.0);
            sum += term;
        }
        let erf = 2.0 * (-x * x - log_root_pi).exp() * sum;
        return (0.5 * (1.0 - erf)).ln();
    }
    // erfc(x) = e^{-x^2} / sqrt(pi) / (x + (1/2) / (x + 1 / (x + (3/2) / ...))).
    let fraction = (1..=200).rev().fold(x, |below, n| x + 0.5 * f64::from(n) / below);
    -x * x - log_root_pi - fraction.ln() - 2f64.ln()
}

/// Returns `ln P[G - H >= x]` of two gamma variables of this shape and scale 1: `e^-x` times the mean over `H`, tilted
/// to twice the rate, of `integral over z of (x + H + z)^(shape - 1) e^-z / Gamma(shape)`. All terms are positive.
pub(crate) fn laplace(x: f64, shape: f64) -> f64 {
    if x == 0.0 {
        return 0.5f64.ln();
    }
    if x < 0.0 {
        return log_complement(laplace(-x, shape));
    }
    let beyond = |from: f64| half_line(|log_z, z| ((shape - 1.0) * (from + z).ln() - z + log_z).exp());
    let tilted = half_line(|log_h, h| (shape * log_h - 2.0 * h).exp() * beyond(x + h));
    -x + tilted.ln() - 2.0 * log_gamma(shape)
}

/// Returns the integral over `z` from 0 on of `f(ln z, z) / z`, by the trapezoidal rule in `u`, with `ln z = u - e^-u`.
fn half_line(f: impl Fn(f64, f64) -> f64) -> f64 {
    let step = 1.0 / 24.0;
    let at = |i: i32| {
        let u = f64::from(i) * step;
        let log_z = u - (-u).exp();
        f(log_z, log_z.exp()) * (1.0 + (-u).exp())
    };
    step * (-340..=120).map(at).sum::<f64>()
}

/// Returns `ln Gamma(x)` by Stirling's series, moved up to where it is exact.
fn log_gamma(x: f64) -> f64 {
    let (mut x, mut product) = (x, 1.0);
    while x < 20.0 {
        product *= x;
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let series = (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y / 1188.0)))) / x;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series - f64::ln(product)
}
