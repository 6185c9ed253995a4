//! Training and votes of all teachers, several at a time, with the same results for any number of threads.

use speed_core::{VoteShape, Votes, VotesError};

use burn::tensor::Device;

use crate::{Teacher, TeacherConfig, TeacherError, TrainedTeacher, train_teacher};
use speed_core::random::Streams;
use speed_data::Split;
use speed_nn::threads::{self, QueueError};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// The reason why an ensemble was not trained or did not vote; `E` is the error of the caller's own function.
#[derive(Debug, thiserror::Error)]
pub enum EnsembleError<E: std::error::Error + 'static> {
    /// A teacher failed.
    #[error(transparent)]
    Teacher(#[from] TeacherError),
    /// The caller's function failed.
    #[error(transparent)]
    Caller(E),
    /// The votes are not a table of votes.
    #[error(transparent)]
    Votes(#[from] VotesError),
    /// A thread could not be started.
    #[error("cannot start a thread: {reason}")]
    Threads {
        /// The system's message.
        reason: String,
    },
}

impl<E: std::error::Error + 'static> From<QueueError<Self>> for EnsembleError<E> {
    fn from(error: QueueError<Self>) -> Self {
        match error {
            QueueError::Work(error) => error,
            QueueError::Pool(error) => Self::Threads { reason: error.to_string() },
        }
    }
}

/// Trains the teachers `todo` (indices into `partitions`; when resuming, the unfinished ones) on `device`, `threads` at
/// a time, and passes each to `on_finished` as soon as it is done.
///
/// Teacher i draws from `streams.child("teacher", i)` and runs inside its own one-thread rayon pool, so its bits do not
/// depend on `threads` and `todo`. `on_finished` is called from several threads, in order of completion.
///
/// # Errors
/// The first error of a teacher or of `on_finished`; the other teachers then stop at their next step.
#[expect(clippy::too_many_arguments, reason = "a training and the machine for it")]
pub fn train_ensemble<E: std::error::Error + Send + 'static>(
    config: &TeacherConfig,
    data: &Split,
    partitions: &[Range<usize>],
    todo: &[usize],
    streams: &Streams,
    device: &Device,
    threads: usize,
    on_finished: &(dyn Fn(TrainedTeacher) -> Result<(), E> + Sync),
) -> Result<(), EnsembleError<E>> {
    config.check().map_err(TeacherError::from)?;
    if let Some(&teacher) = todo.iter().find(|&&teacher| teacher >= partitions.len()) {
        return Err(TeacherError::NoSuchTeacher { teacher, teachers: partitions.len() }.into());
    }
    threads::for_each(todo, threads, |&index, stop| {
        let trained = train_member(index, config, data, partitions[index].clone(), streams, device, stop)?;
        on_finished(trained).map_err(EnsembleError::Caller)
    })?;
    Ok(())
}

/// Trains one teacher of an ensemble. In a one-thread rayon pool the result is bit-identical to that of
/// [`train_ensemble`]. `streams` is the ensemble's family.
///
/// # Errors
/// The errors of [`train_teacher`].
pub fn train_member(
    index: usize,
    config: &TeacherConfig,
    data: &Split,
    partition: Range<usize>,
    streams: &Streams,
    device: &Device,
    stop: &AtomicBool,
) -> Result<TrainedTeacher, TeacherError> {
    let family = streams.child("teacher", index as u64);
    train_teacher(index, config, data, partition, &family, device, stop)
}

/// Returns the labels that each of `teachers` teachers gives to the images of `pool`. `load(i)` returns teacher i, for
/// example from its file, so only `threads` teachers are in memory at a time.
///
/// # Errors
/// The first error of `load` or of a prediction; [`EnsembleError::Votes`] if there are no teachers or the pool is
/// empty.
pub fn ensemble_votes<E: std::error::Error + Send + 'static>(
    teachers: usize,
    load: &(dyn Fn(usize) -> Result<Teacher, E> + Sync),
    pool: &Split,
    threads: usize,
) -> Result<Votes, EnsembleError<E>> {
    let rows: Vec<Mutex<Vec<u8>>> = (0..teachers).map(|_| Mutex::default()).collect();
    let indices: Vec<usize> = (0..teachers).collect();
    threads::for_each(&indices, threads, |&index, _| {
        let labels = load(index).map_err(EnsembleError::Caller)?.predict(pool)?;
        *rows[index].lock().unwrap_or_else(std::sync::PoisonError::into_inner) = labels;
        Ok(())
    })?;
    let labels = rows.into_iter().flat_map(|row| row.into_inner().unwrap_or_default()).collect();
    let shape = VoteShape::new(teachers, pool.len(), pool.classes()).map_err(VotesError::from)?;
    Ok(Votes::new(shape, labels)?)
}
