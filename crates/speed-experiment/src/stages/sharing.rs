//! Units of work that several processes share: each does those that nobody else has leased, and waits for the rest.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use speed_nn::threads;

use super::context::Context;
use crate::error::ExperimentError;
use crate::store::{Holder, Lease, Leased};

/// Units of work, known by numbers.
pub(super) trait Units: Sync {
    /// Returns the folder and the name under which a unit is leased.
    ///
    /// # Errors
    /// If the folder cannot be made.
    fn place(&self, unit: usize) -> Result<(PathBuf, String), ExperimentError>;

    /// Returns whether a unit is done, by an earlier process or another one; if it is, its result is taken.
    ///
    /// # Errors
    /// If it cannot be read.
    fn take(&self, unit: usize) -> Result<bool, ExperimentError>;

    /// Does units that are leased, and saves them. Long work may end early once `stop` is true.
    ///
    /// # Errors
    /// If the work fails; units that are saved stay.
    fn work(&self, units: &[usize], stop: &AtomicBool) -> Result<(), ExperimentError>;
}

/// The way in which units are worked on.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    /// Pieces of work at a time.
    pub(super) threads: usize,
    /// Units of a piece of work at most.
    pub(super) batch: usize,
}

/// Sees to it that all of `units` are done, by this process or another, and returns how many this one did.
///
/// # Errors
/// The first error of the work.
pub(super) fn share(
    context: &Context<'_>,
    units: &[usize],
    pace: Pace,
    of: &impl Units,
) -> Result<usize, ExperimentError> {
    let (mut todo, done, mut said) = (units.to_vec(), Mutex::new(0), None);
    loop {
        let held: Mutex<Vec<(usize, Holder)>> = Mutex::default();
        let batches: Vec<&[usize]> = todo.chunks(pace.batch.max(1)).collect();
        threads::for_each(&batches, pace.threads, |batch, stop| {
            let (mine, theirs) = lease(context, batch, of)?;
            held.lock().unwrap_or_else(PoisonError::into_inner).extend(theirs);
            let numbers: Vec<usize> = mine.iter().map(|(unit, _)| *unit).collect();
            if !numbers.is_empty() {
                of.work(&numbers, stop)?;
                *done.lock().unwrap_or_else(PoisonError::into_inner) += numbers.len();
            }
            Ok::<_, ExperimentError>(())
        })?;
        let held = held.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Some((_, holder)) = held.first() else { break };
        let waiting = format!("waiting for {} units that others do: {holder}", held.len());
        if said.as_ref().is_none_or(|(units, other)| *units != held.len() || other != holder) {
            context.progress.note(&waiting);
            said = Some((held.len(), holder.clone()));
        }
        std::thread::sleep(context.store.leases().patience());
        todo = held.into_iter().map(|(unit, _)| unit).collect();
        todo.sort_unstable();
    }
    Ok(done.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// The units of a batch that are to be done here, and those that others do.
type Shared = (Vec<(usize, Lease)>, Vec<(usize, Holder)>);

fn lease(context: &Context<'_>, batch: &[usize], of: &impl Units) -> Result<Shared, ExperimentError> {
    let (mut mine, mut theirs) = (Vec::new(), Vec::new());
    for &unit in batch {
        if of.take(unit)? {
            continue;
        }
        let (folder, name) = of.place(unit)?;
        match context.store.leases().take(&folder, &name)? {
            // Done between the look and the lease.
            Leased::Ours(_) if of.take(unit)? => {}
            Leased::Ours(lease) => mine.push((unit, lease)),
            Leased::Theirs(holder) => theirs.push((unit, holder)),
        }
    }
    Ok((mine, theirs))
}
