//! Exact sampling with integers: every probability is a ratio of integers, or `e` to the power of minus such a ratio.
//! No floating-point number is involved (Canonne, Kamath and Steinke 2020, section 5).
//!
//! The number of steps of these samplers depends on the value drawn, so a party that can measure the time of a single
//! draw learns something about it. The table of [`NoiseShare`](crate::NoiseShare) does not have that weakness.

use rand::CryptoRng;

use crate::NoiseDeviation;

/// A variance as a ratio of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Variance {
    pub(crate) numerator: u128,
    pub(crate) denominator: u128,
}

impl Variance {
    /// Returns `sigma^2` rounded up to a multiple of 2^-20, or of 2^-10 if `sigma` is at least a thousand votes. The
    /// products that the samplers compute then fit into 128 bits.
    pub(crate) fn from_deviation(sigma: NoiseDeviation) -> Self {
        let sigma = sigma.get();
        let denominator = if sigma < 1e3 { 1u128 << 20 } else { 1 << 10 };
        // The product is off by less than one part in 2^52 before it is rounded up.
        let numerator = (sigma * sigma * denominator as f64 * (1.0 - 2.0 * f64::EPSILON)).ceil() as u128;
        Self { numerator: numerator.max(1), denominator }
    }

    pub(crate) fn get(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

/// Returns a uniformly distributed integer from 0 to `bound - 1`.
pub(crate) fn below(bound: u128, rng: &mut impl CryptoRng) -> u128 {
    let bits = 128 - (bound - 1).leading_zeros();
    loop {
        let drawn = match bits {
            0 => 0,
            1..=64 => u128::from(rng.next_u64() >> (64 - bits)),
            _ => (u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64())) >> (128 - bits),
        };
        if drawn < bound {
            return drawn;
        }
    }
}

/// Returns true with probability `numerator / denominator`, at most 1.
pub(crate) fn bernoulli(numerator: u128, denominator: u128, rng: &mut impl CryptoRng) -> bool {
    below(denominator, rng) < numerator
}

/// Returns true with probability `e^{-numerator / denominator}` (Algorithm 1 of Canonne, Kamath and Steinke).
pub(crate) fn bernoulli_exp(numerator: u128, denominator: u128, rng: &mut impl CryptoRng) -> bool {
    for _ in 0..numerator / denominator {
        if !bernoulli_exp_of_one(1, 1, rng) {
            return false;
        }
    }
    bernoulli_exp_of_one(numerator % denominator, denominator, rng)
}

/// Returns true with probability `e^{-exponent}`, for an exponent `numerator / denominator` of at most 1: the first k
/// at which a coin of probability `exponent / k` fails is odd.
fn bernoulli_exp_of_one(numerator: u128, denominator: u128, rng: &mut impl CryptoRng) -> bool {
    let mut k = 1;
    while bernoulli(numerator, denominator * k, rng) {
        k += 1;
    }
    k % 2 == 1
}

/// Draws discrete Laplace noise of an integer scale: `P[X = k]` is proportional to `e^{-|k| / scale}` (Algorithm 2,
/// with `s = 1`).
pub(crate) fn discrete_laplace(scale: u128, rng: &mut impl CryptoRng) -> i128 {
    loop {
        let rest = below(scale, rng);
        if !bernoulli_exp(rest, scale, rng) {
            continue;
        }
        let mut wholes = 0;
        while bernoulli_exp(1, 1, rng) {
            wholes += 1;
        }
        let magnitude = (rest + scale * wholes) as i128;
        let negative = rng.next_u64() & 1 == 1;
        // Zero is accepted with one sign only, so that it is not counted twice.
        if !(negative && magnitude == 0) {
            return if negative { -magnitude } else { magnitude };
        }
    }
}

/// [`poisson`] adds up draws of rate 1/2 for rates up to this one in a single share: seeded draws of such noise have been
/// published.
pub(crate) const MAX_IN_HALVES: u128 = 4_096;
/// The same in a sum of shares, of which no draws were published: there a walk from the mode gains nothing.
pub(crate) const MAX_SMALL: u128 = 8;

/// Returns a Poisson variable of rate `numerator / denominator`. The rate is at most 2^39 and the numerator at most 2^80, so
/// no product overflows. The time grows with the square root of the rate, but with the rate itself up to a rate of
/// `in_halves`, on which the random draws depend.
pub(crate) fn poisson(in_halves: u128, numerator: u128, denominator: u128, rng: &mut impl CryptoRng) -> u64 {
    if numerator > in_halves * denominator {
        return poisson_about_the_mode(numerator, denominator, rng);
    }
    let halves = 2 * numerator / denominator;
    let whole: u64 = (0..halves).map(|_| poisson_of_half(1, 2, rng)).sum();
    // The remaining rate, `numerator / denominator - halves / 2`, as a fraction with the denominator `2 denominator`.
    whole + poisson_of_half(2 * numerator - halves * denominator, 2 * denominator, rng)
}

/// Samples by rejection. For a rate `r` of at least 1 with `m = floor(r)`, it draws a distance `j` above or below the
/// mode. It accepts `j` with a probability that leaves `r^k / k!`, up to a constant: for `k = m + j` the product of
/// `r / (m + i)` for `i = 1, ..., j`, for `k = m - 1 - j` the product of `(m - i) / r` for `i = 0, ..., j`. All factors
/// are at most 1.
///
/// Distances are drawn in blocks of `b >= sqrt(r)`: the first two blocks have the same probability, each later one half
/// of the probability of the block before. To compensate, the factors of every complete block but the first are
/// multiplied by `(b + i) / (b + i - 1)`, `i = 1, ..., b`, whose product is 2. Behind the first block the factors are
/// at most `1 - 1 / (b + 1)`, so the multiplied factors are still at most 1: above the mode because
/// `(m + b + 1) b >= r (b + 1)`, below it because `(m - b) (b + 1) <= r b`, both since `b^2 >= r`. The coins are
/// flipped one by one until one fails, so a draw takes about `4 sqrt(r)` of them.
fn poisson_about_the_mode<R: CryptoRng>(numerator: u128, denominator: u128, rng: &mut R) -> u64 {
    let m = numerator / denominator;
    let side = (m + 1).isqrt() + 1;
    loop {
        let above = rng.next_u64() & 1 == 1;
        let block = match below(3, rng) {
            2 => 2 + u128::from(geometric(rng)),
            first => first,
        };
        let j = block * side + below(side, rng);
        let doubled = side..block * side;
        let coin = |place: u128, top: u128, bottom: u128, rng: &mut R| {
            if doubled.contains(&place) {
                let i = side + place % side + 1;
                bernoulli(top * i, bottom * (i - 1), rng)
            } else {
                bernoulli(top, bottom, rng)
            }
        };
        if above {
            if (0..j).all(|i| coin(i, numerator, denominator * (m + i + 1), rng)) {
                return (m + j) as u64;
            }
        } else if j < m && (0..=j).all(|i| coin(i, denominator * (m - i), numerator, rng)) {
            return (m - 1 - j) as u64;
        }
    }
}

/// Returns `k` with probability `2^-(k + 1)`.
fn geometric(rng: &mut impl CryptoRng) -> u32 {
    let mut k = 0;
    while rng.next_u64() & 1 == 1 {
        k += 1;
    }
    k
}

/// Draws, for a rate of at most 1/2, a geometric variable `k` of probability `2^-(k+1)` and accepts it with probability
/// `(2 rate)^k / k!`. The result has a probability proportional to `rate^k / k!`.
fn poisson_of_half(numerator: u128, denominator: u128, rng: &mut impl CryptoRng) -> u64 {
    loop {
        let k = u128::from(geometric(rng));
        if (1..=k).all(|i| bernoulli(2 * numerator, denominator * i, rng)) {
            return k as u64;
        }
    }
}
