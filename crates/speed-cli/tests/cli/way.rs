//! The way of one organisation and of the student: teachers on folders of pictures, votes, labels, a model, predictions.

use std::fs;
use std::path::Path;

use image::{GrayImage, Luma};
use serde_json::Value;

use crate::cli::bad_input::npy;
use crate::cli::common::{Line as _, Workplace, entries};

/// Settings of a quick training that learns bars from frames.
const QUICK: &str = "--set teacher.shift=1";

/// Writes a picture of 16 x 16 pixels: class 0 is dark above and bright below, class 1 the reverse, class 2 is grey. Its
/// number changes all levels a little.
pub(crate) fn picture(path: &Path, class: usize, number: u8) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
    let level = |y: u32| match (class, y < 8) {
        (0, true) | (1, false) => 20 + number,
        (2, _) => 120 + number,
        _ => 230 - number,
    };
    GrayImage::from_fn(16, 16, |x, y| Luma([level(y) + (x % 3) as u8])).save(path).expect("a picture");
}

pub(crate) const CLASSES: [&str; 3] = ["down", "flat", "up"];

/// The classes of the pictures in the order of their names: up is dark above.
fn drawn(name: &str) -> usize {
    ["up", "down", "flat"].iter().position(|class| *class == name).expect("a class")
}

/// Three organisations with twelve patients of two pictures each, thirty public pictures, and a test folder.
pub(crate) fn place() -> Workplace {
    let place = Workplace::new("");
    for organisation in ["north", "east", "south"] {
        for patient in 0..12_u8 {
            let class = CLASSES[usize::from(patient) % 3];
            for eye in ["left", "right"] {
                let name = format!("{organisation}/{class}/{patient:02}_{eye}.png");
                picture(&place.path(&name), drawn(class), 2 * patient + u8::from(eye == "left"));
            }
        }
    }
    // With this key no part of the tests is empty.
    secret(&place.path("division.key"), &"5".repeat(64));
    for number in 0..30_u8 {
        picture(&place.path(&format!("public/{number:02}.png")), drawn(CLASSES[usize::from(number) % 3]), number);
    }
    for number in 0..9_u8 {
        let class = CLASSES[usize::from(number) % 3];
        picture(&place.path(&format!("test/{class}/{number}.png")), drawn(class), 3 * number);
    }
    place
}

/// Writes a file that only its owner may read.
pub(crate) fn secret(path: &Path, text: &str) {
    fs::write(path, text).expect("a file");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("a mode");
    }
}

pub(crate) fn train(images: &str, out: &str, more: &str) -> String {
    format!("teacher train --grey --seed 5 --epochs 40 --images {images} --out {out} {QUICK} {more}")
}

/// The numbers of the classes that a file of votes names, and -1 for an empty vote.
fn labels(votes: &str) -> Vec<i16> {
    let number = |line: &str| {
        let label = line.rsplit(',').next().expect("a label");
        CLASSES.iter().position(|class| *class == label).map_or(-1, |number| number as i16)
    };
    votes.lines().skip(1).map(number).collect()
}

