//! Claims for a party of several teachers, against an enumeration of all votes and of all moves of a party's votes.

use speed_accountant::{AccountError, Accountant, Budget, PrivacyEvent, PrivacyFilter, QueryBatch};
use speed_core::fixture::exhaustive;
use speed_mechanism::{HonestRatio, Mechanism, MechanismKind};

use crate::enumeration::brute_force::{delta_of, heads_of, histograms, pmf, probabilities};
use crate::given::{delta, event, gamma};

fn epsilon(event: PrivacyEvent, teachers: usize, queries: usize, at: f64) -> f64 {
    let event = event.of_party(teachers).expect("a party");
    Accountant::new(event, delta(at)).account_queries(queries).expect("an account").epsilon
}

/// The largest exact delta over all votes of the other teachers and all votes of the party, before and after.
fn worst_delta(noise: &[f64], others: i64, party: i64, classes: usize, queries: usize, claim: f64) -> f64 {
    let mut worst = 0.0f64;
    for threshold in [None, Some(others)] {
        for rest in histograms(classes, others) {
            let all: Vec<Vec<f64>> = histograms(classes, party)
                .iter()
                .map(|own| rest.iter().zip(own).map(|(a, b)| a + b).collect::<Vec<_>>())
                .map(|votes| probabilities(&votes, noise, threshold))
                .collect();
            for here in &all {
                for there in &all {
                    worst = worst.max(delta_of(here, there, queries, claim));
                }
            }
        }
    }
    worst
}

#[test]
fn no_votes_and_no_moves_of_a_party_exceed_the_claim() {
    for (coins, party, classes, queries, at) in
        [(200, 2, 3, 1, 1e-3), (200, 3, 3, 2, 1e-2), (400, 3, 4, 1, 1e-4), (300, 4, 2, 3, 1e-3), (1_600, 4, 3, 2, 1e-5)]
    {
        let claim = epsilon(event(MechanismKind::Binomial, f64::from(coins), 1.0), party, queries, at);
        let noise = heads_of(u64::from(coins as u32));
        let found = worst_delta(&noise, 3, party as i64, classes, queries, claim);
        assert!(found <= at, "{coins} coins, a party of {party}: delta {found:e} at epsilon {claim}, claimed {at:e}");
        // The claim says something: a tenth of its epsilon is exceeded.
        let less = worst_delta(&noise, 3, party as i64, classes, queries, 0.1 * claim);
        assert!(less > at, "{coins} coins, a party of {party}: delta {less:e} at a tenth of {claim}");
    }
    for (scale, party, classes, queries, at) in [(0.5, 2, 3, 1, 1e-3), (0.3, 3, 3, 2, 1e-2), (0.1, 4, 3, 1, 1e-6)] {
        let claim = epsilon(event(MechanismKind::DiscreteLaplace, scale, 1.0), party, queries, at);
        let noise = pmf(scale, 1.0, (60.0 / scale) as i64);
        let found = worst_delta(&noise, 3, party as i64, classes, queries, claim);
        assert!(found <= at, "gamma {scale}, a party of {party}: delta {found:e} at epsilon {claim}, claimed {at:e}");
    }
}

#[test]
fn a_party_of_one_teacher_is_that_teacher() {
    for event in [
        event(MechanismKind::Binomial, 800.0, 1.0),
        event(MechanismKind::Binomial, 800.0, 0.9),
        event(MechanismKind::DiscreteLaplace, 0.1, 1.0),
        event(MechanismKind::DiscreteLaplace, 0.1, 0.9),
        event(MechanismKind::Gaussian, 40.0, 1.0),
        event(MechanismKind::Skellam, 30.0, 0.8),
    ] {
        assert_eq!(event.of_party(1), Ok(event));
    }
    let of =
        |event: PrivacyEvent| Accountant::new(event, delta(1e-5)).account_queries(100).expect("an account").epsilon;
    let coins = of(event(MechanismKind::Binomial, 800.0, 1.0));
    assert!((coins - 3.687).abs() < 1e-3, "{coins}");
}

