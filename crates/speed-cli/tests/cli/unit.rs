//! The unit of a claim: the effect of the records of one person.

use std::fs;
use std::path::PathBuf;

use crate::cli::budget::REAL;
#[cfg(unix)]
use crate::cli::common::mode;
use crate::cli::common::{Line as _, TINY, Workplace, contains, entries, read_json};
use crate::cli::own_images;
use crate::cli::way::{CLASSES, picture, place, train};

/// The classes of [`own_images::place`].
const SHAPES: [&str; 3] = ["bar", "beam", "frame"];

/// Settings of a dry run that measures no training of a student.
const WITHOUT_STUDENTS: &str = "--set table.repeats=0 --set table.baselines=false";

const PARTS: &str = "--parts 4 --classes down,flat,up --patients prefix:_ --validation 0.1";

/// Trains four teachers on the pictures of north, and returns their model files.
fn teachers(place: &Workplace, out: &str) -> Vec<Vec<u8>> {
    place.succeeds(&train("north", out, &format!("{PARTS} --quiet")));
    (0..4).map(|teacher| place.bytes(&format!("{out}/teacher-{teacher:04}.safetensors"))).collect()
}

/// Returns the teachers whose files differ.
fn changed(before: &[Vec<u8>], after: &[Vec<u8>]) -> Vec<usize> {
    (0..4).filter(|&teacher| before[teacher] != after[teacher]).collect()
}

/// On commit b3db769 removing a patient changed all models: parts were balanced by class, and steps by the largest part.
#[test]
fn the_records_of_a_person_change_one_teacher_and_the_division_is_kept() {
    let place = place();
    let all = teachers(&place, "all");
    assert!(changed(&all, &teachers(&place, "again")).is_empty());

    // One patient less, one picture of this patient with another label, and many more pictures.
    let eyes = ["left", "right"].map(|eye| (format!("north/down/00_{eye}.png"), format!("{eye}.png")));
    eyes.iter().for_each(|(picture, away)| place.rename(picture, away));
    let without = changed(&all, &teachers(&place, "without"));
    assert_eq!(without.len(), 1);
    place.rename("right.png", "north/down/00_right.png");
    place.rename("left.png", "north/up/00_left.png");
    assert_eq!(changed(&all, &teachers(&place, "relabelled")), without);
    place.rename("north/up/00_left.png", "north/down/00_left.png");
    for number in 0..20 {
        picture(&place.path(&format!("north/down/00_{number}.png")), 0, number);
    }
    assert_eq!(changed(&all, &teachers(&place, "twenty-more")), without);
    assert_eq!(place.read("division.key"), "5".repeat(64));
}

/// A missing key is made, and a key that others may read is refused.
#[cfg(unix)]
#[test]
fn a_division_key_is_made_once_with_a_warning_and_kept_secret() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = place();
    let key = place.path("division.key");
    fs::remove_file(&key).expect("the key of the tests");
    let parts = "--parts 1 --classes down,flat,up --set teacher.steps=1 --quiet";
    place.warns(&train("north", "first", parts), &["division.key did not exist", "not a person"]);
    let made = place.read("division.key");
    assert_eq!((made.trim_end().len(), mode(&key)), (64, 0o600));
    place.succeeds(&train("north", "second", parts));
    assert_eq!(place.read("division.key"), made);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).expect("a mode");
    place.fails(&train("north", "third", parts), 3, &["division.key", "found mode 644"]);
}

/// Without a rule for groups, copies of a picture stay in one part.
#[test]
fn copies_of_a_picture_stay_together_or_are_reported() {
    let place = place();
    // Twelve patients of two different pictures each; a copy of each has another name.
    for path in CLASSES.iter().flat_map(|class| entries(&place.path(&format!("north/{class}")))) {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        fs::copy(&path, path.with_file_name(format!("copy{name}"))).expect("a copy");
    }
    let report = place.json(&train("north", "alone", "--parts 2 --classes down,flat,up --validation 0.3 --json"));
    for teacher in report["teachers"].as_array().expect("teachers") {
        for images in ["images", "validation_images"] {
            assert_eq!(teacher[images].as_u64().map(|images| images % 2), Some(0), "{report}");
        }
    }
    let grouped = train("north", "grouped", "--parts 2 --classes down,flat,up --patients prefix:_");
    place.warns(&grouped, &["24 images have the pixels of an image of another patient, "]);
    // The same in a pool.
    place.copy("public/01.png", "public/again.png");
    for choice in ["--grey --clusters --count 3 --out clusters.csv", "--count 31 --out all.csv"] {
        let words = "1 of 31 images have the pixels of an earlier one, as again.png those of 01.png";
        place.warns(&format!("student queries --pool public {choice}"), &[words]);
    }
}

