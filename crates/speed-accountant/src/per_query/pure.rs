//! The pure epsilon of one query.

use speed_mechanism::{DiscreteLaplace, GeneralisedLaplace, LaplaceTable, Mechanism};

use super::lemma;
use crate::event::PrivacyEvent;

/// Longer moves take too long to examine.
const MOST_MOVES: usize = 1 << 16;

/// Returns the `epsilon` for which one query is (epsilon, 0)-differentially private by the paper's argument.
///
/// - [`Mechanism::Laplace`]: Theorem 2, the smaller of its two expressions (the second needs `tau > 1/2`).
/// - [`Mechanism::DiscreteLaplace`]: the same lemma for integers, `max over t of ln P[X >= t] / P[X >= t + 2]`. Fix the
///   noise of all classes but one: that class wins from some integer noise `t` on, for any rule for ties, and a
///   neighbour moves `t` by at most 2. Rounded up.
/// - [`Mechanism::Gaussian`], [`Mechanism::Skellam`], [`Mechanism::Binomial`]: infinite, because their loss is bounded only
///   except for a small probability.
///
/// With the noise of all teachers (`tau = 1`) Laplace noise of both kinds costs exactly `2 gamma`. (Erratum 4: both are
/// sound but not tight.)
///
/// A check moves one count by one vote: see [`tight_per_query_epsilon`]. For a party of several teachers, see there too.
pub fn per_query_epsilon(event: &PrivacyEvent) -> f64 {
    match event.mechanism() {
        _ if event.is_check() => of_check(event),
        Mechanism::Laplace { .. } | Mechanism::DiscreteLaplace { .. } if event.is_of_party() => {
            tight_per_query_epsilon(event, usize::MAX)
        }
        Mechanism::Laplace { gamma } if event.tau().get() == 1.0 => 2.0 * gamma.get(),
        Mechanism::DiscreteLaplace { gamma } if event.tau().get() == 1.0 => 2.0 * gamma.get(),
        Mechanism::Laplace { gamma } => lemma::theorem_2(gamma, event.tau()),
        Mechanism::DiscreteLaplace { gamma } => lemma::integer(&DiscreteLaplace::of_class(gamma, event.tau()), 2),
        Mechanism::Gaussian { .. } | Mechanism::Skellam { .. } | Mechanism::Binomial { .. } => f64::INFINITY,
    }
}

/// Returns the least `epsilon` proved here for which one query between `classes` classes, with the event's threshold,
/// is (epsilon, 0)-differentially private.
///
/// - `tau = 1`: `2 gamma` (Dwork and Roth 2014, Claim 3.9, for neighbours that move two counts).
/// - Two classes and no threshold: the answer depends on one difference of noise, of shape `2 tau`. From shape 1 on the
///   tail of this difference is log-concave, so the ratio of tails at distance 2 rises to `e^{2 gamma}`; below shape 1,
///   the lemma at that shape.
/// - Otherwise the supremum of the lemma: exact for integers, bounded by interval bisection for continuous noise.
/// - A check: `gamma` for `tau = 1`; the lemma with a move of one vote for integers. For continuous noise with `tau < 1`
///   the lemma with a move of two votes, which is larger.
///
/// - Neighbours that differ in the votes of a party of `M` teachers: `M` times the epsilon for one, because `M` moves of one
///   vote lead from one to the other; for integers at most the lemma with a move of `2 M` votes, or `M` of a check.
///
/// Infinite for Gaussian, Skellam and binomial noise.
pub fn tight_per_query_epsilon(event: &PrivacyEvent, classes: usize) -> f64 {
    let tau = event.tau();
    let Some(gamma) = event.mechanism().gamma() else { return f64::INFINITY };
    if event.is_of_party() {
        return of_party(event, classes);
    }
    if event.is_check() {
        return of_check(event);
    }
    let two_gamma = 2.0 * gamma.get();
    if tau.get() == 1.0 {
        return two_gamma;
    }
    let least = per_query_epsilon(event);
    let proved = |noise| lemma::log_sup_g_bound(&LaplaceTable::new(noise), gamma.get());
    if event.is_one_difference(classes) {
        let two_classes = if tau.get() >= 0.5 {
            two_gamma
        } else if event.mechanism().is_integer() {
            lemma::integer(&DiscreteLaplace::of_difference(gamma, tau), 2)
        } else {
            proved(GeneralisedLaplace::of_difference(gamma, tau))
        };
        return least.min(two_classes);
    }
    if event.mechanism().is_integer() { least } else { least.min(proved(GeneralisedLaplace::of_class(gamma, tau))) }
}

/// Returns the pure epsilon for neighbours that differ in the votes of a party.
fn of_party(event: &PrivacyEvent, classes: usize) -> f64 {
    let (teachers, tau) = (event.party_teachers(), event.tau());
    let moves = if event.is_check() { 1 } else { 2 } * teachers as usize;
    let path = f64::from(teachers) * tight_per_query_epsilon(&event.of_one_teacher(), classes);
    match event.mechanism() {
        Mechanism::DiscreteLaplace { gamma } if tau.get() < 1.0 && moves <= MOST_MOVES => {
            path.min(lemma::integer(&DiscreteLaplace::of_class(gamma, tau), moves))
        }
        _ => path * (1.0 + 1e-15),
    }
}

/// Returns the pure epsilon of a check: the supremum over `t` of `ln P[noise >= t] / P[noise >= t + 1]`. The noise is
/// symmetric, so "no answer" has the same ratios.
fn of_check(event: &PrivacyEvent) -> f64 {
    let tau = event.tau();
    match event.mechanism() {
        Mechanism::Laplace { .. } | Mechanism::DiscreteLaplace { .. } if event.is_of_party() => {
            of_party(event, usize::MAX)
        }
        Mechanism::Laplace { gamma } | Mechanism::DiscreteLaplace { gamma } if tau.get() == 1.0 => gamma.get(),
        Mechanism::DiscreteLaplace { gamma } => lemma::integer(&DiscreteLaplace::of_class(gamma, tau), 1),
        Mechanism::Laplace { gamma } => {
            lemma::log_sup_g_bound(&LaplaceTable::new(GeneralisedLaplace::of_class(gamma, tau)), gamma.get())
        }
        Mechanism::Gaussian { .. } | Mechanism::Skellam { .. } | Mechanism::Binomial { .. } => f64::INFINITY,
    }
}
