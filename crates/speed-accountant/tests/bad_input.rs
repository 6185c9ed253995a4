//! Refusals of the accountant, and the text of its claims.

use speed_accountant::composition::improved_epsilon;
use speed_accountant::theory::{q, q_exact};
use speed_accountant::{
    Account, AccountError, Accountant, Adversary, Bound, Delta, NeighbouringRelation, PrivacyEvent, ReleaseOptions,
};
use speed_core::Randomness;
use speed_mechanism::{InverseScale, Mechanism, MechanismKind, NoiseGenerator, NoiseShare};

use crate::enumeration::brute_force::{exact_moment, pmf, probabilities};
use crate::given::{self, gamma, tau};

fn event(noise: fn(InverseScale) -> Mechanism) -> PrivacyEvent {
    PrivacyEvent::new(noise(gamma(0.1)), tau(0.9))
}

fn delta() -> Delta {
    given::delta(1e-5)
}

/// Accounts by the paper's formulas.
fn account(counts: &[Vec<u32>], teachers: usize, event: PrivacyEvent) -> Result<Account, AccountError> {
    Accountant::paper(event, delta()).account(counts, teachers)
}

fn refused(counts: &[Vec<u32>], teachers: usize) -> AccountError {
    account(counts, teachers, event(Mechanism::discrete_laplace)).expect_err("bad votes")
}

#[test]
fn bad_votes_are_refused_with_their_row() {
    assert_eq!(refused(&[], 3), AccountError::NoQueries);
    assert_eq!(refused(&[vec![]], 3), AccountError::TooFewClasses { row: 0, found: 0 });
    assert_eq!(refused(&[vec![250], vec![250]], 250), AccountError::TooFewClasses { row: 0, found: 1 });
    let message = |counts: &[Vec<u32>], teachers: usize| refused(counts, teachers).to_string();
    assert_eq!(message(&[vec![2, 1], vec![1, 1, 1]], 3), "row 1 has 3 classes, but row 0 has 2");
    // Sums beyond 32 bits do not overflow.
    let (most, teachers) = (u32::MAX, 8_589_934_589);
    let found = message(&[vec![most, most - 1], vec![most, most]], teachers);
    assert!(found.starts_with("row 1 has 8589934590 votes, but there are 8589934589 teachers"), "{found}");
    assert!(account(&[vec![most, 0]], most as usize, event(Mechanism::discrete_laplace)).is_ok());
    assert_eq!(q(&[3], &event(Mechanism::laplace)), Err(AccountError::TooFewClasses { row: 0, found: 1 }));
    let found = message(&[vec![2, 1], vec![0, 0], vec![2, 2]], 3);
    assert_eq!(found, "row 2 has 4 votes, but there are 3 teachers, who vote at most once in every query");
    assert_eq!(message(&[vec![0, 0]], 0), "there are 0 teachers, expected at least 1");
    let empty = [vec![2, 1], vec![0, 0], vec![1, 1]];
    assert!(account(&empty, 3, event(Mechanism::discrete_laplace)).is_ok());
}

#[test]
fn bad_parameters_are_refused() {
    for value in [0.0, 1e-290, 1.0, -1e-5, 1.5, f64::NAN, f64::INFINITY] {
        let error = Delta::new(value).expect_err("out of range").to_string();
        assert!(error.starts_with("delta is"), "{value}: {error}");
    }
    assert!(serde_json::from_str::<Delta>("0").is_err());
    let paper = Accountant::paper(event(Mechanism::laplace), delta());
    assert_eq!(paper.account_queries(0), Err(AccountError::NoQueries));
    let none = paper.with_max_order(0.0).account(&[vec![2, 1]], 3);
    assert!(none.expect_err("no order").to_string().starts_with("largest moment order is 0"));
    // A larger order is reduced to the limit, not tried.
    for largest in [f64::INFINITY, 1e300] {
        for bound in [Bound::Paper, Bound::Tight] {
            let accountant =
                Accountant::new(event(Mechanism::laplace), delta()).with_bound(bound).with_max_order(largest);
            assert!(
                accountant.account(&[vec![9, 1]], 10).is_ok_and(|account| account.epsilon < 1.0),
                "{bound:?} {largest}"
            );
        }
    }
    let many = Accountant::new(event(Mechanism::laplace), delta()).account_queries(1_000_001);
    assert_eq!(many, Err(AccountError::Queries { found: 1_000_001 }));
    for distance in [-1e-30, 1.0, f64::NAN] {
        let result = event(Mechanism::discrete_laplace).with_sampling_total_variation(distance);
        assert!(matches!(result, Err(AccountError::TotalVariation { .. })), "{distance}");
    }
}

