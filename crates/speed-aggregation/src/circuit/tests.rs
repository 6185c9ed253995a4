//! Tests of the comparator on chosen differences, and of the noise of every step against its formula. Keys are
//! simulated with a fixed seed, so each statistical test gives the same verdict in every run; stated rates are over
//! seeds.

use std::fs;
use std::sync::OnceLock;

use speed_core::fixture::{draws, fixture_of_this_test};
use speed_core::{Randomness, VoteShape};
use tfhe::core_crypto::commons::math::random::Seeder as _;
use tfhe::core_crypto::prelude::*;

use super::engine::{Engine, rounded};
use super::lwe::{Lwe, add_constant, difference};
use super::{READ_OUTS, SUM_STEP};
use crate::ciphertext_noise::CiphertextNoise;
use crate::exact_circuit::ExactCircuit;
use crate::keys::{EvaluationKey, PublicKey, SeededEvaluationKey};
use crate::layout::{Layout, digit_code};
use crate::parameters::Parameters;
use crate::random::seeder;
use crate::range::VoteRange;
use crate::round::{Round, RoundSpec};
use crate::server::Server;
use crate::student::{SecretKey, generate_keys, small_key};
use crate::teacher::Teacher;

const P: Parameters = Parameters::TOURNAMENT_128;
const SOURCE: Randomness = Randomness::simulation([3; 32]);

const FILES: [&str; 3] = ["secret.key", "public.key", "evaluation.key"];

struct Keys {
    secret: SecretKey,
    small: LweSecretKeyOwned<u64>,
    public: PublicKey,
    evaluation: EvaluationKey,
}

impl Keys {
    /// Returns the simulated keys of these parameters, which are made once for a build.
    fn of(p: &Parameters) -> Self {
        let folder = fixture_of_this_test(&format!("keys-{}", p.name()), |folder| {
            let keys = generate_keys(p, &SOURCE).expect("a simulation needs no entropy");
            let bytes = [keys.secret.to_bytes().to_vec(), keys.public.to_bytes(), keys.evaluation.to_bytes()];
            FILES.iter().zip(bytes).for_each(|(name, bytes)| fs::write(folder.join(name), bytes).expect("a key"));
        });
        let [secret, public, evaluation] = FILES.map(|name| fs::read(folder.join(name)).expect("a key"));
        // The first draw of the generation of keys.
        let seed = seeder(&SOURCE, "keys", 0, p.name.as_bytes()).expect("a simulation needs no entropy").seed();
        Self {
            secret: SecretKey::from_bytes(&secret).expect("a key"),
            small: small_key(p, &mut SecretRandomGenerator::new(seed)),
            public: PublicKey::from_bytes(&public).expect("a key"),
            evaluation: SeededEvaluationKey::from_bytes(&evaluation).expect("a key").expand(),
        }
    }
}

fn keys() -> &'static Keys {
    static KEYS: OnceLock<Keys> = OnceLock::new();
    KEYS.get_or_init(|| Keys::of(&P))
}

fn wide_keys() -> &'static Keys {
    static KEYS: OnceLock<Keys> = OnceLock::new();
    KEYS.get_or_init(|| Keys::of(&Parameters::WIDE_128))
}

/// Returns the engine of a round of `teachers` teachers, with counts in the widest range of the keys.
fn engine(keys: &Keys, outcomes: usize, teachers: usize) -> (Engine<'_>, CiphertextNoise<'_>) {
    let p = keys.evaluation.parameters();
    let range = VoteRange::new(teachers, (p.range() - teachers as u64) / 2);
    let layout = Layout::new(p, outcomes, range).expect("in range");
    (Engine::new(&keys.evaluation, layout), CiphertextNoise::new(p, layout, range))
}

fn round(label: &str, teachers: usize, queries: usize, classes: usize, noise_bound: u64) -> Round {
    let shape = VoteShape::new(teachers, queries, classes).expect("a shape");
    Round::new(RoundSpec::new(label.as_bytes(), shape, noise_bound)).expect("valid")
}

