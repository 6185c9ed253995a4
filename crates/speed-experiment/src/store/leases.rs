//! Leases of units of work, among processes that share a directory, on one machine or many.
//!
//! A unit in progress has a file `UNIT.lease` in its stage's directory, which names the process that works on it. It is
//! created by link(2), which fails if the name exists, also on NFS. Beside it is a file of the process with a counter
//! that grows while the process lives. A process that wants the unit watches this counter by its own clock, and takes
//! the lease over if the counter has not changed for long enough, or at once if the owner ran on this machine and has
//! ended.
//!
//! Leases only save work. A unit is a function of its stage's fingerprint, and its files appear atomically. So if two
//! processes do the same unit, because one was wrongly considered dead, they write the same bytes.

mod heartbeat;
mod holder;
mod workers;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub(crate) use self::holder::Holder;
pub use self::workers::Worker;
pub(crate) use self::workers::workers;

use self::heartbeat::Heartbeat;
use self::holder::{ENDING, leases_in, read};
use super::atomic::{WRITING, write_new};
use crate::error::{ExperimentError, ResultsFault};

/// The environment variable for tests: milliseconds between two beats, and until a lease counts as abandoned, as in
/// `10000,60000`.
const TIMES: &str = "SPEED_LEASE_TIMES";

/// The leases of this process, and its observations of other leases.
pub(crate) struct Leases {
    me: Holder,
    taken: AtomicUsize,
    abandoned_after: Duration,
    heartbeat: Arc<Heartbeat>,
    watched: Mutex<HashMap<PathBuf, Sight>>,
}

/// A lease of another process at its last observed change.
struct Sight {
    token: String,
    beat: Option<u64>,
    since: Instant,
}

/// The result of a request for a lease.
pub(crate) enum Leased {
    /// The unit belongs to this process until the lease is dropped.
    Ours(Lease),
    /// Another process works on it.
    Theirs(Holder),
}

/// A unit of work that belongs to this process until the lease is dropped.
pub(crate) struct Lease {
    path: PathBuf,
    token: String,
    heartbeat: Arc<Heartbeat>,
}

impl Leases {
    /// Creates the leases of this process, initially none.
    ///
    /// # Errors
    /// If the operating system gives no random bytes.
    pub(crate) fn new() -> Result<Self, ExperimentError> {
        let (every, abandoned_after) = times();
        let me = Holder::this_process()?;
        let heartbeat = Arc::new(Heartbeat::new(me.heart.clone(), every));
        let watched = Mutex::default();
        Ok(Self { me, taken: AtomicUsize::new(0), abandoned_after, heartbeat, watched })
    }

    /// Returns the interval between two checks of a lease of another process.
    pub(crate) fn patience(&self) -> Duration {
        (self.abandoned_after / 20).clamp(Duration::from_millis(20), Duration::from_secs(1))
    }

    /// Leases `unit` of the stage in `folder`, unless another live process has it.
    ///
    /// # Errors
    /// If the directory cannot be written.
    pub(crate) fn take(&self, folder: &Path, unit: &str) -> Result<Leased, ExperimentError> {
        let path = folder.join(format!("{unit}{ENDING}"));
        let mine = self.me.numbered(self.taken.fetch_add(1, Ordering::Relaxed));
        let bytes = mine.to_json();
        let mut lease = None;
        loop {
            match read(&path) {
                // If the reply to link(2) was lost, this process's own lease exists already.
                Some(found) if found.token == mine.token => {}
                Some(found) if !self.is_abandoned(&path, &found) => return Ok(Leased::Theirs(found)),
                Some(found) => {
                    take_away(&path, &found)?;
                    continue;
                }
                None => {
                    if lease.is_none() {
                        self.heartbeat.beat_in(folder)?;
                        let heartbeat = Arc::clone(&self.heartbeat);
                        lease = Some(Lease { path: path.clone(), token: mine.token.clone(), heartbeat });
                    }
                    if !write_new(&path, &bytes)? {
                        continue;
                    }
                }
            }
            if let Some(lease) = lease {
                return Ok(Leased::Ours(lease));
            }
        }
    }

