//! The experiment's ledger: every set of answers with real noise is charged once, before it is given.
//!
//! It lies beside the runs, `RESULTS/EXPERIMENT/ledger`, because the answers of all runs of an experiment are about the
//! same teachers. A set of answers is known by what was asked (votes, queries, noise), not by the name of its row: one that
//! another run or row gave is copied and not charged again.
//!
//! The noise of a charged set grows from a key that lies in its stage, for its owner only, until the answers are given: after a
//! kill the very answers come that were paid for. Where charged answers are gone nothing is answered again without `--force`.

use std::fs::File;
use std::path::PathBuf;

use sha2::{Digest, Sha256};
use speed_accountant::{Budget, Delta, PrivacyEvent, QueryBatch, round_up};
use speed_core::Randomness;
use speed_ledger::{ChargeRequest, Ledger, LedgerError, Statement};
use speed_mechanism::{HonestRatio, InverseScale, Mechanism, MechanismError, NoiseShare};
use zeroize::Zeroizing;

use super::{Context, stage_of_row};
use crate::ExperimentError;
use crate::config::{AggregationKind, Config, RowConfig};
use crate::plan::planned_classes;
use crate::progress::Progress;
use crate::store::{Fingerprint, RunStore, StageFolder, StageRemains, is_called, sweep, write_secret};

/// The name of the file.
pub(crate) const FILE: &str = "ledger";
/// The stages whose answers are charged.
const KIND: &str = "aggregate";

/// The noise of a row's queries, sampler included.
pub(crate) fn event(
    config: &Config,
    row: &RowConfig,
    queries: usize,
    classes: usize,
) -> Result<PrivacyEvent, ExperimentError> {
    let (teachers, gamma) = (config.ensemble.teachers, InverseScale::new(config.noise.gamma)?);
    let ratio = HonestRatio::new(row.honest_ratio)?;
    let draws = (ratio.noisy_teachers(teachers)? * queries * classes) as u64;
    let sampling = NoiseShare::new(gamma, teachers)?.total_variation_of_draws(draws);
    let event = PrivacyEvent::new(Mechanism::discrete_laplace(gamma), ratio.effective(teachers)?);
    Ok(event.with_sampling_total_variation(sampling)?)
}

/// The key from which all noise of one set of answers grows, together with what was asked. It shows nowhere but in its stage.
pub(super) struct NoiseKey {
    key: Zeroizing<[u8; 32]>,
    question: Fingerprint,
}

impl NoiseKey {
    fn of(remains: &StageRemains, question: &Fingerprint) -> Option<Self> {
        let bytes = remains.noise_key().filter(|_| remains.is_of(question))?;
        let key = Zeroizing::new(bytes.as_slice().try_into().ok()?);
        Some(Self { key, question: question.clone() })
    }

    /// The noise of one teacher.
    pub(super) fn of_teacher(&self, teacher: usize) -> Randomness {
        Randomness::Kept(self.derived("teacher", teacher as u64))
    }

    /// What tells this noise from any other and says nothing about it.
    fn digest(&self) -> String {
        hex(&self.derived("digest", 0)[..16])
    }

    fn derived(&self, purpose: &str, index: u64) -> Zeroizing<[u8; 32]> {
        let hash = Sha256::new().chain_update("speed noise\n").chain_update(self.key.as_slice());
        let hash = hash.chain_update(purpose).chain_update(index.to_le_bytes()).chain_update(self.question.as_str());
        Zeroizing::new(hash.finalize().into())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A row's answers, as they are charged.
pub(super) struct Paid<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) row: &'a RowConfig,
    /// The name of their stage.
    pub(super) stage: &'a str,
    /// What they are made from.
    pub(super) question: &'a Fingerprint,
    pub(super) queries: usize,
    pub(super) classes: usize,
}

