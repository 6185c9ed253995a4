//! The sampler of noise shares: its table is compared to independent computations, and its draws to the distribution
//! that the accountant analyses.
//!
//! The statistical tests have a fixed seed, so they are deterministic. Their threshold is a false-alarm rate of 10^-6:
//! the chance that a freshly chosen seed would refuse a correct sampler.

use std::convert::Infallible;

use rand::{Rng, TryCryptoRng, TryRng};
use speed_core::Randomness;
use speed_mechanism::{
    BinomialShare, DiscreteGaussian, DiscreteLaplace, HonestRatio, InverseScale, MechanismError, NoiseCoins,
    NoiseDeviation, NoiseGenerator, NoiseShare, Skellam, SkellamShare,
};
use statrs::distribution::{ChiSquared, ContinuousCDF};

const FALSE_ALARM: f64 = 1e-6;

fn gamma(value: f64) -> InverseScale {
    InverseScale::new(value).expect("a valid scale")
}

fn generator(seed: u8) -> NoiseGenerator {
    NoiseGenerator::new(&Randomness::simulation([seed; 32])).expect("a simulation needs no entropy")
}

/// Returns the p-value of Pearson's chi-square test of `draws` against `pmf`, with one cell for each integer in
/// `-reach..=reach` and one for each of the two tails.
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
    assert!(expected.iter().all(|&count| count > 5.0), "a cell is too small for the chi-square approximation");
    let statistic: f64 = observed.iter().zip(&expected).map(|(o, e)| (o - e) * (o - e) / e).sum();
    ChiSquared::new((observed.len() - 1) as f64).expect("at least one degree of freedom").sf(statistic)
}

/// Draws `count` sums, each of `noisy` shares of noise that is divided between 250 teachers.
fn sums(count: usize, noisy: usize, seed: u8) -> Vec<i64> {
    let share = NoiseShare::new(gamma(0.1), 250).expect("a valid share");
    let mut rng = generator(seed);
    let mut shares = vec![0; noisy];
    (0..count)
        .map(|_| {
            shares.fill_with(|| share.sample(&mut rng));
            shares.iter().sum()
        })
        .collect()
}

/// Asserts that draws have a law, and that the test has the power to detect another one.
fn assert_law(draws: &[i64], reach: i64, law: impl Fn(i64) -> f64, other: impl Fn(i64) -> f64, what: &str) {
    assert!(p_value(draws, reach, law) > FALSE_ALARM, "{what}");
    assert!(p_value(draws, reach, other) < FALSE_ALARM, "{what}: the test has power");
}

#[test]
fn shares_sum_to_the_law_of_their_ratio() {
    let law = |scale: f64, shape: f64| {
        let table = DiscreteLaplace::new(gamma(scale), shape).expect("a valid shape").lattice(31);
        move |k: i64| table.log_pmf(k).exp()
    };
    let p = (-0.1f64).exp();
    let exact = |k: i64| (1.0 - p) / (1.0 + p) * p.powi(k.unsigned_abs() as i32);
    assert_law(&sums(20_000, 250, 1), 30, exact, law(0.09, 1.0), "all teachers");
    assert_law(&sums(20_000, 175, 2), 30, law(0.1, 0.7), exact, "seven tenths of them");
}

#[test]
fn draws_follow_the_table() {
    let share = NoiseShare::new(gamma(0.1), 20).expect("a valid share");
    let mut draws = vec![0; 1_000_000];
    let mut rng = generator(3);
    draws.fill_with(|| share.sample(&mut rng));
    assert!(p_value(&draws, 25, |k| share.pmf(k)) > FALSE_ALARM);
}

