//! The files of an experiment's ledger: the ledger, its lock, and the secret that hides its questions.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use speed_accountant::ledger::{Ledger, Statement};
use speed_core::Randomness;
use speed_mechanism::MechanismError;
use zeroize::Zeroizing;

use crate::error::ExperimentError;
use crate::store::{Fingerprint, Lock, remove_unfinished, write_secret};

const LEDGER: &str = "ledger";
const SECRET: &str = "ledger.key";
const LOCK: &str = "ledger.lock";

pub(crate) struct LedgerFiles {
    experiment: PathBuf,
}

/// The secret that hides the questions in a ledger, because the ledger may be published. Questions are derived from
/// votes, and a reader who knows the votes of all teachers but one could test guesses of the remaining votes.
pub(super) struct Secret(Zeroizing<[u8; 32]>);

impl Secret {
    pub(super) fn hide(&self, question: Fingerprint) -> String {
        let hash = Sha256::new().chain_update("speed question\n").chain_update(self.0.as_slice());
        hex::encode(&hash.chain_update(question.to_hex()).finalize()[..16])
    }
}

impl LedgerFiles {
    pub(crate) fn in_experiment(experiment: &Path) -> Self {
        Self { experiment: experiment.to_path_buf() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.experiment.join(LEDGER)
    }

    /// Returns the path of the secret.
    pub(super) fn secret_path(&self) -> PathBuf {
        self.experiment.join(SECRET)
    }

    pub(crate) fn open(&self) -> Result<Option<Ledger>, ExperimentError> {
        let path = self.path();
        Ok(if path.exists() { Some(Ledger::open(&path)?) } else { None })
    }

    /// Reads the ledger's statement; `None` if no answers were charged.
    pub(crate) fn statement(&self) -> Result<Option<Statement>, ExperimentError> {
        Ok(self.open()?.map(|ledger| ledger.statement()).transpose()?)
    }

    /// Reads the secret; `None` if no answers were charged.
    pub(super) fn secret(&self) -> Result<Option<Secret>, ExperimentError> {
        let path = self.secret_path();
        match std::fs::read(&path).map(Zeroizing::new) {
            Ok(bytes) => match bytes.as_slice().try_into() {
                Ok(secret) => Ok(Some(Secret(Zeroizing::new(secret)))),
                Err(_) => {
                    let fault = format!("has {} bytes, expected 32: restore it from a copy", bytes.len());
                    Err(ExperimentError::results(path, fault))
                }
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ExperimentError::io("read", path)(error)),
        }
    }

    pub(super) fn secret_or_new(&self) -> Result<Secret, ExperimentError> {
        if let Some(secret) = self.secret()? {
            return Ok(secret);
        }
        let secret = Randomness::fresh().map_err(MechanismError::from)?;
        write_secret(&self.secret_path(), secret.as_slice())?;
        Ok(Secret(secret))
    }

    /// Prevents other runs of the experiment from charging until the lock is dropped.
    pub(super) fn lock(&self) -> Result<Lock, ExperimentError> {
        let lock = Lock::wait(&self.experiment.join(LOCK))?;
        // Only the holder of this lock writes to the files beside the ledger.
        remove_unfinished(&self.experiment, 0)?;
        Ok(lock)
    }

    pub(super) fn others(&self) -> Vec<PathBuf> {
        let own = self.path();
        let Some(results) = self.experiment.parent() else { return Vec::new() };
        let experiments = std::fs::read_dir(results).into_iter().flatten().flatten();
        let mut all: Vec<PathBuf> =
            experiments.map(|entry| entry.path().join(LEDGER)).filter(|path| *path != own && path.is_file()).collect();
        all.sort();
        all
    }
}
