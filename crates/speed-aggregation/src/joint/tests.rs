//! Tests of shares and parts on answers with chosen outcomes and errors.

use speed_core::{Digest, Randomness, VoteShape};

use super::{OpenerShare, OpeningPart, PartError, StudentShare};
use crate::answer::AnswerList;
use crate::answer::{EncryptedAnswer, OpenError, WORDS};
use crate::codec::DecodeError;
use crate::ids::KeyId;
use crate::outcome::Outcome;
use crate::parameters::Parameters;
use crate::random::uniform_words;
use crate::round::{Round, RoundKind, RoundSpec};
use crate::signature::Signature;
use crate::student::SecretKey;

const P: Parameters = Parameters::TOURNAMENT_128;

fn words(seed: u64, purpose: &str, count: usize) -> Vec<u64> {
    let source = Randomness::simulation([5; 32]);
    uniform_words(&source, (b"tests", purpose, &seed.to_le_bytes()), count).expect("a simulation").to_vec()
}

fn key(seed: u64) -> SecretKey {
    let bits = words(seed, "key", P.polynomial_size).into_iter().map(|word| word >> 63).collect();
    SecretKey::from_bits(P, KeyId::new(Digest::of(seed.to_le_bytes())), bits)
}

fn evaluation_key() -> Digest {
    Digest::of(b"an evaluation key")
}

