//! Runs on public images without true labels: everything that needs them is absent.

use std::fs;

use image::GrayImage;
use serde_json::Value;

use crate::cli::bad_input::npy;
use crate::cli::common::Workplace;
use crate::cli::own_images::{self, picture};

/// Labelled training and test pictures of three classes, and public pictures without folders of classes.
fn place() -> Workplace {
    let place = own_images::place();
    let (settings, _) = own_images::CONFIG.split_once("table = ").expect("a table");
    let config = settings
        .replace("name = \"shapes\"", "name = \"unlabelled\"")
        .replace("folder = \"shapes\"", "folder = \"shapes\", labels = \"none\"")
        .replace("steps = 60", "steps = 10")
        .replace("student.epochs", "student.method = \"pseudo-labels\"\nstudent.epochs")
        .replace(
            "epochs = 40, warmup_epochs = 20, label_epochs = 30",
            "epochs = 4, warmup_epochs = 2, label_epochs = 3",
        );
    let rows = ["non-private", "trusted"].map(|row| format!("[[row]]\nname = \"{row}\"\naggregation = \"{row}\"\n"));
    let config = format!("{config}[table]\nrepeats = 1\n{}", rows.concat());
    place.write("config.toml", config);
    fs::create_dir(place.path("shapes/public")).expect("a folder");
    for number in 0..45 {
        let file = place.path(&format!("shapes/public/{number}.png"));
        picture(number % 3, number as u32 / 3).save(file).expect("a picture");
    }
    place
}

#[test]
fn a_run_without_true_labels_has_no_figures_that_need_them() {
    let place = place();
    let report = place.json("run config.toml --json");
    for figure in ["mean_accuracy", "plurality_accuracy"] {
        assert!(report["ensemble"][figure].is_null(), "{}", report["ensemble"]);
    }
    assert_eq!(report["ensemble"]["teachers"], 3);
    for row in report["rows"].as_array().expect("rows") {
        assert!(row["label_accuracy"].is_null() && row["student_mean"].is_number(), "{row}");
    }
    let run = place.run_folder("results", "unlabelled");
    let read = |file: &str| fs::read_to_string(run.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let asked: Value = serde_json::from_str(&read("tables/queries.json")).expect("JSON");
    assert!(asked["truth"].is_null(), "{asked}");
    assert!(!read("tables/table.md").contains("labels %"), "{}", read("tables/table.md"));
    let data: Value = serde_json::from_str(&read("stages/data/data.json")).expect("JSON");
    assert_eq!((&data["pool"]["images"], &data["test"]["images"]), (&45.into(), &75.into()));
    // Votes have the order of the pictures' names.
    let votes = fs::read(run.join("stages/votes/votes.npy")).expect("votes");
    assert!(votes[votes.len() - 3 * 45..].iter().all(|label| *label < 3));

    // Without students, no image needs a label.
    fs::remove_dir_all(place.path("shapes/test")).expect("a folder");
    let run = "run config.toml --results other --json";
    place.fails(&run, 3, &["labelled test images", "table.repeats = 0"]);
    let report = place.json(&format!("{run} --set table.repeats=0"));
    assert!(report["rows"][0]["student_mean"].is_null(), "{report}");
    let again = fs::read(place.run_folder("other", "unlabelled").join("stages/votes/votes.npy")).expect("votes");
    assert!(votes == again, "test pictures do not change votes");
}

#[test]
fn choices_that_need_true_labels_are_refused_by_name() {
    let place = place();
    let fails = |set: &str, code, words: &[&str]| place.fails(&format!("run config.toml --set {set}"), code, words);
    fails("queries.selection=balanced", 2, &["queries.selection", "data.labels = \"none\""]);
    fails("votes.source=truth", 2, &["votes.source", "data.labels = \"none\""]);
    fails("data.labels=labels.npy", 2, &["data.labels", "\"none\""]);
    fails("data.pool_images=46", 3, &["data.pool_images = 46", "45 public images"]);
    GrayImage::new(5, 5).save(place.path("shapes/public/odd.png")).expect("a picture");
    fails("seed=6", 3, &["odd.png", "24x18"]);
    fs::remove_dir_all(place.path("shapes/public")).expect("a folder");
    fails("seed=6", 3, &["public"]);
    let digits = "run config.toml --set data.source=digits --set data.folder=";
    place.fails(&digits, 2, &["data.labels", "these images have labels"]);
}

#[test]
fn public_arrays_need_no_labels() {
    let place = Workplace::new(
        "name = \"arrays\"\n[data]\nsource = \"arrays\"\nfolder = \"arrays\"\nlabels = \"none\"\npool_images = 4\n[ensemble]\n\
         teachers = 2\n[votes]\nsource = \"uniform\"\n[queries]\ncount = 3\n[table]\nrepeats = 0\n[[row]]\nname = \"a\"\n\
         aggregation = \"non-private\"\n",
    );
    fs::create_dir(place.path("arrays")).expect("a folder");
    npy(&place.path("arrays/train_images.npy"), "4, 16, 16", &[7; 4 * 256]);
    npy(&place.path("arrays/train_labels.npy"), "4,", &[0, 1, 0, 1]);
    place.fails("run config.toml", 3, &["public_images.npy"]);
    npy(&place.path("arrays/public_images.npy"), "5, 16, 16", &[9; 5 * 256]);
    let output = place.speed("run config.toml --json");
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && words.contains("the last 1 public images are not used"), "{words}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(report["rows"][0]["label_accuracy"].is_null() && report["ensemble"]["mean_accuracy"].is_null(), "{report}");
    npy(&place.path("arrays/test_labels.npy"), "1,", &[0]);
    place.fails("run config.toml --set seed=2", 3, &["test_images.npy"]);
}