impl Paid<'_> {
    /// Whether the answers cost anything: noise is added, and no seed makes it.
    fn is_real(&self) -> bool {
        !self.context.config.is_simulation() && self.row.aggregation != AggregationKind::NonPrivate
    }

    /// Whether this stage has begun to give answers that are paid for: they come before any that another stage gave.
    pub(super) fn is_underway(&self) -> Result<bool, ExperimentError> {
        let own = NoiseKey::of(&self.context.store.remains_of(self.stage), self.question);
        match own.filter(|_| self.is_real()) {
            Some(key) => Ok(self.charged()?.contains(&key.digest())),
            None => Ok(false),
        }
    }

    /// Charges the answers, unless they are, and hands out the folder to give them in and the key of their noise; nothing if
    /// another run `is_done` with them meanwhile.
    ///
    /// # Errors
    /// If they were given or charged before, and are not there any more: answering again would be paid again.
    pub(super) fn settle(
        &self,
        is_done: impl Fn() -> bool,
    ) -> Result<Option<(StageFolder, Option<NoiseKey>)>, ExperimentError> {
        let store = self.context.store;
        if !self.is_real() {
            return Ok(Some((store.unfinished(self.stage, self.question)?, None)));
        }
        // Another run of the experiment may be about to charge the same answers.
        let _lock = lock(store)?;
        if !self.is_underway()? && is_done() {
            return Ok(None);
        }
        let outstanding = match self.outstanding_key() {
            // Whoever had the key gave the answers meanwhile, and removed it after that.
            Err(_) if is_done() => return Ok(None),
            found => found?,
        };
        let folder = store.unfinished(self.stage, self.question)?;
        let key = self.charge(outstanding, &folder)?;
        Ok(Some((folder, Some(key))))
    }

    /// The noise of what was charged for this question.
    fn charged(&self) -> Result<Vec<String>, ExperimentError> {
        let store = self.context.store;
        let Some(statement) = statement(store, self.context.config)? else { return Ok(Vec::new()) };
        let Some(secret) = secret(store)? else {
            if statement.charges.iter().any(|charge| !charge.question.is_empty()) {
                return Err(ExperimentError::Results {
                    path: secret_path(store),
                    message: "is missing: without it nobody knows which answers the ledger's charges are for. Take it from a \
                              copy"
                        .into(),
                });
            }
            return Ok(Vec::new());
        };
        let question = hidden(&secret, self.question);
        let same = statement.charges.into_iter().filter(|charge| charge.question == question);
        Ok(same.map(|charge| charge.noise_digest).collect())
    }

    /// A key of answers that are not given yet, and were charged; none where they are to be charged first.
    fn outstanding_key(&self) -> Result<Option<NoiseKey>, ExperimentError> {
        let store = self.context.store;
        let charged = self.charged()?;
        let own = store.remains_of(self.stage);
        let is_charged = |key: &NoiseKey| charged.contains(&key.digest());
        if let Some(key) = NoiseKey::of(&own, self.question).filter(is_charged) {
            return Ok(Some(key));
        }
        let is_of_others = own.noise_key().is_some() && !own.is_of(self.question);
        if store.is_forced(self.stage) {
            if is_of_others {
                store.set_aside(self.stage)?;
            }
            return Ok(None);
        }
        if let Some((path, what)) = own.damage(self.question) {
            return Err(self.would_pay_again(path, what));
        }
        if is_of_others && own.charged().is_some() {
            let what = "holds the noise of charged answers to other votes, queries or settings";
            return Err(self.would_pay_again(own.folder().to_path_buf(), what));
        }
        if charged.is_empty() {
            return Ok(None);
        }
        let mut keys = store.remains(KIND).into_iter().filter_map(|remains| NoiseKey::of(&remains, self.question));
        match keys.find(is_charged) {
            Some(key) => Ok(Some(key)),
            None => Err(self.would_pay_again(own.folder().to_path_buf(), "is missing or was changed")),
        }
    }

    /// Charges the answers, once, and hands out the key of their noise.
    fn charge(&self, outstanding: Option<NoiseKey>, folder: &StageFolder) -> Result<NoiseKey, ExperimentError> {
        let Context { config, store, progress, .. } = *self.context;
        // A key that was never charged serves as well as a new one.
        let key = match outstanding.or_else(|| NoiseKey::of(&store.remains_of(self.stage), self.question)) {
            Some(key) => key,
            None => {
                NoiseKey { key: Randomness::fresh().map_err(MechanismError::from)?, question: self.question.clone() }
            }
        };
        // Before it is charged: from then on it must not be lost.
        folder.keep_noise_key(key.key.as_slice())?;
        let secret = match secret(store)? {
            Some(secret) => secret,
            None => {
                let secret = Randomness::fresh().map_err(MechanismError::from)?;
                write_secret(&secret_path(store), secret.as_slice())?;
                secret
            }
        };
        let run = store.folder().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let ledger = Ledger::open_or_create(&path(store), record(config)?)?;
        let before = ledger.statement()?.queries;
        let statement = ledger.charge_once(&ChargeRequest {
            label: &format!("{run}: {}", self.row.name),
            event: &event(config, self.row, self.queries, self.classes)?,
            classes: self.classes,
            queries: self.queries,
            question: &hidden(&secret, self.question),
            noise_digest: &key.digest(),
            limit: limit(config)?,
        });
        let statement = match statement {
            // No charge was made for it, and none is to look as if.
            Err(error @ (LedgerError::Io { .. } | LedgerError::Damaged { .. })) => return Err(error.into()),
            Err(refused) => {
                store.remains_of(self.stage).forget_noise()?;
                return Err(refused.into());
            }
            Ok(statement) => statement,
        };
        folder.mark_charged(&key.digest())?;
        let spent = round_up(statement.spent_epsilon, 2);
        progress.note(&if statement.queries == before {
            format!(
                "ledger: the {} answers were charged before they were interrupted, epsilon {spent} in all",
                self.queries
            )
        } else {
            format!("ledger: {} answers charged, epsilon {spent} in all", self.queries)
        });
        Ok(key)
    }

    /// Removes the key of these answers wherever it lies: they are given.
    pub(super) fn forget_noise(&self) -> Result<(), ExperimentError> {
        let mut remains =
            self.context.store.all_remains(KIND).into_iter().filter(|remains| remains.is_of(self.question));
        remains.try_for_each(|remains| remains.forget_noise())
    }

    fn would_pay_again(&self, path: PathBuf, what: &str) -> ExperimentError {
        let config = self.context.config;
        let price = || -> Result<String, ExperimentError> {
            let ledger = Ledger::open(&self::path(self.context.store))?;
            let event = event(config, self.row, self.queries, self.classes)?;
            let (before, after) = ledger.spent_with(&[QueryBatch::new(event, self.classes, self.queries)])?;
            Ok(format!("epsilon {:.2} instead of {:.2}", round_up(after, 2), round_up(before, 2)))
        };
        let price = price().unwrap_or_else(|error| format!("({error})"));
        ExperimentError::Results {
            path,
            message: format!(
                "{what}, and the {} answers of row {:?} were charged: put it back, or --force {} to answer again and to pay again, \
                 {price} in all",
                self.queries, self.row.name, self.stage
            ),
        }
    }
}

