//! `speed predict`: the accuracy of a run's table, from the run's own model files; and refusals.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use image::{Rgb, RgbImage};
use serde_json::{Value, json};
use speed_core::random::Streams;
use speed_data::digits::{DigitsConfig, generate};
use speed_data::{ImageShape, Split};
use speed_nn::onnx::small_encoder;

use crate::cli::bad_input::npy;
use crate::cli::common::{TINY, Workplace, has, models, read_json, sets};
use crate::cli::own_images;

/// The public digits of [`TINY`]: a pool of 100 images, and 50 test images.
pub(crate) fn digits() -> Split {
    generate(DigitsConfig { train: 300, test: 150 }, &Streams::new(3)).test
}

/// Writes images as an array of images x channels x height x width.
pub(crate) fn write(path: &Path, images: &Split) {
    let pixels: Vec<u8> = (0..images.len()).flat_map(|image| images.pixels(image).to_vec()).collect();
    let ImageShape { channels, height, width } = images.shape();
    npy(path, &format!("{}, {channels}, {height}, {width}", images.len()), &pixels);
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

#[track_caller]
pub(crate) fn predictions(place: &Workplace, arguments: &str) -> Vec<Value> {
    let json = place.json(&format!("predict --format json --quiet {arguments}"));
    json["predictions"].as_array().expect("predictions").clone()
}

pub(crate) fn classes(predictions: &[Value]) -> Vec<u64> {
    predictions.iter().map(|prediction| prediction["class"].as_u64().expect("a class")).collect()
}

/// Expects that these logits of ten classes have the probabilities of the predictions.
#[track_caller]
pub(crate) fn check_logits(logits: &[f32], expected: &[Value], tolerance: f64) {
    assert_eq!(logits.len(), 10 * expected.len());
    for (logits, expected) in logits.chunks_exact(10).zip(expected) {
        let sum: f64 = logits.iter().map(|&logit| f64::from(logit).exp()).sum();
        for (logit, expected) in logits.iter().zip(expected["probabilities"].as_array().expect("numbers")) {
            let probability = f64::from(*logit).exp() / sum;
            assert!((probability - expected.as_f64().expect("a number")).abs() < tolerance, "{probability} {expected}");
        }
    }
}

/// Returns the number of images whose predicted class is their label.
pub(crate) fn right(found: &[Value], images: &Split) -> usize {
    classes(found).iter().zip(images.labels()).filter(|(found, label)| **found == u64::from(**label)).count()
}

/// Returns the models of the students of a run, with the accuracies and the stages of the students.
pub(crate) fn students(run: &Path) -> BTreeMap<PathBuf, (f64, String)> {
    let report = read_json(&run.join("tables/report.json"));
    let mut students = BTreeMap::new();
    for row in report["rows"].as_array().expect("rows") {
        let name = row["name"].as_str().expect("a name").to_lowercase();
        let letters: Vec<&str> =
            name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()).collect();
        for (place, student) in row["students"].as_array().expect("students").iter().enumerate() {
            let model = run.join(format!("models/{}/student-{place}.safetensors", letters.join("-")));
            let stage = student["stage"].as_str().expect("a stage").to_owned();
            students.insert(model, (student["accuracy"].as_f64().expect("an accuracy"), stage));
        }
    }
    students
}

#[test]
fn kept_students_have_the_accuracy_of_the_table_and_teachers_give_their_votes() {
    let place = Workplace::finished(TINY);
    let run = place.run_folder("results", "tiny");
    let all = digits();
    let (pool, test) = (all.slice(0..100), all.slice(100..150));
    write(&place.path("test.npy"), &test);
    write(&place.path("pool.npy"), &pool);

    let students = students(&run);
    assert_eq!(students.len(), 4 * 2, "every row has its own models");
    assert_eq!(models(&run).len(), students.len());
    let page = fs::read_to_string(run.join("tables/report.html")).expect("a page");
    for (model, (accuracy, stage)) in &students {
        let found = predictions(&place, &format!("--model {} test.npy", text(model)));
        assert_eq!(right(&found, &test) as f64 / 50.0, *accuracy, "{}", model.display());
        let record = read_json(&run.join("stages").join(stage).join("stage.json"));
        assert!(record["checked"]["weights.safetensors"].is_string(), "{record}");
        assert!(page.contains(text(model.strip_prefix(&run).expect("a model of the run"))), "{}", model.display());
    }
    // The picture beside the models is one that all of them can classify.
    let model = students.keys().next().expect("a model");
    let example = format!("--model {} {}", text(model), text(&run.join("models/example.png")));
    assert_eq!(predictions(&place, &example).len(), 1);

    let votes = fs::read(run.join("stages/votes/votes.npy")).expect("votes");
    let votes = &votes[votes.len() - 5 * 100..];
    for teacher in [0, 3] {
        let model = run.join(format!("stages/teachers/teacher-000{teacher}.bin"));
        let found = predictions(&place, &format!("--model {} pool.npy", text(&model)));
        let expected = votes[100 * teacher..100 * (teacher + 1)].iter().map(|vote| u64::from(*vote));
        assert_eq!(classes(&found), expected.collect::<Vec<_>>(), "teacher {teacher}");
    }
}

