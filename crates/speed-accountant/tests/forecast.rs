//! Forecasts of right labels against enumeration, against runs of the samplers, and against measurements with another program.
//!
//! Statistical tests have fixed seeds. Their threshold is a false-alarm rate of 10^-6 for each comparison: the chance that a
//! freshly chosen seed would refuse a correct forecast.

use speed_accountant::calibrate::{Target, calibrate_coins_of_teacher};
use speed_accountant::forecast::{Agreement, AnswerForecast, Forecast, QueryVotes, VotesModel};
use speed_accountant::{
    AccountError, Accountant, Adversary, Bound, Delta, HonestRatio, InverseScale, Mechanism, MechanismKind, NoiseCoins,
    NoiseDeviation, NoiseGenerator, PrivacyEvent,
};
use speed_core::Randomness;
use speed_mechanism::MechanismKind::{Binomial, DiscreteLaplace, Gaussian, Laplace, Skellam};
use speed_mechanism::{BinomialShare, NoiseShare, SkellamShare};
use statrs::distribution::{ContinuousCDF, Normal};

use crate::enumeration::brute_force::{answers, heads_of, pmf};

const FALSE_ALARM: f64 = 1e-6;

fn all(mechanism: Mechanism) -> PrivacyEvent {
    PrivacyEvent::new(mechanism, HonestRatio::ALL)
}

fn noise(kind: MechanismKind, scale: f64) -> Mechanism {
    kind.with_scale(scale).expect("valid")
}

fn votes(counts: &[u32], right: usize) -> QueryVotes {
    QueryVotes::new(counts.to_vec(), right).expect("votes")
}

/// Returns the class with the largest noisy count, in a tie the lowest, unless it is below the threshold.
fn answer(noisy: &[i64], threshold: Option<i64>) -> Option<usize> {
    let most = *noisy.iter().max().expect("classes");
    (threshold.is_none_or(|least| most >= least)).then(|| noisy.iter().position(|&count| count == most).expect("it"))
}

/// Sums the probability of another answer than the right class over all noise of all classes.
fn enumerated(votes: &QueryVotes, pmf: &[f64], threshold: Option<i64>) -> f64 {
    let counts: Vec<i64> = votes.counts().iter().map(|&count| i64::from(count)).collect();
    let all = answers(&counts, pmf, threshold);
    all.iter().sum::<f64>() - all[votes.right()]
}

#[test]
fn little_noise_is_enumerated_with_all_ties_and_thresholds() {
    let mut compared = 0;
    let tossed = [1, 3, 6, 9].map(|coins| (noise(Binomial, coins as f64), heads_of(coins)));
    for (noise, pmf) in tossed.into_iter().chain([(noise(DiscreteLaplace, 1.5), pmf(1.5, 1.0, 24))]) {
        for counts in [&[4, 3][..], &[3, 3], &[2, 5], &[4, 3, 3], &[3, 4, 3], &[2, 2, 2], &[0, 7, 1], &[1, 2, 3]] {
            for right in 0..counts.len() {
                for threshold in [None, Some(4), Some(2)] {
                    let votes = votes(counts, right);
                    let event = all(noise);
                    let event = threshold.map_or(event, |least| event.with_threshold(least as f64).expect("valid"));
                    let found = AnswerForecast::new(&event).expect("noise").wrong(&votes).expect("a probability");
                    let exact = enumerated(&votes, &pmf, threshold);
                    // The enumeration of Laplace noise misses a little probability beyond its end.
                    assert!((found - exact).abs() < 1e-12, "{noise}, {votes:?}, {threshold:?}: {found} and {exact}");
                    compared += 1;
                }
            }
        }
    }
    assert_eq!(compared, 5 * 3 * (3 * 2 + 5 * 3));
    // Four classes.
    for right in 0..4 {
        let votes = votes(&[3, 4, 4, 2], right);
        let found = AnswerForecast::new(&all(noise(DiscreteLaplace, 1.5)))
            .expect("noise")
            .wrong(&votes)
            .expect("a probability");
        assert!((found - enumerated(&votes, &pmf(1.5, 1.0, 9), None)).abs() < 1e-5, "{right}: {found}");
    }
}

