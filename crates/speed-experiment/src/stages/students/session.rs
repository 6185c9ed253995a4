//! One training in its directory: its starting point, its reports, and its checkpoints.

use std::time::{Duration, Instant};

use speed_student::{
    Checkpoint, CheckpointError, EpochReport, Images as Unlabelled, Lesson, StudentError, StudentOutcome,
};

use super::student::Student;
use crate::error::ExperimentError;
use crate::progress::Part;
use crate::stages::context::Context;
use crate::store::StageFolder;

pub(super) const CHECKPOINT: &str = "checkpoint.bin";
const CHECKPOINT_EVERY: Duration = Duration::from_secs(30);

pub(super) struct Session<'a> {
    context: &'a Context<'a>,
    student: &'a Student<'a>,
    folder: &'a mut StageFolder,
    saved: Instant,
    /// Number of epochs of a checkpoint, until they are counted.
    resumed: Option<u32>,
}

impl<'a> Session<'a> {
    pub(super) fn new(context: &'a Context<'a>, student: &'a Student<'a>, folder: &'a mut StageFolder) -> Self {
        Self { context, student, folder, saved: Instant::now(), resumed: None }
    }

    /// Trains the student, from the checkpoint of an interrupted training if there is one.
    pub(super) fn train(&mut self) -> Result<StudentOutcome, ExperimentError> {
        let (images, labelled, streams) =
            (self.student.images, self.student.labelled(), self.student.streams(self.context));
        let settings = self.student.settings(self.context.config);
        let lesson = Lesson {
            config: &settings,
            pool: Unlabelled::new(self.student.pool()),
            labelled: &labelled,
            doubts: self.student.spec.labelled.doubts.as_deref(),
            test: Some(&images.test),
            streams: &streams,
            device: &self.context.device.burn,
        };
        let student = self.student;
        let train = |session: &mut Self, resume| {
            student.method().train(&lesson, resume, &mut |report| session.epoch_done(report).map_err(Into::into))
        };
        let resume = self.resume();
        let mut trained = train(self, resume);
        if let Err(StudentError::Checkpoint(error)) = &trained {
            self.begin_anew(error);
            trained = train(self, None);
        }
        self.count_resumed();
        trained.map_err(|error| student.error(error))
    }

    fn resume(&mut self) -> Option<Checkpoint> {
        let bytes = self.folder.read_partial(CHECKPOINT)?;
        match Checkpoint::from_bytes(&bytes) {
            Ok(checkpoint) => {
                self.resumed = Some(checkpoint.epoch());
                Some(checkpoint)
            }
            Err(error) => {
                self.begin_anew(&error);
                None
            }
        }
    }

    /// Reports that the checkpoint is unusable, so its work is computed again.
    fn begin_anew(&mut self, error: &CheckpointError) {
        self.resumed = None;
        let (row, repeat) = (self.student.row(), self.student.repeat);
        self.context.progress.note(&format!("{row} repeat {repeat} restarts: {CHECKPOINT}: {error}"));
    }

    fn count_resumed(&mut self) {
        if let Some(epochs) = self.resumed.take() {
            self.folder.resumed(epochs as usize);
            self.context.progress.found(epochs.into());
        }
    }

    fn part(&self, epoch: u32) -> Part {
        let (number, of) = self.student.place;
        let total = self.student.epochs(self.context).into();
        Part { name: "student".into(), number, of, unit: "epoch".into(), done: epoch.into(), total }
    }

    fn epoch_done(&mut self, report: &EpochReport<'_>) -> Result<(), ExperimentError> {
        if self.student.is_stopped() {
            return Err(ExperimentError::fault("stopped because another student failed"));
        }
        self.count_resumed();
        let metrics = report.metrics();
        let accuracy = metrics
            .accuracy_average
            .map_or_else(String::new, |accuracy| format!(", accuracy {:.1} %", 100.0 * accuracy));
        let accuracy = self.context.unless_secret(accuracy);
        let (row, repeat, epoch) = (self.student.row(), self.student.repeat, metrics.epoch);
        self.context.progress.part(&self.part(epoch));
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
