//! The proofs of a message, and their encoding.

use bincode::Options as _;
use tfhe::conformance::ParameterSetConformant as _;
use tfhe::zk::{CompactPkeProof, CompactPkeProofConformanceParams, CompactPkeZkScheme, Compressible};

use super::{ProofError, decode};

/// The proofs that a message is well formed: for each mask one or two ([`ProofRange::proofs`](crate::ProofRange::proofs)).
#[derive(Clone, Debug)]
pub struct Proofs(pub(super) Vec<CompactPkeProof>);

/// The first bytes of encoded proofs: the version of the encoding.
const VERSION: &[u8; 8] = b"proofs/4";

/// Returns how a proof is encoded: integers of fixed length, and nothing behind the proof.
fn options() -> impl bincode::Options {
    bincode::DefaultOptions::new().with_fixint_encoding().with_limit(Proofs::MAX_BYTES)
}

impl Proofs {
    /// The largest number of bytes of one proof.
    pub const MAX_BYTES: u64 = 1 << 11;

    /// Returns the encoded bytes: the version (8 bytes), and for each proof its length (4 bytes) and the encoding of its
    /// compressed points.
    ///
    /// # Errors
    /// If a proof is larger than [`Self::MAX_BYTES`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, ProofError> {
        let failed =
            |source: Box<dyn std::error::Error + Send + Sync>| ProofError::Encode { max: Self::MAX_BYTES, source };
        let mut bytes = VERSION.to_vec();
        for proof in &self.0 {
            let CompactPkeProof::PkeV2(proof) = proof else {
                return Err(failed("a proof of another scheme".into()));
            };
            let one = options().serialize(&proof.compress()).map_err(|error| failed(error))?;
            bytes.extend_from_slice(&(one.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&one);
        }
        Ok(bytes)
    }

    /// Reads proofs without verifying them; [`ProofKey::verify`](super::ProofKey::verify) does that.
    ///
    /// # Errors
    /// If the bytes are not proofs of this version and of the scheme in use.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ProofError> {
        let shape = CompactPkeProofConformanceParams::new(CompactPkeZkScheme::V2);
        let mut bytes = bytes.strip_prefix(VERSION).ok_or_else(|| decode("another version, expected proofs/4"))?;
        let mut proofs = Vec::new();
        while !bytes.is_empty() {
            let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(|| decode("a length that was cut off"))?;
            let length = u32::from_le_bytes(*length) as usize;
            let (one, rest) = rest.split_at_checked(length).ok_or_else(|| decode("a proof that was cut off"))?;
            let compressed = options().deserialize(one).map_err(|error| decode(error.to_string()))?;
            let proof = Compressible::uncompress(compressed).map(CompactPkeProof::PkeV2);
            let proof = proof.map_err(|error| decode(error.to_string()))?;
            if !proof.is_conformant(&shape) {
                return Err(decode("a point that is not in its group"));
            }
            proofs.push(proof);
            bytes = rest;
        }
        Ok(Self(proofs))
    }
}
