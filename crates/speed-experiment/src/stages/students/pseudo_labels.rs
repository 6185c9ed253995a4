//! The student on pseudo-labels.

use speed_student::Images as Unlabelled;
use speed_student::pseudo_labels::{
    PseudoLabelsMetrics, PseudoLabelsOutcome, PseudoLabelsReport, train as train_student,
};

use super::Session;
use super::outcome::{Trained, csv};
use crate::ExperimentError;
use crate::stages::Images;

pub(super) fn train(session: &mut Session<'_>, images: &Images) -> Result<Trained, ExperimentError> {
    let (config, labelled, streams, resume) =
        (&session.config().pseudo_labels, session.labelled(), session.streams(), session.resume());
    let mut on_epoch = |report: &PseudoLabelsReport<'_>| {
        let metrics = report.metrics();
        session.epoch_done(metrics.epoch, metrics.accuracy_average, || report.checkpoint())
    };
    let pool = Unlabelled::of(&images.pool);
    let outcome = train_student(config, pool, &labelled, &images.test, &streams, resume, &mut on_epoch)
        .map_err(|error| session.error(error))?;
    Ok(Trained {
        accuracy: outcome.accuracy,
        accuracy_raw: outcome.accuracy_raw,
        metrics_csv: metrics_csv(&outcome),
        picture: None,
    })
}

fn metrics_csv(outcome: &PseudoLabelsOutcome) -> String {
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
    csv(head, outcome.metrics.iter().map(line))
}
