//! Proofs of well-formed messages: honest proofs are accepted, and nothing else is. Needs the feature `proofs`:
//! `cargo test --release -p speed-aggregation --features proofs --test aggregation -- --nocapture proofs::` also prints their cost.
#![expect(clippy::print_stdout, reason = "costs, for whoever asks with --nocapture")]

use std::time::Instant;

use bincode::Options as _;
use sha2::{Digest as _, Sha256};
use speed_aggregation::error::ProofError;
use speed_aggregation::proofs::{ProofKey, Proofs};
use speed_aggregation::{
    Message, PrivacyNoise, PublicKey, Round, RoundSpec, Server, Teacher, party_values, teacher_values,
};
use speed_core::fixture::{exhaustive, fixture_of_this_test};
use speed_core::{NoisePlacement, Randomness, Vote, VoteShape};
use tfhe::core_crypto::algorithms::slice_algorithms::slice_semi_reverse_negacyclic_convolution;
use tfhe::core_crypto::commons::math::random::{DefaultRandomGenerator, RandomGenerator, Seed};
use tfhe::core_crypto::prelude::{
    CiphertextModulus, LweCiphertextCount, LweCompactCiphertextList, LweCompactCiphertextListOwned,
    LweCompactPublicKey, LweCompactPublicKeyOwned, LweSize, TUniform, verify_lwe_compact_ciphertext_list,
};
use tfhe::zk::{CompactPkeCrs, CompactPkeProof, Compressible as _, ZkComputeLoad};

use crate::protocol::common::{SOURCE, answer, protocol, sealed, server_of};

/// Adds a message as a server's program does.
fn add(server: &mut Server, message: &Message, proofs: &Proofs, proof_key: &ProofKey) -> Result<(), ProofError> {
    server.check(message)?;
    proof_key.verify(server.key().public_key(), server.round(), message, proofs)?;
    Ok(server.add_checked(message)?)
}

/// Returns the proof key of a round, which is made once for a build.
fn proof_key(public: &PublicKey, round: &Round) -> ProofKey {
    let (shape, bits) = (round.shape(), round.proof_range().bits());
    let name = format!("proof-key-{}-{}-{}-{bits}", shape.teachers(), shape.queries(), shape.classes());
    let made = fixture_of_this_test(&name, |folder| {
        let key = ProofKey::generate(public.parameters(), round, &SOURCE).expect("valid");
        std::fs::write(folder.join("proof.key"), key.to_bytes()).expect("a key");
    });
    ProofKey::from_bytes(&std::fs::read(made.join("proof.key")).expect("a key")).expect("whole")
}

/// Returns a teacher's message and proofs.
fn prove(round: &Round, teacher: usize, values: &[i64], proof_key: &ProofKey) -> Result<(Message, Proofs), ProofError> {
    Teacher::new(teacher).answer_with_proof(protocol().public_key(), round, values, proof_key, &SOURCE)
}

/// Returns the message about a value of a teacher, which is secret.
fn out_of_range(least: i64, most: i64) -> String {
    format!("a value is not from {least} to {most} votes, the range of this round: its noise does not fit the round")
}

