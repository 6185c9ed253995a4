//! Checks of the ledger before a run starts.

use std::path::PathBuf;

use speed_accountant::ledger::Ledger;
use speed_accountant::{QueryBatch, round_up};
use speed_core::printable_path;

use super::event::limit;
use super::files::LedgerFiles;
use super::payment::CHARGED;
use crate::config::Config;
use crate::error::ExperimentError;
use crate::progress::Progress;
use crate::store::RunStore;

/// Compares the ledger with the stages that were charged to it, and reports other ledgers.
pub(crate) fn check(store: &RunStore, config: &Config, progress: &dyn Progress) -> Result<(), ExperimentError> {
    if config.is_simulation() {
        return Ok(());
    }
    let files = LedgerFiles::in_experiment(store.experiment());
    check_charges(store, &files, progress)?;
    for other in files.others() {
        // An unreadable ledger of another experiment does not affect this one.
        let Ok(statement) = Ledger::open(&other).and_then(|ledger| ledger.statement()) else { continue };
        if statement.queries > 0 {
            progress.note(&format!(
                "another ledger: {} ({} answers, epsilon {:.2}); if it concerns the same teachers, their costs add up",
                printable_path(&other),
                statement.queries,
                round_up(statement.spent_epsilon, 2)
            ));
        }
    }
    Ok(())
}

fn check_charges(store: &RunStore, files: &LedgerFiles, progress: &dyn Progress) -> Result<(), ExperimentError> {
    // Marks are read before the ledger, because another run may be charging.
    let marks: Vec<(PathBuf, String)> = CHARGED
        .into_iter()
        .flat_map(|kind| store.all_remains(kind))
        .filter_map(|stage| Some(stage.charged()?.map(|digest| (stage.folder().to_path_buf(), digest))))
        .collect::<Result<_, ExperimentError>>()?;
    let known = files.statement()?;
    if let Some(torn) = known.as_ref().and_then(|known| known.torn) {
        progress.warn(&format!(
            "{}, line {}: only {} bytes of a charge are present; if no crash truncated it, restore the file from a copy",
            printable_path(&files.path()),
            torn.line,
            torn.bytes
        ));
    }
    let charges = known.map(|known| known.charges).unwrap_or_default();
    let lost = marks.into_iter().find(|(_, digest)| !charges.iter().any(|charge| charge.noise_digest == *digest));
    match lost {
        Some((answers, _)) => {
            let fault = format!("the charge for the answers in {} is missing", printable_path(&answers));
            let next = "the ledger was lost, truncated or replaced. Restore it from a copy; the spent budget is unknown without it";
            Err(ExperimentError::results(files.path(), format_args!("{fault}: {next}")))
        }
        None => Ok(()),
    }
}

/// Refuses forced stages whose charges would exceed the budget, before their previous outputs are set aside.
pub(crate) fn check_forced(store: &RunStore, config: &Config, charges: &[QueryBatch]) -> Result<(), ExperimentError> {
    if config.is_simulation() {
        return Ok(());
    }
    let (Some(limit), Some(ledger)) = (limit(config), LedgerFiles::in_experiment(store.experiment()).open()?) else {
        return Ok(());
    };
    Ok(ledger.would_allow(charges, Some(limit))?)
}
