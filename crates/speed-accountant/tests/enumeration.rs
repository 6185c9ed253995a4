//! Compares every bound with the privacy loss itself, by brute force: small ensembles, every vote, every neighbour,
//! every value of the noise. Nothing here uses the crate's probabilities except the continuous tails, which have their
//! own tests.

pub(crate) mod brute_force;

use std::collections::HashMap;

use speed_accountant::composition::improved_epsilon;
use speed_accountant::theory::{
    collusion_moment, outcome_moment, per_query_epsilon, pure_moment, q, q_exact, q_pairs, theorem_3,
    tight_per_query_epsilon,
};
use speed_accountant::{Account, Accountant, Adversary, Bound, CompositionMethod, NeighbouringRelation, PrivacyEvent};
use speed_mechanism::{GeneralisedLaplace, LaplaceTable, MechanismKind};

use brute_force::{answers, delta_of, exact_moment, heads_of, histograms, pmf, probabilities, rows_with_empty_votes};

use crate::given;
use crate::neighbours::neighbours;

/// Error of sums over noise and of rounding.
const SLACK: f64 = 1e-9;

fn event(gamma: f64, tau: f64, threshold: Option<i64>) -> PrivacyEvent {
    with_threshold(given::event(MechanismKind::DiscreteLaplace, gamma, tau), threshold)
}

fn with_threshold(event: PrivacyEvent, threshold: Option<i64>) -> PrivacyEvent {
    threshold.map_or(event, |threshold| event.with_threshold(threshold as f64).expect("a threshold"))
}

fn votes(counts: &[i64]) -> Vec<u32> {
    counts.iter().map(|&count| count as u32).collect()
}

/// Checks every bound that is documented as valid, for all votes of an ensemble without empty votes.
fn check_ensemble(gamma: f64, tau: f64, classes: usize, teachers: i64, threshold: Option<i64>, queries: &[usize]) {
    check_rows(gamma, tau, &histograms(classes, teachers), teachers, threshold, queries);
}

/// Checks the same for these votes.
fn check_rows(gamma: f64, tau: f64, rows: &[Vec<i64>], teachers: i64, threshold: Option<i64>, queries: &[usize]) {
    let classes = rows[0].len();
    let reach = (32.0 / gamma) as i64;
    let noise = pmf(gamma, tau, reach);
    let event = event(gamma, tau, threshold);
    let epsilon = tight_per_query_epsilon(&event, classes);
    let mut known: HashMap<Vec<i64>, Vec<f64>> = HashMap::new();
    let mut distribution =
        |counts: &[i64]| known.entry(counts.to_vec()).or_insert_with(|| answers(counts, &noise, threshold)).clone();
    let what = format!("gamma {gamma}, tau {tau}, {classes} classes, {teachers} teachers, threshold {threshold:?}");
    for counts in rows {
        let row = votes(counts);
        let here = distribution(counts);
        let winner = (0..classes).fold(0, |best, k| if counts[k] > counts[best] { k } else { best });
        let lost = 1.0 - here[winner];
        for (bound, name) in
            [(q(&row, &event), "q"), (q_pairs(&row, &event), "q over exact pairs"), (q_exact(&row, &event), "exact q")]
        {
            // Without any votes it is refused.
            let Ok(bound) = bound else {
                assert!(row.iter().all(|&count| count == 0), "{what}, {counts:?}: {name}");
                continue;
            };
            assert!(bound >= lost - SLACK, "{what}, {counts:?}: {name} {bound} below {lost}");
        }
        let pairs: Vec<Vec<f64>> = neighbours(counts, teachers).iter().map(|counts| distribution(counts)).collect();
        for there in &pairs {
            for (p, p_there) in here.iter().zip(there).filter(|(p, _)| **p > 1e-12) {
                let loss = (p / p_there).ln().abs();
                assert!(loss <= epsilon + SLACK, "{what}, {counts:?}: loss {loss} above {epsilon}");
                assert!(loss <= per_query_epsilon(&event) + SLACK);
            }
        }
        for (&k, delta) in queries.iter().flat_map(|k| [(k, 1e-2), (k, 1e-5)]) {
            let accountant = Accountant::new(event, given::delta(delta));
            let rows = vec![row.clone(); k];
            let mut claims = vec![accountant.account_queries(k).expect("queries")];
            for bound in [Bound::Tight, Bound::Outcome, Bound::Paper] {
                for directions in [NeighbouringRelation::OneSided, NeighbouringRelation::BothWays] {
                    for assume in [Adversary::ExternalWithDropout, Adversary::Colluding] {
                        let accountant = accountant.with_bound(bound).with_relation(directions).with_adversary(assume);
                        claims.push(accountant.account(&rows, teachers as usize).expect("votes"));
                    }
                }
            }
            for claim in &claims {
                pairs.iter().for_each(|there| assert_covered(claim, &here, there, &format!("{what}, {counts:?}")));
            }
        }
    }
}

