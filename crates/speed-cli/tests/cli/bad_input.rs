//! Every kind of bad input gives one clear message and its exit code, and loses no results.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::cli::common::{TINY, Workplace, check_failure, determined};

/// Writes a half of `arrays/`: pictures of 16 x 16 with a bright band at the place of their label, and the labels.
pub(crate) fn bands(place: &Workplace, half: &str, labels: &[u8], classes: usize) {
    fs::create_dir_all(place.path("arrays")).expect("a folder");
    let band = 256_usize.div_ceil(classes);
    let picture = |label: &u8| (0..256).map(|at| 200 * u8::from(at / band == usize::from(*label))).collect::<Vec<u8>>();
    let (count, pixels) = (labels.len(), labels.iter().flat_map(picture).collect::<Vec<u8>>());
    npy(&place.path(&format!("arrays/{half}_images.npy")), &format!("{count}, 16, 16"), &pixels);
    npy(&place.path(&format!("arrays/{half}_labels.npy")), &format!("{count},"), labels);
}

/// An `.npy` file of unsigned bytes.
pub(crate) fn npy(path: &Path, shape: &str, values: &[u8]) {
    let mut header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({shape}), }}");
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).expect("short").to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values);
    fs::write(path, bytes).expect("votes");
}

const VOTES_ONLY: &str = r#"
name = "votes"
data = { source = "none", pool_images = 2 }
ensemble = { teachers = 3 }
votes = { source = "file", file = "votes.npy" }
queries = { count = 2, selection = "first" }
table = { repeats = 0 }
row = [
    { name = "Trusted", aggregation = "trusted" },
]
"#;

#[test]
fn invalid_votes_are_refused() {
    let place = Workplace::new(VOTES_ONLY);
    let run = "run config.toml";
    place.fails(&run, 3, &["votes.npy", "cannot read"]);
    npy(&place.path("votes.npy"), "2, 3", &[1, 1, 1, 1, 1, 2]);
    place.fails(&run, 3, &["votes.npy", "row 1 sums to 4", "ensemble.teachers = 3"]);
    npy(&place.path("votes.npy"), "2, 3", &[1, 1, 1, 0, 0, 3]);
    place.succeeds(&run);
    // Surplus votes are not ignored silently.
    npy(&place.path("longer.npy"), "3, 3", &[0, 1, 0, 1, 0, 255, 1, 0, 1]);
    let longer = "--set votes.file=longer.npy --set votes.form=labels --set votes.classes=256";
    let words = place.says(&format!("{run} {longer}"));
    assert!(words.contains("votes on 3 images; the last 1 are not used"), "{words}");
    let large = "data.pool_images=999999999999999999999";
    place.fails(&format!("{run} --set {large}"), 2, &["999999999999999999999", "expected a number of 64 bits"]);
    let huge = format!("{run} --set noise.gamma=1e300");
    place.fails(&huge, 2, &["gamma is 1e300"]);
    place.write("votes.npy", b"\x93NUMPY rubbish");
    place.fails(&run, 3, &["votes.npy", ".npy"]);
    npy(&place.path("votes.npy"), "2, 3", &[1, 1, 1]);
    place.fails(&run, 3, &["votes.npy", "truncated"]);
    npy(&place.path("votes.npy"), "2, 3", &[1, 1, 1, 0, 1, 2]);
    // The votes differ from the charged ones, and nothing is charged again silently.
    place.fails(&run, 4, &["stage.json", "belongs to other votes", "--force aggregate-trusted"]);
    let table = place.succeeds(&format!("{run} --force aggregate-trusted"));
    assert!(table.contains("Trusted"), "{table}");
}

