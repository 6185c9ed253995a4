//! Shards give the same bytes as one process, in any order, even if they are repeated or killed.

mod refused;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::budget;
use crate::cli::common::{TINY, Workplace, determined, encrypted, entries, succeeded, sweep_folder, swept};

/// The stages with shards, each with the stage that must be done before its shards can begin.
const STAGES: [(&str, &str); 3] = [("data", "teachers"), ("queries", "aggregate"), ("aggregate", "student")];

/// Starts a shard, with its output captured.
pub(crate) fn start(place: &Workplace, results: &str, stage: &str, share: &str) -> Child {
    let arguments = format!("run config.toml --results {results} --stage {stage} --shard {share} --threads 1 --json");
    place.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts")
}

/// Waits for a shard, and returns its report.
#[track_caller]
pub(crate) fn ended(shard: Child) -> Value {
    serde_json::from_str(&succeeded(shard.wait_with_output().expect("ended"))).expect("JSON")
}

#[track_caller]
fn until(place: &Workplace, results: &str, stage: &str) {
    let said = place.succeeds(&format!("run config.toml --results {results} --stage {stage}"));
    assert!(said.starts_with(&format!("done up to stage {stage}: ")), "{said}");
}

#[test]
fn shards_in_any_order_give_the_bytes_of_one_process() {
    let place = Workplace::finished(&encrypted());
    let expected = determined(&place.run_folder("results", "tiny"));

    for (before, stage) in STAGES {
        until(&place, "two", before);
        // Two shards run concurrently, then the third one.
        let mut shards = ["3/3", "1/3"].map(|share| start(&place, "two", stage, share)).map(ended).to_vec();
        let submit = "submit config.toml --slurm --results two --shards 3 --dry-run --json";
        let said = place.json(submit);
        let step = said["steps"].as_array().expect("steps").iter().find(|step| step["step"] == stage).expect(stage);
        assert_eq!(step["submitted"], json!([2]), "only the third one is missing: {said}");
        shards.push(ended(start(&place, "two", stage, "2/3")));
        let units = match stage {
            "teachers" => 5,
            "aggregate" => 4,
            _ => 6,
        };
        for count in ["units", "done_here"] {
            let sum: u64 = shards.iter().filter_map(|report| report[count].as_u64()).sum();
            assert_eq!(sum, units, "{stage}: {count}");
        }
        let again = ended(start(&place, "two", stage, "1/3"));
        assert_eq!((&again["units"], &again["done_here"]), (&shards[1]["units"], &json!(0)), "nothing is done twice");
    }
    place.succeeds("run config.toml --results two");
    let run = place.run_folder("two", "tiny");
    assert_eq!(determined(&run), expected);
    // The kind of machine is recorded for each teacher; the run's own progress file is removed.
    let metrics = fs::read_to_string(run.join("stages/teachers/metrics.csv")).expect("metrics");
    let kind = fs::read_to_string(run.join("stages/teachers/arithmetic")).expect("a kind");
    assert!(metrics.lines().skip(1).all(|line| line.ends_with(kind.trim())), "{metrics}");
    assert!(!run.join("progress.json").exists());
}

/// Lists the remains of killed writes in a run.
fn unfinished(run: &Path) -> Vec<PathBuf> {
    let files = entries(&run.join("stages")).into_iter().flat_map(|stage| entries(&stage));
    files.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".writing-"))).collect()
}

#[test]
fn a_lost_or_damaged_unit_is_done_again() {
    let place = Workplace::new(&encrypted());
    until(&place, "results", "data");
    assert_eq!(ended(start(&place, "results", "teachers", "1/1"))["done_here"], 5);
    let stage = place.run_folder("results", "tiny").join("stages/teachers");
    let whole = fs::read(stage.join("teacher-0003.bin")).expect("a teacher");
    fs::remove_file(stage.join("teacher-0003.bin")).expect("removed");
    assert_eq!(ended(start(&place, "results", "teachers", "1/1"))["done_here"], 1);
    fs::write(stage.join("teacher-0003.bin"), "x").expect("written");
    assert_eq!(ended(start(&place, "results", "teachers", "1/1"))["done_here"], 1);
    until(&place, "results", "teachers");
    assert_eq!(fs::read(stage.join("teacher-0003.bin")).expect("a teacher"), whole);
    // A shard that never ran has nothing to do, until the stage is removed.
    assert_eq!(ended(start(&place, "results", "teachers", "2/3"))["done_here"], 0);
    fs::remove_dir_all(&stage).expect("removed");
    assert_eq!(ended(start(&place, "results", "teachers", "2/3"))["done_here"], 2);
}

/// A simple generator of moments, which are the same in every run of CI.
struct Moments(u64);

