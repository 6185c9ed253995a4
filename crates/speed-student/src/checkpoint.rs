//! The state of a training between two epochs, as bytes.

use sha2::{Digest, Sha256};
use speed_nn::params::ParameterError;

use crate::EpochMetrics;
use crate::bytes::{Reader, UnexpectedEnd};

const MAGIC: &[u8; 8] = b"SPEEDSTU";
const VERSION: u32 = 3;
const HASH: usize = 32;

/// Everything that a training needs to resume after an epoch: networks, optimisers, averages and metrics.
///
/// It holds no generator state, because every epoch has a separate random stream.
#[derive(Clone, PartialEq)]
pub struct Checkpoint {
    /// The identity of the training.
    pub(crate) identity: [u8; HASH],
    pub(crate) metrics: Vec<EpochMetrics>,
    /// Records of networks, optimisers and averages, in the method's order.
    pub(crate) records: Vec<Vec<u8>>,
}

/// The fault of a checkpoint from which a training cannot resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
#[non_exhaustive]
pub enum CheckpointError {
    /// The bytes are not a student's checkpoint.
    #[error("expected a student's checkpoint, found other bytes")]
    Magic,
    /// The checkpoint was written by another version of this program.
    #[error("expected format version {expected}, found {found}: use the program that wrote it, or train again")]
    Version { found: u32, expected: u32 },
    /// The bytes were truncated or changed.
    #[error("the bytes are damaged or cut off")]
    Damaged,
    /// The checkpoint belongs to a training with other settings, data, labels or seed.
    #[error("it belongs to a training with other settings, images, labels or seed")]
    Other,
    /// The checkpoint has more epochs than requested.
    #[error("expected at most the {asked} requested epochs, found {found}")]
    Epochs { found: u32, asked: u32 },
}

impl From<ParameterError> for CheckpointError {
    fn from(_: ParameterError) -> Self {
        Self::Damaged
    }
}

impl From<UnexpectedEnd> for CheckpointError {
    fn from(_: UnexpectedEnd) -> Self {
        Self::Damaged
    }
}

impl Checkpoint {
    /// Returns the number of finished epochs.
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.metrics.last().map_or(0, |metrics| metrics.epoch)
    }

    /// Returns the metrics of the finished epochs.
    #[must_use]
    pub fn metrics(&self) -> &[EpochMetrics] {
        &self.metrics
    }

    /// Serialises the checkpoint in its own format, with a checksum; 38 MB for the paper's networks.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let bytes: usize = self.records.iter().map(Vec::len).sum();
        let mut out = Vec::with_capacity(bytes + 64 * self.metrics.len() + 8 * self.records.len() + 128);
        out.extend(MAGIC);
        out.extend(VERSION.to_le_bytes());
        out.extend(self.identity);
        let measures = self.metrics.first().map_or(0, |metrics| metrics.measures.len());
        out.extend((measures as u64).to_le_bytes());
        out.extend((self.metrics.len() as u64).to_le_bytes());
        for EpochMetrics { epoch, measures, accuracy_raw, accuracy_average, seconds } in &self.metrics {
            out.extend(epoch.to_le_bytes());
            out.extend(seconds.to_le_bytes());
            for value in measures.iter().chain([accuracy_raw, accuracy_average]) {
                // A loss or accuracy is never NaN, so NaN encodes a missing value.
                out.extend(value.unwrap_or(f64::NAN).to_le_bytes());
            }
        }
        out.extend((self.records.len() as u64).to_le_bytes());
        for record in &self.records {
            out.extend((record.len() as u64).to_le_bytes());
            out.extend(record);
        }
        let hash = Sha256::digest(&out);
        out.extend(hash);
        out
    }

    /// Reads the bytes that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// [`CheckpointError::Magic`], [`CheckpointError::Version`] or [`CheckpointError::Damaged`], for any other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CheckpointError> {
        let mut reader = Reader::new(bytes);
        if reader.array().ok() != Some(*MAGIC) {
            return Err(CheckpointError::Magic);
        }
        let version = reader.u32()?;
        if version != VERSION {
            return Err(CheckpointError::Version { found: version, expected: VERSION });
        }
        let (body, hash) = bytes.split_last_chunk::<HASH>().ok_or(CheckpointError::Damaged)?;
        if Sha256::digest(body).as_slice() != hash {
            return Err(CheckpointError::Damaged);
        }
        let identity = reader.array()?;
        // Every measure takes at least one byte in every epoch.
        let measures = reader.count(1)?;
        let mut metrics = Vec::new();
        for _ in 0..reader.count(4 + 8 * (measures + 3))? {
            let (epoch, seconds) = (reader.u32()?, reader.f64()?);
            let mut value = || reader.f64().map(|value| (!value.is_nan()).then_some(value));
            let measures = (0..measures).map(|_| value()).collect::<Result<_, UnexpectedEnd>>()?;
            let (accuracy_raw, accuracy_average) = (value()?, value()?);
            metrics.push(EpochMetrics { epoch, measures, accuracy_raw, accuracy_average, seconds });
        }
        let mut records = Vec::new();
        for _ in 0..reader.count(8)? {
            let length = reader.count(1)?;
            records.push(reader.take(length)?.to_vec());
        }
        let consecutive = (1..).zip(&metrics).all(|(epoch, metrics)| metrics.epoch == epoch);
        if reader.remaining() != HASH || !consecutive {
            return Err(CheckpointError::Damaged);
        }
        Ok(Self { identity, metrics, records })
    }
}

