//! The content of a ledger at one moment, with its claim.

use serde::{Deserialize, Serialize};
use speed_accountant::{Budget, round_up};

use crate::charge::Charge;

/// Half a line at the end of a ledger: a write that a crash cut short, or a copy that is not whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TornLine {
    /// Its number, from 1.
    pub line: usize,
    /// Number of bytes that are there.
    pub bytes: u64,
}

/// Content of a ledger at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    /// The budget.
    pub budget: Budget,
    /// Everything charged, in order.
    pub charges: Vec<Charge>,
    /// Number of all queries.
    pub queries: usize,
    /// The part of the budget that is spent, however the charges were chosen; the cost of the answers that is told afterwards
    /// is the budget's epsilon. Without a budget: one, fixed before the first answer, that would have allowed all of it at
    /// this delta.
    pub spent_epsilon: f64,
    /// The same if number and kinds of all charges were fixed before the first answer.
    #[serde(default)]
    pub fixed_epsilon: f64,
    /// True if delta covers how far the samplers are from exact noise; both epsilons are of exact noise otherwise.
    #[serde(default)]
    pub samplers_included: bool,
    /// The meaning of both in words.
    pub claim: String,
    /// Half a line at the end. If a crash cut it short its queries were never answered; if not, a charge is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub torn: Option<TornLine>,
}

/// The two epsilons of a statement.
#[derive(Clone, Copy)]
pub(crate) struct Epsilons {
    pub(crate) spent: f64,
    pub(crate) fixed: f64,
    pub(crate) samplers_included: bool,
}

/// Says what the epsilons mean.
pub(crate) fn claim(budget: &Budget, queries: usize, epsilons: Epsilons) -> String {
    let Epsilons { spent, fixed, samplers_included } = epsilons;
    let [shown, fixed] = [spent, fixed].map(|epsilon| round_up(epsilon, 4));
    let samplers = if samplers_included {
        "Samplers are included in delta."
    } else {
        "This is of exact noise: how far the samplers are from it is more than delta can include at this epsilon."
    };
    let delta = budget.delta.get();
    let adaptive = match budget.epsilon {
        Some(budget) if spent <= budget => format!(
            "({budget}, {delta:e})-DP of everything answered within this budget, also where charges were chosen by looking at \
             earlier answers; {shown} of it is spent"
        ),
        budget => format!(
            "a budget of {shown} at delta {delta:e}, fixed before the first answer, would have allowed these charges, also if \
             chosen by looking at earlier answers{}",
            budget.map_or(String::new(), |budget| format!("; the budget of {budget} is passed"))
        ),
    };
    format!(
        "({fixed}, {delta:e})-DP of the {queries} answers charged if all charges were fixed before the first answer; {adaptive}. \
         Whatever the votes are, in both directions; neighbours differ in one teacher's vote on every query. Noise of the \
         other teachers may be missing or known. {samplers} May be published."
    )
}
