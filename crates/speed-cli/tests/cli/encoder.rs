//! Runs on the vectors of an encoder.

use std::fs;

use image::{GrayImage, Luma, Rgb, RgbImage};
use serde_json::json;
use speed_core::random::Streams;
use speed_data::digits::{self, DigitsConfig};
use speed_data::{Dataset, ImageShape, Split, street};
use speed_nn::onnx::{PixelType, Runtime, small_encoder};

use crate::cli::bad_input::npy;
use crate::cli::common::{Workplace, has, read_json, sets};
use crate::cli::predict::{check_logits, classes, predictions, right, text, write};

/// Sixty teachers of ten street digits each.
const CONFIG: &str = r#"
name = "encoder"
data = { source = "street-digits", train_images = 600, test_images = 500, pool_images = 300 }
features = { encoder = "encoder.onnx" }
ensemble = { teachers = 60 }
votes = { source = "neighbours" }
queries = { count = 20, selection = "clusters" }
noise = { source = "simulation" }
table = { repeats = 0, baselines = true }
row = [
    { name = "clear text", aggregation = "trusted" },
]
"#;

fn place() -> Workplace {
    let place = Workplace::new(CONFIG);
    place.write("encoder.onnx", small_encoder());
    place
}

fn run(keys: &[&str]) -> String {
    format!("run config.toml{}", sets(keys))
}

#[test]
fn teachers_vote_by_the_vectors_of_pictures_and_the_report_names_the_encoder() {
    let place = place();
    let plan = place.json("run config.toml --dry-run --json");
    has(&plan["stages"][1], &json!({ "name": "features" }));
    place.succeeds("run config.toml");
    let run = place.run_folder("results", "encoder");
    let report = read_json(&run.join("tables/report.json"));
    let encoder = &report["encoder"];
    let preparation = json!({ "size": [32, 32] });
    has(encoder, &json!({ "file": "encoder.onnx", "width": 384, "preparation": preparation }));
    let digest = encoder["digest"].as_str().expect("a digest");
    let spreading = &report["rows"][0]["baselines"]["label_spreading"]["images"];
    assert_eq!((digest.len(), spreading), (64, &200.into()));
    for name in ["report.html", "report.md"] {
        let text = fs::read_to_string(run.join("tables").join(name)).expect(name);
        let condition = "The encoder must come from public data: epsilon does not cover pictures that trained it.";
        assert!(text.contains(digest) && text.contains(condition), "{name}: {text}");
    }
    let shown = place.succeeds("show encoder");
    assert!(shown.contains("Encoder encoder.onnx"), "{shown}");
}

