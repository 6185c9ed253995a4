//! The experiment's ledger: every set of answers with real noise is charged once, before it is given.
//!
//! It lies beside the runs, `RESULTS/EXPERIMENT/ledger`, because the answers of all runs of an experiment are about the
//! same teachers. A set of answers is known by its question (votes, queries, noise), not by the name of its row: answers that
//! another run or row gave are copied and not charged again.
//!
//! The noise of a charged set grows from a key that lies in its stage, for its owner only, until the answers are given: after a
//! kill the very answers come that were paid for. Where charged answers are gone nothing is answered again without `--force`.

mod checks;
mod event;
mod files;
mod payment;

pub(crate) use checks::{check, check_forced};
pub(crate) use event::{event, limit, planned_charge};
pub(crate) use files::LedgerFiles;
pub(crate) use payment::Payment;
