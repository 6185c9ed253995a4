//! The queries of a ledger's charge, and `speed calibrate` for a ledger.

use serde_json::json;
use speed_accountant::ledger::{Fit, Ledger, Room};
use speed_accountant::{AccountError, Budget, PrivacyEvent, QueryBatch, Samplers, round_up};
use speed_core::printable_path;
use speed_mechanism::{HonestRatio, Mechanism, MechanismError, MechanismKind, NoiseCoins};

use super::calibrate::CalibrateOptions;
use super::noise::{noise, ratio, tossing, width};
use crate::bar::Bar;
use crate::commands::{Failure, print_report, usage};
use crate::options::NoiseOptions;

/// The properties of queries other than their noise and their number. `ledger charge` and `calibrate` share them, so
/// that `ledger charge` accepts the results of `calibrate`.
pub(super) struct QueryTerms {
    /// The requested ratio.
    ratio: HonestRatio,
    /// The ratio rounded down to an integer number of teachers.
    tau: HonestRatio,
    teachers: Option<usize>,
    classes: Option<usize>,
    threshold: Option<f64>,
    /// Whether the queries are checks.
    is_check: bool,
}

impl QueryTerms {
    pub(super) fn new(
        options: &NoiseOptions,
        teachers: Option<usize>,
        classes: Option<usize>,
        threshold: Option<f64>,
    ) -> Result<Self, Failure> {
        if classes.is_some_and(|classes| classes < 2) {
            return Err(usage("classes", "expected at least 2"));
        }
        Ok(Self {
            ratio: options.honest_ratio,
            tau: ratio(options, teachers)?,
            teachers,
            classes,
            threshold,
            is_check: false,
        })
    }

    /// Turns the queries into checks, which have a threshold.
    pub(super) fn with_checks(self, is_check: bool) -> Self {
        Self { is_check, ..self }
    }

    /// Returns a batch of this number of queries with this noise. The batch includes the sampler if teachers and classes
    /// determine its number of draws and the room's delta can include it. Otherwise the claim assumes exact noise.
    pub(super) fn batch(
        &self,
        room: Option<&Room>,
        noise: Mechanism,
        queries: usize,
    ) -> Result<QueryBatch, AccountError> {
        let mut event = PrivacyEvent::new(noise, self.tau);
        match self.threshold {
            Some(threshold) if self.is_check => event = PrivacyEvent::check(noise, self.tau, threshold)?,
            Some(threshold) => event = event.with_threshold(threshold)?,
            None => {}
        }
        let exact = QueryBatch::new(event, self.classes, queries);
        let (Some(teachers), Some(classes)) = (self.teachers, self.classes) else { return Ok(exact) };
        let drawing = self.ratio.noisy_teachers(teachers)?;
        let draws = if self.is_check { 1 } else { classes };
        let event = event.with_sampler(teachers, drawing, queries.saturating_mul(draws))?;
        let named = QueryBatch { event, ..exact };
        let is_beyond_delta = room.is_some_and(
            |room| matches!(room.fit(named), Err(AccountError::OverBudget { would_be, .. }) if would_be.is_infinite()),
        );
        Ok(if is_beyond_delta { exact } else { named })
    }

    /// Returns the options that describe these queries to `speed ledger charge`.
    fn in_options(&self, batch: &QueryBatch) -> String {
        let mechanism = batch.event.mechanism();
        let mut text = format!("--queries {}", batch.queries);
        if mechanism.kind() != MechanismKind::default() {
            text += &format!(" --mechanism {}", mechanism.kind());
        }
        text += &match (mechanism, self.teachers) {
            (Mechanism::Binomial { coins }, Some(teachers)) => format!(" --coins {}", coins.of_teacher(teachers)),
            _ => format!(" --{} {}", mechanism.kind().parameter(), mechanism.scale()),
        };
        if self.ratio != HonestRatio::ALL {
            text += &format!(" --honest-ratio {}", self.ratio.get());
        }
        for (name, value) in [("teachers", self.teachers), ("classes", self.classes)] {
            text += &value.map_or_else(String::new, |value| format!(" --{name} {value}"));
        }
        text + &self.threshold.map_or_else(String::new, |votes| format!(" --threshold {votes}"))
    }
}

/// Returns a failure that names the option that made an event impossible.
pub(super) fn refused(error: &AccountError) -> Failure {
    let name = match error {
        AccountError::Threshold { .. } => "threshold",
        AccountError::Mechanism(MechanismError::Teachers { .. }) | AccountError::TotalVariation { .. } => "teachers",
        AccountError::Mechanism(MechanismError::NoNoisyTeacher { .. }) => "honest-ratio",
        AccountError::Mechanism(MechanismError::Deviation { .. }) => "sigma",
        AccountError::Mechanism(
            MechanismError::Coins { .. }
            | MechanismError::SharedCoins { .. }
            | MechanismError::OddCoins { .. }
            | MechanismError::CoinsOfTeacher { .. },
        ) => "coins",
        AccountError::Mechanism(_) => "gamma",
        _ => "queries",
    };
    usage(name, error)
}

