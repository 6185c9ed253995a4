//! The comparator on chosen differences, and the noise of every step against its formula. Keys are simulated with a
//! fixed seed, so each statistical test gives the same verdict in every run; the stated rates are those over seeds.

use std::sync::OnceLock;

use tfhe::core_crypto::prelude::*;

use super::Circuit;
use super::engine::{Engine, Lwe, Switched, add_constant, difference};
use crate::keys::{KeySet, generate_with_small_key};
use crate::noise::NoiseModel;
use crate::parameters::Parameters;
use crate::random::KeySource;
use crate::range::{Encoding, VoteRange};
use crate::round::Round;
use crate::server::Server;
use crate::teacher::Teacher;

const P: Parameters = Parameters::TOURNAMENT_128;
const SOURCE: KeySource = KeySource::Simulation([3; 32]);

fn keys() -> &'static (KeySet, LweSecretKeyOwned<u64>) {
    static KEYS: OnceLock<(KeySet, LweSecretKeyOwned<u64>)> = OnceLock::new();
    KEYS.get_or_init(|| generate_with_small_key(&P, &SOURCE).expect("a simulation needs no entropy"))
}

fn engine(classes: usize) -> Engine<'static> {
    let encoding = Encoding::new(&P, classes, VoteRange::new(1, 0)).expect("valid");
    Engine::new(&keys().0.evaluation, encoding)
}

/// Encrypts the rows of counts under the public key, as `teachers` teachers would, and sums.
fn encrypt(label: &str, counts: &[Vec<i64>], teachers: usize) -> Vec<Vec<Lwe>> {
    let keys = &keys().0;
    let round = Round::new(label.as_bytes(), counts.len(), counts[0].len(), teachers, 0).expect("valid");
    let mut server = Server::new(keys.evaluation.clone(), round.clone()).expect("valid");
    for teacher in 0..teachers {
        // The first sends all counts, the others zero.
        let values: Vec<i64> = counts.iter().flatten().map(|&x| if teacher == 0 { x } else { 0 }).collect();
        let message = Teacher::new(teacher).answer(&keys.public, &round, &values, &SOURCE).expect("valid");
        server.add(teacher, &message).expect("valid");
    }
    (0..counts.len()).map(|query| server.counts(query)).collect()
}

fn phase(ciphertext: &Lwe) -> u64 {
    decrypt_lwe_ciphertext(&keys().0.secret.big, ciphertext).0
}

/// The phase in buckets that a bootstrap sees, relative to `expected` (torus units).
fn error_in_buckets(small: &Lwe, expected: u64) -> f64 {
    let mut input = small.clone();
    add_constant(&mut input, expected.wrapping_neg());
    // Masks are untouched, so rounding errors are those of the real input; the body is moved by whole torus units.
    let switched = Switched::new(&P, &input);
    let key = keys().1.as_ref();
    let selected: usize = switched.mask.iter().zip(key).filter(|(_, key)| **key == 1).map(|(mask, _)| mask).sum();
    let turned = (switched.body + 4096 * 1024 - selected) % 4096;
    // Entry i of a table stands for phases from i to i + 1.
    let centred = if turned >= 2048 { turned as f64 - 4096.0 } else { turned as f64 };
    centred + 0.5
}

/// Fails if mean or variance of `errors` differ from 0 and `variance` by more than 5 of their standard deviations: for
/// Gaussian errors of that variance, a false alarm once in 800,000 seeds.
fn assert_noise(what: &str, errors: &[f64], variance: f64) {
    let n = errors.len() as f64;
    let mean = errors.iter().sum::<f64>() / n;
    let measured = errors.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let ratio = measured / variance;
    assert!(mean.abs() < 5.0 * (variance / n).sqrt(), "{what}: mean {mean}, standard deviation {}", variance.sqrt());
    assert!(
        (ratio - 1.0).abs() < 5.0 * (2.0 / (n - 1.0)).sqrt(),
        "{what}: measured variance is {ratio} of the formula"
    );
}

#[test]
fn a_match_is_right_for_differences_around_zero_every_scale_boundary_and_the_range() {
    let mut engine = engine(16);
    // 13 and 14: the finest scale wraps around; 185 to 196: the middle one; 2544: end of the range.
    let magnitudes = [0, 1, 2, 7, 8, 13, 14, 15, 27, 28, 93, 94, 185, 190, 191, 196, 198, 409, 1500, 2543, 2544];
    let differences: Vec<i64> = magnitudes.iter().flat_map(|&d| [d, -d]).collect();
    let counts: Vec<Vec<i64>> = differences.iter().map(|d| vec![-d / 2, d - d / 2]).collect();
    for (query, (d, pair)) in differences.iter().zip(encrypt("sweep", &counts, 2)).enumerate() {
        let (mut earlier, mut later) = (pair[0].clone(), pair[1].clone());
        // Any two indices: they must not disturb the comparison.
        let indices = (query % 15, 15 - query % 3);
        add_constant(&mut earlier, engine.encoding.index(indices.0));
        add_constant(&mut later, engine.encoding.index(indices.1));
        let winner = engine.play_round(&[earlier, later]).remove(0);
        let (index, value) = if *d > 0 { (indices.1, counts[query][1]) } else { (indices.0, counts[query][0]) };
        let expected = engine.encoding.index(index).wrapping_add(engine.encoding.value(value));
        let error = phase(&winner).wrapping_sub(expected).cast_signed();
        assert!(error.unsigned_abs() < 1 << 44, "difference {d}: off by {error}");
    }
}