/// On commit 28fd28b5 both were used without a word.
#[test]
fn dark_pictures_and_test_pictures_that_are_known_are_reported() {
    let place = place();
    for (class, name) in CLASSES.into_iter().enumerate() {
        fs::create_dir_all(place.path(&format!("dark/{name}"))).expect("folders");
        for number in 0..4 {
            // A sensor with 4 bits.
            let level = |x: u32, y: u32| image::Luma([((x + 5 * class as u32 + y * number) % 16) as u8]);
            let picture = image::GrayImage::from_fn(16, 16, level);
            picture.save(place.path(&format!("dark/{name}/{number}.png"))).expect("a picture");
        }
    }
    let words = "dark: the largest value of all pixels is 15, but white is 255";
    place.warns(&train("dark", "dark.safetensors", "-q"), &[words]);
    for read in ["teacher vote --images dark/up --out votes.csv -q", "predict dark/up"] {
        place.warns(&format!("{read} --model dark.safetensors"), &[&words["dark: ".len()..]]);
    }
    // One picture in two classes, and one patient in two spellings.
    place.rename("dark/up/0.png", "dark/up/01_0.png");
    place.copy("dark/up/01_0.png", "dark/down/1_copy.png");
    let twice = "1 images have the pixels of an image of another class, as down/1_copy.png those of up/01_0.png";
    place.warns(&train("dark", "two.safetensors", "-q"), &[twice]);
    for (number, name) in (0..4).flat_map(|number| CLASSES.map(|name| (number, name))) {
        let (from, to) = (format!("dark/{name}/{number}.png"), format!("dark/{name}/{name}_{number}.png"));
        let _ = fs::rename(place.path(&from), place.path(&to));
    }
    let grouped = train("dark", "three.safetensors", "-q --patients prefix:_");
    place.warns(&grouped, &["01 and 1 are two patients: give one patient one spelling"]);

    let pictures = own_images::place();
    for (class, number) in (0..25).flat_map(|number| SHAPES.map(|class| (class, number))) {
        let [from, to] = ["train", "test"].map(|half| format!("shapes/{half}/{class}/{number}.png"));
        pictures.copy(&from, &to);
    }
    let plan = pictures.succeeds(&format!("run config.toml --dry-run {WITHOUT_STUDENTS}"));
    assert!(plan.contains("warning: test images: 30 of 30 images are training images too"), "{plan}");
}

/// A run keeps the images of a patient with one teacher, and names copies that the claim for one teacher does not cover.
#[test]
fn a_run_divides_patients_and_names_copies_in_several_parts() {
    let place = own_images::place();
    let mut table = "file,patient\n".to_owned();
    for class in SHAPES {
        (0..30).for_each(|number| table.push_str(&format!("{class}/{number}.png,{}\n", number % 15)));
    }
    place.write("patients.csv", &table);
    let plan = |more: &str| place.succeeds(&format!("run config.toml --dry-run {WITHOUT_STUDENTS} --set {more}"));
    let by_table = "data.patients=patients.csv";
    let all = plan(by_table);
    assert!(!all.contains("several parts") && !all.contains("of patients"), "{all}");
    // A picture of every patient.
    for patient in 0..15 {
        place.copy("shapes/train/bar/0.png", &format!("shapes/train/bar/copy{patient}.png"));
        table.push_str(&format!("bar/copy{patient}.png,{patient}\n"));
    }
    place.write("patients.csv", &table);
    let said = plan(by_table);
    contains(&said, &["warning: 16 images have pixels that occur in several parts, at most in 3, ", "and 13 more"]);
    contains(&said, &["as much as k teachers", " images have the pixels of an image of another patient, "]);
    // With real noise nothing is said about private images.
    let real = plan(&format!("{by_table} --set noise.source=operating-system"));
    assert!(!real.contains("several parts") && !real.contains("another patient"), "{real}");
    place.succeeds(&format!("run config.toml --stage teachers --set {by_table} --set teacher.steps=1"));
    let refused =
        |set: &str, code, words: &[&str]| place.fails(&format!("run config.toml --dry-run --set {set}"), code, words);
    refused("data.patients=prefix:_", 3, &[".png", "begins with its patient and \"_\""]);
    place.write("patients.csv", table.replace("bar/3.png", "bar/x.png"));
    refused(by_table, 3, &["patients.csv", "bar/3.png"]);
    let one =
        table.lines().map(|line| line.split(',').next().unwrap_or_default().to_owned() + ",same\n").collect::<String>();
    place.write("patients.csv", one.replacen("file,same", "file,patient", 1));
    refused(by_table, 3, &["ensemble.teachers = 3", "has no image", "1 patients"]);
    // Names begin with patients, of which one is in the test images too.
    for (half, first) in [("train", 0), ("test", 24)] {
        for (class, number) in (0..25).flat_map(|number| SHAPES.map(|class| (class, number))) {
            let folder = format!("shapes/{half}/{class}");
            place.rename(&format!("{folder}/{number}.png"), &format!("{folder}/p{}_{number}.png", first + number));
        }
    }
    for path in SHAPES.iter().flat_map(|class| entries(&place.path(&format!("shapes/train/{class}")))) {
        if !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('p')) {
            fs::remove_file(path).expect("a picture");
        }
    }
    let said = plan("data.patients=prefix:_");
    assert!(["pool", "test images"].iter().any(|what| said.contains(&format!("warning: {what}: "))), "{said}");
    contains(&said, &["images are of patients of the training images", "p24_0.png"]);
}

