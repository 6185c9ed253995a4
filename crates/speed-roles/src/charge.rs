//! The price of a round, and its charge to a party's ledger.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use speed_accountant::{Budget, Delta, PrivacyEvent, QueryBatch};
use speed_core::NoisePlacement;
use speed_ledger::{ChargeRequest, Ledger};
use speed_mechanism::HonestRatio;

use crate::error::RolesError;
use crate::fault::ResultsFault;
use crate::round_file::RoundFile;

/// The ledger of a party.
#[derive(Clone, Debug)]
pub struct LedgerOptions {
    /// Its file. One that is not there is started, without a budget: `speed ledger create` makes one with a budget.
    pub path: PathBuf,
    /// Delta of a ledger that is started.
    pub delta: Delta,
}

/// Returns the ledger of the party with this signing key if no other is named: the key's name with the extension `ledger`.
#[must_use]
pub fn default_ledger(signing_key: &Path) -> PathBuf {
    signing_key.with_extension("ledger")
}

/// Returns the privacy event of a query of a round in which the noise of `present` teachers is there and secret. Where the server adds the noise it
/// is all there, against everyone else.
///
/// # Errors
/// If the noise cannot be described.
pub fn privacy_event(file: &RoundFile, present: usize) -> Result<PrivacyEvent, RolesError> {
    let (round, noise) = (file.round(), file.noise());
    // The server draws all noise at once, teachers a share each.
    let (sharers, drawing) = match round.placement() {
        NoisePlacement::Central => (1, 1),
        NoisePlacement::Distributed => (round.shape().teachers(), present),
    };
    let tau = HonestRatio::new(drawing as f64 / sharers as f64)?;
    let mut event = PrivacyEvent::new(noise.mechanism(), tau).with_sampler(sharers, drawing, round.values())?;
    if let Some(threshold) = round.threshold() {
        event = event.with_threshold(threshold as f64)?;
    }
    Ok(event)
}

/// Refuses a round that a ledger has and the registry at this path does not know: its message or result may be out.
pub(crate) fn expect_uncharged(options: &LedgerOptions, file: &RoundFile, registry: &Path) -> Result<(), RolesError> {
    if file.round().is_simulation() || !options.path.exists() {
        return Ok(());
    }
    let id = file.id().to_hex();
    let charges = Ledger::open(&options.path)?.statement()?.charges;
    if charges.iter().any(|charge| charge.noise_digest == id) {
        return Err(RolesError::results(registry, ResultsFault::Forgotten));
    }
    Ok(())
}

/// Checks that a ledger has budget for a round with this much noise, or has it already.
pub(crate) fn expect_budget(options: &LedgerOptions, file: &RoundFile, present: usize) -> Result<(), RolesError> {
    if file.round().is_simulation() || !options.path.exists() {
        return Ok(());
    }
    let (ledger, id) = (Ledger::open(&options.path)?, file.id().to_hex());
    if ledger.statement()?.charges.iter().any(|charge| charge.noise_digest == id) {
        return Ok(());
    }
    let shape = file.round().shape();
    Ok(ledger.would_allow(&[QueryBatch::new(privacy_event(file, present)?, shape.classes(), shape.queries())], None)?)
}

/// Checks that a ledger can be written, or started where it is not there.
pub(crate) fn expect_writable(options: &LedgerOptions, file: &RoundFile) -> Result<(), RolesError> {
    if file.round().is_simulation() {
        return Ok(());
    }
    Ledger::open_or_create(&options.path, Budget { epsilon: None, delta: options.delta })?;
    let writable = OpenOptions::new().append(true).open(&options.path).map(drop);
    writable.map_err(RolesError::io("write", &options.path))
}

/// Charges a round to a ledger, before it is answered, unless it is charged already. Simulations cost nothing.
pub(crate) fn charge(options: &LedgerOptions, file: &RoundFile, present: usize) -> Result<(), RolesError> {
    if file.round().is_simulation() {
        return Ok(());
    }
    let ledger = Ledger::open_or_create(&options.path, Budget { epsilon: None, delta: options.delta })?;
    let shape = file.round().shape();
    ledger.charge_once(&ChargeRequest {
        label: file.name(),
        event: &privacy_event(file, present)?,
        classes: Some(shape.classes()),
        queries: shape.queries(),
        question: &file.round().query_list().map_or_else(String::new, |list| list.to_hex()),
        // A round is answered once: its noise is known by its id.
        noise_digest: &file.id().to_hex(),
        limit: None,
    })?;
    Ok(())
}
