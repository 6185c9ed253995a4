//! Places of connections: those of strangers, and connection slots, counted by holder.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::network::transport::limits::{ConnectionLimits, Counters};
use crate::network::transport::tls::PeerKey;

/// A connection's place among the strangers, by the order of arrival.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(u64);

/// Tells a connection that it lost its place to a newer one: the sender is dropped.
pub(crate) type Evicted = oneshot::Receiver<()>;

/// The strangers of a server. A newcomer always finds a place: if there is none, a connection of the network that has the most loses its own, so
/// silent connections of some networks cannot keep others out. Of two connections that chance chooses, the one goes that has not sent its complete
/// greeting (TLS's ClientHello). So a connection survives a newcomer with probability `1 - 2/n` at least, where `n` is the number of
/// connections of the fullest networks, and a greeting protects it from silent ones.
#[derive(Debug)]
pub(crate) struct Strangers {
    most: usize,
    next: u64,
    places: BTreeMap<Place, Stranger>,
    chance: RandomState,
}

#[derive(Debug)]
struct Stranger {
    network: IpAddr,
    has_greeted: bool,
    /// Dropped to evict the connection.
    _keep: oneshot::Sender<()>,
}

impl Strangers {
    /// Creates an empty list of at most `most` connections (at least 1).
    pub(crate) fn new(most: usize) -> Self {
        Self { most: most.max(1), next: 0, places: BTreeMap::new(), chance: RandomState::new() }
    }

    /// Returns a place, and the number of connections that had to go.
    pub(crate) fn enter(&mut self, address: IpAddr) -> (Place, Evicted, usize) {
        let before = self.places.len();
        while self.places.len() >= self.most {
            self.evict();
        }
        let evicted = before - self.places.len();
        let place = Place(self.next);
        self.next += 1;
        let (sender, receiver) = oneshot::channel();
        self.places.insert(place, Stranger { network: network(address), has_greeted: false, _keep: sender });
        (place, receiver, evicted)
    }

    /// Counts a connection under the address that its proxy states.
    pub(crate) fn move_to(&mut self, place: Place, address: IpAddr) {
        if let Some(stranger) = self.places.get_mut(&place) {
            stranger.network = network(address);
        }
    }

    /// Notes that a connection has sent its complete greeting.
    pub(crate) fn greet(&mut self, place: Place) {
        if let Some(stranger) = self.places.get_mut(&place) {
            stranger.has_greeted = true;
        }
    }

    /// Gives a place back. Returns false if its connection had to go before.
    pub(crate) fn leave(&mut self, place: Place) -> bool {
        self.places.remove(&place).is_some()
    }

    /// Drops a connection of one of the networks that have the most. Returns false if there is none.
    pub(crate) fn evict(&mut self) -> bool {
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        self.places.values().for_each(|stranger| *counts.entry(stranger.network).or_default() += 1);
        let most = counts.values().copied().max().unwrap_or(0);
        let of_fullest = self.places.iter().filter(|(_, stranger)| counts[&stranger.network] == most);
        let candidates: Vec<(Place, bool)> = of_fullest.map(|(place, other)| (*place, other.has_greeted)).collect();
        let chosen = |which: u64| {
            let number = self.chance.hash_one((self.next, self.places.len(), which));
            candidates.get((number % candidates.len().max(1) as u64) as usize)
        };
        let (Some(&(one, has_greeted)), Some(&(other, other_has_greeted))) = (chosen(0), chosen(1)) else {
            return false;
        };
        self.leave(if has_greeted && !other_has_greeted { other } else { one })
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
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

/// The slots of a server.
pub(crate) struct Slots {
    limits: ConnectionLimits,
    counters: Arc<Counters>,
    held: Mutex<SlotsInUse>,
}

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
        self.counters.refused_busy.add(gone as u64);
        self.counters.open.set(held.count() as u64);
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
            self.slots.counters.refused_busy.add(1);
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
        self.slots.counters.open.set(held.count() as u64);
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
        let (slots, counters) = slots(ConnectionLimits::default());
        let silent: Vec<_> = (0..4)
            .flat_map(|host| (0..32).map(move |_| address(&format!("192.0.2.{host}"))))
            .map(|address| slots.admit(address))
            .collect();
        assert_eq!((silent.len(), counters.open.get(), counters.refused_busy.get()), (128, 128, 0));
        let (mut honest, _evicted) = slots.admit(address("192.0.2.9"));
        // The attackers come again, and drop their own connections only.
        let again: Vec<_> = (0..400).map(|k| slots.admit(address(&format!("192.0.2.{}", k % 4)))).collect();
        assert!(honest.authenticate(PeerKey([1; 32])));
        assert_eq!((again.len(), counters.open.get()), (400, 129 - 1));
        drop((silent, again, honest));
        assert!(counters.open.get() == 0 && slots.held().peers.is_empty());
    }

