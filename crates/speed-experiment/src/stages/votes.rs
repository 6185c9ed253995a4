//! The votes of all teachers on all pool images: from the trained ensemble, from a file, at random, or the true labels.

use std::path::Path;

use rand::RngExt;
use serde_json::{Value, json};
use speed_core::vote_files::{VoteFile, VotesForm};
use speed_core::{VoteShape, Votes, VotesError, printable_path};
use speed_data::{Images as Unlabelled, Split};
use speed_nn::threads::map;
use speed_student::pool::{MapError, PoolMap};
use speed_teacher::{Teacher, Unknown, ensemble_votes, lacking_classes};

use super::complete::complete;
use super::context::Context;
use super::images::Images;
use super::kind::Kind;
use super::map::MappedPool;
use super::outputs::Outputs;
use super::stage::{Stage, StageFacts};
use super::teachers::TrainedTeachers;
use super::truth::Truth;
use crate::config::{Config, VotesSource};
use crate::cost::StageCost;
use crate::error::ExperimentError;
use crate::npy;
use crate::report::EnsembleQuality;
use crate::store::{Fingerprint, FinishedStage, StageFolder};

const KIND: &str = "votes";
/// The labels, teachers x pool.
const VOTES: &str = "votes.npy";
const SHAPE: &str = "shape.json";
const QUALITY: &str = "ensemble.json";

/// The number of classes of random votes without images, unless the config gives one.
const UNIFORM_CLASSES: usize = 10;

/// Returns the size and the accuracies of the ensemble on the pool. The accuracies are `None` if the pool has no labels.
fn measure_quality(votes: &Votes, truth: Option<&Truth<'_>>) -> Result<EnsembleQuality, ExperimentError> {
    truth.map(|truth| truth.check(votes.shape().classes())).transpose()?;
    let labels = truth.map(Truth::labels);
    Ok(EnsembleQuality {
        teachers: votes.shape().teachers(),
        pool_images: votes.shape().queries(),
        mean_accuracy: labels.map(|labels| votes.mean_accuracy(labels)).transpose()?,
        plurality_accuracy: labels.map(|labels| votes.plurality_accuracy(labels)).transpose()?,
        empty_votes: (votes.empty() > 0).then(|| votes.empty() as f64 / votes.all().len() as f64),
        test_accuracy: None,
    })
}

pub(crate) struct CollectedVotes {
    pub(crate) votes: Votes,
    pub(crate) quality: EnsembleQuality,
    /// One hash over votes and quality, and over the number of classes if neither images nor labels determine it.
    pub(crate) hash: Fingerprint,
}

pub(super) static VOTE_COLLECTION: Kind = Kind {
    cost: |config, meter| {
        let Some(teacher) = meter.teacher(config)? else { return Ok(Vec::new()) };
        let core_seconds = Some((config.ensemble.teachers * config.data.pool_images) as f64 * teacher.vote);
        Ok(vec![StageCost { stage: KIND, kind: KIND.to_owned(), core_seconds, memory_bytes: 0.0 }])
    },
    ..Kind::new(
        KIND,
        |_, _| true,
        |context, node, outputs| {
            let collected = complete(context, &VotesStage::new(&node.name, context, outputs)?)?;
            outputs.put(collected);
            Ok(())
        },
    )
};

struct VotesStage<'a> {
    name: &'a str,
    images: Option<&'a Images>,
    truth: Option<&'a Truth<'a>>,
    source: VoteOrigin<'a>,
}

enum VoteOrigin<'a> {
    Teachers(&'a TrainedTeachers, &'a Images),
    File { votes: VoteFile, digest: Fingerprint },
    Uniform { classes: usize },
    Truth(&'a Images),
    Neighbours(&'a MappedPool, &'a Images),
}

