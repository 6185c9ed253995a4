//! The map of a pool and its clusters, with their progress, for runs and for the queries of rounds.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use speed_core::random::Streams;
use speed_data::Images;
use speed_student::pool::{Cluster, Features, MapError, PoolMap, Task};

use crate::progress::Progress;

/// Computes the map of a pool. `streams` are those of the seed, from which the map has its own.
pub(crate) fn map_pool(
    pool: Images<'_>,
    features: Features,
    streams: &Streams,
    threads: NonZeroUsize,
    progress: &dyn Progress,
) -> Result<PoolMap, MapError> {
    progress.begin("map the pool", "images", pool.len() as u64, 0);
    let rounds = AtomicUsize::new(0);
    let on_images = |task: Task, images: usize| match task {
        Task::Components => {}
        Task::Neighbours => progress.advance(images as u64, ""),
        Task::Embedding => drop(rounds.fetch_add(images, Ordering::Relaxed)),
    };
    let map = PoolMap::new(pool, features, &streams.child("map", 0), threads.get(), &on_images)?;
    let ([_, dimensions], rounds) = (map.sizes(), rounds.into_inner());
    progress.end(&format!("map of {} images in {dimensions} dimensions, {rounds} rounds", pool.len()));
    Ok(map)
}

/// Divides a pool into at most `count` clusters; equal images may leave fewer. `streams` are those of the seed.
pub(crate) fn divide_pool(map: &PoolMap, count: usize, streams: &Streams, progress: &dyn Progress) -> Vec<Cluster> {
    progress.begin("divide the pool into clusters", "clusters", count as u64, 0);
    let clusters = map.clusters(count, &streams.child("clusters", 0));
    let sizes = || clusters.iter().map(|cluster| cluster.images.len());
    let (least, most) = (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0));
    progress.end(&format!("{} clusters of {least} to {most} images", clusters.len()));
    clusters
}
