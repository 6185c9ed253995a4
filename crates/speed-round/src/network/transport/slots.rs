//! Connection slots, counted by holder.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::network::transport::key::PeerKey;
use crate::network::transport::limits::{ConnectionLimits, Counters};
use crate::network::transport::strangers::{Evicted, Place, Strangers};

/// The slots of a server.
pub(crate) struct Slots {
    limits: ConnectionLimits,
    counters: Arc<Counters>,
    held: Mutex<SlotsInUse>,
}

/// The slots in use.
struct SlotsInUse {
    strangers: Strangers,
    peers: HashMap<PeerKey, usize>,
}

/// The slot of one connection, which is released on drop.
pub(crate) struct Slot {
    slots: Arc<Slots>,
    holder: SlotHolder,
}

/// The holder of a slot: a stranger until the handshake; then a peer.
enum SlotHolder {
    Stranger(Place),
    Peer(PeerKey),
}

impl Slots {
    pub(crate) fn new(limits: ConnectionLimits, counters: Arc<Counters>) -> Arc<Self> {
        let strangers = Strangers::new(limits.handshakes);
        let held = SlotsInUse { strangers, peers: HashMap::new() };
        Arc::new(Self { limits, counters, held: Mutex::new(held) })
    }

    /// Returns a slot for a connection before its handshake. If there is none, another handshake goes, which is counted.
    /// Peers have connections of their own, so they cannot leave strangers without a place.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> (Slot, Evicted) {
        let mut held = self.held();
        let (place, evicted, gone) = held.strangers.enter(address);
        (0..gone).for_each(|_| self.counters.count_refused_busy());
        self.counters.set_open(held.count());
        drop(held);
        (Slot { slots: Arc::clone(self), holder: SlotHolder::Stranger(place) }, evicted)
    }

    /// Locks the counts. They are consistent even after a panic, because no code between two changes of them can panic.
    fn held(&self) -> MutexGuard<'_, SlotsInUse> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotsInUse {
    fn count(&self) -> usize {
        self.strangers.len() + self.of_peers()
    }

    fn of_peers(&self) -> usize {
        self.peers.values().sum()
    }

    fn release(&mut self, holder: &SlotHolder) {
        match holder {
            SlotHolder::Stranger(place) => {
                self.strangers.leave(*place);
            }
            SlotHolder::Peer(peer) => {
                if let Some(count) = self.peers.get_mut(peer) {
                    *count -= 1;
                    // The map must not grow with peers that have left.
                    if *count == 0 {
                        self.peers.remove(peer);
                    }
                }
            }
        }
    }
}

impl Slot {
    /// Counts a handshake under the client's address, which its proxy stated.
    pub(crate) fn move_to(&self, address: IpAddr) {
        if let SlotHolder::Stranger(place) = self.holder {
            self.slots.held().strangers.move_to(place, address);
        }
    }

    /// Notes that the client has sent its complete greeting.
    pub(crate) fn greet(&self) {
        if let SlotHolder::Stranger(place) = self.holder {
            self.slots.held().strangers.greet(place);
        }
    }

    /// Exchanges the handshake slot for one of the peer's connections. Returns `false` if this peer or all peers have too
    /// many, which is counted, or if the slot was taken back.
    pub(crate) fn authenticate(&mut self, peer: PeerKey) -> bool {
        let mut held = self.slots.held();
        let count = held.peers.get(&peer).copied().unwrap_or(0);
        let limits = &self.slots.limits;
        if count >= limits.connections_per_peer || held.of_peers() >= limits.connections {
            self.slots.counters.count_refused_busy();
            return false;
        }
        if let SlotHolder::Stranger(place) = self.holder
            && !held.strangers.leave(place)
        {
            return false;
        }
        held.peers.insert(peer, count + 1);
        self.holder = SlotHolder::Peer(peer);
        true
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut held = self.slots.held();
        held.release(&self.holder);
        self.slots.counters.set_open(held.count());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(limits: ConnectionLimits) -> (Arc<Slots>, Arc<Counters>) {
        let counters = Arc::new(Counters::default());
        (Slots::new(limits, Arc::clone(&counters)), counters)
    }

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn silent_connections_of_four_addresses_keep_nobody_out() {
        // On the commit before, the last connection was dropped: all handshakes were taken.
        let (slots, counters) = slots(ConnectionLimits::default());
        let silent: Vec<_> = (0..4)
            .flat_map(|host| (0..32).map(move |_| address(&format!("192.0.2.{host}"))))
            .map(|address| slots.admit(address))
            .collect();
        assert_eq!((silent.len(), counters.open(), counters.refused_busy()), (128, 128, 0));
        let (mut honest, _evicted) = slots.admit(address("192.0.2.9"));
        // The attackers come again, and drop their own connections only.
        let again: Vec<_> = (0..400).map(|k| slots.admit(address(&format!("192.0.2.{}", k % 4)))).collect();
        assert!(honest.authenticate(PeerKey([1; 32])));
        assert_eq!((again.len(), counters.open()), (400, 129 - 1));
        drop((silent, again, honest));
        assert_eq!(counters.open(), 0);
    }

    #[test]
    fn a_slot_that_was_taken_back_is_none() {
        let (slots, counters) = slots(ConnectionLimits { handshakes: 1, ..Default::default() });
        let (mut first, mut evicted) = slots.admit(address("192.0.2.1"));
        let (mut second, _evicted) = slots.admit(address("192.0.2.1"));
        assert!(evicted.try_recv().is_err_and(|error| error != tokio::sync::oneshot::error::TryRecvError::Empty));
        assert!(!first.authenticate(PeerKey([1; 32])) && second.authenticate(PeerKey([1; 32])));
        assert_eq!((counters.refused_busy(), counters.open()), (1, 1));
    }

    #[test]
    fn a_handshake_that_ended_makes_room_and_the_total_holds() {
        let limits = ConnectionLimits { connections: 3, connections_per_peer: 2, handshakes: 1, ..Default::default() };
        let (slots, counters) = slots(limits);
        let enter = |peer| {
            let (mut slot, _) = slots.admit(address("192.0.2.1"));
            slot.authenticate(PeerKey([peer; 32])).then_some(slot)
        };
        let held: Vec<_> = [1, 1, 2].into_iter().filter_map(enter).collect();
        assert_eq!((held.len(), counters.open()), (3, 3));
        assert!(enter(3).is_none(), "peers have all connections");
        drop(held);
        let first = [enter(1), enter(1)];
        assert!(first.iter().all(Option::is_some));
        assert!(enter(1).is_none(), "two connections of the peer are open");
        assert!(enter(2).is_some());
        drop(first);
        assert!(slots.held().peers.is_empty());
        assert_eq!((counters.refused_busy(), counters.open()), (2, 0));
    }
}
