//! A record of answered queries with a budget: append-only, checksummed, safe after a crash and between processes.
//!
//! A ledger is a text file with one JSON object a line. The first line holds the budget; each further line charges queries
//! of one kind. Every line ends with the SHA-256 of the line and of the checksum before it, so that a line that was changed,
//! removed or put elsewhere is found. A charge is written and synced **before** the queries are answered: after a crash
//! the ledger may count an answer that was not given, never the other way round. The file is locked while it is read and
//! extended, so two processes cannot spend the same budget.
//!
//! Charges are composed without votes, in the worst case: the ledger may be published, and refusing a query reveals nothing
//! about votes. The budget holds however charges are chosen, also after looking at answers (docs/privacy.md, "Calibration, ledger,
//! audit").

mod error;
mod file;
mod filter;

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use speed_mechanism::HonestRatio;

use crate::accountant::MOST_QUERIES;
use crate::per_query::tight_per_query_epsilon;
use crate::{AccountError, Delta, Noise, PrivacyEvent};
use file::{Entry, FORMAT, State};

pub use error::LedgerError;

/// What may be spent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// Epsilon for everything that is ever charged; none for a record without a limit of its own.
    pub epsilon: Option<f64>,
    /// Delta for everything that is ever charged, samplers included.
    pub delta: Delta,
}

/// Queries of one kind that were charged together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Charge {
    /// What they were for, in the caller's words.
    pub label: String,
    /// How many.
    pub queries: usize,
    /// Their noise.
    #[serde(flatten)]
    pub noise: Noise,
    /// The ratio of teachers whose noise is present and secret.
    pub tau: HonestRatio,
    /// Between how many classes; older ledgers do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<usize>,
    /// The noisy votes that an answer needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Statistical distance of all their draws from exact noise.
    pub sampling_distance: f64,
    /// Pure epsilon of one of them, as it was known when they were charged; what is spent is computed anew.
    pub per_query_epsilon: f64,
    /// The caller's digest of what was asked; older ledgers have none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub question: String,
    /// The caller's digest of the noise of the answers, which tells two charges for one question apart.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub noise_digest: String,
}

/// Queries that are to be charged.
#[derive(Clone, Copy, Debug)]
pub struct ChargeRequest<'a> {
    /// What they are for.
    pub label: &'a str,
    /// Their noise.
    pub event: &'a PrivacyEvent,
    /// Between how many classes.
    pub classes: usize,
    /// How many.
    pub queries: usize,
    /// [`Charge::question`], or nothing.
    pub question: &'a str,
    /// [`Charge::noise_digest`], or nothing: a charge with the same one is there already, if there is any.
    pub noise_digest: &'a str,
    /// A limit of the caller's beside the ledger's own.
    pub limit: Option<Budget>,
}

/// Half a line at the end of a ledger: a write that a crash cut short, or a copy that is not whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TornLine {
    /// Its number, from 1.
    pub line: usize,
    /// How many bytes of it are there.
    pub bytes: u64,
}

/// What a ledger says at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    /// The budget.
    pub budget: Budget,
    /// Everything charged, in order.
    pub charges: Vec<Charge>,
    /// How many queries that is.
    pub queries: usize,
    /// What of the budget is spent, however the charges were chosen; what answers are told to have cost afterwards is the budget's
    /// epsilon. Without a budget: one, fixed before the first answer, that would have allowed all of it at this delta.
    pub spent_epsilon: f64,
    /// The same if number and kinds of all charges were fixed before the first answer.
    #[serde(default)]
    pub fixed_epsilon: f64,
    /// What that means.
    pub claim: String,
    /// Half a line at the end. If a crash cut it short its queries were never answered; if not, a charge is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub torn: Option<TornLine>,
}

/// A ledger file.
#[derive(Clone, Debug)]
pub struct Ledger {
    path: PathBuf,
}