/// Asserts that a claim covers queries with these probabilities of the answers at the votes and at a neighbour.
fn assert_covered(claim: &Account, here: &[f64], there: &[f64], what: &str) {
    let back = (claim.relation == NeighbouringRelation::BothWays).then_some((there, here));
    for (p, q) in [(here, there)].into_iter().chain(back) {
        let found = delta_of(p, q, claim.queries, claim.epsilon);
        let Account { queries, delta, claim, .. } = claim;
        assert!(found <= delta * (1.0 + 1e-6), "{what}, {queries} queries: delta {found} above {delta}: {claim}");
    }
}

#[test]
fn binomial_noise_at_all_votes() {
    // Few coins, so that losses are infinite at the ends of the noise, of which delta pays for some.
    for (coins, classes, teachers, threshold, queries) in [
        (12, 2, 6, None, &[1, 6][..]),
        (13, 2, 5, Some(3), &[1, 5]),
        (12, 3, 3, None, &[1, 4]),
        (11, 3, 3, Some(2), &[1, 3]),
    ] {
        let event = with_threshold(given::event(MechanismKind::Binomial, coins as f64, 1.0), threshold);
        let noise = heads_of(coins);
        let mut finite = 0;
        for (&k, delta) in queries.iter().flat_map(|k| [(k, 0.2), (k, 2e-2), (k, 1e-4)]) {
            let accountant = Accountant::new(event, given::delta(delta));
            let fixed = accountant.with_classes(classes).account_queries(k).ok();
            for counts in rows_with_empty_votes(classes, teachers) {
                // With so few coins there may be no finite epsilon.
                let claims = [fixed.clone(), accountant.account(&vec![votes(&counts); k], teachers as usize).ok()];
                let here = answers(&counts, &noise, threshold);
                for there in neighbours(&counts, teachers) {
                    let there = answers(&there, &noise, threshold);
                    for claim in claims.iter().flatten() {
                        finite += 1;
                        assert_covered(claim, &here, &there, &format!("{coins:?}, {counts:?}, {threshold:?}"));
                    }
                }
            }
        }
        assert!(finite > 20, "{coins:?}: {finite} claims");
    }
}

#[test]
fn every_claim_covers_all_votes() {
    for gamma in [0.3, 1.0] {
        for tau in [1.0, 0.7, 0.3] {
            check_ensemble(gamma, tau, 2, 12, None, &[1, 8, 40]);
        }
    }
    for tau in [1.0, 0.6] {
        check_ensemble(0.8, tau, 3, 5, None, &[1, 7]);
    }
}

#[test]
fn a_threshold_costs_no_more() {
    // Thresholds that are always, sometimes and hardly ever reached; "no answer" is likely at the last.
    for threshold in [-20, 2, 5, 9, 40] {
        for tau in [1.0, 0.7, 0.4] {
            check_ensemble(0.5, tau, 2, 6, Some(threshold), &[1, 12]);
        }
    }
    for threshold in [3, 8] {
        check_ensemble(0.8, 0.7, 3, 4, Some(threshold), &[1, 5]);
    }
}

#[test]
fn empty_votes_at_all_votes() {
    for (classes, teachers, threshold) in
        [(2, 4, None), (2, 3, Some(-4)), (2, 3, Some(2)), (2, 3, Some(9)), (3, 2, None), (3, 1, Some(1))]
    {
        let rows = rows_with_empty_votes(classes, teachers);
        for tau in [1.0, 0.5] {
            check_rows(0.9, tau, &rows, teachers, threshold, &[1, 6]);
        }
    }
}

