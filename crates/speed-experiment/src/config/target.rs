//! The choice of queries and coins for a target epsilon: `privacy.target`. It uses the config alone, so the run's id is known
//! before any file is read, and neither votes nor labels can affect it.

use speed_accountant::calibrate::Target;
use speed_accountant::forecast::choose_queries;
use speed_accountant::{AccountError, Accountant, Adversary, Bound, PrivacyEvent};
use speed_core::NoisePlacement;
use speed_mechanism::{HonestRatio, MechanismError, MechanismKind, NoiseCoins};
use speed_report::AggregationKind;

use super::data::{DataConfig, DataSource};
use super::document::Source;
use super::fault::{Fault, refuse};
use super::noise::RawNoise;
use super::privacy::RawPrivacy;
use super::queries::RawQueries;
use super::row::RawRow;
use super::votes::{RawVotes, UNIFORM_CLASSES, VotesSourceKind};

/// The sections of a config that a choice reads and changes.
pub(super) struct Sections<'a> {
    pub(super) data: &'a DataConfig,
    pub(super) teachers: usize,
    pub(super) votes: &'a RawVotes,
    pub(super) queries: &'a mut RawQueries,
    pub(super) noise: &'a mut RawNoise,
    pub(super) privacy: &'a mut RawPrivacy,
    pub(super) rows: &'a [RawRow],
}

/// Chooses `queries.count` and `noise.coins` for `privacy.target`, if it is set. Values that were chosen earlier
/// (`privacy.chosen`) are kept if they meet the target.
pub(super) fn settle_target(raw: &mut Sections<'_>, source: &Source) -> Result<(), Fault> {
    let privacy = raw.privacy.check()?;
    let (Some(epsilon), Some(agreement)) = (privacy.target, privacy.agreement) else { return Ok(()) };
    check_noise(raw, source)?;
    raw.noise.mechanism = MechanismKind::Binomial;
    let classes = known_classes(raw.data, raw.votes, privacy.classes)?;
    // The checks of the sections refuse these values as written.
    let (Ok(tau), true) = (least_ratio(raw), (1..=raw.data.pool_images).contains(&raw.queries.count)) else {
        return Ok(());
    };
    let tau = tau.map_or_else(|| refuse("privacy.target", "there is no row with noise: leave it out"), Ok)?;
    let (delta, adversary, bound) = (privacy.delta, Adversary::ExternalWithDropout, Bound::Tight);
    let target = Target { epsilon, delta, tau, adversary, bound, classes: None, threshold: None, checks: None };
    if privacy.is_chosen {
        return check_choice(raw, &target);
    }
    if raw.noise.coins != 0 {
        return refuse(
            "noise.coins",
            format!("found {}, but privacy.target chooses them: leave it out", raw.noise.coins),
        );
    }
    let choice = choose_queries((agreement, classes), raw.teachers, raw.queries.count, &target);
    let choice = choice.map_err(|error| match error {
        AccountError::TooFewQueries { .. } => Fault::new("queries.count", error),
        error => Fault::new("privacy.target", error),
    })?;
    (raw.noise.coins, raw.queries.count, raw.privacy.chosen) = (choice.coins, choice.forecast.queries, true);
    Ok(())
}

