//! Real noise: every set of answers that was given is charged once, and no other, whatever happens in between. Damage between runs:
//! `tests/snapshots/budget.trycmd`.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use speed_core::fixture::exhaustive;

use crate::cli::common::{Workplace, check_failure, entries, read_json};

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
    let is_wanted = |path: &PathBuf| read_json(&path.join("aggregate.json"))["noisy_teachers"] == fewer;
    stages(place).into_iter().find(is_wanted).expect("a stage")
}

#[test]
fn kills_spend_no_budget() {
    // An undisturbed run measures the duration of a run and the budget that it needs.
    let (place, duration) = undisturbed();
    let spent = ledger(&place)["spent_epsilon"].as_f64().expect("a number");

    let place = Workplace::new(&encrypted());
    // Enough for every row once, but for no row twice.
    let arguments = format!("{RUN} --set privacy.budget={spent}");
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
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary starts");
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
fn two_runs_at_once_charge_the_same_answers_once() {
    let place = Workplace::new(REAL);
    // Another run of the experiment: it differs in a config key that no answer depends on.
    let runs = ["student.epochs=7", "student.epochs=8", "student.epochs=7"].map(|other| {
        let mut command = place.command(&format!("{RUN} --set {other}"));
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary starts")
    });
    // The third works in the directory of the first, unless the first was already done.
    let outputs = runs.map(|run| run.wait_with_output().expect("ended"));
    let failed: Vec<_> = outputs.iter().filter(|output| !output.status.success()).collect();
    failed.iter().for_each(|output| check_failure(output, 4, &["another `speed` works in this folder"]));
    assert!(failed.len() <= 1);
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
fn a_run_that_hides_next_to_nothing_is_not_submitted() {
    let submit = "submit config.toml --slurm --dry-run --set noise.gamma=6.0";
    Workplace::new(REAL).fails(submit, 2, &["hides next to nothing"]);
}
