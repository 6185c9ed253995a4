//! True labels instead of votes: the results of students with correct labels.

use std::fs;

use crate::cli::common::Workplace;

const TRUTH: &str = r#"
name = "truth"
seed = 3
data = { train_images = 10, test_images = 150, pool_images = 100 }
ensemble = { teachers = 2 }
votes = { source = "truth" }
queries = { count = 23, selection = "balanced" }
table = { repeats = 0 }
row = [
    { name = "Non-private", aggregation = "non-private" },
]
"#;

#[test]
fn balanced_queries_have_equally_many_true_labels_per_class() {
    let place = Workplace::new(TRUTH);
    place.succeeds("run config.toml --results one");
    let run = place.run_folder("one", "truth");
    let read = |file: &str| fs::read_to_string(run.join(file)).expect(file);
    let mut counts = [0; 10];
    for line in read("stages/aggregate-non-private/labels.csv").lines().skip(1) {
        let label: usize = line.rsplit(',').next().and_then(|label| label.parse().ok()).expect("a label");
        counts[label] += 1;
    }
    assert_eq!(counts, [3, 3, 3, 2, 2, 2, 2, 2, 2, 2]);
    let aggregate: serde_json::Value =
        serde_json::from_str(&read("stages/aggregate-non-private/aggregate.json")).expect("json");
    assert_eq!(aggregate["label_accuracy"], 1.0);
    let report = read("tables/report.md");
    assert!(report.contains("True labels of") && !report.contains("teachers ("), "{report}");

    place.succeeds("run config.toml --results two --set seed=4");
    let other = place.run_folder("two", "truth").join("stages/queries/queries.npy");
    assert_ne!(fs::read(run.join("stages/queries/queries.npy")).expect("queries"), fs::read(other).expect("queries"));
    place.fails("run config.toml --set queries.count=100", 3, &["balanced", "100 queries of 10 classes"]);
}