/// On commit b3db769 standard error printed the plurality's accuracy, and tables with data-dependent epsilons had the mode 0644.
#[cfg(unix)]
#[test]
fn figures_of_secret_votes_are_for_their_owner() {
    let real = TINY.replace("source = \"simulation\"", "source = \"operating-system\"");
    let place = Workplace::new(&real);
    let (printed, said) = place.outputs("run config.toml --max-epsilon inf");
    // The students' accuracy may be published.
    let of_students = |line: &&str| line.starts_with("WARNING: none of the ");
    for text in [&said, &printed] {
        let words: String = text.lines().filter(|line| !of_students(line)).collect();
        assert!(!words.contains("accuracy") && !words.contains("plurality") && !words.contains("fits"), "{text}");
    }
    contains(&printed, &["May be published: ", "report.html and the models of these rows"]);
    let run = place.run_folder("results", "tiny");
    assert_eq!(mode(&run.join("stages")), 0o700);
    let is_secret = |path: &PathBuf| mode(path) & 0o077 == 0;
    let (secret, public): (Vec<_>, Vec<_>) = entries(&run.join("tables")).into_iter().partition(is_secret);
    assert!(secret.len() > 4 && public == [run.join("tables/report.html")], "{public:?}");
    // The student of the plurality is as secret as the plurality, and the printed table lacks its row.
    assert!(entries(&run.join("models/non-private")).iter().all(is_secret));
    assert!(!entries(&run.join("models/trusted")).iter().any(is_secret));
    assert!(!printed.contains("\nNon-private") && printed.contains("claim covers them: Non-private\n"), "{printed}");
    // Neither does a list, a comparison or a sweep have figures of this row, or epsilons at these votes.
    let path = run.join("tables/report.json");
    let mut report = read_json(&path);
    let rows = report["rows"].as_array_mut().expect("rows");
    let secret = rows.iter_mut().find(|row| row["data_independent"].is_null()).expect("the non-private row");
    (secret["student_mean"], secret["label_accuracy"]) = (0.987_654.into(), 0.987_654.into());
    fs::write(&path, report.to_string()).expect("a report");
    let listed = place.succeeds("list --json");
    assert!(listed.contains("\"student_accuracy\"") && !listed.contains("0.987"), "{listed}");
    let row = "[[row]]\nname = \"Non-private\"\naggregation = \"non-private\"\n";
    let sweep = format!("{REAL}\n{row}[sweep]\nseed = [3, 4]\n");
    place.write("sweep.toml", sweep.replace("name = \"real\"", "name = \"swept\""));
    let swept = place.succeeds("run sweep.toml --max-epsilon inf -q");
    let compared = place.succeeds("compare tiny tiny");
    contains(&compared, &["A has rows that no finite data-independent claim covers, which are left out: Non-private"]);
    for text in [&swept, &place.succeeds("show swept"), &compared] {
        assert!(!text.contains("98.77") && !text.contains("ε data-dependent"), "{text}");
    }
    assert!(
        !swept.contains("Non-private") && swept.contains("Only rows with a finite data-independent claim"),
        "{swept}"
    );
    // A simulation protects nothing and hides nothing.
    let place = Workplace::finished(TINY);
    let tables = place.run_folder("results", "tiny").join("tables");
    assert_ne!(mode(&tables.join("table.md")) & 0o077, 0);
    assert!(fs::read_to_string(tables.join("report.md")).expect("a report").contains("plurality"));
}

