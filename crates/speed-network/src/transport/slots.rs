//! Connection slots, counted by holder.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::transport::key::PeerKey;
use crate::transport::limits::{ConnectionLimits, Counters};

/// The slots of a server.
pub(crate) struct Slots {
    limits: ConnectionLimits,
    counters: Arc<Counters>,
    held: Mutex<SlotsInUse>,
}

/// The slots in use.
#[derive(Default)]
struct SlotsInUse {
    connections: usize,
    handshakes: usize,
    networks: HashMap<IpAddr, usize>,
    peers: HashMap<PeerKey, usize>,
}

/// The slot of one connection, which is released on drop.
pub(crate) struct Slot {
    slots: Arc<Slots>,
    holder: SlotHolder,
}

/// The holder of a slot: a stranger, identified by its network, until the handshake; then a peer.
enum SlotHolder {
    Stranger(IpAddr),
    Peer(PeerKey),
}

impl Slots {
    pub(crate) fn new(limits: ConnectionLimits, counters: Arc<Counters>) -> Arc<Self> {
        Arc::new(Self { limits, counters, held: Mutex::default() })
    }

    /// Returns a slot for a connection before its handshake, or `None` if none is free, which is counted.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<Slot> {
        let network = network(address);
        let mut held = self.held();
        let is_free = held.connections < self.limits.connections
            && held.handshakes < self.limits.handshakes
            && take(&mut held.networks, network, self.limits.handshakes_per_address);
        if !is_free {
            self.counters.count_refused_busy();
            return None;
        }
        held.connections += 1;
        held.handshakes += 1;
        self.counters.set_open(held.connections);
        drop(held);
        Some(Slot { slots: Arc::clone(self), holder: SlotHolder::Stranger(network) })
    }

    /// Locks the counts. They are consistent even after a panic, because no code between two changes of them can panic.
    fn held(&self) -> MutexGuard<'_, SlotsInUse> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// Exchanges the handshake slot for one of the peer's connections. Returns `false` if the peer has too many, which
    /// is counted.
    pub(crate) fn authenticate(&mut self, peer: PeerKey) -> bool {
        let mut held = self.slots.held();
        if !take(&mut held.peers, peer, self.slots.limits.connections_per_peer) {
            self.slots.counters.count_refused_busy();
            return false;
        }
        release_holder(&mut held, &self.holder);
        self.holder = SlotHolder::Peer(peer);
        true
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut held = self.slots.held();
        release_holder(&mut held, &self.holder);
        held.connections -= 1;
        self.slots.counters.set_open(held.connections);
    }
}

fn release_holder(held: &mut SlotsInUse, holder: &SlotHolder) {
    match holder {
        SlotHolder::Stranger(network) => {
            held.handshakes -= 1;
            release(&mut held.networks, network);
        }
        SlotHolder::Peer(peer) => release(&mut held.peers, peer),
    }
}

/// Increments a count if it is below `most`.
fn take<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: K, most: usize) -> bool {
    let count = counts.get(&key).copied().unwrap_or(0);
    if count < most {
        counts.insert(key, count + 1);
    }
    count < most
}

/// Decrements a count, and removes it at zero, so the maps are no larger than the number of connections.
fn release<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

/// Returns the address under which connections are counted: an IPv4 address, or the network of an IPv6 address, because
/// the client chooses its last 64 bits (RFC 4291, section 2.5.4).
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        v4 => v4,
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
    fn one_address_cannot_hold_all_handshakes() {
        let (slots, counters) =
            slots(ConnectionLimits { handshakes: 3, handshakes_per_address: 2, ..Default::default() });
        let first: Vec<_> = (0..2).filter_map(|_| slots.admit(address("192.0.2.1"))).collect();
        assert_eq!(first.len(), 2);
        assert!(slots.admit(address("192.0.2.1")).is_none());
        assert!(slots.admit(address("::ffff:192.0.2.1")).is_none());
        let other = slots.admit(address("192.0.2.2")).expect("a place");
        assert!(slots.admit(address("192.0.2.3")).is_none(), "three handshakes are running");
        assert_eq!((counters.refused_busy(), counters.open()), (3, 3));
        drop((first, other));
        assert_eq!(counters.open(), 0);
        assert!(slots.held().networks.is_empty());
    }

    #[test]
    fn addresses_of_one_ipv6_network_count_together() {
        assert_eq!(network(address("2001:db8::1")), network(address("2001:db8::ffff:1:2:3")));
        assert_ne!(network(address("2001:db8::1")), network(address("2001:db8:0:1::1")));
    }

    #[test]
    fn a_handshake_that_ended_makes_room_and_the_total_holds() {
        let limits = ConnectionLimits { connections: 3, connections_per_peer: 2, handshakes: 1, ..Default::default() };
        let (slots, counters) = slots(limits);
        let enter = |peer| {
            let mut slot = slots.admit(address("192.0.2.1"))?;
            slot.authenticate(PeerKey([peer; 32])).then_some(slot)
        };
        let held: Vec<_> = [1, 1, 2].into_iter().filter_map(enter).collect();
        assert_eq!((held.len(), counters.open()), (3, 3));
        assert!(slots.admit(address("192.0.2.1")).is_none());
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
