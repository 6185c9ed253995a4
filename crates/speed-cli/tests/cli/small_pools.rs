//! A small pool: the default training is as long as on MNIST.

use crate::cli::common::Workplace;

/// True labels instead of votes, and one student with the default settings of its method.
const SMALL: &str = r#"
name = "small-pool"
seed = 1
data = { train_images = 10, test_images = 1400, pool_images = 400 }
ensemble = { teachers = 1 }
votes = { source = "truth" }
queries = { count = 40 }
noise = { source = "simulation" }
student = { method = "pseudo-labels" }
table = { repeats = 1 }
row = [
    { name = "true labels", aggregation = "non-private" },
]
"#;

#[test]
#[ignore = "minutes; .ci/nightly students"]
fn the_default_student_of_400_images_is_trained_as_long_as_one_of_9000() {
    let place = Workplace::new(SMALL);
    let report = place.json("run config.toml --json");
    let accuracy = report["rows"][0]["student_mean"].as_f64().expect("an accuracy");
    // With 80 steps, two for each pass over the pool, the accuracy was below 0.6.
    assert!(accuracy > 0.85, "{accuracy}");
}
