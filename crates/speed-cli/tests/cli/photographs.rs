//! The way of one organisation and of the student with photographs, whose vectors an encoder computes.

use std::fs;

use image::{Rgb, RgbImage};
use serde_json::{Value, json};
use speed_nn::onnx::small_encoder;

use crate::cli::common::{Workplace, entries, read_json};

const CLASSES: [&str; 3] = ["coast", "desert", "forest"];
const ORGANISATIONS: [&str; 3] = ["north", "east", "south"];
const ENCODER: &str = "--encoder encoder.onnx";

/// Writes a photograph of a size of its own: waves, dunes or trees, in colours that vary a little.
fn photograph(place: &Workplace, name: &str, class: usize, number: u32) {
    let path = place.path(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
    let shade = |x: u32, y: u32| (30 * (x * (3 + number % 4) + y * y + number) % 53) as u8;
    let colour = |x: u32, y: u32| match class {
        0 => Rgb([shade(x, y), 60 + 90 * (y / 5 % 2) as u8, 180]),
        1 => Rgb([200, 150 + shade(x, y), if y > 20 { 40 } else { 230 }]),
        _ => Rgb([20, 70 + 100 * (x / 5 % 2) as u8, shade(x, y)]),
    };
    RgbImage::from_fn(36 + number % 9, 34 + number % 7, colour).save(path).expect("a picture");
}

/// Three organisations with twenty-four photographs each, sixty public ones, and eighteen for the test.
fn place() -> Workplace {
    let place = Workplace::new("");
    place.write("encoder.onnx", small_encoder());
    for (start, organisation) in (1000..).step_by(100).zip(ORGANISATIONS) {
        for number in 0..24 {
            let class = number as usize % 3;
            photograph(&place, &format!("{organisation}/{}/{number:02}.png", CLASSES[class]), class, start + number);
        }
    }
    (0..60).for_each(|number| photograph(&place, &format!("public/{number:02}.png"), number as usize % 3, number));
    for number in 0..18 {
        let class = number as usize % 3;
        photograph(&place, &format!("test/{}/{number:02}.png", CLASSES[class]), class, 500 + number);
    }
    place
}

const QUERIES: &str = "student queries --pool public --count 6 --groups --seed 2 --json";
const VOTE: &str = "teacher vote --images public --query-list groups.csv";

fn train(organisation: &str, out: &str) -> String {
    format!("teacher train --seed 5 --images {organisation} --out {out} {ENCODER}")
}

#[test]
fn photographs_become_a_model_with_an_encoder() {
    let place = place();
    let report = place.json(&format!("{QUERIES} {ENCODER} --out groups.csv"));
    let digest = report["encoder"]["digest"].as_str().expect("a digest").to_owned();
    assert_eq!((&report["queries"], &report["pool_images"]), (&6.into(), &60.into()));
    let list = place.read("groups.csv");
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines[0], "name,group,encoder");
    assert!(lines[1..].iter().all(|line| line.ends_with(&format!(",{digest}"))), "{list}");
    // Threads change nothing.
    place.json(&format!("{QUERIES} {ENCODER} --threads 1 --out again.csv"));
    assert_eq!(list, place.read("again.csv"));

    for organisation in ORGANISATIONS {
        let (model, votes) = (format!("{organisation}.safetensors"), format!("{organisation}.csv"));
        let text = place.succeeds(&train(organisation, &model));
        assert!(text.contains("network linear") && text.contains(&digest), "{text}");
        place.succeeds(&format!("{VOTE} {ENCODER} --model {model} --out {votes}"));
    }
    // Several models share the vectors.
    let models = "--model north.safetensors east.safetensors";
    let report = place.json(&format!("{VOTE} {ENCODER} {models} --out both --json"));
    assert_eq!(report["class_names"], json!(CLASSES));
    let [one, both] = ["north.csv", "both/0000-north.csv"].map(|name| place.bytes(name));
    assert_eq!(one, both);

    let plurality = "student plurality --votes north.csv east.csv south.csv --query-list groups.csv --out labels.csv";
    place.succeeds(&format!("{plurality} --classes coast,desert,forest"));
    let student = "student train --pool public --labels labels.csv --query-list groups.csv";
    let student = format!("{student} {ENCODER} --seed 1 --test test --json");
    let report = place.json(&format!("{student} --out student.safetensors"));
    assert_eq!((&report["method"], &report["encoder"]["digest"]), (&"linear".into(), &digest.as_str().into()));
    let right = report["test"]["right"].as_u64().expect("a number");
    assert!(right >= 15, "{report}");
    let card = read_json(&place.path("student-card.json"));
    assert_eq!(card["encoder"]["digest"], digest.as_str());

    let predict = "predict --model student.safetensors test --format json --quiet";
    let predicted = place.json(&format!("{predict} {ENCODER}"));
    let all = predicted["predictions"].as_array().expect("predictions");
    let is_right = |prediction: &&Value| {
        let class = prediction["label"].as_str().expect("a name");
        prediction["image"].as_str().expect("a path").contains(&format!("/{class}/"))
    };
    assert_eq!((all.len(), all.iter().filter(is_right).count() as u64), (18, right));
    // No vectors remain.
    assert!(entries(&place.path("")).iter().all(|path| path.extension().is_none_or(|end| end != "npy")));
}

#[test]
fn teachers_with_another_encoder_are_refused_by_name() {
    let place = place();
    // Another preparation is another encoder.
    let halves = "--set features.mean=[0.5] --set features.deviation=[0.5]";
    let [own, other] = [("", "groups.csv"), (halves, "other.csv")].map(|(sets, out)| {
        let report = place.json(&format!("{QUERIES} {ENCODER} {sets} --out {out}"));
        report["encoder"]["digest"].as_str().expect("a digest").to_owned()
    });
    place.succeeds(&train("north", "north.safetensors"));
    let vote = |list: &'static str| format!("teacher vote --images public --query-list {list} --model");
    let out = "north.safetensors --out out.csv";
    let words = ["encoder.onnx", "groups in other.csv", &other, &own, "encoder of the round"];
    place.fails(&format!("{} {out} {ENCODER}", vote("other.csv")), 3, &words);
    place.fails(&format!("{} {out}", vote("groups.csv")), 3, &["north.safetensors", &own, "--encoder"]);
    place.write("noise.onnx", "not a model");
    place.fails(&format!("{} {out} --encoder noise.onnx", vote("groups.csv")), 3, &["noise.onnx", &own]);
    // A list of single pictures is a list for all encoders.
    let list = place.read("other.csv");
    let single: Vec<String> = list.lines().map(|line| line.split(',').next().expect("a name").to_owned()).collect();
    place.write("single.csv", single.join("\n"));
    place.succeeds(&format!("{} {out} {ENCODER}", vote("single.csv")));
}

#[test]
fn sizes_and_pictures_that_an_encoder_cannot_use_are_refused_by_name() {
    let place = place();
    let train = train("north", "out.safetensors");
    place.fails(&format!("{train} --size 64x64"), 3, &["encoder.onnx", "64"]);
    RgbImage::from_pixel(20, 20, Rgb([0; 3])).save(place.path("north/coast/00.png")).expect("a picture");
    place.fails(&train, 3, &["encoder.onnx", "north/coast/00.png", "not all equal"]);
    RgbImage::from_pixel(20, 7, Rgb([1, 2, 3])).save(place.path("north/coast/00.png")).expect("a picture");
    place.fails(&train, 3, &["north/coast/00.png", "at least 8 pixels", "found 7x20"]);
    assert!(!place.path("out.safetensors").exists());
}
