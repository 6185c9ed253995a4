//! Real noise: every set of answers that was given is charged once, and no other, whatever happens in between.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;
use speed_core::fixture::exhaustive;

use crate::cli::bad_input::npy;
use crate::cli::common::{Workplace, check_failure, determined, entries, read_json};

/// Rows with real noise, without images. Their names differ only in characters that directory names do not keep.
pub(crate) const REAL: &str = r#"
name = "real"
seed = 5

[data]
source = "none"
pool_images = 20

[ensemble]
teachers = 5

[votes]
source = "uniform"
classes = 3

[queries]
count = 4

[noise]
gamma = 0.5
source = "operating-system"

[table]
repeats = 0

[[row]]
name = "a b"
aggregation = "trusted"

[[row]]
name = "a-b"
aggregation = "trusted"
honest_ratio = 0.8

[[row]]
name = "甲"
aggregation = "trusted"
honest_ratio = 0.4

[[row]]
name = "乙"
aggregation = "trusted"
honest_ratio = 0.6
"#;

/// Returns [`REAL`] with two rows on ciphertexts.
pub(crate) fn encrypted() -> String {
    let (first, last) = REAL.split_at(REAL.find("name = \"甲\"").expect("a row"));
    first.to_owned() + &last.replace("trusted", "encrypted")
}

pub(crate) const RUN: &str = "run config.toml";
pub(crate) const ROWS: usize = 4;

pub(crate) fn ledger(place: &Workplace) -> Value {
    place.json("ledger show results/real/ledger --json")
}

/// Returns the number of charged answers; each charge has different noise.
#[track_caller]
pub(crate) fn charged(place: &Workplace) -> u64 {
    let ledger = ledger(place);
    let charges = ledger["charges"].as_array().expect("charges");
    let digests: BTreeSet<&str> = charges.iter().filter_map(|charge| charge["noise_digest"].as_str()).collect();
    assert_eq!(digests.len(), charges.len(), "two charges of one noise");
    ledger["queries"].as_u64().expect("a number")
}

/// Lists the directories of the stages that answer, finished or not.
fn stages(place: &Workplace) -> Vec<PathBuf> {
    let folder = place.run_folder("results", "real").join("stages");
    let names = entries(&folder).into_iter();
    let mut all: Vec<PathBuf> = names
        .filter(|path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            name.starts_with("aggregate-") && !name.contains(".superseded")
        })
        .collect();
    all.sort();
    all
}

/// Returns the stage with `fewer` noisy teachers, which identifies its row.
fn stage(place: &Workplace, fewer: usize) -> PathBuf {
    let noisy = |path: &PathBuf| {
        let text = fs::read_to_string(path.join("aggregate.json")).expect("answers");
        serde_json::from_str::<Value>(&text).expect("JSON")["noisy_teachers"].as_u64()
    };
    stages(place).into_iter().find(|path| noisy(path) == Some(fewer as u64)).expect("a stage")
}

#[test]
fn rows_whose_names_look_alike_have_folders_of_their_own() {
    let place = Workplace::finished(REAL);
    assert_eq!((charged(&place), stages(&place).len()), (16, ROWS));
    let first = determined(&place.run_folder("results", "real"));
    // Resuming charges nothing.
    assert!(place.succeeds(&RUN).contains("Ledger: 16 answers charged"));
    assert_eq!((charged(&place), stages(&place).len()), (16, ROWS));
    assert!(ledger(&place)["charges"][1]["label"].as_str().expect("a label").ends_with(": a-b"));
    assert_eq!(determined(&place.run_folder("results", "real")), first);
    // A row is identified by its questions: another name costs nothing and gets the same answers.
    let labels = fs::read(stage(&place, 4).join("labels.csv")).expect("labels");
    let config = place.read("config.toml").replace("\"a-b\"", "\"renamed\"");
    place.write("renamed.toml", config);
    place.succeeds("run renamed.toml");
    assert_eq!(charged(&place), 16);
    let runs = entries(&place.path("results/real")).into_iter();
    let renamed = runs.map(|run| run.join("stages/aggregate-renamed/labels.csv")).find(|path| path.exists());
    assert_eq!(fs::read(renamed.expect("the renamed row")).expect("labels"), labels);
}

