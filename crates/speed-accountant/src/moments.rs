//! Moments of the privacy loss of one query.

/// Theorem 3: upper bound of the moment of order `l` of the privacy loss of one query that is (`epsilon`,
/// 0)-differentially private and answers something else than its likeliest class with a probability of at most
/// `e^log_q`.
///
/// The least of `epsilon l`, `epsilon^2 l (l + 1) / 2` and, if `q < (e^epsilon - 1)/(e^{2 epsilon} - 1)`, which is
/// `1/(e^epsilon + 1)`, also `ln((1 - q) ((1 - q)/(1 - e^epsilon q))^l + q e^{epsilon l})`. The last depends on the votes,
/// and bounds the loss in one direction only (erratum 7). It takes `ln q`, because a `q` that underflows to zero would
/// be unsound: `e^{epsilon l}` may be larger than `1/q` (erratum 17).
#[must_use]
pub fn moment(epsilon: f64, log_q: f64, l: u32) -> f64 {
    Moment::of(epsilon, log_q, l).value
}

/// The moment without votes: the least of the first two branches.
pub(crate) fn data_independent_moment(epsilon: f64, l: u32) -> f64 {
    let l = f64::from(l);
    (epsilon * l).min(epsilon * epsilon * l * (l + 1.0) / 2.0)
}

/// A moment, and whether the votes made it smaller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moment {
    pub(crate) value: f64,
    pub(crate) data_dependent: bool,
}

impl Moment {
    pub(crate) fn of(epsilon: f64, log_q: f64, l: u32) -> Self {
        let value = data_independent_moment(epsilon, l);
        // ln(1 + e^epsilon), without overflow.
        let log_one_plus_exp = epsilon + (-epsilon).exp().ln_1p();
        if log_q >= -log_one_plus_exp {
            return Self { value, data_dependent: false };
        }
        let l = f64::from(l);
        let stays = (l + 1.0) * (-log_q.exp()).ln_1p() - l * (-(epsilon + log_q).exp()).ln_1p();
        let leaves = log_q + epsilon * l;
        let dependent = log_sum(stays, leaves);
        Self { value: value.min(dependent), data_dependent: dependent < value }
    }
}

/// `ln(e^a + e^b)` with full relative accuracy also where the result is close to zero: `a` close to zero, `b` very
/// negative.
fn log_sum(a: f64, b: f64) -> f64 {
    if a.abs() < 0.5 && b < 0.5 {
        return (a.exp_m1() + b.exp()).ln_1p();
    }
    let (large, small) = if a > b { (a, b) } else { (b, a) };
    large + (small - large).exp().ln_1p()
}
