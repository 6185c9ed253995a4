//! Votes of every teacher on every pool image: from the trained ensemble, from a file, at random, or the truth.

use std::path::Path;

use rand::RngExt;
use serde::{Deserialize, Serialize};
use serde_json::json;
use speed_core::{VoteShape, Votes, VotesError};
use speed_teacher::{Teacher, ensemble_votes};

use super::{Context, Images, teachers, train_teachers};
use crate::config::VotesSource;
use crate::store::{Fingerprint, Stage};
use crate::{ExperimentError, npy};

const CODE_VERSION: u32 = 1;

/// Classes of votes at random where no images say how many there are.
const UNIFORM_CLASSES: usize = 10;

/// How good the ensemble is on the pool; absent where the pool has no labels.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct EnsembleQuality {
    pub(crate) teachers: usize,
    pub(crate) pool_images: usize,
    pub(crate) mean_accuracy: Option<f64>,
    pub(crate) plurality_accuracy: Option<f64>,
}

/// The votes, what they are worth, and the stage that holds them.
pub(crate) fn collect(
    context: &Context<'_>,
    images: Option<&Images>,
) -> Result<(Votes, EnsembleQuality, Stage), ExperimentError> {
    let config = context.config;
    let stage = match (config.votes.source, images) {
        (VotesSource::Teachers, Some(images)) => from_teachers(context, images)?,
        (VotesSource::Truth, Some(images)) => truth(context, images)?,
        (VotesSource::Uniform, _) => uniform(context, images)?,
        _ => from_file(context, images)?,
    };
    let classes = match config.votes.source {
        VotesSource::Uniform => Some(uniform_classes(images)),
        VotesSource::Teachers | VotesSource::File | VotesSource::Truth => images.map(|images| images.pool.classes()),
    };
    let votes =
        npy::read_votes(&stage.folder().join("votes.npy"), config.ensemble.teachers, config.data.pool_images, classes)?;
    Ok((votes, stage.read_json("ensemble.json")?, stage))
}

fn from_teachers(context: &Context<'_>, images: &Images) -> Result<Stage, ExperimentError> {
    let config = context.config;
    let trained = train_teachers(context, images)?;
    let inputs = json!({ "teachers": trained.outputs_hash(), "pool": Images::digest(&images.pool) });
    let inputs = context.with_arithmetic("votes", CODE_VERSION, inputs)?;
    context.stage("votes", CODE_VERSION, &inputs, |folder| {
        context.note_arithmetic(folder)?;
        let count = config.ensemble.teachers;
        context.progress.begin("collect votes", "teachers", count as u64, 0);
        let load = |teacher: usize| -> Result<Teacher, ExperimentError> {
            let bytes = trained.read(&format!("{}.bin", teachers::unit(teacher)))?;
            let pool = &images.pool;
            let teacher = Teacher::from_bytes(&config.teacher, pool.shape(), pool.classes(), &bytes)?;
            context.progress.advance(1, "");
            Ok(teacher)
        };
        let votes = ensemble_votes(count, &load, &images.pool, context.threads)?;
        finish(context, folder, &votes, Some(images))
    })
}

fn from_file(context: &Context<'_>, images: Option<&Images>) -> Result<Stage, ExperimentError> {
    let config = context.config;
    let path = Path::new(&config.votes.file);
    let content = std::fs::read(path).map_err(|error| ExperimentError::Input {
        path: path.to_path_buf(),
        message: format!("cannot read votes.file: {error}"),
    })?;
    let pool = config.data.pool_images;
    if let Some(found) = npy::queries_in(&content, config.ensemble.teachers).filter(|found| *found > pool) {
        context.progress.note(&format!(
            "{}: votes on {found} images, the last {} are not used (data.pool_images = {pool})",
            path.display(),
            found - pool
        ));
    }
    let inputs = json!({
        "file": Fingerprint::of_bytes(&content),
        "teachers": config.ensemble.teachers,
        "pool_images": config.data.pool_images,
        "pool": images.map(|images| Images::digest(&images.pool)),
    });
    context.stage("votes", CODE_VERSION, &inputs, |folder| {
        let classes = images.map(|images| images.pool.classes());
        let votes = npy::read_votes(path, config.ensemble.teachers, config.data.pool_images, classes)?;
        context.progress.begin("read votes", "files", 1, 0);
        finish(context, folder, &votes, images)
    })
}

/// Every teacher votes for each image with a generator of its own, by the seed.
fn uniform(context: &Context<'_>, images: Option<&Images>) -> Result<Stage, ExperimentError> {
    let config = context.config;
    let (teachers, pool, classes) = (config.ensemble.teachers, config.data.pool_images, uniform_classes(images));
    let inputs = json!({
        "uniform": classes,
        "seed": config.seed,
        "teachers": teachers,
        "pool_images": pool,
        "pool": images.map(|images| Images::digest(&images.pool)),
    });
    context.stage("votes", CODE_VERSION, &inputs, |folder| {
        context.progress.begin("draw votes", "teachers", teachers as u64, 0);
        let shape = VoteShape::new(teachers, pool, classes).map_err(VotesError::from)?;
        let mut labels = Vec::with_capacity(shape.labels());
        for teacher in 0..teachers {
            let mut generator = context.streams.stream("uniform votes", teacher as u64);
            labels.extend((0..pool).map(|_| generator.random_range(0..classes) as u8));
        }
        finish(context, folder, &Votes::new(shape, labels)?, images)
    })
}

/// Every teacher is right: what students reach when labels are.
fn truth(context: &Context<'_>, images: &Images) -> Result<Stage, ExperimentError> {
    let (teachers, pool) = (context.config.ensemble.teachers, &images.pool);
    let inputs = json!({ "truth": Images::digest(pool), "teachers": teachers });
    context.stage("votes", CODE_VERSION, &inputs, |folder| {
        context.progress.begin("true labels", "teachers", teachers as u64, 0);
        let shape = VoteShape::new(teachers, pool.len(), pool.classes()).map_err(VotesError::from)?;
        finish(context, folder, &Votes::new(shape, pool.labels().repeat(teachers))?, Some(images))
    })
}

fn uniform_classes(images: Option<&Images>) -> usize {
    images.map_or(UNIFORM_CLASSES, |images| images.pool.classes())
}

fn finish(
    context: &Context<'_>,
    folder: &crate::store::StageFolder,
    votes: &Votes,
    images: Option<&Images>,
) -> Result<Vec<String>, ExperimentError> {
    let labels = images.map(|images| images.pool.labels());
    let quality = EnsembleQuality {
        teachers: votes.shape().teachers(),
        pool_images: votes.shape().queries(),
        mean_accuracy: labels.map(|labels| votes.mean_accuracy(labels)).transpose()?,
        plurality_accuracy: labels.map(|labels| votes.plurality_accuracy(labels)).transpose()?,
    };
    folder.write("votes.npy", &npy::votes_to_bytes(votes))?;
    folder.write_json("ensemble.json", &quality)?;
    let percent =
        |value: Option<f64>| value.map_or_else(|| "unknown".into(), |value| format!("{:.2} %", 100.0 * value));
    context.progress.end(&format!(
        "votes on {} pool images: mean teacher {}, plurality {}",
        votes.shape().queries(),
        percent(quality.mean_accuracy),
        percent(quality.plurality_accuracy)
    ));
    Ok(vec!["votes.npy".into(), "ensemble.json".into()])
}
