//! A user's own files that are damaged or misleading.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::cli::bad_input::npy;
use crate::cli::common::Workplace;
use crate::cli::own_images::{picture, place};

const RUN: [&str; 2] = ["run", "config.toml"];
const DRY: [&str; 4] = ["run", "config.toml", "--dry-run", "--json"];

/// A JPEG file from the tests of speed-data.
fn fixture(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../speed-data/src/pictures/fixtures");
    fs::read(folder.join(name).with_extension("jpg")).expect("a fixture")
}

/// The notes of a dry run.
#[track_caller]
fn notes(place: &Workplace, changes: &[&str]) -> Vec<String> {
    let plan: Value = serde_json::from_str(&place.succeeds(&[&DRY[..], changes].concat())).expect("JSON");
    let notes = plan["notes"].as_array().expect("notes");
    notes.iter().map(|note| note.as_str().expect("a text").to_owned()).collect()
}

#[test]
fn damaged_jpegs_are_refused_by_name() {
    let place = place();
    let path = place.path("shapes/train/beam/7.jpg");
    picture(1, 7).save(&path).expect("a JPEG file");
    fs::remove_file(place.path("shapes/train/beam/7.png")).expect("a picture");
    let resized = ["--set", "data.size=24x18"];
    let whole = fs::read(&path).expect("a picture");
    assert!(notes(&place, &[]).is_empty());
    for file in [whole, fixture("progressive"), fixture("restarts"), fixture("progressive-restarts")] {
        fs::write(&path, &file).expect("a picture");
        assert!(notes(&place, &resized).is_empty());
        for kept in [file.len() / 2, file.len() - 40, file.len() - 2] {
            let cut = &file[..kept];
            fs::write(&path, cut).expect("a file");
            place.fails(&[&RUN[..], &resized].concat(), 3, &["7.jpg: cannot be read as a PNG or JPEG picture: "]);
            if kept < file.len() - 2 {
                fs::write(&path, [cut, b"\xff\xd9"].concat()).expect("a file");
                place.fails(&[&DRY[..], &resized].concat(), 3, &["7.jpg: cannot be read as a PNG or JPEG picture: "]);
            }
        }
        // An impossible code in the last scan.
        let middle = file.len() - 30;
        fs::write(&path, [&file[..middle], &[0xff, 0].repeat(4), &file[middle + 8..]].concat()).expect("a file");
        place.fails(&[&RUN[..], &resized].concat(), 3, &["7.jpg: cannot be read as a PNG or JPEG picture: "]);
    }
    fs::write(&path, fixture("cmyk")).expect("a file");
    place.fails(
        &[&RUN[..], &resized].concat(),
        3,
        &["7.jpg", "expected Adobe's marker with the meaning of the colours", "save it as PNG in RGB"],
    );
}

