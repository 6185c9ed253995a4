//! The price of a round, and its charge to a party's ledger.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use speed_accountant::ledger::{ChargeRequest, Ledger, PartySize};
use speed_accountant::{Budget, Delta, Price, PriceLimit, PrivacyEvent, QueryBatch};
use speed_core::{Digest, NoisePlacement};
use speed_mechanism::HonestRatio;

use crate::error::RolesError;
use crate::fault::ResultsFault;
use crate::files::beside;
use crate::party_key::PartyKey;
use crate::round_file::RoundFile;

/// A party's ledger.
#[derive(Clone, Debug)]
pub struct LedgerOptions {
    /// The file. If it does not exist, a ledger without a budget is created; `speed ledger create` creates one with a
    /// budget.
    pub path: PathBuf,
    /// Delta of a ledger that is created.
    pub delta: Delta,
}

/// Returns the default ledger of the party with this signing key: the key's path with the extension `ledger` in place of `key`.
#[must_use]
pub fn default_ledger(signing_key: &Path) -> PathBuf {
    beside(signing_key, "ledger")
}

/// Returns the privacy event of a query of a round in which the noise of `present` teachers is present and secret. If
/// the server adds the noise, all noise is present, and secret from everyone else.
///
/// # Errors
/// If the noise cannot be described.
pub fn privacy_event(file: &RoundFile, present: usize) -> Result<PrivacyEvent, RolesError> {
    let (round, noise) = (file.round(), file.noise());
    // The server draws all noise at once; each teacher draws a share.
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

/// Returns the privacy event of the same query for neighbours that differ in all votes of one party: that of the largest
/// party of a round. `None` if every party has one teacher, whose event is [`privacy_event`].
///
/// # Errors
/// If the noise cannot be described.
pub fn party_event(file: &RoundFile, present: usize) -> Result<Option<PrivacyEvent>, RolesError> {
    let teachers = file.round().largest_party();
    if teachers == 1 {
        return Ok(None);
    }
    Ok(Some(privacy_event(file, present)?.of_party(teachers)?))
}

/// Refuses a round that may cost one teacher more than the limit, if only the teachers that it needs at least answer.
pub(crate) fn expect_price(file: &RoundFile, limit: PriceLimit, delta: Delta) -> Result<(), RolesError> {
    if file.round().is_simulation() || limit == PriceLimit::UNLIMITED {
        return Ok(());
    }
    let shape = file.round().shape();
    let batch = QueryBatch::new(privacy_event(file, file.round().min_teachers())?, shape.classes(), shape.queries());
    // A round has queries.
    let price = Price::for_batches(&[batch], delta).map(|price| price.unwrap_or(Price { one_answer: 0.0, all: 0.0 }));
    Ok(limit.check("the round", price, delta)?)
}

/// Returns a round with its server, whose ledger is charged.
pub(crate) fn of_server(file: &RoundFile) -> (&RoundFile, PartyKey) {
    (file, file.roster().server().key())
}

/// Returns the question of a charge: the round and the party that answers it, because parties may share a ledger.
fn question(file: &RoundFile, party: PartyKey) -> String {
    format!("{}/{}", file.id().to_hex(), party.to_hex())
}

/// Refuses a round that is in the ledger but not in the registry at this path, because its message or result may
/// already be published.
pub(crate) fn expect_uncharged(
    options: &LedgerOptions,
    (file, party): (&RoundFile, PartyKey),
    registry: &Path,
) -> Result<(), RolesError> {
    if file.round().is_simulation() || !options.path.exists() {
        return Ok(());
    }
    let asked = question(file, party);
    let charges = Ledger::open(&options.path)?.statement()?.charges;
    if charges.iter().any(|charge| charge.question == asked) {
        return Err(RolesError::results(registry, ResultsFault::Forgotten));
    }
    Ok(())
}

/// Checks that a ledger has the budget for a round with this much noise, or that the round is already charged.
pub(crate) fn expect_budget(
    options: &LedgerOptions,
    (file, party): (&RoundFile, PartyKey),
    present: usize,
) -> Result<(), RolesError> {
    if file.round().is_simulation() || !options.path.exists() {
        return Ok(());
    }
    let (ledger, asked) = (Ledger::open(&options.path)?, question(file, party));
    if ledger.statement()?.charges.iter().any(|charge| charge.question == asked) {
        return Ok(());
    }
    let shape = file.round().shape();
    Ok(ledger.would_allow(&[QueryBatch::new(privacy_event(file, present)?, shape.classes(), shape.queries())], None)?)
}

/// Checks that a ledger can be written, or created if it does not exist.
pub(crate) fn expect_writable(options: &LedgerOptions, file: &RoundFile) -> Result<(), RolesError> {
    if file.round().is_simulation() {
        return Ok(());
    }
    Ledger::open_or_create(&options.path, Budget { epsilon: None, delta: options.delta })?;
    let writable = OpenOptions::new().append(true).open(&options.path).map(drop);
    writable.map_err(RolesError::io("write", &options.path))
}

/// Charges a round to a ledger before `released`, the digest of the party's message or sum, leaves it, unless it is already charged. A second
/// digest for a round is refused, also if another process with another registry made it. The ledger is of a party with `party_teachers`
/// teachers. Simulations cost nothing.
pub(crate) fn charge(
    options: &LedgerOptions,
    (file, party): (&RoundFile, PartyKey),
    present: usize,
    party_teachers: usize,
    released: Digest,
) -> Result<(), RolesError> {
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
        party: Some(PartySize { party_teachers, teachers: shape.teachers() }),
        question: &question(file, party),
        noise_digest: &released.to_hex(),
        is_only: true,
        limit: None,
    })?;
    Ok(())
}
