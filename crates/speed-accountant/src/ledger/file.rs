//! A ledger file.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use speed_core::{open_regular, printable_path, read_limited};

use crate::ledger::charge::{self, Charge, ChargeRequest};
use crate::ledger::error::LedgerError;
use crate::ledger::lines::{Contents, Entry, FORMAT};
use crate::ledger::room::Room;
use crate::ledger::statement::{PartyCost, Statement, claim};
use crate::{AccountError, Budget, PrivacyEvent, PrivacyFilter, QueryBatch, Spent};

/// A ledger file.
#[derive(Clone, Debug)]
pub struct Ledger {
    path: PathBuf,
}

/// Maximum length of a ledger's file in bytes: millions of charges.
const MAX_BYTES: u64 = 1 << 30;

/// The path that errors show for a ledger that has a budget but no file yet.
const NEW: &str = "(a new one)";

/// Checks that a new ledger with this budget would allow queries.
///
/// # Errors
/// The errors of [`Ledger::would_allow`].
pub fn would_allow(budget: Budget, queries: &[QueryBatch]) -> Result<(), LedgerError> {
    Ledger { path: PathBuf::from(NEW) }.check(budget, &[], queries, None)
}

impl Ledger {
    /// Creates a ledger. The file must not exist.
    ///
    /// # Errors
    /// [`LedgerError::Io`] if the file exists or cannot be written, [`LedgerError::Refused`] if the budget is not a
    /// positive finite epsilon.
    pub fn create(path: &Path, budget: Budget) -> Result<Self, LedgerError> {
        let ledger = Self { path: path.to_path_buf() };
        ledger.check_budget(&budget)?;
        let line = Entry::Open { format: FORMAT, budget }.to_line("").map_err(|error| ledger.refused(error))?;
        // The ledger is written completely under another name and then linked to its final name, so no reader sees an
        // incomplete ledger, even after a crash.
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
        // A leftover file is harmless.
        let _ = std::fs::remove_file(&new);
        written.map_err(ledger.io("create"))?;
        sync_folder(path);
        Ok(ledger)
    }

    /// Opens a ledger and checks every line.
    ///
    /// # Errors
    /// [`LedgerError::Io`] if it cannot be read, [`LedgerError::Damaged`] if a line differs from the one that was
    /// written.
    pub fn open(path: &Path) -> Result<Self, LedgerError> {
        let ledger = Self { path: path.to_path_buf() };
        ledger.read_shared()?;
        Ok(ledger)
    }

    /// Opens a ledger, or creates it if it does not exist.
    ///
    /// # Errors
    /// The errors of [`Self::create`], except that the file may exist, and the errors of [`Self::open`].
    pub fn open_or_create(path: &Path, budget: Budget) -> Result<Self, LedgerError> {
        match Self::create(path, budget) {
            Err(LedgerError::Io { source, .. }) if source.kind() == std::io::ErrorKind::AlreadyExists => {
                Self::open(path)
            }
            result => result,
        }
    }

    /// Reads the ledger and computes its epsilons.
    ///
    /// # Errors
    /// The errors of [`Self::open`].
    pub fn statement(&self) -> Result<Statement, LedgerError> {
        let Contents { budget, charges, torn, .. } = self.read_shared()?;
        let filter = filter(budget, &charges);
        let spent = filter.spent();
        let (queries, fixed_epsilon) = (filter.queries(), filter.fixed_epsilon());
        let party = PartyCost::new(budget.delta, &charges);
        let claims =
            [Some(claim(&budget, &charges, spent, fixed_epsilon)), party.as_ref().map(|party| party.1.clone())];
        Ok(Statement {
            budget,
            queries,
            spent_epsilon: spent.epsilon,
            fixed_epsilon,
            samplers_included: spent.samplers.are_included(),
            party: party.map(|party| party.0),
            claim: claims.into_iter().flatten().collect::<Vec<_>>().join(" "),
            charges,
            torn,
        })
    }

    /// Charges `queries` queries with `classes` classes (`None`: any number) before they are answered. They may be
    /// answered once this returns.
    ///
    /// # Errors
    /// [`LedgerError::OverBudget`] if they exceed the budget; then nothing is charged. [`LedgerError::Refused`] if the
    /// number of queries is zero or their noise is Gaussian. [`LedgerError::Io`] and [`LedgerError::Damaged`]
    /// as for [`Self::open`].
    pub fn charge(
        &self,
        label: &str,
        event: &PrivacyEvent,
        classes: impl Into<Option<usize>>,
        queries: usize,
    ) -> Result<Statement, LedgerError> {
        self.charge_once(&ChargeRequest::new(label, event, classes.into(), queries))
    }