#[test]
fn encoders_and_pictures_that_do_not_fit_are_refused_by_name() {
    let place = place();
    place.fails(&run(&["features.encoder=other.onnx"]), 3, &["other.onnx"]);
    place.fails(&run(&["features.size=64x64"]), 3, &["encoder.onnx", "64"]);
    place.write("votes.onnx", "not a model");
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
    let small = ["data.pool_images=10", "ensemble.teachers=4", "queries.count=3"];
    let keys = [&["data.source=pictures", "data.folder=pictures"][..], &small].concat();
    let until = |arguments: &str| place.succeeds(&format!("{} {arguments}", run(&keys)));
    until("--stage data");
    // All pictures are one block, and the record of the pictures says so.
    until("--stage features --shard 2/2");
    let shown = place.json("show encoder --json");
    let units = json!({ "stage": "features", "of": 1, "at_most": false });
    has(&shown, &json!({ "runs": [{ "units": [units] }] }));
    until("--stage features --shard 1/2");
    until("--stage features");
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

/// Returns the pool and the test images of the run, which its seed determines.
fn public() -> [Split; 2] {
    let streams = Streams::new(1);
    let handwriting: Dataset = digits::generate(DigitsConfig { train: 20_000, test: 5_000 }, &streams);
    let Dataset { test, .. } = street::generate(&handwriting, [1, 500], &streams).expect("street digits");
    [test.slice(0..300), test.slice(300..500)]
}

#[test]
fn a_model_of_vectors_leaves_with_its_encoder_and_refuses_another() {
    const SHAPE: ImageShape = ImageShape { channels: 3, height: 32, width: 32 };
    let place = place();
    let keys = [
        "seed=1",
        "ensemble.teachers=6",
        "votes.source=teachers",
        "teacher.architecture=linear",
        "student.method=linear",
        "table.repeats=1",
        "table.baselines=false",
    ];
    let said = place.says(&run(&keys));
    assert!(said.contains("--encoder encoder.onnx"), "{said}");
    let folder = place.run_folder("results", "encoder");
    let report = read_json(&folder.join("tables/report.json"));
    let digest = report["encoder"]["digest"].as_str().expect("a digest");
    let model = folder.join("models/clear-text/student-0.safetensors");
    let model = text(&model);
    let [pool, test] = public();
    write(&place.path("pool.npy"), &pool);
    write(&place.path("test.npy"), &test);

    // The student's accuracy, and a teacher's votes.
    let found = predictions(&place, &format!("--model {model} --encoder encoder.onnx test.npy"));
    let accuracy = right(&found, &test) as f64 / 200.0;
    assert_eq!(accuracy, report["rows"][0]["students"][0]["accuracy"].as_f64().expect("an accuracy"));
    let threads = predictions(&place, &format!("--model {model} --encoder encoder.onnx test.npy --threads 3"));
    assert_eq!(found, threads);
    let teacher = folder.join("stages/teachers/teacher-0002.bin");
    let teacher = text(&teacher);
    let votes = fs::read(folder.join("stages/votes/votes.npy")).expect("votes");
    let votes = &votes[votes.len() - 6 * 300..][2 * 300..3 * 300];
    let of_teacher = format!("--model {teacher} --encoder encoder.onnx pool.npy");
    let expected: Vec<u64> = votes.iter().map(|vote| u64::from(*vote)).collect();
    assert_eq!(classes(&predictions(&place, &of_teacher)), expected);

    // The exported model reads pictures, and contains the encoder.
    for (name, pixels) in [("uint8", PixelType::Uint8), ("float", PixelType::Float)] {
        let file = format!("{name}.onnx");
        let export = format!("export --model {model} --encoder encoder.onnx --out {file} --pixels {name}");
        let said = place.succeeds(&export);
        assert!(said.contains("N x 3 x 32 x 32"), "{said}");
        let bytes = place.bytes(&file);
        assert!(String::from_utf8_lossy(&bytes).contains(digest));
        let images: Vec<u8> = (0..20).flat_map(|image| test.pixels(image).to_vec()).collect();
        let logits = Runtime::new(&bytes).expect("a model").logits(&images, SHAPE, pixels).expect("logits");
        check_logits(&logits, &found[..20], 1e-2);
    }
    place.succeeds(&format!("export --model {teacher} --encoder encoder.onnx --out teacher.onnx --quiet"));
    let to = "--to safetensors --out teacher.safetensors --quiet";
    place.succeeds(&format!("export --model {teacher} {to}"));
    let copied = "--model teacher.safetensors --encoder encoder.onnx pool.npy";
    assert_eq!(classes(&predictions(&place, copied)), expected);
    let card = folder.join("models/clear-text/model-card.json");
    place.succeeds(&format!("verify {}", text(&card)));

    // Pictures of any size and colour.
    let draw = |name: &str, width, height| {
        let picture = RgbImage::from_fn(width, height, |x, y| Rgb([(3 * x) as u8, (5 * y) as u8, (x * y) as u8]));
        picture.save(place.path(name)).expect("saved");
    };
    draw("a.png", 70, 50);
    draw("small.png", 7, 50);
    let grey = GrayImage::from_fn(20, 33, |x, y| Luma([(9 * x + y) as u8]));
    grey.save(place.path("grey.png")).expect("saved");
    assert_eq!(predictions(&place, &format!("--model {model} --encoder encoder.onnx a.png grey.png")).len(), 2);
    let small = format!("predict --model {model} --encoder encoder.onnx small.png");
    place.fails(&small, 3, &["small.png", "at least 8x8", "50x7"]);

    // An encoder that is missing, or another one: another producer's name is another file.
    let mut other = small_encoder();
    let name = other.windows(5).position(|bytes| bytes == b"speed").expect("its name");
    other[name] = b'S';
    place.write("other.onnx", other);
    for (command, more) in [("predict", "test.npy --format csv"), ("export", "--out new.onnx --json")] {
        let with = |encoder: &str| format!("{command} --model {model} {encoder} {more}");
        place.fails(&with(""), 3, &["student-0.safetensors", "encoder.onnx", digest, "--encoder"]);
        let words =
            ["other.onnx", "expected the model's encoder, encoder.onnx", digest, "the encoder of the model's training"];
        place.fails(&with("--encoder other.onnx"), 3, &words);
        place.fails(&with("--encoder missing.onnx"), 3, &["missing.onnx", "cannot read"]);
        assert!(!place.path("new.onnx").exists());
    }
    fs::remove_dir_all(folder.join("models")).expect("removed");
    fs::rename(place.path("other.onnx"), place.path("encoder.onnx")).expect("renamed");
    place.fails(&format!("predict {of_teacher}"), 3, &["teacher-0002.bin", "features.encoder", "another one"]);
}
