//! Checks the oracle against closed forms, and against plain enumeration where possible.

use speed_mechanism::MechanismKind;

use crate::enumeration::brute_force::{answers, pmf};
use crate::neighbours::neighbours;
use crate::oracle::composition::{Losses, Outcome, log_factorial, outcomes};
use crate::oracle::grid;
use crate::oracle::noise::{Noise, Table};
use crate::oracle::tails::{Difference, laplace, normal};
use crate::oracle::view::{Law, View};

fn close(a: f64, b: f64, most: f64) -> bool {
    (a - b).abs() <= most
}

/// Returns integer Laplace noise without a threshold.
fn law(gamma: f64, secret: f64, known: f64) -> Law {
    Law { noise: MechanismKind::DiscreteLaplace, gamma, secret, known, threshold: None }
}

#[test]
fn noise_of_any_shape_is_a_convolution() {
    for (gamma, shape) in [(0.1, 0.004), (0.1, 0.7), (0.3, 1.9), (2.0, 0.01), (5.0, 1.3)] {
        let (middle, table) = (200, Table::new(gamma, shape, 100));
        let plain = pmf(gamma, shape, middle);
        for t in -100i64..=100 {
            let p = plain[(middle + t) as usize];
            if p > 1e-290 {
                assert!(close(table.log_pmf(t), p.ln(), 1e-12), "{gamma} {shape} {t}");
            }
            let sum: f64 = plain[(middle + t) as usize..].iter().rev().sum();
            if t <= 50 && sum > 1e-290 {
                let most = 1e-11 + (-gamma * 100.0).exp() * 1e3;
                assert!(close(table.log_at_least(t), sum.ln(), most), "{gamma} {shape} {t}");
            }
        }
    }
}

#[test]
fn answers_are_as_likely_as_in_an_enumeration() {
    let (gamma, reach) = (0.9, 40);
    for (secret, votes, threshold) in [
        (1.0, vec![3, 1], None),
        (0.3, vec![0, 5], None),
        (0.25, vec![3, 1], Some(3)),
        (0.5, vec![2, 2, 1], None),
        (0.75, vec![0, 5, 0], Some(6)),
        (1.0, vec![1, 0, 4], Some(-9)),
    ] {
        let law = Law { threshold, ..law(gamma, secret, 0.0) };
        let found = View::new(law, &votes).log_probabilities(&votes);
        let plain = answers(&votes, &pmf(gamma, secret, reach), threshold);
        for (found, plain) in found.iter().zip(plain) {
            assert!(close(found.exp(), plain, 1e-12), "{votes:?} {threshold:?}: {} and {plain}", found.exp());
        }
    }
}

#[test]
fn two_views_of_two_classes_agree() {
    // A threshold that is always reached changes nothing.
    for gamma in [0.2, 3.0] {
        for votes in [[5, 5], [9, 1], [0, 10]] {
            for known in [0.0, 0.4] {
                let gamma = if known > 0.0 { 3.0 } else { gamma };
                let law = law(gamma, 0.6, known);
                let silent = Law { threshold: Some(-3_000), ..law };
                let (a, b) = (View::new(law, &votes), View::new(silent, &votes));
                for there in neighbours(&votes, 11) {
                    let delta = |view: &View, epsilon: f64| -> f64 {
                        let (here, there) = (view.log_probabilities(&votes), view.log_probabilities(&there));
                        here.iter().zip(&there).map(|(p, q)| (p.exp() - (epsilon + q).exp()).max(0.0)).sum()
                    };
                    for epsilon in [0.0, 0.3, 2.0, 5.0] {
                        let (a, b) = (delta(&a, epsilon), delta(&b, epsilon));
                        assert!(close(a, b, 1e-11), "{votes:?} {known}: {a} and {b}");
                    }
                }
            }
        }
    }
}

