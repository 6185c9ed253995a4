//! True labels instead of votes.

use std::fs;
use std::path::Path;

use crate::cli::common::{Workplace, read_json};
use crate::cli::compare::SMALL;

#[test]
fn balanced_queries_have_equally_many_true_labels_per_class() {
    let place = Workplace::new(SMALL);
    let run = "run config.toml --set queries.selection=balanced --set queries.count=23 --set table.repeats=0 --results";
    place.succeeds(&format!("{run} one"));
    let first = place.run_folder("one", "small");
    let read = |file: &str| fs::read_to_string(first.join(file)).expect(file);
    let mut counts = [0; 10];
    for line in read("stages/aggregate-non-private/labels.csv").lines().skip(1) {
        let label: usize = line.rsplit(',').next().and_then(|label| label.parse().ok()).expect("a label");
        counts[label] += 1;
    }
    assert_eq!(counts, [3, 3, 3, 2, 2, 2, 2, 2, 2, 2]);
    assert_eq!(read_json(&first.join("stages/aggregate-non-private/aggregate.json"))["label_accuracy"], 1.0);
    let report = read("tables/report.md");
    assert!(report.contains("True labels of") && !report.contains("teachers ("), "{report}");

    place.succeeds(&format!("{run} two --set seed=4"));
    let queries = |run: &Path| fs::read(run.join("stages/queries/queries.npy")).expect("queries");
    assert_ne!(queries(&first), queries(&place.run_folder("two", "small")));
    place.fails(&format!("{run} two --set queries.count=100"), 3, &["balanced", "100 queries of 10 classes"]);
}
