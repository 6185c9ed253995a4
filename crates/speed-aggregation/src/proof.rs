//! Zero-knowledge proofs that a message is well formed (feature `proofs`), against teachers that do not follow the protocol.
//!
//! A proof says, of a message and its public key: each body is an encryption, with noise within its bound, of a value in
//! `[-2^(b-1), 2^(b-1))` votes for the `b` of the [`ProofKey`]. So a teacher can shift a count by `2^(b-1)` votes at most,
//! where without proof it can send any torus element. It does **not** say that the value is a vote plus an honestly drawn
//! share of noise: a lying teacher still has as much influence as the range leaves.
//!
//! The proofs are those of tfhe-rs (Libert: Vector Commitments with Proofs of Smallness, <https://eprint.iacr.org/2023/800>).
//! They are sound against whoever does not know the trapdoor of the [`ProofKey`]; its generator does. Let the student or a
//! third party generate it, never a teacher.

use speed_core::{EntropyError, Randomness};
use tfhe::conformance::ParameterSetConformant as _;
use tfhe::core_crypto::commons::generators::NoiseRandomGenerator;
use tfhe::core_crypto::commons::math::random::{DefaultRandomGenerator, RandomGenerator, Seeder as _};
use tfhe::core_crypto::prelude::*;
use tfhe::safe_serialization::{safe_deserialize_conformant, safe_serialize};
use tfhe::zk::{
    CompactPkeCrs, CompactPkeProof, CompactPkeProofConformanceParams, CompactPkeZkScheme, ZkComputeLoad,
    ZkMSBZeroPaddingBitCount,
};
use zeroize::Zeroizing;

use crate::encoding::{Encoding, EncodingError};
use crate::ids::RoundId;
use crate::keys::PublicKey;
use crate::message::Message;
use crate::parameters::Parameters;
use crate::random::seeder;
use crate::round::Round;
use crate::server::{Server, ServerError};
use crate::teacher::{Teacher, TeacherError};

/// The common reference string of proofs, with which teachers prove and the server checks. Public.
pub struct ProofKey {
    parameters: Parameters,
    unit_log: u32,
    range_log: u32,
    crs: CompactPkeCrs,
}

/// A proof that a message is well formed.
#[derive(Clone, Debug)]
pub struct Proof(CompactPkeProof);

