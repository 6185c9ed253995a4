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
student.pseudo_labels = { epochs = 4, epoch_images = 600, warmup_epochs = 2, label_epochs = 3 }
table = { repeats = 1 }
row = [
    { name = "clear text", aggregation = "trusted" },
    { name = "encrypted", aggregation = "encrypted", queries = 4 },
    { name = "first ten", aggregation = "trusted", queries = 10 },
]
"#;

fn stage(run: &Path, name: &str, file: &str) -> String {
    let path = run.join("stages").join(name).join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The images of every group.
fn groups(run: &Path) -> BTreeMap<usize, Vec<usize>> {
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for line in stage(run, "queries", "groups.csv").lines().skip(1) {
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
        let record: Value =
            serde_json::from_str(&stage(&run, &format!("aggregate-{row}"), "aggregate.json")).expect("json");
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
        serde_json::from_str(&stage(&run, "beliefs", "beliefs.json")).expect("beliefs");
    assert_eq!(rows.values().map(Vec::len).collect::<Vec<_>>(), [15, 4, 10]);
    let beliefs: Vec<&Value> = rows.values().flatten().collect();
    assert!(beliefs.iter().all(|belief| (0.0..1.0).contains(&belief["doubt"].as_f64().expect("a doubt"))));
}

/// Threads, and a run that is divided and resumed, do not change a byte.
#[test]
fn shards_share_the_labelling_of_groups_and_typical_images_are_single_queries_of_the_same_clusters() {
    let place = Workplace::new(&GROUPS.replace("encrypted", "trusted"));
    let set = "--set table.repeats=0";
    let run = |arguments: &str| place.succeeds(&format!("run config.toml {arguments} {set}"));
    run("--results whole --threads 1");
    run("--results parts --stage queries");
    // The run does the units of the other shard.
    run("--results parts --stage aggregate --shard 1/2");
    run("--results parts");
    let whole = place.run_folder("whole", "groups");
    assert_eq!(determined(&whole), determined(&place.run_folder("parts", "groups")));
    run("--results single --set queries.groups=false --set queries.beliefs=false");
    let single = place.run_folder("single", "groups");
    let typical = |run: &Path| fs::read(run.join("stages/queries/queries.npy")).expect("queries");
    assert_eq!(typical(&single), typical(&whole));
    assert!(!single.join("stages/queries/groups.csv").exists() && !single.join("stages/beliefs").exists());
}

#[test]
fn impossible_groups_and_maps_are_refused() {
    let place = Workplace::new(&GROUPS.replace("encrypted", "trusted"));
    let fails =
        |keys: &[&str], code, words: &[&str]| place.fails(&format!("run config.toml{}", sets(keys)), code, words);
    fails(&["queries.selection=random"], 2, &["queries.groups", "clusters"]);
    fails(&["data.pool=train"], 2, &["data.pool", "data.test_images"]);
    fails(&["queries.features=curved"], 2, &["queries.features", "straightened"]);
    let none = ["data.source=none", "votes.source=uniform", "table.repeats=0"];
    fails(&[&none[..], &["queries.beliefs=false"]].concat(), 2, &["queries.selection", "no images"]);
    fails(&[&none[..], &["queries.selection=first", "queries.groups=false"]].concat(), 2, &["queries.beliefs"]);
    fails(&["data.source=none", "table.repeats=0"], 2, &["votes.source"]);

    // Histograms do not say which teacher gave which label.
    let counts: Vec<u8> =
        (0..600).flat_map(|image| (0..10).map(move |class| 60 * u8::from(image % 10 == class))).collect();
    npy(&place.path("counts.npy"), "600, 10", &counts);
    fails(&["votes.source=file", "votes.file=counts.npy"], 3, &["counts.npy", "queries.groups", "teachers x pool"]);
    let single = ["votes.source=file", "votes.file=counts.npy", "queries.groups=false", "table.repeats=0"];
    place.succeeds(&format!("run config.toml{}", sets(&single)));
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
    let data: Value = serde_json::from_str(&stage(&folder, "data", "data.json")).expect("json");
    let images = |part: &str| data[part]["images"].as_u64();
    assert_eq!([images("train"), images("pool"), images("test")], [Some(30), Some(60), Some(30)]);
    // All images of a class are equal, so the nearest one has the right label.
    let quality: Value = serde_json::from_str(&stage(&folder, "votes", "ensemble.json")).expect("json");
    assert_eq!(quality["mean_accuracy"].as_f64(), Some(1.0));
    let more = run.replace("data.pool_images=60", "data.pool_images=90");
    place.fails(&more, 3, &["data.pool_images = 90", "90 training"]);
}
