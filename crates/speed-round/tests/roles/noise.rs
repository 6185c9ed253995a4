//! Compares the noise that teachers add, from the operating system's generator, with the distribution that the
//! accountant analyses.

use speed_aggregation::PrivacyNoise;
use speed_core::{NoisePlacement, Randomness, RandomnessKind};
use speed_mechanism::{Binomial, DiscreteLaplace, HonestRatio, InverseScale, Mechanism};
use speed_round::{RoundRandomness, Terms, teacher};
use statrs::distribution::{ChiSquared, ContinuousCDF};

use crate::common::{RoundFolder, noise, terms};

/// The probability that correct noise is rejected. The generator has no seed, so this is also the rate of spurious
/// failures of the test.
const FALSE_ALARM: f64 = 1e-9;

/// Returns the p-value of Pearson's chi-square test of `draws` against a symmetric `pmf`, with one cell for each
/// integer in `-reach..=reach` and one for each side beyond.
fn p_value(draws: &[i64], reach: i64, pmf: impl Fn(i64) -> f64) -> f64 {
    let cell = |x: i64| (x.clamp(-reach - 1, reach + 1) + reach + 1) as usize;
    let mut observed = vec![0.0; cell(reach + 1) + 1];
    for &draw in draws {
        observed[cell(draw)] += 1.0;
    }
    let mut expected = vec![0.0; observed.len()];
    for x in -reach..=reach {
        expected[cell(x)] = pmf(x) * draws.len() as f64;
    }
    let beyond = (draws.len() as f64 - expected.iter().sum::<f64>()) / 2.0;
    expected[0] = beyond;
    expected[cell(reach + 1)] = beyond;
    // This far out in the tail, the statistic follows its limit only if no cell is small.
    assert!(expected.iter().all(|&count| count > 100.0), "a cell is too small for the chi-square approximation");
    let statistic: f64 = observed.iter().zip(&expected).map(|(o, e)| (o - e) * (o - e) / e).sum();
    ChiSquared::new((observed.len() - 1) as f64).expect("at least one degree of freedom").sf(statistic)
}

/// Compares the sums of the shares of 40 teachers, and of 30 of them, with the accountant's probabilities of 0 to 8 by the honest ratio. A share is
/// at most `largest` in absolute value.
fn follows(terms: &Terms, largest: i64, table: impl Fn(HonestRatio) -> Vec<f64>) {
    let folder = RoundFolder::new(terms);
    let mut all = vec![0; folder.file.round().values()];
    let mut most = all.clone();
    for teacher in 0..40 {
        let values =
            teacher::values(&folder.file, &[1_u8; 5_000], teacher, RoundRandomness::OPERATING_SYSTEM).expect("entropy");
        for (i, value) in values.iter().enumerate() {
            // The votes are known: all for class 1.
            let share = value - i64::from(i % 3 == 1);
            assert!(share.abs() <= largest, "{share}");
            all[i] += share;
            most[i] += if teacher < 30 { share } else { 0 };
        }
    }
    let [full, part] = [1.0, 0.75].map(|tau| table(HonestRatio::new(tau).expect("a ratio")));
    let p = |draws: &[i64], table: &[f64]| p_value(draws, 8, |k| table[k.unsigned_abs() as usize]);
    assert!(p(&all, &full) > FALSE_ALARM, "all teachers: {:e}", p(&all, &full));
    // 30 of 40 teachers have the noise of an honest ratio of 0.75, and the test can distinguish it from an honest ratio
    // of 1.
    assert!(p(&most, &part) > FALSE_ALARM, "30 of 40 teachers: {:e}", p(&most, &part));
    assert!(p(&most, &full) < FALSE_ALARM && p(&all, &part) < FALSE_ALARM);
}

fn terms_with(noise: PrivacyNoise) -> Terms {
    Terms { noise, randomness: RandomnessKind::OperatingSystem, ..terms("noise", 5_000, 40) }
}

#[test]
fn sums_of_the_teachers_shares_follow_the_discrete_laplace_of_the_accountant() {
    let gamma = InverseScale::new(0.3).expect("valid");
    let pmf = |tau, k| DiscreteLaplace::of_class(gamma, tau).lattice(8).log_pmf(k).exp();
    follows(&terms_with(noise(0.3)), i64::MAX, |tau| (0..=8).map(|k| pmf(tau, k)).collect());
}

#[test]
fn sums_of_the_teachers_shares_follow_the_binomial_of_the_accountant() {
    let noise = PrivacyNoise::of_coins(2, 40).expect("valid");
    let Mechanism::Binomial { coins } = noise.mechanism() else { unreachable!("binomial noise") };
    let pmf = |tau, k| Binomial::of_class(coins, tau).lattice(20).log_pmf(k).exp();
    // Two coins, counted from one head.
    follows(&terms_with(noise), 1, |tau| (0..=8).map(|k| pmf(tau, k)).collect());
}

#[test]
fn the_servers_noise_has_its_full_distribution() {
    let gamma = InverseScale::new(0.3).expect("valid");
    let whole = noise(0.3).share_of(1).expect("one party");
    let draws = whole.draw(15_000, &Randomness::OperatingSystem).expect("entropy");
    let exact = DiscreteLaplace::of_class(gamma, HonestRatio::ALL).lattice(8);
    let table: Vec<f64> = (0..=8).map(|k| exact.log_pmf(k).exp()).collect();
    assert!(p_value(&draws, 8, |k| table[k.unsigned_abs() as usize]) > FALSE_ALARM);
}

#[test]
fn two_answers_of_a_teacher_have_other_noise_and_central_rounds_none() {
    let mut terms = terms("fresh", 100, 2);
    (terms.noise, terms.randomness) = (noise(0.2), RandomnessKind::OperatingSystem);
    let folder = RoundFolder::new(&terms);
    let values = |folder: &RoundFolder| {
        teacher::values(&folder.file, &[1_u8; 100], 0, RoundRandomness::OPERATING_SYSTEM).expect("entropy").to_vec()
    };
    // Equal with a probability far below 2^-100.
    assert_ne!(values(&folder), values(&folder));
    terms.placement = NoisePlacement::Central;
    assert_eq!(values(&RoundFolder::new(&terms)), [0, 1, 0].repeat(100));
}
