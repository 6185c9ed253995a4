//! The files with which a party checks that a server computed the result of a round: the seed that the server reveals
//! to this party, and the party's statement that it computed the same result.

use speed_core::Digest;

use crate::answer_seed::AnswerSeed;
use crate::codec::{
    Content, Decode, DecodeError, ENVELOPE, Encode, FixedLength, Limits, Reader, Writer, in_envelope, in_order,
};
use crate::exact_circuit::ExactCircuit;
use crate::getters::getters;
use crate::ids::RoundId;
use crate::round::Round;
use crate::signature::Signature;
use crate::submission::digest_to_sign;

/// The seed of a result, signed by the server. Only a verifier gets it, never the student.
#[derive(Clone, Debug)]
pub struct RevealedSeed {
    round: RoundId,
    result: Digest,
    circuit: ExactCircuit,
    seed: AnswerSeed,
    signature: Signature,
}

impl RevealedSeed {
    /// The number of bytes of a revealed seed.
    pub const BYTES: usize =
        ENVELOPE + RoundId::LENGTH + Digest::LENGTH + usize::LENGTH + AnswerSeed::LENGTH + Signature::LENGTH;

    /// Signs the seed and the circuit of the result with this SHA-256.
    pub fn new(
        round: RoundId,
        result: Digest,
        (circuit, seed): (ExactCircuit, AnswerSeed),
        sign: impl FnOnce(Digest) -> Signature,
    ) -> Self {
        let signature = sign(digest_to_sign(Self::KIND, &[&round, &result, &circuit, &seed]));
        Self { round, result, circuit, seed, signature }
    }

    /// Returns the digest that the server signed, and its signature.
    pub fn signed(&self) -> (Digest, &Signature) {
        (digest_to_sign(Self::KIND, &[&self.round, &self.result, &self.circuit, &self.seed]), &self.signature)
    }

    getters! {
        /// Returns the round.
        round: RoundId,
        /// Returns the SHA-256 of the result.
        result: Digest,
        /// Returns the circuit that computed it.
        circuit: ExactCircuit,
        /// Returns the seed.
        seed: &AnswerSeed,
    }
}

impl Encode for ExactCircuit {
    fn encode(&self, writer: &mut Writer) {
        self.code().encode(writer);
    }
}

impl Decode for ExactCircuit {
    fn decode(reader: &mut Reader<'_>, (): ()) -> Result<Self, DecodeError> {
        let code: usize = reader.read_with(Limits { field: "circuit", min: 1, max: Self::ALL.len() })?;
        Ok(Self::ALL[code - 1])
    }
}

in_order!(RevealedSeed: round, result, circuit, seed, signature);

in_envelope!(RevealedSeed, RevealedSeed, "revealed seed");

/// A teacher's signed statement that it computed the sum and all answers of a result again, from the messages that the
/// server's log names, and found the same bytes. Others compare the log: a server may sign a log for each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    round: RoundId,
    result: Digest,
    log: Digest,
    teacher: usize,
    signature: Signature,
}

impl Verification {
    /// The number of bytes of a verification.
    pub const BYTES: usize = ENVELOPE + RoundId::LENGTH + 2 * Digest::LENGTH + usize::LENGTH + Signature::LENGTH;

    /// Signs that a teacher verified the result with this SHA-256 by the log with this SHA-256.
    pub fn new(
        round: RoundId,
        [result, log]: [Digest; 2],
        teacher: usize,
        sign: impl FnOnce(Digest) -> Signature,
    ) -> Self {
        let signature = sign(digest_to_sign(Self::KIND, &[&round, &result, &log, &teacher]));
        Self { round, result, log, teacher, signature }
    }

    /// Returns the digest that the teacher signed, and its signature.
    pub fn signed(&self) -> (Digest, &Signature) {
        (digest_to_sign(Self::KIND, &[&self.round, &self.result, &self.log, &self.teacher]), &self.signature)
    }

    getters! {
        /// Returns the round.
        round: RoundId,
        /// Returns the SHA-256 of the result.
        result: Digest,
        /// Returns the SHA-256 of the log.
        log: Digest,
        /// Returns the teacher, which is unauthenticated until the signature is checked.
        teacher: usize,
    }
}

in_order!(Verification:
    round,
    result,
    log,
    teacher = Limits { field: "teacher", min: 0, max: Round::MAX_TEACHERS - 1 },
    signature,
);

in_envelope!(Verification, Verification, "verification");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_verification_sign_all_of_it_and_show_no_seed() {
        let (round, result) = (RoundId::new(Digest::from_bytes([1; 32])), Digest::from_bytes([2; 32]));
        let sign = |_| Signature::from_bytes([9; 64]);
        let revealed = |circuit| RevealedSeed::new(round, result, (circuit, AnswerSeed::from_bytes([7; 32])), sign);
        let [tournament, all_pairs] = ExactCircuit::ALL.map(revealed);
        assert_ne!(tournament.signed().0, all_pairs.signed().0);
        assert!(!format!("{all_pairs:?}").contains('7'), "{all_pairs:?}");
        let log = Digest::from_bytes([3; 32]);
        let signed = |digests, teacher| Verification::new(round, digests, teacher, sign).signed().0;
        for other in [signed([result, log], 4), signed([result, result], 3), signed([log, log], 3)] {
            assert_ne!(other, signed([result, log], 3));
        }
    }
}