#[test]
fn the_table_is_the_convolution_of_negative_binomials() {
    for (scale, teachers) in [(0.1, 250), (0.1, 1), (0.05, 7), (1.0, 250), (10.0, 3)] {
        let share = NoiseShare::new(gamma(scale), teachers).expect("a valid share");
        let (p, shape) = (f64::exp(-scale), 1.0 / teachers as f64);
        let mut a = vec![(1.0 - p).powf(shape)];
        for j in 1..(60.0 / scale) as usize + 400 {
            a.push(a[j - 1] * p * (j as f64 - 1.0 + shape) / j as f64);
        }
        // Single probabilities are differences of 128-bit numbers, so an absolute error of 2^-116 is allowed beside the
        // relative error.
        for k in (0..share.max_magnitude().min(300)).step_by(7) {
            let direct: f64 = a.iter().zip(&a[k as usize..]).map(|(x, y)| x * y).sum();
            for value in [k as i64, -(k as i64)] {
                let off = (share.pmf(value) - direct).abs();
                assert!(off <= 1e-12 * direct + 2f64.powi(-116), "gamma {scale}, n {teachers}, k {k}: off by {off:e}");
            }
        }
        let total: f64 = (-(share.max_magnitude() as i64)..=share.max_magnitude() as i64).map(|k| share.pmf(k)).sum();
        assert!((total - 1.0).abs() < 1e-13);
        assert_eq!(share.pmf(share.max_magnitude() as i64 + 1), 0.0);
    }
}

#[test]
fn tables_are_certified_over_the_whole_range() {
    for scale in [1e-3, 0.01, 0.05, 0.1, 0.5, 1.0, 3.3, 10.0, 127.0, 128.0, 1e6] {
        for teachers in [1, 2, 250, 1_000_000] {
            let share = NoiseShare::new(gamma(scale), teachers).expect("a certified table");
            assert!(share.total_variation() > 0.0 && share.total_variation() <= 2f64.powi(-100));
            // The probability that the table leaves out is part of the distance, and stays below 2^-116.
            assert!(share.total_variation() >= 2f64.powi(-140), "gamma {scale}, n {teachers}");
        }
    }
    let share = NoiseShare::new(gamma(0.1), 250).expect("a certified table");
    let run = share.total_variation_of_draws(100 * 10 * 250);
    assert!(run >= 250_000.0 * share.total_variation() && run < 2f64.powi(-100));
}

#[test]
fn a_draw_takes_the_same_number_of_random_words() {
    let share = NoiseShare::new(gamma(0.1), 3).expect("a valid share");
    let (mut sampled, mut plain) = (generator(4), generator(4));
    for _ in 0..1_000 {
        share.sample(&mut sampled);
    }
    for _ in 0..3_000 {
        plain.next_u64();
    }
    assert_eq!(sampled.next_u64(), plain.next_u64());
}

/// A generator of equal words that counts them.
struct EqualWords {
    word: u64,
    drawn: u32,
}

impl TryRng for EqualWords {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        unreachable!("coins are tossed 64 at a time")
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.drawn += 1;
        Ok(self.word)
    }

    fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Infallible> {
        unreachable!("coins are tossed 64 at a time")
    }
}

impl TryCryptoRng for EqualWords {}

#[test]
fn a_binomial_draw_takes_a_number_of_random_words_that_depends_on_the_coins_only() {
    for coins in [1_u32, 2, 34, 63, 64, 65, 400] {
        let all = NoiseCoins::new(3 * u64::from(coins)).expect("coins");
        let share = BinomialShare::new(all, 3).expect("a valid share");
        // The smallest and the largest draw, and one between.
        for word in [0, u64::MAX, 0x0123_4567_89ab_cdef] {
            let mut words = EqualWords { word, drawn: 0 };
            let heads = share.sample(&mut words);
            assert_eq!(words.drawn, coins.div_ceil(64), "{coins} coins, {heads} heads");
            let expected = match word {
                0 => 0..=0,
                u64::MAX => i64::from(coins)..=i64::from(coins),
                _ => 0..=i64::from(coins),
            };
            assert!(expected.contains(&heads), "{coins} coins, {heads} heads");
        }
    }
}

#[test]
fn an_open_draw_is_the_same_share() {
    for (scale, teachers) in [(0.1, 250), (1.0, 1), (1e6, 2), (1e-3, 40)] {
        let share = NoiseShare::new(gamma(scale), teachers).expect("a valid share");
        let (mut secret, mut open) = (generator(6), generator(6));
        for _ in 0..2_000 {
            assert_eq!(share.sample(&mut secret), share.sample_openly(&mut open));
        }
    }
}

