//! Every kind of bad input gives one clear message and its exit code, and loses no results.

use std::fs;
use std::path::Path;
use std::process::Command;

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
    let length = (header.len() + 11).next_multiple_of(64) - 11;
    header = format!("{header:length$}\n");
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
fn invalid_votes_and_folders_of_other_configs_are_refused() {
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
    place.write("votes.npy", b"\x93NUMPY rubbish");
    place.fails(&run, 3, &["votes.npy", ".npy"]);
    npy(&place.path("votes.npy"), "2, 3", &[1, 1, 1]);
    place.fails(&run, 3, &["votes.npy", "truncated"]);
    npy(&place.path("votes.npy"), "2, 3", &[1, 1, 1, 0, 1, 2]);
    // The votes differ from the charged ones, and nothing is charged again silently.
    place.fails(&run, 4, &["stage.json", "belongs to other votes", "--force aggregate-trusted"]);
    let table = place.succeeds(&format!("{run} --force aggregate-trusted"));
    assert!(table.contains("Trusted"), "{table}");
    // The results of another config are left alone.
    let run = "run config.toml --results own";
    place.succeeds(run);
    let saved = place.run_folder("own", "votes").join("config.toml");
    let other = fs::read_to_string(&saved).expect("saved config").replace("seed = 1", "seed = 2");
    fs::write(&saved, &other).expect("another config");
    place.fails(run, 4, &["config.toml", "belongs to another config"]);
    assert_eq!(fs::read_to_string(&saved).expect("still there"), other);
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
