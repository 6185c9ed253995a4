//! The state shared by the requests of a round.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::{Semaphore, watch};

use crate::Refused;
use crate::network::keeper::{Keeper, KeeperHandle};
use crate::network::limits::{Limits, Rates};
use crate::network::metrics::Metrics;
use crate::network::refused::RefusedMessages;
use crate::network::stage::Stage;
use crate::network::transport::{Counters, PeerKey};
use crate::network::uploads::Uploads;
use crate::server::RoundServer;

/// The state shared by the requests of a round.
pub(crate) struct ServedRound {
    pub(crate) server: Arc<RoundServer>,
    pub(crate) keeper: KeeperHandle,
    pub(crate) received: watch::Receiver<usize>,
    pub(crate) stage: watch::Receiver<Stage>,
    /// Set when the student has the result.
    pub(crate) fetched: watch::Sender<bool>,
    pub(crate) uploads: Arc<Uploads>,
    pub(crate) refused: RefusedMessages,
    pub(crate) rates: Rates,
    /// Rate limits of the lines about refused messages of a party in the program's log.
    pub(crate) lines: Rates,
    pub(crate) limits: Limits,
    /// Concurrent checks of proofs: one for each thread.
    pub(crate) checks: Arc<Semaphore>,
    /// Parties with a message that is being sent or checked.
    checking: Mutex<HashSet<[u8; 32]>>,
    /// The encoded log, and the number of changes of the registry after which it was read.
    pub(crate) log: tokio::sync::Mutex<Option<(u64, Bytes)>>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) connections: Arc<Counters>,
}

/// Log lines about refused messages of a party that may come in a burst.
const LINES: f64 = 8.0;
/// Sustained rate of such lines, per second.
const LINE_RATE: f64 = 1.0 / 60.0;

impl ServedRound {
    pub(crate) fn new(
        server: &Arc<RoundServer>,
        keeper: &Keeper,
        stage: watch::Receiver<Stage>,
        limits: Limits,
        checks: usize,
    ) -> Result<Self, Refused> {
        Ok(Self {
            server: server.clone(),
            keeper: keeper.handle(),
            received: keeper.received.clone(),
            stage,
            fetched: watch::channel(server.registry.is_fetched(server.file.id())?).0,
            uploads: Uploads::new(limits.unfinished.max(16 * server.max_message())),
            refused: RefusedMessages::default(),
            rates: Rates::new(limits.burst, limits.rate),
            lines: Rates::new(LINES, LINE_RATE),
            limits,
            checks: Arc::new(Semaphore::new(checks)),
            checking: Mutex::default(),
            log: tokio::sync::Mutex::default(),
            metrics: Arc::default(),
            connections: Arc::default(),
        })
    }
}

/// A party's permission to send a message and have it checked: one at a time.
pub(crate) struct Turn {
    served: Arc<ServedRound>,
    peer: PeerKey,
}

impl Turn {
    pub(crate) fn take(served: &Arc<ServedRound>, peer: PeerKey) -> Option<Self> {
        let is_first = served.checking.lock().unwrap_or_else(PoisonError::into_inner).insert(peer.0);
        is_first.then(|| Self { served: served.clone(), peer })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.served.checking.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.peer.0);
    }
}