#[test]
fn known_noise_of_three_classes_is_as_in_an_enumeration() {
    let (gamma, secret, known, reach) = (2.0, 0.5, 0.25, 14i64);
    let (votes, there) = ([2, 1, 1], [1, 1, 2]);
    let view = View::new(law(gamma, secret, known), &votes);
    let unknown = View::new(law(gamma, secret, 0.0), &[-2 * reach, 2 * reach, 0]);
    let noise = pmf(gamma, known, reach);
    for epsilon in [0.0f64, 1.0, 3.0] {
        let pairs = view.log_probabilities(&votes);
        let pairs = pairs.iter().zip(view.log_probabilities(&there));
        let found: f64 = pairs.map(|(p, q)| (p.exp() - (epsilon + q).exp()).max(0.0)).sum();
        let mut plain = 0.0;
        for c in (0..(2 * reach + 1).pow(3)).map(|i| [i % 29 - reach, i / 29 % 29 - reach, i / 841 - reach]) {
            let p: f64 = c.iter().map(|c| noise[(c + reach) as usize]).product();
            let shifted = |votes: &[i64; 3]| [votes[0] + c[0], votes[1] + c[1], votes[2] + c[2]];
            if p > 1e-14 {
                let here = unknown.log_probabilities(&shifted(&votes));
                let there = unknown.log_probabilities(&shifted(&there));
                plain += p * here.iter().zip(there).map(|(p, q)| (p.exp() - (epsilon + q).exp()).max(0.0)).sum::<f64>();
            }
        }
        assert!(close(found, plain, 1e-9), "{found} and {plain}");
    }
}

#[test]
fn tails_of_other_noise_are_as_published_and_in_closed_form() {
    // ln Q(z), 20 digits (mpmath).
    for (z, log) in [
        (0.0f64, -std::f64::consts::LN_2),
        (1.0, -1.841_021_645_009_264),
        (3.0, -6.607_726_221_510_349),
        (40.0, -804.608_442_013_754_1),
    ] {
        assert!(close(normal(z), log, 1e-12 * log.abs()), "{z}: {}", normal(z));
        assert!(close(normal(-z), (-log.exp()).ln_1p(), 1e-14));
    }
    // Shape 1: e^-x / 2. Shape 2: e^-x (2 + x) / 4.
    for x in [1e-3, 0.1, 1.0, 7.0, 300.0] {
        assert!(close(laplace(x, 1.0), -x - 2f64.ln(), 1e-12 * (1.0 + x)), "{x}: {}", laplace(x, 1.0));
        assert!(close(laplace(x, 2.0), -x + (0.5 + 0.25 * x).ln(), 1e-12 * (1.0 + x)), "{x}: {}", laplace(x, 2.0));
    }
    // By quadrature of 30 digits (mpmath).
    for (x, shape, log) in [
        (0.02, 0.1, -1.425_629_037_642_471),
        (3.0, 0.4, -4.910_968_571_904_02),
        (0.5, 1.6, -1.025_412_468_839_224_5),
        (25.0, 0.004, -33.765_704_261_930_79),
    ] {
        assert!(close(laplace(x, shape), log, 1e-11), "{x} {shape}: {}", laplace(x, shape));
    }
    // Wide integer noise is nearly continuous noise, halfway between the integers.
    for shape in [0.05, 0.4, 1.3] {
        let fine = Noise::new(1e-3, shape, 3_001);
        for t in [500, 3_000] {
            let middle = 0.5 * (fine.log_at_least(t) + fine.log_at_least(t + 1));
            assert!(close(laplace(1e-3 * t as f64, shape), middle, 1e-5), "{shape} {t}");
        }
    }
    // Skellam noise by plain sums.
    let (sigma, secret) = (2.0f64, 0.7);
    let rate = secret * sigma * sigma;
    let poisson: Vec<f64> =
        (0..80).map(|j| (f64::from(j) * rate.ln() - rate - log_factorial(j as usize)).exp()).collect();
    let skellam = Difference::new(MechanismKind::Skellam, sigma, secret, 20);
    for gap in [0usize, 1, 6, 12] {
        let second: f64 = (0..80).map(|j| poisson[j] * poisson.iter().skip(j + gap + 1).sum::<f64>()).sum();
        let [first, found] = skellam.log_answers(gap as i64);
        assert!(close(found, second.ln(), 1e-9) && close(first, (-second).ln_1p(), 1e-12), "{gap}");
    }
}

fn randomised_response(epsilon: f64) -> Vec<Outcome> {
    let log = -(-epsilon).exp().ln_1p();
    outcomes(&[log, log - epsilon], &[log - epsilon, log])
}