/// What hides the questions of a ledger, which may be published: they are made from votes, and whoever knows all votes but
/// one teacher's could try that one's.
fn secret(store: &RunStore) -> Result<Option<Zeroizing<[u8; 32]>>, ExperimentError> {
    let path = secret_path(store);
    match std::fs::read(&path).map(Zeroizing::new) {
        Ok(bytes) => match bytes.as_slice().try_into() {
            Ok(secret) => Ok(Some(Zeroizing::new(secret))),
            Err(_) => Err(ExperimentError::Results {
                path,
                message: format!("has {} bytes, expected 32: take it from a copy", bytes.len()),
            }),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ExperimentError::io("read", path)(error)),
    }
}

fn secret_path(store: &RunStore) -> PathBuf {
    path(store).with_file_name("ledger.key")
}

fn hidden(secret: &Zeroizing<[u8; 32]>, question: &Fingerprint) -> String {
    let hash = Sha256::new().chain_update("speed question\n").chain_update(secret.as_slice());
    hex(&hash.chain_update(question.as_str()).finalize()[..16])
}

/// Keeps other runs of the experiment from charging until it is dropped.
fn lock(store: &RunStore) -> Result<File, ExperimentError> {
    let path = path(store).with_file_name("ledger.lock");
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(ExperimentError::io("open", &path))?;
    file.lock().map_err(ExperimentError::io("lock", &path))?;
    // Only here does anybody write beside the ledger.
    sweep(path.parent().unwrap_or(&path), 0)?;
    Ok(file)
}

