//! A record of answered queries with a budget: append-only, checksummed, safe after a crash and between processes.
//!
//! Its three main uses:
//! - create a ledger with a budget of epsilon and delta ([`Ledger::create`]);
//! - charge queries before they are answered, or be refused ([`Ledger::charge`]);
//! - read the charges and the spent epsilon, which may be published ([`Ledger::statement`]).
//!
//! A ledger is a text file with one JSON object per line. The first line holds the budget; each further line charges
//! queries of one kind. Every line ends with the SHA-256 of the line and of the previous checksum, which reveals
//! changed, removed and reordered lines. A charge is written and synced **before** the queries are answered: after a
//! crash the ledger may count an answer that was not given, but it never misses an answer. The file is locked while it
//! is read and extended, so two processes cannot spend the same budget.
//!
//! A charge of a party with several teachers states their number. The statement then has the cost of all charges for one
//! teacher, which the budget limits, and for all votes of the party together.
//!
//! Charges are composed without votes, in the worst case ([`PrivacyFilter`](crate::PrivacyFilter)): the
//! ledger may be published, and refusing a query reveals nothing about votes. The budget also holds if charges are
//! chosen after looking at answers (docs/privacy.md, "Calibration, ledger, audit").
//!
//! ```
//! use speed_accountant::{Budget, Delta, PrivacyEvent};
//! use speed_accountant::ledger::{Ledger, LedgerError};
//! use speed_mechanism::{HonestRatio, InverseScale, Mechanism};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("ledger");
//! let event = PrivacyEvent::new(Mechanism::discrete_laplace(InverseScale::new(0.1)?), HonestRatio::ALL);
//! let ledger = Ledger::create(&path, Budget { epsilon: Some(6.0), delta: Delta::new(1e-5)? })?;
//! // Before the queries between 10 classes are answered; also where answers decide the next question.
//! let statement = ledger.charge("a hundred labels", &event, 10, 100)?;
//! assert!(statement.spent_epsilon <= 6.0);
//! assert!(matches!(ledger.charge("too many", &event, 10, 100), Err(LedgerError::OverBudget { .. })));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod charge;
mod error;
mod file;
mod lines;
mod room;
mod statement;

pub use charge::{Charge, ChargeRequest, PartySize};
pub use error::LedgerError;
pub use file::{Ledger, would_allow};
pub use room::{Fit, Room};
pub use statement::{PartyCost, Statement, TornLine};
