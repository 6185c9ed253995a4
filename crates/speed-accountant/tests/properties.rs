//! Properties that hold for any input: order relations, limits, and no panic, NaN or negative epsilon.

use proptest::prelude::*;
use speed_accountant::calibrate::{Target, calibrate_noise, calibrate_queries};
use speed_accountant::composition::{gaussian_epsilon, optimal_delta, optimal_epsilon, optimal_epsilon_of};
use speed_accountant::theory::{per_query_epsilon, q, q_exact, q_pairs, tight_per_query_epsilon};
use speed_accountant::{
    Account, AccountError, Accountant, Adversary, Bound, Delta, Extent, NeighbouringRelation, PrivacyEvent,
    ReleaseOptions,
};
use speed_core::Randomness;
use speed_mechanism::{
    DiscreteGaussian, GeneralisedLaplace, Mechanism, MechanismKind, NoiseGenerator, NoiseShare, SkellamShare,
};

use crate::given::{delta, event, gamma, tau};

/// Draws scales from a range, uniformly in the logarithm.
fn log_range(low: f64, high: f64) -> impl Strategy<Value = f64> {
    (low.ln()..high.ln()).prop_map(f64::exp)
}

fn kinds() -> impl Strategy<Value = MechanismKind> {
    prop_oneof![
        Just(MechanismKind::Laplace),
        Just(MechanismKind::DiscreteLaplace),
        Just(MechanismKind::Gaussian),
        Just(MechanismKind::Skellam)
    ]
}

/// Draws a mechanism whose scale is in the range in which every formula must be right.
fn noises() -> impl Strategy<Value = Mechanism> {
    (kinds(), log_range(1e-3, 100.0)).prop_map(|(kind, gamma)| {
        let scale = if kind.is_inverse() { gamma } else { (1.0 / gamma).clamp(0.02, 3e3) };
        kind.with_scale(scale).expect("in range")
    })
}

/// Draws rows with these numbers of classes and of votes.
fn rows(
    classes: impl Strategy<Value = usize>,
    teachers: impl Strategy<Value = u32>,
) -> impl Strategy<Value = Vec<Vec<u32>>> {
    (classes, teachers).prop_flat_map(|(classes, teachers)| {
        let row = proptest::collection::vec(0.0f64..1.0, classes - 1).prop_map(move |cuts| {
            let mut cuts: Vec<u32> = cuts.iter().map(|cut| (cut * f64::from(teachers)) as u32).collect();
            cuts.sort_unstable();
            cuts.push(teachers);
            let mut before = 0;
            cuts.into_iter().map(|cut| cut - std::mem::replace(&mut before, cut)).collect::<Vec<u32>>()
        });
        proptest::collection::vec(row, 1..4)
    })
}

/// Draws thresholds, some of which are not valid.
fn thresholds() -> impl Strategy<Value = Option<f64>> {
    let hostile = prop::sample::select(vec![-1e15, -1e300, -40.0, 0.0, 7.0, 0.5, 1e9, 1e15, 1e300, f64::MAX]);
    proptest::option::weighted(0.3, prop_oneof![(-50i32..400).prop_map(f64::from), hostile])
}

/// A question to the accountant.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ask {
    Votes,
    /// Covers every number of missing or colluding teachers, so there are few teachers.
    UpTo,
    AnyVotes,
    /// Its time grows with the number of votes.
    Release,
}

/// Draws a question about noise of this kind with rows of votes, the number of teachers, and how many times the rows are
/// repeated. Some rows must be refused.
fn questions(kind: MechanismKind) -> impl Strategy<Value = (Ask, Vec<Vec<u32>>, usize, usize)> {
    // Far tails take long.
    let most = match kind {
        MechanismKind::Skellam => 3e4,
        MechanismKind::Laplace => 1e6,
        _ => f64::from(u32::MAX),
    };
    let asks = [(Ask::Votes, most), (Ask::UpTo, 12.0), (Ask::AnyVotes, 300.0), (Ask::Release, 300.0)];
    prop::sample::select(asks.to_vec()).prop_flat_map(|(ask, most)| {
        let classes = prop_oneof![4 => 2usize..6, 1 => 6usize..61];
        let rows = rows(classes, log_range(1.0, most).prop_map(|teachers| teachers as u32));
        (Just(ask), rows, 0usize..60, 0usize..3, log_range(1.0, 3e3)).prop_map(|(ask, mut rows, fault, more, times)| {
            let teachers = rows[0].iter().sum::<u32>() as usize + more;
            match fault {
                0 => rows.clear(),
                1 => rows[0].push(0),
                2 => rows[0].truncate(1),
                3 => rows[0][0] = u32::MAX,
                4 => return (ask, rows, 0, 1),
                _ => {}
            }
            (ask, rows, teachers, times as usize)
        })
    })
}