#[test]
fn a_query_that_nobody_answers_costs_as_much_as_the_first_vote() {
    let accountant = Accountant::new(event(0.7, 0.6, None), given::delta(0.01));
    let silent = accountant.account(&[vec![0, 0]], 3).expect("votes").epsilon;
    // The second class wins if its noise is larger, and with its vote also in a tie.
    let noise = pmf(0.7, 1.2, 40);
    let larger: f64 = noise[41..].iter().sum();
    // A vote for the second class, and one for the first.
    let exact = ((larger + noise[40] - 0.01) / larger).max((larger - 0.01) / (larger - noise[41])).ln();
    assert!(silent >= exact * (1.0 - 1e-9) && silent < 1.05 * exact, "{silent} and {exact}");
}

/// Two classes if the adversary knows a part of the noise: differences of two classes' noise, by enumeration.
struct KnownNoise {
    reach: i64,
    /// `P[secret >= k]` for `k = reach, reach - 1, ...`.
    suffix: Vec<f64>,
    known: Vec<f64>,
}

impl KnownNoise {
    fn new(gamma: f64, tau: f64) -> Self {
        // Tails are needed far beyond the known noise, because their ratio is the loss.
        let (reach, furthest) = ((130.0 / gamma) as i64, (36.0 / gamma) as i64);
        let secret = pmf(gamma, 2.0 * tau, reach);
        let suffix = secret
            .iter()
            .rev()
            .scan(0.0, |sum, p| {
                *sum += p;
                Some(*sum)
            })
            .collect();
        Self { reach, suffix, known: pmf(gamma, 2.0 * (1.0 - tau), furthest) }
    }

    /// Returns the probabilities of the first and second class at this lead of the first, including known noise. The
    /// first class wins ties.
    fn both(&self, lead: i64) -> [f64; 2] {
        let wins = |lead: i64| self.suffix[(self.reach + lead).clamp(0, 2 * self.reach) as usize];
        [wins(lead), wins(-lead - 1)]
    }

    fn moment(&self, gap: i64, moved: i64, l: f64) -> f64 {
        let furthest = (self.known.len() / 2) as i64;
        let of = |c: i64| exact_moment(&self.both(gap + c), &self.both(gap + moved + c), l).exp();
        self.known.iter().zip(-furthest..).map(|(p, c)| p * of(c)).sum::<f64>().ln()
    }
}

#[test]
fn known_noise_is_covered_by_the_collusion_bound() {
    for gamma in [0.1, 0.5] {
        for tau in [0.9, 0.7, 0.4] {
            let (event, all) = (event(gamma, tau, None), event(gamma, 1.0, None));
            let truth = KnownNoise::new(gamma, tau);
            let epsilon = tight_per_query_epsilon(&event, 2);
            for gap in [0, 1, 2, 5, 12, 30, 60] {
                let row = [200 + gap, 200];
                // At the neighbour, the gap is two votes smaller.
                let worst = [200 + gap, 202];
                let log_q = q_pairs(&votes(&row), &all).expect("votes").ln();
                let log_q_back = if gap >= 2 { q_pairs(&votes(&worst), &all).expect("votes").ln() } else { 0.0 };
                for l in [0.5, 1.0, 8.0, 25.0] {
                    for moved in [-2, 2] {
                        let there = truth.moment(gap, moved, l);
                        let bound = collusion_moment(epsilon, log_q, l);
                        assert!(there <= bound + SLACK, "{gamma} {tau} {gap} {l}: {there} above {bound}");
                        let back = truth.moment(gap + moved, -moved, l);
                        let bound = collusion_moment(epsilon, log_q.max(log_q_back), l);
                        assert!(back <= bound + SLACK, "{gamma} {tau} {gap} {l}: back {back} above {bound}");
                        assert!(there.max(back) <= pure_moment(epsilon, l) + SLACK);
                    }
                }
            }
        }
    }
}

