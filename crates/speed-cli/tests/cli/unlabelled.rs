//! Runs on public images without true labels: everything that needs them is absent.

use std::fs;

use image::GrayImage;
use serde_json::json;

use crate::cli::common::{Workplace, has, read_json};
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
    let unknown = json!({ "label_accuracy": null });
    let ensemble = json!({ "teachers": 3, "mean_accuracy": null, "plurality_accuracy": null });
    has(&report, &json!({ "ensemble": ensemble, "rows": [unknown, unknown] }));
    assert!(report["rows"].as_array().is_some_and(|rows| rows.iter().all(|row| row["student_mean"].is_number())));
    let run = place.run_folder("results", "unlabelled");
    let read = |file: &str| fs::read_to_string(run.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    assert_eq!(read_json(&run.join("tables/queries.json")).get("truth"), None);
    assert!(!read("tables/table.md").contains("labels %"), "{}", read("tables/table.md"));
    let data = read_json(&run.join("stages/data/data.json"));
    has(&data, &json!({ "pool": { "images": 45 }, "test": { "images": 75 } }));
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
fn public_pictures_that_do_not_fit_are_refused_or_told() {
    let place = place();
    let fails = |set: &str, words: &[&str]| place.fails(&format!("run config.toml --set {set}"), 3, words);
    fails("data.pool_images=46", &["data.pool_images = 46", "45 public images"]);
    let said = place.says("run config.toml --stage teachers --set data.pool_images=44");
    assert!(said.contains("the last 1 public images are not used"), "{said}");
    GrayImage::new(5, 5).save(place.path("shapes/public/odd.png")).expect("a picture");
    fails("seed=6", &["odd.png", "24x18"]);
    fs::remove_dir_all(place.path("shapes/public")).expect("a folder");
    fails("seed=6", &["public"]);
}
