//! Runs on the vectors of an encoder.

use std::fs;

use image::{Rgb, RgbImage};
use serde_json::Value;
use speed_nn::onnx::small_encoder;

use crate::cli::bad_input::npy;
use crate::cli::common::{Workplace, read_json};

/// Sixty teachers of ten street digits each.
const CONFIG: &str = r#"
name = "encoder"
[data]
source = "street-digits"
train_images = 600
test_images = 500
pool_images = 300
[features]
encoder = "encoder.onnx"
[ensemble]
teachers = 60
[votes]
source = "neighbours"
[queries]
count = 20
selection = "clusters"
[noise]
source = "simulation"
[table]
repeats = 0
baselines = true
[[row]]
name = "clear text"
aggregation = "trusted"
"#;

fn place() -> Workplace {
    let place = Workplace::new(CONFIG);
    fs::write(place.path("encoder.onnx"), small_encoder()).expect("an encoder");
    place
}

/// Returns the arguments of a run with changed keys.
fn run<'a>(keys: &[&'a str]) -> Vec<&'a str> {
    ["run", "config.toml"].into_iter().chain(keys.iter().flat_map(|key| ["--set", key])).collect()
}

#[test]
fn teachers_vote_by_the_vectors_of_pictures_and_the_report_names_the_encoder() {
    let place = place();
    let plan = place.json(&["run", "config.toml", "--dry-run", "--json"]);
    let stages = plan["stages"].as_array().expect("stages");
    assert_eq!(stages[1]["name"], "features", "{plan}");
    place.succeeds(&["run", "config.toml"]);
    let run = place.run_folder("results", "encoder");
    let report = read_json(&run.join("tables/report.json"));
    let encoder = &report["encoder"];
    assert_eq!((&encoder["file"], &encoder["width"]), (&"encoder.onnx".into(), &384.into()));
    assert_eq!(encoder["preparation"]["size"], Value::from(vec![32, 32]));
    let digest = encoder["digest"].as_str().expect("a digest");
    let spreading = &report["rows"][0]["baselines"]["label_spreading"]["images"];
    assert_eq!((digest.len(), spreading), (64, &200.into()));
    for name in ["report.html", "report.md"] {
        let text = fs::read_to_string(run.join("tables").join(name)).expect(name);
        let condition = "The encoder must come from public data: epsilon does not cover pictures that trained it.";
        assert!(text.contains(digest) && text.contains(condition), "{name}: {text}");
    }
    let shown = place.succeeds(&["show", "encoder"]);
    assert!(shown.contains("Encoder encoder.onnx"), "{shown}");
}

#[test]
fn encoders_and_pictures_that_do_not_fit_are_refused_by_name() {
    let place = place();
    place.fails(&run(&["features.encoder=other.onnx"]), 3, &["other.onnx"]);
    place.fails(&run(&["table.repeats=1"]), 2, &["student.method", "reads pictures"]);
    place.fails(&run(&["votes.source=teachers"]), 2, &["teacher.architecture", "reads pictures"]);
    place.fails(&run(&["features.size=64x64"]), 3, &["encoder.onnx", "64"]);
    fs::write(place.path("votes.onnx"), "not a model").expect("written");
    place.fails(&run(&["features.encoder=votes.onnx"]), 3, &["votes.onnx"]);

    let arrays = |side: usize| {
        let folder = format!("arrays-{side}");
        fs::create_dir(place.path(&folder)).expect("a folder");
        for (split, images) in [("train", 40), ("test", 20)] {
            let at = |name: &str| place.path(&folder).join(format!("{split}_{name}.npy"));
            let mut pixels: Vec<u8> = (0..images * side * side).map(|i| (i * 167 % 251) as u8).collect();
            if split == "test" {
                pixels[3 * side * side..][..side * side].fill(0);
            }
            npy(&at("images"), &format!("{images}, {side}, {side}"), &pixels);
            npy(&at("labels"), &format!("{images},"), &(0..images).map(|i| (i % 2) as u8).collect::<Vec<u8>>());
        }
        folder
    };
    let keys = ["data.source=arrays", "data.pool_images=10", "ensemble.teachers=4", "queries.count=3"];
    // The features of a black picture are all 0.
    let [black, small] = [12, 7].map(|side| format!("data.folder={}", arrays(side)));
    let words = ["encoder.onnx", "picture 3 (from 0) of the split pool", "not all equal", "leave the picture out"];
    place.fails(&run(&[&keys[..], &[&black]].concat()), 3, &words);
    place.fails(&run(&[&keys[..], &[&small]].concat()), 3, &["encoder.onnx", "8x8", "7x7"]);
}

#[test]
fn pictures_of_any_size_are_resized_for_an_encoder() {
    let place = place();
    for (number, name) in ["train/cat", "train/dog", "test/cat", "test/dog"].iter().enumerate() {
        fs::create_dir_all(place.path("pictures").join(name)).expect("folders");
        for picture in 0..12 {
            let size = [40 + picture, 30 + 9 * number as u32];
            let colour = |x: u32, y: u32| Rgb([(x * (7 + picture)) as u8, (y * 5) as u8, (x * y) as u8]);
            let path = place.path("pictures").join(name).join(format!("{picture}.png"));
            RgbImage::from_fn(size[0], size[1], colour).save(path).expect("a picture");
        }
    }
    let keys = [
        "data.source=pictures",
        "data.folder=pictures",
        "data.pool_images=10",
        "ensemble.teachers=4",
        "queries.count=3",
    ];
    let until = |arguments: &[&str]| place.succeeds(&[&run(&keys), arguments].concat());
    until(&["--stage", "data"]);
    // All pictures are one block, and the record of the pictures says so.
    until(&["--stage", "features", "--shard", "2/2"]);
    let shown = place.json(&["show", "encoder", "--json"]);
    let units = shown["runs"][0]["units"][0].clone();
    assert_eq!((&units["stage"], &units["of"], &units["at_most"]), (&"features".into(), &1.into(), &false.into()));
    until(&["--stage", "features", "--shard", "1/2"]);
    until(&["--stage", "features"]);
    let run_folder = place.run_folder("results", "encoder");
    let record = read_json(&run_folder.join("stages/features/stage.json"));
    assert_eq!(record["outputs"].as_object().expect("files").len(), 3);
    let pixels = ["features.encoder=", "queries.selection=random", "table.baselines=false"];
    place.fails(&run(&[&keys[..], &pixels].concat()), 3, &["data.size"]);
    let unusable = place.path("pictures/test/dog/7.png");
    RgbImage::from_pixel(20, 20, Rgb([0; 3])).save(&unusable).expect("a picture");
    place.fails(&run(&keys), 3, &["encoder.onnx", "of the split", "pictures/test/dog/7.png", "not all equal"]);
    RgbImage::from_pixel(20, 7, Rgb([1, 2, 3])).save(unusable).expect("a picture");
    place.fails(&run(&keys), 3, &["7.png", "at least 8 pixels", "found 7x20"]);
}