/// Encrypts the rows of counts under the public key, as `teachers` teachers would, and sums.
fn encrypt(keys: &Keys, label: &str, counts: &[Vec<i64>], teachers: usize) -> Vec<Vec<Lwe>> {
    let noise = (keys.public.parameters().range() - teachers as u64) / 2;
    let round = round(label, teachers, counts.len(), counts[0].len(), noise);
    let mut server = Server::new(keys.evaluation.clone(), round.clone()).expect("valid");
    for teacher in 0..teachers {
        // The first teacher sends all counts, the others zero.
        let values: Vec<i64> = counts.iter().flatten().map(|&x| if teacher == 0 { x } else { 0 }).collect();
        let message = Teacher::new(teacher).answer(&keys.public, &round, &values, &SOURCE).expect("valid");
        server.add(&message).expect("valid");
    }
    (0..counts.len()).map(|query| server.counts(query)).collect()
}

fn phase(keys: &Keys, ciphertext: &Lwe) -> u64 {
    decrypt_lwe_ciphertext(&keys.secret.big, ciphertext).0
}

/// Returns the phase of a ciphertext minus its expected value.
fn error(keys: &Keys, ciphertext: &Lwe, expected: u64) -> f64 {
    phase(keys, ciphertext).wrapping_sub(expected).cast_signed() as f64
}

/// Returns the phase that a bootstrap sees, in buckets, relative to `expected` (torus units).
fn error_in_buckets(keys: &Keys, small: &Lwe, expected: u64) -> f64 {
    let mut input = small.clone();
    add_constant(&mut input, expected.wrapping_neg());
    // Masks are unchanged, so the rounding errors are those of the real input; only the body is shifted, by an integer
    // number of torus units.
    let switched = rounded(&P, &input);
    let key = keys.small.as_ref();
    let selected: usize = switched.mask.iter().zip(key).filter(|(_, key)| **key == 1).map(|(mask, _)| mask).sum();
    let turned = (switched.body + 4096 * 1024 - selected) % 4096;
    // Entry i of a table stands for phases from i to i + 1.
    let centred = if turned >= 2048 { turned as f64 - 4096.0 } else { turned as f64 };
    centred + 0.5
}

/// The share of the variance of a key switch that is the same for all ciphertexts under one key: the mean of its digits
/// times the key's errors. The formulas include it, because they average over ciphertexts and keys together. Over eight
/// keys, the squared mean of 200 inputs of a comparison was 0.03 to 0.09 of the formula's variance, and squared mean
/// plus variance 1.00 to 1.06 of it.
const OF_THE_KEY: f64 = 0.09;

/// Fails if the mean or the variance of `errors` differs from 0 or `variance` by more than 5 of its standard
/// deviations. For Gaussian errors of that variance, this is a false alarm for one in 800,000 seeds.
fn assert_noise(what: &str, errors: &[f64], variance: f64) {
    let n = errors.len() as f64;
    let mean = errors.iter().sum::<f64>() / n;
    let measured = errors.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let ratio = measured / variance;
    assert!(
        mean.abs() < 5.0 * (variance * (1.0 / n + OF_THE_KEY)).sqrt(),
        "{what}: mean {mean}, standard deviation {}",
        variance.sqrt()
    );
    assert!(
        (ratio - 1.0).abs() < 5.0 * (2.0 / (n - 1.0)).sqrt(),
        "{what}: measured variance is {ratio} of the formula"
    );
}

/// Returns a class with this number, as it enters a tournament.
fn contestant(engine: &Engine<'_>, count: &Lwe, class: usize) -> [Lwe; 2] {
    [count.clone(), engine.constant(engine.layout.number(class))]
}

/// Plays matches of two classes with the differences, and checks count and number of each winner.
fn assert_matches(keys: &Keys, outcomes: usize, magnitudes: &[i64]) {
    let (mut engine, _) = engine(keys, outcomes, 2);
    let differences: Vec<i64> = magnitudes.iter().flat_map(|&d| [d, -d]).collect();
    let counts: Vec<Vec<i64>> = differences.iter().map(|d| vec![-d / 2, d - d / 2]).collect();
    let pairs = encrypt(keys, "sweep", &counts, 2);
    let indices = |query: usize| [query % (outcomes - 1), outcomes - 1 - query % 3];
    let brackets: Vec<Vec<[Lwe; 2]>> = (0..)
        .zip(&pairs)
        .map(|(query, pair)| pair.iter().zip(indices(query)).map(|(c, class)| contestant(&engine, c, class)).collect())
        .collect();
    for (query, winner) in engine.play_round(brackets).into_iter().flatten().enumerate() {
        let later = usize::from(differences[query] > 0);
        let expected = [engine.layout.value(counts[query][later]), engine.layout.number(indices(query)[later])];
        for (part, expected) in winner.iter().zip(expected) {
            let error = error(keys, part, expected);
            assert!(error.abs() < 2_f64.powi(46), "difference {}: off by {error}", differences[query]);
        }
    }
}

