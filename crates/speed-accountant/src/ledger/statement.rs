//! The content of a ledger at one moment, with its claim.

use serde::{Deserialize, Serialize};

use crate::ledger::charge::{Charge, null_as_infinity};
use crate::{Budget, Delta, PrivacyFilter, Samplers, Spent, UNDIVIDED, round_up};

/// Largest number of charges, or kinds of charges, that a claim lists individually.
const MAX_NAMED: usize = 6;

/// An incomplete line at the end of a ledger: a write that a crash cut short, or an incomplete copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TornLine {
    /// Its number, from 1.
    pub line: usize,
    /// Number of bytes present.
    pub bytes: u64,
}

impl TornLine {
    /// Describes it.
    pub fn damage(&self) -> String {
        format!(
            "only {} bytes are left of it: a crash cut it short and its queries were never answered (the next charge \
             replaces it), or the file is an incomplete copy",
            self.bytes
        )
    }
}

/// Content of a ledger at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Statement {
    /// The budget.
    pub budget: Budget,
    /// All charges, in order.
    pub charges: Vec<Charge>,
    /// Total number of queries.
    pub queries: usize,
    /// The spent part of the budget, however the charges were chosen. The cost of the answers to state afterwards is
    /// the budget's epsilon. Without a budget: a budget, fixed before the first answer, that would have allowed all
    /// charges at this delta. Infinite, and null in JSON, if no finite epsilon is known.
    #[serde(deserialize_with = "null_as_infinity")]
    pub spent_epsilon: f64,
    /// The spent epsilon if the number and the kinds of all charges were fixed before the first answer.
    #[serde(deserialize_with = "null_as_infinity")]
    pub fixed_epsilon: f64,
    /// True if every charge states the distance of its samplers from exact noise, and delta covers it. Otherwise both
    /// epsilons are for exact noise.
    pub samplers_included: bool,
    /// The cost for all votes of the party, if a charge names several teachers of it. No budget limits it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub party: Option<PartyCost>,
    /// The claim: the meaning of all epsilons.
    pub claim: String,
    /// An incomplete last line; in the statement of a charge, the one that it replaced. If a crash cut it short, its queries were never
    /// answered; otherwise a charge is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub torn: Option<TornLine>,
}

/// The cost of all charges for neighbours that differ in all votes of one party on every query.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PartyCost {
    /// The largest number of teachers of the party in a charge.
    pub teachers: u32,
    /// A budget, fixed before the first answer, that would have allowed all charges at the delta of the ledger's budget, also if
    /// they were chosen by looking at earlier answers. Infinite, and null in JSON, if no finite epsilon is known.
    #[serde(deserialize_with = "null_as_infinity")]
    pub spent_epsilon: f64,
    /// The epsilon of all charges if their number and kinds were fixed before the first answer.
    #[serde(deserialize_with = "null_as_infinity")]
    pub fixed_epsilon: f64,
    /// True if every charge states the distance of its samplers from exact noise, and delta covers it.
    pub samplers_included: bool,
}

impl PartyCost {
    /// Composes charges for all votes of the party; returns also the claim in words. `None` if every charge is of a party of one
    /// teacher.
    pub(crate) fn new(delta: Delta, charges: &[Charge]) -> Option<(Self, String)> {
        let teachers = charges.iter().map(|charge| charge.party_teachers).max().filter(|most| *most > 1)?;
        let mut filter = PrivacyFilter::new(Budget { epsilon: None, delta });
        charges.iter().for_each(|charge| filter.compose(&charge.batch_of_party()));
        let (spent, fixed_epsilon) = (filter.spent(), filter.fixed_epsilon());
        let samplers_included = spent.samplers.are_included();
        let cost = Self { teachers, spent_epsilon: spent.epsilon, fixed_epsilon, samplers_included };
        Some((cost, cost.claim(delta, charges, spent.samplers)))
    }

    fn claim(&self, delta: Delta, charges: &[Charge], included: Samplers) -> String {
        let least = charges.iter().map(|charge| charge.party_teachers).min().unwrap_or(1);
        let teachers = match self.teachers {
            most if most == least => format!("{most} teachers"),
            most => format!("{least} to {most} teachers, as the charges state"),
        };
        let delta = delta.get();
        let guarantee = if self.spent_epsilon.is_finite() {
            let [spent, fixed] = [self.spent_epsilon, self.fixed_epsilon].map(|epsilon| round_up(epsilon, 4));
            format!(
                "({fixed}, {delta:e})-DP of the same answers if all charges were fixed before the first answer; a budget of {spent} \
                 at delta {delta:e}, fixed before the first answer, would have allowed these charges, also if chosen by looking at \
                 earlier answers; no budget limits this cost. {}Whatever the votes are, in both directions. Noise of the other \
                 teachers may be missing or known. May be published.",
                samplers(charges, included)
            )
        } else {
            format!("no finite epsilon is known at delta {delta:e}.")
        };
        format!(
            "For all votes of the party together, if neighbours differ in the votes of all its teachers on every query, empty votes included \
             ({teachers}): {guarantee} The claim for one teacher covers one person {UNDIVIDED}, in every charge; the claim for the party assumes \
             nothing about the division of its records."
        )
    }
}

