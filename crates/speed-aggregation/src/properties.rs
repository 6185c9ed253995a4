//! Property tests of every wire format: each value survives a round trip and has its stated length, and any truncation
//! or flipped bit is detected. (Evaluation keys of 103 MB are covered in `tests/protocol` and in `tests/roles`
//! of `speed-round`.)

use proptest::prelude::*;
use speed_core::{Digest, NoisePlacement, Randomness, RandomnessKind, VoteShape};
use tfhe::core_crypto::prelude::{CiphertextModulus, LweCiphertextCount, LweCompactCiphertextListOwned, LweDimension};

use crate::answer::AnswerList;
use crate::answer::{EncryptedAnswer, WORDS};
use crate::answer_seed::AnswerSeed;
use crate::codec::{Content, DecodeError};
use crate::exact_circuit::ExactCircuit;
use crate::ids::KeyId;
use crate::joint::{OpenerShare, OpeningPart, StudentShare};
use crate::keys::PublicKey;
use crate::message::{Message, list_words};
use crate::parameters::Parameters;
use crate::round::{Round, RoundSpec};
use crate::round_log::{LogEntry, LogEvent, Receipt, RoundLog};
use crate::signature::Signature;
use crate::status::TeacherStatus;
use crate::student::SecretKey;
use crate::submission::{SignedResult, Submission};
use crate::verification::{RevealedSeed, Verification};

/// Returns words that look random and are determined by a seed: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
fn words(count: usize, seed: u64) -> Vec<u64> {
    let mixed = |state: u64| {
        let word = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    };
    (1..=count as u64).map(|i| mixed(seed.wrapping_add(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)))).collect()
}

fn key(seed: u64) -> KeyId {
    KeyId::new(Digest::of(seed.to_le_bytes()))
}

prop_compose! {
    /// Generates a round of any kind, small enough for many cases.
    fn rounds()(teachers in 1_usize..40, queries in 1_usize..4, classes in 2_usize..128, terms in any::<[bool; 3]>()) -> Round {
        let shape = VoteShape::new(teachers, queries, classes).expect("a shape");
        let [threshold, central, simulation] = terms;
        Round::new(RoundSpec {
            threshold: threshold.then_some(1),
            placement: if central { NoisePlacement::Central } else { NoisePlacement::Distributed },
            randomness: if simulation { RandomnessKind::Simulation } else { RandomnessKind::OperatingSystem },
            ..RoundSpec::new(b"properties", shape, 20)
        })
        .expect("valid")
    }
}

/// Returns bytes of the form of a signature.
fn sign(digest: Digest) -> Signature {
    Signature::from_bytes(std::array::from_fn(|i| digest.as_bytes()[i % 32]))
}

/// Returns a position in a file, given as a fraction of its length.
fn place(bytes: &[u8], fraction: f64) -> usize {
    ((bytes.len() as f64 * fraction) as usize).min(bytes.len() - 1)
}

/// Checks the encoding of a value: `decode` returns the value, and refuses bytes that are truncated or have a flipped
/// bit at any position.
fn check<T: Content>(
    value: &T,
    decode: impl Fn(&[u8]) -> Result<T, DecodeError>,
    (cut, turned, bit): (f64, f64, u8),
) -> Result<(), TestCaseError> {
    let bytes = value.seal();
    prop_assert_eq!(bytes.len(), crate::codec::ENVELOPE + value.encoded_len());
    let read = decode(&bytes);
    prop_assert!(read.is_ok_and(|read| read.seal() == bytes));
    prop_assert!(decode(&bytes[..place(&bytes, cut)]).is_err());
    let mut damaged = bytes.clone();
    damaged[place(&bytes, turned)] ^= 1 << bit;
    prop_assert!(decode(&damaged).is_err());
    // The first bytes, which contain everything except ciphertexts.
    let start = place(&bytes[..bytes.len().min(128)], turned);
    prop_assert!(decode(&bytes[..start]).is_err());
    let mut damaged = bytes.clone();
    damaged[start] ^= 1 << bit;
    prop_assert!(decode(&damaged).is_err());
    prop_assert!(decode(&[bytes, vec![0]].concat()).is_err());
    Ok(())
}

/// Returns the number of cases: a few in every run, or the number in `PROPTEST_CASES`.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(24)
}

