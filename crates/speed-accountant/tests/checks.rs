//! Checks, and answers after checks, against the exact loss of small cases. The truth is computed from the definitions by
//! enumeration and shares no code with the accountant.

use speed_accountant::composition::gaussian_epsilon;
use speed_accountant::{
    AccountError, Accountant, Adversary, Bound, Budget, Checks, Extent, Mechanism, MechanismKind, PrivacyEvent,
    PrivacyFilter, QueryBatch,
};

use crate::enumeration::brute_force::{heads_of, pmf, probabilities};
use crate::given::{delta, event, tau as ratio};
use crate::neighbours::neighbours;

/// The number of teachers at given votes.
const TEACHERS: i64 = 6;

/// Noise on the integers with its probabilities, computed here. They are centred at 0.
#[derive(Clone, Debug)]
struct Noise {
    mechanism: Mechanism,
    pmf: Vec<f64>,
}

impl Noise {
    fn laplace(gamma: f64) -> Self {
        let mechanism = MechanismKind::DiscreteLaplace.with_scale(gamma).expect("in range");
        Self { mechanism, pmf: pmf(gamma, 1.0, (30.0 / gamma).ceil() as i64) }
    }

    /// An even number of coins, of which `secret` are secret and the others are missing.
    fn coins(all: u64, secret: u64) -> Self {
        assert!(secret.is_multiple_of(2), "the heads of an odd number are counted from another place");
        Self { mechanism: MechanismKind::Binomial.with_scale(all as f64).expect("in range"), pmf: heads_of(secret) }
    }

    fn places(&self) -> impl Iterator<Item = (i64, f64)> + Clone {
        (-(self.pmf.len() as i64 / 2)..).zip(self.pmf.iter().copied())
    }

    fn at_least(&self, mark: i64) -> f64 {
        self.places().filter(|(k, _)| *k >= mark).map(|(_, p)| p).sum()
    }

    /// Returns the probabilities of the classes; ties go to the lowest.
    fn argmax(&self, counts: &[i64]) -> Vec<f64> {
        let mut all = probabilities(counts, &self.pmf, None);
        all.truncate(counts.len());
        all
    }
}

/// Returns the probabilities of the outcomes of one query: no answer first.
fn outcomes(check: &Noise, answer: &Noise, threshold: i64, counts: &[i64]) -> Vec<f64> {
    let reached = check.at_least(threshold - counts.iter().max().expect("classes"));
    let classes = answer.argmax(counts);
    [1.0 - reached].into_iter().chain(classes.into_iter().map(|p| reached * p)).collect()
}

/// Returns the sum of `(P - e^epsilon P')_+` over all sequences of outcomes.
fn overdraft(rows: &[(Vec<f64>, Vec<f64>)], epsilon: f64) -> f64 {
    fn below(rows: &[(Vec<f64>, Vec<f64>)], p: f64, q: f64, epsilon: f64) -> f64 {
        match rows.split_first() {
            None => (p - epsilon.exp() * q).max(0.0),
            Some(((here, there), rest)) => {
                here.iter().zip(there).map(|(a, b)| below(rest, p * a, q * b, epsilon)).sum()
            }
        }
    }
    below(rows, 1.0, 1.0, epsilon)
}

/// Returns the largest overdraft over all choices of one pair for each row, in both directions.
fn worst(choices: &[Vec<(Vec<f64>, Vec<f64>)>], epsilon: f64) -> f64 {
    fn choose(choices: &[Vec<(Vec<f64>, Vec<f64>)>], chosen: &mut Vec<(Vec<f64>, Vec<f64>)>, epsilon: f64) -> f64 {
        let Some((first, rest)) = choices.split_first() else {
            let back: Vec<_> = chosen.iter().map(|(p, q)| (q.clone(), p.clone())).collect();
            return overdraft(chosen, epsilon).max(overdraft(&back, epsilon));
        };
        let mut most = 0.0f64;
        for pair in first {
            chosen.push(pair.clone());
            most = most.max(choose(rest, chosen, epsilon));
            chosen.pop();
        }
        most
    }
    choose(choices, &mut Vec::new(), epsilon)
}

