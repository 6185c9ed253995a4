//! The training of one student.

use std::time::Instant;

use speed_data::Split;
use speed_random::Streams;

use super::network::Classifier;
use super::state::{Batches, Lesson, State, Workspace, probabilities};
use super::targets::most_probable;
use super::{PseudoLabelsConfig, PseudoLabelsMetrics};
use crate::{Images, StudentError};

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

/// Trains.
pub fn train<E>(
    config: &PseudoLabelsConfig,
    pool: Images<'_>,
    labelled: &[(usize, u8)],
    test: &Split,
    streams: &Streams,
    on_epoch: &mut dyn FnMut(&PseudoLabelsMetrics) -> Result<(), E>,
) -> Result<PseudoLabelsOutcome, StudentError<E>> {
    let classes = test.classes();
    let network =
        Classifier::new(config, pool.shape(), classes, &mut streams.stream("weights", 0)).expect("large enough");
    let mut state = State::new(config, network);
    let mut workspace = Workspace::default();
    let mut teacher = None;
    let graph = (config.graph_epochs > 0).then(|| super::graph::spread(pool, labelled, classes));
    let steps = (pool.len() / config.batch).max(1);
    for epoch in 1..=config.epochs {
        let start = Instant::now();
        let mut stream = streams.stream("epoch", u64::from(epoch));
        let lesson = if epoch <= config.warmup_epochs {
            Lesson::of_labels(labelled, classes)
        } else {
            let since = epoch - 1 - config.warmup_epochs;
            if config.rounds == 0 || since > config.rounds * config.round_epochs {
                teacher = Some(state.averaged());
            } else if since % config.round_epochs == 0 {
                teacher = Some(state.averaged());
                let network =
                    Classifier::new(config, pool.shape(), classes, &mut streams.stream("weights", u64::from(epoch)))
                        .expect("large enough");
                let metrics = std::mem::take(&mut state.metrics);
                state = State::new(config, network);
                state.metrics = metrics;
            }
            let graph = graph.as_ref().filter(|_| epoch <= config.graph_epochs);
            Lesson::of_pool(config, teacher.as_ref().unwrap(), graph, pool, labelled, &mut workspace, &mut stream)
        };
        let mut batches = Batches::new(config, pool, labelled, &lesson);
        let mut sums = [0.0; 2];
        for step in 0..steps {
            let done = (f64::from(epoch - 1) + step as f64 / steps as f64) / f64::from(config.epochs);
            let labelled = batches.next(config.labelled_weight(done), &mut workspace, &mut stream);
            let losses = state.step(config, labelled, done, &mut workspace, &mut stream);
            for (sum, loss) in sums.iter_mut().zip(losses) {
                if !loss.is_finite() {
                    return Err(StudentError::NotFinite { network: "student", loss, epoch, step: step + 1 });
                }
                *sum += loss / steps as f64;
            }
        }
        let evaluate = epoch % config.evaluate_every == 0 || epoch == config.epochs;
        let metrics = PseudoLabelsMetrics {
            epoch,
            labelled_loss: sums[0],
            unlabelled_loss: sums[1],
            confident: lesson.confident() as f64 / pool.len() as f64,
            disputed: lesson.disputed,
            accuracy_raw: evaluate.then(|| accuracy(&state.network, test, &mut workspace)),
            accuracy_average: evaluate.then(|| accuracy(&state.averaged(), test, &mut workspace)),
            seconds: start.elapsed().as_secs_f64(),
        };
        state.metrics.push(metrics);
        on_epoch(&metrics).map_err(StudentError::Report)?;
    }
    let classifier = state.averaged();
    Ok(PseudoLabelsOutcome {
        accuracy: accuracy(&classifier, test, &mut workspace),
        accuracy_raw: accuracy(&state.network, test, &mut workspace),
        classifier,
        metrics: state.metrics,
    })
}

impl Classifier {
    /// The most probable class of every image.
    #[must_use]
    pub fn predict(&self, images: Images<'_>) -> Vec<u8> {
        let probabilities = probabilities(self, images, None, &mut Workspace::default());
        (0..images.len()).map(|image| most_probable(probabilities.row(image)).0).collect()
    }
}

fn accuracy(network: &Classifier, test: &Split, workspace: &mut Workspace) -> f64 {
    let probabilities = probabilities(network, Images::of(test), None, workspace);
    let right = (0..test.len()).filter(|&image| most_probable(probabilities.row(image)).0 == test.label(image)).count();
    right as f64 / test.len() as f64
}
