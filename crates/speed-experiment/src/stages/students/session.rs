//! One training in its folder: where it goes on, its reports, and the checkpoints on the way.

use std::time::{Duration, Instant};

use burn::tensor::Device;
use speed_random::Streams;
use speed_student::{Checkpoint, CheckpointError, CheckpointMetrics, StudentConfig, StudentError};

use super::student::Student;
use crate::error::{ExperimentError, Mismatch};
use crate::stages::context::Context;
use crate::stages::data::Images;
use crate::store::StageFolder;

/// The file of the last checkpoint.
pub(super) const CHECKPOINT: &str = "checkpoint.bin";
/// The time between two checkpoints.
pub(super) const CHECKPOINT_EVERY: Duration = Duration::from_secs(30);

/// One training in its folder.
pub(super) struct Session<'a> {
    context: &'a Context<'a>,
    student: &'a Student<'a>,
    folder: &'a mut StageFolder,
    saved: Instant,
}

impl<'a> Session<'a> {
    pub(super) fn new(context: &'a Context<'a>, student: &'a Student<'a>, folder: &'a mut StageFolder) -> Self {
        Self { context, student, folder, saved: Instant::now() }
    }

    pub(super) fn images(&self) -> &'a Images {
        self.student.images
    }

    pub(super) fn device(&self) -> &'a Device {
        &self.context.device.burn
    }

    pub(super) fn config(&self) -> &'a StudentConfig {
        &self.context.config.student
    }

    pub(super) fn labelled(&self) -> Vec<(usize, u8)> {
        self.student.labelled()
    }

    pub(super) fn streams(&self) -> Streams {
        self.student.streams(self.context)
    }

    /// Returns the checkpoint that an interrupted training left.
    pub(super) fn resume<M: CheckpointMetrics>(&mut self) -> Option<Checkpoint<M>> {
        let bytes = self.folder.read_partial(CHECKPOINT)?;
        let checkpoint = Checkpoint::from_bytes(&bytes).ok()?;
        self.folder.resumed(checkpoint.epoch() as usize);
        self.context.progress.advance(u64::from(checkpoint.epoch()), "");
        Some(checkpoint)
    }

    /// Reports an epoch, and saves the checkpoint if the last one is old.
    pub(super) fn epoch_done<M: CheckpointMetrics>(
        &mut self,
        epoch: u32,
        accuracy: Option<f64>,
        checkpoint: impl FnOnce() -> Result<Checkpoint<M>, CheckpointError>,
    ) -> Result<(), ExperimentError> {
        if self.student.is_stopped() {
            return Err(Mismatch::Stopped.into());
        }
        let accuracy = accuracy.map_or_else(String::new, |accuracy| format!(", accuracy {:.1} %", 100.0 * accuracy));
        let note = format!("{} repeat {}: epoch {epoch}{accuracy}", self.student.row(), self.student.repeat);
        self.context.progress.advance(1, &note);
        if self.saved.elapsed() >= CHECKPOINT_EVERY {
            let checkpoint = checkpoint().map_err(|error| self.error(StudentError::Checkpoint(error)))?;
            self.folder.write(CHECKPOINT, &checkpoint.to_bytes())?;
            self.saved = Instant::now();
        }
        Ok(())
    }

    pub(super) fn error(&self, error: StudentError<ExperimentError>) -> ExperimentError {
        self.student.error(error)
    }
}
