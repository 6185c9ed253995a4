//! The division of patients among teachers.

use std::num::NonZeroUsize;
use std::path::Path;

use speed_core::{Randomness, derive_key};
use speed_mechanism::MechanismError;
use zeroize::Zeroizing;

use crate::error::ExperimentError;
use crate::store::{read_text, write_new};

/// Assigns patients to teachers, and to the images that their teacher learns from or is measured on.
///
/// A keyed hash of a patient's id decides, and nothing else: no number, label or order of images or patients. So the images of a
/// person change the part of that person only, and every other teacher is trained as if that person had no images.
pub(crate) struct Division {
    key: Zeroizing<[u8; 32]>,
}

impl Division {
    /// Returns the division with a key from a seed, for one teacher or a run.
    pub(crate) fn of_seed(seed: u64) -> Self {
        Self { key: Zeroizing::new(derive_key(b"speed/division/seed", b"", "", seed, b"")) }
    }

    /// Returns the division whose key is in a file: 64 hexadecimal digits. A missing file is made, with a new key. Also returns
    /// whether it was made.
    pub(crate) fn read_or_make(path: &Path) -> Result<(Self, bool), ExperimentError> {
        if path.symlink_metadata().is_err() {
            let key = Randomness::fresh().map_err(MechanismError::from)?;
            let text = Zeroizing::new(hex::encode(key.as_slice()) + "\n");
            if write_new(path, text.as_bytes(), true)? {
                return Ok((Self { key }, true));
            }
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let found =
                std::fs::metadata(path).map_err(ExperimentError::io("read", path))?.permissions().mode() & 0o777;
            if found & 0o077 != 0 {
                let expected =
                    format_args!("expected a file that only its owner may read (mode 600), found mode {found:o}");
                return Err(ExperimentError::input(path, expected));
            }
        }
        let text = Zeroizing::new(read_text(path)?);
        let mut key = Zeroizing::new([0; 32]);
        let digits = text.strip_suffix(b"\n").unwrap_or(&text);
        let expected =
            |_| ExperimentError::input(path, "expected the key of a division among teachers, 64 hexadecimal digits");
        hex::decode_to_slice(digits, key.as_mut_slice()).map_err(expected)?;
        Ok((Self { key }, false))
    }

    /// Returns the part of a patient among the parts from 0 to `parts - 1`.
    pub(crate) fn part(&self, patient: &str, parts: NonZeroUsize) -> usize {
        let scaled = u128::from(self.hash("part", patient)) * parts.get() as u128;
        // Below `parts`.
        (scaled >> u64::BITS) as usize
    }

    /// Returns whether a patient is held out of the training, as this fraction of patients is on average.
    pub(crate) fn is_held_out(&self, patient: &str, fraction: f64) -> bool {
        (self.hash("held out", patient) as f64) < fraction * 2_f64.powi(64)
    }

    fn hash(&self, purpose: &str, patient: &str) -> u64 {
        let hash = derive_key(b"speed/division", self.key.as_slice(), purpose, 0, patient.as_bytes());
        u64::from_le_bytes(*hash.first_chunk().expect("32 bytes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patients_are_spread_evenly_over_the_parts_and_sides() {
        let division = Division::of_seed(1);
        let parts = NonZeroUsize::new(10).expect("not zero");
        let (mut of_part, mut held_out) = (vec![0; 10], 0);
        for patient in 0..10_000 {
            let name = format!("{patient}");
            of_part[division.part(&name, parts)] += 1;
            held_out += usize::from(division.is_held_out(&name, 0.2));
        }
        // Fixed by the seed; at random, six standard deviations.
        assert!(of_part.iter().all(|patients| (820..=1180).contains(patients)), "{of_part:?}");
        assert!((1760..=2240).contains(&held_out), "{held_out}");
        assert!(!division.is_held_out("x", 0.0));
        let other = Division::of_seed(2);
        assert!((0..100).any(|patient| {
            let name = format!("{patient}");
            division.part(&name, parts) != other.part(&name, parts)
        }));
    }

    #[test]
    fn a_key_is_made_once_and_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("division.key");
        let parts = NonZeroUsize::new(1000).expect("not zero");
        let (first, made) = Division::read_or_make(&path).expect("a key");
        let (again, made_again) = Division::read_or_make(&path).expect("a key");
        assert_eq!((made, made_again), (true, false));
        assert!(
            (0..50).all(|patient| first.part(&patient.to_string(), parts) == again.part(&patient.to_string(), parts))
        );
        for wrong in ["", "00", &"g".repeat(64), &"0".repeat(66)] {
            // The file keeps its mode.
            std::fs::write(&path, wrong).expect("a file");
            let error = Division::read_or_make(&path).err().expect("no key").to_string();
            assert!(error.contains("64 hexadecimal digits") && error.contains("division.key"), "{error}");
        }
    }
}