/// Returns a target at delta 1e-5 against colluding teachers.
fn target(epsilon: f64, ratio: f64) -> Target {
    let (delta, tau, adversary, bound) = (delta(1e-5), tau(ratio), Adversary::Colluding, Bound::Tight);
    Target { epsilon, delta, tau, adversary, bound, classes: None, threshold: None, checks: None }
}

/// Returns the number of cases: a few in every run, or the number in `PROPTEST_CASES`, such as 1000.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(24)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_account_is_a_number_and_ordered(
        noise in noises(),
        ratio in prop_oneof![0.05f64..1.0, Just(1.0)],
        rows in rows(2usize..6, 1u32..100_000),
        log_delta in -40.0f64..-0.1,
        threshold in proptest::option::of(-10i32..2_000),
    ) {
        let mut event = PrivacyEvent::new(noise, tau(ratio));
        if let Some(threshold) = threshold {
            event = event.with_threshold(f64::from(threshold)).expect("whole");
        }
        let accountant = Accountant::new(event, delta(log_delta.exp()));
        let of = |bound, directions, assume| {
            let accountant = accountant.with_bound(bound).with_relation(directions).with_adversary(assume);
            let teachers = rows[0].iter().sum::<u32>() as usize;
            let account = accountant.account(&rows, teachers).expect("valid votes");
            assert!(account.epsilon >= 0.0 && account.epsilon.is_finite(), "{}", account.claim);
            assert!(account.per_query_epsilon >= 0.0 && !account.claim.is_empty());
            account.epsilon
        };
        let tight = of(Bound::Tight, NeighbouringRelation::BothWays, Adversary::ExternalWithDropout);
        let tight_one = of(Bound::Tight, NeighbouringRelation::OneSided, Adversary::ExternalWithDropout);
        let outcome = of(Bound::Outcome, NeighbouringRelation::BothWays, Adversary::ExternalWithDropout);
        let collusion = of(Bound::Tight, NeighbouringRelation::BothWays, Adversary::Colluding);
        let paper = of(Bound::Paper, NeighbouringRelation::OneSided, Adversary::ExternalWithDropout);
        let paper_both = of(Bound::Paper, NeighbouringRelation::BothWays, Adversary::ExternalWithDropout);
        let any = accountant.account_queries(rows.len()).expect("queries").epsilon;
        let above = |more: f64, less: f64| more >= less * (1.0 - 1e-6) - 1e-9;
        // Either bound is valid for one direction. Where both are next to 0, the searches over orders end at different
        // orders, because their bounds differ by less than the largest order can resolve.
        let resolution = -log_delta / 4096.0;
        prop_assert!(above(tight + resolution, tight_one), "{tight} below {tight_one} in one direction");
        prop_assert!(above(outcome, tight), "outcome {outcome} below tight {tight}");
        prop_assert!(above(paper_both, paper), "paper {paper_both} below {paper} in one direction");
        prop_assert!(above(collusion, tight), "collusion {collusion} below dropout {tight}");
        prop_assert!(above(any, collusion), "{any} whatever the votes, {collusion} at these");
        prop_assert!(above(paper_both, tight), "paper {paper_both} below tight {tight}");
    }

    #[test]
    fn any_question_is_refused_or_has_a_finite_epsilon(
        (kind, (ask, rows, teachers, times)) in kinds().prop_flat_map(|kind| (Just(kind), questions(kind))),
        scale in prop_oneof![Just(f64::INFINITY), log_range(1e-3, 1e6)],
        ratio in prop_oneof![Just(1.0), 1e-9f64..1.0, log_range(1e-9, 1.0)],
        delta in prop_oneof![Just(Delta::MIN), Just(1.0 - f64::EPSILON / 2.0), log_range(2.0 * Delta::MIN, 0.999)],
        threshold in thresholds(),
        distance in prop_oneof![8 => Just(0.0), 1 => log_range(1e-30, 0.999)],
        (adversary, bound) in prop::sample::select(vec![
            (Adversary::ExternalWithDropout, Bound::Tight),
            (Adversary::ExternalWithDropout, Bound::Paper),
            (Adversary::Colluding, Bound::Tight),
            (Adversary::Colluding, Bound::Outcome),
            (Adversary::ExternalWithCentral, Bound::Tight),
        ]),
        (one_sided, integrals) in any::<(bool, bool)>(),
        order in proptest::option::weighted(0.15, prop_oneof![
            prop::sample::select(vec![0.0, -1.0, f64::NAN, 1e-3, 1e4]),
            log_range(0.1, 1e4),
        ]),
    ) {
        // Tables of wide Skellam noise take long.
        let widest = if kind == MechanismKind::Skellam { 100.0 } else { 1e6 };
        let noise = kind.with_scale(if kind.is_inverse() { scale.clamp(1e-3, 1e6) } else { scale.clamp(0.01, widest) });
        let noise = noise.expect("in range");
        let rows = vec![rows; times].concat();
        let answer = || -> Result<Account, AccountError> {
            let event = PrivacyEvent::new(noise, tau(ratio)).with_sampling_total_variation(distance)?;
            let event = threshold.map_or(Ok(event), |threshold| event.with_threshold(threshold))?;
            let relation = if one_sided { NeighbouringRelation::OneSided } else { NeighbouringRelation::BothWays };
            let accountant = Accountant::new(event, Delta::new(delta)?)
                .with_adversary(adversary)
                .with_extent(if ask == Ask::UpTo { Extent::UpTo } else { Extent::Exactly })
                .with_relation(relation)
                .with_bound(bound)
                .with_integrals(integrals);
            let accountant = order.map_or(accountant, |order| accountant.with_max_order(order));
            match ask {
                Ask::Votes | Ask::UpTo => accountant.account(&rows, teachers),
                Ask::AnyVotes => accountant.account_queries(rows.len()),
                Ask::Release => {
                    let mut generator = NoiseGenerator::new(&Randomness::simulation([9; 32])).expect("a generator");
                    accountant.release(&rows, teachers, &ReleaseOptions::default(), &mut generator)
                }
            }
        };
        if let Ok(account) = answer() {
            let query = account.per_query_epsilon;
            prop_assert!(account.epsilon.is_finite() && account.epsilon >= 0.0 && query >= 0.0, "{}", account.claim);
            let is_pure = noise.gamma().is_some() && bound != Bound::Paper && ask != Ask::Release;
            let most = account.queries as f64 * query * (1.0 + 1e-6);
            prop_assert!(!is_pure || account.epsilon <= most, "{} of all, above {most} of each", account.epsilon);
        }
    }

    #[test]
    fn probabilities_are_ordered(
        gamma in log_range(1e-3, 20.0),
        ratio in prop_oneof![0.1f64..1.0, Just(1.0)],
        rows in rows(2usize..6, 1u32..100_000),
        integer in any::<bool>(),
    ) {
        let event = event(if integer { MechanismKind::DiscreteLaplace } else { MechanismKind::Laplace }, gamma, ratio);
        for row in &rows {
            let (paper, pairs, exact) =
                (q(row, &event).expect("votes"), q_pairs(row, &event).expect("votes"), q_exact(row, &event).expect("votes"));
            prop_assert!((0.0..=1.0).contains(&paper) && (0.0..=1.0).contains(&pairs) && (0.0..=1.0 + 1e-9).contains(&exact));
            prop_assert!(pairs <= paper * (1.0 + 1e-9), "{pairs} above Proposition 4's {paper}");
            // Below the accuracy of sums over the noise, the union bound is used.
            prop_assert!(exact <= pairs * (1.0 + 1e-7) + 1e-18, "{exact} above the union {pairs}");
        }
    }

    #[test]
    fn one_query_is_monotone_and_tight_is_below_paper(
        gamma in log_range(1e-3, 50.0),
        ratio in 0.05f64..0.999,
        integer in any::<bool>(),
    ) {
        let kind = if integer { MechanismKind::DiscreteLaplace } else { MechanismKind::Laplace };
        let at = |gamma: f64, ratio: f64| event(kind, gamma, ratio);
        let here = at(gamma, ratio);
        let (paper, tight) = (per_query_epsilon(&here), tight_per_query_epsilon(&here, 10));
        prop_assert!(tight <= paper * (1.0 + 1e-9) && tight >= 2.0 * gamma * (1.0 - 1e-12));
        for more in [at(gamma * 1.05, ratio), at(gamma, (ratio * 0.95).max(0.05))] {
            prop_assert!(tight_per_query_epsilon(&more, 10) >= tight * (1.0 - 1e-5));
            prop_assert!(per_query_epsilon(&more) >= paper * (1.0 - 1e-9));
        }
        prop_assert!(tight_per_query_epsilon(&here, 2) <= tight * (1.0 + 1e-9));
    }

    #[test]
    fn worst_case_composition_is_monotone(
        kind in kinds(),
        gamma in log_range(1e-2, 3.0),
        ratio in 0.3f64..1.0,
        queries in 1usize..300,
        log_delta in -30.0f64..-1.0,
    ) {
        let at = |gamma: f64, ratio: f64, queries: usize, log_delta: f64| {
            let scale = if kind.is_inverse() { gamma } else { 1.0 / gamma };
            Accountant::new(event(kind, scale, ratio), delta(log_delta.exp())).account_queries(queries).expect("queries").epsilon
        };
        let here = at(gamma, ratio, queries, log_delta);
        // One percent is more than the resolution of the grid.
        for more in [
            at(gamma * 1.01, ratio, queries, log_delta),
            at(gamma, ratio * 0.98, queries, log_delta),
            at(gamma, ratio, queries + 1, log_delta),
            at(gamma, ratio, queries, log_delta - 0.5),
        ] {
            prop_assert!(more * 1.003 >= here, "{more} below {here}");
        }
    }

    #[test]
    fn optimal_composition_is_below_the_sum_and_the_grid_above_it(
        epsilons in proptest::collection::vec((log_range(1e-3, 3.0), 1usize..30), 1..4),
        log_delta in -30.0f64..-1.0,
    ) {
        let delta = log_delta.exp();
        let mixed = optimal_epsilon_of(&epsilons, delta);
        let sum: f64 = epsilons.iter().map(|&(epsilon, times)| epsilon * times as f64).sum();
        let times: usize = epsilons.iter().map(|&(_, times)| times).sum();
        let most = epsilons.iter().map(|&(epsilon, _)| epsilon).fold(0.0, f64::max);
        prop_assert!(mixed >= 0.0 && mixed <= sum * (1.0 + 1e-9));
        prop_assert!(mixed <= optimal_epsilon(most, times, delta) + sum * 1e-4);
        for &(epsilon, times) in &epsilons {
            prop_assert!(mixed + 1e-9 >= optimal_epsilon(epsilon, times, delta));
        }
        // Two halves of one kind whose epsilons differ only slightly use the grid and come close to the exact sum.
        let (epsilon, times) = epsilons[0];
        let exact = optimal_epsilon(epsilon, 2 * times, delta);
        let grid = optimal_epsilon_of(&[(epsilon, times), (epsilon * (1.0 + 1e-12), times)], delta);
        prop_assert!(grid >= exact * (1.0 - 1e-9) && grid <= exact + sum * 1e-3, "{grid} against {exact}");
        prop_assert!(optimal_delta(epsilon, times, exact) <= delta * (1.0 + 1e-6) || exact == 0.0);
    }
}