impl Moments {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

#[test]
fn shards_killed_at_random_give_the_bytes_of_one_process() {
    let large: Option<u32> = std::env::var("SPEED_SHARD_KILLS").ok().map(|kills| kills.parse().expect("a number"));
    let (kills, of) = large.map_or((2, 3), |kills| (kills, 8));
    // More units of every kind, so that every shard always has units.
    let tiny = if large.is_some() { encrypted() } else { TINY.to_owned() };
    let config = tiny
        .replace("teachers = 5", "teachers = 16")
        .replace("steps = 12", "steps = 30")
        .replace("count = 4", "count = 16");
    let place = Workplace::finished(&config);
    let expected = determined(&place.run_folder("results", "tiny"));
    let (mut moments, mut killed, mut experiments) = (Moments(u64::from(kills)), 0, 0);
    while killed < kills {
        experiments += 1;
        let results = format!("killed-{experiments}");
        for (before, stage) in STAGES {
            until(&place, &results, before);
            // A third of the kills in every stage, so that no stage has all of them.
            let share = (kills - killed).min(kills.div_ceil(3));
            killed += kill_some(&place, &results, stage, of, share, &mut moments);
        }
        place.succeeds(&format!("run config.toml --results {results}"));
        let run = place.run_folder(&results, "tiny");
        assert_eq!(determined(&run), expected, "kills changed the results");
        assert!(unfinished(&run).is_empty(), "{:?}", unfinished(&run));
    }
}

/// Runs all shards of a stage at once, kills up to `kills` of them at random and restarts those; returns how many
/// it killed.
fn kill_some(place: &Workplace, results: &str, stage: &str, of: usize, kills: u32, moments: &mut Moments) -> u32 {
    let shard = |number: usize| start(place, results, stage, &format!("{}/{of}", number + 1));
    let mut running: Vec<Child> = (0..of).map(shard).collect();
    let mut killed = 0;
    while killed < kills {
        std::thread::sleep(Duration::from_millis(5 + moments.below(120)));
        let chosen = usize::try_from(moments.below(of as u64)).expect("a small number");
        let is_running = |child: &mut Child| child.try_wait().expect("a child").is_none();
        if is_running(&mut running[chosen]) {
            running[chosen].kill().expect("kill -9");
            running[chosen].wait().expect("ended");
            running[chosen] = shard(chosen);
            killed += 1;
        } else if !running.iter_mut().any(is_running) {
            break;
        }
    }
    running.into_iter().for_each(|child| drop(ended(child)));
    killed
}

#[test]
fn a_sweep_s_units_are_done_once_by_its_shards() {
    let place = Workplace::new(&swept("gamma = [0.5, 1.0]"));
    place.succeeds("run config.toml --results one");
    for (before, stage) in STAGES {
        place.succeeds(&format!("run config.toml --results two --stage {before}"));
        let shards = ["2/2", "1/2"].map(|share| start(&place, "two", stage, share)).map(ended);
        let done: u64 = shards.iter().filter_map(|report| report["done_here"].as_u64()).sum();
        // The ensemble is the same for any gamma; labels in clear text are not units.
        match stage {
            "teachers" => assert_eq!(done, 5),
            "aggregate" => assert_eq!(done, 0),
            _ => assert!(done > 3, "{done}"),
        }
        assert_eq!(ended(start(&place, "two", stage, "1/2"))["done_here"], 0);
    }
    assert!(!place.says("run config.toml --results two").contains(" teachers trained ("));
    for name in ["sweep.csv", "sweep.json", "sweep.md"] {
        let [one, two] =
            ["one/tiny", "two/tiny"].map(|folder| fs::read(sweep_folder(&place.path(folder)).join(name)).expect(name));
        assert_eq!(one, two, "{name}");
    }
}

#[test]
fn real_answers_are_charged_once_by_their_shards() {
    let place = Workplace::new(&budget::encrypted());
    place.succeeds("run config.toml --stage queries");
    assert!(!place.path("results/real/ledger").exists(), "nothing was answered, and something charged");
    let shards = ["1/2", "2/2"].map(|share| start(&place, "results", "aggregate", share)).map(ended);
    assert!(shards.iter().filter_map(|report| report["done_here"].as_u64()).sum::<u64>() == 8);
    assert_eq!(ended(start(&place, "results", "aggregate", "1/2"))["done_here"], 0);
    // The shards answer the two encrypted rows; the run itself answers the rows in clear text.
    assert_eq!(budget::charged(&place), 8);
    place.succeeds(&budget::RUN);
    assert_eq!(budget::charged(&place), 16);
    let run = place.run_folder("results", "real");
    assert!(entries(&run.join("stages")).iter().all(|stage| !stage.join("noise.key").exists()));
    let first = determined(&run);
    place.succeeds(&budget::RUN);
    assert_eq!((budget::charged(&place), determined(&run)), (16, first));
}