#[test]
fn a_match_is_right_for_differences_around_zero_every_scale_boundary_and_the_range() {
    // At 13 and 14 the finest scale wraps around; at 185 to 196 the second one; 2544 is the end of the range.
    let magnitudes = [0, 1, 2, 7, 8, 13, 14, 15, 27, 28, 93, 94, 185, 190, 191, 196, 198, 409, 1500, 2543, 2544];
    assert_matches(keys(), 16, &magnitudes);
}

#[test]
fn a_match_is_right_with_four_scales_and_with_two_digits() {
    let magnitudes = [0, 1, 13, 14, 190, 191, 2519, 2520, 2521, 2544, 2545, 2660, 9000, 29_999, 30_000];
    assert_matches(wide_keys(), 16, &magnitudes);
    assert_matches(wide_keys(), 128, &[0, 1, 191, 2545, 30_000]);
    assert_matches(keys(), 100, &[0, 1, 14, 191, 2544]);
}

#[test]
fn noise_at_the_inputs_of_a_comparison_follows_the_formula() {
    let keys = keys();
    let (mut engine, model) = engine(keys, 10, 5);
    let scales: Vec<u64> = engine.layout.scales().collect();
    let counts: Vec<Vec<i64>> = (0..40).map(|q| (0..10).map(|k| (q * 10 + k) * 7 % 9 - 4).collect()).collect();
    let ciphertexts = encrypt(keys, "inputs", &counts, 5);
    let (mut tournament, mut pairs) = ([const { Vec::new() }; 3], [const { Vec::new() }; 3]);
    for (values, counts) in ciphertexts.iter().zip(&counts) {
        let switched = engine.at_scales(values);
        let leads: Vec<Lwe> = values.as_chunks::<2>().0.iter().map(|[a, b]| difference(b, a)).collect();
        for (k, lead) in engine.at_scales(&leads).chunks_exact(3).enumerate() {
            for scale in 0..3 {
                let d = counts[2 * k + 1] - counts[2 * k];
                let expected = engine.layout.value(d).wrapping_mul(scales[scale]);
                tournament[scale].push(error_in_buckets(keys, &lead[scale], expected));
                let pair = difference(&switched[3 * (2 * k + 1) + scale], &switched[3 * 2 * k + scale]);
                pairs[scale].push(error_in_buckets(keys, &pair, expected));
            }
        }
    }
    for scale in 0..3 {
        assert_noise("match", &tournament[scale], model.match_input(scales[scale], 0));
        assert_noise("pair", &pairs[scale], model.pair_input(scales[scale]));
    }
}

/// Checks the noise of selections, of sums of signs, and at the inputs of the bootstraps that read them.
fn assert_selection_noise(keys: &Keys, queries: usize) {
    let (mut engine, model) = engine(keys, 16, 3);
    let counts: Vec<Vec<i64>> = (0..queries as i64).map(|q| vec![q % 7, q % 5]).collect();
    let pairs = encrypt(keys, "winner", &counts, 3);
    let brackets: Vec<Vec<[Lwe; 2]>> =
        pairs.iter().map(|pair| (0..2).map(|k| contestant(&engine, &pair[k], 9 * k)).collect()).collect();
    let (mut count, mut digit) = (vec![], vec![]);
    for (winner, counts) in engine.play_round(brackets).iter().zip(&counts) {
        let class = usize::from(counts[1] > counts[0]);
        count.push(error(keys, &winner[0][0], engine.layout.value(counts[class])));
        digit.push(error(keys, &winner[0][1], digit_code(9 * class)));
    }
    // The errors of all selections share the part that depends on the key only; the mean is tested with the rest.
    assert_noise("selected counts", &count, model.selection() + model.fresh_sum());
    assert_noise("selected digits", &digit, model.selection());

    let leads: Vec<Lwe> = pairs.iter().map(|pair| difference(&pair[1], &pair[0])).collect();
    let scaled = engine.at_scales(&leads);
    let signs = engine.compare(scaled);
    let scales = engine.layout.scales().len();
    let coarse = |sum: &Lwe| phase(keys, sum).wrapping_add(SUM_STEP / 2) / SUM_STEP * SUM_STEP;
    let fine: Vec<f64> = signs.iter().map(|sum| error(keys, sum, coarse(sum))).collect();
    assert_noise("sums of signs", &fine, scales as f64 * model.bootstrap(keys.public.parameters().bootstrap));
    let inputs = engine.key_switch(&signs);
    let switched: Vec<f64> =
        inputs.iter().zip(&signs).map(|(input, sum)| error_in_buckets(keys, input, coarse(sum))).collect();
    assert_noise("inputs of a selection", &switched, model.sum_input(scales));
}

