//! The privacy bounds of a row's answered queries.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use speed_accountant::{Account, AccountError, Accountant, Adversary, Checks, Delta, Extent, PrivacyEvent};
use speed_mechanism::Mechanism;

use super::complete::complete;
use super::context::Context;
use super::kind::Kind;
use super::queries::{Queries, TeacherAnswers};
use super::stage::{Stage, StageFacts, StageName};
use crate::config::{AggregationKind, Config, RowConfig};
use crate::error::ExperimentError;
use crate::ledger::event;
use crate::report::{
    DATA_DEPENDENT, DATA_DEPENDENT_COLLUSION, DATA_INDEPENDENT, DATA_INDEPENDENT_PARTY, PAPER_FORMULAS,
};
use crate::store::{FinishedStage, StageFolder};

/// The file of the bounds.
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

    /// Computes the claim for a party, if teachers are grouped into parties.
    fn party(
        &mut self,
        config: &Config,
        row: &RowConfig,
        queries: usize,
        classes: usize,
    ) -> Result<(), ExperimentError> {
        if let Some(account) = data_independent_party(config, row, queries, classes)? {
            self.data_independent_party = self.value(DATA_INDEPENDENT_PARTY, account);
        }
        Ok(())
    }
}

/// The bounds of all rows with noise, by the rows' places in the config.
#[derive(Default)]
pub(crate) struct RowBounds(pub(crate) BTreeMap<usize, Bounds>);

/// The accounting for the labels of the rows with noise.
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
            let bounds = complete(context, &AccountStage { name: &node.name, row, counts: &counts })?;
            outputs.get_mut::<RowBounds>().0.insert(index, bounds);
            Ok(())
        },
    )
};

/// The accounting for the labels of one row.
struct AccountStage<'a> {
    name: &'a StageName,
    row: &'a RowConfig,
    /// The vote counts of its queries.
    counts: &'a [Vec<u32>],
}

impl AccountStage<'_> {
    /// Returns the claims on the queries.
    fn bounds(&self, context: &Context<'_>) -> Result<Bounds, ExperimentError> {
        let (counts, teachers) = (self.counts, context.config.ensemble.teachers);
        let classes = counts.first().map_or(0, Vec::len);
        let (config, noise, delta) = (context.config, self.row.noise, context.config.privacy.delta);
        let tau = event(config, self.row, &noise, counts.len(), classes)?.tau();
        let tight = accountant(config, self.row, counts.len(), classes)?;
        let mut bounds = Bounds::default();
        context.progress.begin(&format!("account {}", self.row.name), "claims", 4, 0);
        bounds.data_dependent = bounds.value(DATA_DEPENDENT, tight.account(counts, teachers));
        context.progress.advance(1, "");
        bounds.data_dependent_collusion = bounds
            .value(DATA_DEPENDENT_COLLUSION, tight.with_adversary(Adversary::Colluding).account(counts, teachers));
        context.progress.advance(1, "");
        bounds.data_independent =
            bounds.value(DATA_INDEPENDENT, tight.account_queries(self.row.most_answers(counts.len())));
        bounds.party(context.config, self.row, counts.len(), classes)?;
        context.progress.advance(1, "");
        // The paper covers no other noise, and no threshold.
        if let (Some(gamma), None) = (noise.mechanism().gamma(), self.row.threshold()) {
            let paper = Accountant::paper(PrivacyEvent::new(Mechanism::laplace(gamma), tau), delta);
            bounds.paper_formulas = bounds.value(PAPER_FORMULAS, paper.account(counts, teachers));
        }
        Ok(bounds)
    }
}

/// Returns the accountant of the tightest claims on a row's labels.
fn tight(row: &RowConfig, event: PrivacyEvent, delta: Delta) -> Accountant {
    let trusted = row.aggregation == AggregationKind::Trusted || row.noise.is_central();
    let central = trusted && event.tau().get() == 1.0;
    let adversary = if central { Adversary::ExternalWithCentral } else { Adversary::ExternalWithDropout };
    Accountant::new(event, delta).with_extent(Extent::UpTo).with_adversary(adversary)
}

/// Returns the accountant of the tightest claims on a row's labels, samplers and checks included.
fn accountant(config: &Config, row: &RowConfig, queries: usize, classes: usize) -> Result<Accountant, ExperimentError> {
    accountant_of(1, config, row, queries, classes)
}

/// Returns the accountant for neighbours that differ in the votes of `teachers` teachers.
fn accountant_of(
    teachers: usize,
    config: &Config,
    row: &RowConfig,
    queries: usize,
    classes: usize,
) -> Result<Accountant, ExperimentError> {
    let of = |event: PrivacyEvent| event.of_party(teachers).map_err(ExperimentError::from);
    let answers = of(event(config, row, &row.noise, row.most_answers(queries), classes)?)?;
    let accountant = tight(row, answers, config.privacy.delta);
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
    Ok(accountant(config, row, queries, classes)?.account_queries(row.most_answers(queries)))
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

impl Stage for AccountStage<'_> {
    type Output = Bounds;

    fn facts(&self) -> StageFacts<'_> {
        StageFacts { version: 2, ..StageFacts::new(self.name) }
    }

    fn inputs(&self, context: &Context<'_>) -> Result<Value, ExperimentError> {
        let (config, row) = (context.config, self.row);
        let teachers = config.ensemble.teachers;
        let source = config.noise.randomness;
        Ok(json!({
            "delta": config.privacy.delta,
            "noisy_teachers": row.honest_ratio.noisy_teachers(teachers)?,
            "teachers": teachers,
            "parties": config.ensemble.parties,
            "aggregation": row.aggregation,
            "noise": row.noise.written(source),
            "check": row.check.map(|check| check.written(source)),
            "answers": row.answers,
            "counts": self.counts,
        }))
    }

    fn run(&self, context: &Context<'_>, folder: &mut StageFolder) -> Result<Vec<String>, ExperimentError> {
        folder.write_json(BOUNDS, &self.bounds(context)?)?;
        context.progress.end(&format!("{}: accounted for", self.row.name));
        Ok(vec![BOUNDS.into()])
    }

    fn load(&self, _: &Context<'_>, done: &FinishedStage) -> Result<Bounds, ExperimentError> {
        done.read_json(BOUNDS)
    }
}

#[cfg(test)]
mod tests {
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