/// Returns the metadata of a model's file, without its checksum, and its weights.
fn parts(model: &Path) -> (Value, Vec<u8>) {
    let bytes = fs::read(model).expect("a model");
    let (header, weights) = bytes[8..].split_at(u64::from_le_bytes(*bytes.first_chunk().expect("a length")) as usize);
    let header: Value = serde_json::from_slice(header).expect("a header");
    let entry = header["__metadata__"]["speed"].as_str().expect("an entry");
    (serde_json::from_str::<Value>(entry).expect("JSON")["model"].clone(), weights.to_vec())
}

#[test]
fn a_model_names_its_own_run_and_row_although_runs_and_rows_share_students() {
    let place = Workplace::finished(TINY);
    let run = |more: &str| {
        let report = place.json(&format!("run config.toml --json {more}"));
        place.path("results/tiny").join(report["run"].as_str().expect("an id"))
    };
    // The second run takes the students of the row without noise from the first, and perhaps others.
    let simulated = run("");
    let real = run("--set noise.source=operating-system");
    assert_ne!(simulated, real);
    let file = |run: &Path, row: &str| run.join(format!("models/{row}/student-0.safetensors"));
    for (folder, simulation) in [(&simulated, true), (&real, false)] {
        for (row, name, noisy) in
            [("non-private", "Non-private", false), ("trusted", "Trusted", true), ("tau-0-8", "tau = 0.8", true)]
        {
            let run = folder.file_name().expect("an id").to_str().expect("text");
            let publishable = noisy && !simulation;
            let origin = json!({ "row": name, "simulation": simulation, "run": run, "publishable": publishable });
            has(&parts(&file(folder, row)).0, &json!({ "origin": origin }));
        }
    }
    let [one, other] = [&simulated, &real].map(|run| parts(&file(run, "non-private")).1);
    assert_eq!(one, other, "the runs share a student");
    // The page that may be published does not list the models of the row without noise.
    let page = fs::read_to_string(real.join("tables/report.html")).expect("a page");
    assert!(page.contains("models/trusted/student-0") && !page.contains("models/non-private"));
    // Whoever uses the model of that row is warned.
    write(&place.path("one.npy"), &digits().slice(0..1));
    let warned = |row: &str| {
        place.says(&format!("predict --model {} one.npy", text(&file(&real, row)))).contains("do not publish it")
    };
    assert!(warned("non-private") && !warned("trusted"));
}

fn one_row() -> String {
    let start = TINY.split("[[row]]").next().expect("a start").replace("repeats = 2", "repeats = 1");
    format!("{start}[[row]]\nname = \"ours\"\naggregation = \"non-private\"\nstudent = \"pseudo-labels\"\n")
}

#[test]
fn teachers_of_a_run_classify_with_its_config() {
    let place = Workplace::new(&one_row());
    place.succeeds("run config.toml");
    let run = place.run_folder("results", "tiny");
    // The config knows the images of its teachers.
    write(&place.path("pool.npy"), &digits().slice(0..100));
    let teacher = run.join("stages/teachers/teacher-0000.bin");
    let predict = |model: &Path| format!("predict --model {} pool.npy", text(model));
    place.succeeds(&predict(&teacher));
    // Teachers that were set aside may have other settings than the run.
    fs::create_dir(run.join("stages/teachers.superseded-1")).expect("a folder");
    let aside = run.join("stages/teachers.superseded-1/teacher-0000.bin");
    fs::copy(&teacher, &aside).expect("a copy");
    place.fails(&predict(&aside), 3, &["in its run's directory"]);
    // A changed config does not describe the teachers.
    let config = fs::read_to_string(run.join("config.toml")).expect("a config");
    fs::write(run.join("config.toml"), config.replace("simulation", "operating-system")).expect("a config");
    place.fails(&predict(&teacher), 4, &["config.toml"]);
    fs::write(run.join("config.toml"), config).expect("a config");
    // A student that is trained again has a model again.
    fs::remove_dir_all(run.join("models")).expect("models");
    place.succeeds("run config.toml --force student");
    assert_eq!(models(&run).len(), 1);
}

