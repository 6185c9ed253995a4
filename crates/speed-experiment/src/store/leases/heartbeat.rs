//! A counter beside each lease of this process, which grows while the process lives.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::error::ExperimentError;

/// The counter, written to every directory in which this process has a lease.
pub(super) struct Heartbeat {
    name: String,
    every: Duration,
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The counter files, each with the number of leases beside it.
    files: HashMap<PathBuf, usize>,
    beat: u64,
    ended: bool,
}

impl Heartbeat {
    /// Creates a counter that grows at intervals of `every`, in files of this name.
    pub(super) fn new(name: String, every: Duration) -> Self {
        Self { name, every, shared: Arc::default(), thread: Mutex::default() }
    }

    /// Starts counting in `folder` for one more lease.
    ///
    /// # Errors
    /// If the directory cannot be written.
    pub(super) fn beat_in(&self, folder: &Path) -> Result<(), ExperimentError> {
        let path = folder.join(&self.name);
        let mut state = self.shared.state();
        if !state.files.contains_key(&path) {
            fs::write(&path, text(state.beat)).map_err(ExperimentError::io("write", &path))?;
        }
        *state.files.entry(path).or_default() += 1;
        drop(state);
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let (shared, every) = (Arc::clone(&self.shared), self.every);
            let count = move || shared.count(every);
            let started = std::thread::Builder::new().name("leases".into()).spawn(count);
            *thread = Some(started.map_err(|error| ExperimentError::Threads { source: error.into() })?);
        }
        Ok(())
    }

    /// Stops counting in `folder` for one lease.
    pub(super) fn rest_in(&self, folder: &Path) {
        let path = folder.join(&self.name);
        let mut state = self.shared.state();
        if let Some(leases) = state.files.get_mut(&path) {
            *leases -= 1;
            if *leases == 0 {
                state.files.remove(&path);
                let _ = fs::remove_file(&path);
            }
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, every: Duration) {
        let mut state = self.state();
        while !state.ended {
            state = self.changed.wait_timeout(state, every).unwrap_or_else(PoisonError::into_inner).0;
            state.beat += 1;
            for path in state.files.keys() {
                // Written in place, so that other machines see the same file change; they would see a new file of this
                // name only after their directory cache expires. A file that was removed with its stage is not created
                // again.
                let file = File::options().write(true).open(path);
                let _ = file.and_then(|mut file| file.write_all(text(state.beat).as_bytes()));
            }
        }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.shared.state().ended = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
    }
}

/// Returns the counter as text of fixed length.
fn text(beat: u64) -> String {
    format!("{beat:020}\n")
}