#[test]
fn first_bytes_decide_the_format_and_skipped_files_are_counted() {
    let place = place();
    let beam = place.path("shapes/train/beam");
    // PNG and JPEG files of any name are read.
    for (number, name) in ["a.jfif", "b.jpe", "c", "d.pgm"].into_iter().enumerate() {
        let jpeg = place.path("x.jpg");
        picture(1, 3).save(&jpeg).expect("a JPEG file");
        fs::rename(&jpeg, beam.join(name)).expect("a picture");
        assert!(notes(&place, &[]).is_empty());
        fs::write(beam.join(name), &fixture("baseline")[..500 + number]).expect("a file");
        place.fails(&RUN, 3, &[name, "cannot be read as a PNG or JPEG picture"]);
        fs::remove_file(beam.join(name)).expect("a picture");
    }
    for (name, bytes, words) in [
        ("e.heif", &b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"[..], "a HEIF picture"),
        ("e", b"\0\0\0\x1cftypavif\0\0\0\0mif1avif", "an AVIF picture"),
        ("e.pgm", b"P5\n2 2\n255\n1234", "a PNM picture"),
        ("e.jpg", b"RIFF\x0c\0\0\0WEBPVP8 ", "a WebP picture"),
    ] {
        fs::write(beam.join(name), bytes).expect("a file");
        place.fails(&RUN, 3, &[name, "expected PNG or JPEG pictures in a class's folder, found", words]);
        fs::remove_file(beam.join(name)).expect("a file");
    }
    fs::write(beam.join(".DS_Store"), "").expect("a file");
    fs::write(beam.join("Thumbs.db"), "").expect("a file");
    assert!(notes(&place, &[]).is_empty());
    fs::write(beam.join("readme.md"), "beams").expect("a file");
    fs::write(place.path("shapes/test/labels.csv"), "1,2").expect("a file");
    let expected = "pictures: 2 files are not read as pictures and were passed over, first shapes/test/labels.csv (and 2 hidden files)";
    assert_eq!(notes(&place, &[]), [expected]);
    let text = place.succeeds(&["run", "config.toml", "--dry-run"]);
    assert!(text.contains(&format!("# {expected}\n")), "{text}");
    let run = place.speed(&["run", "config.toml", "--set", "teacher.steps=1", "--stage", "teachers"]);
    let words = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(run.status.success() && words.contains(expected), "{words}");
}

/// Writes arrays of images of 24 x 18 with these labels.
fn arrays(place: &Workplace, train: &[u8], test: &[u8]) {
    fs::create_dir_all(place.path("arrays")).expect("a folder");
    for (half, labels, factor) in [("train", train, 167), ("test", test, 173)] {
        let count = labels.len();
        let pixels: Vec<u8> = (0..count * 24 * 18).map(|place| (place * factor % 251) as u8).collect();
        npy(&place.path(&format!("arrays/{half}_images.npy")), &format!("{count}, 24, 18"), &pixels);
        npy(&place.path(&format!("arrays/{half}_labels.npy")), &format!("{count},"), labels);
    }
}

#[test]
fn labels_of_arrays_count_from_0_and_sorted_ones_are_told() {
    let place = place();
    let of = ["--set", "data.source=arrays", "--set", "data.folder=arrays", "--set", "data.pool_images=20"];
    let run = [&RUN[..], &of].concat();
    let mixed = |first: u8| (0..60).map(|image| first + image % 3).collect::<Vec<u8>>();
    arrays(&place, &mixed(1), &mixed(1));
    place.fails(
        &run,
        3,
        &["train_labels.npy", "expected classes numbered 0 to 2, found the labels 1 to 3: subtract 1"],
    );
    let gaps: Vec<u8> = mixed(0).into_iter().map(|label| 2 * label).collect();
    arrays(&place, &gaps, &gaps);
    place.fails(&run, 3, &["train_labels.npy", "found the labels 0, 2, 4: renumber them"]);
    let mut other = mixed(0);
    other[7] = 3;
    arrays(&place, &mixed(0), &other);
    place.fails(&run, 3, &["test_labels.npy", "label 7: expected a class of the training images, 0 to 2, found 3"]);
    arrays(&place, &other, &mixed(0));
    place.fails(&run, 3, &["test_labels.npy", "class 3 of the training images has none"]);

    arrays(&place, &mixed(0), &mixed(0));
    assert!(notes(&place, &of).is_empty());
    let mut sorted = mixed(0);
    sorted.sort_unstable();
    arrays(&place, &sorted, &mixed(0));
    let words = "3 of 3 teachers hold images of few of the 3 classes, 3 of one class only";
    assert!(notes(&place, &of)[0].starts_with(&format!("warning: {words}")), "{:?}", notes(&place, &of));
    let output = place.speed(&[&run[..], &["--set", "teacher.steps=1", "--stage", "teachers"]].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains(words) && said.contains("mix the training images"), "{said}");
}

#[test]
fn bytes_after_votes_labels_and_queries_are_refused() {
    let place = Workplace::new(
        "name = \"votes\"\n[data]\nsource = \"none\"\nlabels = \"labels.npy\"\npool_images = 4\n[ensemble]\nteachers = 3\n\
         [votes]\nsource = \"file\"\nfile = \"votes.npy\"\n[queries]\ncount = 3\nselection = \"file\"\nfile = \"queries.npy\"\n\
         [table]\nrepeats = 0\n[[row]]\nname = \"Non-private\"\naggregation = \"non-private\"\n",
    );
    let files: [(&str, &str, &[u8]); 3] = [
        ("votes.npy", "4, 3", &[3, 0, 0, 0, 2, 1, 1, 0, 2, 0, 3, 0]),
        ("labels.npy", "4,", &[0, 1, 2, 1]),
        ("queries.npy", "3,", &[0, 3, 2]),
    ];
    files.iter().for_each(|(name, shape, values)| npy(&place.path(name), shape, values));
    for (name, shape, values) in files {
        npy(&place.path(name), shape, &[values, values].concat());
        let words = format!("nothing after {} entries, found {} more bytes", values.len(), values.len());
        place.fails(&["run", "config.toml"], 3, &[name, &words]);
        npy(&place.path(name), shape, values);
    }
    // In Python 2's format, and as half floats.
    let header = |text: &str, values: &[u8]| {
        let bytes = [b"\x93NUMPY\x01\x00".as_slice(), &[text.len() as u8, 0], text.as_bytes(), values].concat();
        fs::write(place.path("votes.npy"), bytes).expect("votes");
    };
    header("{'descr': '|u1', 'fortran_order': False, 'shape': (4L, 3L), }\n", files[0].2);
    place.succeeds(&["run", "config.toml", "--results", "one"]);
    // Labels 0 to 3 in 16 bits.
    let halves: Vec<u8> = files[0].2.iter().flat_map(|&count| [0, [0, 0x3c, 0x40, 0x42][usize::from(count)]]).collect();
    header("{'descr': '<f2', 'fortran_order': False, 'shape': (4, 3), }\n", &halves);
    place.succeeds(&["run", "config.toml", "--results", "two"]);
}
