//! Units of work that several processes share: each process does the units that no other process has leased, and waits
//! for the rest.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use speed_nn::threads;

use super::context::Context;
use crate::error::ExperimentError;
use crate::store::{Holder, Lease, Leased};

/// Units of work, identified by numbers.
pub(super) trait Units: Sync {
    /// Returns the directory and the name for the lease of a unit.
    ///
    /// # Errors
    /// If the directory cannot be created.
    fn place(&self, unit: usize) -> Result<(PathBuf, String), ExperimentError>;

    /// Returns whether a unit is done by an earlier or another process, and if so, takes its result.
    ///
    /// # Errors
    /// If it cannot be read.
    fn take(&self, unit: usize) -> Result<bool, ExperimentError>;

    /// Does leased units, and saves them. Long work may end early once `stop` is true.
    ///
    /// # Errors
    /// If the work fails; saved units stay.
    fn work(&self, units: &[usize], stop: &AtomicBool) -> Result<(), ExperimentError>;
}

/// Limits of concurrent work on units.
#[derive(Clone, Copy)]
pub(super) struct Concurrency {
    /// Number of concurrent pieces of work.
    pub(super) threads: usize,
    /// Largest number of units in a piece of work.
    pub(super) batch: usize,
}

/// Ensures that all of `units` are done, by this process or another, and returns how many this process did.
///
/// # Errors
/// The first error of the work.
pub(super) fn share(
    context: &Context<'_>,
    units: &[usize],
    limits: Concurrency,
    stage: &impl Units,
) -> Result<usize, ExperimentError> {
    let (mut todo, done, mut noted) = (units.to_vec(), Mutex::new(0), None);
    loop {
        let held: Mutex<Vec<(usize, Holder)>> = Mutex::default();
        let batches: Vec<&[usize]> = todo.chunks(limits.batch.max(1)).collect();
        threads::for_each(&batches, limits.threads, |batch, stop| {
            let (mine, theirs) = lease(context, batch, stage)?;
            held.lock().unwrap_or_else(PoisonError::into_inner).extend(theirs);
            let numbers: Vec<usize> = mine.iter().map(|(unit, _)| *unit).collect();
            if !numbers.is_empty() {
                stage.work(&numbers, stop)?;
                *done.lock().unwrap_or_else(PoisonError::into_inner) += numbers.len();
            }
            Ok::<_, ExperimentError>(())
        })?;
        let held = held.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Some((_, holder)) = held.first() else { break };
        let waiting = format!("waiting for {} units of other processes: {holder}", held.len());
        if noted.as_ref().is_none_or(|(units, other)| *units != held.len() || other != holder) {
            context.progress.note(&waiting);
            noted = Some((held.len(), holder.clone()));
        }
        std::thread::sleep(context.store.leases().patience());
        todo = held.into_iter().map(|(unit, _)| unit).collect();
        todo.sort_unstable();
    }
    Ok(done.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// The units of a batch that this process does, and the units that others do.
type BatchLeases = (Vec<(usize, Lease)>, Vec<(usize, Holder)>);

fn lease(context: &Context<'_>, batch: &[usize], stage: &impl Units) -> Result<BatchLeases, ExperimentError> {
    let (mut mine, mut theirs) = (Vec::new(), Vec::new());
    for &unit in batch {
        if stage.take(unit)? {
            continue;
        }
        let (folder, name) = stage.place(unit)?;
        match context.store.leases().take(&folder, &name)? {
            // The unit was done between the check and the lease.
            Leased::Ours(_) if stage.take(unit)? => {}
            Leased::Ours(lease) => mine.push((unit, lease)),
            Leased::Theirs(holder) => theirs.push((unit, holder)),
        }
    }
    Ok((mine, theirs))
}
