//! Distributes work over threads so that results do not depend on the number of threads.
//!
//! According to measurements, one model per thread, each inside its own one-thread rayon pool, scales; threads inside
//! one small model do not. A one-thread pool also fixes the order of every sum, so a model's bits do not depend on
//! other work.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::{ThreadPoolBuildError, ThreadPoolBuilder};

/// The cause of a [`for_each`] that ended early.
#[derive(Debug, thiserror::Error)]
pub enum QueueError<E> {
    /// The first error that the work returned.
    #[error(transparent)]
    Work(E),
    /// A worker's thread pool could not be started.
    #[error("cannot start a worker thread")]
    Pool(#[source] ThreadPoolBuildError),
}

/// Runs `work` for every item, up to `threads` (at least one) at a time, in the order of `items`.
///
/// Every worker runs inside its own one-thread rayon pool. After the first error no more items are started, and the
/// flag passed to `work` becomes true so that long work can stop early. The function then returns that error.
///
/// # Errors
/// The first error in time; [`QueueError::Pool`] if the system cannot start a thread.
pub fn for_each<T: Sync, E: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T, &AtomicBool) -> Result<(), E> + Sync,
) -> Result<(), QueueError<E>> {
    let (next, stop, failure) = (AtomicUsize::new(0), AtomicBool::new(false), Mutex::new(None));
    let fail = |error| {
        let mut first = failure.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(error);
        stop.store(true, Ordering::Relaxed);
    };
    let worker = || {
        while !stop.load(Ordering::Relaxed) {
            let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
            if let Err(error) = work(item, &stop) {
                fail(QueueError::Work(error));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, items.len().max(1)) {
            match ThreadPoolBuilder::new().num_threads(1).build() {
                Ok(pool) => drop(scope.spawn(move || pool.install(worker))),
                Err(error) => fail(QueueError::Pool(error)),
            }
        }
    });
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// Returns the results of `work` for every item, in the order of `items`, as [`for_each`] runs them.
///
/// # Errors
/// As for [`for_each`].
pub fn map<T: Sync, R: Send, E: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T, &AtomicBool) -> Result<R, E> + Sync,
) -> Result<Vec<R>, QueueError<E>> {
    let results: Vec<Mutex<Option<R>>> = items.iter().map(|_| Mutex::new(None)).collect();
    let indices: Vec<usize> = (0..items.len()).collect();
    for_each(&indices, threads, |&index, stop| {
        let result = work(&items[index], stop)?;
        *results[index].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        Ok(())
    })?;
    let result = |slot: Mutex<Option<R>>| slot.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(results.into_iter().map(|slot| result(slot).expect("every item was done without an error")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_done_once_in_a_one_thread_pool_and_results_have_their_order() {
        for threads in [0, 1, 3, 50] {
            let (items, done): (Vec<usize>, _) = ((0..40).collect(), AtomicUsize::new(0));
            let squares = map(&items, threads, |&item, _| {
                assert_eq!(rayon::current_num_threads(), 1);
                done.fetch_add(1, Ordering::Relaxed);
                Ok::<_, ()>(item * item)
            });
            assert_eq!(squares.expect("no error"), items.iter().map(|item| item * item).collect::<Vec<_>>());
            assert_eq!(done.into_inner(), items.len());
        }
        assert!(map(&[0; 0], 2, |_, _| Err::<(), _>(())).expect("nothing to do").is_empty());
        assert!(matches!(
            map(&[1, 2, 3], 2, |&item, _| if item == 2 { Err(item) } else { Ok(()) }),
            Err(QueueError::Work(2))
        ));
    }

    #[test]
    fn the_first_error_stops_the_others() {
        let items: Vec<usize> = (0..1000).collect();
        let started = AtomicUsize::new(0);
        let result = for_each(&items, 2, |&item, stop| {
            started.fetch_add(1, Ordering::Relaxed);
            if item == 5 {
                return Err(item);
            }
            // Every item after item 5 waits for the flag; without it this test would hang.
            while item > 5 && !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            Ok(())
        });
        assert!(matches!(result, Err(QueueError::Work(5))));
        assert!(started.load(Ordering::Relaxed) < 10);
    }
}
