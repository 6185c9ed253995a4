//! Connections that have not yet said who they are.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::net::{IpAddr, Ipv6Addr};

use tokio::sync::oneshot;

/// A connection's place among the strangers, by the order of arrival.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(u64);

/// Tells a connection that it lost its place to a newer one: the sender is dropped.
pub(crate) type Evicted = oneshot::Receiver<()>;

/// The strangers of a server. A newcomer always finds a place: if there is none, a connection of the network that has the most goes, first one
/// that has not sent a complete greeting (TLS's ClientHello), chosen at random. So silent connections cannot keep others out, and
/// of `n` places a connection survives each newcomer of its network with probability `1 - 1/n` at least: a flood makes others try again, but would need
/// many times `n` connections in the time of a handshake to keep them out.
#[derive(Debug)]
pub(crate) struct Strangers {
    most: usize,
    most_per_network: usize,
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
    /// Creates an empty list of at most `most` connections, and at most `most_per_network` from one network (both at least 1).
    pub(crate) fn new(most: usize, most_per_network: usize) -> Self {
        let (most, most_per_network) = (most.max(1), most_per_network.max(1));
        Self { most, most_per_network, next: 0, places: BTreeMap::new(), chance: RandomState::new() }
    }

    /// Returns a place, and the number of connections that had to go. `of_proxy` says that the address is that of all clients, so the limit for one
    /// network does not hold until [`Self::move_to`].
    pub(crate) fn enter(&mut self, address: IpAddr, of_proxy: bool) -> (Place, Evicted, usize) {
        let network = network(address);
        let before = self.places.len();
        if !of_proxy {
            self.make_room(network);
        }
        while self.places.len() >= self.most {
            self.evict();
        }
        let evicted = before - self.places.len();
        let place = Place(self.next);
        self.next += 1;
        let (sender, receiver) = oneshot::channel();
        self.places.insert(place, Stranger { network, has_greeted: false, _keep: sender });
        (place, receiver, evicted)
    }

    /// Counts a connection under the address that its proxy states, and returns the number of connections that had to go.
    pub(crate) fn move_to(&mut self, place: Place, address: IpAddr) -> usize {
        let before = self.places.len();
        let Some(mut stranger) = self.places.remove(&place) else { return 0 };
        stranger.network = network(address);
        self.make_room(stranger.network);
        self.places.insert(place, stranger);
        before - self.places.len()
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

    /// Drops a connection of the network that has the most; of several such networks, of that with the oldest connection. Returns false if
    /// there is none.
    pub(crate) fn evict(&mut self) -> bool {
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        self.places.values().for_each(|stranger| *counts.entry(stranger.network).or_default() += 1);
        let most = counts.values().copied().max().unwrap_or(0);
        let fullest = self.places.values().map(|stranger| stranger.network).find(|network| counts[network] == most);
        fullest.is_some_and(|network| self.evict_of(network))
    }

    fn make_room(&mut self, network: IpAddr) {
        while self.places.values().filter(|other| other.network == network).count() >= self.most_per_network {
            self.evict_of(network);
        }
    }

    fn evict_of(&mut self, network: IpAddr) -> bool {
        let of_network = self.places.iter().filter(|(_, other)| other.network == network);
        let first =
            of_network.min_by_key(|(place, other)| (other.has_greeted, self.chance.hash_one((self.next, place))));
        let first = first.map(|(place, _)| *place);
        first.is_some_and(|place| self.leave(place))
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
    fn a_silent_one_of_the_fullest_network_goes_first() {
        let mut strangers = Strangers::new(4, 3);
        let (_, mut honest, _) = strangers.enter(address("192.0.2.9"), false);
        let mut silent: Vec<_> = (0..3).map(|_| strangers.enter(address("192.0.2.1"), false)).collect();
        strangers.greet(silent[0].0);
        // A fourth of one address takes the place of one that has not greeted.
        silent.push(strangers.enter(address("::ffff:192.0.2.1"), false));
        assert_eq!(silent[3].2, 1);
        assert!(!is_evicted(&mut silent[0].1) && !is_evicted(&mut silent[3].1));
        assert_eq!(silent[1..3].iter_mut().filter_map(|(_, evicted, _)| is_evicted(evicted).then_some(())).count(), 1);
        // Another address takes the place of the next, although the honest connection is older.
        assert_eq!(strangers.enter(address("192.0.2.2"), false).2, 1);
        assert!(!is_evicted(&mut honest) && !is_evicted(&mut silent[0].1));
        assert_eq!(strangers.len(), 4);
    }

    #[test]
    fn a_flood_from_the_same_address_lets_others_finish() {
        let flooded = |newcomers: usize, greet: bool| {
            let mut strangers = Strangers::new(128, 128);
            let all = address("192.0.2.1");
            let mut silent: Vec<_> = (0..128).map(|_| strangers.enter(all, false)).collect();
            let (place, _evicted, _) = strangers.enter(all, false);
            if greet {
                strangers.greet(place);
            }
            silent.extend((0..newcomers).map(|_| strangers.enter(all, false)));
            strangers.leave(place)
        };
        // As many newcomers as a flood of 4,600 a second brings in 28 ms. Each of the oldest 128 would be gone; here one in e of the silent ones
        // stays, 368 of 1000 on average: with a chance below one in a million fewer than 280. Those that have greeted always stay.
        let kept = (0..1000).filter(|_| flooded(128, false)).count();
        assert!((280..460).contains(&kept), "{kept} of 1000");
        assert!((0..100).all(|_| flooded(1000, true)));
    }

    #[test]
    fn connections_of_a_proxy_count_under_the_addresses_of_its_clients() {
        let mut strangers = Strangers::new(8, 2);
        let proxy = address("192.0.2.1");
        let mut all: Vec<_> = (0..6).map(|_| strangers.enter(proxy, true)).collect();
        assert_eq!((strangers.len(), all.iter().map(|entered| entered.2).sum::<usize>()), (6, 0));
        let moved: Vec<usize> =
            all.iter().map(|(place, ..)| strangers.move_to(*place, address("203.0.113.5"))).collect();
        assert_eq!(moved, [0, 0, 1, 1, 1, 1]);
        assert_eq!(all.iter_mut().filter_map(|(_, evicted, _)| is_evicted(evicted).then_some(())).count(), 4);
        let gone = all.iter_mut().find_map(|(place, evicted, _)| is_evicted(evicted).then_some(*place));
        assert_eq!(strangers.move_to(gone.expect("four are gone"), proxy), 0);
    }

    #[test]
    fn a_place_is_given_back_once() {
        let mut strangers = Strangers::new(1, 1);
        let (first, mut evicted, _) = strangers.enter(address("192.0.2.1"), false);
        let (second, _evicted, _) = strangers.enter(address("192.0.2.2"), false);
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