/// Finds noise or a number of queries that a ledger accepts.
pub(super) fn calibrate(options: &CalibrateOptions) -> Result<(), Failure> {
    let kind = options.noise.mechanism;
    if kind == MechanismKind::Gaussian {
        return Err(usage("mechanism", format!("a ledger charges Laplace, Skellam and binomial noise, found {kind}")));
    }
    if options.check.is_given() {
        let advice =
            "charge the checks first (speed ledger charge --check), and calibrate the answers without a threshold";
        return Err(usage("check-sigma", format!("a ledger's charges have one kind of noise each: {advice}")));
    }
    let terms = QueryTerms::new(&options.noise, options.teachers, options.classes, options.threshold)?;
    let room = room(options)?;
    let found = match options.queries {
        Some(queries) => {
            let sharers = if kind == MechanismKind::Binomial { tossing(options.teachers)? } else { 1 };
            let batch = |noise| terms.batch(Some(&room), noise, queries);
            let step = NoiseCoins::step(options.threshold.is_some());
            Bar::during("calibrating", || room.noise(kind, sharers, step, batch))
        }
        None => {
            let noise = noise(&options.noise, options.teachers, options.threshold.is_some())?;
            Bar::during("calibrating", || room.queries(|queries| terms.batch(Some(&room), noise, queries)))
        }
    };
    let found = found.map_err(|error| without_room(options, &error))?;
    print_report(options.json, &json(options, &found), || text(options, &terms, &found))
}

/// Explains why even the smallest possible request does not fit.
fn without_room(options: &CalibrateOptions, error: &AccountError) -> Failure {
    let tried = if options.queries.is_some() { "the widest noise" } else { "one query" };
    let why = match error {
        AccountError::OverBudget { would_be, budget, delta, .. } if would_be.is_infinite() => format!(
            "no finite epsilon is known at delta {delta:e} and the budget's epsilon of {budget}: the samplers of its charges are \
             further from exact noise than delta includes, or the noise is too small"
        ),
        AccountError::OverBudget { .. } | AccountError::Queries { .. } => error.to_string(),
        error => return refused(error),
    };
    usage(if options.budget { "budget" } else { "ledger" }, format!("no room, even with {tried}: {why}"))
}

/// Returns the room in the ledger that the options name, or in a new ledger.
fn room(options: &CalibrateOptions) -> Result<Room, Failure> {
    if let Some(epsilon) = options.epsilon.filter(|epsilon| !(*epsilon > 0.0 && epsilon.is_finite())) {
        return Err(usage("epsilon", format!("found {epsilon:?}, expected a finite number above 0")));
    }
    let Some(file) = &options.ledger else {
        let delta = options.delta.ok_or_else(|| usage("delta", "expected with --budget"))?;
        return Ok(Room::of_new(Budget { epsilon: options.epsilon, delta }));
    };
    let ledger = Ledger::open(file)?;
    let own = ledger.statement()?.budget;
    let limit =
        options.epsilon.map(|epsilon| Budget { epsilon: Some(epsilon), delta: options.delta.unwrap_or(own.delta) });
    Ok(ledger.room(limit)?)
}

fn json(options: &CalibrateOptions, found: &Fit) -> serde_json::Value {
    let Fit { batch, budget, spent } = found;
    let mechanism = batch.event.mechanism();
    // Uses the field names of a charge.
    let noise = serde_json::to_value(mechanism).unwrap_or_default();
    let parameter = mechanism.kind().parameter();
    json!({
        "scale": mechanism.scale(), "queries": batch.queries, "noise": noise["noise"], parameter: noise[parameter],
        "tau": batch.event.tau(), "classes": batch.classes, "threshold": batch.event.threshold(),
        "per_query_epsilon": batch.per_query_epsilon(), "ledger": options.ledger, "budget": budget,
        "spent_epsilon": spent.epsilon, "samplers_included": spent.samplers.are_included(),
    })
}

fn text(options: &CalibrateOptions, terms: &QueryTerms, found: &Fit) -> String {
    let Fit { batch, budget, spent } = found;
    let file = options.ledger.as_deref().map_or_else(|| "FILE".to_owned(), printable_path);
    let samplers = match spent.samplers {
        Samplers::Included => "delta includes the samplers",
        _ => {
            "exact noise is assumed, because --teachers and --classes, which determine the samplers' distance from it, are \
             missing or too large for delta to include that distance"
        }
    };
    format!(
        "{} queries with {} noise of {}: {} accepts them, after which {:.4} of its budget of {} at delta {:e} is spent\n\
         The rule: {}; {samplers}.\n\
         speed ledger charge {file} {}\n",
        batch.queries,
        batch.event.mechanism().kind(),
        width(batch.event.mechanism(), terms.teachers),
        if options.ledger.is_some() { "the ledger" } else { "a new ledger" },
        round_up(spent.epsilon, 4),
        budget.epsilon.unwrap_or(f64::INFINITY),
        budget.delta.get(),
        spent.rule,
        terms.in_options(batch)
    )
}
