//! Results by class and baselines: report, tables and page, with the names of the classes.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::cli::bad_input::{bands, npy};
use crate::cli::common::{Workplace, contains, entries, has, read_json};
use crate::cli::own_images;
use crate::cli::pages::check_alone;
use crate::cli::predict::{students, text};

/// Arrays of a bright row at one of three places, true labels instead of votes, and one small student.
pub(crate) const ARRAYS: &str = r#"
name = "arrays"
seed = 1
data = { source = "arrays", folder = "arrays", pool_images = 30 }
ensemble = { teachers = 1 }
votes = { source = "truth" }
queries = { count = 9 }
student.method = "pseudo-labels"
student.epoch_images = 60
student.pseudo_labels = { epochs = 3, warmup_epochs = 1, label_epochs = 2, batch = 15, labelled_batch = 6 }
table = { repeats = 1 }
row = [
    { name = "true labels", aggregation = "non-private" },
]
"#;

fn arrays() -> Workplace {
    let place = Workplace::new(ARRAYS);
    let labels: Vec<u8> = (0..60).map(|image| image % 3).collect();
    ["train", "test"].iter().for_each(|half| bands(&place, half, &labels, 3));
    place
}

fn text_of(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn lines(path: &Path) -> Vec<Vec<String>> {
    text_of(path).lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

#[test]
fn results_by_class_have_the_names_of_folders_and_the_accuracy_of_the_students() {
    let place = own_images::finished();
    let report = own_images::report(&place);
    assert_eq!(report["classes"], json!(["bar", "beam", "frame"]));
    let folder = place.run_folder("results", "shapes");
    let tables = folder.join("tables");
    let of_students = lines(&tables.join("classes.csv"));
    assert_eq!(of_students[0][..4], ["row", "repeat", "class", "images"]);
    for row in report["rows"].as_array().expect("rows") {
        let (result, student) = (&row["classification"], &row["students"][0]);
        has(result, &json!({ "images": 30, "accuracy": student["accuracy"] }));
        let saved = folder.join("stages").join(student["stage"].as_str().expect("a stage")).join("classes.json");
        assert_eq!(&read_json(&saved), result);
        let own: Vec<&Vec<String>> = of_students.iter().filter(|line| row["name"] == line[0]).collect();
        assert_eq!(own.iter().map(|line| &*line[2]).collect::<Vec<_>>(), ["bar", "beam", "frame"]);
        for (class, line) in result["classes"].as_array().expect("classes").iter().zip(own) {
            let counts = ["images", "right"].map(|key| class[key].as_u64().expect("a count"));
            assert_eq!([&line[3], &line[4]], [&counts[0].to_string(), &counts[1].to_string()]);
        }
    }
    let matrix = lines(&tables.join("confusion.csv"));
    assert_eq!(matrix[0], ["row", "repeat", "true \\ predicted", "bar", "beam", "frame"]);
    let first = matrix[1..4].iter().flat_map(|line| &line[3..]);
    assert_eq!(first.map(|count| count.parse::<u64>().expect("a count")).sum::<u64>(), 30);

    // The page has the names in results and queries.
    let page = text_of(&tables.join("report.html"));
    check_alone(&page);
    contains(&page, &["Results by class", "Confusion matrix", "<span title=\"frame\">frame</span>"]);
    assert!(["bar", "beam", "frame"].iter().any(|name| page.contains(&format!("true <strong>{name}"))));
    assert_eq!(place.succeeds("show shapes --html"), page, "shown from the report alone");

    // Results by class that do not fit together, or do not have the student's accuracy, are refused.
    let path = tables.join("report.json");
    let mut changed = report.clone();
    let count = &mut changed["rows"][0]["classification"]["confusion"][0][0];
    *count = json!(count.as_u64().expect("a count") + 1);
    fs::write(&path, changed.to_string()).expect("a report");
    place.fails("show shapes", 4, &["report.json", "of the confusion matrix, found others"]);
    let mut changed = report.clone();
    changed["rows"][0]["students"][0]["accuracy"] = json!(0.123);
    fs::write(&path, changed.to_string()).expect("a report");
    place.fails("show shapes", 4, &["report.json", "results by class with the first student's accuracy 0.123"]);
    // The run writes the report again, and trains nothing.
    let again = place.json("run config.toml --json");
    assert_eq!((&again["rows"], &again["stage_times"]), (&report["rows"], &report["stage_times"]));
}

#[test]
fn baselines_are_measured_on_the_same_images_and_only_if_asked() {
    let place = own_images::finished();
    let report = own_images::report(&place);
    let rows = report["rows"].as_array().expect("rows");
    for row in rows {
        let spreading = &row["baselines"]["label_spreading"];
        let counts = ["images", "right"].map(|key| spreading[key].as_f64().expect("a count"));
        assert_eq!((counts[0], &spreading["accuracy"]), (30.0, &json!(counts[1] / counts[0])), "{spreading}");
        let alone = row["baselines"]["labelled_only"].as_array().expect("students");
        assert_eq!(alone.len(), 1);
        assert_ne!(alone[0]["stage"], row["students"][0]["stage"]);
    }
    // All rows have the same labels, and two of them different methods.
    assert_eq!(rows[0]["baselines"]["label_spreading"], rows[1]["baselines"]["label_spreading"]);
    assert_ne!(rows[0]["baselines"]["labelled_only"], rows[1]["baselines"]["labelled_only"]);
    // Chance is one third, and bars and frames are easy to tell apart.
    assert!(report["ensemble"]["test_accuracy"].as_f64().is_some_and(|mean| mean > 0.4), "{}", report["ensemble"]);
    let folder = place.run_folder("results", "shapes");
    let table = lines(&folder.join("tables/baselines.csv"));
    let names: Vec<[&str; 2]> = table.iter().map(|line| [&*line[0], &*line[1]]).collect();
    let of_row = |row| ["student", "labelled images alone", "label spreading"].map(|name| [row, name]);
    let expected = [vec![["row", "classifier"]], [of_row("GAN"), of_row("conv GAN"), of_row("ours")].concat()];
    assert_eq!(names, [expected.concat(), vec![["", "mean teacher"]]].concat());
    let page = text_of(&folder.join("tables/report.html"));
    assert!(page.contains("label spreading") && page.contains("mean teacher"), "not in the page");
    // Only students of rows are kept as models.
    let stages = entries(&folder.join("stages")).into_iter();
    let baselines: Vec<_> = stages.filter(|path| path.to_string_lossy().contains("baseline-labelled")).collect();
    assert_eq!(baselines.len(), 3);
    assert!(baselines.iter().all(|path| !path.join("student.safetensors").exists()));

    // Without baselines it is another run, which takes the same students, and whose report does not have them.
    let plain = place.json("run config.toml --json --set table.baselines=false");
    assert_ne!(plain["run"], report["run"]);
    assert!(plain["rows"][0].get("baselines").is_none() && plain["ensemble"].get("test_accuracy").is_none());
    assert_eq!(plain["rows"][2]["students"], rows[2]["students"], "the students are the same");
    let plain = folder.with_file_name(plain["run"].as_str().expect("an id"));
    assert!(!plain.join("tables/baselines.csv").exists());
}

#[test]
fn classes_of_arrays_have_the_names_of_the_config() {
    let place = arrays();
    let named = r#"data.classes=["top", "<b>middle</b>", "bottom"]"#;
    let report = place.json(&["run", "config.toml", "--json", "--set", named]);
    let folder = place.run_folder("results", "arrays");
    assert_eq!(report["rows"][0]["classification"]["classes"][1]["name"], "<b>middle</b>");
    let page = text_of(&folder.join("tables/report.html"));
    check_alone(&page);
    assert!(page.contains("&lt;b&gt;middle&lt;/b&gt;") && !page.contains("<b>middle"), "names are escaped");
    let (model, _) = students(&folder).pop_first().expect("a student");
    let model = text(&model);
    npy(&place.path("image.npy"), "1, 16, 16", &[0; 256]);
    let predicted = place.succeeds(&format!("predict --model {model} image.npy --format json"));
    assert!(predicted.contains("\"bottom\""), "{predicted}");

    // Without names, classes have their numbers, and the run is another one.
    let plain = place.json("run config.toml --json --results plain");
    assert_eq!(plain["classes"], json!(["0", "1", "2"]));
    assert_ne!(plain["run"], report["run"]);
    assert!(plain["config"]["data"].get("classes").is_none());
}

#[test]
fn names_that_are_not_those_of_the_classes_are_refused() {
    let place = arrays();
    let fails = |names: &str, code: i32, words: &[&str]| {
        place.fails(&["run", "config.toml", "--set", &format!("data.classes={names}")], code, words);
    };
    fails(r#"["a", "b"]"#, 3, &["data.classes", "expected the names of 3 classes", "found 2"]);
    fails(&format!(r#"["{}", "b", "c"]"#, "x".repeat(1025)), 2, &["data.classes", "at most 1024 bytes", "1025"]);
}
