//! The student on pseudo-labels.

use speed_student::Images as Unlabelled;
use speed_student::pseudo_labels::{
    PseudoLabelsMetrics, PseudoLabelsOutcome, PseudoLabelsReport, train as train_student,
};

use super::record::{Trained, metrics_csv};
use super::session::Session;
use crate::error::ExperimentError;

pub(super) fn train(session: &mut Session<'_>) -> Result<Trained, ExperimentError> {
    let (images, device) = (session.images(), session.device());
    let (config, labelled, streams, resume) =
        (&session.config().pseudo_labels, session.labelled(), session.streams(), session.resume());
    let mut on_epoch = |report: &PseudoLabelsReport<'_>| {
        let metrics = report.metrics();
        session.epoch_done(metrics.epoch, metrics.accuracy_average, || report.checkpoint())
    };
    let pool = Unlabelled::of(&images.pool);
    let outcome = train_student(config, pool, &labelled, &images.test, &streams, device, resume, &mut on_epoch)
        .map_err(|error| session.error(error))?;
    Ok(Trained {
        accuracy: outcome.accuracy,
        accuracy_raw: outcome.accuracy_raw,
        metrics_csv: metrics(&outcome),
        picture: None,
    })
}

fn metrics(outcome: &PseudoLabelsOutcome) -> String {
    let head = [
        "epoch",
        "labelled_loss",
        "unlabelled_loss",
        "confident",
        "disputed",
        "accuracy_raw",
        "accuracy_average",
        "seconds",
    ];
    let line = |m: &PseudoLabelsMetrics| {
        [
            Some(f64::from(m.epoch)),
            Some(m.labelled_loss),
            Some(m.unlabelled_loss),
            Some(m.confident),
            Some(m.disputed),
            m.accuracy_raw,
            m.accuracy_average,
            Some((1e3 * m.seconds).round() / 1e3),
        ]
    };
    metrics_csv(head, outcome.metrics.iter().map(line))
}