/// The reason why a proof cannot be made, or does not convince.
#[derive(Debug, thiserror::Error)]
pub enum ProofError {
    /// A range of values that is wider than the encoding's, or empty.
    #[error("a range of {found} bits: 1 to {max} fit the encoding")]
    Range {
        /// Bits asked for.
        found: u32,
        /// The largest number of bits.
        max: u32,
    },
    /// More values than a proof covers.
    #[error("{found} values per message: a proof covers at most {max}")]
    Values {
        /// Values of the round.
        found: usize,
        /// The largest number of values.
        max: usize,
    },
    /// A proof key that tfhe does not generate.
    #[error("no proof key: {0}")]
    Generate(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A round that the proof key is not for.
    #[error("the proof key is for {key}, the round has {round}")]
    Key {
        /// The messages that the key proves.
        key: ProofTarget,
        /// The messages of the round.
        round: ProofTarget,
    },
    /// Bytes that are no proof.
    #[error("not a proof: {0}")]
    Decode(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A proof that is too large to travel.
    #[error("the proof is larger than {max} bytes: {source}")]
    Encode {
        /// The largest number of bytes.
        max: u64,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The proof is not one of this message, teacher and round.
    #[error("the proof of teacher {teacher} does not hold for its message")]
    Invalid {
        /// The teacher.
        teacher: usize,
    },
    /// A proof that could not be made.
    #[error("no proof: {0}")]
    Prove(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The teacher cannot answer.
    #[error(transparent)]
    Teacher(#[from] TeacherError),
    /// The server refuses the message.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The round has no exact encoding.
    #[error(transparent)]
    Encoding(#[from] EncodingError),
    /// The operating system gave no randomness.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
}

/// The messages that a proof key proves, or that a round has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProofTarget {
    /// The name of the parameter set.
    pub parameters: &'static str,
    /// Binary logarithm of a vote on the torus.
    pub unit_log: u32,
    /// The largest number of values of a message.
    pub values: usize,
}

impl std::fmt::Display for ProofTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} with units of 2^{} and {} values", self.parameters, self.unit_log, self.values)
    }
}

impl ProofKey {
    /// The largest number of values (queries times classes) of a message with a proof.
    pub const MAX_VALUES: usize = Parameters::TOURNAMENT_128.polynomial_size;

    /// Generates a key for rounds of this shape and range or smaller ones, and for values of `range_log` bits: a teacher's value lies in
    /// `[-2^(range_log - 1), 2^(range_log - 1))` votes. Takes about a core-second for a thousand values.
    ///
    /// # Errors
    /// If the round has more than [`Self::MAX_VALUES`] values or no encoding, the range is wider than the encoding's, or the
    /// operating system gives no randomness.
    pub fn generate(
        parameters: &Parameters,
        round: &Round,
        range_log: u32,
        randomness: &Randomness,
    ) -> Result<Self, ProofError> {
        let layout = Encoding::of_round(parameters, round)?.layout();
        let bits = u64::BITS - layout.unit().trailing_zeros();
        if !(1..bits).contains(&range_log) {
            return Err(ProofError::Range { found: range_log, max: bits - 1 });
        }
        if round.values() > Self::MAX_VALUES {
            return Err(ProofError::Values { found: round.values(), max: Self::MAX_VALUES });
        }
        let mut seeder = seeder(randomness, "proof key", u64::from(range_log), parameters.name.as_bytes())?;
        let mut generator = RandomGenerator::<DefaultRandomGenerator>::new(seeder.seed());
        let crs = CompactPkeCrs::new(
            parameters.big_dimension(),
            LweCiphertextCount(round.values()),
            TUniform::<u64>::new(parameters.glwe_noise_log),
            CiphertextModulus::<u64>::new_native(),
            1_u64 << bits,
            ZkMSBZeroPaddingBitCount(u64::from(bits - range_log)),
            &mut generator,
        )
        .map_err(|error| ProofError::Generate(error.to_string().into()))?;
        Ok(Self { parameters: *parameters, unit_log: u64::BITS - bits, range_log, crs })
    }

    /// Checks a message's proof, under the public key and for the round.
    ///
    /// # Errors
    /// If the proof does not hold for this message.
    pub fn verify(&self, key: &PublicKey, round: &Round, message: &Message, proof: &Proof) -> Result<(), ProofError> {
        self.check(key, round)?;
        let teacher = message.teacher();
        let id = round.id(key.id());
        let conformant = proof.0.is_conformant(&CompactPkeProofConformanceParams::new(CompactPkeZkScheme::V2));
        if !conformant || message.round() != id || message.list().lwe_ciphertext_count().0 != round.values() {
            return Err(ProofError::Invalid { teacher });
        }
        // What was proved is an encryption of the value plus half the range.
        let mut list = message.list().clone();
        self.shift(&mut list, self.offset() << self.unit_log);
        let outcome = verify_lwe_compact_ciphertext_list(&list, &key.key, &proof.0, &self.crs, &metadata(id, teacher));
        if outcome.is_valid() { Ok(()) } else { Err(ProofError::Invalid { teacher }) }
    }

    fn check(&self, key: &PublicKey, round: &Round) -> Result<(), ProofError> {
        let unit_log = Encoding::of_round(&key.parameters, round)?.layout().unit().trailing_zeros();
        let ours = ProofTarget {
            parameters: self.parameters.name(),
            unit_log: self.unit_log,
            values: self.crs.max_num_messages().0,
        };
        let asked = ProofTarget { parameters: key.parameters.name(), unit_log, values: round.values() };
        if asked.parameters != ours.parameters || asked.unit_log != ours.unit_log || asked.values > ours.values {
            return Err(ProofError::Key { key: ours, round: asked });
        }
        Ok(())
    }

    /// Returns half the range, which makes all values non-negative.
    fn offset(&self) -> u64 {
        1 << (self.range_log - 1)
    }

    /// Adds a constant to every value of a list.
    fn shift(&self, list: &mut LweCompactCiphertextListOwned<u64>, constant: u64) {
        let count = list.lwe_ciphertext_count().0;
        let words = list.as_mut();
        let bodies = words.len() - count;
        words[bodies..].iter_mut().for_each(|body| *body = body.wrapping_add(constant));
    }
}

impl std::fmt::Debug for ProofKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ProofKey({}, {} bits)", self.parameters.name(), self.range_log)
    }
}

