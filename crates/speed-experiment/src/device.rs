//! The device of the trainings.

use burn::tensor::Device as BurnDevice;
use speed_nn::device::DeviceKind;

use crate::config::ComputeDevice;
use crate::error::ExperimentError;

pub(crate) struct Device {
    pub(crate) burn: BurnDevice,
    pub(crate) name: String,
    /// Its name in fingerprints; `None` for the processor.
    pub(crate) fingerprint: Option<&'static str>,
}

impl Device {
    pub(crate) fn open(device: ComputeDevice) -> Result<Self, ExperimentError> {
        let (kind, fingerprint) = match device {
            ComputeDevice::Cpu => (DeviceKind::Processor, None),
            ComputeDevice::Wgpu => (DeviceKind::Wgpu, Some("wgpu")),
        };
        let speed_nn::device::Accelerator { device: burn, name } = speed_nn::device::open(kind)?;
        Ok(Self { burn, name, fingerprint })
    }
}