#[test]
fn only_honest_messages_pass_verification() {
    let public = protocol().public_key();
    let round = Round::new(RoundSpec::new(b"proofs", VoteShape::new(3, 1, 2).expect("a shape"), 400)).expect("valid");
    let values = [511, -200];

    let timed = Instant::now();
    let proof_key = ProofKey::generate(public.parameters(), &round, &SOURCE).expect("valid");
    println!("proof key {:.2?}", timed.elapsed());
    assert_eq!((proof_key.range_log(), round.largest_move()), (10, 512.0));
    let timed = Instant::now();
    let answer = |teacher| prove(&round, teacher, &values, &proof_key);
    let (message, proof) = answer(0).expect("in range");
    println!("proof {:.2?}", timed.elapsed());
    let bytes = proof.to_bytes().expect("small");
    println!("{} bytes", bytes.len());
    let proof = Proofs::from_bytes(&bytes).expect("intact");
    let timed = Instant::now();
    proof_key.verify(public, &round, &message, &proof).expect("honest");
    println!("verification {:.2?}", timed.elapsed());

    let invalid = |message: &Message, proof: &Proofs| {
        matches!(proof_key.verify(public, &round, message, proof), Err(ProofError::Invalid { .. }))
    };
    // Another teacher's proof, and a message without a proof: the same values, encrypted without proofs.
    let (other, other_proof) = answer(1).expect("in range");
    assert!(invalid(&message, &other_proof) && invalid(&other, &proof));
    let plain = Teacher::new(0).answer(public, &round, &values, &SOURCE).expect("valid");
    assert!(invalid(&plain, &proof));
    // A message changed after its proof was made: one more vote for the last class.
    let mut changed = message.to_bytes();
    let body = changed.len() - 16 - 2;
    changed[body] = changed[body].wrapping_add(4);
    assert!(invalid(&Message::from_bytes(&sealed(changed)).expect("well-formed"), &proof));
    // A value beyond the range cannot be proved.
    for value in [512, -700] {
        let error = prove(&round, 0, &[value; 2], &proof_key).expect_err("too wide");
        assert_eq!(error.to_string(), out_of_range(-512, 511), "the value is secret");
    }
    // A key for values of another range is refused before anything is encrypted or verified.
    let narrow = RoundSpec::new(b"narrow", VoteShape::new(3, 1, 2).expect("a shape"), 200);
    let narrow = Round::new(narrow).expect("valid");
    let error = prove(&narrow, 0, &values, &proof_key).expect_err("another range");
    let other_range = "a proof key for values of 10 bits, but the values of this round have 9 bits";
    assert!(error.to_string().starts_with(other_range), "{error}");
    let error = proof_key.verify(public, &narrow, &message, &proof).expect_err("another range");
    assert!(error.to_string().starts_with(other_range), "{error}");
    // Damaged bytes are refused or fail to verify.
    for position in (0..bytes.len()).step_by(if exhaustive() { 37 } else { 97 }) {
        let mut damaged = bytes.clone();
        damaged[position] ^= 1;
        if let Ok(damaged) = Proofs::from_bytes(&damaged) {
            assert!(invalid(&message, &damaged), "byte {position}");
        }
    }
    assert!(Proofs::from_bytes(&bytes[..bytes.len() - 1]).is_err());
    let refused = Proofs::from_bytes(&bytes[8..]).expect_err("without a version").to_string();
    assert!(refused.starts_with("not a proof: expected version proofs/4, found "), "{refused}");

    let mut server = server_of(&round);
    add(&mut server, &message, &proof, &proof_key).expect("honest");
    assert!(matches!(add(&mut server, &other, &proof, &proof_key), Err(ProofError::Invalid { teacher: 1 })));
    assert_eq!(server.received(), 1);
    add(&mut server, &other, &other_proof, &proof_key).expect("the refused teacher may still answer properly");
}

#[test]
fn the_proofs_of_binomial_rounds_allow_exactly_the_honest_values() {
    let public = protocol().public_key();
    let shape = VoteShape::new(3, 1, 2).expect("a shape");
    let spec = |coins| RoundSpec {
        mechanism: Some(PrivacyNoise::of_coins(coins, 3).expect("valid").mechanism()),
        ..RoundSpec::new(b"binomial", shape, 9)
    };
    let ours = |coins| Round::new(spec(coins)).expect("valid");
    let central = Round::new(RoundSpec { placement: NoisePlacement::Central, ..spec(4) }).expect("valid");
    // The least and the largest value, and the number of proofs of each list.
    let mut rounds = vec![(ours(2), -1, 2, 1), (ours(5), -2, 4, 2)];
    // A proof key takes seconds.
    if exhaustive() {
        rounds.extend([(central, 0, 1, 1), (ours(4), -2, 3, 2), (ours(6), -3, 4, 1)]);
    }
    for (round, least, most, parts) in rounds {
        let range = round.proof_range();
        assert_eq!((range.least(), range.most(), range.proofs()), (least, most, parts));
        let proof_key = proof_key(public, &round);
        let answer = |values: &[i64]| prove(&round, 0, values, &proof_key);
        let (message, proofs) = answer(&[least, most]).expect("in range");
        let bytes = proofs.to_bytes().expect("small");
        assert_eq!(bytes.len(), 8 + parts * 1226, "docs/protocol.md");
        let proofs = Proofs::from_bytes(&bytes).expect("intact");
        proof_key.verify(public, &round, &message, &proofs).expect("honest");
        for beyond in [least - 1, most + 1] {
            let refused = answer(&[0, beyond]).expect_err("beyond the range");
            assert_eq!(refused.to_string(), out_of_range(least, most));
        }
    }
}