impl<'a> VotesStage<'a> {
    fn new(name: &'a str, context: &'a Context<'_>, outputs: &'a Outputs) -> Result<Self, ExperimentError> {
        let (images, truth) = (context.images(), context.truth);
        let of_config = &context.config.votes;
        let source = match (of_config.source, images, outputs.find::<TrainedTeachers>()) {
            (VotesSource::File, ..) => {
                let content = npy::read_bytes(of_config.path())?;
                let of_images = images.map(|images| images.pool.classes());
                let votes = npy::parse_votes(&content, context.config, of_images)?;
                note(context, of_config.path(), &votes);
                if context.config.queries.groups && votes.form() == VotesForm::Histograms {
                    let needed = "queries.groups needs the label of every teacher for every image, found histograms";
                    let fault = format!("{needed}: use a file of labels, teachers x pool");
                    return Err(ExperimentError::input(of_config.path(), fault));
                }
                VoteOrigin::File { votes, digest: Fingerprint::of_bytes(&content) }
            }
            (VotesSource::Teachers, Some(images), Some(teachers)) => VoteOrigin::Teachers(teachers, images),
            (VotesSource::Truth, Some(images), _) => VoteOrigin::Truth(images),
            (VotesSource::Neighbours, Some(images), _) => VoteOrigin::Neighbours(outputs.get(), images),
            (VotesSource::Uniform, None, _) => {
                VoteOrigin::Uniform { classes: of_config.classes().unwrap_or(UNIFORM_CLASSES) }
            }
            // A checked config has images if its votes need them.
            (..) => VoteOrigin::Uniform { classes: images.map_or(UNIFORM_CLASSES, |images| images.pool.classes()) },
        };
        Ok(Self { name, images, truth, source })
    }

    fn pool_digest(&self) -> Option<&Value> {
        self.truth.and_then(Truth::digest)
    }

    /// Returns the number of classes, or `None` if only the file's labels determine it.
    fn classes(&self) -> Option<usize> {
        match self.source {
            VoteOrigin::Uniform { classes } => Some(classes),
            VoteOrigin::File { ref votes, .. } => votes.classes(),
            _ => self.images.map(|images| images.pool.classes()),
        }
    }

    /// Returns the hash of the votes: the hash of the stage's outputs. If there are no images, and the labels do not
    /// contain every class, it also covers the number of classes, because classes without a vote get noise, too.
    fn hash(&self, votes: &Votes, outputs: Fingerprint) -> Fingerprint {
        let classes = votes.shape().classes();
        let largest = votes.all().iter().flatten().max();
        let of_labels = largest.map_or(2, |&label| (usize::from(label) + 1).max(2));
        if self.images.is_some() || classes == of_labels {
            return outputs;
        }
        Fingerprint::of(&json!({ "outputs": outputs, "classes": classes }))
    }

    fn write(
        &self,
        context: &Context<'_>,
        folder: &StageFolder,
        votes: &Votes,
    ) -> Result<Vec<String>, ExperimentError> {
        // Accuracies against true labels from a file are not recorded; every run measures them again.
        let recorded = measure_quality(votes, self.truth.filter(|truth| truth.digest().is_some()))?;
        let quality = measure_quality(votes, self.truth)?;
        folder.write_checked_json(SHAPE, &votes.shape())?;
        // With real noise, the votes and functions of them are the secret that it protects.
        folder.write_secret(VOTES, &npy::votes_to_bytes(votes))?;
        folder.write_secret_json(QUALITY, &recorded)?;
        let percent =
            |value: Option<f64>| value.map_or_else(|| "unknown".into(), |value| format!("{:.2} %", 100.0 * value));
        let [mean, plurality] = [quality.mean_accuracy, quality.plurality_accuracy].map(percent);
        let empty = quality
            .empty_votes
            .map_or_else(String::new, |share| format!(", {} of the votes empty", percent(Some(share))));
        let figures = context.unless_secret(format!(": mean teacher accuracy {mean}, plurality {plurality}{empty}"));
        context.progress.end(&format!("votes on {} pool images{figures}", votes.shape().queries()));
        Ok(vec![VOTES.into(), QUALITY.into()])
    }
}