#[test]
fn limits() {
    let laplace = |scale: f64, ratio: f64| event(MechanismKind::Laplace, scale, ratio);
    // tau -> 1 gives 2 gamma.
    for gamma in [0.01, 0.1, 1.0] {
        let near = per_query_epsilon(&laplace(gamma, 1.0 - 1e-9));
        assert!((near / (2.0 * gamma) - 1.0).abs() < 1e-6, "{near}");
        let tight = tight_per_query_epsilon(&laplace(gamma, 1.0 - 1e-9), 10);
        assert!(tight <= 2.0 * gamma * 1.001, "{tight}");
    }
}

#[test]
fn no_ratio_of_tails_exceeds_the_bound() {
    for (scale, ratio) in [(0.01, 0.05), (0.3, 0.3), (0.3, 0.6), (1.0, 0.75), (8.0, 0.5), (60.0, 0.9)] {
        let bound = tight_per_query_epsilon(&event(MechanismKind::Laplace, scale, ratio), 3);
        let noise = GeneralisedLaplace::of_class(gamma(scale), tau(ratio));
        for t in (-300..=300).map(|t| f64::from(t) * 0.01) {
            assert!(
                noise.log_survival(t) - noise.log_survival(t + 2.0) <= bound + 1e-12,
                "{scale} {ratio} {t}: {bound}"
            );
        }
    }
}