#[test]
fn the_samplers_give_the_forecast_share_of_right_labels() {
    const RUNS: u32 = 40_000;
    let limit = Normal::standard().inverse_cdf(1.0 - FALSE_ALARM / 2.0);
    let mut generator = NoiseGenerator::new(&Randomness::simulation([45; 32])).expect("a generator");
    let coins = BinomialShare::new(NoiseCoins::new(1000).expect("valid"), 250).expect("a share");
    let odd = BinomialShare::new(NoiseCoins::new(75).expect("valid"), 25).expect("a share");
    let shares = NoiseShare::new(InverseScale::new(0.1).expect("valid"), 25).expect("a share");
    let skellam = SkellamShare::new(NoiseDeviation::new(9.0).expect("valid"), 25).expect("a share");
    // Each case: the noise, the draw of the noise of all teachers, the votes with the right class.
    type Draw<'a> = Box<dyn Fn(&mut NoiseGenerator) -> i64 + 'a>;
    let cases: [(Mechanism, Draw<'_>, &[u32], usize); 5] = [
        (noise(Binomial, 1000.0), Box::new(|rng| coins.sample_sum(250, rng)), &[100, 120, 30], 1),
        (noise(Binomial, 1000.0), Box::new(|rng| coins.sample_sum(250, rng)), &[90, 80, 80, 0, 0, 0, 0, 0, 0, 0], 0),
        (noise(Binomial, 75.0), Box::new(|rng| odd.sample_sum(25, rng)), &[9, 9, 7], 1),
        (noise(DiscreteLaplace, 0.1), Box::new(|rng| (0..25).map(|_| shares.sample(rng)).sum()), &[5, 2, 18], 2),
        (noise(Skellam, 9.0), Box::new(|rng| skellam.sample_sum(25, rng)), &[12, 13, 0, 0], 1),
    ];
    for (noise, draw, counts, right) in &cases {
        let wrong = |right: usize, counts: &[u32]| {
            AnswerForecast::new(&all(*noise)).expect("noise").wrong(&votes(counts, right)).expect("a probability")
        };
        let expected = 1.0 - wrong(*right, counts);
        let runs = 0..RUNS;
        let found = runs.filter(|_| {
            let noisy: Vec<i64> = counts.iter().map(|&count| i64::from(count) + draw(&mut generator)).collect();
            answer(&noisy, None) == Some(*right)
        });
        let found = found.count() as f64;
        let (mean, deviation) = (expected * f64::from(RUNS), (f64::from(RUNS) * expected * (1.0 - expected)).sqrt());
        assert!((found - mean).abs() < limit * deviation, "{noise}: {found} right labels, {mean} expected");
        // The test would notice one vote more.
        let mut other = counts.to_vec();
        other[*right] += 1;
        let other = (1.0 - wrong(*right, &other)) * f64::from(RUNS);
        assert!((found - other).abs() > limit * deviation, "{noise}: {found} is also close to {other}");
    }
}

/// Ten queries of 1000 teachers with leads of 907 to 976 votes over the second class, measured with Gaussian noise in Python:
/// the share of right labels, and the share of runs in which all ten are right. docs/privacy.md has the measurements and the
/// forecasts. Only the leads are known, so ten classes are assumed. The other votes are least favourable if all other classes
/// have as many as the second, and most favourable if the second has all of them. The measured shares must be between these
/// two forecasts, but for the error of the measurement.
#[test]
fn gaussian_noise_gives_the_published_shares() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/privacy.md"));
    // A package of this crate alone has no documents.
    let Ok(page) = page else { return };
    let table = page.lines().skip_while(|line| !line.starts_with("| deviation | right, measured |")).skip(2);
    let rows: Vec<Vec<&str>> = table
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), ["120", "160", "200", "240"]);
    for row in rows {
        let number = |text: &str| text.parse::<f64>().expect("a number");
        let forecast = |histogram: &dyn Fn(u32) -> Vec<u32>| {
            let leads = (0..10).map(|i| 907 + (69 * i) / 9);
            let pilot = VotesModel::pilot(leads.map(histogram).collect(), 1000).expect("a pilot");
            Forecast::new(&all(noise(Gaussian, number(row[0]))), &pilot, 1000, 10).expect("a forecast")
        };
        let most = forecast(&|lead| {
            let right = (1000 + lead).div_ceil(2);
            [&[right, 1000 - right][..], &[0; 8]].concat()
        });
        let least = forecast(&|lead| {
            // The right class has w votes and every other class (1000 - w) / 9, rounded to integers.
            let right = (9 * lead + 1000) / 10;
            let (each, more) = ((1000 - right) / 9, (1000 - right) % 9);
            std::iter::once(right).chain((0..9).map(|class| each + u32::from(class < more))).collect()
        });
        let is_between = |measured: f64, least: f64, most: f64, error: f64| {
            assert!((least - error..=most + error).contains(&measured), "{row:?}: {measured}, not {least} to {most}");
        };
        is_between(number(row[1]), least.right_share, most.right_share, 0.0015);
        is_between(number(row[3]), least.all_right, most.all_right, 0.01);
        assert_eq!(row[2], format!("{:.4} to {:.4}", least.right_share, most.right_share));
        assert_eq!(row[4], format!("{:.3} to {:.3}", least.all_right, most.all_right));
    }
}