    #[test]
    fn a_slot_that_was_taken_back_is_none() {
        let (slots, counters) = slots(ConnectionLimits { handshakes: 1, ..Default::default() });
        let (mut first, mut evicted) = slots.admit(address("192.0.2.1"));
        let (mut second, _evicted) = slots.admit(address("192.0.2.1"));
        assert!(evicted.try_recv().is_err_and(|error| error != tokio::sync::oneshot::error::TryRecvError::Empty));
        assert!(!first.authenticate(PeerKey([1; 32])) && second.authenticate(PeerKey([1; 32])));
        assert_eq!((counters.refused_busy.get(), counters.open.get()), (1, 1));
    }

    fn is_evicted(evicted: &mut Evicted) -> bool {
        evicted.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    #[test]
    fn one_of_the_fullest_network_goes() {
        let mut strangers = Strangers::new(4);
        let (_, mut honest, _) = strangers.enter(address("192.0.2.9"));
        let mut silent: Vec<Evicted> = (0..3).map(|_| strangers.enter(address("192.0.2.1")).1).collect();
        // Another one of this address and one of another address take the places of two of them, although the honest connection is older.
        assert_eq!(strangers.enter(address("::ffff:192.0.2.1")).2, 1);
        assert_eq!(strangers.enter(address("192.0.2.2")).2, 1);
        assert!(!is_evicted(&mut honest) && strangers.len() == 4);
        assert!(silent.iter_mut().filter_map(|evicted| is_evicted(evicted).then_some(())).count() >= 1);
    }

    #[test]
    fn a_flood_from_the_same_address_lets_others_finish() {
        let share = |greeted: usize, greets: bool, newcomers: usize, host: fn(usize) -> u32| {
            let kept = (0..200).filter(|_| {
                let mut strangers = Strangers::new(128);
                let mut enter = |k| strangers.enter(IpAddr::from(host(k).to_be_bytes()));
                let mut all: Vec<_> = (0..127).map(&mut enter).collect();
                let (place, _evicted, _) = enter(127);
                all[..greeted].iter().for_each(|(place, ..)| strangers.greet(*place));
                if greets {
                    strangers.greet(place);
                }
                all.extend((0..newcomers).map(|k| strangers.enter(IpAddr::from(host(128 + k).to_be_bytes()))));
                strangers.leave(place)
            });
            kept.count()
        };
        // As many newcomers as a flood of 4,600 a second brings in 28 ms. If the oldest went, none would be left. Of 200 connections (1 - 1/128)^128 stay,
        // 73 on average; each bound is missed with a chance below one in a million.
        let one: fn(usize) -> u32 = |_| 1;
        for host in [one, |k| k as u32] {
            assert!((38..110).contains(&share(0, false, 128, host)));
            // A complete greeting protects from silent ones.
            assert!(share(0, true, 128, host) > 180);
        }
        // Greetings of others do not make the only silent one go first: (1 - 2/128)^16 stay, 155 of 200.
        assert!((120..188).contains(&share(127, false, 16, one)));
    }

    #[test]
    fn connections_of_a_proxy_count_under_the_addresses_of_its_clients() {
        let mut strangers = Strangers::new(4);
        let proxy = address("192.0.2.1");
        let mut all: Vec<_> = (0..4).map(|_| strangers.enter(proxy)).collect();
        all[1..].iter().for_each(|(place, ..)| strangers.move_to(*place, address("203.0.113.5")));
        assert_eq!(strangers.enter(proxy).2, 1);
        assert!(!is_evicted(&mut all[0].1));
        let gone = all.iter_mut().find_map(|(place, evicted, _)| is_evicted(evicted).then_some(*place));
        // The place of a connection that had to go is not taken again.
        strangers.move_to(gone.expect("one is gone"), proxy);
        assert_eq!(strangers.len(), 4);
    }

    #[test]
    fn addresses_of_one_ipv6_network_count_together() {
        assert_eq!(network(address("2001:db8::1")), network(address("2001:db8::ffff:1:2:3")));
        assert_ne!(network(address("2001:db8::1")), network(address("2001:db8:0:1::1")));
    }
}
