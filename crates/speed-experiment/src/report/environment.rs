//! The machine and the versions that produced a result.

use serde::{Deserialize, Serialize};

/// The machine and the versions of a run; it contains no host name, user or path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of SPEED.
    pub speed: String,
    /// Version of Burn.
    pub burn: String,
    /// Version of TFHE-rs.
    pub tfhe: String,
    /// Operating system and architecture.
    pub system: String,
    /// Processor model, if the system reports it.
    pub processor: String,
    /// Logical processors that the process may use.
    pub processors: usize,
    /// The unit that multiplies the matrices of students and small teachers, which determines their last bits.
    pub products: String,
    /// The kind of machine with respect to the bits of trainings: machines of the same kind give the same bits.
    pub arithmetic: String,
    /// The device of the trainings that the config's `device` selects.
    pub device: String,
    /// Memory in GiB, if the system reports it.
    pub memory_gib: Option<f64>,
}
