//! A user's own pictures: an experiment end to end on a directory of PNG files that are not square, and errors for invalid or
//! misleading files.

use std::fs;

use image::{Rgb, RgbImage};
use serde_json::{Value, json};

use crate::cli::bad_input::npy;
use crate::cli::common::{Workplace, has, read_json};

pub(crate) const CONFIG: &str = r#"
name = "shapes"
seed = 5
data = { source = "pictures", folder = "shapes", pool_images = 45 }
ensemble = { teachers = 3 }
teacher = { architecture = "small-contrast", steps = 60, batch = 15 }
queries = { count = 12 }
noise = { gamma = 2.0, source = "simulation" }
student.epochs = 2
student.epoch_images = 0
student.size = "small"
student.pseudo_labels = { views = "photographed-digits", epochs = 40, warmup_epochs = 20, label_epochs = 30, labelled_batch = 6, batch = 15 }
table = { repeats = 1, baselines = true }
row = [
    { name = "GAN", aggregation = "trusted" },
    { name = "conv GAN", labels_of = "GAN", student = "conv-gan" },
    { name = "ours", labels_of = "GAN", student = "pseudo-labels" },
]
"#;

const SIZE: [u32; 2] = [24, 18];

/// Draws a vertical bar, a horizontal bar or a frame, with varying colours and positions.
pub(crate) fn picture(class: usize, number: u32) -> RgbImage {
    let [rows, columns] = SIZE;
    let (dark, light) = (Rgb([30, 20 + (number % 5) as u8, 60]), Rgb([200, 180, 150 + (number % 7) as u8]));
    let (ink, wall) = if number.is_multiple_of(2) { (dark, light) } else { (light, dark) };
    let (x0, y0) = (5 + number % 4, 7 + number % 5);
    RgbImage::from_fn(columns, rows, |x, y| {
        let is_ink = match class {
            0 => (x0..x0 + 4).contains(&x) && (3..21).contains(&y),
            1 => (2..16).contains(&x) && (y0..y0 + 4).contains(&y),
            _ => !(4..14).contains(&x) || !(5..19).contains(&y),
        };
        if is_ink { ink } else { wall }
    })
}

pub(crate) fn place() -> Workplace {
    let place = Workplace::new(CONFIG);
    // The pictures of the two halves differ.
    for (half, first, count) in [("train", 0, 30), ("test", 30, 25)] {
        for (class, name) in ["bar", "beam", "frame"].into_iter().enumerate() {
            let folder = place.path("shapes").join(half).join(name);
            fs::create_dir_all(&folder).expect("folders");
            for number in 0..count {
                picture(class, first + number).save(folder.join(format!("{number}.png"))).expect("a picture");
            }
        }
    }
    place
}

/// The same place with the results of `speed run config.toml`, which happens once for a build of the program.
pub(crate) fn finished() -> Workplace {
    Workplace::finished_in("run-shapes", place)
}

pub(crate) fn report(place: &Workplace) -> Value {
    read_json(&place.run_folder("results", "shapes").join("tables/report.json"))
}

#[test]
fn an_experiment_on_three_classes_of_pictures_runs_end_to_end() {
    let place = finished();
    let report = report(&place);
    // Chance is one third. Each teacher has only 30 pictures.
    assert!(report["ensemble"]["plurality_accuracy"].as_f64().expect("known") > 0.6, "{}", report["ensemble"]);
    let rows = report["rows"].as_array().expect("rows");
    let methods: Vec<&str> = rows.iter().map(|row| row["method"].as_str().expect("a method")).collect();
    assert_eq!(methods, ["gan", "conv-gan", "pseudo-labels"]);
    // GANs may not have learnt anything after a few steps.
    assert!(rows[2]["student_mean"].as_f64().is_some_and(|mean| mean > 0.5), "{}", rows[2]["student_mean"]);
    assert!(rows[..2].iter().all(|row| row["student_mean"].is_number()));
    let votes = fs::read(place.run_folder("results", "shapes").join("stages/votes/votes.npy")).expect("votes");
    assert!(votes[votes.len() - 3 * 45..].iter().all(|label| *label < 3));
}