#[test]
fn integer_noise_is_close_to_continuous_noise_of_its_deviation() {
    let agreement = Agreement::new(0.6).expect("valid");
    for model in [VotesModel::even(agreement, 10).expect("valid"), VotesModel::one_rival(agreement, 10).expect("valid")]
    {
        let share = |mechanism| Forecast::new(&all(mechanism), &model, 400, 50).expect("a forecast").right_share;
        let expected = share(noise(Gaussian, 100.0));
        for noise in [noise(Binomial, 40_000.0), noise(Skellam, 100.0)] {
            // A tie has a probability of about 1 / (2 sqrt(pi) 100).
            assert!((share(noise) - expected).abs() < 0.004, "{noise}: {} and {expected}", share(noise));
        }
    }
    // The widest noise takes a moment, too.
    let wide = noise(Skellam, 100_000.0);
    let model = VotesModel::one_rival(agreement, 10).expect("valid");
    let [integer, continuous] = [wide, noise(Gaussian, 100_000.0)]
        .map(|noise| Forecast::new(&all(noise), &model, 1_000_000, 50).expect("a forecast").right_share);
    assert!((integer - continuous).abs() < 1e-5, "{integer} and {continuous}");
}

#[test]
fn continuous_noise_is_right_half_of_the_time_without_a_lead() {
    for noise in [noise(Gaussian, 3.0), noise(Laplace, 0.1)] {
        let forecast = AnswerForecast::new(&all(noise)).expect("noise");
        let wrong = |counts: &[u32], right| forecast.wrong(&votes(counts, right)).expect("a probability");
        assert!((wrong(&[5, 5], 0) - 0.5).abs() < 1e-9 && (wrong(&[5, 5, 5, 5], 2) - 0.75).abs() < 1e-9);
        // The classes' probabilities add up to 1, also those of classes that are behind.
        let sum: f64 = (0..3).map(|right| 1.0 - wrong(&[9, 5, 2], right)).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{noise}: {sum}");
    }
    let tau = HonestRatio::new(0.05).expect("valid");
    let refused = AnswerForecast::new(&PrivacyEvent::new(noise(Laplace, 0.1), tau));
    assert!(refused.err().expect("refused").to_string().starts_with("q by integration cannot be reached"));
}

#[test]
fn a_pilot_keeps_its_queries_and_other_numbers_are_drawn_from_it() {
    let histograms = vec![vec![60, 40, 0], vec![34, 33, 33], vec![100, 0, 0]];
    let pilot = VotesModel::pilot(histograms, 100).expect("a pilot");
    let event = all(noise(Binomial, 2000.0));
    let three = Forecast::new(&event, &pilot, 100, 3).expect("a forecast");
    let argmax = AnswerForecast::new(&event).expect("noise");
    let right: Vec<f64> =
        pilot.votes(100).expect("votes").iter().map(|votes| 1.0 - argmax.wrong(votes).expect("a number")).collect();
    assert!((three.right_share - right.iter().sum::<f64>() / 3.0).abs() < 1e-12);
    assert!((three.all_right - right.iter().product::<f64>()).abs() < 1e-12);
    let six = Forecast::new(&event, &pilot, 100, 6).expect("a forecast");
    assert!((six.right_share - three.right_share).abs() < 1e-12);
    assert!((six.all_right - three.right_share.powi(6)).abs() < 1e-12);
    // More teachers with the same shares have larger leads.
    assert!(Forecast::new(&event, &pilot, 400, 3).expect("a forecast").right_share > three.right_share);
    for (queries, expected) in [(0, AccountError::NoQueries), (1_000_001, AccountError::Queries { found: 1_000_001 })] {
        assert_eq!(Forecast::new(&event, &pilot, 100, queries), Err(expected));
    }
}

#[test]
fn one_coin_fewer_of_each_teacher_costs_more_than_the_target() {
    let target = |epsilon: f64, tau: f64, teachers: usize| {
        let tau = HonestRatio::new(tau).and_then(|tau| tau.effective(teachers)).expect("valid");
        let (delta, adversary, bound) =
            (Delta::new(1e-5).expect("valid"), Adversary::ExternalWithDropout, Bound::Tight);
        Target { epsilon, delta, tau, adversary, bound, classes: None, threshold: None, checks: None }
    };
    for (epsilon, tau, teachers, queries) in [(3.0, 1.0, 250, 100), (1.0, 0.9, 500, 20), (1.5, 0.7, 60, 10)] {
        let target = target(epsilon, tau, teachers);
        let found = calibrate_coins_of_teacher(teachers, queries, &target).expect("coins");
        let coins = found.scale as u64 / teachers as u64;
        let account = |coins: u64| {
            let event = PrivacyEvent::new(noise(Binomial, (coins * teachers as u64) as f64), target.tau);
            Accountant::new(event, target.delta).account_queries(queries).expect("an account").epsilon
        };
        assert!(coins > 1 && account(coins) <= epsilon && account(coins - 1) > epsilon, "{coins}");
        assert!((account(coins) - found.account.epsilon).abs() < 1e-12);
    }
    // One teacher tosses few enough coins for a short search.
    let refused = calibrate_coins_of_teacher(1, 100, &target(1e-4, 1.0, 1));
    assert!(matches!(refused, Err(AccountError::Unreachable(_))), "{refused:?}");
}
