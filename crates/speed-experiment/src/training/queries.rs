//! Lists of queries: the public images, or groups of them, that a round labels, by their names.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use rand::seq::SliceRandom;
use serde::Serialize;
use speed_core::random::Streams;
use speed_core::vote_files::{MAX_QUERY_LIST, NamedQueries};
use speed_core::{Digest, printable, read_regular};
use speed_data::Images;
use speed_data::pictures::{check, find};
use speed_student::pool::{Cluster, Features};

use super::images::{ImagesOptions, copies, skipped};
use super::settings::{of_pool, settings};
use super::{check_new, seed, unknown_query, write_output};
use crate::encoder::PictureEncoder;
use crate::error::ExperimentError;
use crate::mapping::{divide_pool, map_pool};
use crate::patients::relative;
use crate::progress::Progress;
use crate::report::{EncoderFacts, csv};

/// The options of a choice of queries.
#[derive(Clone, Debug)]
pub struct QueriesOptions {
    /// The public images: a directory of pictures, or for clusters also an `.npy` array.
    pub pool: ImagesOptions,
    /// Number of queries, from 1 to the number of images.
    pub count: usize,
    /// The choice.
    pub choice: QueriesChoice,
    /// Changes of keys of `[features]`, as `KEY=VALUE`, for an encoder.
    pub sets: Vec<String>,
    /// The seed; `None` draws one.
    pub seed: Option<u64>,
    /// Number of threads. The choice does not depend on it.
    pub threads: NonZeroUsize,
    /// The new list of queries.
    pub out: PathBuf,
}

/// The choice of the queries of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueriesChoice {
    /// Random images.
    Random,
    /// The typical image of every cluster of the pool, with the vectors of images from which the clusters are computed.
    Typical(Features),
    /// The core of every cluster of the pool: a group of images with one label for all.
    Groups(Features),
}

/// The result of a choice of queries.
#[derive(Clone, Debug, Serialize)]
pub struct QueriesReport {
    /// The seed.
    pub seed: u64,
    /// Number of queries.
    pub queries: usize,
    /// Number of images of all queries.
    pub images: usize,
    /// Number of images of the pool.
    pub pool_images: usize,
    /// The encoder from whose vectors the queries were chosen, which the list states.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoder: Option<EncoderFacts>,
}

/// Chooses queries among the images of a pool, and writes their list: the column `name`, with groups also `group`, and with an
/// encoder also `encoder`. In a group, the image nearest to the centre of its cluster comes first.
///
/// # Errors
/// If the output exists, an image is wrong, there are too few images or clusters, or a name cannot be listed.
pub fn choose_queries(options: &QueriesOptions, progress: &dyn Progress) -> Result<QueriesReport, ExperimentError> {
    let QueriesOptions { pool, count, choice, out, .. } = options;
    check_new(out)?;
    let seed = seed(options.seed);
    let streams = Streams::new(seed);
    let mut encoder = None;
    let (pool_images, lines) = match *choice {
        QueriesChoice::Random => {
            let found = find(&pool.path)?;
            skipped(&pool.path, found.passed_over.as_ref()).iter().for_each(|warning| progress.warn(warning));
            let names = relative(&pool.path, &found.files);
            check_count(pool, *count, names.len())?;
            let (all, chosen) = (names.len(), random(names, *count, &streams));
            let names: Vec<String> = chosen.iter().map(|(name, _)| name.clone()).collect();
            let pixels = names.iter().map(|name| check(&pool.path.join(name))).collect::<Result<Vec<_>, _>>()?;
            copies(&pool.path, &names, pixels).iter().for_each(|warning| progress.warn(warning));
            (all, chosen)
        }
        QueriesChoice::Typical(features) | QueriesChoice::Groups(features) => {
            // The seed changes no setting by which images are read, and neither does the number of classes.
            let fixed = [&of_pool()[..], &["student.method=linear".to_owned()]].concat();
            let config = settings("features", pool, 0, &fixed, &options.sets)?;
            encoder = pool.read_encoder(&config)?;
            let images = pool.unlabelled(&config, 2, encoder.as_ref())?;
            images.warnings.iter().for_each(|warning| progress.warn(warning));
            check_count(pool, *count, images.names.len())?;
            let vectors = pool.encoded(images.images, &images.names, encoder.as_ref(), options.threads, progress)?;
            let map = map_pool(Images::new(&vectors), features, &streams, options.threads, progress)?;
            let clusters = divide_pool(&map, *count, &streams, progress);
            let found = clusters.len();
            if found < *count {
                let expected =
                    format_args!("expected {count} different clusters of images, found {found}: reduce --count");
                return Err(ExperimentError::input(&pool.path, expected));
            }
            let is_grouped = matches!(choice, QueriesChoice::Groups(_));
            (images.names.len(), of_clusters(&clusters, &images.names, is_grouped))
        }
    };
    let images = lines.len();
    let digest = encoder.as_ref().map(PictureEncoder::digest);
    write_output(out, to_list(&pool.path, &lines, digest)?.as_bytes())?;
    let encoder = encoder.as_ref().map(PictureEncoder::facts);
    Ok(QueriesReport { seed, queries: *count, images, pool_images, encoder })
}