fn accountant(check: &Noise, answer: &Noise, tau: f64, threshold: i64, queries: usize, at: f64) -> Accountant {
    let event = PrivacyEvent::check(check.mechanism, ratio(tau), threshold as f64).expect("a check");
    Accountant::new(PrivacyEvent::new(answer.mechanism, ratio(tau)), delta(at)).after(Checks { event, queries })
}

/// Returns pairs of check noise and answer noise.
fn noises() -> Vec<(Noise, Noise, f64)> {
    vec![
        (Noise::laplace(0.4), Noise::laplace(0.9), 1.0),
        (Noise::coins(24, 24), Noise::coins(16, 16), 1.0),
        (Noise::laplace(0.3), Noise::coins(20, 20), 1.0),
        (Noise::coins(40, 20), Noise::coins(16, 8), 0.5),
    ]
}

#[test]
fn no_claim_at_votes_is_below_the_enumeration_of_both_steps() {
    let (mut cases, mut excess) = (0, Vec::new());
    for (check, answer, tau) in noises() {
        for rows in [
            vec![vec![6, 0, 0], vec![2, 2, 2]],
            vec![vec![3, 3, 0], vec![0, 1, 5]],
            vec![vec![4, 2], vec![3, 3], vec![6, 0]],
            // Empty votes.
            vec![vec![4, 0, 0], vec![0, 0, 0]],
            vec![vec![3, 2], vec![0, 4]],
        ] {
            for (threshold, at) in [(2, 1e-2), (4, 1e-4), (7, 1e-3), (-9, 1e-2), (30, 1e-3)] {
                let counts: Vec<Vec<u32>> = rows.iter().map(|row| row.iter().map(|c| *c as u32).collect()).collect();
                let account =
                    accountant(&check, &answer, tau, threshold, rows.len(), at).account(&counts, TEACHERS as usize);
                let Ok(account) = account else { continue };
                let choices: Vec<Vec<_>> = rows
                    .iter()
                    .map(|row| {
                        let here = outcomes(&check, &answer, threshold, row);
                        let there = |other: Vec<i64>| (here.clone(), outcomes(&check, &answer, threshold, &other));
                        neighbours(row, TEACHERS).into_iter().chain([row.clone()]).map(there).collect()
                    })
                    .collect();
                let found = worst(&choices, account.epsilon);
                assert!(found <= at, "{:?} {rows:?} {threshold} {at}: {found} at {}", check.mechanism, account.epsilon);
                // The overdraft falls with epsilon: the least hundredth below 4 at which it is small enough.
                let hundredths: Vec<u32> = (0..400).collect();
                let exact = hundredths.partition_point(|i| worst(&choices, 0.01 * f64::from(*i)) > at);
                let exact = 0.01 * exact as f64;
                excess.extend((exact > 0.1 && exact < 4.0).then(|| account.epsilon / exact));
                cases += 1;
            }
        }
    }
    excess.sort_by(f64::total_cmp);
    // Moments of few queries are loose.
    let median = excess[excess.len() / 2];
    assert!(
        cases >= 40 && excess[0] >= 0.99 && median < 2.0,
        "{cases} cases, from {} to {:?}, {median}",
        excess[0],
        excess.last()
    );
}

#[test]
fn no_claim_for_any_votes_is_below_any_votes() {
    for (check, answer, tau) in noises() {
        for at in [1e-2, 1e-4] {
            // Two checks, of which at most one is answered.
            let account = accountant(&check, &answer, tau, 0, 2, at).with_classes(3).account_queries(1);
            let Ok(account) = account else { continue };
            let checks = |mark: i64| {
                let pair = |mark: i64| vec![1.0 - check.at_least(mark), check.at_least(mark)];
                (pair(mark), pair(mark + 1))
            };
            let answers = |counts: [i64; 3]| {
                let [a, b, c] = counts;
                (answer.argmax(&counts), answer.argmax(&[a - 1, b + 1, c]))
            };
            let mut worst_found = 0.0f64;
            for first in -7..=7 {
                for second in [first, -first, 0, 3] {
                    for counts in [[0, 0, 0], [1, 0, 0], [3, 1, 2], [1, 3, -5], [0, 6, 6], [8, 0, 0]] {
                        let all = [vec![checks(first)], vec![checks(second)], vec![answers(counts)]];
                        worst_found = worst_found.max(worst(&all, account.epsilon));
                    }
                }
            }
            assert!(worst_found <= at, "{:?} {at}: {worst_found} at {}", check.mechanism, account.epsilon);
        }
    }
}

