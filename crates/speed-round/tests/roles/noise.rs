//! Compares the noise that teachers add, from the operating system's generator, with the distribution that the
//! accountant analyses.

use speed_aggregation::PrivacyNoise;
use speed_core::{NoisePlacement, Randomness, RandomnessKind};
use speed_mechanism::{Binomial, DiscreteLaplace, HonestRatio, InverseScale, Mechanism};
use speed_round::{RoundRandomness, teacher};
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

#[test]
fn sums_of_the_teachers_shares_follow_the_discrete_laplace_of_the_accountant() {
    let gamma = InverseScale::new(0.3).expect("valid");
    let teachers = 40;
    let mut terms = terms("noise", 5_000, teachers);
    (terms.noise, terms.randomness) = (noise(0.3), RandomnessKind::OperatingSystem);
    let folder = RoundFolder::new(&terms);
    let labels = vec![1_u8; 5_000];
    let mut all = vec![0; folder.file.round().values()];
    let mut most = all.clone();
    for teacher in 0..teachers {
        let values =
            teacher::values(&folder.file, &labels, teacher, RoundRandomness::OPERATING_SYSTEM).expect("entropy");
        for (value, (all, most)) in values.iter().zip(all.iter_mut().zip(&mut most)) {
            *all += value;
            *most += if teacher < 30 { *value } else { 0 };
        }
    }
    // The votes are known: all for class 1.
    let less_votes = |sums: &[i64], votes: i64| -> Vec<i64> {
        sums.iter().enumerate().map(|(i, sum)| sum - if i % 3 == 1 { votes } else { 0 }).collect()
    };
    let (all, most) = (less_votes(&all, 40), less_votes(&most, 30));
    let exact = |tau: f64| DiscreteLaplace::of_class(gamma, HonestRatio::new(tau).expect("a ratio"));
    let table = |tau: f64| (0..=8).map(|k| exact(tau).lattice(8).log_pmf(k).exp()).collect::<Vec<f64>>();
    let (full, part) = (table(1.0), table(0.75));
    let p = |draws: &[i64], table: &[f64]| p_value(draws, 8, |k| table[k.unsigned_abs() as usize]);
    assert!(p(&all, &full) > FALSE_ALARM, "all teachers: {:e}", p(&all, &full));
    // 30 of 40 teachers have the noise of an honest ratio of 0.75, and the test can distinguish it from an honest ratio
    // of 1.
    assert!(p(&most, &part) > FALSE_ALARM, "30 of 40 teachers: {:e}", p(&most, &part));
    assert!(p(&most, &full) < FALSE_ALARM && p(&all, &part) < FALSE_ALARM);
}

#[test]
fn sums_of_the_teachers_shares_follow_the_binomial_of_the_accountant() {
    let teachers = 40;
    let mut terms = terms("binomial", 5_000, teachers);
    terms.noise = PrivacyNoise::of_coins(2, teachers).expect("valid");
    terms.randomness = RandomnessKind::OperatingSystem;
    let folder = RoundFolder::new(&terms);
    let mut sums = vec![0; folder.file.round().values()];
    let mut most = sums.clone();
    for teacher in 0..teachers {
        let values =
            teacher::values(&folder.file, &[1_u8; 5_000], teacher, RoundRandomness::OPERATING_SYSTEM).expect("entropy");
        for (i, value) in values.iter().enumerate() {
            // The votes are known: all for class 1.
            let share = value - i64::from(i % 3 == 1);
            assert!((-1..=1).contains(&share), "two coins, counted from one head");
            sums[i] += share;
            most[i] += if teacher < 30 { share } else { 0 };
        }
    }
    let Mechanism::Binomial { coins } = terms.noise.mechanism() else { unreachable!("binomial noise") };
    let exact = |tau: f64| {
        let lattice = Binomial::of_class(coins, HonestRatio::new(tau).expect("a ratio")).lattice(20);
        move |k| lattice.log_pmf(k).exp()
    };
    assert!(p_value(&sums, 8, exact(1.0)) > FALSE_ALARM, "all teachers");
    assert!(p_value(&most, 8, exact(0.75)) > FALSE_ALARM, "30 of 40 teachers");
    assert!(p_value(&most, 8, exact(1.0)) < FALSE_ALARM && p_value(&sums, 8, exact(0.75)) < FALSE_ALARM);
}

#[test]
fn the_servers_noise_has_its_full_distribution() {
    let gamma = InverseScale::new(0.3).expect("valid");
    let whole = noise(0.3).share_of(1).expect("one party");
    let draws = whole.draw(15_000, &Randomness::OperatingSystem).expect("entropy");
    let exact = DiscreteLaplace::of_class(gamma, HonestRatio::ALL);
    let table: Vec<f64> = (0..=8).map(|k| exact.lattice(8).log_pmf(k).exp()).collect();
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
