//! The experiment's ledger: every set of answers with real noise is charged once, before it is given.
//!
//! It is beside the runs, `RESULTS/EXPERIMENT/ledger`, because the answers of all runs of an experiment are about the
//! same teachers. A set of answers is identified by its question (votes, queries, noise), not by the name of its row:
//! answers that another run or row gave are copied and not charged again.
//!
//! The noise of a charged set is derived from a key, which stays in its stage, readable only by the owner, until the
//! answers are given. So after a kill, exactly the answers that were paid for are given. If charged answers are lost,
//! nothing is answered again without `--force`.

mod checks;
mod event;
mod files;
mod payment;

pub(crate) use checks::{check, check_forced};
pub(crate) use event::{event, limit, planned_charge};
pub(crate) use files::LedgerFiles;
pub(crate) use payment::Payment;
