//! Two classes: the ranking of images by the probability of the second class, and the confusion at a threshold.

use serde::{Deserialize, Serialize};

/// The threshold of a prediction without further information.
pub const EVEN: f64 = 0.5;

/// Most points of a curve, so that reports and cards stay small.
const MAX_POINTS: usize = 200;

/// Largest rounding error of an area that was computed twice.
const ROUNDING: f64 = 1e-9;

/// The results of a classifier that ranks images by the probability of the second of two classes, the *positive* class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TwoClasses {
    /// The area under the ROC curve: the share of the pairs of a positive image and another one in which the positive image
    /// has the higher probability, where a tie counts half (Mann and Whitney 1947). `None` without such pairs.
    pub auc: Option<f64>,
    /// The corners of the ROC curve from the highest threshold, without its end, where all images count as positive. A curve
    /// with more corners has a selection of 200.
    pub roc: Vec<RocPoint>,
    /// The threshold of `confusion`, between 0 and 1.
    pub threshold: f64,
    /// Number of images by true class and by the class at the threshold: the positive one if its probability is above it.
    pub confusion: [[u64; 2]; 2],
}

/// A point of a ROC curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RocPoint {
    /// Images whose probability of the positive class is above this one count as positive.
    pub threshold: f64,
    /// Number of them that are of the positive class.
    pub true_positives: u64,
    /// Number of the others.
    pub false_positives: u64,
}

impl TwoClasses {
    /// Returns the results for images with their true class (0 or 1) and the margin of the positive class, the logarithm of
    /// its odds; `None` if a margin is not finite.
    pub(crate) fn new(images: &[(u8, f64)], threshold: f64) -> Option<Self> {
        if !images.iter().all(|(_, margin)| margin.is_finite()) {
            return None;
        }
        // The logarithm of 1 is 0, so the even threshold gives the class with the greater logit.
        let bound = libm::log(threshold / (1.0 - threshold));
        let mut confusion = [[0; 2]; 2];
        images.iter().for_each(|&(truth, margin)| {
            confusion[usize::from(truth)][usize::from(margin > bound)] += 1;
        });
        let mut ranked = images.to_vec();
        ranked.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        let [others, positives] = confusion.map(|[rejected, accepted]| rejected + accepted);
        let (mut roc, mut won_twice) = (Vec::new(), 0_u128);
        let (mut true_positives, mut false_positives) = (0_u64, 0_u64);
        for tied in ranked.chunk_by(|(_, one), (_, other)| one == other) {
            let threshold = 1.0 / (1.0 + libm::exp(-tied[0].1));
            roc.push(RocPoint { threshold, true_positives, false_positives });
            let own = tied.iter().filter(|(truth, _)| *truth == 1).count() as u64;
            let others_here = tied.len() as u64 - own;
            let below = others - false_positives - others_here;
            won_twice += u128::from(own) * (2 * u128::from(below) + u128::from(others_here));
            true_positives += own;
            false_positives += others_here;
        }
        let roc = selection(&corners(&roc, [positives, others]));
        let pairs = u128::from(positives) * u128::from(others);
        let auc = (pairs > 0).then(|| won_twice as f64 / (2 * pairs) as f64);
        Some(Self { auc, roc, threshold, confusion })
    }

    /// Returns whether these may be results of images with this confusion matrix of two classes at the even threshold.
    /// Fewer points than [`MAX_POINTS`] determine the area, and a selection only bounds it.
    pub(crate) fn fits(&self, even: &[Vec<u64>]) -> bool {
        let sum = |row: &[u64]| row.iter().try_fold(0_u64, |sum, count| sum.checked_add(*count));
        let [Some(others), Some(positives)] = [0, 1].map(|class| even.get(class).and_then(|row| sum(row))) else {
            return false;
        };
        let has_images = self.confusion.iter().map(|row| sum(row)).eq([Some(others), Some(positives)]);
        let is_even =
            self.threshold != EVEN || self.confusion.iter().zip(even).all(|(own, there)| own[..] == there[..]);
        let are_points = self.roc.len() <= MAX_POINTS
            && self.roc.iter().all(|point| (0.0..=1.0).contains(&point.threshold))
            && self.steps([positives, others]).all(|[from, to]| {
                from.threshold >= to.threshold
                    && from.true_positives <= to.true_positives
                    && from.false_positives <= to.false_positives
            });
        let is_threshold = self.threshold > 0.0 && self.threshold < 1.0;
        if even.len() != 2 || !(has_images && is_even && are_points && is_threshold) {
            return false;
        }
        let pairs = (u128::from(positives) * u128::from(others)) as f64;
        let Some(auc) = self.auc else { return pairs == 0.0 };
        let area = |height: fn(&[RocPoint; 2]) -> u64| -> f64 {
            let width = |[from, to]: &[RocPoint; 2]| (to.false_positives - from.false_positives) as f64;
            self.steps([positives, others]).map(|step| width(&step) * height(&step) as f64).sum::<f64>() / pairs
        };
        let [mut least, mut most] = [area(|[from, _]| from.true_positives), area(|[_, to]| to.true_positives)];
        // A curve with fewer points has all of its corners, between which it is straight, so its area is exact.
        if self.roc.len() < MAX_POINTS {
            least = f64::midpoint(least, most);
            most = least;
        }
        pairs > 0.0 && (least - ROUNDING..=most + ROUNDING).contains(&auc)
    }