/// Refuses keys that contradict a choice of the noise.
fn check_noise(raw: &Sections<'_>, source: &Source) -> Result<(), Fault> {
    let leave_out = "privacy.target chooses the noise: leave it out";
    let noise = &raw.noise;
    if noise.mechanism != MechanismKind::Binomial && source.sets("noise.mechanism") {
        let message = format!("found {}, expected binomial, whose coins privacy.target chooses", noise.mechanism);
        return refuse("noise.mechanism", message);
    }
    if noise.sigma != 0.0 {
        return refuse("noise.sigma", leave_out);
    }
    if noise.threshold != 0 {
        return refuse(
            "noise.threshold",
            "privacy.target chooses queries that are all answered: leave one of them out",
        );
    }
    if raw.queries.rounds != 1 {
        return refuse(
            "queries.rounds",
            "privacy.target chooses the number of queries of one round: leave one of them out",
        );
    }
    if !raw.queries.file.is_empty() {
        return refuse(
            "queries.file",
            "has a fixed number of queries, but privacy.target chooses it: leave one of them out",
        );
    }
    let own = |row: &RawRow| {
        let keys = [
            ("mechanism", row.mechanism.0.is_some()),
            ("gamma", row.gamma != 0.0),
            ("sigma", row.sigma != 0.0),
            ("coins", row.coins != 0),
            ("threshold", row.threshold != 0),
            ("check_coins", row.check_coins != 0),
            ("check_sigma", row.check_sigma != 0.0),
            ("check_gamma", row.check_gamma != 0.0),
        ];
        keys.into_iter().find(|(_, is_set)| *is_set).map(|(key, _)| key)
    };
    match raw.rows.iter().enumerate().find_map(|(index, row)| own(row).map(|key| (index, key))) {
        Some((index, key)) => refuse(format!("row.{index}.{key}"), leave_out),
        None => Ok(()),
    }
}

/// Returns the number of classes that the config determines, or the number `given` as `privacy.classes`.
pub(super) fn known_classes(data: &DataConfig, votes: &RawVotes, given: Option<usize>) -> Result<usize, Fault> {
    let names = Some(data.classes.len()).filter(|found| *found > 0);
    let of_images = data.facts().map(|facts| facts.classes).or(names);
    let of_votes = match votes.source {
        _ if votes.classes > 0 => Some(votes.classes),
        VotesSourceKind::Uniform if data.source == DataSource::None => Some(UNIFORM_CLASSES),
        _ => None,
    };
    match (of_images.or(of_votes), given) {
        (Some(expected), Some(found)) if found != expected => refuse(
            "privacy.classes",
            format!("found {found}, expected {expected}, the number of classes of this config"),
        ),
        (Some(known), _) | (None, Some(known)) => Ok(known),
        (None, None) => refuse(
            "privacy.classes",
            "privacy.target needs the number of classes, which this config does not determine before its files are read",
        ),
    }
}

/// Returns the least ratio of the teachers whose noise is counted in a row with noise; `None` if no row has noise.
fn least_ratio(raw: &Sections<'_>) -> Result<Option<HonestRatio>, MechanismError> {
    let ratio = |row: &RawRow| match row.placement.0.unwrap_or(raw.noise.placement) {
        NoisePlacement::Central => Ok(HonestRatio::ALL),
        NoisePlacement::Distributed => HonestRatio::new(row.honest_ratio)?.effective(raw.teachers),
    };
    let noisy = raw.rows.iter().filter(|row| row.aggregation != AggregationKind::NonPrivate);
    let ratios = noisy.map(ratio).collect::<Result<Vec<_>, _>>()?;
    Ok(ratios.into_iter().reduce(|a, b| if b < a { b } else { a }))
}

/// Checks that coins and queries of an earlier choice meet the target.
fn check_choice(raw: &Sections<'_>, target: &Target) -> Result<(), Fault> {
    let of_coins = |error: AccountError| Fault::new("noise.coins", error);
    let coins = raw.noise.coins.saturating_mul(raw.teachers as u64);
    let noise = speed_mechanism::Mechanism::binomial(NoiseCoins::new(coins).map_err(|error| of_coins(error.into()))?);
    let accountant = Accountant::new(PrivacyEvent::new(noise, target.tau), target.delta);
    let epsilon = accountant.account_queries(raw.queries.count).map_err(of_coins)?.epsilon;
    if epsilon <= target.epsilon {
        return Ok(());
    }
    let Target { epsilon: most, .. } = target;
    let (found, queries) = (raw.noise.coins, raw.queries.count);
    refuse(
        "privacy.chosen",
        format!("{queries} queries with {found} coins cost epsilon {epsilon:.4}, more than privacy.target = {most}"),
    )
}
