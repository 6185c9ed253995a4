//! The outcomes of the checks of a row's queries.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::report::LabellingTimes;

/// The checks of all rows that have some, by the rows' places in the config.
#[derive(Default)]
pub(crate) struct RowChecks(pub(super) BTreeMap<usize, Checked>);

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Checked {
    /// The places of the queries that reached the threshold, in the list of the row's queries.
    pub(super) reached: Vec<usize>,
    /// The places of those among them that are answered: the first ones.
    #[serde(skip)]
    pub(super) passed: Vec<usize>,
    /// Number of checks whose outcome equals that of the clear text.
    pub(super) agreement: usize,
    /// Bytes that each teacher sends for all checks; 0 in clear text.
    pub(super) message_bytes: usize,
    #[serde(skip)]
    pub(super) times: Option<LabellingTimes>,
}
