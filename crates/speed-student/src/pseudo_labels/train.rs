//! The training of one student.

use std::time::Instant;

use speed_data::Split;
use speed_random::Streams;

use super::batches::Batches;
use super::network::Classifier;
use super::state::{State, Workspace, identity, probabilities};
use super::targets::{Lesson, most_probable};
use super::{PseudoLabelsConfig, PseudoLabelsMetrics};
use crate::checkpoint::Checkpoint;
use crate::train::check_data;
use crate::{Images, StudentError};

/// An epoch that was just finished.
#[derive(Debug)]
pub struct PseudoLabelsReport<'a> {
    state: &'a State,
    identity: [u8; 32],
    metrics: PseudoLabelsMetrics,
}

impl PseudoLabelsReport<'_> {
    /// Losses, pseudo-labels and accuracies of the epoch.
    #[must_use]
    pub fn metrics(&self) -> &PseudoLabelsMetrics {
        &self.metrics
    }

    /// The training after this epoch; costs a copy of everything (3 MB with the default network).
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint<PseudoLabelsMetrics> {
        self.state.to_checkpoint(self.identity)
    }
}

/// A trained student.
#[derive(Clone, Debug)]
pub struct PseudoLabelsOutcome {
    /// Metrics of every epoch.
    pub metrics: Vec<PseudoLabelsMetrics>,
    /// Accuracy on the test images, with averaged parameters: the student's accuracy.
    pub accuracy: f64,
    /// Accuracy on the test images, with the parameters of the last step.
    pub accuracy_raw: f64,
    /// The student, with averaged parameters.
    pub classifier: Classifier,
}

/// Trains a student on the images `pool`, the labels `labelled` (index in the pool, label) and nothing else.
///
/// The number of classes is that of `test`, whose labels serve for accuracy only. `streams` is this student's own
/// family. With `resume` the training goes on after the checkpoint's last epoch and ends with the same bits as without
/// the interruption. `on_epoch` sees every epoch and may save a checkpoint; its error ends the training. All work is
/// done on the calling thread.
///
/// # Errors
/// [`StudentError`]: bad settings, data that do not fit, a checkpoint of another training, a loss that is not finite,
/// or the error of `on_epoch`.
pub fn train<E>(
    config: &PseudoLabelsConfig,
    pool: Images<'_>,
    labelled: &[(usize, u8)],
    test: &Split,
    streams: &Streams,
    resume: Option<Checkpoint<PseudoLabelsMetrics>>,
    on_epoch: &mut dyn FnMut(&PseudoLabelsReport<'_>) -> Result<(), E>,
) -> Result<PseudoLabelsOutcome, StudentError<E>> {
    config.check().map_err(StudentError::Config)?;
    check_data(config.batch, pool, labelled, test).map_err(StudentError::Data)?;
    let identity = identity(config, pool, test.classes(), labelled, streams);
    let mut workspace = Workspace::default();
    let mut state = State::new(config, pool, test.classes(), streams).map_err(StudentError::Data)?;
    if let Some(checkpoint) = resume {
        state.restore(identity, checkpoint).map_err(StudentError::Checkpoint)?;
    }

    let done = u32::try_from(state.metrics.len()).unwrap_or(u32::MAX);
    for epoch in done + 1..=config.epochs {
        let start = Instant::now();
        let metrics = run_epoch(config, pool, labelled, test, epoch, streams, &mut state, &mut workspace)?;
        let metrics = PseudoLabelsMetrics { seconds: start.elapsed().as_secs_f64(), ..metrics };
        state.metrics.push(metrics);
        on_epoch(&PseudoLabelsReport { state: &state, identity, metrics }).map_err(StudentError::Report)?;
    }

    let classifier = state.averaged();
    Ok(PseudoLabelsOutcome {
        accuracy: accuracy(&classifier, test, &mut workspace),
        accuracy_raw: accuracy(&state.network, test, &mut workspace),
        classifier,
        metrics: state.metrics,
    })
}

/// Labels the pool, does all steps of one epoch, and evaluates. The metrics lack the time.
#[expect(clippy::too_many_arguments, reason = "a training and where it stands")]
fn run_epoch<E>(
    config: &PseudoLabelsConfig,
    pool: Images<'_>,
    labelled: &[(usize, u8)],
    test: &Split,
    epoch: u32,
    streams: &Streams,
    state: &mut State,
    workspace: &mut Workspace,
) -> Result<PseudoLabelsMetrics, StudentError<E>> {
    let mut stream = streams.stream("epoch", u64::from(epoch));
    let lesson = if epoch <= config.warmup_epochs {
        Lesson::of_labels(labelled, test.classes())
    } else {
        let teacher = state.averaged();
        let views = Some((&config.weak, &mut stream));
        Lesson::of_pool(config, probabilities(&teacher, pool, views, workspace), labelled)
    };

    let steps = pool.len() / config.batch;
    let mut batches = Batches::new(config, pool, labelled, &lesson);
    let mut sums = [0.0; 2];
    for step in 0..steps {
        let done = (f64::from(epoch - 1) + step as f64 / steps as f64) / f64::from(config.epochs);
        batches.next(config.labelled_weight(done), &mut workspace.batch, &mut stream);
        let losses = state.step(config, done, workspace, &mut stream);
        for (sum, loss) in sums.iter_mut().zip(losses) {
            if !loss.is_finite() {
                return Err(StudentError::NotFinite { network: "classifier", loss, epoch, step: step + 1 });
            }
            *sum += loss;
        }
    }

    let evaluate = epoch.is_multiple_of(config.evaluate_every) || epoch == config.epochs;
    let mut accuracy_of = |network: &Classifier| evaluate.then(|| accuracy(network, test, workspace));
    Ok(PseudoLabelsMetrics {
        epoch,
        labelled_loss: sums[0] / steps as f64,
        unlabelled_loss: sums[1] / steps as f64,
        confident: lesson.confident.len() as f64 / pool.len() as f64,
        disputed: lesson.disputed,
        accuracy_raw: accuracy_of(&state.network),
        accuracy_average: accuracy_of(&state.averaged()),
        seconds: 0.0,
    })
}

impl Classifier {
    /// The most probable class of every image.
    ///
    /// # Panics
    /// When the images are not of this network's size.
    #[must_use]
    pub fn predict(&self, images: Images<'_>) -> Vec<u8> {
        assert_eq!(images.shape(), self.shape(), "size of the images");
        let probabilities = probabilities(self, images, None, &mut Workspace::default());
        (0..images.len()).map(|image| most_probable(probabilities.row(image)).0).collect()
    }
}

fn accuracy(network: &Classifier, test: &Split, workspace: &mut Workspace) -> f64 {
    let probabilities = probabilities(network, Images::of(test), None, workspace);
    let right = (0..test.len()).filter(|&image| most_probable(probabilities.row(image)).0 == test.label(image)).count();
    right as f64 / test.len() as f64
}
