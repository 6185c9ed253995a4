//! The mechanism and the honest ratio that options describe.

use speed_mechanism::{HonestRatio, Mechanism};

use crate::commands::{Failure, flag, usage};
use crate::options::NoiseOptions;

pub(super) fn noise(options: &NoiseOptions) -> Result<Mechanism, Failure> {
    let kind = options.mechanism;
    let (name, scale) = if kind.is_inverse() { ("gamma", options.gamma) } else { ("sigma", options.sigma) };
    let scale = scale.ok_or_else(|| usage(name, format!("{kind} noise needs --{name}")))?;
    kind.with_scale(scale).map_err(|error| flag(name, &error))
}

/// Returns the honest ratio, rounded down to an integer number of teachers.
pub(super) fn ratio(noise: &NoiseOptions, teachers: Option<usize>) -> Result<HonestRatio, Failure> {
    let ratio = noise.honest_ratio;
    teachers.map_or(Ok(ratio), |teachers| ratio.effective(teachers)).map_err(|error| flag("honest-ratio", &error))
}