#[test]
fn noise_at_the_inputs_of_a_comparison_follows_the_formula() {
    let engine = engine(10);
    let model = NoiseModel::new(&P);
    let counts: Vec<Vec<i64>> = (0..40).map(|q| (0..10).map(|k| (q * 10 + k) * 7 % 9 - 4).collect()).collect();
    let ciphertexts = encrypt("inputs", &counts, 5);
    let (mut tournament, mut pairs) = ([const { Vec::new() }; 3], [const { Vec::new() }; 3]);
    for (values, counts) in ciphertexts.iter().zip(&counts) {
        let switched = engine.at_scales(values);
        let leads: Vec<Lwe> = values.as_chunks::<2>().0.iter().map(|[a, b]| difference(b, a)).collect();
        for (k, lead) in engine.at_scales(&leads).chunks_exact(3).enumerate() {
            for scale in 0..3 {
                let d = counts[2 * k + 1] - counts[2 * k];
                let expected = engine.encoding.value(d).wrapping_mul(P.scales[scale]);
                tournament[scale].push(error_in_buckets(&lead[scale], expected));
                let pair = difference(&switched[3 * (2 * k + 1) + scale], &switched[3 * 2 * k + scale]);
                pairs[scale].push(error_in_buckets(&pair, expected));
            }
        }
    }
    for scale in 0..3 {
        assert_noise("match", &tournament[scale], model.match_input(P.scales[scale], 0, 5));
        assert_noise("pair", &pairs[scale], model.pair_input(P.scales[scale], 5));
    }
}

#[test]
fn noise_of_a_winner_and_of_an_answer_follow_the_formula() {
    let mut engine = engine(2);
    let model = NoiseModel::new(&P);
    let counts: Vec<Vec<i64>> = (0..60).map(|q| vec![q % 7, q % 5]).collect();
    let (mut selection, mut fine, mut combination, mut read_out) = (vec![], vec![], vec![], vec![]);
    for (values, counts) in encrypt("winner", &counts, 3).iter().zip(&counts) {
        let winner = engine.play_round(values);
        let value = *counts.iter().max().expect("not empty");
        selection.push(phase(&winner[0]).wrapping_sub(engine.encoding.value(value)).cast_signed() as f64);
        read_out.push(error_in_buckets(&engine.key_switch(&winner)[0], engine.encoding.value(value)));

        let lead = engine.at_scales(&[difference(&values[1], &values[0])]);
        let signs = engine.compare(lead);
        let coarse = phase(&signs[0]).wrapping_add(1 << 58) >> 59 << 59;
        combination.push(error_in_buckets(&engine.key_switch(&signs)[0], coarse));
        fine.push(phase(&signs[0]).wrapping_sub(coarse).cast_signed() as f64);
    }
    // The errors of all selections share what depends on the key only; the mean is tested with the rest.
    assert_noise("selection", &selection, model.selection() + model.fresh_sum(3));
    assert_noise("three signs", &fine, 3.0 * model.bootstrap(P.bootstrap));
    assert_noise("combination", &combination, model.combination_input());
    assert_noise("read-out", &read_out, model.read_out_input(1, 3));
}

#[test]
fn noise_of_a_sum_of_public_key_encryptions_stays_below_the_formula() {
    // The bias depends on the key, one draw: so an upper bound, at 5 standard deviations.
    let teachers = 250;
    let counts = vec![vec![0; 10]; 20];
    let sums = encrypt("fresh", &counts, teachers);
    let bound = 5.0 * NoiseModel::new(&P).fresh_sum(teachers).sqrt();
    for ciphertext in sums.iter().flatten() {
        let error = phase(ciphertext).cast_signed() as f64;
        assert!(error.abs() < bound, "error {error}, bound {bound}");
    }
}

#[test]
fn both_circuits_write_a_clean_code() {
    // Before flooding, the answer is the code up to the noise of fine bootstraps: 2^44 is 64 standard deviations.
    let mut engine = engine(3);
    let counts = vec![vec![5, 9, 9], vec![-1, -2, -3]];
    for (values, class) in encrypt("code", &counts, 1).iter().zip([1, 0]) {
        for circuit in [Circuit::Tournament, Circuit::AllPairs] {
            let answer = engine.argmax(circuit, values);
            let error = phase(&answer).wrapping_sub(engine.encoding.answer_code(class)).cast_signed();
            assert!(error.unsigned_abs() < 1 << 44, "{circuit:?}: error {error}");
        }
    }
}

#[test]
fn flooding_noise_is_uniform_up_to_half_a_slot() {
    // Kolmogorov-Smirnov: for uniform errors, a distance of 2.4 / sqrt(n) or more has probability 2 exp(-2 * 2.4^2),
    // a false alarm once in 50,000 seeds.
    let keys = &keys().0;
    let round = Round::new(b"flooding", 1, 2, 1, 0).expect("valid");
    let server = Server::new(keys.evaluation.clone(), round).expect("valid").with_source(SOURCE);
    let reach = 2_f64.powi(58);
    let mut positions: Vec<f64> = (0..300)
        .map(|query| {
            let zero = server.encrypted_zero(query).expect("a simulation needs no entropy");
            (phase(&zero).cast_signed() as f64 / reach + 1.0) / 2.0
        })
        .collect();
    positions.sort_by(f64::total_cmp);
    let n = positions.len() as f64;
    let distance = (1..).zip(&positions).map(|(i, x)| (f64::from(i) / n - x).abs()).fold(0.0, f64::max);
    // The public-key noise under it, about 2^22, may reach beyond the edge by that much.
    assert!(positions[0] > -1e-9 && positions[positions.len() - 1] < 1.0 + 1e-9);
    assert!(distance < 2.4 / n.sqrt(), "distance {distance}");
}