#[test]
fn an_adversary_who_knows_the_other_coins_is_covered() {
    // Six teachers with twenty coins each; three of them collude, so half of the coins are known.
    let (all, half, at) = (Noise::coins(120, 120), Noise::coins(120, 60), 1e-2);
    // Only the difference of both classes' known coins matters, which is that of twice as many coins.
    let difference = Noise::coins(240, 120);
    for (row, threshold) in [([4, 2], 3), ([5, 1], 5), ([6, 0], -3)] {
        for extent in [Extent::Exactly, Extent::UpTo] {
            let accountant = accountant(&all, &all, 0.5, threshold, 1, at);
            let accountant = accountant.with_adversary(Adversary::Colluding).with_extent(extent);
            let account = accountant.account(&[row.map(|count| count as u32).to_vec()], 6).expect("finite");
            // The adversary sees all known coins: they are further outcomes.
            let view = |counts: &[i64]| -> Vec<f64> {
                let largest = *counts.iter().max().expect("classes");
                let checks: Vec<(f64, f64)> =
                    half.places().map(|(c, p)| (p, half.at_least(threshold - c - largest))).collect();
                let answers: Vec<(f64, Vec<f64>)> =
                    difference.places().map(|(d, p)| (p, half.argmax(&[counts[0] + d, counts[1]]))).collect();
                let mut seen = Vec::new();
                for (p, reached) in checks {
                    for (known, classes) in &answers {
                        let all = [1.0 - reached].into_iter().chain(classes.iter().map(|class| reached * class));
                        seen.extend(all.map(|outcome| outcome * p * known));
                    }
                }
                seen
            };
            let here = view(&row);
            let pairs = neighbours(&row, TEACHERS).iter().map(|other| (here.clone(), view(other))).collect();
            let found = worst(&[pairs], account.epsilon);
            assert!(found > 0.0 && found <= at, "{row:?} {threshold} {extent:?}: {found} at {}", account.epsilon);
        }
    }
}

#[test]
fn gaussian_checks_cost_no_more_than_one_count_and_at_least_their_best_mark() {
    for (sigma, queries, at) in [(40.0, 100, 1e-5), (150.0, 640, 1e-5), (2.0, 1, 1e-5), (800.0, 5_000, 1e-8)] {
        let event =
            PrivacyEvent::check(MechanismKind::Gaussian.with_scale(sigma).expect("in range"), ratio(1.0), 200.0);
        let account = Accountant::new(event.expect("a check"), delta(at)).account_queries(queries).expect("finite");
        let count = gaussian_epsilon((queries as f64).sqrt() / sigma, at);
        // By the central limit theorem many checks at the mark 0 are Gaussian noise with 2/pi of the information.
        let mark = gaussian_epsilon((queries as f64 * std::f64::consts::FRAC_2_PI).sqrt() / sigma, at);
        assert!(account.epsilon <= count * (1.0 + 1e-8), "{sigma}: {} above {count}", account.epsilon);
        assert!(queries == 1 || account.epsilon >= mark * 0.99, "{sigma}: {} below {mark}", account.epsilon);
        assert!(account.claim.contains("outcomes of the checks") && account.publishable, "{}", account.claim);
    }
}

#[test]
fn a_check_of_integer_laplace_noise_is_randomised_response() {
    // At tau = 1 the two outcomes at the marks 0 and 1 are those of randomised response with gamma.
    let event =
        PrivacyEvent::check(MechanismKind::DiscreteLaplace.with_scale(0.05).expect("in range"), ratio(1.0), 9.0);
    let account = Accountant::new(event.expect("a check"), delta(1e-5)).account_queries(300).expect("finite");
    let exact = speed_accountant::composition::optimal_epsilon(0.05, 300, 1e-5);
    assert!((account.epsilon / exact - 1.0).abs() < 1e-8 && account.per_query_epsilon == 0.05, "{account:?}");
}

