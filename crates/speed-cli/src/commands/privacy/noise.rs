//! The mechanism and the honest ratio that options describe.

use speed_accountant::{Checks, PrivacyEvent};
use speed_aggregation::PrivacyNoise;
use speed_mechanism::{HonestRatio, Mechanism, MechanismKind, NoiseDeviation};

use crate::commands::{Failure, flag, round_noise, usage};
use crate::options::{CheckOptions, NoiseOptions};

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

/// Returns the noise of a check.
fn check_noise(check: &CheckOptions, kind: MechanismKind, teachers: Option<usize>) -> Result<Mechanism, Failure> {
    let CheckOptions { check_gamma, check_sigma, check_coins, .. } = *check;
    if kind == MechanismKind::Binomial {
        let teachers = tossing(teachers)?;
        let (name, noise) = match (check_coins, check_sigma) {
            (Some(coins), _) => ("check-coins", PrivacyNoise::of_coins(coins, teachers)),
            (None, Some(sigma)) => {
                let sigma = NoiseDeviation::new(sigma).map_err(|error| flag("check-sigma", &error))?;
                ("check-sigma", PrivacyNoise::of_deviation(sigma, teachers, true))
            }
            (None, None) => {
                return Err(usage("check-gamma", "binomial noise needs --check-coins or --check-sigma".into()));
            }
        };
        let noise = noise.map_err(|error| flag(name, &error))?;
        noise.check_threshold(teachers).map_err(|error| flag(name, &error))?;
        return Ok(noise.mechanism());
    }
    let (name, scale) = if kind.is_inverse() { ("check-gamma", check_gamma) } else { ("check-sigma", check_sigma) };
    let scale = scale.ok_or_else(|| usage(name, format!("{kind} noise needs --{name}")))?;
    kind.with_scale(scale).map_err(|error| flag(name, &error))
}

/// Returns the checks of `queries` queries before the answers, if they have noise of their own: of the same mechanism as
/// the answers. Refuses a number of answers without checks.
pub(in crate::commands) fn checks(
    check: &CheckOptions,
    options: &NoiseOptions,
    teachers: Option<usize>,
    (threshold, tau): (Option<f64>, HonestRatio),
    queries: usize,
) -> Result<Option<Checks>, Failure> {
    let Some(threshold) = threshold.filter(|_| check.is_given()) else {
        return match check.answers {
            Some(found) => Err(usage(
                "answers",
                format!("found {found} without checks: expected --check-gamma, --check-sigma or --check-coins"),
            )),
            None => Ok(None),
        };
    };
    let mechanism = check_noise(check, options.mechanism, teachers)?;
    let event = PrivacyEvent::check(mechanism, tau, threshold).map_err(|error| flag("threshold", &error))?;
    Ok(Some(Checks { event, queries }))
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
