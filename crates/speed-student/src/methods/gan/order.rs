//! The selection of the images of each step.

use std::ops::Range;

use rand::seq::SliceRandom;
use speed_core::random::Stream;

/// The order of the images in one epoch: pool images for the discriminator, pool images for the generator in another
/// order, and positions in the list of labelled images. If an epoch is longer than a list, the list is repeated in a new
/// random order.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) discriminator: Vec<usize>,
    pub(crate) generator: Vec<usize>,
    pub(crate) labelled: Vec<usize>,
}

impl Order {
    /// Draws the order of an epoch of `images` images from a pool of `pool` images with `labelled` labels. Each number is at least 1.
    pub(crate) fn draw(images: usize, pool: usize, labelled: usize, stream: &mut Stream) -> Self {
        let mut shuffled = |count: usize| {
            let mut order = Vec::with_capacity(images + count);
            while order.len() < images {
                let first = order.len();
                order.extend(0..count);
                order[first..].shuffle(stream);
            }
            order
        };
        Self { discriminator: shuffled(pool), generator: shuffled(pool), labelled: shuffled(labelled) }
    }

    /// Returns the labelled images (indices into the pool) and their labels at the places `batch`.
    pub(crate) fn labels(&self, labelled: &[(usize, u8)], batch: Range<usize>) -> (Vec<usize>, Vec<u8>) {
        self.labelled[batch].iter().map(|&position| labelled[position]).unzip()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use speed_core::random::Streams;

    /// Checks that every pass over the list has all of its places, and that the first pass is in another order than the second.
    #[track_caller]
    fn check(order: &[usize], length: usize) {
        let all: Vec<usize> = (0..length).collect();
        for pass in order.chunks(length) {
            let mut sorted = pass.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, all);
        }
        assert_ne!(&order[..length], order.get(length..2 * length).unwrap_or(&all));
    }

    #[test]
    fn every_image_and_every_label_comes_about_equally_often() {
        let draw =
            |images, pool, labelled| Order::draw(images, pool, labelled, &mut Streams::new(1).stream("order", 0));
        let order = draw(50, 50, 7);
        for (list, length) in [(&order.discriminator, 50), (&order.generator, 50), (&order.labelled, 7)] {
            assert!(list.len() >= 50);
            check(list, length);
        }
        assert_ne!(order.discriminator, order.generator);
        let longer_than_the_pool = draw(20, 6, 1);
        for list in [&longer_than_the_pool.discriminator, &longer_than_the_pool.generator] {
            assert!(list.len() >= 20);
            check(list, 6);
        }
        assert_eq!(longer_than_the_pool.labelled, [0; 20]);
        // More labels than images of an epoch, and an epoch that uses only some images of a larger pool.
        assert_eq!(draw(3, 3, 8).labelled.len(), 8);
        assert_eq!(draw(6, 20, 1).discriminator.len(), 20);
    }
}
