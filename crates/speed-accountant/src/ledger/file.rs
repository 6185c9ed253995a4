//! The lines of a ledger: an entry as JSON, and a checksum that covers all lines before as well.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Budget, Charge, Ledger, LedgerError, TornLine};
use crate::accountant::MOST_QUERIES;

/// Version of the format.
pub(super) const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub(super) enum Entry {
    Open {
        format: u32,
        #[serde(flatten)]
        budget: Budget,
    },
    Charge(Charge),
}

/// A ledger that was read: its entries, the checksum of the last, and where the last whole line ends.
pub(super) struct State {
    pub(super) budget: Budget,
    pub(super) charges: Vec<Charge>,
    pub(super) checksum: String,
    pub(super) end: u64,
    pub(super) torn: Option<TornLine>,
}

impl Ledger {
    /// Reads and checks every line.
    pub(super) fn read(&self, file: &mut File) -> Result<State, LedgerError> {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_end(&mut bytes)).map_err(self.io("read"))?;
        // What follows the last line end is a write that a crash cut short.
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
        let text = std::str::from_utf8(&bytes[..whole]).map_err(|error| self.damaged(1, error.to_string()))?;
        let (mut budget, mut charges, mut checksum, mut charged) = (None, Vec::new(), String::new(), 0usize);
        for (number, line) in text.lines().enumerate() {
            let damaged = |message: String| self.damaged(number + 1, message);
            let (entry, written) =
                line.rsplit_once(' ').ok_or_else(|| damaged("expected an entry and a checksum".into()))?;
            let expected = chained(&checksum, entry);
            if written != expected {
                return Err(damaged(format!(
                    "checksum is {written}, expected {expected}: a line was changed or is missing"
                )));
            }
            checksum = expected;
            match serde_json::from_str(entry).map_err(|error| damaged(error.to_string()))? {
                Entry::Open { format: FORMAT, budget: opened } if number == 0 => budget = Some(opened),
                Entry::Open { format, .. } => {
                    return Err(damaged(format!(
                        "expected one opening line of format {FORMAT}, found format {format}"
                    )));
                }
                Entry::Charge(charge) => {
                    charged = charged.saturating_add(charge.queries);
                    if charged > MOST_QUERIES {
                        return Err(damaged(format!("{charged} queries are charged, expected at most {MOST_QUERIES}")));
                    }
                    if !(0.0..=1.0).contains(&charge.sampling_distance) {
                        let found = charge.sampling_distance;
                        return Err(damaged(format!("sampling_distance is {found}, expected a number from 0 to 1")));
                    }
                    charges.push(charge);
                }
            }
        }
        let budget = budget.ok_or_else(|| self.damaged(1, "expected an opening line with the budget".into()))?;
        let torn =
            (whole < bytes.len()).then(|| TornLine { line: charges.len() + 2, bytes: (bytes.len() - whole) as u64 });
        Ok(State { budget, charges, checksum, end: whole as u64, torn })
    }

    /// A line of the file, with its checksum.
    pub(super) fn line(&self, entry: &Entry, before: &str) -> Result<String, LedgerError> {
        let entry = serde_json::to_string(entry).map_err(|error| self.refused(error.to_string()))?;
        Ok(format!("{entry} {}\n", chained(before, &entry)))
    }
}

fn chained(before: &str, entry: &str) -> String {
    let digest = Sha256::new().chain_update(before).chain_update("\n").chain_update(entry).finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
