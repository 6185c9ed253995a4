//! A file of a run's progress in its directory, for `speed show --follow` in other processes.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{Event, Progress, RunView};
use crate::store::write_progress;

/// The minimum interval between two writes.
const EVERY: Duration = Duration::from_secs(1);

/// Forwards progress, and maintains a file of it until the run ends.
pub(crate) struct Recorder<'a> {
    to: &'a dyn Progress,
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

struct Shared {
    path: PathBuf,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    view: RunView,
    work_began: Instant,
    is_new: bool,
    ended: bool,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(to: &'a dyn Progress, path: PathBuf) -> Self {
        let state = State { view: RunView::default(), work_began: Instant::now(), is_new: false, ended: false };
        let shared = Arc::new(Shared { path, state: Mutex::new(state), changed: Condvar::new() });
        let writer = Arc::clone(&shared);
        // Without the thread, the run cannot be watched, but it can still run.
        let writer = std::thread::Builder::new().name("progress".into()).spawn(move || writer.write_until_the_end());
        Self { to, shared, writer: writer.ok() }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // The view is valid even if another thread panicked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_until_the_end(&self) {
        let mut state = self.state();
        while !state.ended {
            if std::mem::take(&mut state.is_new) {
                let mut view = state.view.clone();
                let seconds = state.work_began.elapsed().as_secs_f64();
                drop(state);
                if let Some(work) = &mut view.work {
                    work.seconds = seconds;
                }
                // If the write fails, the run continues without being watched.
                let _ = write_progress(&self.path, view);
                state = self.state();
            }
            if !state.ended {
                state = self.changed.wait_timeout(state, EVERY).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }
}

impl Drop for Recorder<'_> {
    fn drop(&mut self) {
        self.shared.state().ended = true;
        self.shared.changed.notify_all();
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
        // Finished work is recorded in its stages, and all work has ended.
        let _ = std::fs::remove_file(&self.shared.path);
    }
}

impl Progress for Recorder<'_> {
    fn on(&self, event: Event<'_>) {
        if !matches!(event, Event::Note(_) | Event::Warning(_)) {
            let mut state = self.shared.state();
            if let Event::Begin { .. } = event {
                state.work_began = Instant::now();
            }
            state.view.apply(event);
            state.is_new = true;
        }
        self.to.on(event);
    }
}