#[test]
fn kills_spend_no_budget() {
    // An undisturbed run measures the duration of a run and the budget that it needs.
    let (place, duration) = undisturbed();
    let spent = ledger(&place)["spent_epsilon"].as_f64().expect("a number");

    let place = Workplace::new(&encrypted());
    // Enough for every row once, but for no row twice.
    let budget = format!("privacy.budget={spent}");
    let arguments = format!("{RUN} --set {budget}");
    let kills: u32 = std::env::var("SPEED_KILLS").map_or(1, |kills| kills.parse().expect("a number of kills"));
    // A simple generator of moments, which are the same in every run of CI.
    let mut state = 0x5eed_u64 + u64::from(kills);
    for _ in 0..kills {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let moment = duration.mul_f64(1.1 * (state >> 33) as f64 / (1u64 << 31) as f64);
        kill_after(&place, &arguments, moment.max(Duration::from_millis(5)));
        if place.path("results/real/ledger").exists() {
            assert!(charged(&place) as usize >= 4 * labels(&place).len(), "answers that nobody paid for");
        }
    }
    place.succeeds(&arguments);
    let answers = labels(&place);
    assert_eq!((charged(&place), answers.len()), (16, ROWS));
    place.succeeds(&arguments);
    assert_eq!((charged(&place), labels(&place)), (16, answers));
    for stage in stages(&place) {
        assert!(!stage.join("noise.key").exists(), "noise was kept in {}", stage.display());
        let digest = fs::read_to_string(stage.join("charged")).expect("a mark");
        assert!(ledger(&place).to_string().contains(&digest));
    }
}

/// Runs on ciphertexts to the end, and measures the time.
fn undisturbed() -> (Workplace, Duration) {
    let place = Workplace::new(&encrypted());
    let started = Instant::now();
    place.succeeds(&RUN);
    (place, started.elapsed())
}

/// Starts the binary and ends it with kill -9.
fn kill_after(place: &Workplace, arguments: &str, moment: Duration) {
    let mut command = place.command(arguments);
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut child = command.spawn().expect("the binary starts");
    std::thread::sleep(moment);
    child.kill().expect("kill -9");
    child.wait().expect("ended");
}

/// Returns the answers of all finished stages.
fn labels(place: &Workplace) -> Vec<Vec<u8>> {
    stages(place)
        .iter()
        .filter(|stage| stage.join("stage.json").exists())
        .map(|stage| fs::read(stage.join("labels.csv")).expect("labels"))
        .collect()
}

#[test]
fn only_the_charged_noise_key_repeats_charged_answers() {
    let place = Workplace::finished(REAL);
    // The state after a kill between answers and record, except that the key is missing, so the stage cannot resume.
    let stage = stage(&place, 4);
    fs::remove_file(stage.join("stage.json")).expect("unfinished");
    let name = stage.file_name().expect("a name").to_string_lossy().into_owned();
    place.fails(
        &RUN,
        4,
        &[&name, "was missing or was changed", "--force", "pay again"].map(|word| word.trim_start_matches("was ")),
    );
    assert_eq!(charged(&place), 16);
}

#[test]
fn a_run_stops_at_changed_or_lost_charged_answers() {
    let place = Workplace::finished(REAL);
    let stage = stage(&place, 4);
    let name = stage.file_name().expect("a name").to_string_lossy().into_owned();
    let path = stage.join("labels.csv");
    let good = fs::read(&path).expect("labels");
    let mut bad = good.clone();
    *bad.last_mut().expect("bytes") ^= 1;
    fs::write(&path, bad).expect("damage");
    place.fails(&RUN, 4, &["labels.csv", "was changed", "4 answers of row \"a-b\"", "--force", "epsilon"]);
    fs::remove_file(&path).expect("damage");
    place.fails(&RUN, 4, &["labels.csv", "is missing", &name]);
    assert_eq!(charged(&place), 16);
    fs::write(&path, &good).expect("mended");
    place.succeeds(&RUN);
    // The complete stage is missing.
    let away = place.path("away");
    fs::rename(&stage, &away).expect("moved");
    place.fails(&RUN, 4, &[&name, "is missing", "--force"]);
    fs::rename(&away, &stage).expect("moved back");
    place.succeeds(&RUN);
    assert_eq!(charged(&place), 16);
    // Answering again on request is charged.
    fs::remove_file(&path).expect("damage");
    place.succeeds(&format!("{RUN} --force {name}"));
    assert_eq!(charged(&place), 20);
    place.succeeds(&RUN);
    assert_eq!(charged(&place), 20);
}