/// On commit b3db769 a model that expects other values voted for one class without a word.
#[test]
fn a_teacher_that_always_votes_for_one_class_is_reported() {
    let place = place();
    // All public pictures are of one class, so an honest teacher gives one answer.
    for number in 0..30_u8 {
        picture(&place.path(&format!("alike/{number:02}.png")), 0, number);
    }
    place.succeeds(&train("north", "north.safetensors", "--quiet"));
    let vote = |images: &str, out: &str| {
        place.outputs(&format!("teacher vote --quiet --model north.safetensors --images {images} --out {out}"))
    };
    // Known answers measure it before anyone relies on its votes; labels are names of classes.
    place.write("known.csv", "name,label\n00.png,down\n01.png,up\n");
    let known = "teacher vote --model north.safetensors --images alike --known";
    let printed = place.succeeds(&format!("{known} known.csv --out known-votes.csv"));
    assert!(printed.contains("north.safetensors: 50.0 % of the known answers"), "{printed}");
    for (line, words) in [("00.png,0", "expected the name of a class (down, flat, up), found"), ("x.png,up", "x.png")] {
        place.write("wrong.csv", format!("name,label\n{line}\n"));
        place.fails(&format!("{known} wrong.csv --out wrong-votes.csv"), 3, &["wrong.csv", words]);
    }
    let (printed, said) = vote("alike", "alike.csv");
    contains(&printed, &["votes by class: ", " 100.0 %"]);
    contains(&said, &["warning: north.safetensors votes 30 of 30 times for", "warning: no vote for "]);
    let (printed, said) = vote("public", "public.csv");
    contains(&printed, &["votes by class: down 33.3 %, flat 33.3 %, up 33.3 %"]);
    assert_eq!(said, "");
}

/// On commit 1f05a3ea each of these was refused, or accepted without a word.
#[test]
fn what_people_try_works_or_is_named() {
    let place = place();
    // The size and the colours of all other commands, and -q of every command.
    let queries = "student queries --pool public --size 8x8 --grey --count 3 --out q.csv";
    place.succeeds(&format!("{queries} -q"));
    place.write("public/torn.png", b"\x89PNG\r\n\x1a\n");
    let all = "student queries --pool public --count 31 --out all.csv";
    place.fails(&all, 3, &["torn.png"]);
    fs::remove_file(place.path("public/torn.png")).expect("a file");
    place.succeeds("teacher keygen --name north --out north.key -q");
    assert!(place.path("north.registry").exists());
    // A name with a comma, in quotes; and names that no class can have.
    fs::create_dir(place.path("comma")).expect("a folder");
    place.rename("north/down", "comma/a, b");
    place.rename("north/flat", "comma/c");
    let quick = train("comma", "comma.safetensors", "--set teacher.steps=1 --validation 0.4");
    let printed = place.succeeds(&[&quick.words()[..], &["--classes", " \"a, b\", \"c\""]].concat());
    assert!(printed.contains("a, b"), "{printed}");
    for names in ["a,,c", "a,a"] {
        let arguments = train("comma", "none", &format!("--classes {names}"));
        place.fails(&arguments, 2, &["command line", "--classes"]);
        assert!(!place.path("none").exists());
    }
    // A patient with most of the images, as after a spreadsheet shortened the numbers of patients.
    let mut table = "file,patient\n".to_owned();
    for patient in (0..12_u8).filter(|patient| patient % 3 < 2) {
        for eye in ["left", "right"] {
            let id = if patient < 9 { "1.23457E+15".to_owned() } else { patient.to_string() };
            table.push_str(&format!("{patient:02}_{eye}.png,{id}\n"));
        }
    }
    place.write("patients.csv", table);
    let grouped = "--patients patients.csv --set teacher.steps=1 --validation 0 -q";
    place.warns(&train("comma", "grouped", grouped), &["the patient 1.23457E+15 has 12 of 16 images"]);
    // Large pictures.
    for (class, number) in [("a", 1), ("a", 2), ("b", 3), ("b", 4)] {
        fs::create_dir_all(place.path(&format!("large/{class}"))).expect("a folder");
        let large = image::GrayImage::from_fn(200, 300, |x, y| image::Luma([(x * y % 251) as u8 ^ number]));
        large.save(place.path(&format!("large/{class}/{number}.png"))).expect("a picture");
    }
    let large = "teacher train --images large --set teacher.steps=1 --set teacher.batch=1 --out large.safetensors -q";
    place.warns(large, &["images of 300x200 take about 15 times the work of 64x64", "--size 64x64"]);
}