pub(crate) fn one_student() -> (Workplace, PathBuf) {
    let place = Workplace::finished(&one_row());
    let model = students(&place.run_folder("results", "tiny")).into_keys().next().expect("a student");
    (place, model)
}

#[test]
fn predictions_have_every_format() {
    let (place, model) = one_student();
    let model = text(&model);
    write(&place.path("three.npy"), &digits().slice(100..103));
    let predict = |more: &str| place.succeeds(&format!("predict --model {model} three.npy {more}"));
    let table = predict("");
    assert!(table.starts_with("SIMULATION") && table.contains("three.npy[2]"), "{table}");
    let csv = predict("--format csv");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!((lines.len(), lines[0]), (4, "image,class,label,p(0),p(1),p(2),p(3),p(4),p(5),p(6),p(7),p(8),p(9)"));
    for line in &lines[1..] {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells[1], cells[2], "digits are called by their numbers");
        let sum: f64 = cells[3..].iter().map(|cell| cell.parse::<f64>().expect("a probability")).sum();
        assert!((sum - 1.0).abs() < 1e-5, "{line}");
    }
    let json: Value = serde_json::from_str(&predict("--format json")).expect("JSON");
    let images = [0, 1, 2].map(|image| json!({ "image": format!("three.npy[{image}]") }));
    has(&json, &json!({ "kind": "student", "simulation": true, "predictions": images }));
    assert_eq!(predict("--format npy --out probabilities.npy"), "");
    let array = place.bytes("probabilities.npy");
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
    let with = |model: &str, images: &str, words: &[&str]| {
        place.fails(&format!("predict --model {model} {images}"), 3, words);
    };
    place.write("cut.safetensors", &bytes[..bytes.len() - 1]);
    place.write("teacher-0000.bin", b"speed teacher 2\n");
    for command in ["predict good.npy", "export --out out", "export --to safetensors --out out"] {
        for (model, words) in [
            ("cut.safetensors", "truncated"),
            ("teacher-0000.bin", "in its run's directory"),
            ("missing", "cannot read the model"),
        ] {
            place.fails(&format!("{command} --model {model}"), 3, &[model, words]);
        }
    }
    assert!(!place.path("out").exists());
    with(".", "good.npy", &["not a regular file"]);
    let model = text(&model);
    with(model, "missing.npy", &["missing.npy", "cannot read the images"]);
    place.write("encoder.onnx", small_encoder());
    let words = ["encoder.onnx", "expected no encoder", "leave --encoder out"];
    with(model, "--encoder encoder.onnx good.npy", &words);
    fs::create_dir(place.path("empty")).expect("a folder");
    with(model, "empty", &["empty", "expected PNG or JPEG pictures"]);
    npy(&place.path("small.npy"), "1, 1, 20, 28", &[0; 560]);
    with(model, "small.npy", &["small.npy", "image 0: expected an image of 1x28x28, found 1x20x28"]);
    RgbImage::from_pixel(28, 28, Rgb([1, 2, 3])).save(place.path("colour.png")).expect("a picture");
    with(model, "colour.png", &["colour.png", "found 3x28x28"]);
    // No output replaces anything.
    place.write("mine", "my own file");
    std::os::unix::fs::symlink("nowhere", place.path("link")).expect("a link");
    for out in ["mine", "link", "/dev/null", ".", model] {
        place.fails(&format!("predict --model {model} good.npy --out {out}"), 4, &["exists"]);
    }
    assert_eq!(place.bytes("mine"), b"my own file");
    assert_eq!(fs::read(model).expect("a model"), bytes);
}

#[test]
fn pictures_of_folders_get_the_names_of_their_classes() {
    let place = own_images::place();
    let keys = ["row.0.aggregation=trusted", "data.size=20x18", "table.baselines=false"];
    place.succeeds(&format!("run config.toml{}", sets(&keys)));
    let run = place.run_folder("results", "shapes");
    let students = students(&run);
    let (model, _) = students.iter().find(|(_, (_, stage))| stage.contains("pseudo-labels")).expect("ours");
    let json = place.json(&format!("predict --model {} shapes/test --format json", text(model)));
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
    place.succeeds(&format!("predict --model {} large.png", text(model)));
}