#[test]
fn a_ledger_that_was_cut_or_lost_is_noticed() {
    let place = Workplace::finished(REAL);
    let path = place.path("results/real/ledger");
    let good = fs::read(&path).expect("a ledger");
    let check = "ledger check results/real/ledger";
    place.succeeds(&check);
    // On commit 1f05a3ea a last line without its end did not count. An editor or a transfer may have removed it.
    for cut in [1, 20] {
        fs::write(&path, &good[..good.len() - cut]).expect("cut");
        place.succeeds(&check);
        place.succeeds(&RUN);
        assert_eq!(charged(&place), 16);
    }
    // Cut in the middle of the last entry: one charge is missing, and every checksum is right.
    fs::write(&path, &good[..good.len() - 80]).expect("cut");
    place.fails(&check, 3, &["line 5", "only", "bytes"]);
    place.fails(&RUN, 4, &["ledger", "the charge for the answers in", "is missing"]);
    // Cut at the end of a line, where the file alone does not show it.
    let end = good[..good.len() - 1].iter().rposition(|&byte| byte == b'\n').expect("lines") + 1;
    fs::write(&path, &good[..end]).expect("cut");
    place.succeeds(&check);
    place.fails(&RUN, 4, &["the charge for the answers in", "is missing"]);
    fs::remove_file(&path).expect("lost");
    place.fails(&RUN, 4, &["the charge for the answers in", "is missing"]);
    fs::write(&path, &good).expect("mended");
    place.succeeds(&RUN);
    assert_eq!(charged(&place), 16);
}

#[test]
fn another_experiment_reports_an_existing_ledger() {
    let place = Workplace::finished(REAL);
    let words = place.says(&format!("{RUN} --set name=other"));
    assert!(words.contains("another ledger: results/real/ledger (16 answers"), "{words}");
}

#[test]
fn a_ledger_that_may_be_published_says_nothing_about_votes() {
    let place = Workplace::finished(REAL);
    let stages = stages(&place);
    let published = [
        place.read("results/real/ledger"),
        fs::read_to_string(place.run_folder("results", "real").join("tables/report.json")).expect("a report"),
    ];
    for stage in &stages {
        let record = read_json(&stage.join("stage.json"));
        let question = record["fingerprint"].as_str().expect("a fingerprint");
        assert!(published.iter().all(|text| !text.contains(&question[..16])), "a hash of the votes is published");
    }
    let secret = place.bytes("results/real/ledger.key");
    assert_eq!(secret.len(), 32);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(place.path("results/real/ledger.key")).expect("a secret").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    // Without the key, the charges cannot be matched to answers.
    fs::remove_file(place.path("results/real/ledger.key")).expect("lost");
    fs::remove_dir_all(&stages[0]).expect("lost");
    place.fails(&RUN, 4, &["ledger.key", "is missing"]);
}

#[test]
fn a_refused_force_sets_nothing_aside() {
    let place = Workplace::finished(REAL);
    let stage = stage(&place, 4);
    let name = stage.file_name().expect("a name").to_string_lossy().into_owned();
    place.fails(&format!("{RUN} --force {name} --force typo"), 2, &["typo"]);
    assert!(stage.join("stage.json").exists());
    // Answers with a key that was never charged are refused until `--force` charges them.
    fs::remove_file(stage.join("stage.json")).expect("unfinished");
    fs::write(stage.join("noise.key"), [7; 32]).expect("a key");
    place.fails(&RUN, 4, &[&name, "--force"]);
    assert_eq!(charged(&place), 16);
    place.succeeds(&format!("{RUN} --force {name}"));
    assert_eq!(charged(&place), 20);
    assert!(!stage.join("noise.key").exists());
}

