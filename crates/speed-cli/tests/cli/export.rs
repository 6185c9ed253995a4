//! `speed export`: the exported model predicts as the model itself, in another program's runtime; and refusals.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use speed_data::ImageShape;
use speed_nn::onnx::{PixelType, Runtime};

use crate::cli::common::{Workplace, contains, has, read_json, succeeded};
use crate::cli::predict::{check_logits, digits, one_student, predictions, text, write};

const SHAPE: ImageShape = ImageShape { channels: 1, height: 28, width: 28 };

/// Returns the predictions of a model for some images, and the bytes of the images.
fn predicted(place: &Workplace, model: &Path) -> (Vec<Value>, Vec<u8>) {
    let images = digits().slice(100..130);
    write(&place.path("images.npy"), &images);
    let found = predictions(place, &format!("--model {} images.npy", text(model)));
    (found, (0..images.len()).flat_map(|image| images.pixels(image).to_vec()).collect())
}

#[test]
fn exported_models_predict_as_the_model() {
    let (place, model) = one_student();
    let (expected, images) = predicted(&place, &model);
    for (name, pixels) in [("uint8", PixelType::Uint8), ("float", PixelType::Float)] {
        let file = format!("{name}.onnx");
        let export = format!("export --model {} --out {file} --pixels {name}", text(&model));
        let found = place.succeeds(&export);
        assert!(found.starts_with("SIMULATION") && found.contains("N x 1 x 28 x 28"), "{found}");
        let bytes = place.bytes(&file);
        let metadata = String::from_utf8_lossy(&bytes);
        contains(&metadata, &["\"0\",\"1\"", "simulation", "pseudo-labels", "tiny"]);
        let logits = Runtime::new(&bytes).expect("a model").logits(&images, SHAPE, pixels).expect("logits");
        check_logits(&logits, &expected, 1e-4);
        // The same command again changes nothing.
        place.succeeds(&export);
        assert_eq!(place.bytes(&file), bytes);
    }
    let again = format!("export --model {} --out again.onnx --classes classes.json --json", text(&model));
    let json = place.json(&again);
    let onnx = json!({ "pixels": "uint8" });
    has(&json, &json!({ "bytes": place.bytes("again.onnx").len(), "shape": [1, 28, 28], "onnx": onnx }));
    assert_eq!(read_json(&place.path("classes.json")), json["class_names"]);

    place.succeeds(&format!("export --model {} --to safetensors --out copy.safetensors", text(&model)));
    assert_eq!(place.bytes("copy.safetensors"), fs::read(&model).expect("a model"));
}

/// MLflow's client lists the directory that the script writes (scripts/peers/mlflow).
#[test]
fn a_report_becomes_runs_of_mlflow() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/export/mlflow");
    // A package of this crate alone has no scripts.
    if !fs::exists(script).expect("a path") || Command::new("python3").arg("--version").output().is_err() {
        return;
    }
    let (place, _) = one_student();
    let run = place.run_folder("results", "tiny");
    let export = |run: &Path, out: &str| {
        Command::new("python3").arg(script).arg(run).arg("--out").arg(place.path(out)).output().expect("python3")
    };
    let written = succeeded(export(&run, "mlruns"));
    let report = read_json(&run.join("tables/report.json"));
    let folders: Vec<_> = written.lines().map(PathBuf::from).collect();
    assert_eq!(folders.len(), report["rows"].as_array().expect("rows").len());
    let row = &report["rows"][0];
    let read = |name: &str| fs::read_to_string(folders[0].join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(read("params/row.name"), row["name"].as_str().expect("a name"));
    assert_eq!((read("tags/speed.privacy").as_str(), read("params/name").as_str()), ("simulation", "tiny"));
    assert!(read("meta.yaml").contains("lifecycle_stage: \"active\"\n"));
    let metric = read("metrics/student_mean");
    let value: f64 = metric.split(' ').nth(1).and_then(|value| value.parse().ok()).expect("a value");
    assert_eq!(Some(value), row["student_mean"].as_f64());
    assert!(folders[0].join("artifacts/model-card.md").is_file() && folders[0].join("artifacts/report.html").is_file());
    // The script does not overwrite a run. With real noise it omits rows and figures that are not public.
    let again = export(&run, "mlruns");
    assert!(!again.status.success() && String::from_utf8_lossy(&again.stderr).contains("nothing is overwritten"));
    let mut real = report.clone();
    real["simulation"] = false.into();
    real["rows"].as_array_mut().expect("rows").iter_mut().for_each(|row| row["data_independent"] = Value::Null);
    real["rows"][0]["aggregation"] = "trusted".into();
    let mut claimed = real["rows"][0].clone();
    claimed["name"] = "claimed".into();
    claimed["label_accuracy"] = 0.5.into();
    claimed["data_independent"] = json!({ "epsilon": 1.0, "delta": 1e-5, "claim": "any votes" });
    claimed["data_dependent"] = json!({ "epsilon": 0.5, "delta": 1e-5 });
    real["rows"].as_array_mut().expect("rows").push(claimed);
    place.write("real.json", real.to_string());
    let output = export(&place.path("real.json"), "real");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("left out, because no data-independent claim covers it"), "{said}");
    let written = succeeded(output);
    let [folder] = written.lines().collect::<Vec<_>>()[..] else { panic!("one covered row: {written}") };
    let is_metric = |name: &str| Path::new(folder).join("metrics").join(name).exists();
    assert!(is_metric("data_independent.epsilon"));
    for secret in ["data_dependent.epsilon", "label_accuracy", "agreement"] {
        assert!(!is_metric(secret), "{secret}");
    }
}

#[test]
fn a_teacher_leaves_its_run_with_a_warning() {
    let (place, _) = one_student();
    let teacher = place.run_folder("results", "tiny").join("stages/teachers/teacher-0002.bin");
    let (expected, images) = predicted(&place, &teacher);
    for (format, name) in [("safetensors", "teacher.safetensors"), ("onnx", "teacher.onnx")] {
        let export = format!("export --model {} --to {format} --out {name}", text(&teacher));
        let warning = place.says(&export);
        assert!(warning.contains("do not publish"), "{warning}");
        assert!(place.speed(&format!("{export} --quiet")).stderr.is_empty());
    }
    fs::remove_dir_all(place.path("results")).expect("a folder");
    assert_eq!(predicted(&place, &place.path("teacher.safetensors")).0, expected);
    let bytes = place.bytes("teacher.onnx");
    let logits = Runtime::new(&bytes).expect("a model").logits(&images, SHAPE, PixelType::Uint8).expect("logits");
    check_logits(&logits, &expected, 1e-4);
}

#[test]
fn files_in_the_way_are_not_overwritten() {
    let (place, model) = one_student();
    let model = text(&model);
    place.write("mine", "my own file");
    for more in ["--out mine", "--to safetensors --out mine", "--out new --classes mine"] {
        place.fails(&format!("export --model {model} {more}"), 4, &["mine"]);
        assert_eq!(place.bytes("mine"), b"my own file");
    }
    place.fails(&format!("export --model {model} --out no/such/folder"), 5, &["no/such/folder"]);
}