    /// Returns the steps of the curve, from its beginning, where no image counts as positive, to its end.
    fn steps(&self, [positives, others]: [u64; 2]) -> impl Iterator<Item = [RocPoint; 2]> {
        let first = RocPoint { threshold: 1.0, true_positives: 0, false_positives: 0 };
        let last = RocPoint { threshold: 0.0, true_positives: positives, false_positives: others };
        let ends = self.roc.iter().copied().chain([last]);
        std::iter::once(first).chain(self.roc.iter().copied()).zip(ends).map(|(from, to)| [from, to])
    }

    /// Returns the area and the confusion in words, for a positive class of this name.
    pub(crate) fn in_words(&self, positive: &str) -> String {
        let [[_, wrong], [missed, found]] = self.confusion;
        let (own, others) = (missed + found, self.confusion[0].iter().sum::<u64>());
        let auc = self.auc.map_or_else(String::new, |auc| format!("AUC {auc:.4} for {positive}; "));
        format!(
            "{auc}above a probability of {} of {positive}: {found} of its {own} images, and {wrong} of {others} others",
            self.threshold
        )
    }
}

/// Returns the first point, and the points at which the curve turns or rises in both directions at once.
fn corners(roc: &[RocPoint], [positives, others]: [u64; 2]) -> Vec<RocPoint> {
    let counts = |point: &RocPoint| [point.true_positives, point.false_positives];
    let is_straight = |place: usize| {
        let after = roc.get(place + 1).map_or([positives, others], counts);
        let (before, own) = (counts(&roc[place - 1]), counts(&roc[place]));
        [0, 1].into_iter().any(|direction| before[direction] == own[direction] && own[direction] == after[direction])
    };
    (0..roc.len()).filter(|&place| place == 0 || !is_straight(place)).map(|place| roc[place]).collect()
}

