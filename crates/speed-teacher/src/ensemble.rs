//! Training and votes of all teachers, several at a time, with the same results for any number of threads.

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use burn::tensor::Device;
use speed_core::random::Streams;
use speed_core::{VoteShape, Votes, VotesError};
use speed_data::Split;
use speed_nn::threads::{self, QueueError};

use crate::{Teacher, TeacherConfig, TeacherError, TrainedTeacher, Unknown, train_teacher};

/// The reason why an ensemble was not trained or did not vote; `E` is the error of the caller's own function.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the fields")]
pub enum EnsembleError<E: std::error::Error + 'static> {
    #[error(transparent)]
    Teacher(#[from] TeacherError),
    /// The caller's function failed.
    #[error(transparent)]
    Caller(E),
    #[error(transparent)]
    Votes(#[from] VotesError),
    #[error("cannot start a thread: {reason}")]
    Threads { reason: String },
}

impl<E: std::error::Error + 'static> From<QueueError<Self>> for EnsembleError<E> {
    fn from(error: QueueError<Self>) -> Self {
        match error {
            QueueError::Work(error) => error,
            QueueError::Pool(error) => Self::Threads { reason: error.to_string() },
        }
    }
}

/// The training of an ensemble: the settings, images and randomness of all its teachers.
#[derive(Clone, Copy, Debug)]
pub struct EnsembleTraining<'a> {
    /// The settings of every teacher.
    pub config: &'a TeacherConfig,
    /// The private images.
    pub data: &'a Split,
    /// The images of each teacher, as indices into `data`.
    pub partitions: &'a [Range<usize>],
    /// The ensemble's random streams: teacher i draws from `streams.child("teacher", i)`.
    pub streams: &'a Streams,
    /// The device of the training.
    pub device: &'a Device,
}

impl EnsembleTraining<'_> {
    fn partition(&self, teacher: usize) -> Result<Range<usize>, TeacherError> {
        let teachers = self.partitions.len();
        self.partitions.get(teacher).cloned().ok_or_else(|| {
            TeacherError::Data(format!(
                "expected one of the ensemble's {teachers} teachers, numbered from 0, found teacher {teacher}"
            ))
        })
    }
}

/// Trains the teachers `todo` (indices of partitions; when resuming, the unfinished ones), `threads` at a time, and
/// passes each to `on_finished` as soon as it is done.
///
/// Each teacher trains inside its own one-thread rayon pool, so its bits do not depend on `threads` and `todo`.
/// `on_finished` is called from several threads, in order of completion.
///
/// # Errors
/// The first error of a teacher or of `on_finished`; the other teachers then stop at their next step.
pub fn train_ensemble<E: std::error::Error + Send + 'static>(
    training: &EnsembleTraining<'_>,
    todo: &[usize],
    threads: usize,
    on_finished: &(dyn Fn(TrainedTeacher) -> Result<(), E> + Sync),
) -> Result<(), EnsembleError<E>> {
    training.config.check().map_err(TeacherError::from)?;
    todo.iter().try_for_each(|&teacher| training.partition(teacher).map(drop))?;
    threads::for_each(todo, threads, |&teacher, stop| {
        let trained = train_member(training, teacher, stop)?;
        on_finished(trained).map_err(EnsembleError::Caller)
    })?;
    Ok(())
}

/// Trains one teacher of an ensemble. In a one-thread rayon pool the result is bit-identical to that of
/// [`train_ensemble`].
///
/// # Errors
/// [`TeacherError::Data`] for a teacher without a partition, and the errors of [`train_teacher`].
pub fn train_member(
    training: &EnsembleTraining<'_>,
    teacher: usize,
    stop: &AtomicBool,
) -> Result<TrainedTeacher, TeacherError> {
    let EnsembleTraining { config, data, streams, device, .. } = *training;
    let streams = streams.child("teacher", teacher as u64);
    train_teacher(teacher, config, data, training.partition(teacher)?, &streams, device, stop)
}

/// Returns the votes of `teachers` teachers on the images of `pool`. `load(i)` returns teacher i, for example from its file, so only
/// `threads` teachers are in memory at a time. On an image unlike its own, teacher i does what `unknown` says, with random classes from
/// `streams.stream("unknown", i)`.
///
/// # Errors
/// The first error of `load` or of a prediction; [`EnsembleError::Votes`] if there are no teachers or the pool is
/// empty.
pub fn ensemble_votes<E: std::error::Error + Send + 'static>(
    teachers: usize,
    load: &(dyn Fn(usize) -> Result<Teacher, E> + Sync),
    pool: &Split,
    (unknown, streams): (Unknown, &Streams),
    threads: usize,
) -> Result<Votes, EnsembleError<E>> {
    let indices: Vec<usize> = (0..teachers).collect();
    let rows = threads::map(&indices, threads, |&index, _| {
        let teacher = load(index).map_err(EnsembleError::Caller)?;
        Ok::<_, EnsembleError<E>>(teacher.vote(unknown, pool, &mut streams.stream("unknown", index as u64))?)
    })?;
    let shape = VoteShape::new(teachers, pool.len(), pool.classes()).map_err(VotesError::from)?;
    Ok(Votes::new(shape, rows.concat())?)
}