#[test]
fn seeds_repeat_and_differ_and_the_system_does_not_repeat() {
    let words = |mut rng: NoiseGenerator| [rng.next_u64(), rng.next_u64(), u64::from(rng.next_u32())];
    assert_eq!(words(generator(5)), words(generator(5)));
    assert_ne!(words(generator(5)), words(generator(6)));
    let system = || NoiseGenerator::new(&Randomness::OperatingSystem).expect("entropy");
    // They are equal with a probability of 2^-160.
    assert_ne!(words(system()), words(system()));
}

#[test]
fn debug_shows_no_secret() {
    let source = Randomness::simulation([77; 32]);
    assert_eq!(format!("{source:?}"), "Simulation(..)");
    assert_eq!(format!("{:?}", Randomness::OperatingSystem), "OperatingSystem");
    assert_eq!(format!("{:?}", generator(77)), "NoiseGenerator { .. }");
}

#[test]
fn refuses_what_it_cannot_sample() {
    assert!(matches!(NoiseShare::new(gamma(0.1), 0), Err(MechanismError::Teachers { found: 0, .. })));
    assert!(matches!(NoiseShare::new(gamma(0.1), 1_000_001), Err(MechanismError::Teachers { .. })));
}

fn sigma(value: f64) -> NoiseDeviation {
    NoiseDeviation::new(value).expect("a valid deviation")
}

/// Asserts that draws are Skellam noise of a ratio of the teachers, and not 10 % wider.
fn assert_skellam(draws: &[i64], reach: i64, deviation: f64, ratio: f64) {
    let law = |deviation: f64| {
        let table = Skellam::of_class(sigma(deviation), HonestRatio::new(ratio).expect("a ratio")).lattice(300);
        move |k: i64| table.log_pmf(k).exp()
    };
    assert_law(draws, reach, law(deviation), law(deviation * 1.1), &format!("sigma {deviation}, ratio {ratio}"));
}

#[test]
fn a_walk_from_the_mode_has_the_law_of_skellam_noise() {
    // Sums of shares drawn at once walk from rates of 8 on; single shares from a rate of 4096 on.
    for (deviation, teachers, noisy, reach, seed) in
        [(6.0, 250, 250, 16, 31), (6.0, 250, 175, 14, 32), (40.0, 3, 2, 80, 33)]
    {
        let share = SkellamShare::new(sigma(deviation), teachers).expect("teachers");
        let mut rng = generator(seed);
        let draws: Vec<i64> = (0..40_000).map(|_| share.sample_sum(noisy, &mut rng)).collect();
        assert_skellam(&draws, reach, deviation, noisy as f64 / teachers as f64);
    }
}

#[test]
fn wide_skellam_noise_is_drawn_in_time_and_has_its_law() {
    // The rates are 4.5 * 10^4, 5 * 10^7 and 5 * 10^9.
    for (deviation, count, seed) in [(300.0, 20_000, 34), (1e4, 1_000, 35), (1e5, 100, 36)] {
        let share = SkellamShare::new(sigma(deviation), 1).expect("a teacher");
        let mut rng = generator(seed);
        let mut draws = vec![0; count];
        draws.fill_with(|| share.sample(&mut rng));
        let (n, v) = (count as f64, deviation * deviation);
        let mean = draws.iter().sum::<i64>() as f64 / n;
        let variance = draws.iter().map(|&draw| draw as f64 * draw as f64).sum::<f64>() / n;
        // Both limits are five standard deviations.
        assert!(mean.abs() < 5.0 * deviation / n.sqrt(), "sigma {deviation}: mean {mean}");
        assert!((variance / v - 1.0).abs() < 5.0 * (2.0 / n).sqrt(), "sigma {deviation}: variance {variance}");
        if deviation == 300.0 {
            let (cell, reach) = (60, 12);
            let cells: Vec<i64> = draws.iter().map(|draw| (draw + cell / 2).div_euclid(cell)).collect();
            let law = |deviation: f64| {
                let lattice = Skellam::of_class(sigma(deviation), HonestRatio::ALL).lattice(2_000);
                move |k: i64| {
                    let from = k * cell - cell / 2;
                    lattice.log_survival(from).exp() - lattice.log_survival(from + cell).exp()
                }
            };
            assert_law(&cells, reach, law(deviation), law(deviation * 1.1), "wide noise");
        }
    }
}

