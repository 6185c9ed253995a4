//! A user's own pictures: an experiment end to end on a directory of PNG files that are not square, and errors for invalid
//! files.

use std::fs;

use image::{Rgb, RgbImage};
use serde_json::Value;

use crate::cli::bad_input::npy;
use crate::cli::common::Workplace;

const CONFIG: &str = r#"
name = "shapes"
seed = 5

[data]
source = "pictures"
folder = "shapes"
pool_images = 45

[ensemble]
teachers = 3

[teacher]
architecture = "small-contrast"
steps = 60
batch = 15

[queries]
count = 12

[noise]
gamma = 2.0
source = "simulation"

[student]
epochs = 2
batch = 15
generator = [20, 20]
discriminator = [40, 20]
latent = 10

[student.convolutional]
channels = [4, 6]
generator = [8, 6]

[student.pseudo_labels]
contrast = true
epochs = 40
warmup_epochs = 20
label_epochs = 30
labelled_batch = 6
batch = 15
convolutions = [6, 8]
hidden = 16

[table]
repeats = 1

[[row]]
name = "encrypted"
aggregation = "encrypted"

[[row]]
name = "conv GAN"
labels_of = "encrypted"
student = "conv-gan"

[[row]]
name = "ours"
labels_of = "encrypted"
student = "pseudo-labels"
"#;

/// Rows and columns of a picture.
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

/// Writes the directories of pictures of three classes.
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

#[test]
fn an_experiment_on_three_classes_of_pictures_runs_end_to_end() {
    let place = place();
    let report: Value =
        serde_json::from_str(&place.succeeds(&["run", "config.toml", "--results", "one", "--json"])).expect("JSON");
    // Chance is one third. Each teacher has only 30 pictures.
    assert!(report["ensemble"]["plurality_accuracy"].as_f64().expect("known") > 0.6, "{}", report["ensemble"]);
    let rows = report["rows"].as_array().expect("rows");
    assert_eq!((rows.len(), rows[0]["agreement"].as_u64()), (3, Some(12)));
    let methods: Vec<&str> = rows.iter().map(|row| row["method"].as_str().expect("a method")).collect();
    assert_eq!(methods, ["gan", "conv-gan", "pseudo-labels"]);
    // GANs may not have learnt anything after a few steps.
    assert!(rows[2]["student_mean"].as_f64().is_some_and(|mean| mean > 0.5), "{}", rows[2]["student_mean"]);
    assert!(rows[..2].iter().all(|row| row["student_mean"].is_number()));
    let votes = fs::read(place.run_folder("one", "shapes").join("stages/votes/votes.npy")).expect("votes");
    assert!(votes[votes.len() - 3 * 45..].iter().all(|label| *label < 3));
    // One thread and two threads give the same bytes.
    place.succeeds(&["run", "config.toml", "--results", "two", "--threads", "1"]);
    let table = |results| fs::read(place.run_folder(results, "shapes").join("tables/table.json")).expect("a table");
    assert!(table("one") == table("two"));

    // Pictures in grey and with another size are another dataset, which a dry run reads.
    let other = ["run", "config.toml", "--dry-run", "--json", "--set", "data.colour=false", "--set", "data.size=16x20"];
    let plan: Value = serde_json::from_str(&place.succeeds(&other)).expect("JSON");
    assert!(plan["cost"]["stages"].as_array().is_some_and(|stages| stages.len() > 2), "{plan}");
}

#[test]
fn pictures_that_do_not_fit_are_refused_by_name() {
    let place = place();
    let run = ["run", "config.toml"];
    let odd = place.path("shapes/train/beam/7.png");
    let fitting = fs::read(&odd).expect("a picture");
    RgbImage::new(9, 9).save(&odd).expect("a picture");
    place.fails(&run, 3, &["7.png", "expected 24x18", "found 9x9"]);
    fs::write(&odd, b"no picture").expect("a file");
    place.fails(&run, 3, &["7.png", "cannot be read as a PNG or JPEG picture", "expected the signature"]);
    fs::write(&odd, fitting).expect("a picture");
    place.fails(&[&run[..], &["--set", "data.folder=nowhere"]].concat(), 3, &["nowhere"]);
    place.fails(&[&run[..], &["--set", "data.folder="]].concat(), 2, &["data.folder", "set the folder of the images"]);
    place.fails(&[&run[..], &["--set", "data.size=16y9"]].concat(), 2, &["data.size", "HEIGHTxWIDTH"]);
    place.fails(&[&run[..], &["--set", "data.size=9x9"]].concat(), 2, &["teacher.architecture", "small-contrast"]);
    // A size that is too large for training is refused before any picture is read.
    place.fails(&[&run[..], &["--set", "data.size=9000x9000"]].concat(), 2, &["data.size", "too large to learn from"]);
    place.fails(&[&run[..], &["--set", "data.pool_images=75"]].concat(), 3, &["75"]);
    place.fails(&[&run[..], &["--set", "data.labels=x.npy"]].concat(), 2, &["data.labels"]);
    place.fails(&[&run[..], &["--set", "data.source=digits"]].concat(), 2, &["data.folder"]);
}

#[test]
fn true_labels_beside_votes_measure_them_without_an_image() {
    let place = Workplace::new(
        "name = \"votes\"\n[data]\nsource = \"none\"\nlabels = \"labels.npy\"\npool_images = 4\n[ensemble]\nteachers = 3\n\
         [votes]\nsource = \"file\"\nfile = \"votes.npy\"\n[queries]\ncount = 4\nselection = \"first\"\n[table]\nrepeats = 0\n\
         [[row]]\nname = \"Non-private\"\naggregation = \"non-private\"\n",
    );
    npy(&place.path("votes.npy"), "4, 3", &[3, 0, 0, 0, 2, 1, 1, 0, 2, 0, 3, 0]);
    let run = ["run", "config.toml", "--json"];
    place.fails(&run, 3, &["labels.npy", "cannot read"]);
    npy(&place.path("labels.npy"), "3,", &[0, 1, 2]);
    place.fails(&run, 3, &["labels.npy", "data.pool_images = 4 or more", "found shape [3]"]);
    npy(&place.path("labels.npy"), "2, 2", &[0, 1, 2, 1]);
    place.fails(&run, 3, &["labels.npy", "one row"]);
    npy(&place.path("labels.npy"), "4,", &[0, 3, 2, 1]);
    place.fails(&run, 3, &["labels.npy", "entry 1: label 3, expected 0 to 2"]);
    npy(&place.path("labels.npy"), "5,", &[0, 1, 2, 2, 9]);
    let report = |place: &Workplace| serde_json::from_str::<Value>(&place.succeeds(&run)).expect("JSON");
    let found = report(&place);
    assert_eq!(
        (&found["rows"][0]["label_accuracy"], &found["ensemble"]["mean_accuracy"]),
        (&0.75.into(), &(7.0 / 12.0).into())
    );
    // The same answers are measured with other labels.
    npy(&place.path("labels.npy"), "5,", &[0, 1, 2, 1, 9]);
    let output = place.speed(&run);
    let other: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(other["rows"][0]["label_accuracy"], 1.0);
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!words.contains("Non-private: 4 labels"), "answered again: {words}");
}