/// The server sees a message's length, its proofs' length, and that the proofs hold: all are the same for every vote.
#[test]
fn an_empty_vote_has_proofs_of_the_same_size_and_is_counted() {
    let public = protocol().public_key();
    let shape = VoteShape::new(3, 1, 2).expect("a shape");
    // With two coins a list has one proof, with five it has two.
    for coins in [2, 5] {
        let noise = PrivacyNoise::of_coins(coins, 3).expect("valid");
        let spec = RoundSpec::new(b"empty votes", shape, 9);
        let round = Round::new(RoundSpec { mechanism: Some(noise.mechanism()), ..spec }).expect("valid");
        let (proof_key, share) = (proof_key(public, &round), noise.share_of(3).expect("a share"));
        let mut server = server_of(&round);
        let votes: [Vote; 3] = [Some(1), None, Some(0)];
        let sizes = [0, 1, 2].map(|teacher| {
            let randomness = Randomness::simulation([teacher as u8; 32]);
            let values = teacher_values(shape, &votes[teacher..=teacher], Some((&share, &randomness)));
            let values = values.expect("no entropy is needed");
            let (message, proofs) = prove(&round, teacher, &values, &proof_key).expect("in range");
            add(&mut server, &message, &proofs, &proof_key).expect("accepted");
            (message.to_bytes().len(), proofs.to_bytes().expect("small").len())
        });
        assert!(sizes.iter().all(|size| *size == sizes[0]), "{sizes:?}");
        // The least values are those of a teacher whose vote is empty.
        let range = round.proof_range();
        let least = [range.least(); 2];
        let (message, proofs) = prove(&round, 0, &least, &proof_key).expect("in range");
        proof_key.verify(public, &round, &message, &proofs).expect("honest");
    }
}

#[test]
fn a_party_whose_votes_are_partly_empty_is_within_the_range_of_its_proofs() {
    let shape = VoteShape::new(6, 1, 2).expect("a shape");
    let noise = PrivacyNoise::of_coins(4, 6).expect("valid");
    let spec = RoundSpec { parties: vec![5, 1], ..RoundSpec::new(b"parties", shape, 12) };
    let round = Round::new(RoundSpec { mechanism: Some(noise.mechanism()), ..spec }).expect("valid");
    let share = noise.share_of(6).expect("a share");
    for (party, teachers, counts) in [(0, 5, [0, 2]), (0, 5, [0, 0]), (0, 5, [5, 0]), (1, 1, [0, 0])] {
        for seed in 0..100 {
            let randomness = Randomness::simulation([seed; 32]);
            let values = party_values(shape, &counts, teachers, Some((&share, &randomness))).expect("no entropy");
            let range = round.proof_range_of(party);
            assert!(values.iter().all(|value| (range.least()..=range.most()).contains(value)), "{party}, {counts:?}");
        }
    }
}

#[test]
fn the_proofs_of_a_party_allow_exactly_the_values_of_its_teachers() {
    let public = protocol().public_key();
    let spec = |parties: &[u32]| RoundSpec {
        mechanism: Some(PrivacyNoise::of_coins(4, 6).expect("valid").mechanism()),
        parties: parties.to_vec(),
        ..RoundSpec::new(b"parties", VoteShape::new(6, 1, 2).expect("a shape"), 12)
    };
    let round = Round::new(spec(&[5, 1])).expect("valid");
    let proof_key = proof_key(public, &round);
    assert_eq!(proof_key.range_log(), 5, "-10 to 15 for the largest party");
    let mut server = server_of(&round);
    for (party, least, most) in [(0, -10, 15), (1, -2, 3)] {
        let answer = |values: &[i64]| prove(&round, party, values, &proof_key);
        let (message, proofs) = answer(&[least, most]).expect("in range");
        for beyond in [least - 1, most + 1] {
            let refused = answer(&[0, beyond]).expect_err("beyond the range").to_string();
            assert_eq!(refused, out_of_range(least, most));
        }
        // The proofs of the same values for a larger party are not valid for a smaller one.
        if party > 0 {
            let larger = Round::new(spec(&[1, 5])).expect("valid");
            let found = proof_key.verify(public, &larger, &message, &proofs);
            assert!(matches!(found, Err(ProofError::Invalid { .. })), "{party}");
        }
        add(&mut server, &message, &proofs, &proof_key).expect("honest");
    }
    assert_eq!((server.received(), server.teachers_received()), (2, 6));
    // A party that the round does not have.
    let third = Teacher::new(2).answer(public, &round, &[0, 0], &SOURCE);
    let third = third.expect_err("refused").to_string();
    assert_eq!(third, "teacher 2 in a round of 2 teachers (counted from 0)");
}

