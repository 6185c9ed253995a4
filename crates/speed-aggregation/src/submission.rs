//! The signed messages between the parties of a round.
//!
//! This crate defines the signed bytes. Its callers choose the signers and create the signatures.

use sha2::{Digest as _, Sha256};
use speed_core::Digest;

use crate::answer::AnswerList;
use crate::codec::{
    Content, Decode, DecodeError, Encode, FixedLength, Kind, Limits, Reader, Writer, in_envelope, in_order,
};
use crate::getters::{debug_as, getters};
use crate::message::Message;
use crate::round::Round;
use crate::signature::Signature;

/// Returns the digest that a party signs: SHA-256 of "speed/signed/v3", the kind (2 bytes) and the content before the signature.
pub(crate) fn digest_to_sign(kind: Kind, content: &[&dyn Encode]) -> Digest {
    let mut writer = Writer::with_capacity(content.iter().map(|part| part.encoded_len()).sum());
    content.iter().for_each(|part| part.encode(&mut writer));
    let hash = Sha256::new_with_prefix(b"speed/signed/v3").chain_update((kind as u16).to_le_bytes());
    Digest::from_bytes(hash.chain_update(writer.as_bytes()).finalize().into())
}

/// A teacher's signed message on the wire, with its proofs if the round requires them.
#[derive(Clone)]
pub struct Submission {
    message: Message,
    proofs: Vec<u8>,
    signature: Signature,
}

impl Submission {
    /// Returns the largest size of a message's proofs, in bytes: one or two proofs for each block of up to 2048 values.
    pub(crate) fn max_proof_bytes(values: usize) -> usize {
        values.div_ceil(Message::VALUES_PER_MASK) * MAX_PROOF
    }

    /// Signs a message and its proofs: the digest covers everything that is sent.
    pub fn new(message: Message, proofs: Vec<u8>, sign: impl FnOnce(Digest) -> Signature) -> Self {
        let signature = sign(digest_to_sign(Self::KIND, &[&message, &proofs.len(), &proofs.as_slice()]));
        Self { message, proofs, signature }
    }

    /// Returns the digest that the teacher signed, and its signature.
    pub fn signed(&self) -> (Digest, &Signature) {
        (digest_to_sign(Self::KIND, &[&self.message, &self.proofs.len(), &self.proofs.as_slice()]), &self.signature)
    }

    getters! {
        /// Returns the message. It is unauthenticated until the signature is checked.
        message: &Message,
        /// Returns the proofs' bytes; empty if the round requires none.
        proofs: &[u8],
    }

    /// Returns the size of a submission without proofs, in bytes.
    pub fn min_size(round: &Round) -> usize {
        Message::size(round.shape().queries(), round.shape().classes()) + usize::LENGTH + Signature::LENGTH
    }

    /// Returns the largest size of a submission to a round, in bytes.
    pub fn max_size(round: &Round) -> usize {
        let proofs = if round.proofs().is_some() { Self::max_proof_bytes(round.values()) } else { 0 };
        Self::min_size(round) + proofs
    }
}

/// The largest size of one proof, in bytes.
const MAX_PROOF: usize = 1 << 13;

impl Encode for Submission {
    fn encode(&self, writer: &mut Writer) {
        self.message.encode(writer);
        self.proofs.len().encode(writer);
        writer.bytes(&self.proofs);
        self.signature.encode(writer);
    }
}

impl Decode for Submission {
    fn decode(reader: &mut Reader<'_>, (): ()) -> Result<Self, DecodeError> {
        let message: Message = reader.read()?;
        let max = Self::max_proof_bytes(message.queries() * message.classes());
        let length = reader.read_with(Limits { field: "bytes of the proofs", min: 0, max })?;
        Ok(Self { proofs: reader.take(length)?.to_vec(), signature: reader.read()?, message })
    }
}

in_envelope!(Submission, Submission, "submission");

debug_as!(Submission, this => "Submission({:?}, {} bytes of proofs)", this.message, this.proofs.len());

/// A round's result on the wire, signed by the server: the answers, and the digest of the sum from which they are
/// computed.
#[derive(Clone, Debug)]
pub struct SignedResult {
    list: AnswerList,
    sum: Digest,
    signature: Signature,
}

in_order!(SignedResult: list, sum, signature);

in_envelope!(SignedResult, SignedResult, "result");

impl SignedResult {
    /// Signs a list of answers and the digest of their sum.
    pub fn new(list: AnswerList, sum: Digest, sign: impl FnOnce(Digest) -> Signature) -> Self {
        let signature = sign(digest_to_sign(Self::KIND, &[&list, &sum]));
        Self { list, sum, signature }
    }

    /// Returns the digest that the server signed, and its signature.
    pub fn signed(&self) -> (Digest, &Signature) {
        (digest_to_sign(Self::KIND, &[&self.list, &self.sum]), &self.signature)
    }

    getters! {
        /// Returns the answers. They are unauthenticated until the signature is checked.
        list: &AnswerList,
        /// Returns the SHA-256 of the server's state with the closed sum.
        sum: Digest,
    }

    /// Returns the size of a round's result, in bytes.
    pub fn size(round: &Round) -> usize {
        AnswerList::size(round) + Digest::LENGTH + Signature::LENGTH
    }
}
