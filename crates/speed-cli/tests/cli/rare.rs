//! Two classes of which one is rare: weights of teachers, the students' prior, and results that do not hide the rare class.

use serde_json::json;

use crate::cli::bad_input::bands;
use crate::cli::classes::ARRAYS;
use crate::cli::common::{Workplace, contains, has};

/// Arrays of a bright upper or lower half, of which one in twenty is lower, and a student of true labels.
fn place() -> Workplace {
    let classes = "pool_images = 60, classes = [\"well\", \"sick\"]";
    let config = ARRAYS.replace("name = \"arrays\"", "name = \"rare\"").replace("pool_images = 30", classes);
    let prior = "student.prior = [0.95, 0.05]\nstudent.method";
    let place = Workplace::new(&config.replace("count = 9", "count = 20").replace("student.method", prior));
    let labels: Vec<u8> = (0..120).map(|image| u8::from(image % 20 == 0)).collect();
    ["train", "test"].iter().for_each(|half| bands(&place, half, &labels, 2));
    place
}

#[test]
fn reports_of_two_classes_have_balanced_accuracies_and_a_ranking() {
    let place = place();
    let text = place.succeeds("run config.toml --quiet");
    contains(&text, &["student balanced %", "student AUC"]);
    let report = place.json("show rare --json");
    let row = &report["rows"][0];
    let (result, student) = (&row["classification"], &row["students"][0]);
    has(row, &json!({ "label_accuracy": 1.0, "label_balanced_accuracy": 1.0 }));
    let two = json!({ "auc": student["auc"], "threshold": 0.5, "confusion": result["confusion"] });
    has(result, &json!({ "balanced_accuracy": student["balanced_accuracy"], "two_classes": two }));
    let recalls = [0, 1].map(|class| result["classes"][class]["accuracy"].as_f64().expect("images of both classes"));
    assert_eq!(result["balanced_accuracy"].as_f64(), Some((recalls[0] + recalls[1]) / 2.0));
    let said = text.contains("WARNING: none of the 3 images of sick is classified right");
    assert_eq!(said, recalls[1] == 0.0, "{text}");
    place.fails("run config.toml --set student.prior=[0.5,0.25,0.25]", 2, &["student.prior", "2 classes"]);
}

#[test]
fn teachers_have_class_weights_and_students_a_threshold() {
    let place = place();
    let train = "teacher train --images arrays/train_images.npy --labels arrays/train_labels.npy";
    let train = format!("{train} --classes well,sick --seed 1 --epochs 2");
    let text = place.succeeds(&format!("{train} --class-weights balanced --out balanced.safetensors"));
    assert!(text.contains("balanced accuracy, the mean over classes: "), "{text}");
    place.succeeds(&format!("{train} --set teacher.class_weights=balanced --out set.safetensors"));
    place.succeeds(&format!("{train} --out equal.safetensors"));
    let [balanced, set, equal] = ["balanced", "set", "equal"].map(|name| place.bytes(&format!("{name}.safetensors")));
    assert!(balanced == set, "the option is the key");
    assert!(balanced != equal);

    place.write("labels.csv", "query,label\n0,sick\n1,well\n2,well\n20,sick\n");
    let student = "student train --pool arrays/train_images.npy --labels labels.csv --classes";
    let test = "well,sick --test arrays/test_images.npy --test-labels arrays/test_labels.npy";
    let student = format!("{student} {test} --epochs 1 --seed 1 --out student.safetensors");
    let report = place.json(&format!("{student} --threshold 0.01 --json"));
    let two = &report["test"]["two_classes"];
    assert_eq!(two["threshold"], json!(0.01));
    let positive = |matrix: &serde_json::Value| matrix[1][1].as_u64().expect("a count");
    assert!(positive(&two["confusion"]) >= positive(&report["test"]["confusion"]), "{report}");
    contains(&place.read("student-card.md"), &["- balanced accuracy, the mean over classes: ", "- AUC "]);
}