/// Describes the meaning of the epsilons for one teacher.
pub(crate) fn claim(budget: &Budget, charges: &[Charge], spent: Spent, fixed: f64) -> String {
    let [shown, fixed] = [spent.epsilon, fixed].map(|epsilon| round_up(epsilon, 4));
    let delta = budget.delta.get();
    let adaptive = match budget.epsilon {
        Some(budget) if spent.epsilon <= budget => format!(
            "({budget}, {delta:e})-DP of everything answered within this budget, also where charges were chosen by looking at \
             earlier answers; {shown} of it is spent"
        ),
        budget => format!(
            "a budget of {shown} at delta {delta:e}, fixed before the first answer, would have allowed these charges, also if \
             chosen by looking at earlier answers{}",
            budget.map_or(String::new(), |budget| format!("; the budget of {budget} is passed"))
        ),
    };
    let queries = charges.iter().fold(0usize, |sum, charge| sum.saturating_add(charge.queries));
    format!(
        "({fixed}, {delta:e})-DP of the {queries} answers charged if all charges were fixed before the first answer; {adaptive}. \
         {}Whatever the votes are, in both directions; neighbours differ in one teacher's vote on every query, empty votes \
         included. Noise of the other teachers may be missing or known. {}May be published.",
        outcomes(charges),
        samplers(charges, spent.samplers)
    )
}

/// Describes the outcomes of the answers, because the claim holds only for these numbers of classes and thresholds.
fn outcomes(charges: &[Charge]) -> String {
    let mut kinds: Vec<Outcomes> = Vec::new();
    for charge in charges {
        // No bound of a check depends on the number of classes.
        let classes = charge.classes.filter(|_| !charge.is_check);
        let kind =
            Outcomes { classes, threshold: charge.threshold, is_check: charge.is_check, queries: charge.queries };
        match kinds.iter_mut().find(|other| Outcomes { queries: kind.queries, ..**other } == kind) {
            Some(same) => same.queries = same.queries.saturating_add(charge.queries),
            None => kinds.push(kind),
        }
    }
    if kinds.is_empty() {
        return String::new();
    }
    let more = kinds.len().saturating_sub(MAX_NAMED);
    let mut parts: Vec<String> = kinds.iter().take(MAX_NAMED).map(|kind| outcomes_of(*kind)).collect();
    if more > 0 {
        parts.push(format!("{more} more kinds, which the charges name"));
    }
    format!("Answers: {}. ", parts.join("; "))
}

/// The outcomes of a number of queries.
#[derive(Clone, Copy, PartialEq)]
struct Outcomes {
    classes: Option<usize>,
    threshold: Option<f64>,
    is_check: bool,
    queries: usize,
}

fn outcomes_of(Outcomes { classes, threshold, is_check, queries }: Outcomes) -> String {
    if let Some(votes) = threshold.filter(|_| is_check) {
        return format!("{queries} checks whether the largest noisy count reaches {votes}");
    }
    let threshold = match threshold {
        Some(votes) => format!("with \"no answer\" where no noisy count reaches {votes}"),
        None if classes.is_none() => "with any threshold or none".to_owned(),
        None => "without a threshold".to_owned(),
    };
    let classes = classes.map_or_else(|| "any number of".to_owned(), |classes| classes.to_string());
    format!("{queries} between {classes} classes {threshold}")
}

/// Describes whether delta includes the samplers, and the charges for which it does not.
fn samplers(charges: &[Charge], samplers: Samplers) -> String {
    let without: Vec<usize> =
        (1..).zip(charges).filter(|(_, charge)| !charge.names_sampler()).map(|(n, _)| n).collect();
    match samplers {
        _ if charges.is_empty() => String::new(),
        Samplers::Included => "Samplers are included in delta. ".to_owned(),
        Samplers::BeyondDelta => {
            "This is of exact noise: how far the samplers are from it is more than delta can include at this epsilon. "
                .to_owned()
        }
        Samplers::NotNamed { .. } if without.len() == charges.len() => {
            "This is of exact noise: delta includes no sampler's distance from it, because no charge names a sampler. "
                .to_owned()
        }
        Samplers::NotNamed { .. } => {
            let shown: Vec<String> = without.iter().take(MAX_NAMED).map(usize::to_string).collect();
            let more = match without.len().saturating_sub(MAX_NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!(
                "Delta includes the samplers of all {} charges except number {}{more}: these name no sampler, so exact noise is \
                 assumed there. ",
                charges.len(),
                shown.join(", ")
            )
        }
    }
}
