//! The experiment's ledger: every set of answers with real noise is charged once, before it is given.
//!
//! It is stored beside the runs, in `RESULTS/EXPERIMENT/ledger`, because the answers of all runs of an experiment
//! concern the same teachers. A set of answers is identified by its question (votes, queries, noise), not by the name
//! of its row: answers of another run or row are copied without a charge.
//!
//! The noise of a charged set is derived from a key. The key stays in the stage, readable only by the owner, until the
//! answers are given, so a run that was killed gives exactly the answers that were charged. If charged answers are
//! lost, they are not answered again without `--force`.

mod checks;
mod event;
mod files;
mod payment;

pub(crate) use checks::{check, check_forced};
pub(crate) use event::{event, limit, planned_charge};
pub(crate) use files::LedgerFiles;
pub(crate) use payment::Payment;
