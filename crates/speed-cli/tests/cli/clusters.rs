//! Queries that are clusters of the pool, groups of images, teachers that vote by nearest images, and beliefs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::cli::bad_input::{bands, npy};
use crate::cli::common::{Workplace, determined, read_json, sets};

/// Sixty teachers of 30 built-in digits each, who label twelve groups of images, and one small student.
const GROUPS: &str = r#"
name = "groups"
seed = 2
arithmetic = "portable"
data = { train_images = 1800, test_images = 700, pool_images = 600 }
ensemble = { teachers = 60 }
votes = { source = "neighbours" }
queries = { count = 15, selection = "clusters", groups = true, beliefs = true }
noise = { mechanism = "binomial", coins = 2, source = "simulation" }
student.method = "pseudo-labels"
student.epoch_images = 600
student.pseudo_labels = { epochs = 4, warmup_epochs = 2, label_epochs = 3 }
table = { repeats = 1 }
row = [
    { name = "clear text", aggregation = "trusted" },
    { name = "encrypted", aggregation = "encrypted", queries = 4 },
    { name = "first ten", aggregation = "trusted", queries = 10 },
]
"#;

fn groups(run: &Path) -> BTreeMap<usize, Vec<usize>> {
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for line in fs::read_to_string(run.join("stages/queries/groups.csv")).expect("groups").lines().skip(1) {
        let (query, image) = line.split_once(',').expect("two columns");
        groups.entry(query.parse().expect("a query")).or_default().push(image.parse().expect("an image"));
    }
    groups
}

#[test]
fn teachers_label_groups_and_the_student_learns_from_all_their_images() {
    let place = Workplace::new(GROUPS);
    place.succeeds("run config.toml --results one");
    let run = place.run_folder("one", "groups");
    let groups = groups(&run);
    assert_eq!(groups.len(), 15);
    let images: BTreeSet<usize> = groups.values().flatten().copied().collect();
    assert_eq!(images.len(), groups.values().map(Vec::len).sum::<usize>(), "an image in two groups");

    // Encrypted labels equal those in clear text, and a prefix of the queries has the same labels.
    let labels = |row: &str| -> Vec<Value> {
        let record = read_json(&run.join(format!("stages/aggregate-{row}/aggregate.json")));
        record["labels"].as_array().expect("labels").clone()
    };
    assert_eq!(labels("encrypted")[..], labels("clear-text")[..4]);
    assert_eq!(labels("first-ten")[..], labels("clear-text")[..10]);
    let report = read_json(&run.join("tables/table.json"));
    let rows = report["rows"].as_array().expect("rows");
    // The row's label is right if it is the most frequent class of the group. Built-in digits form clear clusters.
    assert!(rows[0]["label_accuracy"].as_f64().expect("a share") > 0.8, "{rows:?}");

    // Every image of an answered group is a labelled image of the student, with a doubt.
    let rows: BTreeMap<usize, Vec<Value>> =
        serde_json::from_value(read_json(&run.join("stages/beliefs/beliefs.json"))).expect("beliefs");
    assert_eq!(rows.values().map(Vec::len).collect::<Vec<_>>(), [15, 4, 10]);
    let beliefs: Vec<&Value> = rows.values().flatten().collect();
    assert!(beliefs.iter().all(|belief| (0.0..1.0).contains(&belief["doubt"].as_f64().expect("a doubt"))));
}

/// Neither threads nor shards change a byte.
#[test]
fn shards_share_the_labelling_of_groups_and_typical_images_are_single_queries_of_the_same_clusters() {
    let place = Workplace::new(&GROUPS.replace("encrypted", "trusted"));
    let run = |more: &str| place.succeeds(&format!("run config.toml --set table.repeats=0 {more}"));
    run("--results whole --threads 1");
    run("--results parts --stage queries");
    // The last command does the units of the other shard.
    run("--results parts --stage aggregate --shard 1/2");
    run("--results parts");
    run("--results single --set queries.groups=false --set queries.beliefs=false");
    let [whole, parts, single] = ["whole", "parts", "single"].map(|results| place.run_folder(results, "groups"));
    assert_eq!(determined(&whole), determined(&parts));
    let typical = |run: &Path| fs::read(run.join("stages/queries/queries.npy")).expect("queries");
    assert_eq!(typical(&single), typical(&whole));
    assert!(!single.join("stages/queries/groups.csv").exists() && !single.join("stages/beliefs").exists());
}

#[test]
fn histograms_have_no_votes_on_groups() {
    let place = Workplace::new(&GROUPS.replace("encrypted", "trusted"));
    // Histograms do not say which teacher gave which label.
    let counts: Vec<u8> =
        (0..600).flat_map(|image| (0..10).map(move |class| 60 * u8::from(image % 10 == class))).collect();
    npy(&place.path("counts.npy"), "600, 10", &counts);
    let run = "run config.toml --set votes.source=file --set votes.file=counts.npy";
    place.fails(run, 3, &["counts.npy", "queries.groups", "teachers x pool"]);
    place.succeeds(&format!("{run} --set queries.groups=false --set table.repeats=0"));
}

#[test]
fn a_pool_of_training_images_leaves_the_test_images_to_the_student() {
    let place = Workplace::new(GROUPS);
    let labels: Vec<u8> = (0..90).map(|image| image % 3).collect();
    bands(&place, "train", &labels, 3);
    bands(&place, "test", &labels[..30], 3);
    let keys =
        ["data.source=arrays", "data.folder=arrays", "data.pool=train", "data.pool_images=60", "ensemble.teachers=5"];
    let more = ["queries.selection=first", "queries.groups=false", "queries.beliefs=false", "queries.features=pixels"];
    let run = format!("run config.toml --stage votes{}", sets(&[&keys[..], &more].concat()));
    place.succeeds(&run);
    let folder = place.run_folder("results", "groups");
    let parts = [("train", 30), ("pool", 60), ("test", 30)];
    let data = read_json(&folder.join("stages/data/data.json"));
    parts.iter().for_each(|(part, images)| assert_eq!(data[part]["images"], *images));
    // All images of a class are equal, so the nearest one has the right label.
    assert_eq!(read_json(&folder.join("stages/votes/ensemble.json"))["mean_accuracy"], 1.0);
    let more = run.replace("data.pool_images=60", "data.pool_images=90");
    place.fails(&more, 3, &["data.pool_images = 90", "90 training"]);
}
