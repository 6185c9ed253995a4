//! The privacy bounds of a row's answered queries.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};
use serde_json::json;
use speed_accountant::{Account, AccountError, Accountant, Adversary, Checks, Extent, PrivacyEvent};
use speed_mechanism::Mechanism;

use super::complete::complete;
use super::context::Context;
use super::kind::Kind;
use super::queries::{Queries, TeacherAnswers};
use super::stage::{JsonStage, StageFacts};
use crate::config::{AggregationKind, Config, RowConfig};
use crate::error::ExperimentError;
use crate::ledger::event;
use crate::report::{
    DATA_DEPENDENT, DATA_DEPENDENT_COLLUSION, DATA_INDEPENDENT, DATA_INDEPENDENT_PARTY, PAPER_FORMULAS,
};

const BOUNDS: &str = "account.json";

/// The bounds of one row. A bound without a value has its reason in `without_value`, and does not end the run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Bounds {
    /// The tightest valid claim at these votes for the integer noise that was added, in both directions: dropout of any
    /// number of the teachers beyond the ratio, or central noise for a trusted aggregator.
    pub(crate) data_dependent: Option<Account>,
    /// The same if the adversary may know these teachers' noise.
    pub(crate) data_dependent_collusion: Option<Account>,
    /// The tightest claim for any votes: valid in both directions and under collusion, and may be published.
    pub(crate) data_independent: Option<Account>,
    /// The same claim for neighbours that differ in all votes of the largest party, if teachers are grouped into parties.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data_independent_party: Option<Account>,
    /// Algorithm 1 with the paper's formulas for continuous Laplace noise, at these votes: comparable with its tables.
    pub(crate) paper_formulas: Option<Account>,
    /// The bounds without a value, and the reasons.
    pub(crate) without_value: Vec<String>,
}

impl Bounds {
    /// Returns a bound if it has a value. It may have none if no finite bound is known, or if the sampler's distance is
    /// too large for it. The answers were already given, so a missing bound does not end the run.
    fn value(&mut self, name: &str, account: Result<Account, AccountError>) -> Option<Account> {
        account.map_err(|error| self.without_value.push(format!("{name}: {error}"))).ok()
    }
}

/// The bounds of all rows with noise, by the rows' places in the config.
#[derive(Default)]
pub(crate) struct RowBounds(pub(crate) BTreeMap<usize, Bounds>);

pub(super) static ACCOUNTING: Kind = Kind {
    is_per_row: true,
    is_needed_by_shards: false,
    ..Kind::new(
        "account",
        |config, row| row.is_some_and(|row| config.rows[row].is_noisy()),
        |context, node, outputs| {
            let Some((index, row)) = node.row.map(|index| (index, &context.config.rows[index])) else { return Ok(()) };
            let answers = outputs.get::<TeacherAnswers>();
            let counts = answers.counts(outputs.get::<Queries>().of_row(row).len());
            let (config, teachers, source) =
                (context.config, context.config.ensemble.teachers, context.config.noise.source);
            let inputs = json!({
                "delta": config.delta,
                "noisy_teachers": row.honest_ratio.noisy_teachers(teachers)?,
                "teachers": teachers,
                "parties": config.ensemble.parties,
                "aggregation": row.aggregation,
                "noise": row.noise.written(source),
                "check": row.check.map(|check| check.written(source)),
                "answers": NonZeroUsize::new(row.answers),
                "counts": counts,
            });
            let facts = StageFacts { version: 2, ..StageFacts::new(&node.name) };
            let work = || bounds(context, row, &counts);
            let bounds = complete(context, &JsonStage { facts, file: BOUNDS, inputs, work })?;
            outputs.get_mut::<RowBounds>().0.insert(index, bounds);
            Ok(())
        },
    )
};