#[test]
fn the_exact_mixture_over_known_noise_is_covered_by_every_claim() {
    // The adversary sees the answer and the known noise c, so the moment of the pair is the mean over c. Every claim at
    // these votes must be at least the epsilon from the true moment of the claim's order.
    let delta = 1e-5;
    for (gamma, tau, threshold) in
        [(0.7, 0.6, None), (1.2, 0.8, None), (1.0, 0.3, None), (1.0, 0.6, Some(5)), (0.8, 0.7, Some(9))]
    {
        let (secret, known) = (pmf(gamma, tau, (34.0 / gamma) as i64), pmf(gamma, 1.0 - tau, (17.0 / gamma) as i64));
        let furthest = (known.len() / 2) as i64;
        let truth = |counts: &[i64], there: &[i64], l: f64| -> f64 {
            let mut moment = 0.0;
            let mut c = vec![-furthest; counts.len()];
            loop {
                let weight: f64 = c.iter().map(|&c| known[(c + furthest) as usize]).product();
                if weight > 1e-12 {
                    let moved = |counts: &[i64]| -> Vec<f64> {
                        probabilities(
                            &counts.iter().zip(&c).map(|(n, c)| n + c).collect::<Vec<i64>>(),
                            &secret,
                            threshold,
                        )
                    };
                    moment += weight * exact_moment(&moved(counts), &moved(there), l).exp_m1();
                }
                let Some(next) = (0..c.len()).find(|&k| c[k] < furthest) else { return moment.ln_1p() };
                c[next] += 1;
                c[..next].fill(-furthest);
            }
        };
        let accountant =
            Accountant::new(event(gamma, tau, threshold), given::delta(delta)).with_adversary(Adversary::Colluding);
        for (counts, queries) in [
            (vec![6, 6], 3),
            (vec![9, 3], 20),
            (vec![3, 9], 20),
            (vec![4, 4, 4], 4),
            (vec![7, 4, 1], 30),
            (vec![1, 5, 6], 8),
            // Three empty votes.
            (vec![0, 4, 5], 30),
        ] {
            let claim = accountant.account(&vec![votes(&counts); queries], 12).expect("votes");
            let Some(order) = claim.order.filter(|_| claim.composition == CompositionMethod::Moments) else { continue };
            for there in neighbours(&counts, 12) {
                for (here, there) in [(&counts, &there), (&there, &counts)] {
                    let least = improved_epsilon(queries as f64 * truth(here, there, order), order, delta);
                    let what = format!("{gamma} {tau} {threshold:?} {here:?} to {there:?}, order {order}");
                    assert!(claim.epsilon >= least * (1.0 - 1e-9), "{what}: {} below {least}", claim.epsilon);
                }
            }
        }
    }
}

#[test]
fn the_exact_mixture_is_attained_for_two_classes() {
    // With two classes, there is no other count to reveal, so the claim is the true moment up to its allowance.
    let (gamma, tau, delta) = (0.5, 0.7, 1e-5);
    let truth = KnownNoise::new(gamma, tau);
    let accountant = Accountant::new(event(gamma, tau, None), given::delta(delta));
    for gap in [0, 3, 8, 14] {
        assert_attained(accountant, [30 + gap, 30], 1e-9, |gap, moved, l| truth.moment(gap, moved, l));
    }
}

/// Asserts that the claim of 50 queries at these votes, with noise that is known in part, is the true moment up to its allowance.
/// `moment` is that of a gap of two classes which changes by a number of votes. Returns epsilon.
fn assert_attained(accountant: Accountant, counts: [i64; 2], slack: f64, moment: impl Fn(i64, i64, f64) -> f64) -> f64 {
    let (rows, teachers, gap) = (vec![votes(&counts); 50], (counts[0] + counts[1]) as usize, counts[0] - counts[1]);
    let claim = accountant.with_adversary(Adversary::Colluding).account(&rows, teachers).expect("votes");
    let dropout = accountant.account(&rows, teachers).expect("votes").epsilon;
    let order = claim.order.expect("from moments");
    let moves = [(gap, -2), (gap - 2, 2), (gap, 2), (gap + 2, -2)];
    let largest = moves.into_iter().map(|(gap, moved)| moment(gap, moved, order)).fold(0.0, f64::max);
    let least = improved_epsilon(50.0 * largest, order, claim.delta).max(dropout);
    assert!(claim.epsilon >= least * (1.0 - slack), "gap {gap}: {} below {least}", claim.epsilon);
    assert!(claim.epsilon <= least * (1.0 + 1e-4), "gap {gap}: {} above {least}", claim.epsilon);
    claim.epsilon
}