/// Returns at most [`MAX_POINTS`] of the points, spread evenly, with the first and the last.
fn selection(points: &[RocPoint]) -> Vec<RocPoint> {
    if points.len() <= MAX_POINTS {
        return points.to_vec();
    }
    let last = points.len() - 1;
    (0..MAX_POINTS).map(|place| points[place * last / (MAX_POINTS - 1)]).collect()
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use speed_core::random::Streams;

    use super::*;

    fn even(images: &[(u8, f64)]) -> Vec<Vec<u64>> {
        let mut counts = vec![vec![0; 2]; 2];
        images.iter().for_each(|&(truth, margin)| counts[usize::from(truth)][usize::from(margin > 0.0)] += 1);
        counts
    }

    /// Returns the share of won pairs, by looking at every pair.
    fn brute_force(images: &[(u8, f64)]) -> Option<f64> {
        let of = |class: u8| images.iter().filter(move |(truth, _)| *truth == class).map(|(_, margin)| *margin);
        let won = |one: f64, other: f64| if one == other { 0.5 } else { f64::from(u8::from(one > other)) };
        let pairs: Vec<f64> = of(1).flat_map(|one| of(0).map(move |other| won(one, other))).collect();
        (!pairs.is_empty()).then(|| pairs.iter().sum::<f64>() / pairs.len() as f64)
    }

    #[test]
    fn the_area_is_the_share_of_won_pairs() {
        let mut stream = Streams::new(1).stream("auc", 0);
        for case in 0..300 {
            let (images, levels) = (stream.random_range(0..60), stream.random_range(1..40));
            let image = |_| {
                let truth = u8::from(stream.random::<f64>() < 0.3);
                // Few levels give many ties.
                (truth, f64::from(stream.random_range(0..levels)) - 7.0 + f64::from(truth))
            };
            let images: Vec<(u8, f64)> = (0..images).map(image).collect();
            let found = TwoClasses::new(&images, EVEN).expect("finite margins");
            match (found.auc, brute_force(&images)) {
                (Some(found), Some(expected)) => {
                    assert!((found - expected).abs() < 1e-12, "{case}: {found} {expected}")
                }
                (found, expected) => assert_eq!(found, expected),
            }
            assert!(found.fits(&even(&images)), "{case}: {found:?}");
            let written = serde_json::to_string(&found).expect("plain data");
            assert_eq!(serde_json::from_str::<TwoClasses>(&written).expect("its own form"), found);
        }
    }

    #[test]
    fn points_and_confusions_count_images_above_a_threshold() {
        // Logarithms of odds: 9 to 1, even (twice), and 1 to 9.
        let nine = libm::log(9.0);
        let images = [(1, nine), (0, 0.0), (1, 0.0), (0, -nine)];
        let found = TwoClasses::new(&images, 0.3).expect("finite margins");
        assert_eq!(found.confusion, [[1, 1], [0, 2]]);
        let points: Vec<(u64, u64)> = found.roc.iter().map(|p| (p.true_positives, p.false_positives)).collect();
        assert_eq!(points, [(0, 0), (1, 0), (2, 1)]);
        let thresholds: Vec<f64> = found.roc.iter().map(|point| (10.0 * point.threshold).round() / 10.0).collect();
        assert_eq!(thresholds, [0.9, 0.5, 0.1]);
        assert_eq!(found.auc, Some(3.5 / 4.0));
        // An even probability is not above the even threshold: the lowest class wins a tie.
        let at_half = TwoClasses::new(&images, EVEN).expect("finite margins");
        assert_eq!(at_half.confusion, [[2, 0], [1, 1]]);
        assert!(at_half.in_words("sick").starts_with(
            "AUC 0.8750 for sick; above a probability of 0.5 of sick: 1 of its 2 images, and 0 of 2 others"
        ));
        assert_eq!(TwoClasses::new(&[(0, f64::NAN)], EVEN), None);
        assert_eq!(TwoClasses::new(&[(0, 1.0)], EVEN).expect("finite").auc, None);
    }

    #[test]
    fn straight_parts_have_no_points_and_long_curves_a_selection() {
        let perfect: Vec<(u8, f64)> = (0..100).map(|image| (u8::from(image >= 60), f64::from(image))).collect();
        let found = TwoClasses::new(&perfect, EVEN).expect("finite margins");
        assert_eq!((found.roc.len(), found.auc), (2, Some(1.0)));
        let zigzag: Vec<(u8, f64)> = (0..2000).map(|image| ((image % 2) as u8, f64::from(image))).collect();
        let found = TwoClasses::new(&zigzag, EVEN).expect("finite margins");
        assert_eq!(found.roc.len(), MAX_POINTS);
        assert!(found.fits(&even(&zigzag)));
        assert!((found.auc.expect("pairs") - brute_force(&zigzag).expect("pairs")).abs() < 1e-12);
    }

    #[test]
    fn changed_results_do_not_fit() {
        let images = [(1, 2.0), (0, 1.0), (1, 0.5), (0, -1.0), (0, -2.0)];
        let (found, even) = (TwoClasses::new(&images, EVEN).expect("finite margins"), even(&images));
        let changes: [fn(&mut TwoClasses); 9] = [
            |r| r.roc.clear(),
            |r| r.auc = None,
            |r| r.auc = Some(0.1),
            |r| r.auc = Some(f64::NAN),
            |r| r.confusion[0][0] += 1,
            |r| r.confusion[1] = [2, 0],
            |r| r.roc[1].true_positives = 9,
            |r| r.roc[0].threshold = 2.0,
            |r| r.threshold = 1.0,
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut changed = found.clone();
            change(&mut changed);
            assert!(!changed.fits(&even), "{number}: {changed:?}");
        }
        assert!(found.fits(&even) && !found.fits(&[]) && !found.fits(&[vec![u64::MAX; 2], vec![1, 1]]));
    }
}