/// Holds the ledger against the stages that were charged to it, and says which other ledgers there are.
pub(crate) fn check(store: &RunStore, config: &Config, progress: &dyn Progress) -> Result<(), ExperimentError> {
    if config.is_simulation() {
        return Ok(());
    }
    let path = path(store);
    // Marks before the ledger: another run may be charging.
    let marks: Vec<(PathBuf, String)> = store
        .all_remains(KIND)
        .into_iter()
        .filter_map(|stage| Some((stage.folder().to_path_buf(), stage.charged()?.trim().to_owned())))
        .collect();
    let known = statement(store, config)?;
    if let Some(torn) = known.as_ref().and_then(|known| known.torn) {
        progress.note(&format!(
            "{}, line {}: only {} bytes of a charge are there; if no crash cut it short, take the file from a copy",
            path.display(),
            torn.line,
            torn.bytes
        ));
    }
    let charges = known.map(|known| known.charges).unwrap_or_default();
    for (folder, digest) in marks {
        if !charges.iter().any(|charge| charge.noise_digest == digest) {
            return Err(ExperimentError::Results {
                path,
                message: format!(
                    "the charge for the answers in {} is missing: the ledger was lost, cut or replaced. Take it from a copy; \
                     without it nobody knows what was spent",
                    folder.display()
                ),
            });
        }
    }
    for other in other_ledgers(store) {
        // One that cannot be read is its own experiment's matter.
        let Ok(statement) = Ledger::open(&other).and_then(|ledger| ledger.statement()) else { continue };
        if statement.queries > 0 {
            progress.note(&format!(
                "another ledger: {} ({} answers, epsilon {:.2}); if it is about the same teachers, what both say adds up",
                other.display(),
                statement.queries,
                round_up(statement.spent_epsilon, 2)
            ));
        }
    }
    Ok(())
}

fn other_ledgers(store: &RunStore) -> Vec<PathBuf> {
    let own = path(store);
    let Some(results) = own.parent().and_then(|experiment| experiment.parent()) else { return Vec::new() };
    let experiments = std::fs::read_dir(results).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> =
        experiments.map(|entry| entry.path().join(FILE)).filter(|path| *path != own && path.is_file()).collect();
    all.sort();
    all
}

/// Refuses forced stages whose answers would pass the budget, before what they left is set aside.
pub(crate) fn check_forced(store: &RunStore, config: &Config, forced: &[String]) -> Result<(), ExperimentError> {
    let path = path(store);
    if config.is_simulation() || config.privacy.budget == 0.0 || !path.exists() {
        return Ok(());
    }
    let classes = planned_classes(config)?;
    let own = (0..config.row.len()).filter(|&index| config.labels_of(index) == index).map(|index| &config.row[index]);
    let rows = own.filter(|row| row.aggregation != AggregationKind::NonPrivate);
    let again = rows.filter(|row| forced.iter().any(|name| is_called(&stage_of_row(KIND, config, row), name)));
    let queries: Result<Vec<_>, ExperimentError> = again
        .map(|row| {
            let queries = row.query_count(config.queries.count);
            Ok(QueryBatch::new(event(config, row, queries, classes)?, classes, queries))
        })
        .collect();
    Ok(Ledger::open(&path)?.would_allow(&queries?, limit(config)?)?)
}

/// What the ledger says; none where nothing was charged.
pub(crate) fn statement(store: &RunStore, config: &Config) -> Result<Option<Statement>, ExperimentError> {
    let path = path(store);
    if config.is_simulation() || !path.exists() {
        return Ok(None);
    }
    Ok(Some(Ledger::open(&path)?.statement()?))
}

fn path(store: &RunStore) -> PathBuf {
    store.folder().parent().unwrap_or(store.folder()).join(FILE)
}

/// The ledger itself has no limit: that is the config's, which may change.
fn record(config: &Config) -> Result<Budget, ExperimentError> {
    Ok(Budget { epsilon: None, delta: Delta::new(config.privacy.delta)? })
}

/// What the config allows for everything that the ledger holds.
pub(crate) fn limit(config: &Config) -> Result<Option<Budget>, ExperimentError> {
    if config.privacy.budget == 0.0 {
        return Ok(None);
    }
    Ok(Some(Budget { epsilon: Some(config.privacy.budget), ..record(config)? }))
}