/// Computes the probability of every class for continuous Laplace noise, by Simpson's rule between the votes, which are
/// the cusps.
fn answers_of_continuous(counts: &[i64], gamma: f64) -> Vec<f64> {
    let density = |x: f64| 0.5 * gamma * (-gamma * x.abs()).exp();
    let below = |x: f64| {
        let tail = 0.5 * (-gamma * x.abs()).exp();
        if x < 0.0 { tail } else { 1.0 - tail }
    };
    let (reach, steps) = ((45.0 / gamma) as i64 + 20, 128);
    let of_class = |class: usize| -> f64 {
        let value = |x: f64| -> f64 {
            let others = (0..counts.len()).filter(|&k| k != class).map(|k| below(x - counts[k] as f64));
            density(x - counts[class] as f64) * others.product::<f64>()
        };
        let places = (-reach * steps..=reach * steps).map(|i| (i, value(i as f64 / steps as f64)));
        let weight = |i: i64| if i.rem_euclid(2) == 1 { 4.0 } else { 2.0 };
        places.map(|(i, value)| weight(i) * value).sum::<f64>() / (3.0 * steps as f64)
    };
    (0..counts.len()).map(of_class).collect()
}

#[test]
fn continuous_noise_of_all_teachers_has_the_three_answers_of_integer_noise() {
    for gamma in [0.3, 1.0, 3.0] {
        let fixed = |kind: MechanismKind, queries: usize, of: f64| {
            let accountant = Accountant::new(given::event(kind, gamma, 1.0), given::delta(of));
            accountant.with_classes(3).account_queries(queries).expect("queries").epsilon
        };
        let mut closest = 0.0f64;
        for (queries, of) in [(1, 1e-2), (1, 0.2), (12, 1e-2), (12, 1e-5)] {
            let epsilon = fixed(MechanismKind::Laplace, queries, of);
            assert!(epsilon <= fixed(MechanismKind::DiscreteLaplace, queries, of) * (1.0 + 1e-9));
            for counts in histograms(3, 6) {
                let here = answers_of_continuous(&counts, gamma);
                assert!((here.iter().sum::<f64>() - 1.0).abs() < 1e-6);
                for there in neighbours(&counts, 6) {
                    let there = answers_of_continuous(&there, gamma);
                    let found = delta_of(&here, &there, queries, epsilon);
                    assert!(found <= of * (1.0 + 1e-5), "{gamma} {counts:?} {queries}: {found} above {of}");
                    closest = closest.max(found / of);
                }
            }
        }
        assert!(closest > 0.02, "{gamma}: {closest}");
    }
    // Two counts of integer noise cost 6.52, and of continuous noise more than 6.
    let event = given::event(MechanismKind::Laplace, 0.1, 1.0);
    let claim = Accountant::new(event, given::delta(1e-5)).account_queries(100).expect("queries");
    assert!((5.2..5.45).contains(&claim.epsilon), "{}", claim.epsilon);
}

/// Binomial noise of which the adversary knows some coins.
struct KnownCoins {
    secret: Vec<f64>,
    /// Values of the known noise of one class, as counted beside the secret noise, and their probabilities.
    known: Vec<(i64, f64)>,
}

impl KnownCoins {
    fn new(coins: u64, secret: u64) -> Self {
        // All coins together are counted from half of them, rounded down, and so are the secret ones.
        let first = (secret / 2) as i64 - (coins / 2) as i64;
        let mut known = heads_of(coins - secret);
        if (coins - secret) % 2 == 1 {
            known.remove(0);
        }
        Self { secret: heads_of(secret), known: (first..).zip(known).collect() }
    }

    /// Returns the probability of every answer with every value of the known noise.
    fn views(&self, counts: &[i64], threshold: Option<i64>) -> Vec<f64> {
        let mut views = Vec::new();
        let mut chosen = vec![0; counts.len()];
        loop {
            let known = || chosen.iter().map(|&i: &usize| self.known[i]);
            let weight: f64 = known().map(|known| known.1).product();
            let shifted: Vec<i64> = counts.iter().zip(known()).map(|(count, known)| count + known.0).collect();
            views.extend(probabilities(&shifted, &self.secret, threshold).into_iter().map(|p| weight * p));
            let Some(next) = (0..chosen.len()).find(|&k| chosen[k] + 1 < self.known.len()) else { return views };
            chosen[next] += 1;
            chosen[..next].fill(0);
        }
    }
}

