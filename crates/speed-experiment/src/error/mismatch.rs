//! Inputs that are valid alone but do not fit together.

use std::path::PathBuf;

use speed_core::printable_path;

/// Inputs that do not fit together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// More teachers than training images.
    #[error("ensemble.teachers = {teachers}: more teachers than the {images} training images")]
    Teachers {
        /// Number of teachers.
        teachers: usize,
        /// Number of training images.
        images: usize,
    },
    /// A pool of training images that leaves none for the teachers.
    #[error(
        "data.pool_images = {pool}: expected fewer than the {images} training images, because the others train the teachers"
    )]
    TrainingPool {
        /// Number of pool images.
        pool: usize,
        /// Number of training images.
        images: usize,
    },
    /// A pool that leaves no test image.
    #[error(
        "data.pool_images = {pool}: expected fewer than the {images} test images, because the others measure the student"
    )]
    Pool {
        /// Number of pool images.
        pool: usize,
        /// Number of public images.
        images: usize,
    },
    /// A pool without labels that is larger than the number of its images.
    #[error("data.pool_images = {pool}: expected at most the {images} public images without labels")]
    UnlabelledPool {
        /// Number of pool images.
        pool: usize,
        /// Number of images without labels.
        images: usize,
    },
    /// Students or baselines without images that measure them.
    #[error(
        "data.labels = \"none\": expected labelled test images in data.folder for students and baselines, or table.repeats = 0 \
         and table.baselines = false"
    )]
    NoTestImages,
    /// More classes than an encrypted answer supports.
    #[error("row {row:?} is encrypted: expected images of at most {max} classes, found {found}")]
    Classes {
        /// The first such row.
        row: String,
        /// Largest number of classes of an encrypted answer.
        max: usize,
        /// Classes of the images.
        found: usize,
    },
    /// Balanced queries without images.
    #[error("queries.selection = \"balanced\" needs images with labels")]
    BalancedWithoutImages,
    /// Groups of images with votes that do not say which teacher gave them.
    #[error(
        "{}: queries.groups needs the label of every teacher for every image, found histograms: use a file of labels, teachers x pool",
        printable_path(path)
    )]
    GroupsOfHistograms {
        /// The file of votes.
        path: PathBuf,
    },
    /// A pool whose images form fewer clusters than queries.
    #[error(
        "queries.selection = \"clusters\": the pool has {found} different clusters, expected {queries}: reduce queries.count"
    )]
    Clusters {
        /// Number of clusters found.
        found: usize,
        /// Number of queries.
        queries: usize,
    },
    /// A pool with too few images of a class.
    #[error(
        "queries.selection = \"balanced\": the pool has only {found} images for {queries} queries of {classes} classes"
    )]
    Balanced {
        /// Number of images found.
        found: usize,
        /// Number of queries.
        queries: usize,
        /// Number of classes.
        classes: usize,
    },
    /// Saved votes with a shape other than the config's.
    #[error("votes of {saved} were saved, expected {teachers} teachers, {pool} pool images and {classes} classes")]
    VoteShape {
        /// The shape that was saved.
        saved: speed_core::VoteShape,
        /// Teachers of the config.
        teachers: usize,
        /// Pool images of the config.
        pool: usize,
        /// Classes of the images or of random votes; for votes from a file, the saved number.
        classes: usize,
    },
    /// Values of noisy votes that are not valid for a round.
    #[error(transparent)]
    NoisyVotes(#[from] speed_aggregation::error::VotesError),
    /// Privacy noise that teachers cannot draw.
    #[error(transparent)]
    PrivacyNoise(#[from] speed_aggregation::error::PrivacyNoiseError),
    /// A saved teacher that is missing.
    #[error("teacher {teacher} was saved and cannot be read back")]
    LostTeacher {
        /// Its number.
        teacher: usize,
    },
    /// A training that was stopped because another one failed.
    #[error("stopped because another student failed")]
    Stopped,
    /// Names of classes that are not the names of the images' classes.
    #[error("data.classes: expected the names of {expected} classes, as the images have, found {found}")]
    ClassNames {
        /// Number of classes of the images.
        expected: usize,
        /// Number of names in the config.
        found: usize,
    },
    /// Predictions that cannot be counted by class.
    #[error("results by class: {0}")]
    Classification(#[from] crate::report::ClassificationError),
    /// Images that cannot be written as a picture.
    #[error("generated images cannot be drawn: {0}")]
    Picture(#[from] crate::report::PictureError),
    /// A student whose training steps cannot be counted.
    #[error("a student of this config cannot be trained: {0}")]
    Unmeasured(#[source] Box<dyn std::error::Error + Send + Sync>),
}