#[test]
fn pictures_that_do_not_fit_are_refused_by_name() {
    let place = place();
    let run = "run config.toml";
    let odd = place.path("shapes/train/beam/7.png");
    let fitting = fs::read(&odd).expect("a picture");
    RgbImage::new(9, 9).save(&odd).expect("a picture");
    place.fails(&run, 3, &["7.png", "expected 24x18", "found 9x9"]);
    fs::write(&odd, b"no picture").expect("a file");
    place.fails(&run, 3, &["7.png", "cannot be read as a PNG or JPEG picture", "expected the signature"]);
    fs::write(&odd, fitting).expect("a picture");
    place.fails(&format!("{run} --set data.pool_images=75"), 3, &["75"]);
    // Files that are not pictures are counted, before and during a run.
    place.write("shapes/train/beam/.DS_Store", "");
    place.write("shapes/train/beam/Thumbs.db", "");
    place.write("shapes/train/beam/readme.md", "beams");
    place.write("shapes/test/labels.csv", "1,2");
    let passed_over = "pictures: 2 files are not read as pictures and were passed over, first shapes/test/labels.csv (and 2 hidden files)";
    let quick = "--set teacher.steps=1 --set table.repeats=0 --set table.baselines=false";
    let text = place.succeeds(&format!("{run} --dry-run {quick}"));
    assert!(text.contains(&format!("# {passed_over}\n")), "{text}");
    let words = place.says(&format!("{run} {quick} --stage teachers"));
    assert!(words.contains(passed_over), "{words}");
}

#[test]
fn labels_of_arrays_that_do_not_count_from_0_or_are_sorted_are_told() {
    let place = Workplace::new(CONFIG);
    let arrays = |train: &[u8], test: &[u8]| {
        fs::create_dir_all(place.path("arrays")).expect("a folder");
        for (half, labels, factor) in [("train", train, 167), ("test", test, 173)] {
            let count = labels.len();
            let pixels: Vec<u8> = (0..count * 24 * 18).map(|place| (place * factor % 251) as u8).collect();
            npy(&place.path(&format!("arrays/{half}_images.npy")), &format!("{count}, 24, 18"), &pixels);
            npy(&place.path(&format!("arrays/{half}_labels.npy")), &format!("{count},"), labels);
        }
    };
    let of = "--set data.source=arrays --set data.folder=arrays --set data.pool_images=20";
    let run = format!("run config.toml {of}");
    let mixed = |first: u8| (0..60).map(|image| first + image % 3).collect::<Vec<u8>>();
    arrays(&mixed(1), &mixed(1));
    let words = ["train_labels.npy", "expected classes numbered 0 to 2, found the labels 1 to 3: subtract 1"];
    place.fails(&run, 3, &words);
    let mut sorted = mixed(0);
    sorted.sort_unstable();
    arrays(&sorted, &mixed(0));
    let said = place.says(&format!("{run} --set teacher.steps=1 --stage teachers"));
    let words = "3 of 3 teachers hold images of few of the 3 classes, 3 of one class only";
    assert!(said.contains(words) && said.contains("mix the training images"), "{said}");
}

#[test]
fn true_labels_beside_votes_measure_them_without_an_image() {
    let place = Workplace::new(
        "name = \"votes\"\n[data]\nsource = \"none\"\nlabels = \"labels.npy\"\npool_images = 4\n[ensemble]\nteachers = 3\n\
         [votes]\nsource = \"file\"\nfile = \"votes.npy\"\n[queries]\ncount = 4\nselection = \"first\"\n[table]\nrepeats = 0\n\
         [[row]]\nname = \"Non-private\"\naggregation = \"non-private\"\n",
    );
    npy(&place.path("votes.npy"), "4, 3", &[3, 0, 0, 0, 2, 1, 1, 0, 2, 0, 3, 0]);
    let run = "run config.toml --json";
    place.fails(&run, 3, &["labels.npy", "cannot read"]);
    npy(&place.path("labels.npy"), "3,", &[0, 1, 2]);
    place.fails(&run, 3, &["labels.npy", "data.pool_images = 4 or more", "found shape [3]"]);
    npy(&place.path("labels.npy"), "4,", &[0, 3, 2, 1]);
    place.fails(&run, 3, &["labels.npy", "entry 1: label 3, expected 0 to 2"]);
    npy(&place.path("labels.npy"), "5,", &[0, 1, 2, 2, 9]);
    let measured = json!({ "rows": [{ "label_accuracy": 0.75 }], "ensemble": { "mean_accuracy": 7.0 / 12.0 } });
    has(&place.json(run), &measured);
    // The same answers are measured with other labels.
    npy(&place.path("labels.npy"), "5,", &[0, 1, 2, 1, 9]);
    let (report, words) = place.outputs(run);
    has(&serde_json::from_str(&report).expect("JSON"), &json!({ "rows": [{ "label_accuracy": 1.0 }] }));
    assert!(!words.contains("Non-private: 4 labels"), "answered again: {words}");
}