fn simulation(seed: u64) -> Randomness {
    let mut key = [9; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    Randomness::simulation(key)
}

fn sign(digest: Digest) -> Signature {
    Signature::from_bytes(std::array::from_fn(|i| digest.as_bytes()[i % 32]))
}

fn round(queries: usize, classes: usize, threshold: Option<i64>, kind: RoundKind) -> Round {
    let shape = VoteShape::new(3, queries, classes).expect("a shape");
    Round::new(RoundSpec { threshold, kind, ..RoundSpec::new(b"joint", shape, 20) }).expect("valid")
}

/// Returns a list whose answer to each query has this outcome, with this error in every digit.
fn list(key: &SecretKey, round: &Round, answers: &[(Outcome, i64)]) -> AnswerList {
    let (outcomes, id) = (round.outcomes(), key.id());
    let answer = |query: usize, (outcome, error): (Outcome, i64)| {
        let code = outcomes.code(outcome);
        let digit = |place: usize| {
            let mut words = words((query * 2 + place) as u64, "mask", WORDS);
            let product =
                key.big.as_ref().iter().zip(&words).fold(0, |sum: u64, (bit, mask)| sum.wrapping_add(bit * mask));
            let plaintext = (2 * (code >> (4 * place) & 15) as u64 + 1) << 59;
            words[WORDS - 1] = product.wrapping_add(plaintext).wrapping_add(error.cast_unsigned());
            words
        };
        EncryptedAnswer::new(id, round.id(id), query, outcomes, (0..outcomes.digits()).flat_map(digit).collect())
    };
    let answers: Vec<_> = answers.iter().enumerate().map(|(query, given)| answer(query, *given)).collect();
    AnswerList::new(round, id, vec![crate::status::TeacherStatus::Counted; 3], &answers).expect("in order")
}

fn part(opener: &OpenerShare, list: &AnswerList) -> OpeningPart {
    opener.part(list, (Digest::of(list.to_bytes()), 1), sign).expect("of this key")
}

#[test]
fn the_sum_of_the_shares_is_the_key() {
    for (seed, source) in [(1, simulation(1)), (2, Randomness::OperatingSystem)] {
        let key = key(seed);
        let (student, opener) = key.split(evaluation_key(), &source).expect("entropy");
        let sums = student.words().iter().zip(opener.words()).map(|(a, b)| a.wrapping_add(*b));
        assert!(sums.eq(key.big.as_ref().iter().copied()));
        assert_eq!((student.id(), opener.id()), (key.id(), key.id()));
        assert_eq!((student.evaluation_key(), opener.evaluation_key()), (evaluation_key(), evaluation_key()));
        let again = key.split(evaluation_key(), &source).expect("entropy");
        assert_eq!(again.0.words() == student.words(), source.is_simulation());
    }
}

/// Returns the statistic of Pearson's test that these digits are uniform: about 15 for uniform ones, with deviation 5.5.
fn chi_square(digits: impl Iterator<Item = usize>) -> f64 {
    let mut counts = [0.0_f64; 16];
    digits.for_each(|digit| counts[digit] += 1.0);
    let expected = counts.iter().sum::<f64>() / 16.0;
    counts.iter().map(|count| (count - expected).powi(2) / expected).sum()
}

#[test]
fn each_share_alone_finds_a_uniform_digit_for_every_outcome() {
    let key = key(3);
    let round = round(2, 10, None, RoundKind::Labels);
    let list = list(&key, &round, &[(Outcome::Label(0), 0), (Outcome::Label(7), 0)]);
    // The outcome that a key of these words decrypts.
    let digit = |share: &[u64], answer: &EncryptedAnswer| {
        let product = share.iter().zip(&answer.words).fold(0_u64, |sum, (a, b)| sum.wrapping_add(a.wrapping_mul(*b)));
        (answer.words[WORDS - 1].wrapping_sub(product) >> 60) as usize
    };
    let splits: Vec<_> =
        (0..2_000).map(|seed| key.split(evaluation_key(), &simulation(seed)).expect("a simulation")).collect();
    for answer in list.answers() {
        let student = chi_square(splits.iter().map(|(student, _)| digit(student.words(), &answer)));
        let opener = chi_square(splits.iter().map(|(_, opener)| digit(opener.words(), &answer)));
        // A uniform digit exceeds 50 with probability 10^-5. The complete key gives the same digit each time.
        assert!(student < 50.0 && opener < 50.0, "{student} {opener}");
        let whole = chi_square(splits.iter().map(|_| digit(key.big.as_ref(), &answer)));
        assert!(whole > 20_000.0, "{whole}");
    }
    // A share fits every key: for any other key there is a share of the other party, so it excludes none.
    let (student, opener) = &splits[0];
    let other = self::key(4);
    let rest: Vec<u64> =
        other.big.as_ref().iter().zip(student.words()).map(|(bit, share)| bit.wrapping_sub(*share)).collect();
    assert_eq!(rest.len(), opener.words().len());
    let bits = |words: &[u64]| {
        (0..64).map(|place| words.iter().filter(|word| *word >> place & 1 == 1).count()).collect::<Vec<_>>()
    };
    for count in bits(&rest).into_iter().chain(bits(opener.words())) {
        // 1024 expected, deviation 22.6.
        assert!((900..1150).contains(&count), "{count}");
    }
}

#[test]
fn a_joint_opening_gives_the_outcome_of_the_key_at_the_ends_of_all_errors() {
    let key = key(6);
    let (student, opener) = key.split(evaluation_key(), &simulation(6)).expect("a simulation");
    // The server's flooding at its end, and a ciphertext error that is still less than the opener's flooding.
    let end = (1_i64 << 58) + (1 << 57) - 1;
    for (classes, threshold, kind) in [
        (2, None, RoundKind::Labels),
        (10, Some(2), RoundKind::Labels),
        (16, None, RoundKind::Labels),
        (16, Some(1), RoundKind::Labels),
        (127, Some(1), RoundKind::Labels),
        (128, None, RoundKind::Labels),
        (10, Some(2), RoundKind::Check),
    ] {
        let outcomes = round(1, classes, threshold, kind).outcomes();
        let all: Vec<Outcome> = (0..outcomes.count()).filter_map(|code| outcomes.from_code(code)).collect();
        for error in [-end, 0, end] {
            let answers: Vec<_> = all.iter().map(|outcome| (*outcome, error)).collect();
            let list = list(&key, &round(all.len(), classes, threshold, kind), &answers);
            let part = part(&opener, &list);
            for (answer, expected) in list.answers().zip(&all) {
                assert_eq!(student.open(&answer, &part), Ok(*expected), "{classes} {threshold:?} {error}");
                assert_eq!(key.open(&answer), Ok(*expected));
            }
        }
    }
}

#[test]
fn a_part_is_the_product_and_uniform_flooding() {
    let key = key(8);
    let (_, opener) = key.split(evaluation_key(), &simulation(8)).expect("a simulation");
    let queries = 4_000;
    let of_label =
        |label| list(&key, &round(queries, 3, None, RoundKind::Labels), &vec![(Outcome::Label(label), 0); queries]);
    let (results, others) = (of_label(2), of_label(1));
    let flooding = |opener: &OpenerShare, list: &AnswerList, result: &[u8]| -> Vec<i64> {
        let part = opener.part(list, (Digest::of(result), 1), sign).expect("of this key");
        let ciphertexts = list.words().chunks_exact(WORDS).zip(part.words());
        let product = |ciphertext: &[u64]| {
            opener.words().iter().zip(ciphertext).fold(0_u64, |sum, (a, b)| sum.wrapping_add(a.wrapping_mul(*b)))
        };
        ciphertexts.map(|(ciphertext, word)| word.wrapping_sub(product(ciphertext)).cast_signed()).collect()
    };
    let mut drawn = flooding(&opener, &results, b"result");
    // The parts of the same ciphertexts are the same, in every result, so their mean shows no more than one of them.
    assert_eq!(drawn, flooding(&opener, &results, b"another result"));
    // Other ciphertexts and other shares have independent flooding.
    let (_, other) = key.split(evaluation_key(), &simulation(9)).expect("a simulation");
    for other in [flooding(&opener, &others, b"result"), flooding(&other, &results, b"result")] {
        let pairs = drawn.iter().zip(&other).map(|(a, b)| (*a as f64 / 2_f64.powi(57)) * (*b as f64 / 2_f64.powi(57)));
        // The product of two uniform numbers on [-1, 1) has the deviation 1/3: beyond 4.5 deviations with probability 7e-6.
        let mean = pairs.sum::<f64>() / queries as f64;
        assert!(mean.abs() < 4.5 / 3.0 / (queries as f64).sqrt(), "{mean}");
    }
    drawn.sort_unstable();
    let (least, length) = (-2_f64.powi(57), 2_f64.powi(58));
    assert!(drawn[0] >= -(1 << 57) && drawn[queries - 1] < 1 << 57);
    // Kolmogorov-Smirnov: a uniform sample exceeds 2.0 with probability 7e-4.
    let places =
        drawn.iter().enumerate().map(|(i, e)| ((*e as f64 - least) / length - i as f64 / queries as f64).abs());
    let statistic = places.fold(0.0, f64::max) * (queries as f64).sqrt();
    assert!(statistic < 2.0, "{statistic}");
}

#[test]
fn shares_and_parts_of_others_are_refused() {
    let (key, other) = (key(10), key(11));
    let (student, opener) = key.split(evaluation_key(), &simulation(10)).expect("a simulation");
    let (stranger, strange_opener) = other.split(evaluation_key(), &simulation(11)).expect("a simulation");
    let list = list(&key, &round(2, 3, None, RoundKind::Labels), &[(Outcome::Label(0), 0), (Outcome::Label(1), 0)]);
    let made = part(&opener, &list);
    let refused = strange_opener.part(&list, (Digest::of(b""), 0), sign);
    assert_eq!(refused, Err(PartError { expected: other.id(), found: key.id() }));
    let answer = list.answers().nth(1).expect("two");
    assert_eq!(stranger.open(&answer, &made), Err(OpenError::Key { expected: other.id(), found: key.id() }));
    let short = OpeningPart::new((made.round(), made.result()), 1, made.words()[..1].to_vec(), sign);
    assert_eq!(student.open(&answer, &short), Err(OpenError::Part { query: 1 }));
    assert_eq!(student.open(&list.answers().next().expect("one"), &short), Ok(Outcome::Label(0)));

    // Every signed field changes the digest.
    let digest = |round, result, teacher, words: &[u64]| {
        OpeningPart::new((round, result), teacher, words.to_vec(), sign).signed().0
    };
    let (round, result, words) = (made.round(), made.result(), made.words());
    assert_eq!(digest(round, result, 1, words), made.signed().0);
    let mut changed = words.to_vec();
    changed[1] ^= 1;
    for other in [
        digest(crate::ids::RoundId::new(Digest::of(b"other")), result, 1, words),
        digest(round, Digest::of(b"other"), 1, words),
        digest(round, result, 2, words),
        digest(round, result, 1, &changed),
        digest(round, result, 1, &words[..1]),
    ] {
        assert_ne!(other, made.signed().0);
    }

    // Roles are kinds of files.
    let kind = |expected, found| Some(DecodeError::Kind { expected, found });
    assert_eq!(StudentShare::from_bytes(&opener.to_bytes()).err(), kind(15, 16));
    assert_eq!(OpenerShare::from_bytes(&student.to_bytes()).err(), kind(16, 15));
    assert_eq!(StudentShare::from_bytes(&key.to_bytes()).err(), kind(15, 5));
    assert_eq!(SecretKey::from_bytes(&student.to_bytes()).err(), kind(5, 15));
    assert!(!format!("{student:?} {opener:?} {made:?}").contains(&student.words()[0].to_string()));
}
