//! The price of a round, and its charge to a party's ledger.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use speed_accountant::ledger::{ChargeRequest, Ledger, PartySize};
use speed_accountant::{Budget, Delta, Price, PriceLimit, PrivacyEvent, QueryBatch};
use speed_core::{Digest, NoisePlacement};
use speed_mechanism::HonestRatio;

use crate::error::Refused;
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
pub fn default_ledger(signing_key: &Path) -> PathBuf {
    beside(signing_key, "ledger")
}

/// Returns the privacy event of a query of a round in which the noise of `present` teachers is present and secret. If
/// the server adds the noise, all noise is present, and secret from everyone else.
///
/// # Errors
/// If the noise cannot be described.
pub(crate) fn privacy_event(file: &RoundFile, present: usize) -> Result<PrivacyEvent, Refused> {
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
pub(crate) fn party_event(file: &RoundFile, present: usize) -> Result<Option<PrivacyEvent>, Refused> {
    let teachers = file.round().largest_party();
    if teachers == 1 {
        return Ok(None);
    }
    Ok(Some(privacy_event(file, present)?.of_party(teachers)?))
}

/// Returns the queries of a round with this much noise.
fn batch(file: &RoundFile, present: usize) -> Result<QueryBatch, Refused> {
    let shape = file.round().shape();
    Ok(QueryBatch::new(privacy_event(file, present)?, shape.classes(), shape.queries()))
}

/// Refuses a round that may cost one teacher more than the limit, if only the teachers that it needs at least answer.
pub(crate) fn expect_price(file: &RoundFile, limit: PriceLimit, delta: Delta) -> Result<(), Refused> {
    if file.round().is_simulation() || limit == PriceLimit::UNLIMITED {
        return Ok(());
    }
    let batch = batch(file, file.round().min_teachers())?;
    // A round has queries.
    let price = Price::for_batches(&[batch], delta).map(|price| price.unwrap_or(Price { one_answer: 0.0, all: 0.0 }));
    limit.check("the round", price, delta).map_err(|refusal| Refused::usage(format_args!("--max-epsilon: {refusal}")))
}

/// The ledger of a party of a round. Simulations cost nothing: they need no ledger.
pub(crate) struct RoundLedger<'a> {
    pub(crate) options: &'a LedgerOptions,
    pub(crate) file: &'a RoundFile,
    /// The party, because parties may share a ledger.
    pub(crate) party: PartyKey,
}

impl<'a> RoundLedger<'a> {
    /// Returns the ledger of the round's server.
    pub(crate) fn of_server(options: &'a LedgerOptions, file: &'a RoundFile) -> Self {
        Self { options, file, party: file.roster().server().key() }
    }

    /// Returns the question of a charge: the round and the party that answers it.
    fn question(&self) -> String {
        format!("{}/{}", self.file.id().to_hex(), self.party.to_hex())
    }

    /// Opens the ledger. `None` if there is none yet, or for a simulation.
    fn open(&self) -> Result<Option<Ledger>, Refused> {
        let is_there = !self.file.round().is_simulation() && self.options.path.exists();
        Ok(is_there.then(|| Ledger::open(&self.options.path)).transpose()?)
    }

    /// Opens the ledger, or creates it.
    fn open_or_create(&self) -> Result<Ledger, Refused> {
        let budget = Budget { epsilon: None, delta: self.options.delta };
        Ok(Ledger::open_or_create(&self.options.path, budget)?)
    }

    /// Returns whether the party's answer to the round is in its ledger.
    fn is_charged(&self, ledger: &Ledger) -> Result<bool, Refused> {
        let asked = self.question();
        Ok(ledger.statement()?.charges.iter().any(|charge| charge.question == asked))
    }

    /// Refuses a round that is in the ledger but not in the registry at this path, because its message or result may
    /// already be published.
    pub(crate) fn expect_uncharged(&self, registry: &Path) -> Result<(), Refused> {
        match self.open()? {
            Some(ledger) if self.is_charged(&ledger)? => Err(Refused::results(
                registry,
                "does not contain this round, but the ledger was charged for it: the round was answered with another registry, or this one was lost or restored. Give the \
                 right --registry, because a second answer would have other noise",
            )),
            _ => Ok(()),
        }
    }

    /// Checks that the ledger has the budget for the round with this much noise, or that the round is already charged.
    pub(crate) fn expect_budget(&self, present: usize) -> Result<(), Refused> {
        match self.open()? {
            Some(ledger) if !self.is_charged(&ledger)? => Ok(ledger.would_allow(&[batch(self.file, present)?], None)?),
            _ => Ok(()),
        }
    }

    /// Checks that the ledger can be written, or created if it does not exist.
    pub(crate) fn expect_writable(&self) -> Result<(), Refused> {
        if self.file.round().is_simulation() {
            return Ok(());
        }
        self.open_or_create()?;
        let writable = OpenOptions::new().append(true).open(&self.options.path).map(drop);
        writable.map_err(Refused::io("write", &self.options.path))
    }

    /// Charges the round before `released`, the digest of the party's message or sum, leaves it, unless it is already charged. A second
    /// digest for a round is refused, also if another process with another registry made it. The ledger is of a party with
    /// `party_teachers` teachers.
    pub(crate) fn charge(&self, present: usize, party_teachers: usize, released: Digest) -> Result<(), Refused> {
        if self.file.round().is_simulation() {
            return Ok(());
        }
        let QueryBatch { event, classes, queries } = batch(self.file, present)?;
        let teachers = self.file.round().shape().teachers();
        self.open_or_create()?.charge_once(&ChargeRequest {
            label: self.file.name(),
            event: &event,
            classes,
            queries,
            party: Some(PartySize { party_teachers, teachers }),
            question: &self.question(),
            noise_digest: &released.to_hex(),
            is_only: true,
            limit: None,
        })?;
        Ok(())
    }
}