proptest! {
    // A case may calibrate a million queries.
    #![proptest_config(ProptestConfig { cases: cases() / 6, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn noise_that_is_calibrated_can_be_drawn(
        kind in kinds(),
        epsilon in log_range(1e-3, 1e6),
        log_delta in -600.0f64..-0.7,
        queries in prop_oneof![Just(1usize), 1usize..1_000, Just(1_000_000)],
        ratio in prop_oneof![0.05f64..1.0, Just(1.0)],
        teachers in 1usize..1_000,
    ) {
        let (delta, adversary) = (delta(log_delta.exp()), Adversary::ExternalWithDropout);
        let target = Target { delta, adversary, ..target(epsilon, ratio) };
        // The search never returns noise outside the samplers' range; it refuses it by name.
        match calibrate_noise(kind, queries, &target) {
            Ok(found) => {
                prop_assert!(found.account.epsilon <= epsilon);
                match kind.with_scale(found.scale).expect("in the range of the types") {
                    Mechanism::Laplace { .. } => {}
                    Mechanism::DiscreteLaplace { gamma } => prop_assert!(NoiseShare::new(gamma, teachers).is_ok()),
                    Mechanism::Skellam { sigma } => prop_assert!(SkellamShare::new(sigma, teachers).is_ok()),
                    Mechanism::Gaussian { sigma } => prop_assert!(DiscreteGaussian::new(sigma).variance_parameter() > 0.0),
                    Mechanism::Binomial { .. } => prop_assert!(false, "a kind that was not asked for"),
                }
            }
            Err(error) => prop_assert!(matches!(error, AccountError::Unreachable(_)), "{error}"),
        }
    }
}

