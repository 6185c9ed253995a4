//! A thread that runs a function at intervals.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A thread that calls a function at intervals until this value is dropped.
pub(super) struct Ticker {
    ended: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Calls `tick` at intervals of `every`. If no thread can be started, it is never called, which is harmless.
    pub(super) fn new(every: Duration, tick: impl Fn() + Send + 'static) -> Self {
        let ended = Arc::new((Mutex::new(false), Condvar::new()));
        let own = Arc::clone(&ended);
        let run = move || {
            let (ended, end) = &*own;
            let mut has_ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
            while !*has_ended {
                let (guard, timeout) = end.wait_timeout(has_ended, every).unwrap_or_else(PoisonError::into_inner);
                has_ended = guard;
                if timeout.timed_out() && !*has_ended {
                    tick();
                }
            }
        };
        Self { ended, thread: std::thread::Builder::new().name("ticker".into()).spawn(run).ok() }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        let (ended, end) = &*self.ended;
        *ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        end.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
