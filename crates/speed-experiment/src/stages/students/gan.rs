//! The paper's student.

use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder};
use speed_student::{EpochReport, Images as Unlabelled, StudentOutcome};

use super::Session;
use super::outcome::{Trained, csv};
use crate::ExperimentError;
use crate::stages::Images;

pub(super) fn train(session: &mut Session<'_>, images: &Images) -> Result<Trained, ExperimentError> {
    let (config, labelled, streams, resume) =
        (session.config(), session.labelled(), session.streams(), session.resume());
    let mut on_epoch = |report: &EpochReport<'_>| {
        let metrics = report.metrics();
        session.epoch_done(metrics.epoch, metrics.accuracy_average, || report.checkpoint())
    };
    let pool = Unlabelled::of(&images.pool);
    let outcome = speed_student::train(config, pool, &labelled, &images.test, &streams, resume, &mut on_epoch)
        .map_err(|error| session.error(error))?;
    trained(&outcome)
}

/// What a student of this method leaves.
pub(super) fn trained(outcome: &StudentOutcome) -> Result<Trained, ExperimentError> {
    Ok(Trained {
        accuracy: outcome.accuracy,
        accuracy_raw: outcome.accuracy_raw,
        metrics_csv: metrics_csv(outcome),
        picture: Some(("digits.png", png(outcome)?)),
    })
}

fn metrics_csv(outcome: &StudentOutcome) -> String {
    let head = [
        "epoch",
        "discriminator_loss",
        "generator_loss",
        "accuracy_raw",
        "accuracy_average",
        "accuracy_reference_average",
        "seconds",
    ];
    let line = |m: &speed_student::EpochMetrics| {
        [
            Some(f64::from(m.epoch)),
            Some(m.discriminator_loss),
            Some(m.generator_loss),
            m.accuracy_raw,
            m.accuracy_average,
            m.accuracy_reference_average,
            Some((1e3 * m.seconds).round() / 1e3),
        ]
    };
    csv(head, outcome.metrics.iter().map(line))
}

/// The generated images, ten in a row, as a PNG file.
fn png(outcome: &StudentOutcome) -> Result<Vec<u8>, ExperimentError> {
    let grid = outcome.samples.grid(10);
    let color = if grid.channels == 3 { ExtendedColorType::Rgb8 } else { ExtendedColorType::L8 };
    let size = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    let mut bytes = Vec::new();
    PngEncoder::new(&mut bytes)
        .write_image(&grid.pixels, size(grid.width), size(grid.height), color)
        .map_err(|error| ExperimentError::Mismatch(format!("generated images cannot be drawn: {error}")))?;
    Ok(bytes)
}