#[test]
fn a_party_costs_more_than_a_teacher_and_less_than_group_privacy() {
    let mut cases = vec![
        (event(MechanismKind::Binomial, 14_400.0, 1.0), 20, 10),
        (event(MechanismKind::Binomial, 57_600.0, 0.9), 100, 10),
        (event(MechanismKind::Skellam, 60.0, 1.0), 20, 10),
        (event(MechanismKind::Gaussian, 500.0, 0.7), 20, 10),
        (event(MechanismKind::DiscreteLaplace, 0.02, 0.9), 20, 10),
        (event(MechanismKind::Laplace, 0.02, 1.0), 20, 10),
    ];
    if exhaustive() {
        cases.extend(cases.clone().into_iter().map(|(event, queries, _)| (event, queries, 2)));
        for teachers in [2, 10] {
            cases.extend([
                (event(MechanismKind::Binomial, 400.0, 1.0), 2, teachers),
                (event(MechanismKind::Gaussian, 60.0, 1.0), 20, teachers),
                (event(MechanismKind::DiscreteLaplace, 0.02, 1.0), 20, teachers),
            ]);
        }
    }
    for (event, queries, teachers) in cases {
        // A chain of so many (epsilon, at)-private steps has the delta 1e-5.
        let mut at: f64 = 1e-6;
        let mut one = 0.0;
        for _ in 0..60 {
            one = epsilon(event, 1, queries, at);
            let chain: f64 = (0..teachers).map(|i| (i as f64 * one).exp()).sum();
            let before = std::mem::replace(&mut at, f64::max(1e-5 / chain, 1e-250));
            // Far below the tolerance of the comparison.
            if (at / before - 1.0).abs() < 1e-5 {
                break;
            }
        }
        let (alone, claim) = (epsilon(event, 1, queries, 1e-5), epsilon(event, teachers, queries, 1e-5));
        assert!(claim > alone, "{event:?}: {claim} of {teachers}, {alone} of one");
        let group = teachers as f64 * one;
        assert!(claim <= group * (1.0 + 1e-4), "{event:?}: {claim} of {teachers}, {group} by group privacy");
    }
}

#[test]
fn a_pure_epsilon_of_a_party_is_at_most_that_of_its_teachers_added_up() {
    for tau in [0.3, 0.7, 0.9, 1.0] {
        for teachers in [2usize, 7, 40] {
            let one = event(MechanismKind::DiscreteLaplace, 0.1, tau);
            let of = |event: PrivacyEvent| Accountant::new(event, delta(1e-9)).per_query_epsilon(10);
            let (single, party) = (of(one), of(one.of_party(teachers).expect("a party")));
            assert!(party <= teachers as f64 * single * (1.0 + 1e-12), "{tau} {teachers}: {party}");
            assert!(party >= 0.2 * teachers as f64 * (1.0 - 1e-12), "{tau} {teachers}: {party}");
        }
    }
}

#[test]
fn a_filter_composes_claims_of_parties() {
    let party = event(MechanismKind::Binomial, 57_600.0, 0.9).of_party(5).expect("a party");
    let mut filter = PrivacyFilter::new(Budget { epsilon: None, delta: delta(1e-5) });
    filter.compose(&QueryBatch::new(party, 10, 20));
    let (alone, account) = (filter.fixed_epsilon(), epsilon(party, 5, 20, 1e-5));
    assert!(alone >= account && alone < 1.01 * account, "{alone} and {account}");
    filter.compose(&QueryBatch::new(
        event(MechanismKind::Binomial, 14_400.0, 1.0).of_party(5).expect("a party"),
        10,
        20,
    ));
    assert!(filter.fixed_epsilon() > alone && filter.fixed_epsilon().is_finite());
    let many = filter.try_compose(&[QueryBatch::new(party, 257, 1)]);
    let many = many.expect_err("refused").to_string();
    assert!(many.starts_with("257 classes: the bound for a party"), "{many}");
}

