//! Connections that have not yet said who they are.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};

use tokio::sync::oneshot;

/// A connection's place among the strangers, by the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(u64);

/// Tells a connection that it lost its place to a newer one: the sender is dropped.
pub(crate) type Evicted = oneshot::Receiver<()>;

/// The strangers of a server. A newcomer always finds a place: if there is none, the oldest connection of an address goes.
/// So silent connections cannot keep others out. A flood can: one that brings as many connections as there are places in the time
/// of a handshake, from as many networks.
#[derive(Debug)]
pub(crate) struct Strangers {
    most: usize,
    most_per_network: usize,
    next: u64,
    places: BTreeMap<Place, (IpAddr, oneshot::Sender<()>)>,
}

impl Strangers {
    /// Creates an empty list of at most `most` connections, and at most `most_per_network` from one network (both at least 1).
    pub(crate) fn new(most: usize, most_per_network: usize) -> Self {
        Self { most: most.max(1), most_per_network: most_per_network.max(1), next: 0, places: BTreeMap::new() }
    }

    /// Returns a place, and the number of connections that had to go.
    pub(crate) fn enter(&mut self, address: IpAddr) -> (Place, Evicted, usize) {
        let network = network(address);
        let before = self.places.len();
        while self.places.values().filter(|(other, _)| *other == network).count() >= self.most_per_network {
            self.evict_of(network);
        }
        while self.places.len() >= self.most {
            self.evict();
        }
        let evicted = before - self.places.len();
        let place = Place(self.next);
        self.next += 1;
        let (sender, receiver) = oneshot::channel();
        self.places.insert(place, (network, sender));
        (place, receiver, evicted)
    }

    /// Gives a place back. Returns false if its connection had to go before.
    pub(crate) fn leave(&mut self, place: Place) -> bool {
        self.places.remove(&place).is_some()
    }

    /// Drops the oldest connection of the network that has the most; of several such networks, of that with the oldest
    /// connection. Returns false if there is none.
    pub(crate) fn evict(&mut self) -> bool {
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        self.places.values().for_each(|(network, _)| *counts.entry(*network).or_default() += 1);
        let most = counts.values().copied().max().unwrap_or(0);
        let fullest = self.places.values().map(|(network, _)| *network).find(|network| counts[network] == most);
        fullest.is_some_and(|network| self.evict_of(network))
    }

    fn evict_of(&mut self, network: IpAddr) -> bool {
        let oldest = self.places.iter().find(|(_, (other, _))| *other == network).map(|(place, _)| *place);
        oldest.is_some_and(|place| self.leave(place))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn is_evicted(evicted: &mut Evicted) -> bool {
        evicted.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    #[test]
    fn the_oldest_of_the_fullest_network_goes_first() {
        let mut strangers = Strangers::new(4, 3);
        let mut enter = |text| strangers.enter(address(text));
        let (_, mut honest, _) = enter("192.0.2.9");
        let mut silent: Vec<Evicted> = (0..3).map(|_| enter("192.0.2.1").1).collect();
        // A fourth of one address takes the place of its first.
        assert_eq!(enter("::ffff:192.0.2.1").2, 1);
        assert!(is_evicted(&mut silent[0]) && !is_evicted(&mut silent[1]));
        // Another address takes the place of the next, although the honest connection is older.
        assert_eq!(enter("192.0.2.2").2, 1);
        assert!(is_evicted(&mut silent[1]) && !is_evicted(&mut honest));
        assert_eq!(strangers.len(), 4);
    }

    #[test]
    fn a_place_is_given_back_once() {
        let mut strangers = Strangers::new(1, 1);
        let (first, mut evicted, _) = strangers.enter(address("192.0.2.1"));
        let (second, _evicted, _) = strangers.enter(address("192.0.2.2"));
        assert!(is_evicted(&mut evicted));
        assert_eq!((strangers.leave(first), strangers.leave(second), strangers.leave(second)), (false, true, false));
        assert!(!strangers.evict());
    }

    #[test]
    fn addresses_of_one_ipv6_network_count_together() {
        assert_eq!(network(address("2001:db8::1")), network(address("2001:db8::ffff:1:2:3")));
        assert_ne!(network(address("2001:db8::1")), network(address("2001:db8:0:1::1")));
    }
}
