//! `speed predict`: the accuracy of a run's table, from the run's own model files; and refusals.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use image::{Rgb, RgbImage};
use serde_json::Value;
use speed_core::random::Streams;
use speed_data::Split;
use speed_data::digits::{DigitsConfig, generate};

use crate::bad_input::npy;
use crate::common::{TINY, Workplace, models};
use crate::own_images;

/// The name of the file of a student's model.
pub(crate) const MODEL: &str = "student.safetensors";

/// The public digits of [`TINY`]: a pool of 100 images, and 50 test images.
pub(crate) fn digits() -> Split {
    generate(DigitsConfig { train: 300, test: 150 }, &Streams::new(3)).test
}

/// Writes images as an array of images x channels x height x width.
pub(crate) fn write(path: &Path, images: &Split) {
    let pixels: Vec<u8> = (0..images.len()).flat_map(|image| images.pixels(image).to_vec()).collect();
    npy(path, &format!("{}, 1, 28, 28", images.len()), &pixels);
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

/// Returns the predicted classes of some images.
fn classes(place: &Workplace, model: &Path, images: &str) -> Vec<u64> {
    let json = place.succeeds(&["predict", "--model", text(model), images, "--format", "json", "--quiet"]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let predictions = json["predictions"].as_array().expect("predictions");
    predictions.iter().map(|prediction| prediction["class"].as_u64().expect("a class")).collect()
}

/// Returns the directories of the students of a run, with their accuracies.
pub(crate) fn students(run: &Path) -> BTreeMap<PathBuf, f64> {
    let stages = fs::read_dir(run.join("stages")).expect("stages").map(|stage| stage.expect("an entry").path());
    let accuracy = |stage: PathBuf| {
        let student: Value = serde_json::from_slice(&fs::read(stage.join("student.json")).ok()?).expect("JSON");
        Some((stage, student["accuracy"].as_f64().expect("an accuracy")))
    };
    stages.filter_map(accuracy).collect()
}

#[test]
fn kept_students_have_the_accuracy_of_the_table_and_teachers_give_their_votes() {
    let place = Workplace::new(TINY);
    place.succeeds(&["run", "config.toml"]);
    let run = place.run_folder("results", "tiny");
    let all = digits();
    let (pool, test) = (all.slice(0..100), all.slice(100..150));
    write(&place.path("test.npy"), &test);
    write(&place.path("pool.npy"), &pool);

    let students = students(&run);
    assert_eq!(models(&run).len(), students.len());
    for (stage, accuracy) in &students {
        let found = classes(&place, &stage.join(MODEL), "test.npy");
        let right = found.iter().zip(test.labels()).filter(|(found, label)| **found == u64::from(**label)).count();
        assert_eq!(right as f64 / 50.0, *accuracy, "{}", stage.display());
        let record: Value =
            serde_json::from_slice(&fs::read(stage.join("stage.json")).expect("a record")).expect("JSON");
        assert!(record["checked"][MODEL].is_string(), "{record}");
        let page = fs::read_to_string(run.join("tables/report.html")).expect("a page");
        let name = stage.file_name().expect("a name").to_string_lossy();
        assert!(page.contains(&format!("stages/{name}/{MODEL}")), "{name}");
    }

    let votes = fs::read(run.join("stages/votes/votes.npy")).expect("votes");
    let votes = &votes[votes.len() - 5 * 100..];
    for teacher in [0, 3] {
        let found = classes(&place, &run.join(format!("stages/teachers/teacher-000{teacher}.bin")), "pool.npy");
        let expected: Vec<u64> =
            votes[100 * teacher..100 * (teacher + 1)].iter().map(|vote| u64::from(*vote)).collect();
        assert_eq!(found, expected, "teacher {teacher}");
    }
}

#[test]
fn students_are_not_kept_if_the_config_says_so() {
    let place = Workplace::new(&TINY.replace("repeats = 2\n", "repeats = 1\nkeep_students = false\n"));
    place.succeeds(&["run", "config.toml"]);
    let run = place.run_folder("results", "tiny");
    assert!(!students(&run).is_empty());
    assert!(models(&run).is_empty());
    let page = fs::read_to_string(run.join("tables/report.html")).expect("a page");
    assert!(!page.contains(MODEL));
    // The config knows the images of its teachers.
    write(&place.path("pool.npy"), &digits().slice(0..100));
    assert_eq!(classes(&place, &run.join("stages/teachers/teacher-0000.bin"), "pool.npy").len(), 100);
}

/// A finished run of one student on pseudo-labels.
pub(crate) fn one_student() -> (Workplace, PathBuf) {
    let start = TINY.split("[[row]]").next().expect("a start").replace("repeats = 2", "repeats = 1");
    let row = "[[row]]\nname = \"ours\"\naggregation = \"non-private\"\nstudent = \"pseudo-labels\"\n";
    let place = Workplace::new(&format!("{start}{row}"));
    place.succeeds(&["run", "config.toml"]);
    let model = students(&place.run_folder("results", "tiny")).into_keys().next().expect("a student").join(MODEL);
    (place, model)
}

#[test]
fn predictions_have_every_format() {
    let (place, model) = one_student();
    let model = text(&model);
    write(&place.path("three.npy"), &digits().slice(100..103));
    let predict = |more: &[&str]| place.succeeds(&[&["predict", "--model", model, "three.npy"], more].concat());
    let table = predict(&[]);
    assert!(table.starts_with("SIMULATION") && table.contains("three.npy[2]"), "{table}");
    let csv = predict(&["--format", "csv"]);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!((lines.len(), lines[0]), (4, "image,class,label,p(0),p(1),p(2),p(3),p(4),p(5),p(6),p(7),p(8),p(9)"));
    for line in &lines[1..] {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells[1], cells[2], "digits are called by their numbers");
        let sum: f64 = cells[3..].iter().map(|cell| cell.parse::<f64>().expect("a probability")).sum();
        assert!((sum - 1.0).abs() < 1e-5, "{line}");
    }
    let json: Value = serde_json::from_str(&predict(&["--format", "json"])).expect("JSON");
    assert_eq!((&json["kind"], &json["simulation"]), (&"student".into(), &true.into()));
    assert_eq!(json["predictions"][1]["image"], "three.npy[1]");
    assert_eq!(predict(&["--format", "npy", "--out", "probabilities.npy"]), "");
    let array = fs::read(place.path("probabilities.npy")).expect("an array");
    let values: Vec<f32> =
        array[array.len() - 4 * 30..].as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)).collect();
    for (image, values) in values.chunks_exact(10).enumerate() {
        let expected = json["predictions"][image]["probabilities"].as_array().expect("probabilities");
        for (value, expected) in values.iter().zip(expected) {
            assert!((f64::from(*value) - expected.as_f64().expect("a number")).abs() < 1e-7);
        }
    }
}

