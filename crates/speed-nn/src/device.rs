//! The device that runs the computation.

use burn::tensor::{Device, Tensor};

/// A kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// The processor, through Burn's `flex` backend and this crate's kernels.
    Processor,
    /// A GPU, through Vulkan, Metal or DirectX 12; only with the feature `wgpu`.
    Wgpu,
}

/// An opened device.
#[derive(Clone, Debug)]
pub struct Accelerator {
    /// Burn's device, without autodiff.
    pub device: Device,
    /// Its display name; for a GPU, that of its driver.
    pub name: String,
}

/// The reason why a device cannot compute.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the fields")]
#[non_exhaustive]
pub enum DeviceError {
    /// The program was built without the feature for the device.
    #[error("this program was built without GPU support: build it with `--features wgpu`, or use the CPU")]
    NotBuilt,
    /// There is no GPU, or it does not start.
    #[error("no GPU was found that supports Vulkan, Metal or DirectX 12: {message}")]
    NotFound { message: String },
    /// Values could not be read back from it.
    #[error("cannot read values from the device: {message}")]
    Read { message: String },
}

/// Returns the values of a tensor in row-major order.
///
/// # Errors
/// [`DeviceError::Read`].
pub fn values<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f32>, DeviceError> {
    tensor.try_into_vec_as().map_err(|error| DeviceError::Read { message: error.to_string() })
}

/// Opens a device. A process has one GPU; opening it again returns the same one.
///
/// Of several GPUs it is the one that the driver classifies as high-performance. `CUBECL_WGPU_DEFAULT_DEVICE` selects
/// another, for example `IntegratedGpu(0)`, or `Cpu` for a software driver.
///
/// # Errors
/// [`DeviceError::NotBuilt`], [`DeviceError::NotFound`].
pub fn open(kind: DeviceKind) -> Result<Accelerator, DeviceError> {
    match kind {
        DeviceKind::Processor => Ok(Accelerator { device: Device::flex(), name: "processor".to_owned() }),
        DeviceKind::Wgpu => gpu(),
    }
}

#[cfg(not(feature = "wgpu"))]
fn gpu() -> Result<Accelerator, DeviceError> {
    Err(DeviceError::NotBuilt)
}

#[cfg(feature = "wgpu")]
fn gpu() -> Result<Accelerator, DeviceError> {
    use std::sync::OnceLock;
    static GPU: OnceLock<Result<Accelerator, DeviceError>> = OnceLock::new();
    let open = || {
        let (device, setup) = Device::wgpu_options()
            .init_with_setup()
            .map_err(|error| DeviceError::NotFound { message: error.to_string() })?;
        let info = setup.adapter.get_info();
        Ok(Accelerator { device, name: format!("{} ({}, {})", info.name, info.backend, info.driver_info) })
    };
    GPU.get_or_init(open).clone()
}