    /// Returns whether the owner of a lease has ended, as far as this process can tell by now.
    fn is_abandoned(&self, path: &Path, holder: &Holder) -> bool {
        let beat = holder.beat(path);
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let is_gone = match watched.get_mut(path) {
            Some(sight) if sight.token == holder.token => {
                // A missing counter is not a sign of life.
                if beat.is_some() && beat != sight.beat {
                    (sight.beat, sight.since) = (beat, Instant::now());
                }
                sight.since.elapsed() >= self.abandoned_after
            }
            _ => {
                let sight = Sight { token: holder.token.clone(), beat, since: Instant::now() };
                watched.insert(path.to_path_buf(), sight);
                false
            }
        };
        let is_gone = is_gone || holder.is_dead(&self.me);
        if is_gone {
            watched.remove(path);
        }
        is_gone
    }

    /// Fails if other processes work in a stage's directory that will be renamed. Waits until it is certain that leases
    /// without renewal are abandoned.
    ///
    /// # Errors
    /// If a process lives; the error names it.
    pub(crate) fn refuse_others(&self, folder: &Path) -> Result<(), ExperimentError> {
        let (mut first_beats, mut ended, mut was_certain) = (HashMap::new(), HashSet::new(), false);
        loop {
            let mut is_certain = true;
            // Lists the leases again each time, because a process that waited may have a lease by now.
            for (path, holder) in leases_in(folder) {
                let lease = (path.clone(), holder.token.clone());
                if holder.heart == self.me.heart || ended.contains(&lease) {
                    continue;
                }
                let beat = holder.beat(&path);
                let first = *first_beats.entry(lease.clone()).or_insert(beat);
                if self.is_abandoned(&path, &holder) {
                    ended.insert(lease);
                } else if holder.lives_here(&self.me) || (beat.is_some() && beat != first) {
                    let fault = ResultsFault::Leased { holder: holder.to_string() };
                    return Err(ExperimentError::Results { path: folder.to_path_buf(), fault });
                } else {
                    is_certain = false;
                }
            }
            // A lease that is being taken over is briefly absent.
            if is_certain && (was_certain || first_beats.is_empty()) {
                return Ok(());
            }
            was_certain = is_certain;
            std::thread::sleep(self.patience());
        }
    }

    /// Returns whether a directory has only leases of ended processes of this machine, or none.
    pub(super) fn is_free(&self, folder: &Path) -> bool {
        leases_in(folder).iter().all(|(_, holder)| holder.is_dead(&self.me))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // A lease that stays behind is taken over like any other.
        if read(&self.path).is_some_and(|found| found.token == self.token) {
            let _ = fs::remove_file(&self.path);
        }
        if let Some(folder) = self.path.parent() {
            self.heartbeat.rest_in(folder);
        }
    }
}

/// Returns whether a file of a stage's directory belongs to leases, and so not to the stage.
pub(super) fn is_of_leases(name: &str) -> bool {
    name.ends_with(ENDING) || holder::is_heart(name) || name.starts_with(WRITING)
}

/// Removes the files of leases from the directory of a finished stage, which has nothing left to lease.
pub(super) fn clear(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(ENDING) || holder::is_heart(&name) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Removes the lease of an ended process, unless another process has removed it meanwhile and leased the unit again.
fn take_away(path: &Path, judged: &Holder) -> Result<(), ExperimentError> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // No other process moves the same lease to this name.
    let aside = folder.join(format!("{WRITING}{name}-{}-{}", judged.token_in_names(), std::process::id()));
    match fs::rename(path, &aside) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        other => other.map_err(ExperimentError::io("rename", path))?,
    }
    if read(&aside).is_some_and(|found| found.token != judged.token) {
        // The lease belongs to a live process, so it is put back. If yet another process has leased the unit in
        // between, both do it and write the same bytes.
        let _ = fs::hard_link(&aside, path);
    }
    let _ = fs::remove_file(&aside);
    Ok(())
}

/// Returns the interval between two beats, and the time without a beat after which a lease is abandoned.
fn times() -> (Duration, Duration) {
    let given = std::env::var(TIMES).ok();
    let parsed = given.as_deref().and_then(|text| text.split_once(',')).and_then(|(every, after)| {
        Some((Duration::from_millis(every.trim().parse().ok()?), Duration::from_millis(after.trim().parse().ok()?)))
    });
    parsed.unwrap_or((Duration::from_secs(10), Duration::from_secs(60)))
}

#[cfg(test)]
mod tests;
