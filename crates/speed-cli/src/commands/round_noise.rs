//! The noise of a round, from options.

use clap::Args;
use speed_aggregation::PrivacyNoise;
use speed_mechanism::{MechanismKind, NoiseDeviation};

use super::{Failure, usage};

/// The noise of a new round: the mechanism, and exactly one parameter.
#[derive(Debug, Args)]
pub(crate) struct RoundNoiseOptions {
    /// Mechanism of the noise: binomial or discrete-laplace [default: binomial, with --gamma discrete-laplace]
    #[arg(long)]
    mechanism: Option<String>,
    /// Coins that each teacher tosses for each class and query: the scale of binomial noise
    #[arg(long, value_name = "M", conflicts_with_all = ["sigma", "gamma"])]
    coins: Option<u64>,
    /// Standard deviation of binomial noise, in votes: each teacher tosses the fewest coins that reach it together
    #[arg(long, conflicts_with = "gamma")]
    sigma: Option<f64>,
    /// Inverse scale of discrete Laplace noise, per vote
    #[arg(long)]
    gamma: Option<f64>,
}

/// The noise that a teacher agrees to.
#[derive(Debug, Args)]
pub(crate) struct AgreedNoiseOptions {
    /// The mechanism that this teacher agrees to; a round with another is refused
    #[arg(long)]
    mechanism: Option<String>,
    /// The coins of each teacher that this teacher agrees to, for binomial noise
    #[arg(long, value_name = "M", requires = "mechanism", conflicts_with = "gamma")]
    coins: Option<u64>,
    /// The inverse scale that this teacher agrees to, for discrete Laplace noise
    #[arg(long, requires = "mechanism")]
    gamma: Option<f64>,
}

/// Returns the noise of a new round of this many teachers. It is binomial unless gamma is given.
pub(super) fn of_round(
    options: &RoundNoiseOptions,
    teachers: usize,
    has_threshold: bool,
) -> Result<PrivacyNoise, Failure> {
    let default = if options.gamma.is_some() { MechanismKind::DiscreteLaplace } else { MechanismKind::Binomial };
    let name = options.mechanism.as_deref().unwrap_or(default.name());
    let parameters = (options.coins, options.sigma, options.gamma);
    noise(name, parameters, (teachers, has_threshold), "--coins or --sigma")
}

/// Returns the noise that a teacher agrees to in a round of this many teachers; `None` if it agrees to any.
pub(super) fn agreed(options: &AgreedNoiseOptions, teachers: usize) -> Result<Option<PrivacyNoise>, Failure> {
    let name = options.mechanism.as_deref();
    // The coins are compared with those of a round, which is valid.
    name.map(|name| noise(name, (options.coins, None, options.gamma), (teachers, false), "--coins")).transpose()
}

/// Returns the noise with this mechanism and these parameters: coins of one teacher, sigma and gamma. A round has a
/// number of teachers and perhaps a threshold. `binomial` names the options for binomial noise.
fn noise(
    mechanism: &str,
    parameters: (Option<u64>, Option<f64>, Option<f64>),
    (teachers, has_threshold): (usize, bool),
    binomial: &str,
) -> Result<PrivacyNoise, Failure> {
    let found = match parameters {
        (Some(_), ..) => "--coins",
        (None, Some(_), _) => "--sigma",
        (None, None, Some(_)) => "--gamma",
        (None, None, None) => "no parameter",
    };
    let other = |expected: &str| usage("mechanism", format!("{mechanism} needs {expected}, found {found}"));
    match (mechanism.parse(), parameters) {
        (Ok(MechanismKind::Binomial), (coins, sigma, _)) => {
            self::binomial("", coins, sigma, (teachers, has_threshold))?.ok_or_else(|| other(binomial))
        }
        (Ok(MechanismKind::DiscreteLaplace), (None, None, Some(gamma))) => {
            PrivacyNoise::named(mechanism, gamma).map_err(|error| usage("gamma", &error))
        }
        (Ok(MechanismKind::DiscreteLaplace), _) => Err(other("--gamma")),
        // Refuses the name.
        (_, (.., gamma)) => {
            PrivacyNoise::named(mechanism, gamma.unwrap_or_default()).map_err(|error| usage("mechanism", &error))
        }
    }
}

/// Returns the binomial noise of this many teachers, from the coins of one of them or from a deviation; `None` if neither is
/// given. With a threshold the coins of a teacher must be even. The names of the options begin with `prefix`.
pub(super) fn binomial(
    prefix: &str,
    coins: Option<u64>,
    sigma: Option<f64>,
    (teachers, has_threshold): (usize, bool),
) -> Result<Option<PrivacyNoise>, Failure> {
    let name = format!("{prefix}{}", if coins.is_some() { "coins" } else { "sigma" });
    let noise = match (coins, sigma) {
        (Some(coins), _) => PrivacyNoise::of_coins(coins, teachers),
        (None, Some(sigma)) => {
            let sigma = NoiseDeviation::new(sigma).map_err(|error| usage(&name, &error))?;
            PrivacyNoise::of_deviation(sigma, teachers, has_threshold)
        }
        (None, None) => return Ok(None),
    };
    let noise = noise.map_err(|error| usage(&name, &error))?;
    if has_threshold {
        noise.check_threshold(teachers).map_err(|error| usage(&name, &error))?;
    }
    Ok(Some(noise))
}
