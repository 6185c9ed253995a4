//! The mechanism and the honest ratio that options describe.

use speed_accountant::{Checks, PrivacyEvent};
use speed_mechanism::{HonestRatio, Mechanism, MechanismKind};

use crate::commands::{Failure, round_noise, usage};
use crate::options::{CheckOptions, NoiseOptions};

/// Returns the noise of all teachers together. Binomial noise needs their number, and even coins of each for a threshold.
pub(in crate::commands) fn noise(
    options: &NoiseOptions,
    teachers: Option<usize>,
    has_threshold: bool,
) -> Result<Mechanism, Failure> {
    let NoiseOptions { mechanism, gamma, sigma, coins, .. } = *options;
    of_options(mechanism, "", (gamma, sigma, coins), teachers, has_threshold)
}

/// Returns the noise with these parameters: gamma, sigma and coins of one teacher. The names of their options begin with
/// `prefix`.
fn of_options(
    kind: MechanismKind,
    prefix: &str,
    (gamma, sigma, coins): (Option<f64>, Option<f64>, Option<u64>),
    teachers: Option<usize>,
    has_threshold: bool,
) -> Result<Mechanism, Failure> {
    let named = |name: &str| format!("{prefix}{name}");
    if kind == MechanismKind::Binomial {
        let noise = round_noise::binomial(prefix, coins, sigma, (tossing(teachers)?, has_threshold))?;
        let without = || usage(&named("coins"), format!("binomial noise needs --{prefix}coins or --{prefix}sigma"));
        return Ok(noise.ok_or_else(without)?.mechanism());
    }
    if coins.is_some() {
        return Err(usage(&named("coins"), format!("only binomial noise has coins, found --mechanism {kind}")));
    }
    let (name, scale) = if kind.is_inverse() { (named("gamma"), gamma) } else { (named("sigma"), sigma) };
    let scale = scale.ok_or_else(|| usage(&name, format!("{kind} noise needs --{name}")))?;
    kind.with_scale(scale).map_err(|error| usage(&name, &error))
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
    let CheckOptions { check_gamma, check_sigma, check_coins, .. } = *check;
    let parameters = (check_gamma, check_sigma, check_coins);
    let mechanism = of_options(options.mechanism, "check-", parameters, teachers, true)?;
    let event = PrivacyEvent::check(mechanism, tau, threshold).map_err(|error| usage("threshold", &error))?;
    Ok(Some(Checks { event, queries }))
}

/// Returns the number of teachers that toss the coins of binomial noise.
pub(in crate::commands) fn tossing(teachers: Option<usize>) -> Result<usize, Failure> {
    teachers.ok_or_else(|| usage("teachers", "binomial noise needs the number of teachers that toss coins"))
}

/// Returns the honest ratio, rounded down to an integer number of teachers.
pub(in crate::commands) fn ratio(noise: &NoiseOptions, teachers: Option<usize>) -> Result<HonestRatio, Failure> {
    let ratio = noise.honest_ratio;
    teachers.map_or(Ok(ratio), |teachers| ratio.effective(teachers)).map_err(|error| usage("honest-ratio", &error))
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
