//! Keys of simulations, and a file beside them that says so.

use std::path::Path;

use crate::error::RolesError;
use crate::fault::InputFault;
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
pub(crate) fn check_kind(key: &Path, file: &RoundFile) -> Result<(), RolesError> {
    check_share(key, are_simulated(key), file)
}

/// The same for the share of a key, which says itself whether it comes from a seed.
pub(crate) fn check_share(share: &Path, is_simulated: bool, file: &RoundFile) -> Result<(), RolesError> {
    match (file.round().is_simulation(), is_simulated) {
        (true, false) => Err(RolesError::input(share)(InputFault::RealKey)),
        (false, true) => Err(RolesError::input(share)(InputFault::SimulatedKey)),
        _ => Ok(()),
    }
}