impl Stage for VotesStage<'_> {
    type Output = CollectedVotes;

    fn facts(&self) -> StageFacts<'_> {
        StageFacts { depends_on_machine: matches!(self.source, VoteOrigin::Teachers(..)), ..StageFacts::new(self.name) }
    }

    fn inputs(&self, context: &Context<'_>) -> Result<Value, ExperimentError> {
        let (teachers, pool) = (context.config.ensemble.teachers, context.config.data.pool_images);
        let unknown = context.config.teacher.unknown;
        Ok(match &self.source {
            VoteOrigin::Teachers(trained, images) => {
                json!({ "teachers": trained.hash(), "unknown": unknown, "pool": Images::digest(&images.pool) })
            }
            VoteOrigin::File { digest, .. } => {
                json!({
                    "file": digest,
                    "form": context.config.votes.form(),
                    "classes": context.config.votes.classes(),
                    "teachers": teachers,
                    "pool_images": pool,
                    "pool": self.pool_digest(),
                })
            }
            VoteOrigin::Uniform { classes } => json!({
                "uniform": classes,
                "seed": context.config.seed,
                "teachers": teachers,
                "pool_images": pool,
                "pool": self.pool_digest(),
            }),
            VoteOrigin::Truth(images) => json!({ "truth": Images::digest(&images.pool), "teachers": teachers }),
            VoteOrigin::Neighbours(mapped, images) => json!({
                "neighbours": images.divided_digest(),
                "map": mapped.hash,
                "dimensions": PoolMap::dimensions_for(images.pool.classes()),
                "unknown": unknown,
                "teachers": teachers,
                "seed": context.config.seed,
                "pool": self.pool_digest(),
            }),
        })
    }

    fn run(&self, context: &Context<'_>, folder: &mut StageFolder) -> Result<Vec<String>, ExperimentError> {
        let votes = match &self.source {
            VoteOrigin::Teachers(trained, images) => {
                ask_teachers(context, trained, &images.pool, context.config.teacher.unknown, "collect votes")?
            }
            VoteOrigin::File { votes, .. } => {
                context.progress.begin("read votes", "files", 1, 0);
                votes.votes().map_err(|fault| ExperimentError::input(context.config.votes.path(), fault))?
            }
            VoteOrigin::Uniform { classes } => uniform(context, *classes)?,
            VoteOrigin::Truth(images) => truth(context, images)?,
            VoteOrigin::Neighbours(mapped, images) => neighbours(context, mapped, images)?,
        };
        self.write(context, folder, &votes)
    }

    fn load(&self, context: &Context<'_>, done: &FinishedStage) -> Result<CollectedVotes, ExperimentError> {
        let (teachers, pool) = (context.config.ensemble.teachers, context.config.data.pool_images);
        let saved: VoteShape = done.read_json(SHAPE)?;
        let classes = self.classes().unwrap_or(saved.classes());
        if (saved.teachers(), saved.queries(), saved.classes()) != (teachers, pool, classes) {
            let expected = format!("expected {teachers} teachers, {pool} pool images and {classes} classes");
            return Err(ExperimentError::fault(format_args!("votes of {saved} were saved, {expected}")));
        }
        let votes = npy::read_labels(&done.path(VOTES), saved)?;
        let hash = self.hash(&votes, done.outputs_hash());
        let recorded: EnsembleQuality = done.read_json(QUALITY)?;
        let quality = match self.truth {
            Some(truth) if truth.digest().is_none() => measure_quality(&votes, self.truth)?,
            _ => recorded,
        };
        Ok(CollectedVotes { votes, quality, hash })
    }
}

/// Returns the votes of the trained teachers on some images, with `unknown` on those unlike their own; `task` names the work for the progress.
pub(super) fn ask_teachers(
    context: &Context<'_>,
    trained: &TrainedTeachers,
    images: &Split,
    unknown: Unknown,
    task: &str,
) -> Result<Votes, ExperimentError> {
    let count = context.config.ensemble.teachers;
    context.progress.begin(task, "teachers", count as u64, 0);
    let (device, architecture) = (&context.device.burn, context.config.teacher.architecture);
    let load = |teacher: usize| -> Result<Teacher, ExperimentError> {
        let bytes = trained.weights(teacher)?;
        let teacher = Teacher::from_bytes(architecture, images.shape(), images.classes(), device, &bytes)?;
        context.progress.advance(1, "");
        Ok(teacher)
    };
    Ok(ensemble_votes(count, &load, images, (unknown, &context.streams), context.threads.get())?)
}