#[test]
fn checks_and_answers_compose_in_accounts_filters_and_with_each_other() {
    let kinds = [
        (MechanismKind::Skellam, 150.0, 48.0),
        (MechanismKind::Gaussian, 150.0, 48.0),
        (MechanismKind::Binomial, 90_000.0, 10_000.0),
        (MechanismKind::DiscreteLaplace, 0.009, 0.03),
    ];
    for (kind, wide, narrow) in kinds {
        let wide_noise = kind.with_scale(wide).expect("in range");
        let check = PrivacyEvent::check(wide_noise, ratio(0.9), 200.0).expect("a check");
        let answer = event(kind, narrow, 0.9);
        let of = |batches: &[(PrivacyEvent, usize)]| {
            let mut all = PrivacyFilter::new(Budget { epsilon: None, delta: delta(1e-5) });
            batches.iter().for_each(|&(event, count)| all.compose(&QueryBatch::new(event, None, count)));
            all.fixed_epsilon()
        };
        let (checks, answers) = (of(&[(check, 640)]), of(&[(answer, 286)]));
        let both = of(&[(check, 640), (answer, 286)]);
        assert!(both >= answers && both < checks + answers, "{kind}: {both} of {checks} and {answers}");
        let after = Accountant::new(answer, delta(1e-5)).after(Checks { event: check, queries: 640 });
        let account = after.account_queries(286).expect("finite");
        // A filter sets a part of delta aside.
        assert!(account.epsilon <= both * (1.0 + 1e-8) && both < account.epsilon * 1.01, "{kind}: {account:?} {both}");
        assert!(account.claim.contains("640 checks and of at most 286 answers"), "{}", account.claim);
        let mut filter = PrivacyFilter::new(Budget { epsilon: Some(1.6 * both), delta: delta(1e-5) });
        filter.try_compose(&[QueryBatch::new(check, None, 640)]).expect("within the budget");
        filter.try_compose(&[QueryBatch::new(answer, 10, 286)]).expect("within the budget");
        let refused = filter.try_compose(&[QueryBatch::new(answer, 10, 5_000)]);
        assert!(matches!(refused, Err(AccountError::OverBudget { .. })), "{kind}");
        // A check is not an argmax with the same noise: it costs less.
        let argmax = of(&[(event(kind, wide, 0.9).with_threshold(200.0).expect("votes"), 640)]);
        assert!(checks < 0.8 * argmax, "{kind}: {checks} and {argmax}");
    }
}

#[test]
fn checks_that_do_not_fit_are_refused_by_name() {
    let mechanism = MechanismKind::Skellam.with_scale(40.0).expect("in range");
    let (check, answer) =
        (PrivacyEvent::check(mechanism, ratio(1.0), 9.0).expect("a check"), PrivacyEvent::new(mechanism, ratio(1.0)));
    let counts = vec![vec![9, 1]; 3];
    let refused = |event: PrivacyEvent, checks: Checks, bound: Bound| {
        let accountant = Accountant::new(event, delta(1e-5)).after(checks).with_bound(bound);
        accountant.account(&counts, 10).expect_err("refused").to_string()
    };
    let checks = Checks { event: check, queries: 3 };
    assert!(refused(check, checks, Bound::Tight).contains("query after a check: found a check"));
    assert!(refused(answer, Checks { event: answer, queries: 3 }, Bound::Tight).contains("event of a check"));
    assert!(
        refused(answer.with_threshold(3.0).expect("votes"), checks, Bound::Tight).contains("threshold of the argmax")
    );
    assert!(refused(answer, checks, Bound::Paper).contains("formulas: found paper, expected tight"));
    assert!(
        refused(answer, Checks { queries: 4, ..checks }, Bound::Tight)
            .contains("rows of checked queries: found 3, expected 4")
    );
    let other = PrivacyEvent::check(mechanism, ratio(0.5), 9.0).expect("a check");
    assert!(refused(answer, Checks { event: other, queries: 3 }, Bound::Tight).contains("honest ratio of the check"));
    let alone = Accountant::new(check, delta(1e-5)).account(&counts, 10).expect_err("refused").to_string();
    assert!(alone.contains("queries at given votes: found checks"), "{alone}");
    let many = Accountant::new(answer, delta(1e-5)).after(checks).account_queries(4).expect_err("refused").to_string();
    assert!(many.contains("answers: found 4, expected at most the 3 checked queries"), "{many}");
    assert!(PrivacyEvent::check(mechanism, ratio(1.0), 0.5).is_err());
}
