//! Two classes of which one is rare: weights of teachers, the students' prior, and results that do not hide the rare class.

use std::fs;

use serde_json::json;

use crate::cli::bad_input::bands;
use crate::cli::common::Workplace;

/// Arrays of a bright upper or lower half, of which one in twenty is lower, and a student of true labels.
const RARE: &str = r#"
name = "rare"
seed = 1
data = { source = "arrays", folder = "arrays", pool_images = 60, classes = ["well", "sick"] }
ensemble = { teachers = 1 }
votes = { source = "truth" }
queries = { count = 20 }
student.method = "pseudo-labels"
student.prior = [0.95, 0.05]
student.pseudo_labels = { epochs = 2, epoch_images = 60, warmup_epochs = 1, label_epochs = 2, batch = 15, labelled_batch = 6 }
table = { repeats = 1 }
row = [
    { name = "true labels", aggregation = "non-private" },
]
"#;

fn place() -> Workplace {
    let place = Workplace::new(RARE);
    let labels: Vec<u8> = (0..120).map(|image| u8::from(image % 20 == 0)).collect();
    ["train", "test"].iter().for_each(|half| bands(&place, half, &labels, 2));
    place
}

#[test]
fn reports_of_two_classes_have_balanced_accuracies_and_a_ranking() {
    let place = place();
    let text = place.succeeds("run config.toml --quiet");
    assert!(text.contains("student balanced %") && text.contains("student AUC"), "{text}");
    let report = place.json("show rare --json");
    let row = &report["rows"][0];
    let (result, student) = (&row["classification"], &row["students"][0]);
    assert_eq!((&row["label_accuracy"], &row["label_balanced_accuracy"]), (&json!(1.0), &json!(1.0)));
    assert_eq!(result["balanced_accuracy"], student["balanced_accuracy"]);
    assert_eq!((&result["two_classes"]["auc"], &result["two_classes"]["threshold"]), (&student["auc"], &json!(0.5)));
    assert_eq!(result["two_classes"]["confusion"], result["confusion"]);
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
    let balanced = format!("{train} --class-weights balanced --out balanced.safetensors");
    let text = place.succeeds(&balanced);
    assert!(text.contains("balanced accuracy, the mean over classes: "), "{text}");
    let set = format!("{train} --set teacher.class_weights=balanced --out set.safetensors");
    place.succeeds(&set);
    let bytes = |name: &str| fs::read(place.path(name)).expect(name);
    assert!(bytes("balanced.safetensors") == bytes("set.safetensors"), "the option is the key");
    place.succeeds(&format!("{train} --out equal.safetensors"));
    assert!(bytes("balanced.safetensors") != bytes("equal.safetensors"));
    place.fails(&format!("{train} --class-weights even --out x"), 2, &["--class-weights"]);

    place.write("labels.csv", "query,label\n0,sick\n1,well\n2,well\n20,sick\n");
    let student = "student train --pool arrays/train_images.npy --labels labels.csv --classes";
    let test = "well,sick --test arrays/test_images.npy --test-labels arrays/test_labels.npy";
    let student = format!("{student} {test} --epochs 1 --seed 1 --out student.safetensors");
    for wrong in ["0", "1", "1.5", "NaN"] {
        place.fails(&format!("{student} --threshold {wrong}"), 2, &["--threshold", "above 0 and below 1"]);
    }
    let report = place.json(&format!("{student} --threshold 0.01 --json"));
    let two = &report["test"]["two_classes"];
    assert_eq!(two["threshold"], json!(0.01));
    let positive = |matrix: &serde_json::Value| matrix[1][1].as_u64().expect("a count");
    assert!(positive(&two["confusion"]) >= positive(&report["test"]["confusion"]), "{report}");
    let card = place.read("student-card.md");
    assert!(card.contains("- balanced accuracy, the mean over classes: ") && card.contains("- AUC "), "{card}");
}