/// A line of a list of queries: the name of an image, and its group.
type Line = (String, Option<String>);

fn check_count(pool: &ImagesOptions, count: usize, images: usize) -> Result<(), ExperimentError> {
    if (1..=images).contains(&count) {
        return Ok(());
    }
    Err(ExperimentError::input(
        &pool.path,
        format_args!("expected 1 to {images} queries of {images} images, found {count}"),
    ))
}

fn random(mut names: Vec<String>, count: usize, streams: &Streams) -> Vec<Line> {
    names.shuffle(&mut streams.stream("queries", 0));
    names.truncate(count);
    names.sort_unstable();
    names.into_iter().map(|name| (name, None)).collect()
}

/// Returns the typical image of every cluster, or the images of its core with the name of their group.
fn of_clusters(clusters: &[Cluster], names: &[String], is_grouped: bool) -> Vec<Line> {
    if !is_grouped {
        return clusters.iter().map(|cluster| (names[cluster.typical].clone(), None)).collect();
    }
    let width = clusters.len().to_string().len();
    let of_cluster = |(number, cluster): (usize, &Cluster)| {
        let group = format!("group-{:0width$}", number + 1);
        cluster.core().iter().map(|&image| (names[image].clone(), Some(group.clone()))).collect::<Vec<_>>()
    };
    clusters.iter().enumerate().flat_map(of_cluster).collect()
}

/// Returns the text of a list of queries, and checks that it is read as the same list.
fn to_list(pool: &Path, lines: &[Line], encoder: Option<Digest>) -> Result<String, ExperimentError> {
    let encoder = encoder.map(|digest| digest.to_hex());
    let cells = |name: &str, group: Option<&str>, encoder: Option<&str>| -> Vec<String> {
        [Some(name), group, encoder].into_iter().flatten().map(str::to_owned).collect()
    };
    let is_grouped = lines.iter().any(|(_, group)| group.is_some());
    let head = cells("name", is_grouped.then_some("group"), encoder.as_ref().map(|_| "encoder"));
    let rows = lines.iter().map(|(name, group)| cells(name, group.as_deref(), encoder.as_deref()));
    let text = csv::write(head, rows);
    if text.len() as u64 > MAX_QUERY_LIST {
        let found = text.len();
        let expected = format_args!(
            "expected queries whose list has at most {MAX_QUERY_LIST} bytes, found {found}: reduce --count"
        );
        return Err(ExperimentError::input(pool, expected));
    }
    let read = NamedQueries::parse(text.as_bytes());
    let names = || lines.iter().map(|(name, _)| name);
    if read.as_ref().is_ok_and(|read| read.all_pictures().eq(names())) {
        return Ok(text);
    }
    let is_lost = |name: &&String| {
        let alone = NamedQueries::parse(csv::write(["name"], [[name]]).as_bytes());
        !alone.is_ok_and(|read| read.names() == std::slice::from_ref(*name))
    };
    match (names().find(is_lost), read) {
        (None, Err(fault)) => Err(ExperimentError::input(pool, fault)),
        (lost, _) => {
            let found = lost.map_or_else(String::new, |name| printable(name));
            let expected = "expected names that a list of queries can hold (UTF-8, no space at an end, no ; or tab)";
            Err(ExperimentError::input(pool, format_args!("{expected}, found {found:?}")))
        }
    }
}

pub(super) fn read_queries(path: &Path) -> Result<NamedQueries, ExperimentError> {
    let bytes = read_regular(path, MAX_QUERY_LIST).map_err(ExperimentError::unreadable(path))?;
    NamedQueries::parse(&bytes).map_err(|fault| ExperimentError::input(path, fault))
}

pub(super) fn positions<'a>(
    path: &Path,
    queries: impl IntoIterator<Item = &'a String>,
    folder: &Path,
    names: &[String],
) -> Result<Vec<usize>, ExperimentError> {
    let places: HashMap<&str, usize> = names.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
    let position =
        |query: &String| places.get(query.as_str()).copied().ok_or_else(|| unknown_query(path, query, folder));
    queries.into_iter().map(position).collect()
}