    /// Charges like [`Self::charge`], unless answers with this noise are already charged. Checks the caller's limit as
    /// well.
    ///
    /// # Errors
    /// The errors of [`Self::charge`].
    pub fn charge_once(&self, request: &ChargeRequest<'_>) -> Result<Statement, LedgerError> {
        let charge = Charge::new(request).map_err(|reason| self.refused(reason))?;
        drop(open_regular(&self.path).map_err(self.io("open"))?);
        let mut file = OpenOptions::new().read(true).write(true).open(&self.path).map_err(self.io("open"))?;
        file.lock().map_err(self.io("lock"))?;
        let contents = self.read(&mut file)?;
        let is_same = |other: &Charge| !charge.noise_digest.is_empty() && other.noise_digest == charge.noise_digest;
        if let Some(same) = contents.charges.iter().find(|other| is_same(other)) {
            let is_whole = same.question == charge.question && same.queries == charge.queries && same.tau == charge.tau;
            let is_kind = same.mechanism == charge.mechanism && same.classes == charge.classes;
            // A charge of a larger party costs as much as one of any of its parts.
            let is_kind = is_kind && same.party_teachers >= charge.party_teachers;
            if !is_whole || !is_kind || same.threshold != charge.threshold || same.is_check != charge.is_check {
                return Err(self.refused("this noise is charged for other answers"));
            }
            // A killed writer may have left it incomplete, and not yet durable.
            self.append(&mut file, &contents, "")?;
            drop(file);
            return self.statement();
        }
        if request.is_only && contents.charges.iter().any(|other| other.question == charge.question) {
            return Err(self.refused(
                "this party's answer to the round is charged with other noise: a second version of the same answers would \
                 halve the noise; use the registry that has the first",
            ));
        }
        self.check(contents.budget, &contents.charges, &[request.batch()], request.limit)?;
        // Removes an incomplete line that a crash left; its queries were never answered.
        let line = Entry::Charge(charge).to_line(&contents.checksum).map_err(|error| self.refused(error))?;
        self.append(&mut file, &contents, &line)?;
        drop(file);
        Ok(Statement { torn: contents.torn, ..self.statement()? })
    }

    /// Completes the last line, and writes a new one.
    fn append(&self, file: &mut File, contents: &Contents, line: &str) -> Result<(), LedgerError> {
        let text = format!("{}{line}", contents.missing);
        let mut write = || -> std::io::Result<()> {
            if !text.is_empty() {
                file.set_len(contents.end)?;
                file.seek(SeekFrom::Start(contents.end))?;
                file.write_all(text.as_bytes())?;
            }
            file.sync_all()
        };
        write().map_err(self.io("write"))
    }

    /// Checks that all of these queries could be charged now, within the ledger's budget and the caller's `limit`.
    /// Charges nothing.
    ///
    /// # Errors
    /// The errors of [`Self::charge`].
    pub fn would_allow(&self, queries: &[QueryBatch], limit: Option<Budget>) -> Result<(), LedgerError> {
        self.check_queries(queries)?;
        let contents = self.read_shared()?;
        self.check(contents.budget, &contents.charges, queries, limit)
    }

    /// Returns the remaining room in the ledger's budget and in the caller's `limit`.
    ///
    /// # Errors
    /// The errors of [`Self::open`], and [`LedgerError::Refused`] if neither has an epsilon.
    pub fn room(&self, limit: Option<Budget>) -> Result<Room, LedgerError> {
        limit.as_ref().map_or(Ok(()), |limit| self.check_budget(limit))?;
        let Contents { budget, charges, .. } = self.read_shared()?;
        let budgets = [Some(budget), limit].into_iter().flatten().filter(|budget| budget.epsilon.is_some());
        let filters: Vec<PrivacyFilter> = budgets.map(|budget| filter(budget, &charges)).collect();
        if filters.is_empty() {
            return Err(self.refused("it has no budget of its own, expected a limit: give --epsilon"));
        }
        Ok(Room::new(filters, charges.iter().map(|charge| charge.mechanism).collect()))
    }