#[test]
fn impossible_settings() {
    let place = Workplace::new(TINY);
    let run = |set: &str, words: &[&str]| {
        place.fails(&format!("run config.toml --set {set}"), 2, words);
        place.fails(&format!("run config.toml --dry-run --set {set}"), 2, words);
    };
    // Errors that are detected before a teacher trains. The tests of the config have all the others.
    for (set, words) in [
        ("ensemble.teachers=301", &["`ensemble.teachers`", "301 teachers share 300 training images"][..]),
        ("noise.gamma=0.0005", &["`noise.gamma`"]),
        ("privacy.delta=1e-300", &["`privacy.delta`", "1e-280"]),
        ("student.batch=65537", &["`student.batch`", "2..=65536"]),
        ("student.pseudo_labels.batch=65537", &["`student.pseudo_labels.batch`", "1..=65536"]),
        ("teacher.shift=28", &["`teacher.shift`", "too large"]),
        ("table.repeats=1000000000", &["`table.repeats`", "at most 10000"]),
    ] {
        run(set, words);
    }
    Workplace::new(&TINY.replace("\"Trusted\"", "\"Tr\\u001b[2Justed\"")).fails(
        "run config.toml",
        2,
        &["`row.1.name`", "control characters"],
    );
    place.fails("run absent.toml", 2, &["absent.toml"]);
    place.fails("run config.toml --force studnet", 2, &["studnet", "teachers", "student"]);
}

#[test]
fn mnist_files_that_are_missing_or_damaged() {
    let config = "name = \"m\"\n[data]\nsource = \"mnist\"\npool_images = 9000\n";
    let place = Workplace::new(config);
    place.fails("run config.toml", 3, &["mnist", "speed data fetch mnist"]);
    let folder = place.path("data/mnist");
    fs::create_dir_all(&folder).expect("folder");
    fs::write(folder.join("train-images-idx3-ubyte"), [0, 0, 8, 3, 0, 0]).expect("truncated");
    place.fails("run config.toml --datasets data", 3, &["train-images-idx3-ubyte"]);
    place.fails("data check mnist --datasets data", 3, &["train-images-idx3-ubyte"]);
    place.fails("data check cifar", 3, &["cifar", "mnist"]);
}

#[test]
fn a_results_folder_of_another_config_is_left_alone() {
    let place = Workplace::new(VOTES_ONLY);
    npy(&place.path("votes.npy"), "2, 3", &[1, 1, 1, 0, 1, 2]);
    place.succeeds("run config.toml");
    let saved = place.run_folder("results", "votes").join("config.toml");
    let text = fs::read_to_string(&saved).expect("saved config");
    let other = text.replace("seed = 1", "seed = 2");
    assert_ne!(text, other);
    fs::write(&saved, &other).expect("another config");
    place.fails("run config.toml", 4, &["config.toml", "belongs to another config"]);
    assert_eq!(fs::read_to_string(&saved).expect("still there"), other);
}

#[test]
fn two_runs_in_one_folder() {
    let place = Workplace::new(TINY);
    let mut first =
        place.command("run config.toml").stderr(Stdio::null()).stdout(Stdio::null()).spawn().expect("starts");
    let lock = loop {
        std::thread::sleep(Duration::from_millis(20));
        let found = fs::read_dir(place.path("results/tiny")).ok().and_then(|mut runs| runs.next()).and_then(Result::ok);
        if let Some(run) = found.filter(|run| run.path().join("config.toml").exists()) {
            break run.path();
        }
    };
    place.fails("run config.toml", 4, &["another `speed`"]);
    assert!(first.wait().expect("ended").success(), "the first run was disturbed");
    assert!(lock.join("tables/table.md").exists());
}

/// A limit on file size makes writes fail in the middle of work, as a full disk does.
#[test]
#[cfg(unix)]
fn a_disk_that_fills_up_loses_nothing() {
    let undisturbed = Workplace::finished(TINY);
    let expected = determined(&undisturbed.run_folder("results", "tiny"));

    let place = Workplace::new(TINY);
    let script = format!("trap '' XFSZ; ulimit -f 40; exec '{}' run config.toml", env!("CARGO_BIN_EXE_speed"));
    let output = Command::new("bash").args(["-c", &script]).current_dir(place.path("")).output().expect("bash");
    check_failure(&output, 5, &["cannot write", "finished work is kept"]);
    place.succeeds("run config.toml");
    assert_eq!(determined(&place.run_folder("results", "tiny")), expected);
}