/// A teacher with a program of its own, which encrypts and proves any values.
struct Liar {
    key: LweCompactPublicKeyOwned<u64>,
    crs: CompactPkeCrs,
    generator: RandomGenerator<DefaultRandomGenerator>,
}

/// The dimension of a mask, the noise's logarithm, and one vote on the torus.
const DIMENSION: usize = 2048;
const NOISE_LOG: u32 = 17;
const UNIT_LOG: u32 = 50;

impl Liar {
    /// Reads the keys as docs/protocol.md describes them.
    fn new(public: &PublicKey, proof_key: &ProofKey) -> Self {
        let bytes = public.to_bytes();
        let (seed, body) = (&bytes[16..48], &bytes[48..bytes.len() - 16]);
        let name = public.parameters().name();
        let block = |block: u64| {
            let hash = Sha256::new_with_prefix(b"speed/public-key/mask/v3").chain_update(seed);
            let hash = hash.chain_update((name.len() as u64).to_le_bytes()).chain_update(name);
            hash.chain_update(block.to_le_bytes()).finalize()
        };
        let mask: Vec<u8> = (0..DIMENSION as u64 / 4).flat_map(block).collect();
        let words = [&mask, body].concat().as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let crs = &proof_key.to_bytes()[28..proof_key.to_bytes().len() - 16];
        Self {
            key: LweCompactPublicKey::from_container(words, CiphertextModulus::new_native()),
            crs: tfhe::safe_serialization::safe_deserialize(crs, 1 << 24).expect("a reference string"),
            generator: RandomGenerator::new(Seed(7)),
        }
    }

    /// Encrypts values, and makes a proof of them from each start on. `metadata` is that of each proof.
    fn encrypt_and_prove(
        &mut self,
        values: &[i64],
        starts: &[i64],
        metadata: &[Vec<u8>],
    ) -> (Vec<u64>, Vec<CompactPkeProof>) {
        let mut noise = |count| {
            let mut noise = vec![0; count];
            self.generator.fill_slice_with_random_from_distribution(&mut noise, TUniform::<u64>::new(NOISE_LOG));
            noise
        };
        let (mask_noise, body_noise) = (noise(DIMENSION), noise(values.len()));
        let mut binary = vec![0; DIMENSION];
        self.generator.fill_slice_with_random_uniform_binary_bits(&mut binary);
        let product = |factor: &[u64]| {
            let mut product = vec![0; DIMENSION];
            slice_semi_reverse_negacyclic_convolution(&mut product, factor, &binary);
            product
        };
        let mask = product(self.key.get_mask().as_ref()).into_iter().zip(&mask_noise);
        let bodies = product(self.key.get_body().as_ref()).into_iter().rev().zip(&body_noise).zip(values);
        let bodies = bodies
            .map(|((word, noise), value)| word.wrapping_add(*noise).wrapping_add(value.cast_unsigned() << UNIT_LOG));
        let words: Vec<u64> = mask.map(|(word, noise)| word.wrapping_add(*noise)).chain(bodies).collect();
        let proofs = starts.iter().zip(metadata).map(|(start, metadata)| {
            let messages: Vec<u64> = values.iter().map(|value| (value - start).cast_unsigned()).collect();
            let mut seed = [0; 16];
            seed.fill_with(|| self.generator.generate_next());
            self.crs.prove(
                &self.key,
                &messages,
                &list(&words, *start),
                &binary,
                &mask_noise,
                &body_noise,
                metadata,
                ZkComputeLoad::Proof,
                seed,
            )
        });
        let proofs = proofs.collect();
        (words, proofs)
    }