#[test]
fn noise_of_a_selection_follows_the_formula() {
    assert_selection_noise(keys(), draws(40));
    assert_selection_noise(wide_keys(), draws(20));
}

#[test]
fn numbers_of_two_digits_are_split_and_their_noise_follows_the_formula() {
    let keys = keys();
    let (mut engine, model) = engine(keys, 128, 1);
    let zeros = encrypt(keys, "numbers", &vec![vec![0; 128]; draws(1)], 1);
    let mut numbers: Vec<Lwe> = zeros.concat();
    let class = |position: usize| position % 128;
    (0..).zip(&mut numbers).for_each(|(k, number)| add_constant(number, engine.layout.number(class(k))));
    let (mut low, mut high) = (vec![], vec![]);
    for (k, digits) in engine.digits(numbers).iter().enumerate() {
        let codes: Vec<u64> = engine.layout.digits(class(k)).collect();
        low.push(error(keys, &digits[0], codes[0]));
        high.push(error(keys, &digits[1], codes[1]));
    }
    let bootstraps = 2.0 * model.bootstrap(P.select);
    assert_noise("low digits", &low, bootstraps);
    assert_noise("high digits", &high, model.fresh_sum() + bootstraps);
}

#[test]
fn noise_of_a_read_out_follows_the_formula() {
    let keys = keys();
    let (mut engine, model) = engine(keys, 16, 1);
    let zeros = encrypt(keys, "read-out", &vec![vec![0; 16]; draws(4)], 1);
    let mut digits: Vec<Lwe> = zeros.concat();
    let code = |position: usize| digit_code(position % 16);
    (0..).zip(&mut digits).for_each(|(position, digit)| add_constant(digit, code(position)));
    let inputs = engine.key_switch(&digits);
    let input: Vec<f64> = (0..).zip(&inputs).map(|(k, input)| error_in_buckets(keys, input, code(k))).collect();
    assert_noise("input", &input, model.read_out_input(model.fresh_sum()));
    for _ in 0..READ_OUTS {
        digits = engine.read_out(&digits);
    }
    let output: Vec<f64> = (0..).zip(&digits).map(|(position, digit)| error(keys, digit, code(position))).collect();
    assert_noise("output", &output, model.bootstrap(P.select));
}

#[test]
fn packing_puts_two_messages_in_their_places_and_nothing_elsewhere() {
    let keys = keys();
    let (mut engine, _) = engine(keys, 10, 1);
    let values = encrypt(keys, "packing", &[vec![5, -3, 0]], 1).remove(0);
    for second in [None, Some(&values[1])] {
        let packed = engine.pack(&values[0], second);
        for place in [0, 1, 2, 511, 1023, 1024, 1025, 2047] {
            let mut coefficient = engine.constant(0);
            extract_lwe_sample_from_glwe_ciphertext(&packed, &mut coefficient, MonomialDegree(place));
            let expected = match (place, second) {
                (0, _) => engine.layout.value(5),
                (1024, Some(_)) => engine.layout.value(-3),
                _ => 0,
            };
            let error = error(keys, &coefficient, expected);
            assert!(error.abs() < 2_f64.powi(44), "coefficient {place}: off by {error}");
        }
    }
}

#[test]
fn noise_of_a_sum_of_public_key_encryptions_stays_below_the_formula() {
    // The bias depends on the key, of which there is one draw, so this is an upper bound, at 5 standard deviations.
    let keys = keys();
    let teachers = 250;
    let sums = encrypt(keys, "fresh", &vec![vec![0; 10]; 20], teachers);
    let bound = 5.0 * engine(keys, 10, teachers).1.fresh_sum().sqrt();
    for ciphertext in sums.iter().flatten() {
        let error = error(keys, ciphertext, 0);
        assert!(error.abs() < bound, "error {error}, bound {bound}");
    }
}