/// Whether a new ledger with this budget would allow queries (event, classes, how many).
///
/// # Errors
/// As [`Ledger::would_allow`].
pub fn would_allow(budget: Budget, queries: &[(PrivacyEvent, usize, usize)]) -> Result<(), LedgerError> {
    let ledger = Ledger { path: PathBuf::from("(a new one)") };
    let charges: Result<Vec<Charge>, LedgerError> =
        queries.iter().map(|(event, classes, queries)| ledger.new_charge(event, *classes, *queries)).collect();
    let mut state = State { budget, charges: Vec::new(), checksum: String::new(), end: 0, torn: None };
    ledger.check(&mut state, &charges?, None)
}

/// A budget of epsilon that allows queries (event, classes, how many), at `delta`, without a ledger: the least that is found.
///
/// # Errors
/// [`AccountError::Queries`] for too many.
pub fn least_budget(delta: Delta, queries: &[(PrivacyEvent, usize, usize)]) -> Result<f64, AccountError> {
    let found = queries.iter().fold(0usize, |sum, (_, _, queries)| sum.saturating_add(*queries));
    if found > MOST_QUERIES {
        return Err(AccountError::Queries { found });
    }
    let charges: Vec<Charge> =
        queries.iter().map(|(event, classes, queries)| Charge::of(event, *classes, *queries)).collect();
    Ok(filter::spent(&Budget { epsilon: None, delta }, &charges).adaptive)
}

impl Charge {
    /// Without a label.
    fn of(event: &PrivacyEvent, classes: usize, queries: usize) -> Self {
        Self {
            label: String::new(),
            queries,
            noise: event.noise(),
            tau: event.tau(),
            classes: Some(classes),
            threshold: event.threshold(),
            sampling_distance: event.sampling_distance(),
            per_query_epsilon: tight_per_query_epsilon(event, classes),
            question: String::new(),
            noise_digest: String::new(),
        }
    }
}

impl Ledger {
    /// Starts a ledger; the file must not exist.
    ///
    /// # Errors
    /// [`LedgerError::Io`] if the file exists or cannot be written, [`LedgerError::Refused`] for a budget that is no
    /// positive finite epsilon.
    pub fn create(path: &Path, budget: Budget) -> Result<Self, LedgerError> {
        let ledger = Self { path: path.to_path_buf() };
        ledger.check_budget(&budget)?;
        let line = ledger.line(&Entry::Open { format: FORMAT, budget }, "")?;
        // Whole under another name first, then linked where nothing may be: nobody sees half a ledger, whenever this ends.
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".new-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
        let new = path.with_file_name(name);
        let write = || -> std::io::Result<()> {
            let mut file = File::create_new(&new)?;
            file.write_all(line.as_bytes())?;
            file.sync_all()?;
            std::fs::hard_link(&new, path)
        };
        let written = write();
        // One that stays behind is in nobody's way.
        let _ = std::fs::remove_file(&new);
        written.map_err(ledger.io("create"))?;
        sync_folder(path);
        Ok(ledger)
    }

    /// Opens a ledger and checks all of it.
    ///
    /// # Errors
    /// [`LedgerError::Io`] if it cannot be read, [`LedgerError::Damaged`] if a line is not what was written.
    pub fn open(path: &Path) -> Result<Self, LedgerError> {
        let ledger = Self { path: path.to_path_buf() };
        ledger.statement()?;
        Ok(ledger)
    }

