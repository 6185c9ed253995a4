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

    #[test]
    fn every_image_comes_once_and_every_label_about_equally_often() {
        let order = Order::draw(50, 50, 7, &mut Streams::new(1).stream("order", 0));
        for images in [&order.discriminator, &order.generator] {
            let mut sorted = images.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..50).collect::<Vec<_>>());
            assert_ne!(*images, sorted);
        }
        assert_ne!(order.discriminator, order.generator);
        assert!(order.labelled.len() >= 50);
        for pass in order.labelled.chunks(7) {
            let mut sorted = pass.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..7).collect::<Vec<_>>());
        }
        assert_ne!(order.labelled[..7], order.labelled[7..14]);
    }

    #[test]
    fn more_labels_than_images_of_an_epoch() {
        let order = Order::draw(3, 3, 8, &mut Streams::new(1).stream("order", 0));
        assert_eq!((order.discriminator.len(), order.labelled.len()), (3, 8));
    }

    #[test]
    fn an_epoch_longer_than_the_pool_has_every_image_about_equally_often() {
        let order = Order::draw(20, 6, 1, &mut Streams::new(1).stream("order", 0));
        for images in [&order.discriminator, &order.generator] {
            assert!(images.len() >= 20);
            for pass in images.chunks(6) {
                let mut sorted = pass.to_vec();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..6).collect::<Vec<_>>());
            }
            assert_ne!(images[..6], images[6..12]);
        }
        assert_eq!(order.labelled, [0; 20]);
        // An epoch uses only some images of a larger pool.
        assert_eq!(Order::draw(6, 20, 1, &mut Streams::new(1).stream("order", 0)).discriminator.len(), 20);
    }
}