#[test]
fn two_runs_at_once_charge_the_same_answers_once() {
    let place = Workplace::new(REAL);
    // Another run of the experiment: it differs in a config key that no answer depends on.
    let runs = ["student.epochs=7", "student.epochs=8", "student.epochs=7"].map(|other| {
        let mut command = place.command(&format!("{RUN} --set {other}"));
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
        command.spawn().expect("the binary starts")
    });
    let outputs = runs.map(|run| run.wait_with_output().expect("ended"));
    let ended: Vec<&std::process::Output> = outputs.iter().filter(|output| output.status.success()).collect();
    // The third works in the directory of the first, unless the first was already done.
    for output in outputs.iter().filter(|output| !output.status.success()) {
        check_failure(output, 4, &["another `speed` works in this folder"]);
    }
    assert!(ended.len() >= 2);
    assert_eq!(charged(&place), 16);
    let runs = entries(&place.path("results/real")).into_iter();
    let labels = runs.filter(|run| run.is_dir()).map(|run| {
        let stages = entries(&run.join("stages")).into_iter();
        let mut labels: Vec<_> = stages.filter_map(|stage| fs::read(stage.join("labels.csv")).ok()).collect();
        labels.sort();
        labels
    });
    let labels: Vec<Vec<Vec<u8>>> = labels.collect();
    assert!(labels.len() == 2 && labels[0].len() == ROWS && labels[0] == labels[1]);
}

#[test]
fn a_kill_while_forced_answers_are_given_pays_once_for_them() {
    let (place, duration) = undisturbed();
    let name = stage(&place, 4).file_name().expect("a name").to_string_lossy().into_owned();
    let forced = format!("{RUN} --force {name}");
    let mut paid = 16;
    for part in if exhaustive() { 1..8u32 } else { 3..4 } {
        kill_after(&place, &forced, duration * part / 8);
        // Answers that were charged but not given are given without --force and without a charge.
        let before = charged(&place);
        assert!(before == paid || before == paid + 4, "{before}");
        place.succeeds(&RUN);
        assert_eq!(charged(&place), before.max(paid));
        paid = before;
    }
    assert_eq!(labels(&place).len(), ROWS);
}

#[test]
fn remains_of_killed_writes_are_removed() {
    let place = Workplace::finished(REAL);
    let stage = stage(&place, 4);
    let left =
        [stage.join(".writing-abc"), stage.with_file_name(".copying-abc"), place.path("results/real/.writing-x")];
    fs::write(&left[0], [7; 32]).expect("a key that was being written");
    fs::create_dir(&left[1]).expect("a copy that was being made");
    fs::write(left[1].join("labels.csv"), "").expect("a copy that was being made");
    fs::write(&left[2], [7; 32]).expect("a key that was being written");
    place.succeeds(&RUN);
    assert!(!left[0].exists() && !left[1].exists());
    // Only the holder of the ledger's lock may remove files beside it.
    place.succeeds(&format!("{RUN} --set noise.gamma=0.4"));
    assert!(!left[2].exists());
}

#[test]
fn a_refused_charge_leaves_no_key_behind() {
    let place = Workplace::new(REAL);
    place.fails(&format!("{RUN} --set privacy.budget=0.5"), 6, &["the budget is 0.5", "nothing was charged"]);
    assert_eq!(charged(&place), 0);
    let keys = stages(&place).into_iter().filter(|stage| stage.join("noise.key").exists()).count();
    assert_eq!(keys, 0);
}

#[test]
fn the_papers_inexact_circuit_refuses_real_noise() {
    let config =
        encrypted().replacen("aggregation = \"encrypted\"", "aggregation = \"encrypted\"\ncircuit = \"paper\"", 1);
    let place = Workplace::new(&config);
    place.fails(&RUN, 2, &["circuit", "noise.source = \"simulation\""]);
}

/// Votes with the same labels, once between three classes and once between two, are two different questions, because
/// noise is drawn for every class, and two classes cost less than three.
#[test]
fn answers_between_three_classes_are_not_those_between_two() {
    let place = Workplace::new(&REAL.replace("source = \"uniform\"", "source = \"file\"\nfile = \"votes.npy\""));
    npy(&place.path("votes.npy"), "20, 3", &[4, 1, 0].repeat(20));
    place.succeeds(&RUN);
    assert_eq!(charged(&place), 16);
    let labels: Vec<u8> = (0..5).flat_map(|teacher| [u8::from(teacher == 4); 20]).collect();
    npy(&place.path("votes.npy"), "5, 20", &labels);
    place.succeeds(&format!("{RUN} --set student.epochs=7 --set votes.classes=2"));
    assert_eq!(charged(&place), 32, "answers between three classes were taken for those between two");
}