#[test]
fn the_sampler_is_charged_to_delta() {
    let counts = vec![vec![200, 40, 10]; 50];
    let exact = event(Mechanism::discrete_laplace);
    let share = NoiseShare::new(gamma(0.1), 250).expect("a certified table");
    let plain = account(&counts, 250, exact).expect("valid votes");
    let charged =
        exact.with_sampling_total_variation(share.total_variation_of_draws(50 * 3 * 225)).expect("a distance");
    let charged = account(&counts, 250, charged).expect("valid votes");
    assert!(charged.epsilon >= plain.epsilon && charged.epsilon < plain.epsilon * (1.0 + 1e-5));
    assert_eq!(charged.delta, 1e-5);
    assert!(charged.claim.contains("total variation distance"));
    // A bad sampler costs a part of delta, and a worse one all of it.
    let bad =
        account(&counts, 250, exact.with_sampling_total_variation(1e-7).expect("a distance")).expect("valid votes");
    assert!(bad.epsilon > plain.epsilon + 1e-3 && bad.epsilon < plain.epsilon + 1.0);
    let worse = account(&counts, 250, exact.with_sampling_total_variation(1e-5).expect("a distance"));
    assert!(matches!(worse, Err(AccountError::DeltaUsedUp { .. })));
}

#[test]
fn hardly_any_noise_costs_much() {
    for tau in [1e-300, 1e-306, 5e-324] {
        for noise in [MechanismKind::Gaussian, MechanismKind::Skellam] {
            let accountant = Accountant::new(given::event(noise, 40.0, tau), delta());
            // About k / (sigma^2 tau), or no claim at all.
            for found in [accountant.account_queries(100), accountant.account(&[vec![5, 5, 3]], 13)] {
                assert!(found.is_err() || found.is_ok_and(|found| found.epsilon > 50.0), "{noise} {tau}");
            }
        }
    }
}

#[test]
fn an_integral_that_misses_a_cusp_is_not_used() {
    // One noisy teacher of 250: nodes of the integral miss a fifth of the density.
    let rows = vec![vec![51, 49]; 10];
    let of = |tau: f64, integrals: bool| {
        let event = given::event(MechanismKind::Laplace, 1e-3, tau);
        let accountant =
            Accountant::new(event, delta()).with_bound(Bound::Outcome).with_relation(NeighbouringRelation::OneSided);
        (event, accountant.with_integrals(integrals).account(&rows, 100).expect("votes").epsilon)
    };
    let (event, claimed) = of(0.004, true);
    // For two classes, the bound over pairs is exact.
    assert_eq!(claimed, of(0.004, false).1);
    assert!(claimed > 27.0, "{claimed}");
    let error = q_exact(&[50, 50], &event).expect_err("refused").to_string();
    assert!(error.starts_with("q by integration cannot be reached: tau is 0.004"), "{error}");
}

#[test]
fn an_unreachable_threshold_costs_nothing() {
    // The probability of any answer is too small for a double; it must not become NaN.
    for (gamma, noise) in
        [(26.87, MechanismKind::Laplace), (26.87, MechanismKind::DiscreteLaplace), (500.0, MechanismKind::Laplace)]
    {
        let event = given::event(noise, gamma, 0.05).with_threshold(29.0).expect("whole");
        let accountant = Accountant::new(event, delta());
        for bound in [Bound::Outcome, Bound::Tight] {
            let found = accountant.with_bound(bound).account(&[vec![0, 1]], 1).expect("votes").epsilon;
            assert!((0.0..1.0).contains(&found), "{gamma} {bound}: {found}");
        }
    }
}

#[test]
fn one_direction_never_costs_more_than_both() {
    // The best order lies at a cliff, caused by a neighbour that is harmless at lower orders.
    let event = given::event(MechanismKind::DiscreteLaplace, 1.0, 0.05);
    let accountant = Accountant::new(event, given::delta((-19.329_202_809_161_522f64).exp()));
    let of = |directions| accountant.with_relation(directions).account(&[vec![24, 957]], 981).expect("votes").epsilon;
    let (one, both) = (of(NeighbouringRelation::OneSided), of(NeighbouringRelation::BothWays));
    assert!(one <= both * (1.0 + 1e-6) && both < 0.03, "{one} {both}");
}

