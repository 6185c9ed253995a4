//! Helpers of the tests: devices and comparisons.

use burn::tensor::Device;

use crate::{DeviceKind, open};

/// Returns the devices that tests run on: the processor, and a GPU where the feature is on and there is one. A driver in software
/// will do. With `SPEED_REQUIRE_GPU` set, as in CI, a missing one fails the test.
#[expect(clippy::print_stderr, reason = "a skipped device says so")]
pub(crate) fn devices() -> Vec<Device> {
    let mut devices = vec![Device::flex()];
    if cfg!(feature = "wgpu") {
        match open(DeviceKind::Wgpu) {
            Ok(accelerator) => devices.push(accelerator.device),
            Err(error) if std::env::var_os("SPEED_REQUIRE_GPU").is_some() => {
                panic!("SPEED_REQUIRE_GPU is set: {error}")
            }
            Err(error) => eprintln!("skipped on a GPU: {error}"),
        }
    }
    devices
}

/// Compares arrays, relative to the largest value expected.
#[track_caller]
pub(crate) fn assert_close(found: &[f32], expected: &[f32], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "values of {what}");
    let largest = expected.iter().fold(0.0_f64, |largest, e| largest.max(f64::from(e.abs())));
    let worst = found.iter().zip(expected).map(|(f, e)| f64::from((f - e).abs())).fold(0.0, f64::max);
    assert!(worst <= tolerance * largest, "{what}: off by {worst:e} beside {largest:e}");
    assert!(found.iter().all(|f| f.is_finite()), "{what} is not finite");
}