impl std::fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Checkpoint").field("epoch", &self.epoch()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint() -> Checkpoint {
        let metrics = |epoch, accuracy| EpochMetrics {
            epoch,
            measures: vec![Some(0.5), None, accuracy],
            accuracy_raw: accuracy,
            accuracy_average: accuracy.map(|a| a / 2.0),
            seconds: 3.5,
        };
        Checkpoint {
            identity: [7; 32],
            metrics: vec![metrics(1, None), metrics(2, Some(0.75))],
            records: vec![vec![1, 2], vec![], vec![3]],
        }
    }

    /// Returns `body` with a correct checksum, as an attacker would send it.
    fn sealed(body: &[u8]) -> Vec<u8> {
        [body, Sha256::digest(body).as_slice()].concat()
    }

    #[test]
    fn bytes_come_back_as_they_went() {
        let checkpoint = checkpoint();
        assert_eq!(Checkpoint::from_bytes(&checkpoint.to_bytes()), Ok(checkpoint.clone()));
        assert_eq!(checkpoint.epoch(), 2);
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_an_error() {
        let bytes = checkpoint().to_bytes();
        for end in 0..bytes.len() {
            assert!(Checkpoint::from_bytes(&bytes[..end]).is_err(), "cut at {end}");
        }
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 0x10;
            assert!(Checkpoint::from_bytes(&changed).is_err(), "changed at {place}");
        }
    }

    #[test]
    fn hostile_bytes_with_a_right_checksum_are_errors() {
        let bytes = checkpoint().to_bytes();
        let body = &bytes[..bytes.len() - HASH];
        assert_eq!(Checkpoint::from_bytes(&sealed(&[body, &[0]].concat())), Err(CheckpointError::Damaged));
        // Writes a huge count to every possible place; none may cause a panic or reserve memory.
        for place in 12..body.len() - 8 {
            let mut changed = body.to_vec();
            changed[place..place + 8].fill(0xff);
            let _ = Checkpoint::from_bytes(&sealed(&changed));
        }
        let metrics_count = 8 + 4 + 32 + 8;
        for huge in [1_u64 << 40, u64::MAX] {
            let mut changed = body.to_vec();
            changed[metrics_count..metrics_count + 8].copy_from_slice(&huge.to_le_bytes());
            assert_eq!(Checkpoint::from_bytes(&sealed(&changed)), Err(CheckpointError::Damaged));
        }
    }

    #[test]
    fn other_files_and_versions_are_named() {
        assert_eq!(Checkpoint::from_bytes(b"\x89PNG\r\n\x1a\n...."), Err(CheckpointError::Magic));
        assert_eq!(Checkpoint::from_bytes(&[]), Err(CheckpointError::Magic));
        let mut bytes = checkpoint().to_bytes();
        bytes[8] = 9;
        assert_eq!(Checkpoint::from_bytes(&bytes), Err(CheckpointError::Version { found: 9, expected: 3 }));
    }
}
