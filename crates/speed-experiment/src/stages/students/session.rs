//! One training in its folder: where it goes on, its reports, and the checkpoints on the way.

use std::time::{Duration, Instant};

use speed_student::{Checkpoint, EpochReport, Images as Unlabelled, Lesson, StudentError, StudentOutcome};

use super::student::Student;
use crate::error::{ExperimentError, Mismatch};
use crate::stages::context::Context;
use crate::store::StageFolder;

/// The file of the last checkpoint.
pub(super) const CHECKPOINT: &str = "checkpoint.bin";
/// The time between two checkpoints.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(30);

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

    /// Trains the student, from the checkpoint that an interrupted training left if there is one.
    pub(super) fn train(&mut self) -> Result<StudentOutcome, ExperimentError> {
        let (images, labelled, streams) =
            (self.student.images, self.student.labelled(), self.student.streams(self.context));
        let lesson = Lesson {
            config: &self.context.config.student,
            pool: Unlabelled::of(&images.pool),
            labelled: &labelled,
            test: &images.test,
            streams: &streams,
            device: &self.context.device.burn,
        };
        let (student, resume) = (self.student, self.resume());
        let trained =
            student.method().train(&lesson, resume, &mut |report| self.epoch_done(report).map_err(Into::into));
        trained.map_err(|error| student.error(error))
    }

    fn resume(&mut self) -> Option<Checkpoint> {
        let bytes = self.folder.read_partial(CHECKPOINT)?;
        let checkpoint = Checkpoint::from_bytes(&bytes).ok()?;
        self.folder.resumed(checkpoint.epoch() as usize);
        self.context.progress.advance(u64::from(checkpoint.epoch()), "");
        Some(checkpoint)
    }

    /// Reports an epoch, and saves the checkpoint if the last one is old.
    fn epoch_done(&mut self, report: &EpochReport<'_>) -> Result<(), ExperimentError> {
        if self.student.is_stopped() {
            return Err(Mismatch::Stopped.into());
        }
        let metrics = report.metrics();
        let accuracy = metrics
            .accuracy_average
            .map_or_else(String::new, |accuracy| format!(", accuracy {:.1} %", 100.0 * accuracy));
        let (row, repeat, epoch) = (self.student.row(), self.student.repeat, metrics.epoch);
        self.context.progress.advance(1, &format!("{row} repeat {repeat}: epoch {epoch}{accuracy}"));
        if self.saved.elapsed() >= CHECKPOINT_EVERY {
            let checkpoint =
                report.checkpoint().map_err(|error| self.student.error(StudentError::Checkpoint(error)))?;
            self.folder.write(CHECKPOINT, &checkpoint.to_bytes())?;
            self.saved = Instant::now();
        }
        Ok(())
    }
}
