//! The mechanism and the honest ratio that options describe.

use speed_mechanism::{HonestRatio, Mechanism, MechanismKind};

use crate::commands::{Failure, flag, round_noise, usage};
use crate::options::NoiseOptions;

/// Returns the noise of all teachers together. Binomial noise needs their number, and even coins of each for a threshold.
pub(in crate::commands) fn noise(
    options: &NoiseOptions,
    teachers: Option<usize>,
    has_threshold: bool,
) -> Result<Mechanism, Failure> {
    let kind = options.mechanism;
    if kind == MechanismKind::Binomial {
        return binomial(options, tossing(teachers)?, has_threshold);
    }
    if options.coins.is_some() {
        return Err(usage("coins", format!("only binomial noise has coins, found --mechanism {kind}")));
    }
    let (name, scale) = if kind.is_inverse() { ("gamma", options.gamma) } else { ("sigma", options.sigma) };
    let scale = scale.ok_or_else(|| usage(name, format!("{kind} noise needs --{name}")))?;
    kind.with_scale(scale).map_err(|error| flag(name, &error))
}

/// Returns the number of teachers that toss the coins of binomial noise.
pub(in crate::commands) fn tossing(teachers: Option<usize>) -> Result<usize, Failure> {
    teachers.ok_or_else(|| usage("teachers", "binomial noise needs the number of teachers that toss coins".into()))
}

fn binomial(options: &NoiseOptions, teachers: usize, has_threshold: bool) -> Result<Mechanism, Failure> {
    let noise = round_noise::binomial(options.coins, options.sigma, (teachers, has_threshold))?;
    let noise = noise.ok_or_else(|| usage("coins", "binomial noise needs --coins or --sigma".into()))?;
    Ok(noise.mechanism())
}

/// Returns the honest ratio, rounded down to an integer number of teachers.
pub(in crate::commands) fn ratio(noise: &NoiseOptions, teachers: Option<usize>) -> Result<HonestRatio, Failure> {
    let ratio = noise.honest_ratio;
    teachers.map_or(Ok(ratio), |teachers| ratio.effective(teachers)).map_err(|error| flag("honest-ratio", &error))
}

/// Describes the width of noise for terminals: "gamma 0.1", or the coins of one of `teachers` teachers.
pub(in crate::commands) fn width(noise: Mechanism, teachers: Option<usize>) -> String {
    match (noise, teachers) {
        (Mechanism::Binomial { coins }, Some(teachers)) => format!(
            "coins {} a teacher ({} in all, deviation {:.1})",
            coins.of_teacher(teachers),
            coins.get(),
            coins.deviation()
        ),
        _ => format!("{} {}", noise.kind().parameter(), noise.scale()),
    }
}