    /// Returns whether tfhe accepts a proof of the values from a start on.
    fn is_valid(&self, words: &[u64], start: i64, proof: &CompactPkeProof, metadata: &[u8]) -> bool {
        verify_lwe_compact_ciphertext_list(&list(words, start), &self.key, proof, &self.crs, metadata).is_valid()
    }
}

/// Returns the list of these words, with every value less `start`.
fn list(words: &[u64], start: i64) -> LweCompactCiphertextListOwned<u64> {
    let mut words = words.to_vec();
    words[DIMENSION..].iter_mut().for_each(|word| *word = word.wrapping_sub(start.cast_unsigned() << UNIT_LOG));
    let count = LweCiphertextCount(words.len() - DIMENSION);
    LweCompactCiphertextList::from_container(words, LweSize(DIMENSION + 1), count, CiphertextModulus::new_native())
}

/// Encodes proofs as docs/protocol.md describes them.
fn encoded<'a>(proofs: impl Iterator<Item = &'a CompactPkeProof>) -> Proofs {
    let mut bytes = b"proofs/4".to_vec();
    for proof in proofs {
        let CompactPkeProof::PkeV2(proof) = proof else { panic!("another scheme") };
        let options = bincode::DefaultOptions::new().with_fixint_encoding();
        let one = options.serialize(&proof.compress()).expect("a proof");
        bytes.extend((one.len() as u32).to_le_bytes());
        bytes.extend(one);
    }
    Proofs::from_bytes(&bytes).expect("well-formed")
}

#[test]
fn a_value_next_to_the_exact_range_passes_one_proof_and_fails_the_other() {
    let public = protocol().public_key();
    let spec = RoundSpec::new(b"lies", VoteShape::new(3, 1, 2).expect("a shape"), 6);
    let mechanism = Some(PrivacyNoise::of_coins(4, 3).expect("valid").mechanism());
    let round = Round::new(RoundSpec { mechanism, ..spec }).expect("valid");
    let proof_key = proof_key(public, &round);
    let honest = answer(&round, 1, &[0, 0]).to_bytes();
    let starts = [-2, -4];
    let metadata = [0_u64, 1].map(|part| {
        let numbers = [1, 0, part].map(u64::to_le_bytes).concat();
        [b"speed/proof/v4", &honest[44..76], &numbers].concat()
    });
    let mut liar = Liar::new(public, &proof_key);
    let accepted = |words: &[u64], proofs: &Proofs| {
        let mut bytes = honest.clone();
        let end = bytes.len() - 16;
        bytes[88..end].copy_from_slice(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>());
        let message = Message::from_bytes(&sealed(bytes)).expect("well-formed");
        proof_key.verify(public, &round, &message, proofs).is_ok()
    };
    let mut values = vec![(-3, [false, true]), (3, [true; 2])];
    if exhaustive() {
        values.extend([(-2, [true; 2]), (4, [true, false])]);
    }
    for (value, parts) in values {
        // The liar makes both proofs, although its value is in one part only.
        let (words, proofs) = liar.encrypt_and_prove(&[0, value], &starts, &metadata);
        let valid = |part: usize| liar.is_valid(&words, starts[part], &proofs[part], &metadata[part]);
        assert_eq!([0, 1].map(valid), parts, "{value}");
        let is_honest = parts == [true; 2];
        assert_eq!(accepted(&words, &encoded(proofs.iter())), is_honest, "{value}");
        // A proof twice, the proofs in the other order, one proof, three proofs.
        if is_honest {
            for order in [&[0, 0][..], &[1, 1], &[1, 0], &[0], &[1], &[], &[0, 1, 0]] {
                assert!(!accepted(&words, &encoded(order.iter().map(|&part| &proofs[part]))), "{value} {order:?}");
            }
            continue;
        }
        // The liar makes valid proofs of the nearest parts that include its value.
        let nearest = starts.map(|start| start + value - value.clamp(start, start + 7));
        let (words, proofs) = liar.encrypt_and_prove(&[0, value], &nearest, &metadata);
        assert!((0..2).all(|part| liar.is_valid(&words, nearest[part], &proofs[part], &metadata[part])), "{value}");
        assert!(!accepted(&words, &encoded(proofs.iter())), "{value}");
    }
}
