//! The state of a training between two epochs, as bytes.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use speed_nn::params::ParameterError;

const MAGIC: &[u8; 8] = b"SPEEDSTU";
const VERSION: u32 = 4;
const HASH: usize = 32;

/// Losses and accuracies of one epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochMetrics {
    /// The epoch, from 1.
    pub epoch: u32,
    /// The measures of the method, in the order of [`Method::measures`](crate::Method::measures); `None`
    /// if the epoch has no value.
    pub measures: Vec<Option<f64>>,
    /// Accuracy on the test images with the parameters of the last step; `None` in epochs without evaluation.
    pub accuracy_raw: Option<f64>,
    /// Accuracy with the average of the parameters: the student's accuracy.
    pub accuracy_average: Option<f64>,
    /// Wall-clock time of the epoch in seconds, including its evaluation.
    pub seconds: f64,
}

/// Everything that a training needs to resume after an epoch: networks, optimisers, averages and metrics.
///
/// It holds no generator state, because every epoch has a separate random stream.
#[derive(Clone, PartialEq)]
pub struct Checkpoint {
    pub(crate) identity: [u8; HASH],
    pub(crate) metrics: Vec<EpochMetrics>,
    /// Records of networks, optimisers and averages, in the method's order.
    pub(crate) records: Vec<Vec<u8>>,
}

/// The first part of a checkpoint's bytes, with the length of each record.
#[derive(Serialize, Deserialize)]
struct Header {
    identity: [u8; HASH],
    metrics: Vec<EpochMetrics>,
    records: Vec<usize>,
}

/// The fault of a checkpoint from which a training cannot resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the fields")]
#[non_exhaustive]
pub enum CheckpointError {
    #[error("expected a student's checkpoint, found other bytes")]
    Magic,
    #[error("expected format version {expected}, found {found}: use the program that wrote it, or train again")]
    Version { found: u32, expected: u32 },
    #[error("the bytes are damaged or cut off")]
    Damaged,
    #[error("it belongs to a training with other settings, images, labels or seed")]
    Other,
    #[error("expected at most the {asked} requested epochs, found {found}")]
    Epochs { found: u32, asked: u32 },
}

impl From<ParameterError> for CheckpointError {
    fn from(_: ParameterError) -> Self {
        Self::Damaged
    }
}

impl Checkpoint {
    /// Returns the number of finished epochs.
    pub fn epoch(&self) -> u32 {
        self.metrics.last().map_or(0, |metrics| metrics.epoch)
    }

    /// Serialises the checkpoint: a header in JSON, the records, and a checksum; 38 MB for the paper's networks.
    pub fn to_bytes(&self) -> Vec<u8> {
        let records = self.records.iter().map(Vec::len).collect();
        let header = Header { identity: self.identity, metrics: self.metrics.clone(), records };
        let header = serde_json::to_vec(&header).expect("numbers and lists");
        let length = (header.len() as u64).to_le_bytes();
        let mut out = [MAGIC.as_slice(), &VERSION.to_le_bytes(), &length, &header, &self.records.concat()].concat();
        let hash = Sha256::digest(&out);
        out.extend(hash);
        out
    }

    /// Reads the bytes that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// [`CheckpointError::Magic`], [`CheckpointError::Version`] or [`CheckpointError::Damaged`], for any other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CheckpointError> {
        let damaged = CheckpointError::Damaged;
        let rest = bytes.strip_prefix(MAGIC).ok_or(CheckpointError::Magic)?;
        let found = u32::from_le_bytes(*rest.first_chunk().ok_or(damaged)?);
        if found != VERSION {
            return Err(CheckpointError::Version { found, expected: VERSION });
        }
        let (body, hash) = bytes.split_last_chunk::<HASH>().ok_or(damaged)?;
        if Sha256::digest(body).as_slice() != hash {
            return Err(damaged);
        }
        let rest = body.get(MAGIC.len() + size_of_val(&VERSION)..).ok_or(damaged)?;
        let (length, rest) = rest.split_first_chunk().ok_or(damaged)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| damaged)?;
        let (header, mut rest) = rest.split_at_checked(length).ok_or(damaged)?;
        let Header { identity, metrics, records: lengths } = serde_json::from_slice(header).map_err(|_| damaged)?;
        let mut records = Vec::new();
        for length in lengths {
            let (record, after) = rest.split_at_checked(length).ok_or(damaged)?;
            records.push(record.to_vec());
            rest = after;
        }
        let consecutive = (1..).zip(&metrics).all(|(epoch, metrics)| metrics.epoch == epoch);
        if rest.is_empty() && consecutive { Ok(Self { identity, metrics, records }) } else { Err(damaged) }
    }
}

speed_core::debug_as!(Checkpoint, this => "Checkpoint {{ epoch: {}, .. }}", this.epoch());

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
        for huge in [1_u64 << 40, u64::MAX] {
            let mut changed = body.to_vec();
            changed[12..20].copy_from_slice(&huge.to_le_bytes());
            assert_eq!(Checkpoint::from_bytes(&sealed(&changed)), Err(CheckpointError::Damaged));
        }
        let lengths = b"[2,0,1]";
        let place = body.windows(lengths.len()).position(|bytes| bytes == lengths).expect("the records' lengths");
        let mut changed = body.to_vec();
        changed[place + 1] = b'9';
        assert_eq!(Checkpoint::from_bytes(&sealed(&changed)), Err(CheckpointError::Damaged));
    }

    #[test]
    fn other_files_and_versions_are_named() {
        assert_eq!(Checkpoint::from_bytes(b"\x89PNG\r\n\x1a\n...."), Err(CheckpointError::Magic));
        assert_eq!(Checkpoint::from_bytes(&[]), Err(CheckpointError::Magic));
        let mut bytes = checkpoint().to_bytes();
        bytes[8] = 9;
        assert_eq!(Checkpoint::from_bytes(&bytes), Err(CheckpointError::Version { found: 9, expected: 4 }));
    }
}
