//! The payment for one set of answers.

use std::path::PathBuf;

use speed_accountant::ledger::{ChargeRequest, Ledger, LedgerError, PartySize, Statement};
use speed_accountant::{PrivacyEvent, QueryBatch, round_up};
use speed_mechanism::MechanismError;

use super::event::{event, limit, record};
use super::files::LedgerFiles;
use crate::config::{Config, QueryNoise, RowConfig};
use crate::error::ExperimentError;
use crate::progress::Progress;
use crate::store::{Fingerprint, Identity, NoiseKey, RunStore, StageFolder};

/// The kinds of the stages with charged answers or checks.
pub(super) const CHARGED: [&str; 2] = ["aggregate", "check"];

/// The payment for one set of answers. The fingerprint of its stage is the question.
pub(crate) struct Payment<'a> {
    pub(crate) config: &'a Config,
    pub(crate) store: &'a RunStore,
    pub(crate) progress: &'a dyn Progress,
    pub(crate) row: &'a RowConfig,
    pub(crate) noise: QueryNoise,
    pub(crate) answers: &'a Identity,
    pub(crate) queries: usize,
    pub(crate) classes: usize,
}

impl Payment<'_> {
    fn question(&self) -> Fingerprint {
        self.answers.fingerprint
    }

    fn files(&self) -> LedgerFiles {
        LedgerFiles::in_experiment(self.store.experiment())
    }

    /// Returns whether the answers cost privacy budget: there are some, noise is added, and it does not come from a seed.
    fn is_real(&self) -> bool {
        !self.config.is_simulation() && self.row.is_noisy() && self.queries > 0
    }

    fn event(&self) -> Result<PrivacyEvent, ExperimentError> {
        event(self.config, self.row, &self.noise, self.queries, self.classes)
    }

    /// Returns whether this stage started to give charged answers; these take precedence over another stage's answers.
    pub(crate) fn is_underway(&self) -> Result<bool, ExperimentError> {
        let own = self.store.remains_of(&self.answers.name).noise_key(self.question());
        match own.filter(|_| self.is_real()) {
            Some(key) => Ok(self.charged()?.contains(&key.digest())),
            None => Ok(false),
        }
    }

    /// Charges the answers unless they are charged already, and opens the directory for them with the key of their
    /// noise; `None` if another run finished them meanwhile, as `is_done` reports.
    ///
    /// # Errors
    /// If the answers were given or charged before and are missing now, because answering again would charge again.
    pub(crate) fn settle(&self, is_done: impl Fn() -> bool) -> Result<Option<StageFolder>, ExperimentError> {
        if !self.is_real() {
            return self.store.unfinished(self.answers).map(Some);
        }
        // Another run of the experiment may be about to charge the same answers.
        let _lock = self.files().lock()?;
        if !self.is_underway()? && is_done() {
            return Ok(None);
        }
        let outstanding = match self.outstanding_key() {
            // The owner of the key gave the answers meanwhile and then removed the key.
            Err(_) if is_done() => return Ok(None),
            found => found?,
        };
        let mut folder = self.store.unfinished(self.answers)?;
        self.charge(outstanding, &mut folder)?;
        Ok(Some(folder))
    }

    fn charged(&self) -> Result<Vec<String>, ExperimentError> {
        let files = self.files();
        let Some(Statement { charges, .. }) = files.statement()? else { return Ok(Vec::new()) };
        let Some(secret) = files.secret()? else {
            if charges.iter().any(|charge| !charge.question.is_empty()) {
                let fault =
                    "is missing: the ledger's charges cannot be matched to answers without it. Restore it from a copy";
                return Err(ExperimentError::results(files.secret_path(), fault));
            }
            return Ok(Vec::new());
        };
        let question = secret.hide(self.question());
        let same = charges.into_iter().filter(|charge| charge.question == question);
        Ok(same.map(|charge| charge.noise_digest).collect())
    }

    /// Finds the key of charged answers that are not given yet; `None` if the answers are not charged yet.
    fn outstanding_key(&self) -> Result<Option<NoiseKey>, ExperimentError> {
        let (store, name, question) = (self.store, &self.answers.name, self.question());
        let charged = self.charged()?;
        let own = store.remains_of(name);
        let is_charged = |key: &NoiseKey| charged.contains(&key.digest());
        if let Some(key) = own.noise_key(question).filter(is_charged) {
            return Ok(Some(key));
        }
        let is_of_others = own.has_noise_key() && !own.is_of(question);
        if store.is_forced(name) {
            if is_of_others {
                store.set_aside(name)?;
            }
            return Ok(None);
        }
        if let Some((path, damage)) = own.damage(self.answers) {
            return Err(self.would_pay_again(path, damage));
        }
        if is_of_others && own.charged().is_some() {
            return Err(self.would_pay_again(
                own.folder().to_path_buf(),
                "holds the noise of charged answers to other votes, queries or settings",
            ));
        }
        if charged.is_empty() {
            return Ok(None);
        }
        let mut keys = store.remains(&self.answers.kind).into_iter().filter_map(|remains| remains.noise_key(question));
        match keys.find(is_charged) {
            Some(key) => Ok(Some(key)),
            None => Err(self.would_pay_again(own.folder().to_path_buf(), "is missing or was changed")),
        }
    }

    /// Charges the answers once, and keeps the key of their noise in their directory.
    fn charge(&self, outstanding: Option<NoiseKey>, folder: &mut StageFolder) -> Result<(), ExperimentError> {
        let own = self.store.remains_of(&self.answers.name);
        // An uncharged key is as good as a new one.
        let seen = own.noise_key(self.question());
        let key = match outstanding.or_else(|| seen.clone()) {
            Some(key) => key,
            None => NoiseKey::fresh(self.question()).map_err(MechanismError::from)?,
        };
        let digest = key.digest();
        // The key is saved before the charge, because it must not be lost afterwards.
        folder.keep_noise_key(key, seen.as_ref())?;
        // If this fails, the charge may have been made, so the key stays.
        match self.enter(&digest)? {
            Ok((before, statement)) => {
                folder.mark_charged(&digest)?;
                self.note(before, &statement);
                Ok(())
            }
            // The charge was not made, so the key is removed and does not look charged.
            Err(refused) => {
                own.forget_noise()?;
                Err(refused.into())
            }
        }
    }

    /// Enters the charge into the ledger unless it is there, and returns the earlier number of queries and the new statement, or the
    /// ledger's refusal.
    fn enter(&self, noise_digest: &str) -> Result<Result<(usize, Statement), LedgerError>, ExperimentError> {
        let files = self.files();
        let secret = files.secret_or_new()?;
        let ledger = Ledger::open_or_create(&files.path(), record(self.config))?;
        let before = ledger.statement()?.queries;
        let (ensemble, end) = (&self.config.ensemble, if self.noise.is_check { ", checks" } else { "" });
        let charged = ledger.charge_once(&ChargeRequest {
            label: &format!("{}: {}{}", self.store.id(), self.row.name, end),
            event: &self.event()?,
            classes: Some(self.classes),
            queries: self.queries,
            party: Some(PartySize { party_teachers: ensemble.largest_party(), teachers: ensemble.teachers }),
            question: &secret.hide(self.question()),
            noise_digest,
            is_only: false,
            limit: limit(self.config),
        });
        match charged {
            Err(error @ (LedgerError::Io { .. } | LedgerError::Damaged { .. })) => Err(error.into()),
            charged => Ok(charged.map(|statement| (before, statement))),
        }
    }

    fn note(&self, before: usize, statement: &Statement) {
        let of = if statement.samplers_included { "" } else { " of exact noise" };
        let party = statement.party.map_or_else(String::new, |party| match party.spent_epsilon {
            epsilon if !epsilon.is_finite() => " for one teacher, none known for a party".to_owned(),
            epsilon => {
                let of = if party.samplers_included { "" } else { " of exact noise" };
                format!(" for one teacher, {}{of} for all votes of a party", round_up(epsilon, 2))
            }
        });
        let (queries, spent) = (self.queries, format!("{}{of}", round_up(statement.spent_epsilon, 2)));
        let what = if self.noise.is_check { "checks" } else { "answers" };
        self.progress.note(&if statement.queries == before {
            format!(
                "ledger: the {queries} {what} were charged before they were interrupted; all charges need a budget of epsilon {spent}{party}"
            )
        } else {
            format!("ledger: {queries} {what} charged; all charges need a budget of epsilon {spent}{party}")
        });
    }

    /// Removes all copies of the key of these answers, after they are given.
    pub(crate) fn forget_noise(&self) -> Result<(), ExperimentError> {
        let all = self.store.all_remains(&self.answers.kind).into_iter();
        all.filter(|remains| remains.is_of(self.question())).try_for_each(|remains| remains.forget_noise())
    }

    fn would_pay_again(&self, path: PathBuf, damage: &str) -> ExperimentError {
        let price = || -> Result<String, ExperimentError> {
            let ledger = Ledger::open(&self.files().path())?;
            let event = self.event()?;
            let (before, after) = ledger.spent_with(&[QueryBatch::new(event, self.classes, self.queries)])?;
            let [before, after] = [before, after].map(|spent| round_up(spent.epsilon, 2));
            Ok(format!("epsilon {after:.2} instead of {before:.2}"))
        };
        let price = price().unwrap_or_else(|error| format!("({error})"));
        let (queries, row, stage) = (self.queries, &self.row.name, &self.answers.name);
        ExperimentError::results(
            path,
            format_args!(
                "{damage}, and the {queries} answers of row {row:?} were charged: restore it, or use --force {stage} to answer again and pay \
                 again, {price} in all"
            ),
        )
    }
}
