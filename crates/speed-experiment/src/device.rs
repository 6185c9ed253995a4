//! The device of the trainings.

use burn::tensor::Device as BurnDevice;
use speed_nn::device::DeviceKind;

use crate::config::ComputeDevice;
use crate::error::ExperimentError;

/// The device of a run, open for work.
pub(crate) struct Device {
    /// Burn's device, without gradients.
    pub(crate) burn: BurnDevice,
    /// Its name for people.
    pub(crate) name: String,
    /// Its name in fingerprints; `None` for the processor.
    pub(crate) fingerprint: Option<&'static str>,
}

impl Device {
    /// Opens the device that the config names.
    pub(crate) fn open(device: ComputeDevice) -> Result<Self, ExperimentError> {
        let (kind, fingerprint) = match device {
            ComputeDevice::Cpu => (DeviceKind::Processor, None),
            ComputeDevice::Wgpu => (DeviceKind::Wgpu, Some("wgpu")),
        };
        let speed_nn::device::Accelerator { device: burn, name } = speed_nn::device::open(kind)?;
        Ok(Self { burn, name, fingerprint })
    }
}
