//! The order in which a training reads its images.

use rand::seq::SliceRandom;
use speed_core::random::Stream;

/// An endless sequence of all items once in random order, then again in another order.
#[derive(Clone, Debug)]
pub struct Cycle {
    order: Vec<usize>,
    next: usize,
}

impl Cycle {
    /// Returns the cycle of these items.
    pub fn new(items: Vec<usize>) -> Self {
        Self { next: items.len(), order: items }
    }

    /// Returns the next item.
    ///
    /// # Panics
    /// If there are no items.
    pub fn next(&mut self, stream: &mut Stream) -> usize {
        if self.next == self.order.len() {
            self.order.shuffle(stream);
            self.next = 0;
        }
        self.next += 1;
        self.order[self.next - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use speed_core::random::Streams;

    #[test]
    fn every_item_comes_once_a_round() {
        let items: Vec<usize> = (3..10).collect();
        let (mut cycle, mut stream) = (Cycle::new(items.clone()), Streams::new(1).stream("cycle", 0));
        let rounds: Vec<Vec<usize>> = (0..3).map(|_| (0..7).map(|_| cycle.next(&mut stream)).collect()).collect();
        for round in &rounds {
            let mut sorted = round.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, items);
        }
        assert_ne!(rounds[0], rounds[1]);
    }
}