#[test]
fn folders_of_pictures_become_a_model_with_predictions() {
    let place = place();
    for organisation in ["north", "east", "south"] {
        let out = format!("{organisation}.safetensors");
        let text = place.succeeds(&train(organisation, &out, "--patients prefix:_"));
        assert!(text.contains("24 images of 1x16x16 of 12 patients") && text.contains("all classes"), "{text}");
    }
    // The same seed gives the same bytes, and --threads changes nothing.
    place.succeeds(&train("north", "again.safetensors", "--patients prefix:_ --threads 1 --quiet"));
    let bytes = |name: &str| place.bytes(name);
    assert_eq!(bytes("north.safetensors"), bytes("again.safetensors"));

    let report = place.json("student queries --pool public --count 12 --seed 3 --out queries.csv --json");
    assert_eq!(report, serde_json::json!({ "schema": 1, "seed": 3, "queries": 12, "images": 12, "pool_images": 30 }));
    for name in ["north", "east", "south"] {
        let vote = "teacher vote --images public --query-list queries.csv";
        place.succeeds(&format!("{vote} --model {name}.safetensors --out {name}.csv"));
    }
    let queries = place.read("queries.csv");
    let votes = place.read("north.csv");
    let names: Vec<&str> = votes.lines().skip(1).map(|line| line.split(',').next().expect("a name")).collect();
    assert_eq!(names, queries.lines().skip(1).collect::<Vec<_>>(), "the order of the list");

    let votes = "--votes north.csv east.csv south.csv";
    let count = "student plurality --query-list queries.csv --classes down,flat,up --out labels.csv";
    assert!(place.succeeds(&format!("{count} {votes}")).starts_with("NOT PRIVATE"));

    let student = "student train --pool public --labels labels.csv --query-list queries.csv";
    let student = format!("{student} --grey --seed 1 --epochs");
    let text = place.succeeds(&format!("{student} 40 --test test --out student.safetensors"));
    assert!(text.contains("12 labels for 30 images, 0 queries without an answer"), "{text}");
    let short = format!("{student} 2 --test test --out short.safetensors");
    place.warns(&short, &["test: 3 of 9 images are in the pool too"]);
    let text = place.succeeds(&format!("{student} 2 --classes down,flat,up --out same.safetensors"));
    assert!(text.contains("accuracy unknown"), "{text}");
    assert_eq!(bytes("short.safetensors"), bytes("same.safetensors"), "test images do not change a student");

    let predicted = place.json("predict --model student.safetensors test --format json --quiet");
    assert_eq!(predicted["class_names"], serde_json::json!(CLASSES));
    let all = predicted["predictions"].as_array().expect("predictions");
    let right = all.iter().filter(|prediction| {
        let class = prediction["label"].as_str().expect("a name");
        prediction["image"].as_str().expect("a path").contains(&format!("/{class}/"))
    });
    assert_eq!((all.len(), right.count()), (9, 9));
}

#[test]
fn parts_are_teachers_of_their_own_and_patients_stay_together() {
    let place = place();
    let parts = train("north", "parts", "--parts 3 --patients prefix:_ --validation 0.3 --json");
    let report = place.json(&[&parts.words()[..], &["--classes", "down, flat, up"]].concat());
    let teachers = report["teachers"].as_array().expect("teachers");
    let images = |key: &str| teachers.iter().map(|teacher| teacher[key].as_u64().expect("a number")).sum::<u64>();
    assert_eq!((teachers.len(), images("images") + images("validation_images")), (3, 24));
    assert!(teachers.iter().all(|teacher| teacher["images"].as_u64().is_some_and(|images| images % 2 == 0)));
    assert_eq!(report["validation"]["images"].as_u64(), Some(images("validation_images")));

    let vote = "teacher vote --model parts --images public --out";
    place.succeeds(&format!("{vote} votes.npy"));
    place.succeeds(&format!("{vote} votes"));
    let table = place.bytes("votes.npy");
    let mut files = entries(&place.path("votes"));
    files.sort();
    let rows: Vec<i16> = files.iter().flat_map(|file| labels(&fs::read_to_string(file).expect("votes"))).collect();
    // A part that lacks a class leaves votes empty.
    assert!((files.len(), rows.len()) == (3, 90) && rows.contains(&-1), "{rows:?}");
    let bytes: Vec<u8> = rows.iter().flat_map(|label| label.to_le_bytes()).collect();
    assert_eq!(table[table.len() - bytes.len()..], bytes);
    // The table is one of teachers x queries, as the accountant reads it.
    let account = "account --votes votes.npy --form labels --classes 3 --gamma 0.5 --delta 1e-5";
    assert!(place.succeeds(&account).contains("3 teachers, 30 queries, 3 classes"));
    place.fails(&format!("{vote} votes.csv"), 3, &["votes.csv", "3 models"]);
}

