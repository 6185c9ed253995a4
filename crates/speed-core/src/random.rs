//! Named random streams for all randomness of an experiment except privacy noise.
//!
//! Every consumer derives its own ChaCha stream from one root seed, by name and index ("teacher", 17), so results
//! depend neither on the number of threads nor on the order of work. A stream is *not* a source of privacy noise, which
//! comes from the operating system unless a config requests a simulation.
//!
//! ```
//! use rand::RngExt;
//! use speed_core::random::Streams;
//!
//! let streams = Streams::new(7);
//! let a: u64 = streams.stream("teacher", 17).random();
//! let b: u64 = streams.stream("teacher", 17).random();
//! let c: u64 = streams.stream("teacher", 18).random();
//! assert_eq!(a, b);
//! assert_ne!(a, c);
//! ```

use rand::SeedableRng;

use crate::derive_key;

/// The generator of a stream: ChaCha with 12 rounds, which `rand`'s own `StdRng` also uses. It is pinned here so that a
/// new version of `rand` does not change results.
pub type Stream = rand_chacha::ChaCha12Rng;

const DOMAIN: &[u8] = b"speed/stream/v1";

/// A family of independent random streams, derived from one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Streams {
    key: [u8; 32],
}

impl Streams {
    /// Returns the family of a root seed.
    pub fn new(seed: u64) -> Self {
        Self { key: derive(&[0; 32], "root", seed) }
    }

    /// Returns the stream of one consumer, for example `("teacher", 17)`. The same arguments give the same stream.
    pub fn stream(&self, name: &str, index: u64) -> Stream {
        Stream::from_seed(derive(&self.key, name, index))
    }

    /// Returns a sub-family, for a consumer that needs several streams (student repeat 3 has initial weights, batches
    /// and noise).
    pub fn child(&self, name: &str, index: u64) -> Self {
        // A separate domain for children keeps `child("a", 0)` and `stream("a", 0)` unrelated.
        Self { key: derive(&derive(&self.key, "child", 0), name, index) }
    }
}

fn derive(key: &[u8; 32], name: &str, index: u64) -> [u8; 32] {
    derive_key(DOMAIN, key, name, index, b"")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rand::RngExt;

    use super::*;

    #[test]
    fn streams_differ_by_seed_name_index_and_level() {
        let mut first = HashSet::new();
        for seed in 0..3 {
            for name in ["a", "b", "ab"] {
                for index in 0..3 {
                    let family = Streams::new(seed);
                    assert!(first.insert(family.stream(name, index).random::<u128>()));
                    assert!(first.insert(family.child(name, index).stream(name, index).random::<u128>()));
                }
            }
        }
    }

    #[test]
    fn the_first_words_are_pinned() {
        // Published results name a seed, and a changed derivation would silently change all of them. The value is
        // SHA-256 as computed by Python's hashlib over the same encoding.
        assert_eq!(
            hex::encode(derive(&[0; 32], "root", 7)),
            "deb122356aa7fe4dffa93a9c1fbfc4d852a8dadc00c018d2b9e848d601eb7e67"
        );
    }
}
