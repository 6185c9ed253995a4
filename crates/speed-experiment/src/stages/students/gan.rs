//! The paper's student.

use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder};
use speed_student::Images as Unlabelled;
use speed_student::gan::{EpochReport, StudentOutcome, train as train_student};

use super::record::{Trained, metrics_csv};
use super::session::Session;
use crate::error::{ExperimentError, Mismatch};

/// The picture of generated images.
const PICTURE: &str = "digits.png";

pub(super) fn train(session: &mut Session<'_>) -> Result<Trained, ExperimentError> {
    let (images, device) = (session.images(), session.device());
    let (config, labelled, streams, resume) =
        (session.config(), session.labelled(), session.streams(), session.resume());
    let mut on_epoch = |report: &EpochReport<'_>| {
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
        picture: Some((PICTURE, png(&outcome)?)),
    })
}

fn metrics(outcome: &StudentOutcome) -> String {
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
    metrics_csv(head, outcome.metrics.iter().map(line))
}

/// Draws the generated images, ten in a row, as a PNG file.
fn png(outcome: &StudentOutcome) -> Result<Vec<u8>, ExperimentError> {
    let grid = outcome.samples.grid(10);
    let color = if grid.channels == 3 { ExtendedColorType::Rgb8 } else { ExtendedColorType::L8 };
    let size = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    let mut bytes = Vec::new();
    PngEncoder::new(&mut bytes)
        .write_image(&grid.pixels, size(grid.width), size(grid.height), color)
        .map_err(Mismatch::Picture)?;
    Ok(bytes)
}