fn bounds(context: &Context<'_>, row: &RowConfig, counts: &[Vec<u32>]) -> Result<Bounds, ExperimentError> {
    let (config, noise, teachers) = (context.config, row.noise, context.config.ensemble.teachers);
    let classes = counts.first().map_or(0, Vec::len);
    let tau = event(config, row, &noise, counts.len(), classes)?.tau();
    let tight = accountant_of(1, config, row, counts.len(), classes)?;
    let mut bounds = Bounds::default();
    context.progress.begin(&format!("account {}", row.name), "claims", 4, 0);
    bounds.data_dependent = bounds.value(DATA_DEPENDENT, tight.account(counts, teachers));
    context.progress.advance(1, "");
    bounds.data_dependent_collusion =
        bounds.value(DATA_DEPENDENT_COLLUSION, tight.with_adversary(Adversary::Colluding).account(counts, teachers));
    context.progress.advance(1, "");
    bounds.data_independent = bounds.value(DATA_INDEPENDENT, tight.account_queries(row.most_answers(counts.len())));
    if let Some(account) = data_independent_party(config, row, counts.len(), classes)? {
        bounds.data_independent_party = bounds.value(DATA_INDEPENDENT_PARTY, account);
    }
    context.progress.advance(1, "");
    // The paper covers no other noise, and no threshold.
    if let (Some(gamma), None) = (noise.mechanism().gamma(), row.threshold()) {
        let paper = Accountant::paper(PrivacyEvent::new(Mechanism::laplace(gamma), tau), config.delta);
        bounds.paper_formulas = bounds.value(PAPER_FORMULAS, paper.account(counts, teachers));
    }
    context.progress.end(&format!("{}: accounted for", row.name));
    Ok(bounds)
}

/// Returns the accountant of the tightest claims on a row's labels, samplers and checks included, for neighbours that differ in the
/// votes of `changed` teachers.
fn accountant_of(
    changed: usize,
    config: &Config,
    row: &RowConfig,
    queries: usize,
    classes: usize,
) -> Result<Accountant, ExperimentError> {
    let of = |event: PrivacyEvent| event.of_party(changed).map_err(ExperimentError::from);
    let answers = of(event(config, row, &row.noise, row.most_answers(queries), classes)?)?;
    let trusted = row.aggregation == AggregationKind::Trusted || row.noise.is_central();
    let central = trusted && answers.tau().get() == 1.0;
    let adversary = if central { Adversary::ExternalWithCentral } else { Adversary::ExternalWithDropout };
    let accountant = Accountant::new(answers, config.delta).with_extent(Extent::UpTo).with_adversary(adversary);
    let Some(check) = &row.check else { return Ok(accountant) };
    Ok(accountant.after(Checks { event: of(event(config, row, check, queries, classes)?)?, queries }))
}

/// Returns the data-independent claim on a row's labels from the config alone, or the reason for its absence. After checks
/// it is for the largest number of answers.
pub(crate) fn data_independent(
    config: &Config,
    row: &RowConfig,
    queries: usize,
    classes: usize,
) -> Result<Result<Account, AccountError>, ExperimentError> {
    Ok(accountant_of(1, config, row, queries, classes)?.account_queries(row.most_answers(queries)))
}

/// Returns the data-independent claim on a row's labels for neighbours that differ in all votes of the largest party; `None` if
/// every teacher is a party.
pub(crate) fn data_independent_party(
    config: &Config,
    row: &RowConfig,
    queries: usize,
    classes: usize,
) -> Result<Option<Result<Account, AccountError>>, ExperimentError> {
    match config.ensemble.largest_party() {
        1 => Ok(None),
        teachers => {
            let accountant = accountant_of(teachers, config, row, queries, classes)?;
            Ok(Some(accountant.account_queries(row.most_answers(queries))))
        }
    }
}

#[cfg(test)]
mod tests {
    use speed_accountant::Delta;
    use speed_mechanism::{HonestRatio, InverseScale, NoiseShare};

    use super::*;

    #[test]
    fn a_claim_without_a_value_has_a_reason_and_is_not_an_error() {
        // With this little noise, a hundred queries with any votes cost more than the sampler's distance allows, but
        // the claim at these votes is not limited by that.
        let (gamma, teachers) = (InverseScale::new(0.7).expect("a scale"), 250);
        let counts = vec![vec![230, 12, 8]; 100];
        let distance = NoiseShare::new(gamma, teachers).expect("a table").total_variation_of_draws(250 * 100 * 3);
        let event = PrivacyEvent::new(Mechanism::discrete_laplace(gamma), HonestRatio::ALL);
        let event = event.with_sampling_total_variation(distance).expect("a distance");
        let accountant = Accountant::new(event, Delta::new(1e-5).expect("a delta"));
        let mut bounds = Bounds::default();
        let tight = bounds.value("tight", accountant.account(&counts, teachers));
        assert!(tight.is_some_and(|account| account.epsilon < 1.0) && bounds.without_value.is_empty());
        let any = bounds.value("any", accountant.account_queries(100));
        assert!(any.is_none() && bounds.without_value[0].contains("any: sampler"), "{:?}", bounds.without_value);
    }
}