impl Proof {
    /// The largest number of bytes of a proof.
    pub const MAX_BYTES: u64 = 1 << 16;

    /// Returns the bytes that travel (tfhe's versioned form).
    ///
    /// # Errors
    /// If the proof is larger than [`Self::MAX_BYTES`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, ProofError> {
        let mut bytes = Vec::new();
        safe_serialize(&self.0, &mut bytes, Self::MAX_BYTES)
            .map_err(|error| ProofError::Encode { max: Self::MAX_BYTES, source: error.to_string().into() })?;
        Ok(bytes)
    }

    /// Reads a proof; whether it convinces is for [`ProofKey::verify`] to say.
    ///
    /// # Errors
    /// If the bytes are not a proof of the scheme in use.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ProofError> {
        let scheme = CompactPkeProofConformanceParams::new(CompactPkeZkScheme::V2);
        safe_deserialize_conformant(bytes, Self::MAX_BYTES, &scheme)
            .map(Self)
            .map_err(|error| ProofError::Decode(error.into()))
    }
}

impl Teacher {
    /// Encrypts as [`Self::answer`] does, with a proof that the message is well formed. The prover works longer so that the server need
    /// not.
    ///
    /// # Errors
    /// Those of [`Self::answer`], and if the proof key is not for this round.
    pub fn answer_with_proof(
        &self,
        key: &PublicKey,
        round: &Round,
        values: &[i64],
        proof_key: &ProofKey,
        randomness: &Randomness,
    ) -> Result<(Message, Proof), ProofError> {
        proof_key.check(key, round)?;
        let offset = proof_key.offset();
        self.check(round, values, offset - 1)?;
        let id = round.id(key.id());
        let mut seeder = seeder(randomness, "answer with proof", self.index as u64, id.as_bytes())?;
        let mut generator = NoiseRandomGenerator::<DefaultRandomGenerator>::new(&mut seeder);
        let shifted: Zeroizing<Vec<u64>> =
            Zeroizing::new(values.iter().map(|&value| value.cast_unsigned().wrapping_add(offset)).collect());
        let mut list = LweCompactCiphertextList::new(
            0,
            key.parameters.big_dimension().to_lwe_size(),
            LweCiphertextCount(values.len()),
            CiphertextModulus::new_native(),
        );
        let noise = TUniform::<u64>::new(key.parameters.glwe_noise_log);
        let proof = encrypt_and_prove_lwe_compact_ciphertext_list_with_compact_public_key(
            &key.key,
            &mut list,
            &shifted.as_slice(),
            1 << proof_key.unit_log,
            noise,
            noise,
            &mut generator,
            &proof_key.crs,
            &metadata(id, self.index),
            ZkComputeLoad::Proof,
        )
        .map_err(|error| ProofError::Prove(error.to_string().into()))?;
        proof_key.shift(&mut list, (offset << proof_key.unit_log).wrapping_neg());
        Ok((Message::new(key.id(), round, self.index, list), Proof(proof)))
    }
}

impl Server {
    /// Adds a message as [`Self::add`] does, if the message's proof holds.
    ///
    /// # Errors
    /// Those of [`Self::add`], and [`ProofError::Invalid`], which names the teacher. A refused message changes nothing.
    pub fn add_proven(
        &mut self,
        teacher: usize,
        message: &Message,
        proof: &Proof,
        proof_key: &ProofKey,
    ) -> Result<(), ProofError> {
        proof_key.verify(self.key().public_key(), self.round(), message, proof)?;
        Ok(self.add(teacher, message)?)
    }
}

/// Binds a proof to its round and teacher.
fn metadata(round: RoundId, teacher: usize) -> Vec<u8> {
    [b"speed/proof/v1".as_slice(), round.as_bytes(), &(teacher as u64).to_le_bytes()].concat()
}
