//! Keys of simulations, and a file beside them that says so.

use std::path::Path;

use crate::error::Refused;
use crate::round_file::RoundFile;

/// The file beside keys that come from a seed.
#[cfg(feature = "student")]
pub(crate) const SIMULATION: &str = "SIMULATION.txt";

/// Returns whether the keys come from a seed, so that they are public.
#[cfg(feature = "student")]
pub(crate) fn are_simulated(key: &Path) -> bool {
    key.with_file_name(SIMULATION).is_file()
}

/// Checks that a simulation has keys of a simulation, and another round has other keys. The labels of a simulation are not charged to
/// its key, and its result needs no verification, so under a real key a lying server could read the key from them.
#[cfg(feature = "student")]
pub(crate) fn check_kind(key: &Path, file: &RoundFile) -> Result<(), Refused> {
    check_share(key, are_simulated(key), file)
}

/// The same for the share of a key, which says itself whether it comes from a seed.
pub(crate) fn check_share(share: &Path, is_simulated: bool, file: &RoundFile) -> Result<(), Refused> {
    match (file.round().is_simulation(), is_simulated) {
        (true, false) => Err(Refused::input(share)(
            "is not a simulation's key (a share says so itself, other keys have SIMULATION.txt beside them), and a simulation may reveal its key: generate keys for it with \
             `speed student keygen --simulation SEED`",
        )),
        (false, true) => Err(Refused::input(share)(
            "is a simulation's key, which anyone who knows its seed can compute: a round with real votes needs new keys (speed student keygen)",
        )),
        _ => Ok(()),
    }
}
