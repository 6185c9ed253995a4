//! `epsilon*`: fix the noise of all classes except the one that loses a vote and the one that gains it.
//!
//! Let class `a` lose a vote and `b` gain one, and let `m` be the best noisy count of the others (and of a threshold).
//! The answer is `a` with probability `J(m - n_a, n_a - n_b)`, where `J(A, D) = P[r >= A and r' <= r + D]` for two
//! classes' noise `r, r'`. At the neighbour it is `J(A + 1, D - 2)`. So the loss at `a` is at most
//! `epsilon* = sup over A, D of ln J(A, D) / J(A + 1, D - 2)`. At `b` the same holds with the votes and the neighbour
//! exchanged. At any other answer `j`, given its noisy count `x`, the ratio is
//! `F(x - n_a) F(x - n_b) / (F(x - n_a + 1) F(x - n_b - 1)) <= sup F(z) / F(z - 1)`, which is the limit `D -> infinity`
//! of the supremum; the same holds for "no answer". A fixed rule for ties moves `A` or `D` by a constant. If only the vote
//! for `a` becomes empty, or an empty vote becomes one for `a`, `D` is infinite.
//!
//! For integers the supremum is evaluated at all places with `|A|, |D| <= W = 38 / gamma` ([`within`]). Outside this
//! window one of the three answers `a`, `b`, neither has a probability of at most `S(W)`, where `S` is the tail of the
//! difference of two classes' noise. Up to this probability the other two behave as at the window's edge (at `A = -W`
//! only the difference of two counts matters) or as a single count. So
//! `delta(e^{epsilon*}) <= eta = 8 S(W - 4) (1 + e^{epsilon*})` for any votes. A pair with this delta is an
//! `epsilon*`-private one and, with probability `eta`, arbitrary (Kairouz, Oh and Viswanath 2015). So `k` queries
//! satisfy `epsilon*` except for `k eta` of delta.

use speed_mechanism::{DiscreteLaplace, Mechanism};

use crate::event::PrivacyEvent;
use crate::memo::Memo;

/// Above this inverse scale the lemma is as good, and probabilities underflow.
const MAX_SCALE: f64 = 8.0;
/// Largest `D` of the window, in units of `1/gamma`.
const WINDOW: f64 = 38.0;

/// Larger windows take too long.
const MAX_WINDOW: i64 = 1_100;

/// Returns the largest `ln J(A, D) / J(A + 1, D - 2)` of one query over every place of a window, for integer Laplace noise of
/// inverse scales from about 0.035 to 8; otherwise `None`.
///
/// By itself it is not a bound. Claims charge the places outside the window to delta.
pub fn epsilon_star(event: &PrivacyEvent) -> Option<f64> {
    within(event).map(|within| within.epsilon)
}

/// An epsilon that one query keeps, except for a probability of `beyond`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Within {
    /// The largest loss at any marks of the window.
    pub(crate) epsilon: f64,
    /// At least `delta(e^epsilon)` of one query, in both directions: a bound on the cost of marks outside the window.
    pub(crate) beyond: f64,
}

/// Computes [`epsilon_star`] and the cost of the places outside its window: at most [`Within::beyond`], a part of delta.
/// Returns `None` for other noise, for a scale above [`MAX_SCALE`], or if the window would be too large.
pub(crate) fn within(event: &PrivacyEvent) -> Option<Within> {
    static KNOWN: Memo<2, Within> = Memo::new();
    let Mechanism::DiscreteLaplace { gamma } = event.mechanism() else { return None };
    if gamma.get() > MAX_SCALE || furthest(gamma.get()) > MAX_WINDOW {
        return None;
    }
    Some(KNOWN.get_or([gamma.get(), event.tau().get()], || {
        let epsilon = integer(&DiscreteLaplace::of_class(gamma, event.tau()), gamma.get()) * (1.0 + 1e-10);
        // Outside the window, one of the three answers is less likely than the event that the difference of two
        // classes' noise reaches the window's end. The other two lose no more than inside.
        let difference = DiscreteLaplace::of_difference(gamma, event.tau());
        let beyond = 8.0 * difference.survival(furthest(gamma.get()) - 4) * (1.0 + epsilon.exp());
        Within { epsilon, beyond }
    }))
}

fn furthest(gamma: f64) -> i64 {
    (WINDOW / gamma).ceil() as i64
}

/// Returns the largest ratio at every integer place with `|A|` and `|D|` up to the furthest; at least `2 gamma`, the
/// limit as `D` goes to minus infinity.
fn integer(noise: &DiscreteLaplace, gamma: f64) -> f64 {
    let furthest = furthest(gamma);
    let reach = 3 * furthest + 8;
    let lattice = noise.lattice(reach as usize + 4);
    // F(k) = P[X <= k] = P[X >= -k].
    let pmf: Vec<f64> = (-reach..=reach).map(|k| lattice.log_pmf(k).exp()).collect();
    let below: Vec<f64> = (-reach..=reach).map(|k| lattice.log_survival(-k).exp()).collect();
    let at = |values: &[f64], k: i64| values[(k + reach).clamp(0, 2 * reach) as usize];
    // J(., d) and J(., d - 2) from the right: the largest ratio over all A for one D. Sums start so far out that the
    // terms left out do not matter at the places compared.
    let ratio = |d: i64| {
        let (mut here, mut next, mut best) = (0.0f64, 0.0f64, 0.0f64);
        for a in (-furthest..=2 * furthest).rev() {
            here += at(&pmf, a) * at(&below, a + d);
            if a <= furthest && next > 0.0 {
                let ratio = here / next;
                best = if ratio > best { ratio } else { best };
            }
            next += at(&pmf, a) * at(&below, a + d - 2);
        }
        best.ln()
    };
    (-furthest..=furthest).map(ratio).fold(2.0 * gamma, f64::max)
}
