//! The device of the trainings.

use speed_batched::{Accelerator, DeviceKind};

use crate::config::ComputeDevice;
use crate::error::ExperimentError;

/// The device of a run, open for work.
pub(crate) enum Device {
    /// The processor, one training a thread.
    Cpu,
    /// One that trains many students as one computation; with its name in fingerprints.
    Together(Accelerator, &'static str),
}

impl Device {
    /// Opens the device that the config names.
    ///
    /// # Errors
    /// If there is no such device.
    pub(crate) fn open(device: ComputeDevice) -> Result<Self, ExperimentError> {
        Ok(match device {
            ComputeDevice::Cpu => Self::Cpu,
            ComputeDevice::Wgpu => Self::Together(speed_batched::open(DeviceKind::Wgpu)?, "wgpu"),
            ComputeDevice::Flex => Self::Together(speed_batched::open(DeviceKind::Flex)?, "flex"),
        })
    }

    /// Returns its name for people.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Cpu => "processor",
            Self::Together(accelerator, _) => &accelerator.name,
        }
    }
}