    /// What it says now.
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub fn statement(&self) -> Result<Statement, LedgerError> {
        let mut file = File::open(&self.path).map_err(self.io("open"))?;
        file.lock_shared().map_err(self.io("lock"))?;
        let state = self.read(&mut file)?;
        let spent = filter::spent(&state.budget, &state.charges);
        let fixed = filter::fixed(&state.budget, &state.charges, spent.adaptive);
        let queries = state.charges.iter().map(|charge| charge.queries).sum();
        let samplers = if spent.samplers_included {
            "Samplers are included in delta."
        } else {
            "This is of exact noise: how far the samplers are from it is more than delta can include at this epsilon."
        };
        let delta = state.budget.delta.get();
        let adaptive = match state.budget.epsilon {
            Some(budget) if spent.adaptive <= budget => format!(
                "({budget}, {delta:e})-DP of everything answered within this budget, also where charges were chosen by looking at \
                 earlier answers; {} of it is spent",
                spent.adaptive
            ),
            budget => format!(
                "a budget of {} at delta {delta:e}, fixed before the first answer, would have allowed these charges, also if \
                 chosen by looking at earlier answers{}",
                spent.adaptive,
                budget.map_or(String::new(), |budget| format!("; the budget of {budget} is passed"))
            ),
        };
        let claim = format!(
            "({fixed}, {delta:e})-DP of the {queries} answers charged if all charges were fixed before the first answer; {adaptive}. \
             Whatever the votes are, in both directions; neighbours differ in one teacher's vote on every query. Noise of the \
             other teachers may be missing or known. {samplers} May be published."
        );
        Ok(Statement {
            budget: state.budget,
            charges: state.charges,
            queries,
            spent_epsilon: spent.adaptive,
            fixed_epsilon: fixed,
            claim,
            torn: state.torn,
        })
    }

    /// Opens a ledger, or starts one where there is none.
    ///
    /// # Errors
    /// Those of [`Self::create`] and [`Self::open`].
    pub fn open_or_create(path: &Path, budget: Budget) -> Result<Self, LedgerError> {
        match Self::create(path, budget) {
            Err(LedgerError::Io { source, .. }) if source.kind() == std::io::ErrorKind::AlreadyExists => {
                Self::open(path)
            }
            result => result,
        }
    }

    /// Charges `queries` queries between `classes` classes, before they are answered. If this returns, they may be
    /// answered.
    ///
    /// # Errors
    /// [`LedgerError::OverBudget`] if they would pass the budget: nothing is charged. [`LedgerError::Refused`] for no
    /// queries and for noise without a pure epsilon; [`LedgerError::Io`] and [`LedgerError::Damaged`] as above.
    pub fn charge(
        &self,
        label: &str,
        event: &PrivacyEvent,
        classes: usize,
        queries: usize,
    ) -> Result<Statement, LedgerError> {
        let request = ChargeRequest { label, event, classes, queries, question: "", noise_digest: "", limit: None };
        self.charge_once(&request)
    }

    /// [`Self::charge`] unless the answers with this noise are charged already, and held to a limit of the caller's as well.
    ///
    /// # Errors
    /// Those of [`Self::charge`].
    pub fn charge_once(&self, request: &ChargeRequest<'_>) -> Result<Statement, LedgerError> {
        let charge = Charge {
            label: request.label.to_owned(),
            question: request.question.to_owned(),
            noise_digest: request.noise_digest.to_owned(),
            ..self.new_charge(request.event, request.classes, request.queries)?
        };
        let mut file = OpenOptions::new().read(true).write(true).open(&self.path).map_err(self.io("open"))?;
        file.lock().map_err(self.io("lock"))?;
        let mut state = self.read(&mut file)?;
        let is_same = |other: &Charge| !charge.noise_digest.is_empty() && other.noise_digest == charge.noise_digest;
        if let Some(same) = state.charges.iter().find(|other| is_same(other)) {
            let is_whole = same.question == charge.question && same.queries == charge.queries && same.tau == charge.tau;
            if !is_whole || same.noise != charge.noise || same.classes != charge.classes {
                return Err(self.refused("this noise is charged for other answers".into()));
            }
            drop(file);
            return self.statement();
        }
        self.check(&mut state, std::slice::from_ref(&charge), request.limit)?;
        // Half a line of a crash is cut off: its queries were never answered.
        file.set_len(state.end).map_err(self.io("write"))?;
        file.seek(SeekFrom::Start(state.end)).map_err(self.io("write"))?;
        let line = self.line(&Entry::Charge(charge), &state.checksum)?;
        file.write_all(line.as_bytes()).and_then(|()| file.sync_all()).map_err(self.io("write"))?;
        drop(file);
        self.statement()
    }