#[test]
fn onnx_models_vote_as_the_teachers_that_they_come_from() {
    let place = place();
    place.succeeds(&train("north", "north.safetensors", "--quiet"));
    let vote = |model: &str, out: &str, more: &str| format!("teacher vote --images public --out {out} {model} {more}");
    let fails = |line: String, code, words: &[&str]| place.fails(&line, code, words);
    place.succeeds(&vote("--model north.safetensors", "own.csv", ""));
    fs::create_dir(place.path("models")).expect("a folder");
    for pixels in ["uint8", "float"] {
        let model = format!("models/{pixels}.onnx");
        place.succeeds(&format!("export --model north.safetensors --out {model} --pixels {pixels} --quiet"));
        let out = format!("{pixels}.csv");
        place.succeeds(&vote(&format!("--onnx {model}"), &out, "--classes down,flat,up"));
        assert_eq!(place.read(&out), place.read("own.csv"));
    }
    let text = place.succeeds(&vote("--onnx models", "both.npy", "--threads 1"));
    assert!(text.contains("2 models voted on 30 images of 3 classes"), "{text}");
    let both = place.bytes("both.npy");
    let own: Vec<u8> = labels(&place.read("own.csv")).into_iter().map(|label| label as u8).collect();
    assert_eq!(both[both.len() - 60..], own.repeat(2));

    let model = "--onnx models/float.onnx";
    fails(vote(model, "out.csv", "--classes up,flat,down"), 3, &["float.onnx", "up, flat, down", "down, flat, up"]);
    fails(vote(model, "out.csv", "--model north.safetensors"), 2, &["--model"]);
    for (only_onnx, name) in [("--fit", "--fit"), ("--classes down,flat,up", "--classes")] {
        fails(vote("--model north.safetensors", "out.csv", only_onnx), 2, &["--model", name]);
    }
    fails(vote("--onnx public", "out.csv", ""), 3, &["*.onnx"]);
    let bytes = place.bytes("models/float.onnx");
    // A file whose only field is a version has no graph.
    for (name, bytes, words) in [
        ("cut.onnx", &bytes[..bytes.len() / 2], "expected a model in ONNX's format"),
        ("version.onnx", &[8, 7], "no graph"),
    ] {
        place.write(name, bytes);
        fails(vote(&format!("--onnx {name}"), "out.csv", ""), 3, &[name, words]);
    }
    GrayImage::from_pixel(20, 20, Luma([9])).save(place.path("public/00.png")).expect("a picture");
    fails(vote(model, "out.csv", ""), 3, &["00.png", "expected an image of 1x16x16, found 1x20x20"]);
    assert!(!place.path("out.csv").exists());
    place.succeeds(&vote(model, "out.csv", "--fit"));
}

#[test]
fn labels_without_an_answer_are_skipped_and_positions_name_queries() {
    let place = place();
    let label = |query: usize| if query % 5 == 4 { String::new() } else { (query % 3).to_string() };
    let labels: String = (0..30).map(|query| format!("{query},{}\n", label(query))).collect();
    place.write("labels.csv", format!("query,label\n{labels}"));
    let train = "student train --pool public --labels labels.csv --grey --classes 0,1,2";
    let train = format!("{train} --epochs 1 --out model.safetensors");
    let report = place.json(&format!("{train} --json"));
    assert_eq!((&report["labelled"], &report["unanswered"]), (&24.into(), &6.into()));
    assert_eq!((&report["test"], &report["method"]), (&Value::Null, &"pseudo-labels".into()));
    assert!(report["seed"].is_u64() && report["pool"]["agreement"].is_f64());
    place.fails(&train, 4, &["model-card.json", "never overwritten"]);
    for (labels, words) in [
        ("query,label\n30,0\n", "line 2: expected a query from 0 to 29, found \"30\""),
        ("query,label\n0,3\n", "line 2: expected a class (0, 1, 2) or no label, found \"3\""),
        ("query,label\n0,x\n", "found \"x\""),
        ("query,label\n0,\n", "at least one query with a label"),
        ("name,label\nno.png,1\n", "\"no.png\""),
        ("query,answer\n0,1\n", "expected a column label"),
    ] {
        place.write("labels.csv", labels);
        place.fails(&train.replace("model.safetensors", "other"), 3, &["labels.csv", words]);
    }
    assert!(!place.path("other").exists());
}

