//! Parts of clusters to which a classifier gives another class than the label of their cluster.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::clusters::{Clusters, LEAST_CORE, core_of, squared_distance};
use crate::map::PoolMap;

/// The images of a cluster to which a classifier gives one class, which is not the label of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disagreement {
    /// The place of the cluster among all clusters, from 0.
    pub cluster: usize,
    /// The label of the cluster.
    pub label: u8,
    /// The class that the classifier gives.
    pub predicted: u8,
    /// Number of these images.
    pub size: usize,
    /// Their core: the half of them that is nearest to their mean place, but at least 20 images. The nearest image comes first.
    pub core: Vec<usize>,
}

impl PoolMap {
    /// Returns the largest disagreements between the labels of clusters and a classifier, at most `most`, the largest first; of equally
    /// large ones, that of the earlier cluster and of the lower class comes first.
    ///
    /// `labels` has the label of every cluster, if it has one, and `predictions` the class of every image of the pool. All images of a
    /// cluster take part, not only its core. Fewer than 20 images, the least size of a core, are not a disagreement: they are
    /// probably single errors of the classifier. The result depends on the arguments and the map only, so it is public if they are.
    ///
    /// # Panics
    /// If there are fewer labels than clusters, or fewer predictions than images.
    #[must_use]
    pub fn disagreements(
        &self,
        clusters: &Clusters,
        labels: &[Option<u8>],
        predictions: &[u8],
        most: usize,
    ) -> Vec<Disagreement> {
        let count = clusters.all().len();
        let mut found = Vec::new();
        for (cluster, of) in clusters.all().iter().enumerate() {
            let Some(label) = labels[cluster] else { continue };
            let mut by_class: BTreeMap<u8, Vec<usize>> = BTreeMap::new();
            for &image in &of.images {
                by_class.entry(predictions[image]).or_default().push(image);
            }
            by_class.retain(|&class, images| class != label && images.len() >= LEAST_CORE);
            found.extend(by_class.into_iter().map(|(predicted, images)| {
                let (size, core) = (images.len(), self.core(images, count));
                Disagreement { cluster, label, predicted, size, core }
            }));
        }
        // The sort is stable: equal sizes keep the order of clusters and classes.
        found.sort_by_key(|group| std::cmp::Reverse(group.size));
        found.truncate(most);
        found
    }

    /// Returns the core of a group of images, in the dimensions in which `clusters` clusters are computed.
    fn core(&self, mut images: Vec<usize>, clusters: usize) -> Vec<usize> {
        let centre = self.mean_place(&images, clusters);
        let distance = |image: usize| squared_distance(self.at(image, centre.len()), &centre);
        images.sort_by(|&one, &other| distance(one).total_cmp(&distance(other)).then(one.cmp(&other)));
        images.truncate(core_of(images.len()));
        images
    }
}

#[cfg(test)]
mod tests {
    use speed_core::random::Streams;
    use speed_data::Images;
    use speed_data::digits::{DigitsConfig, generate};

    use super::*;
    use crate::MapSettings;

    /// The map of 600 built-in digits, its six clusters, and the cluster of each image.
    fn six_clusters() -> (PoolMap, Clusters, Vec<usize>) {
        let pool = generate(DigitsConfig { train: 10, test: 600 }, &Streams::new(1)).test;
        let map =
            PoolMap::new(Images::new(&pool), &MapSettings::default(), &Streams::new(2), 2, &|_, _| ()).expect("a map");
        let clusters = map.clusters(6, &Streams::new(3));
        let mut of = vec![0; pool.len()];
        clusters.all().iter().enumerate().for_each(|(at, cluster)| cluster.images.iter().for_each(|&i| of[i] = at));
        (map, clusters, of)
    }

    #[test]
    fn the_largest_parts_with_another_class_are_found_in_order() {
        let (map, clusters, of) = six_clusters();
        // Cluster c has label c, except that cluster 5 has none; a classifier agrees, except on the parts below.
        let labels: Vec<Option<u8>> = (0..6).map(|cluster| (cluster < 5).then_some(cluster)).collect();
        let mut predictions: Vec<u8> = of.iter().map(|&cluster| u8::try_from(cluster).expect("small")).collect();
        let mut change = |cluster: usize, from: usize, images: usize, class: u8| {
            let part = clusters.all()[cluster].images[from..from + images].to_vec();
            part.iter().for_each(|&image| predictions[image] = class);
            part
        };
        let [third, first] = [change(3, 0, 30, 9), change(1, 5, 42, 8)];
        // Equally large parts of one cluster, a part of one image less than a core, and a cluster without a label.
        let second = [change(0, 0, 30, 2), change(0, 30, 30, 7)];
        change(2, 0, 19, 1);
        change(5, 0, 40, 1);
        let found = map.disagreements(&clusters, &labels, &predictions, 10);
        let heads: Vec<_> =
            found.iter().map(|found| (found.cluster, found.label, found.predicted, found.size)).collect();
        assert_eq!(heads, [(1, 1, 8, 42), (0, 0, 2, 30), (0, 0, 7, 30), (3, 3, 9, 30)]);
        assert_eq!(found.iter().map(|found| found.core.len()).collect::<Vec<_>>(), [21, 20, 20, 20]);
        for (found, part) in found.iter().zip([&first, &second[0], &second[1], &third]) {
            // Against the definition: no image outside the core is nearer to the mean of the part than one in it.
            let mean: Vec<f64> =
                (0..10).map(|d| part.iter().map(|&i| map.at(i, 10)[d]).sum::<f64>() / part.len() as f64).collect();
            let far = |&i: &usize| map.at(i, 10).iter().zip(&mean).map(|(x, m)| (x - m).powi(2)).sum::<f64>();
            let worst = found.core.iter().map(far).fold(0.0, f64::max);
            assert!(found.core.iter().all(|image| part.contains(image)));
            assert!(part.iter().filter(|image| !found.core.contains(image)).all(|image| far(image) >= worst - 1e-12));
            assert!(found.core.iter().all(|image| far(image) >= far(&found.core[0]) - 1e-12));
        }
        assert_eq!(map.disagreements(&clusters, &labels, &predictions, 2), found[..2]);
    }

    #[test]
    fn agreement_leaves_nothing_to_ask() {
        let (map, clusters, of) = six_clusters();
        let predictions: Vec<u8> = of.iter().map(|&cluster| u8::try_from(cluster).expect("small")).collect();
        let labels: Vec<Option<u8>> = (0..6).map(Some).collect();
        assert!(map.disagreements(&clusters, &labels, &predictions, 10).is_empty());
        assert!(map.disagreements(&clusters, &[None; 6], &predictions, 10).is_empty());
    }
}
