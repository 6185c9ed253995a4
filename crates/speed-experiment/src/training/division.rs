//! The division of a party's images among its teachers.

use std::num::NonZeroUsize;
use std::path::Path;

use speed_core::{Randomness, derive_key};
use speed_mechanism::MechanismError;
use zeroize::Zeroizing;

use super::read_text;
use crate::error::ExperimentError;
use crate::store::write_new_secret;

/// Assigns groups of images to the teachers of a party, and to the images that their teacher learns from or is measured on.
///
/// A keyed hash of a group's name decides, and nothing else: no number, label or order of images or groups. So the images of a
/// person change the part of that person only, and every other teacher is trained as if that person had no images.
pub(super) struct Division {
    key: Zeroizing<[u8; 32]>,
}

impl Division {
    /// Returns the division with a key from a seed, for one teacher.
    pub(super) fn of_seed(seed: u64) -> Self {
        Self { key: Zeroizing::new(derive_key(b"speed/division/seed", b"", "", seed, b"")) }
    }

    /// Returns the division whose key is in a file: 64 hexadecimal digits. A missing file is made, with a new key. Also returns
    /// whether it was made.
    ///
    /// # Errors
    /// If the file cannot be read or written, or has no key.
    pub(super) fn read_or_make(path: &Path) -> Result<(Self, bool), ExperimentError> {
        if path.symlink_metadata().is_err() {
            let key = Randomness::fresh().map_err(MechanismError::from)?;
            let text = Zeroizing::new(hex::encode(key.as_slice()) + "\n");
            if write_new_secret(path, text.as_bytes())? {
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

    /// Returns the part of a group among the parts from 0 to `parts - 1`.
    pub(super) fn part(&self, group: &str, parts: NonZeroUsize) -> usize {
        let scaled = u128::from(self.hash("part", group)) * parts.get() as u128;
        // Below `parts`.
        (scaled >> u64::BITS) as usize
    }

    /// Returns whether a group is held out of the training, as this fraction of groups is on average.
    pub(super) fn is_held_out(&self, group: &str, fraction: f64) -> bool {
        (self.hash("held out", group) as f64) < fraction * 2_f64.powi(64)
    }

    fn hash(&self, purpose: &str, group: &str) -> u64 {
        let hash = derive_key(b"speed/division", self.key.as_slice(), purpose, 0, group.as_bytes());
        u64::from_le_bytes(*hash.first_chunk().expect("32 bytes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_spread_evenly_over_the_parts_and_sides() {
        let division = Division::of_seed(1);
        let parts = NonZeroUsize::new(10).expect("not zero");
        let (mut of_part, mut held_out) = (vec![0; 10], 0);
        for group in 0..10_000 {
            let name = format!("{group}");
            of_part[division.part(&name, parts)] += 1;
            held_out += usize::from(division.is_held_out(&name, 0.2));
        }
        // Fixed by the seed; at random, six standard deviations.
        assert!(of_part.iter().all(|groups| (820..=1180).contains(groups)), "{of_part:?}");
        assert!((1760..=2240).contains(&held_out), "{held_out}");
        assert!(!division.is_held_out("x", 0.0));
        let other = Division::of_seed(2);
        assert!((0..100).any(|group| {
            let name = format!("{group}");
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
        assert!((0..50).all(|group| first.part(&group.to_string(), parts) == again.part(&group.to_string(), parts)));
        for wrong in ["", "00", &"g".repeat(64), &"0".repeat(66)] {
            // The file keeps its mode.
            std::fs::write(&path, wrong).expect("a file");
            let error = Division::read_or_make(&path).err().expect("no key").to_string();
            assert!(error.contains("64 hexadecimal digits") && error.contains("division.key"), "{error}");
        }
    }
}