fn note(context: &Context<'_>, path: &Path, votes: &VoteFile) {
    let path = printable_path(path);
    context.progress.note(&format!("{path}: {votes}"));
    let (found, pool) = (votes.queries_in_file(), votes.queries());
    if found > pool {
        context.progress.note(&format!(
            "{path}: votes on {found} images; the last {} are not used (data.pool_images = {pool})",
            found - pool
        ));
    }
}

fn uniform(context: &Context<'_>, classes: usize) -> Result<Votes, ExperimentError> {
    let (teachers, pool) = (context.config.ensemble.teachers, context.config.data.pool_images);
    context.progress.begin("draw votes", "teachers", teachers as u64, 0);
    let shape = VoteShape::new(teachers, pool, classes).map_err(VotesError::from)?;
    let mut labels = Vec::with_capacity(shape.votes());
    for teacher in 0..teachers {
        let mut generator = context.streams.stream("uniform votes", teacher as u64);
        labels.extend((0..pool).map(|_| generator.random_range(0..classes) as u8));
    }
    Ok(Votes::new(shape, labels)?)
}

/// Returns the true labels as the votes of every teacher. Students on such labels show the accuracy that perfect teachers
/// allow.
fn truth(context: &Context<'_>, images: &Images) -> Result<Votes, ExperimentError> {
    let (teachers, pool) = (context.config.ensemble.teachers, &images.pool);
    context.progress.begin("true labels", "teachers", teachers as u64, 0);
    let shape = VoteShape::new(teachers, pool.len(), pool.classes()).map_err(VotesError::from)?;
    Ok(Votes::new(shape, pool.labels().repeat(teachers))?)
}

/// Returns votes without training: every teacher labels an image of the pool like its own image whose place in the pool's map is
/// nearest ([`PoolMap::nearest_labels`](speed_student::pool::PoolMap::nearest_labels)), and votes on unlike images as `teacher.unknown` says.
/// The map is public, so a teacher's votes depend on its own images only.
fn neighbours(context: &Context<'_>, mapped: &MappedPool, images: &Images) -> Result<Votes, ExperimentError> {
    let (teachers, threads) = (context.config.ensemble.teachers, context.threads.get());
    let Images { train, parts, pool, .. } = images;
    context.progress.begin("place the teachers' images", "images", train.len() as u64, 0);
    let on_images = |images| context.progress.advance(images as u64, "");
    let places =
        mapped.map.place(Unlabelled::new(train), PoolMap::dimensions_for(pool.classes()), threads, &on_images)?;
    context.progress.end(&format!("{} images of the teachers placed", train.len()));
    context.progress.begin("collect votes", "teachers", teachers as u64, 0);
    let all: Vec<usize> = (0..teachers).collect();
    let rows = map(&all, threads, |&teacher, _| {
        let own: Vec<(&[f64], u8)> = parts[teacher].clone().map(|i| (&*places[i], train.label(i))).collect();
        let lacking = lacking_classes(own.iter().map(|(_, label)| *label), pool.classes());
        let mut stream = context.streams.stream("neighbours", teacher as u64);
        let unknown = context.config.teacher.unknown;
        let is_flag_used = unknown != Unknown::Vote && !lacking.is_empty();
        let labels = mapped.map.nearest_labels(&own, is_flag_used).into_iter();
        let votes: Vec<Option<u8>> =
            labels.map(|(label, is_like_own)| unknown.vote(label, is_like_own, &lacking, &mut stream)).collect();
        context.progress.advance(1, "");
        Ok(votes)
    });
    let labels = rows.map_err(MapError::Threads)?.concat();
    let shape = VoteShape::new(teachers, pool.len(), pool.classes()).map_err(VotesError::from)?;
    Ok(Votes::new(shape, labels)?)
}

/// Returns the number of classes that the votes will have: the number of the images if there are images, else the number
/// of the file. Checks the file.
pub(crate) fn planned_classes(config: &Config, of_images: Option<usize>) -> Result<usize, ExperimentError> {
    let found = match config.votes.source {
        VotesSource::File => npy::parse_votes(&npy::read_bytes(config.votes.path())?, config, of_images)?.classes(),
        _ => of_images.or(config.votes.classes()),
    };
    Ok(found.unwrap_or(UNIFORM_CLASSES))
}