#[test]
fn both_circuits_give_the_same_digits() {
    // At seven standard deviations of the formula, a false alarm for one seed in 10^10.
    let keys = keys();
    for (counts, class) in [(vec![5, 9, 9], 1), (vec![-1, -2, -3], 0), ((0..17).map(|k| k * k % 17).collect(), 4)] {
        let (mut engine, model) = engine(keys, counts.len(), 1);
        let ciphertexts = encrypt(keys, "digits", &[counts], 1);
        for circuit in ExactCircuit::ALL {
            let digits = engine.argmax(circuit, &ciphertexts).remove(0);
            assert_eq!(digits.len(), engine.layout.digit_count());
            for ((digit, code), variance) in digits.iter().zip(engine.layout.digits(class)).zip(model.digits(circuit)) {
                let (error, bound) = (error(keys, digit, code), 7.0 * variance.sqrt());
                assert!(error.abs() < bound, "{circuit:?}: error {error}, bound {bound}");
            }
        }
    }
}

#[test]
fn flooding_noise_is_uniform() {
    // Kolmogorov-Smirnov: for uniform errors, a distance of 2.4 / sqrt(n) or more has probability 2 exp(-2 * 2.4^2), a
    // false alarm for one in 50,000 seeds.
    let keys = keys();
    let round = round("flooding", 1, 1, 2, 0);
    let server = Server::new(keys.evaluation.clone(), round).expect("valid").with_randomness(SOURCE);
    for (stage, log) in [(0, P.read_out_flooding_log), (READ_OUTS, P.flooding_log)] {
        let reach = 2_f64.powi(log as i32);
        let mut positions: Vec<f64> = (0..300)
            .map(|query| {
                let zero = server.encrypted_zero(query, 0, stage).expect("a simulation needs no entropy");
                (error(keys, &zero, 0) / reach + 1.0) / 2.0
            })
            .collect();
        positions.sort_by(f64::total_cmp);
        let n = positions.len() as f64;
        let distance = (1..).zip(&positions).map(|(i, x)| (f64::from(i) / n - x).abs()).fold(0.0, f64::max);
        // The public-key noise of about 2^22 may exceed the edge by that much.
        assert!(positions[0] > -1e-9 && positions[positions.len() - 1] < 1.0 + 1e-9);
        assert!(distance < 2.4 / n.sqrt(), "distance {distance}");
    }
}

#[test]
fn an_answer_does_not_reveal_the_losing_count() {
    // The error of a digit after the read-outs, before any flooding, from a clear win and from a close one. Two-sample
    // Kolmogorov-Smirnov: for equal distributions a distance of 2.7 sqrt(2 / n) or more has probability below 1e-6.
    let keys = keys();
    let range = VoteRange::new(13, 0);
    let layout = Layout::new(&P, 2, range).expect("one scale");
    let mut engine = Engine::new(&keys.evaluation, layout);
    let n = draws(60);
    let mut errors = |label: &str, counts: [i64; 2]| {
        let round = round(label, 1, n, 2, 6);
        let mut server = Server::new(keys.evaluation.clone(), round.clone()).expect("valid");
        let message = Teacher::new(0).answer(&keys.public, &round, &counts.repeat(n), &SOURCE).expect("valid");
        server.add(&message).expect("valid");
        let queries: Vec<Vec<Lwe>> = (0..n).map(|query| server.counts(query)).collect();
        let mut digits = engine.argmax(ExactCircuit::Tournament, &queries).concat();
        for _ in 0..READ_OUTS {
            digits = engine.read_out(&digits);
        }
        let mut errors: Vec<f64> = digits.iter().map(|digit| error(keys, digit, digit_code(1))).collect();
        errors.sort_by(f64::total_cmp);
        errors
    };
    let (clear, close) = (errors("clear", [0, 13]), errors("close", [12, 13]));
    let below = |errors: &[f64], x: f64| errors.partition_point(|&e| e <= x) as f64 / n as f64;
    let distance = clear.iter().chain(&close).map(|&x| (below(&clear, x) - below(&close, x)).abs()).fold(0.0, f64::max);
    assert!(distance < 2.7 * (2.0 / n as f64).sqrt(), "distance {distance}");
}
