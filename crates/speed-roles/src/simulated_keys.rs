//! Keys of simulations, and a file beside them that says so.

use std::path::Path;

use crate::error::RolesError;
use crate::fault::InputFault;
use crate::round_file::RoundFile;

/// The file beside keys that come from a seed.
pub(crate) const SIMULATION: &str = "SIMULATION.txt";

/// Returns whether the keys come from a seed, so that they are public.
pub(crate) fn are_simulated(key: &Path) -> bool {
    key.with_file_name(SIMULATION).is_file()
}

/// Checks that a simulation has keys of a simulation, and another round has other keys. The labels of a simulation are not charged to
/// its key, and its result needs no verification, so under a real key a lying server could read the key from them.
pub(crate) fn check_kind(key: &Path, file: &RoundFile) -> Result<(), RolesError> {
    match (file.round().is_simulation(), are_simulated(key)) {
        (true, false) => Err(RolesError::input(key)(InputFault::RealKey)),
        (false, true) => Err(RolesError::input(key)(InputFault::SimulatedKey)),
        _ => Ok(()),
    }
}
