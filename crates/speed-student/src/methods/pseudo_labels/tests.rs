//! Trainings of small students on pseudo-labels.

use speed_data::ImageShape;

use super::{PseudoLabelsConfig, PseudoLabelsConstants};
use crate::test_support::{Data, run};
use crate::{StudentConfig, StudentMethod};

#[test]
fn the_student_learns_and_disputes_the_wrong_label() {
    let pseudo_labels = PseudoLabelsConfig {
        epochs: 20,
        warmup_epochs: 4,
        label_epochs: 8,
        labelled_batch: 8,
        batch: 20,
        learning_rate: 0.005,
        constants: PseudoLabelsConstants {
            average_rate: 0.05,
            convolutions: vec![6],
            kernel: 3,
            hidden: 16,
            ..Default::default()
        },
        ..PseudoLabelsConfig::default()
    };
    let config = StudentConfig { epoch_images: 0, evaluate_every: 2, pseudo_labels, ..StudentConfig::default() };
    let mut data = Data::new(ImageShape { channels: 3, height: 10, width: 12 }, 200, 100);
    data.labelled[5].1 = 2;
    let outcome = run(StudentMethod::PSEUDO_LABELS, &config, &data, 1, None).0.expect("a training");
    let last = outcome.metrics.last().expect("twenty epochs");
    assert!(outcome.accuracy > Some(0.9), "{last:?}");
    assert_eq!(StudentMethod::PSEUDO_LABELS.measures(), ["labelled_loss", "unlabelled_loss", "confident", "disputed"]);
    let [labelled_loss, _, confident, disputed] = last.measures[..] else { panic!("{last:?}") };
    assert!(confident > Some(0.5) && outcome.metrics[3].measures[2] == Some(0.0), "{last:?}");
    assert!(disputed.is_some_and(|disputed| (disputed - 1.0 / 12.0).abs() < 1e-9), "{last:?}");
    assert_eq!(labelled_loss, Some(0.0), "given labels have no weight any more");
    assert!(outcome.samples.is_none());
}
