//! The division of groups of images into parts with the same classes.

use rand::seq::SliceRandom;
use speed_core::random::Stream;

/// The weight of a part's total number of images, relative to the number of images of each class.
const TOTAL: f64 = 0.01;

/// Divides images into parts. Every group is in one part, and every part gets about its share of the images of every class
/// and of all images. `shares` sum to 1. Returns the images of each part, in their order.
///
/// The groups come in random order, larger ones first. Each goes to the part whose numbers then differ least from its
/// shares; for groups of one image, every class is divided as exactly as rounding permits.
pub(super) fn divide(
    images: &[usize],
    group_of: &[usize],
    labels: &[u8],
    shares: &[f64],
    stream: &mut Stream,
) -> Vec<Vec<usize>> {
    let classes = images.iter().map(|&image| usize::from(labels[image]) + 1).max().unwrap_or(0);
    // The last column counts all classes.
    let count = |images: &[usize]| {
        let mut counts = vec![0.0; classes + 1];
        for &image in images {
            counts[usize::from(labels[image])] += 1.0;
            counts[classes] += 1.0;
        }
        counts
    };
    let totals = count(images);
    let weights: Vec<f64> = (0..=classes).map(|class| if class == classes { TOTAL } else { 1.0 }).collect();
    let mut parts: Vec<(Vec<usize>, Vec<f64>)> = vec![(Vec::new(), vec![0.0; classes + 1]); shares.len()];
    for members in shuffled_groups(images, group_of, stream) {
        let counts = count(&members);
        let increase = |(_, held): &(Vec<usize>, Vec<f64>), share: f64| -> f64 {
            let one = |class: usize| {
                let excess = held[class] - share * totals[class];
                weights[class] * counts[class] * (counts[class] + 2.0 * excess) / totals[class].max(1.0)
            };
            (0..=classes).map(one).sum()
        };
        let costs = parts.iter().zip(shares).map(|(part, &share)| increase(part, share));
        let best = costs.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(part, _)| part);
        let (list, held) = &mut parts[best];
        list.extend(members);
        held.iter_mut().zip(counts).for_each(|(held, count)| *held += count);
    }
    let sorted = |(mut images, _): (Vec<usize>, Vec<f64>)| {
        images.sort_unstable();
        images
    };
    parts.into_iter().map(sorted).collect()
}

/// Returns the images of every group: larger groups first, and groups of one size in random order.
fn shuffled_groups(images: &[usize], group_of: &[usize], stream: &mut Stream) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = vec![Vec::new(); group_of.iter().max().map_or(0, |last| last + 1)];
    images.iter().for_each(|&image| groups[group_of[image]].push(image));
    groups.retain(|group| !group.is_empty());
    groups.shuffle(stream);
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    groups
}

#[cfg(test)]
mod tests {
    use speed_core::random::Streams;

    use super::*;

    fn stream(seed: u64) -> Stream {
        Streams::new(seed).stream("division", 0)
    }

    #[test]
    fn single_images_are_divided_within_rounding_in_every_class() {
        let labels: Vec<u8> = (0..103).map(|image| [0, 0, 0, 1, 1, 2][image % 6]).collect();
        let (images, groups): (Vec<usize>, Vec<usize>) = ((0..103).collect(), (0..103).collect());
        for shares in [&[0.8, 0.2][..], &[0.25; 4]] {
            let parts = divide(&images, &groups, &labels, shares, &mut stream(1));
            assert_eq!(parts.iter().map(Vec::len).sum::<usize>(), 103);
            for (part, share) in parts.iter().zip(shares) {
                for class in 0..3 {
                    let of = |images: &[usize]| images.iter().filter(|image| labels[**image] == class).count() as f64;
                    assert!((of(part) - share * of(&images)).abs() < 1.0, "{shares:?}: {part:?}");
                }
                assert!((part.len() as f64 - share * 103.0).abs() < 2.0);
            }
            assert_eq!(parts, divide(&images, &groups, &labels, shares, &mut stream(1)));
            assert_ne!(parts, divide(&images, &groups, &labels, shares, &mut stream(2)));
        }
    }

    #[test]
    fn groups_stay_together_and_parts_are_balanced() {
        // Forty patients of three images each, all of one class.
        let group_of: Vec<usize> = (0..120).map(|image| image / 3).collect();
        let labels: Vec<u8> = group_of.iter().map(|group| (group % 2) as u8).collect();
        let images: Vec<usize> = (0..120).collect();
        let parts = divide(&images, &group_of, &labels, &[0.25; 4], &mut stream(3));
        for part in &parts {
            assert_eq!(part.len(), 30);
            assert_eq!(part.iter().filter(|image| labels[**image] == 0).count(), 15);
            for image in part {
                assert_eq!(part.iter().filter(|other| group_of[**other] == group_of[*image]).count(), 3);
            }
        }
        let few = divide(&images[..6], &group_of, &labels, &[0.9, 0.1], &mut stream(3));
        assert_eq!((few[0].len(), few[1].len()), (6, 0), "a tenth of six images is less than half a group");
    }
}