    /// Whether all of these queries (event, classes, how many) could be charged now, within a `limit` of the caller's as
    /// well. Nothing is charged.
    ///
    /// # Errors
    /// Those of [`Self::charge`].
    pub fn would_allow(
        &self,
        queries: &[(PrivacyEvent, usize, usize)],
        limit: Option<Budget>,
    ) -> Result<(), LedgerError> {
        let charges: Result<Vec<Charge>, LedgerError> =
            queries.iter().map(|(event, classes, queries)| self.new_charge(event, *classes, *queries)).collect();
        let mut file = File::open(&self.path).map_err(self.io("open"))?;
        file.lock_shared().map_err(self.io("lock"))?;
        let mut state = self.read(&mut file)?;
        self.check(&mut state, &charges?, limit)
    }

    /// The least budgets that would have allowed what is charged, without and with these queries (event, classes, how many).
    ///
    /// # Errors
    /// Those of [`Self::charge`].
    pub fn spent_with(&self, queries: &[(PrivacyEvent, usize, usize)]) -> Result<(f64, f64), LedgerError> {
        let Statement { budget, mut charges, spent_epsilon, .. } = self.statement()?;
        for (event, classes, queries) in queries {
            charges.push(self.new_charge(event, *classes, *queries)?);
        }
        Ok((spent_epsilon, filter::spent(&budget, &charges).adaptive))
    }

    fn check_budget(&self, budget: &Budget) -> Result<(), LedgerError> {
        match budget.epsilon.filter(|epsilon| !(*epsilon > 0.0 && epsilon.is_finite())) {
            Some(found) => Err(self.refused(format!("budget epsilon is {found}, expected a finite number above 0"))),
            None => Ok(()),
        }
    }

    fn new_charge(&self, event: &PrivacyEvent, classes: usize, queries: usize) -> Result<Charge, LedgerError> {
        let charge = Charge::of(event, classes, queries);
        if queries == 0 || !charge.per_query_epsilon.is_finite() {
            return Err(self.refused(format!(
                "expected at least one query of Laplace noise, found {queries} of {}",
                event.noise()
            )));
        }
        Ok(charge)
    }

    /// Adds charges to a state, unless they pass its budget or the caller's limit.
    fn check(&self, state: &mut State, charges: &[Charge], limit: Option<Budget>) -> Result<(), LedgerError> {
        limit.as_ref().map_or(Ok(()), |limit| self.check_budget(limit))?;
        // What was spent under another budget is no reason to refuse nothing.
        if charges.is_empty() {
            return Ok(());
        }
        let before = state.charges.len();
        let queries =
            |charges: &[Charge]| charges.iter().fold(0usize, |sum, charge| sum.saturating_add(charge.queries));
        if queries(charges).saturating_add(queries(&state.charges)) > MOST_QUERIES {
            return Err(
                AccountError::Queries { found: queries(charges).saturating_add(queries(&state.charges)) }.into()
            );
        }
        state.charges.extend_from_slice(charges);
        for budget in [Some(state.budget), limit].into_iter().flatten() {
            let Some(allowed) = budget.epsilon else { continue };
            let after = filter::spent(&budget, &state.charges).with_samplers();
            if after.is_nan() || after > allowed {
                return Err(LedgerError::OverBudget {
                    path: self.path.clone(),
                    queries: queries(charges),
                    would_be: after,
                    budget: allowed,
                    delta: budget.delta.get(),
                    spent: filter::spent(&budget, &state.charges[..before]).with_samplers(),
                });
            }
        }
        Ok(())
    }

    fn io(&self, action: &'static str) -> impl Fn(std::io::Error) -> LedgerError + '_ {
        move |source| LedgerError::Io { action, path: self.path.clone(), source }
    }

    fn damaged(&self, line: usize, message: String) -> LedgerError {
        LedgerError::Damaged { path: self.path.clone(), line, message }
    }

    fn refused(&self, message: String) -> LedgerError {
        LedgerError::Refused { path: self.path.clone(), message }
    }
}

/// A new file is durable when its folder is; where that cannot be done the file itself still is.
fn sync_folder(path: &Path) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Ok(folder) = File::open(folder) {
        drop(folder.sync_all());
    }
}