#[test]
fn wrong_inputs_are_refused_by_name() {
    let place = place();
    place.write("patients.csv", "file,group\n00_left.png,1\n");
    let parts = "--parts 13 --classes down,flat,up --patients prefix:_";
    let refused = |more: &str, code, words: &[&str]| place.fails(&train("north", "model", more), code, words);
    for (more, code, words) in [
        ("--classes down,flat", 3, ["north/up", "down, flat"]),
        ("--patients prefix:-", 3, ["left.png", "\"-\""]),
        ("--patients patients.csv", 3, ["patients.csv", "expected a column patient, found file, group"]),
        ("--patients dicom", 3, [".png", "expected a DICOM file with a patient id"]),
        ("--patients prefix:", 2, ["--patients", "found none"]),
        ("--parts 2", 2, ["`--classes`", "needed with --parts"]),
        (parts, 3, ["of 13 has no image to train on", "12 patients"]),
        ("--validation 1", 2, ["--validation", ""]),
        ("--set teacher.architecture=large", 2, ["teacher.architecture", ""]),
        ("--set student.method=gan", 2, ["student.method", "[teacher]"]),
        ("--size 8x8", 2, ["too small", ""]),
    ] {
        refused(more, code, &words);
    }
    secret(&place.path("division.key"), "no key");
    refused(parts, 3, &["division.key", "64 hexadecimal digits"]);
    GrayImage::new(20, 16).save(place.path("north/up/odd.png")).expect("a picture");
    refused("", 3, &["odd.png", "16x20"]);
    // Folders 1, 2, 3 would be the classes 0, 1, 2, and so would the votes of a model for them.
    for (number, class) in CLASSES.iter().enumerate() {
        place.rename(&format!("south/{class}"), &format!("south/{}", number + 1));
    }
    place.fails(&train("south", "model", ""), 2, &["the class 1 would have the number 0", "--classes 1,2,3"]);
    place.succeeds(&train("south", "numbered", "--classes 1,2,3 --set teacher.steps=1"));
    fs::create_dir(place.path("empty")).expect("a folder");
    place.fails(&train("empty", "model", ""), 3, &["empty", "2 to 256 classes, found 0"]);
    place.fails(&train("missing", "model", ""), 3, &["missing"]);
    npy(&place.path("images.npy"), "2, 16, 16", &[0; 512]);
    place.fails("teacher train --images images.npy --out model", 2, &["--labels"]);
    assert!(!place.path("model").exists());

    place.succeeds(&train("east", "model", "--quiet"));
    let bytes = place.bytes("model");
    place.write("cut", &bytes[..bytes.len() - 5]);
    place.write("list.csv", "name\n00.png\nabsent.png\n");
    for (model, words) in [
        ("cut", ["cut", "truncated"]),
        ("public", ["public", "*.safetensors"]),
        ("model --query-list list.csv", ["list.csv", "\"absent.png\""]),
    ] {
        place.fails(&format!("teacher vote --images public --out votes.csv --model {model}"), 3, &words);
    }
}

#[test]
fn the_example_has_the_folders_of_the_guide() {
    let place = Workplace::new("");
    place.succeeds("data example --out trial");
    for organisation in ["north", "east", "south"] {
        let classes = entries(&place.path(&format!("trial/{organisation}")));
        assert_eq!(classes.iter().map(|class| entries(class).len()).sum::<usize>(), 600);
    }
    assert_eq!(entries(&place.path("trial/public")).len(), 400);
    let image = image::open(place.path("trial/public/0000.png")).expect("a picture").to_luma8();
    assert_eq!(image.dimensions(), (24, 24));
    // The margin that was cut off is empty, so the digit's borders are too.
    assert!(image.pixels().any(|pixel| pixel.0[0] > 200));
    place.fails("data example --out trial", 4, &["trial", "never overwritten"]);
}