#[test]
fn wrong_models_and_images_are_refused_by_name() {
    let (place, model) = one_student();
    write(&place.path("good.npy"), &digits().slice(0..2));
    let bytes = fs::read(&model).expect("a model");
    let with = |model: &str, images: &str, code, words: &[&str]| {
        place.fails(&["predict", "--model", model, images], code, words);
    };
    for (name, bytes, words) in [
        ("foreign.safetensors", b"no model of any kind".to_vec(), "expected a model of speed"),
        ("empty.safetensors", Vec::new(), "expected a model of speed"),
        ("cut.safetensors", bytes[..bytes.len() - 1].to_vec(), "truncated"),
        ("changed.safetensors", [&bytes[..bytes.len() - 1], &[bytes[bytes.len() - 1] ^ 1]].concat(), "checksum"),
        ("teacher-0000.bin", b"speed teacher 1\n".to_vec(), "in its run's folder"),
    ] {
        fs::write(place.path(name), bytes).expect("a file");
        with(name, "good.npy", 3, &[name, words]);
    }
    with("missing.safetensors", "good.npy", 3, &["missing.safetensors", "cannot read the model"]);
    with(".", "good.npy", 3, &["not a regular file"]);
    let model = text(&model);
    with(model, "missing.npy", 3, &["missing.npy", "cannot read the images"]);
    with(model, "missing.png", 3, &["missing.png"]);
    fs::create_dir(place.path("empty")).expect("a folder");
    with(model, "empty", 3, &["empty", "expected PNG or JPEG pictures"]);
    npy(&place.path("small.npy"), "1, 1, 20, 28", &[0; 560]);
    with(model, "small.npy", 3, &["small.npy", "image 0: expected an image of 1x28x28, found 1x20x28"]);
    RgbImage::from_pixel(28, 28, Rgb([1, 2, 3])).save(place.path("colour.png")).expect("a picture");
    with(model, "colour.png", 3, &["colour.png", "found 3x28x28"]);
    place.fails(&["predict", "--model", model], 2, &["IMAGES"]);
    let json = ["predict", "--model", "missing.safetensors", "good.npy", "--format", "json"];
    place.fails(&json, 3, &["\"kind\":\"input\""]);
}

#[test]
fn pictures_of_folders_get_the_names_of_their_classes() {
    let place = own_images::place();
    let sets = ["--set", "row.0.aggregation=trusted", "--set", "data.size=20x18"];
    place.succeeds(&[&["run", "config.toml"], &sets[..]].concat());
    let run = place.run_folder("results", "shapes");
    let model =
        students(&run).into_keys().find(|stage| text(stage).contains("pseudo-labels")).expect("ours").join(MODEL);
    let json = ["predict", "--model", text(&model), "shapes/test", "--format", "json"];
    let json: Value = serde_json::from_str(&place.succeeds(&json)).expect("JSON");
    assert_eq!(json["class_names"], serde_json::json!(["bar", "beam", "frame"]));
    let predictions = json["predictions"].as_array().expect("predictions");
    assert_eq!(predictions.len(), 75);
    let right = predictions.iter().filter(|prediction| {
        let class = prediction["label"].as_str().expect("a name");
        prediction["image"].as_str().expect("a path").contains(&format!("/{class}/"))
    });
    // Chance is a third.
    assert!(right.count() > 30);
    // Any size and colours are changed as in the training.
    RgbImage::from_pixel(70, 50, Rgb([90, 90, 90])).save(place.path("large.png")).expect("a picture");
    place.succeeds(&["predict", "--model", text(&model), "large.png"]);
}