#[test]
fn binomial_noise_that_is_known_in_part_is_covered_by_the_claim() {
    let mut dependent = 0;
    for (coins, tau, secret, counts, threshold, queries) in [
        (60, 0.9, 54, vec![9, 3], None, 2),
        (60, 0.9, 54, vec![6, 7], None, 2),
        (50, 0.9, 45, vec![14, 1], None, 1),
        (50, 0.9, 45, vec![6, 5], Some(9), 1),
        (60, 0.8, 48, vec![12, 2], Some(6), 1),
        (60, 0.9, 54, vec![5, 4, 4], None, 1),
        (60, 0.9, 54, vec![1, 0, 14], None, 1),
        (50, 0.9, 45, vec![3, 12, 1], Some(10), 1),
    ] {
        let truth = KnownCoins::new(coins, secret);
        let event = with_threshold(given::event(MechanismKind::Binomial, coins as f64, tau), threshold);
        let here = truth.views(&counts, threshold);
        // One vote is empty.
        let teachers = counts.iter().sum::<i64>() + 1;
        let there = neighbours(&counts, teachers);
        let pairs: Vec<Vec<f64>> = there.iter().map(|there| truth.views(there, threshold)).collect();
        for delta in [0.1, 1e-2, 1e-4] {
            let accountant = Accountant::new(event, given::delta(delta)).with_adversary(Adversary::Colluding);
            let claim =
                accountant.account(&vec![votes(&counts); queries], teachers as usize).expect("a finite epsilon");
            let what = format!("{coins} coins, {counts:?}, {threshold:?}, {queries} queries");
            dependent += usize::from(claim.data_dependent_queries > 0);
            for there in &pairs {
                for (p, q) in [(&here, there), (there, &here)] {
                    // Of two queries, the losses of every pair of views.
                    let found: f64 = if queries == 1 {
                        p.iter().zip(q).map(|(p, q)| (p - claim.epsilon.exp() * q).max(0.0)).sum()
                    } else {
                        let all = || p.iter().zip(q);
                        all()
                            .flat_map(|(p, q)| all().map(move |(r, s)| (p * r, q * s)))
                            .map(|(p, q)| (p - claim.epsilon.exp() * q).max(0.0))
                            .sum()
                    };
                    assert!(found <= delta * (1.0 + 1e-6), "{what}: delta {found} above {delta}: {}", claim.claim);
                }
            }
        }
    }
    assert!(dependent >= 12, "{dependent} claims use the votes");
}

#[test]
fn the_mixture_of_known_coins_is_attained_for_two_classes() {
    let (coins, tau, secret, delta) = (400u64, 0.7, 280u64, 1e-5);
    let event = given::event(MechanismKind::Binomial, coins as f64, tau);
    // Differences of two classes.
    let (of_secret, of_known) = (heads_of(2 * secret), heads_of(2 * (coins - secret)));
    let at_least =
        |k: i64| -> f64 { of_secret[(k + secret as i64).clamp(0, 2 * secret as i64 + 1) as usize..].iter().sum() };
    let both = |lead: i64| [at_least(-lead), at_least(lead + 1)];
    let furthest = (coins - secret) as i64;
    // The accountant leaves out answers that are less likely than 1e-18.
    let moment = |gap: i64, moved: i64, l: f64| -> f64 {
        let of = |c: i64| -> f64 {
            let pairs = both(gap + c).into_iter().zip(both(gap + moved + c));
            pairs
                .filter(|(p, q)| *p > 1e-17 || p <= q)
                .map(|(p, q)| if p > 0.0 { p * (p / q).powf(l) } else { 0.0 })
                .sum()
        };
        of_known.iter().zip(-furthest..).map(|(p, c)| p * (of(c) - 1.0)).sum::<f64>().ln_1p()
    };
    let accountant = Accountant::new(event, given::delta(delta));
    for gap in [0, 5, 15, 40] {
        let epsilon = assert_attained(accountant, [60 + gap, 60], 1e-6, moment);
        let fixed = accountant.with_classes(2).account_queries(50).expect("queries").epsilon;
        assert!(gap < 15 || epsilon < 0.97 * fixed, "gap {gap}: {epsilon} of {fixed}");
    }
}

