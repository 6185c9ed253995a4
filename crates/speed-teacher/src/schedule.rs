//! The learning rate of every step.

use crate::{Schedule, TeacherConfig};

/// Passes over the partition between two drops of the staircase, as in the published code.
const DECAY_EPOCHS: f64 = 350.0;

/// Returns the learning rate at `step` (from 0) of a teacher that trains on `images` images.
///
/// The staircase multiplies the rate by 0.1 after every `floor(350 * images / batch)` steps, as in the paper's
/// published code, which drops every 350 epochs of the partition.
pub(crate) fn learning_rate(config: &TeacherConfig, images: usize, step: usize) -> f64 {
    let first = config.learning_rate;
    match config.schedule {
        Schedule::Constant => first,
        Schedule::Cosine => {
            let done = step as f64 / config.steps as f64;
            first * 0.5 * (1.0 + libm::cos(std::f64::consts::PI * done))
        }
        Schedule::Staircase => {
            let drop_after = DECAY_EPOCHS * images as f64 / config.batch as f64;
            first * 0.1_f64.powf((step as f64 / drop_after.floor().max(1.0)).floor())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::small;

    fn rates<const N: usize>(schedule: Schedule, steps: [usize; N]) -> [f64; N] {
        let config = TeacherConfig { schedule, learning_rate: 0.5, steps: 100, batch: 128, ..small() };
        steps.map(|step| learning_rate(&config, 240, step))
    }

    #[test]
    fn schedules_have_their_shapes() {
        let close = |found: &[f64], expected: &[f64]| found.iter().zip(expected).all(|(f, e)| (f - e).abs() < 1e-12);
        assert_eq!(rates(Schedule::Constant, [0, 50, 99]), [0.5; 3]);
        assert!(close(&rates(Schedule::Cosine, [0, 50, 100]), &[0.5, 0.25, 0.0]));
        // 350 epochs of 240 images in batches of 128 are 656.25 steps.
        assert!(close(&rates(Schedule::Staircase, [0, 655, 656, 1311, 1312]), &[0.5, 0.5, 0.05, 0.05, 0.005]));
    }
}