#[test]
fn randomised_response_composes_in_closed_form() {
    for (epsilon, k, delta) in
        [(0.5, 1, 1e-3), (0.1, 300, 1e-5), (2.0, 20, 0.3), (1e-3, 10_000, 1e-6), (0.7, 900, 1e-60)]
    {
        let found = Losses::new(&[(randomised_response(epsilon), k)], f64::ln(delta)).expect("few").least_epsilon(0.0);
        // Kairouz, Oh and Viswanath 2015: the loss is (k - 2 i) epsilon with the probability of i flips.
        let of = |total: f64| -> f64 {
            let flips = (0..=k).map(|i| {
                let log_p = log_factorial(k)
                    - log_factorial(i)
                    - log_factorial(k - i)
                    - i as f64 * epsilon
                    - k as f64 * (-epsilon).exp().ln_1p();
                let loss = (k as f64 - 2.0 * i as f64) * epsilon;
                log_p.exp() * (1.0 - (total - loss).exp()).max(0.0)
            });
            flips.sum::<f64>()
        };
        assert!(of(found) >= delta && of(found * (1.0 + 1e-7)) <= delta, "{epsilon} {k} {delta}: {found}");
    }
}

#[test]
fn the_grid_is_a_little_below_the_exact_composition() {
    for (gamma, gap, k, delta) in
        [(0.1, 0, 50, 1e-5), (0.1, 30, 1_000, 1e-5), (1.0, 4, 200, 1e-30), (5.0, 0, 3_000, 0.1), (30.0, 2, 10, 1e-60)]
    {
        let votes = [50 + gap, 50];
        let view = View::new(law(gamma, 0.6, 0.0), &votes);
        for there in neighbours(&votes, 100 + gap) {
            let pair = outcomes(&view.log_probabilities(&votes), &view.log_probabilities(&there));
            let runs = [(pair, k)];
            let exact = Losses::new(&runs, f64::ln(delta)).expect("few").least_epsilon(0.0);
            let found = grid::least_epsilon(&runs, f64::ln(delta), 0.0);
            let off = found / exact - 1.0;
            assert!(
                exact < 1e-9 || (-3e-3..1e-9).contains(&off),
                "{gamma} {gap} {k} {delta}: {found} and {exact}: {off}"
            );
        }
    }
}

#[test]
fn different_runs_are_enumerated_and_put_on_a_grid() {
    let view = |votes: [i64; 2], there: [i64; 2]| {
        let view = View::new(law(0.4, 0.5, 0.0), &votes);
        outcomes(&view.log_probabilities(&votes), &view.log_probabilities(&there))
    };
    let runs = [(view([7, 6], [6, 7]), 30), (view([3, 10], [4, 9]), 11), (view([7, 6], [8, 5]), 5)];
    let (log_delta, delta) = (f64::ln(1e-4), 1e-4);
    let exact = Losses::new(&runs, log_delta).expect("few").least_epsilon(0.0);
    // A sum over every single outcome.
    let of = |epsilon: f64| -> f64 {
        let mut sum = 0.0;
        let mut ways = vec![(1.0f64, 1.0f64)];
        for (query, times) in &runs {
            let one = |i: usize| {
                let log = log_factorial(*times) - log_factorial(i) - log_factorial(times - i);
                let at =
                    |pick: fn(&Outcome) -> f64| log + i as f64 * pick(&query[0]) + (times - i) as f64 * pick(&query[1]);
                (at(|outcome| outcome.log_p).exp(), at(|outcome| outcome.log_p - outcome.loss).exp())
            };
            ways = ways.iter().flat_map(|(p, q)| (0..=*times).map(move |i| (p * one(i).0, q * one(i).1))).collect();
        }
        for (p, q) in ways {
            sum += (p - epsilon.exp() * q).max(0.0);
        }
        sum
    };
    assert!(of(exact) >= delta * (1.0 - 1e-9) && of(exact + 1e-6) <= delta, "{exact}: {}", of(exact));
    let off = grid::least_epsilon(&runs, log_delta, 0.0) / exact - 1.0;
    assert!((-1e-3..1e-9).contains(&off), "{off}");
}

#[test]
fn subnormal_losses_leave_the_grid_at_once() {
    let query = vec![Outcome { log_p: 0.0, loss: 5e-324 }, Outcome { log_p: -20.0, loss: -3e-315 }];
    let least = grid::least_epsilon(&[(query, 448)], f64::ln(1e-13), 0.25);
    assert!(close(least, 0.25, 0.0), "{least}");
}