    /// Computes the cost of the charges without and with these queries. If the ledger has no budget, the costs are the
    /// smallest budgets that would have allowed the queries.
    ///
    /// # Errors
    /// The errors of [`Self::charge`].
    pub fn spent_with(&self, queries: &[QueryBatch]) -> Result<(Spent, Spent), LedgerError> {
        let Contents { budget, charges, .. } = self.read_shared()?;
        let mut filter = filter(budget, &charges);
        let before = filter.spent();
        self.check_queries(queries)?;
        queries.iter().for_each(|batch| filter.compose(batch));
        Ok((before, filter.spent()))
    }

    /// Checks that the charges and these queries together stay within a budget and the caller's limit.
    fn check(
        &self,
        budget: Budget,
        charges: &[Charge],
        queries: &[QueryBatch],
        limit: Option<Budget>,
    ) -> Result<(), LedgerError> {
        self.check_queries(queries)?;
        limit.as_ref().map_or(Ok(()), |limit| self.check_budget(limit))?;
        let own = filter(budget, charges).try_compose(queries);
        own.map_err(|error| self.over_budget(error, false))?;
        let of_limit = limit.map_or(Ok(()), |limit| filter(limit, charges).try_compose(queries));
        of_limit.map_err(|error| self.over_budget(error, true))
    }

    fn check_queries(&self, queries: &[QueryBatch]) -> Result<(), LedgerError> {
        queries.iter().try_for_each(charge::check).map_err(|reason| self.refused(reason))
    }

    fn check_budget(&self, budget: &Budget) -> Result<(), LedgerError> {
        match budget.epsilon.filter(|epsilon| !(*epsilon > 0.0 && epsilon.is_finite())) {
            Some(found) => {
                Err(self.refused(format_args!("budget epsilon is {found}, expected a finite number above 0")))
            }
            None => Ok(()),
        }
    }

    fn read_shared(&self) -> Result<Contents, LedgerError> {
        let mut file = open_regular(&self.path).map_err(self.io("open"))?;
        file.lock_shared().map_err(self.io("lock"))?;
        self.read(&mut file)
    }

    fn read(&self, file: &mut File) -> Result<Contents, LedgerError> {
        let bytes =
            file.seek(SeekFrom::Start(0)).and_then(|_| read_limited(file, MAX_BYTES)).map_err(self.io("read"))?;
        Contents::parse(&bytes).map_err(|(line, damage)| LedgerError::Damaged { path: self.path.clone(), line, damage })
    }

    /// Returns the error about the ledger's own budget, or about the caller's limit.
    fn over_budget(&self, error: AccountError, of_limit: bool) -> LedgerError {
        let AccountError::OverBudget { queries, would_be, budget, delta, spent, rule } = error else {
            return error.into();
        };
        let path = self.path.clone();
        let reason = if would_be.is_infinite() {
            format!(
                "with {queries} more queries, no finite epsilon is known at delta {delta:e} and the budget's epsilon of {budget}: \
                 the samplers' distance from exact noise exceeds delta, or the noise is too small; nothing was charged; a ledger \
                 with a larger delta or a smaller budget, or more noise, may allow them"
            )
        } else {
            let limit = format!("--epsilon {budget} --delta {delta:e}");
            let calibrate = match of_limit {
                _ if path == Path::new(NEW) => format!("--budget {limit}"),
                true => format!("--ledger {} {limit}", printable_path(&path)),
                false => format!("--ledger {}", printable_path(&path)),
            };
            format!(
                "{queries} more queries would make epsilon {would_be:.6}, but the budget is {budget} at delta {delta:e} \
                 ({spent:.6} is spent); nothing was charged; the rule: {rule}; `speed calibrate {calibrate} --queries {queries}`, \
                 with the charge's own ratio, teachers, classes and threshold, finds noise that the budget allows"
            )
        };
        LedgerError::OverBudget { path, budget, reason }
    }

    fn io(&self, action: &'static str) -> impl Fn(std::io::Error) -> LedgerError + '_ {
        move |source| LedgerError::Io { action, path: self.path.clone(), source }
    }

    fn refused(&self, reason: impl std::fmt::Display) -> LedgerError {
        LedgerError::Refused { path: self.path.clone(), reason: reason.to_string() }
    }
}

fn filter(budget: Budget, charges: &[Charge]) -> PrivacyFilter {
    let mut filter = PrivacyFilter::new(budget);
    charges.iter().for_each(|charge| filter.compose(&charge.batch()));
    filter
}

/// Syncs the directory, because a new file is durable only if its directory is durable. On a system that cannot sync
/// directories, the file's content is still durable.
fn sync_folder(path: &Path) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Ok(folder) = File::open(folder) {
        drop(folder.sync_all());
    }
}
