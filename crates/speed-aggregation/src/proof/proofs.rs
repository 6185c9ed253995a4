//! The proofs of a message, and their encoding.

use bincode::Options as _;
use speed_core::printable;
use tfhe::conformance::ParameterSetConformant as _;
use tfhe::zk::{
    CompactPkeProof, CompactPkeProofConformanceParams, CompactPkeZkScheme, Compressible, ZkComputeLoad,
    ZkPkeV2SupportedHashConfig,
};

use super::error::{ProofError, decode};

/// The proofs that a message is well formed: for each mask one or two ([`ProofRange::proofs`](crate::encoding::ProofRange::proofs)).
#[derive(Clone, Debug)]
pub struct Proofs(pub(super) Vec<CompactPkeProof>);

/// The first bytes of encoded proofs: the version of the encoding.
/// With a new version, a server must check the messages in its registry again: an update during a round would otherwise count
/// proofs that verifiers of the new version refuse.
const VERSION: &[u8; 8] = b"proofs/4";

/// Returns how a proof is encoded: integers of fixed length, and nothing behind the proof.
fn options() -> impl bincode::Options {
    bincode::DefaultOptions::new().with_fixint_encoding().with_limit(Proofs::BYTES as u64)
}

/// Returns the form of the proofs that [`ProofKey`](super::ProofKey) makes: other hashes, and proofs that shift work to
/// the server, are refused.
pub(super) fn form() -> CompactPkeProofConformanceParams {
    CompactPkeProofConformanceParams::new(CompactPkeZkScheme::V2)
        .forbid_hash_config(ZkPkeV2SupportedHashConfig::V0_4_0)
        .forbid_hash_config(ZkPkeV2SupportedHashConfig::V0_7_0)
        .forbid_compute_load(ZkComputeLoad::Verify)
}

impl Proofs {
    /// The number of bytes of one proof. A proof of points at infinity would be shorter, and take much more memory than
    /// bytes.
    pub const BYTES: usize = 1_222;

    /// Returns the encoded bytes: the version (8 bytes), and for each proof its length (4 bytes) and the encoding of its
    /// compressed points.
    ///
    /// # Errors
    /// If a proof does not have [`Self::BYTES`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, ProofError> {
        let failed = |error: &dyn std::fmt::Display| {
            ProofError::Other(format!("cannot encode a proof in {} bytes: {error}", Self::BYTES))
        };
        let mut bytes = VERSION.to_vec();
        for proof in &self.0 {
            let CompactPkeProof::PkeV2(proof) = proof else {
                return Err(failed(&"a proof of another scheme"));
            };
            let one = options().serialize(&proof.compress()).map_err(|error| failed(&error))?;
            if one.len() != Self::BYTES {
                return Err(failed(&format_args!("{} bytes", one.len())));
            }
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
        let form = form();
        let other = || {
            let shown = |bytes: &[u8]| printable(&String::from_utf8_lossy(bytes));
            let found = shown(&bytes[..bytes.len().min(VERSION.len())]);
            decode(format!("expected version {}, found {found}", shown(VERSION)))
        };
        let mut bytes = bytes.strip_prefix(VERSION).ok_or_else(other)?;
        let mut proofs = Vec::new();
        while !bytes.is_empty() {
            let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(|| decode("a length that was cut off"))?;
            let length = u32::from_le_bytes(*length) as usize;
            if length != Self::BYTES {
                return Err(decode(format!("a proof of {length} bytes, expected {}", Self::BYTES)));
            }
            let (one, rest) = rest.split_at_checked(length).ok_or_else(|| decode("a proof that was cut off"))?;
            let compressed = options().deserialize(one).map_err(decode)?;
            let proof = Compressible::uncompress(compressed).map(CompactPkeProof::PkeV2);
            let proof = proof.map_err(decode)?;
            if !proof.is_conformant(&form) {
                return Err(decode("a proof of another form, or a point that is not in its group"));
            }
            proofs.push(proof);
            bytes = rest;
        }
        Ok(Self(proofs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proofs_of_another_size_are_refused_before_they_are_read() {
        // Eleven points at infinity: 53 bytes that would take about 3000 bytes of memory.
        let mut one = 49u32.to_le_bytes().to_vec();
        one.resize(53, 0);
        let bytes = [VERSION.as_slice(), &one.repeat(100)].concat();
        let error = Proofs::from_bytes(&bytes).expect_err("too short").to_string();
        assert!(error.contains("a proof of 49 bytes, expected 1222"), "{error}");
        let error = Proofs::from_bytes(b"proofs/3").expect_err("another version").to_string();
        assert!(error.contains("expected version proofs/4, found proofs/3"), "{error}");
    }
}