fn damage() -> impl Strategy<Value = (f64, f64, u8)> {
    (0.0..1.0, 0.0..1.0, 0_u8..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn messages(round in rounds(), seed: u64, teacher in 0_usize..1 << 20, damage in damage()) {
        let dimension = LweDimension(Parameters::TOURNAMENT_128.polynomial_size);
        let list = LweCompactCiphertextListOwned::from_container(
            words(list_words(round.values()), seed),
            dimension.to_lwe_size(),
            LweCiphertextCount(round.values()),
            CiphertextModulus::new_native(),
        );
        let message = Message::new(key(seed), &round, teacher, list);
        prop_assert_eq!(message.to_bytes().len(), Message::size(round.shape().queries(), round.shape().classes()));
        check(&message, Message::from_bytes, damage)?;
        let submission = Submission::new(message, vec![seed as u8; seed as usize % 3000], sign);
        check(&submission, Submission::from_bytes, damage)?;
    }

    #[test]
    fn answers_and_results(round in rounds(), seed: u64, damage in damage()) {
        let (key, outcomes) = (key(seed), round.outcomes());
        let answers: Vec<EncryptedAnswer> = (0..round.shape().queries())
            .map(|query| {
                let words = words(outcomes.digits() * WORDS, seed ^ query as u64);
                EncryptedAnswer::new(key, round.id(key), query, outcomes, words)
            })
            .collect();
        prop_assert_eq!(answers[0].to_bytes().len(), EncryptedAnswer::size(outcomes));
        check(&answers[0], EncryptedAnswer::from_bytes, damage)?;
        let status = |teacher: usize| TeacherStatus::ALL[(seed as usize ^ teacher) % TeacherStatus::ALL.len()];
        let statuses = (0..round.shape().teachers()).map(status).collect();
        let list = AnswerList::new(&round, key, statuses, &answers).expect("in order");
        prop_assert_eq!(list.to_bytes().len(), AnswerList::size(&round));
        let read = AnswerList::from_bytes(&list.to_bytes()).expect("intact");
        prop_assert!(read.agrees_with(&round) && read.answers().eq(answers));
        check(&list, AnswerList::from_bytes, damage)?;
        let result = SignedResult::new(list, Digest::of(seed.to_le_bytes()), sign);
        prop_assert_eq!(result.to_bytes().len(), SignedResult::size(&round));
        check(&result, SignedResult::from_bytes, damage)?;
    }

    #[test]
    fn keys(seed: u64, wide: bool, damage in damage()) {
        let parameters = Parameters::ALL[usize::from(wide)];
        let key = PublicKey::new(&parameters, [seed as u8; 32], &words(parameters.polynomial_size, seed));
        check(&key, PublicKey::from_bytes, damage)?;
        let bits = (0..parameters.polynomial_size).map(|bit| seed.rotate_left(bit as u32) & 1).collect();
        let secret = SecretKey::from_bits(parameters, key.id(), bits);
        check(&secret, SecretKey::from_bytes, damage)?;
        let (student, opener) = secret.split(Digest::of(b"key"), &Randomness::simulation([seed as u8; 32])).expect("a simulation");
        check(&student, StudentShare::from_bytes, damage)?;
        check(&opener, OpenerShare::from_bytes, damage)?;
    }

    #[test]
    fn parts(round in rounds(), seed: u64, teacher in 0_usize..1 << 20, damage in damage()) {
        let count = round.shape().queries() * round.outcomes().digits();
        let of = (round.id(key(seed)), Digest::of(seed.to_le_bytes()));
        let part = OpeningPart::new(of, teacher, words(count, seed), sign);
        prop_assert_eq!(part.to_bytes().len(), OpeningPart::size(&round));
        prop_assert!(part.agrees_with(&round) && part.to_bytes().len() <= OpeningPart::MAX_BYTES);
        check(&part, OpeningPart::from_bytes, damage)?;
    }

    #[test]
    fn logs_receipts_and_verifications(round in rounds(), seed: u64, teacher in 0_usize..1 << 20, damage in damage()) {
        let (id, digest) = (round.id(key(seed)), Digest::of(seed.to_le_bytes()));
        let received = LogEntry::of_message(LogEvent::Received, teacher, digest);
        let log = RoundLog::new(id, vec![received, LogEntry::of_round(LogEvent::Closed, digest)], sign);
        check(&log, RoundLog::from_bytes, damage)?;
        let receipt = Receipt::new(log.head(1).expect("an entry"), teacher, digest, sign);
        prop_assert_eq!(receipt.to_bytes().len(), Receipt::BYTES);
        check(&receipt, Receipt::from_bytes, damage)?;
        let parts = (ExactCircuit::ALL[seed as usize % 2], AnswerSeed::from_bytes([seed as u8; 32]));
        let revealed = RevealedSeed::new(id, digest, parts, sign);
        prop_assert_eq!(revealed.to_bytes().len(), RevealedSeed::BYTES);
        check(&revealed, RevealedSeed::from_bytes, damage)?;
        let verification = Verification::new(id, [digest, Digest::of("log")], teacher, sign);
        prop_assert_eq!(verification.to_bytes().len(), Verification::BYTES);
        check(&verification, Verification::from_bytes, damage)?;
    }
}