#[test]
fn queries_of_other_neighbours_are_of_another_kind() {
    // Pure epsilons of a few queries add up: gamma for each of the two counts and each vote that moves.
    let of = |teachers| event(MechanismKind::DiscreteLaplace, 0.01, 1.0).of_party(teachers).expect("a party");
    let fixed = |at: f64, batches: [(PrivacyEvent, usize); 2]| {
        let mut filter = PrivacyFilter::new(Budget { epsilon: None, delta: delta(at) });
        batches.iter().for_each(|&(event, count)| filter.compose(&QueryBatch::new(event, None, count)));
        filter.fixed_epsilon()
    };
    let found = fixed(1e-9, [(of(2), 1), (of(5), 2)]);
    assert!((found - 0.02 * (2.0 + 2.0 * 5.0)).abs() < 1e-3, "{found}");
    // A check is of another kind than an answer with the same threshold.
    let noise = MechanismKind::Skellam.with_scale(150.0).expect("in range");
    let check = PrivacyEvent::check(noise, HonestRatio::ALL, 200.0).expect("a check");
    let answer = PrivacyEvent::new(noise, HonestRatio::ALL).with_threshold(200.0).expect("a threshold");
    let [checks, mixed, reversed, answers] = [[check, check], [check, answer], [answer, check], [answer, answer]]
        .map(|events| fixed(1e-5, events.map(|event| (event, 100))));
    assert!(
        checks < 0.99 * mixed && mixed == reversed && mixed < 0.99 * answers,
        "{checks} {mixed} {reversed} {answers}"
    );
}

#[test]
fn claims_that_do_not_exist_for_a_party_are_refused() {
    let one = event(MechanismKind::DiscreteLaplace, 0.1, 1.0);
    for found in [0usize, 1 << 21] {
        let error = one.of_party(found).expect_err("refused").to_string();
        assert_eq!(error, format!("a party has {found} teachers, expected 1 to 1048576"));
    }
    let party = one.of_party(5).expect("a party");
    let accountant = Accountant::new(party, delta(1e-5));
    for (account, words) in [
        (accountant.account(&[vec![5, 3]], 8), "found an account at given votes"),
        (Accountant::paper(party, delta(1e-5)).account_queries(3), "found the paper's bound"),
        (accountant.with_classes(257).account_queries(3), "257 classes"),
    ] {
        let error = account.expect_err("refused").to_string();
        assert!(error.contains(words), "{error}");
    }
    let few = event(MechanismKind::Binomial, 4.0, 1.0).of_party(5).expect("a party");
    assert!(matches!(Accountant::new(few, delta(1e-5)).account_queries(1), Err(AccountError::NotFinite { .. })));
    assert_eq!(Mechanism::discrete_laplace(gamma(0.1)), party.mechanism());
    let claim = accountant.account_queries(2).expect("an account").claim;
    assert!(claim.contains("the votes of one party's 5 teachers on every query"), "{claim}");
}

/// Without the limit on the deviation, the claim of each of these rounds takes more than a hundred seconds.
#[test]
fn the_account_of_a_party_with_wide_noise_is_sound() {
    let below = |x: f64| speed_mechanism::log_normal_survival(-x).exp();
    for (coins, votes) in [(655_360, 5), (480_000, 400), (1_048_576, 8_000)] {
        let found = epsilon(event(MechanismKind::Binomial, f64::from(coins), 1.0), votes, 1, 1e-5);
        let (votes, deviation) = (votes as f64, f64::from(coins).sqrt() / 2.0);
        // Two classes: the answer is the sign of a nearly normal difference, whose mean a party moves by twice its votes.
        let (mean, one) = (2.0 * votes / deviation / 2f64.sqrt(), 0.01);
        let exact = |lead: f64| below(lead + mean) - found.exp() * below(lead);
        let largest = (-900..900).map(|step| exact(one * f64::from(step))).fold(0.0, f64::max);
        assert!(largest <= 1.001e-5, "{coins} {votes}: {found} has delta {largest:e}");
        // Two normal counts cost nearly as much as the claim.
        let mu = 2f64.sqrt() * votes / deviation;
        let delta = |at: f64| below(mu / 2.0 - at / mu) - at.exp() * below(-mu / 2.0 - at / mu);
        assert!(delta(found / 1.25) > 1e-5, "{coins} {votes}: {found} is far above two counts");
    }
}