#[test]
fn shares_of_skellam_noise_sum_to_its_law() {
    for (deviation, teachers, noisy, reach, seed) in
        [(6.0, 250, 250, 16, 11), (6.0, 250, 175, 14, 12), (0.8, 3, 3, 2, 13), (30.0, 1, 1, 75, 14)]
    {
        let share = SkellamShare::new(sigma(deviation), teachers).expect("teachers");
        assert!((share.deviation() / deviation - 1.0).abs() < 1e-6);
        let mut rng = generator(seed);
        let mut shares = vec![0; noisy];
        let draws: Vec<i64> = (0..20_000)
            .map(|_| {
                shares.fill_with(|| share.sample(&mut rng));
                shares.iter().sum()
            })
            .collect();
        assert_skellam(&draws, reach, deviation, noisy as f64 / teachers as f64);
    }
}

#[test]
fn one_share_of_skellam_noise_has_its_law() {
    let share = SkellamShare::new(sigma(20.0), 250).expect("teachers");
    let mut draws = vec![0; 200_000];
    let mut rng = generator(15);
    draws.fill_with(|| share.sample(&mut rng));
    assert_skellam(&draws, 5, 20.0, 1.0 / 250.0);
}

#[test]
fn discrete_gaussian_draws_have_their_law() {
    for (deviation, reach, seed) in [(0.4, 0, 21), (1.0, 2, 22), (7.5, 20, 23), (40.0, 90, 24), (2_000.5, 0, 25)] {
        let noise = DiscreteGaussian::new(sigma(deviation));
        let mut rng = generator(seed);
        let draws: Vec<i64> = (0..40_000).map(|_| noise.sample(&mut rng)).collect();
        if deviation > 1e3 {
            // Wide noise is tested in cells of a quarter of a deviation.
            let cells: Vec<i64> = draws.iter().map(|draw| (*draw as f64 / (deviation / 4.0)).floor() as i64).collect();
            let pmf = noise.log_pmf(12_000);
            let cell = |c: i64| -> f64 {
                let inside = |k: &i64| (*k as f64 / (deviation / 4.0)).floor() as i64 == c;
                (-12_000i64..=12_000).filter(inside).map(|k| pmf[k.unsigned_abs() as usize].exp()).sum()
            };
            // Cells are not symmetric around zero: those from -12 to 11 and the two ends.
            let inner: Vec<(i64, f64)> = (-11..=10).map(|c| (c, cell(c))).collect();
            let statistic: f64 = inner
                .iter()
                .map(|&(c, p)| {
                    let expected = p * draws.len() as f64;
                    (cells.iter().filter(|&&found| found == c).count() as f64 - expected).powi(2) / expected
                })
                .sum();
            let p = ChiSquared::new(inner.len() as f64).expect("cells").sf(statistic);
            assert!(p > FALSE_ALARM, "sigma {deviation}: {p}");
            continue;
        }
        let law = |noise: DiscreteGaussian| {
            let pmf = noise.log_pmf(200);
            move |k: i64| pmf[k.unsigned_abs() as usize].exp()
        };
        let wider = DiscreteGaussian::new(sigma(deviation * 1.1));
        assert_law(&draws, reach, law(noise), law(wider), &format!("sigma {deviation}"));
    }
}

#[test]
fn tails_of_the_discrete_gaussian_are_below_their_bound() {
    for deviation in [0.3, 1.0, 12.0] {
        let noise = DiscreteGaussian::new(sigma(deviation));
        let pmf = noise.log_pmf(600);
        for m in [1u64, 2, 5, 20] {
            let tail: f64 = pmf[m as usize..].iter().map(|p| p.exp()).sum();
            assert!(tail <= noise.log_survival_bound(m).exp(), "sigma {deviation}, m {m}");
        }
    }
}