/// The same for continuous noise, by integration over the known part.
struct ContinuousKnownNoise {
    secret: LaplaceTable,
    /// Values of the known part and their weights.
    known: Vec<(f64, f64)>,
}

impl ContinuousKnownNoise {
    fn new(gamma: f64, tau: f64) -> Self {
        let scale = given::gamma(gamma);
        let noise = |shape: f64| LaplaceTable::new(GeneralisedLaplace::new(scale, shape).expect("a shape"));
        let known = noise(2.0 * (1.0 - tau));
        // The known part has a cusp at zero, so c = t^3.
        let (steps, last) = (3_000, (60.0 / gamma).cbrt());
        let nodes = (-steps..steps).map(|i| (f64::from(i) + 0.5) / f64::from(steps) * last).map(|t| {
            let c = t.powi(3);
            (c, known.log_density(c).exp() * 3.0 * t * t * last / f64::from(steps))
        });
        Self { known: nodes.collect(), secret: noise(2.0 * tau) }
    }

    fn moment(&self, gap: f64, moved: f64, l: f64) -> f64 {
        let both = |lead: f64| [self.secret.log_survival(-lead).exp(), self.secret.log_survival(lead).exp()];
        let of = |c: f64| exact_moment(&both(gap + c), &both(gap + moved + c), l).exp_m1();
        self.known.iter().map(|&(c, weight)| weight * of(c)).sum::<f64>().ln_1p()
    }
}

#[test]
fn a_tight_epsilon_with_the_raw_q_claims_too_little_under_collusion() {
    // tau = 0.7, a gap of 60 votes that grows by two, order 8, epsilon* of three classes and more (docs/privacy.md,
    // "Collusion").
    let (gamma, tau, l) = (0.1, 0.7, 8.0);
    let truth = ContinuousKnownNoise::new(gamma, tau).moment(60.0, 2.0, l);
    let dropout = given::event(MechanismKind::Laplace, gamma, tau);
    let row = [155, 95];
    let log_q = q_pairs(&row, &dropout).expect("votes").ln();
    // Block eps_star of vectors/reference.json.
    let star = 0.214_456_423_441_653_5;
    let claimed = outcome_moment(star, log_q, l);
    assert!((truth - 0.009_695).abs() < 5e-7 && (claimed - 0.007_188).abs() < 5e-7, "{truth} and {claimed}");
    assert!(truth > claimed);
    // The paper's own formula holds there, because its epsilon and its q are loose enough.
    let paper = theorem_3(per_query_epsilon(&dropout), q(&row, &dropout).expect("votes").ln(), l);
    assert!(truth <= paper, "{truth} above the paper's {paper}");
    // So does the collusion bound, by construction.
    let all = given::event(MechanismKind::Laplace, gamma, 1.0);
    let bound = collusion_moment(star, q_pairs(&row, &all).expect("votes").ln(), l);
    assert!(truth <= bound, "{truth} above {bound}");
}

#[test]
fn the_paper_s_numbers_hold_thanks_to_their_slack() {
    // Theorem 3 with Theorem 2's epsilon and Proposition 4's q at the raw votes, where the argument fails for known
    // noise. The value is still above the exact loss of two classes at the scale, ratios and orders of the paper's
    // tables.
    let gamma = 0.1;
    for tau in [0.9, 0.7] {
        let event = given::event(MechanismKind::Laplace, gamma, tau);
        let epsilon = per_query_epsilon(&event);
        let noise = ContinuousKnownNoise::new(gamma, tau);
        for gap in [0u32, 6, 14, 30, 44, 60, 100, 150] {
            let row = [300 + gap, 300];
            let log_q = q(&row, &event).expect("votes").ln();
            for l in [1.0, 5.0, 10.0, 15.0, 20.0, 25.0] {
                for moved in [-2.0, 2.0] {
                    let truth = noise.moment(f64::from(gap), moved, l);
                    let paper = theorem_3(epsilon, log_q, l);
                    assert!(truth <= paper, "tau {tau}, gap {gap}, order {l}: {truth} above {paper}");
                }
            }
        }
    }
}
