//! Rows of numbers, and work on them that is divided among threads.

use std::convert::Infallible;
use std::ops::Range;

use speed_nn::threads::{QueueError, map};

/// A result of work on several threads, which only fails if a thread cannot be started.
pub(crate) type Queued<T> = Result<T, QueueError<Infallible>>;

/// Points of one dimension, point after point.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rows<T> {
    pub(crate) width: usize,
    pub(crate) values: Vec<T>,
}

impl<T> Rows<T> {
    /// Wraps `values`, `width` of each point.
    pub(crate) fn new(width: usize, values: Vec<T>) -> Self {
        assert!(width > 0 && values.len().is_multiple_of(width), "complete points");
        Self { width, values }
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len() / self.width
    }

    pub(crate) fn row(&self, row: usize) -> &[T] {
        &self.values[row * self.width..][..self.width]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[T]> {
        self.values.chunks_exact(self.width)
    }
}

/// Returns the results of `work` on consecutive blocks of at most `block` of `count` items, in the order of the blocks. The
/// results do not depend on the number of threads. With one thread, `work` runs on the calling thread, and no error is possible.
pub(crate) fn in_blocks<R: Send>(
    count: usize,
    block: usize,
    threads: usize,
    work: impl Fn(Range<usize>) -> R + Sync,
) -> Queued<Vec<R>> {
    let firsts: Vec<usize> = (0..count).step_by(block).collect();
    let of = |&first: &usize| work(first..(first + block).min(count));
    if threads <= 1 {
        return Ok(firsts.iter().map(of).collect());
    }
    map(&firsts, threads, |first, _| Ok(of(first)))
}