#[test]
fn a_release_of_a_landslide_ends() {
    let options = ReleaseOptions::default();
    let accountant = Accountant::new(event(Mechanism::discrete_laplace), delta());
    let released = accountant.release(&[vec![4_000_000_000, 0, 0]], 4_000_000_000, &options, &mut generator());
    assert!(released.is_ok_and(|released| released.epsilon.is_finite()));
}

/// The same bits, but as a kept key instead of a chosen seed.
fn kept() -> NoiseGenerator {
    NoiseGenerator::new(&Randomness::SavedKey([3; 32].into())).expect("a generator")
}

fn generator() -> NoiseGenerator {
    NoiseGenerator::new(&Randomness::simulation([3; 32])).expect("a generator")
}

#[test]
fn a_released_value_is_publishable_and_states_its_claim() {
    let counts = vec![vec![240, 10, 0]; 60];
    let event = event(Mechanism::discrete_laplace);
    let (plain, options) = (Accountant::new(event, delta()), ReleaseOptions::default());
    let secret = plain.account(&counts, 250).expect("valid votes");
    let any = plain.account_queries(60).expect("queries");
    for assume in [Adversary::ExternalWithDropout, Adversary::Colluding] {
        let released = plain.with_adversary(assume).release(&counts, 250, &options, &mut kept());
        let released = released.expect("valid votes");
        assert!(released.publishable && released.epsilon > secret.epsilon && released.epsilon < any.epsilon);
        for part in ["of the answers and of this value", "both directions", "May be published, once", "1.0e-6"] {
            assert!(released.claim.contains(part), "\"{part}\" is missing: {}", released.claim);
        }
        let release = released.release.expect("how it was released");
        assert!(release.failure < 1.000_001e-6 && release.moment > 0.0 && !release.simulation);
    }
    let simulated = plain.release(&counts, 250, &options, &mut generator()).expect("valid votes");
    assert!(!simulated.publishable && simulated.claim.contains("SIMULATION"));
    // The order does not depend on the votes.
    let other = plain.release(&vec![vec![90, 80, 80]; 60], 250, &options, &mut generator()).expect("valid votes");
    assert_eq!(other.order, simulated.order);
    for bad in [
        ReleaseOptions { smoothness: 0.0, ..options },
        ReleaseOptions { noise: f64::NAN, ..options },
        ReleaseOptions { order: Some(-1.0), ..options },
    ] {
        assert!(matches!(plain.release(&counts, 250, &bad, &mut generator()), Err(AccountError::ReleaseOption { .. })));
    }
}

#[test]
fn a_released_value_is_hardly_ever_too_small() {
    // At a failure of 1e-3 the chance of more than 4 in 100 runs is below 1e-7.
    let counts: Vec<Vec<u32>> = (0..30).map(|i| vec![200 - 5 * i, 30 + 5 * i, 20]).collect();
    let accountant = Accountant::new(event(Mechanism::discrete_laplace), given::delta(1e-2));
    let options = ReleaseOptions { order: Some(3.0), ..ReleaseOptions::default() };
    let mut generator = generator();
    // A lower bound of the moments behind the value: order 3, towards one neighbour, with the remaining part of delta.
    let noise = pmf(0.1, 0.9, 400);
    let answers = |row: [i64; 3]| probabilities(&row, &noise, None);
    let of_row = |row: &Vec<u32>| {
        let row = [i64::from(row[0]), i64::from(row[1]), 20];
        exact_moment(&answers(row), &answers([row[0] - 1, row[1] + 1, 20]), 3.0)
    };
    let alpha: f64 = counts.iter().map(of_row).sum();
    let mut small = 0;
    for _ in 0..100 {
        let released = accountant.release(&counts, 250, &options, &mut generator).expect("valid votes");
        let own = released.release.expect("a release").moment;
        let least = improved_epsilon(alpha + own, 3.0, 1e-2 * 0.9);
        small += usize::from(released.epsilon < least);
    }
    assert!(small <= 4, "{small} of 100 are too small");
}
