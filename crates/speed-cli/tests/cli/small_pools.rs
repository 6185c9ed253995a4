//! Small pools: default trainings are as long as on MNIST, and batches repeat images.

use std::fs;

use serde_json::Value;

use crate::cli::common::Workplace;

/// True labels instead of votes, and one student with the default settings of its method.
const SMALL: &str = r#"
name = "small-pool"
seed = 1

[data]
train_images = 10
test_images = 1400
pool_images = 400

[ensemble]
teachers = 1

[votes]
source = "truth"

[queries]
count = 40

[noise]
source = "simulation"

[student]
method = "pseudo-labels"

[table]
repeats = 1

[[row]]
name = "true labels"
aggregation = "non-private"
"#;

/// Options for networks that train in a moment.
const TINY_NETWORKS: [&str; 12] = [
    "--set",
    "student.pseudo_labels.convolutions=[3]",
    "--set",
    "student.pseudo_labels.hidden=8",
    "--set",
    "student.generator=[8]",
    "--set",
    "student.discriminator=[12, 8]",
    "--set",
    "student.convolutional.channels=[2]",
    "--set",
    "student.convolutional.generator=[4]",
];

fn student_mean(report: &str) -> f64 {
    let report: Value = serde_json::from_str(report).expect("JSON");
    report["rows"][0]["student_mean"].as_f64().expect("an accuracy")
}

#[test]
#[ignore = "minutes; .ci/nightly students"]
fn the_default_student_of_400_images_is_trained_as_long_as_one_of_9000() {
    let place = Workplace::new(SMALL);
    let accuracy = student_mean(&place.succeeds(&["run", "config.toml", "--json"]));
    // With 80 steps, two for each pass over the pool, the accuracy was below 0.6.
    assert!(accuracy > 0.85, "{accuracy}");
}

#[test]
fn pools_smaller_than_a_batch_are_trained_on() {
    let place = Workplace::new(SMALL);
    for (pool, labels) in [("30", "12"), ("1", "1")] {
        let size = [format!("data.pool_images={pool}"), format!("queries.count={labels}")];
        for method in ["pseudo-labels", "gan", "conv-gan"] {
            let method = format!("student.method={method}");
            let mut run = vec!["run", "config.toml", "--json", "--set", &size[0], "--set", &size[1], "--set", &method];
            run.extend(TINY_NETWORKS);
            // One epoch of the default length, and one pass over a pool that is smaller than a batch.
            for length in [
                ["student.epoch_images=9000", "student.pseudo_labels.epoch_images=9000"],
                ["student.epoch_images=0", "student.pseudo_labels.epoch_images=0"],
            ] {
                let mut run = run.clone();
                for set in ["student.epochs=1", length[0], "student.pseudo_labels.epochs=2", length[1]] {
                    run.extend(["--set", set]);
                }
                run.extend(["--set", "student.pseudo_labels.warmup_epochs=1"]);
                assert!((0.0..=1.0).contains(&student_mean(&place.succeeds(&run))), "{run:?}");
            }
        }
    }
}

#[test]
fn a_resolved_config_says_how_long_an_epoch_is_and_is_the_same_run() {
    let place = Workplace::new(SMALL);
    let plan = |file: &str| -> Value {
        serde_json::from_str(&place.succeeds(&["run", file, "--dry-run", "--json"])).expect("JSON")
    };
    let first = plan("config.toml");
    let student = &first["config"]["student"];
    assert_eq!(student["pseudo_labels"]["epoch_images"], 9000, "{student}");
    assert!(student.get("epoch_images").is_none(), "the GAN's, which no student reads: {student}");
    assert_eq!(first["students"], serde_json::json!([{"method": "pseudo-labels", "epochs": 40, "steps_an_epoch": 56}]));
    // A config that sets epochs without the key counts passes over the pool.
    let text = fs::read_to_string(place.path("config.toml")).expect("a config");
    fs::write(place.path("passes.toml"), format!("{text}[student.pseudo_labels]\nepochs = 40\n")).expect("written");
    let passes = plan("passes.toml");
    assert!(passes["config"]["student"]["pseudo_labels"].get("epoch_images").is_none(), "{passes}");
    assert_eq!(passes["students"][0]["steps_an_epoch"], 2);
    let text = place.succeeds(&["run", "config.toml", "--dry-run"]);
    assert!(text.contains("# students by pseudo-labels: 40 epochs of 56 steps"), "{text}");
    // The resolved config has the same run id.
    let resolved = text.split("\n# folder: ").next().expect("a config").to_owned();
    fs::write(place.path("resolved.toml"), resolved).expect("written");
    assert_eq!(plan("resolved.toml")["folder"], first["folder"]);
}