#[test]
fn the_least_noise_is_found_in_few_steps_up_to_a_million_queries() {
    let target = target(30.0, 1.0);
    for kind in [MechanismKind::Laplace, MechanismKind::Gaussian, MechanismKind::Skellam] {
        let found = calibrate_noise(kind, 1_000_000, &target).expect("reachable");
        assert_close(found.account.epsilon, 30.0, 1e-4);
        // A large number of small losses has the loss of Gaussian noise: of one deviation for all four.
        let mu = match kind {
            // There are two counts of gamma each, whose losses have a mean square of gamma^2.
            MechanismKind::Laplace => found.scale * 2e6f64.sqrt(),
            _ => 2e6f64.sqrt() / found.scale,
        };
        assert_close(gaussian_epsilon(mu, 1e-5), 30.0, 3e-3);
        let noise = kind.with_scale(found.scale).expect("in range");
        let queries = calibrate_queries(noise, &target).expect("reachable").queries;
        assert!(queries >= 999_990 || kind == MechanismKind::Laplace && queries > 999_000, "{kind}: {queries}");
    }
}

/// Asserts that `found` differs from `expected` by less than the relative tolerance `part`.
fn assert_close(found: f64, expected: f64, part: f64) {
    assert!((found / expected - 1.0).abs() < part, "{found} against {expected}");
}

#[test]
fn calibration_meets_its_target_and_no_less_noise_does() {
    let target = target(5.0, 0.9);
    for kind in
        [MechanismKind::Laplace, MechanismKind::DiscreteLaplace, MechanismKind::Gaussian, MechanismKind::Skellam]
    {
        let found = calibrate_noise(kind, 100, &target).expect("reachable");
        assert!(found.account.epsilon <= 5.0 && found.account.epsilon > 4.99, "{kind:?}: {}", found.account.epsilon);
        assert!(found.account.publishable);
        let less = if kind.is_inverse() { found.scale * 1.01 } else { found.scale * 0.99 };
        let cost = Accountant::new(event(kind, less, 0.9), delta(1e-5)).account_queries(100).expect("queries").epsilon;
        assert!(cost > 5.0, "{kind:?}: {cost}");
        let noise = kind.with_scale(found.scale).expect("in range");
        let queries = calibrate_queries(noise, &target).expect("reachable");
        assert_eq!(queries.queries, 100, "{kind:?}");
    }
    for epsilon in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(calibrate_noise(MechanismKind::Laplace, 1, &Target { epsilon, ..target }).is_err());
    }
    assert!(calibrate_noise(MechanismKind::Laplace, 1_000_000, &Target { epsilon: 1e-3, ..target }).is_err());
    let binomial = calibrate_noise(MechanismKind::Binomial, 1, &target);
    assert!(matches!(binomial, Err(AccountError::Invalid(text)) if text.starts_with("binomial noise ")));
    let weak = MechanismKind::Laplace.with_scale(50.0).expect("in range");
    assert!(calibrate_queries(weak, &target).is_err());
}
