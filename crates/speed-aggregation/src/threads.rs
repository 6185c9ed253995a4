//! Thread pools.

use std::num::NonZeroUsize;

/// The error of a thread pool that could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start {threads} threads: {source}")]
pub struct ThreadsError {
    /// Number of threads requested.
    pub threads: NonZeroUsize,
    /// The cause.
    source: rayon::ThreadPoolBuildError,
}

/// Starts a pool of `threads` threads.
pub(crate) fn pool(threads: NonZeroUsize) -> Result<rayon::ThreadPool, ThreadsError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.get()).build();
    pool.map_err(|source| ThreadsError { threads, source })
}
