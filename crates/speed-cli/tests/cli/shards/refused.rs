//! Refusals of shards, and leases of other processes.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{ended, start};
use crate::cli::common::{Workplace, check_failure, encrypted, read_json};

const TEACHERS: [&str; 6] = ["run", "config.toml", "--stage", "teachers", "--shard", "1/2"];

#[test]
fn bad_shares_and_stages_are_named() {
    let place = Workplace::new(&encrypted());
    let run = |stage: &'static str, share: &'static str| ["run", "config.toml", "--stage", stage, "--shard", share];
    for share in ["0/3", "4/3", "x/3", "3", "1/0", "-1/3", "1/2/3"] {
        place.fails(
            &run("teachers", share)[..4].iter().copied().chain([&*format!("--shard={share}")]).collect::<Vec<_>>(),
            2,
            &[share, "1 <= I <= N"],
        );
    }
    place.fails(&run("votes", "1/2"), 2, &["--stage votes", "teachers, check, aggregate, student"]);
    place.fails(&["run", "config.toml", "--stage", "nothing"], 2, &["--stage nothing", "teachers, votes"]);
    place.fails(
        &["run", "config.toml", "--set", "table.repeats=0", "--stage", "student", "--shard", "1/2"],
        2,
        &["--stage student"],
    );
    for other in [&["--shard", "1/2"][..], &["--stage", "teachers", "--shard", "1/2", "--force", "teachers"]] {
        let output = place.speed(&[&["run", "config.toml"], other].concat());
        assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert!(!place.path("results").exists(), "something was written");
}

#[test]
fn a_missing_earlier_stage_is_named() {
    let place = Workplace::new(&encrypted());
    place.fails(&TEACHERS, 4, &["stages/data", "speed run CONFIG --stage data"]);
    assert!(!place.path("results").exists(), "something was written");
    place.succeeds(&["run", "config.toml", "--stage", "data"]);
    place.fails(&["run", "config.toml", "--stage", "aggregate", "--shard", "1/2"], 4, &["--stage teachers"]);
    place.fails(&["run", "config.toml", "--stage", "student", "--shard", "1/2"], 4, &["--stage teachers"]);
    // Nothing after the stage was begun.
    let run = place.run_folder("results", "tiny");
    assert_eq!(fs::read_dir(run.join("stages")).expect("stages").count(), 1);
    assert!(!run.join("tables").exists());
}

#[test]
fn a_shard_waits_for_an_earlier_stage_that_appears_late() {
    let place = Workplace::new(&encrypted());
    let waiting = |seconds: &'static str| [&TEACHERS[..], &["--threads", "1", "--latency-wait", seconds]].concat();
    place.fails(&waiting("1"), 4, &["data is not seen done yet: waiting up to 1 s", "speed run CONFIG --stage data"]);

    let mut shard = place.command(&waiting("600")).stderr(Stdio::piped()).spawn().expect("the binary starts");
    let mut said = BufReader::new(shard.stderr.take().expect("piped")).lines().map_while(Result::ok);
    assert!(said.any(|line| line.contains("waiting up to 600 s")), "the shard did not wait");
    place.succeeds(&["run", "config.toml", "--stage", "data"]);
    // Reads to the end, so that the shard can continue writing.
    let rest: Vec<String> = said.collect();
    assert!(shard.wait().expect("ended").success(), "{rest:?}");
    assert!(place.run_folder("results", "tiny").join("stages/teachers/teacher-0000.bin").exists());
}

#[test]
fn another_config_is_refused_with_what_differs() {
    let place = Workplace::new(&encrypted());
    place.succeeds(&["run", "config.toml", "--stage", "data"]);
    let run = place.run_folder("results", "tiny");
    let id = run.file_name().expect("an id").to_str().expect("text");
    place.succeeds(&["run", "config.toml", "--run", id, "--stage", "data"]);
    let other = ["run", "config.toml", "--run", id, "--set", "teacher.steps=13", "--set", "row.0.name=x"];
    place.fails(&other, 2, &[&format!("--run {id}"), "teacher.steps", "row.0.name"]);
    place.fails(&["run", "config.toml", "--run", "0123"], 2, &["--run 0123", id]);
    // The directory has work for other inputs: a shard does not set it aside.
    ended(start(&place, "results", "teachers", "1/2"));
    let stage = run.join("stages/teachers");
    fs::write(stage.join("fingerprint"), "0".repeat(64)).expect("written");
    let mut parts = read_json(&stage.join("inputs.json"));
    parts["images"] = json!("1".repeat(64));
    fs::write(stage.join("inputs.json"), parts.to_string()).expect("written");
    place.fails(&TEACHERS, 4, &["stages/teachers", "other inputs", "these differ: images"]);
    assert!(!run.join("stages/teachers.superseded-1").exists());
    place.succeeds(&["run", "config.toml", "--stage", "teachers"]);
    assert!(run.join("stages/teachers.superseded-1").exists());
}

#[test]
fn a_shard_checks_again_after_an_earlier_step_was_repeated() {
    let place = Workplace::new(&encrypted());
    place.succeeds(&["run", "config.toml", "--stage", "data"]);
    assert_eq!(ended(start(&place, "results", "teachers", "1/2"))["done_here"], 3);
    assert_eq!(ended(start(&place, "results", "teachers", "1/2"))["units"], Value::Null);
    let data = place.run_folder("results", "tiny").join("stages/data");
    fs::write(data.join("fingerprint"), "0".repeat(64)).expect("written");
    let again = ended(start(&place, "results", "teachers", "1/2"));
    assert_eq!((&again["units"], &again["done_here"]), (&json!(3), &json!(0)), "the images are the same");
}

#[test]
fn another_binary_is_refused_without_an_override() {
    let place = Workplace::new(&encrypted());
    place.succeeds(&["run", "config.toml", "--stage", "data"]);
    ended(start(&place, "results", "teachers", "1/2"));
    let other = place.path("speed");
    fs::copy(env!("CARGO_BIN_EXE_speed"), &other).expect("a copy");
    // The same bytes under another name are the same program.
    let run = |share: &str, more: &[&str]| {
        let arguments = ["run", "config.toml", "--stage", "teachers", "--shard", share];
        let mut command = Command::new(&other);
        command.args(arguments).args(more).current_dir(place.path("."));
        command.output().expect("it starts")
    };
    assert!(String::from_utf8_lossy(&run("1/2", &[]).stdout).contains("nothing to do"));
    fs::OpenOptions::new().append(true).open(&other).expect("a binary").write_all(b"x").expect("written");
    for share in ["1/2", "2/2"] {
        check_failure(&run(share, &[]), 4, &["stages/teachers", "another program", "SHA-256", "--mix-machines"]);
    }
    let told = run("2/2", &["--mix-machines"]);
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
}

/// Writes a lease on a teacher, of a process on this machine or another.
fn lease(stage: &Path, pid: u32, started: u64, elsewhere: bool) {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("a boot");
    let namespace = fs::read_link("/proc/self/ns/pid").expect("a namespace");
    let system = if elsewhere { "another boot".to_owned() } else { format!("{} {}", boot.trim(), namespace.display()) };
    let lease = json!({
        "host": "node7", "system": system, "pid": pid, "started": started, "heart": "alive-test", "token": "test-0",
    });
    fs::write(stage.join("teacher-0002.lease"), lease.to_string()).expect("a lease");
}

#[test]
fn leases_of_dead_processes_are_taken_over_and_others_awaited() {
    let place = Workplace::new(&encrypted());
    place.succeeds(&["run", "config.toml", "--stage", "data"]);
    ended(start(&place, "results", "teachers", "2/2"));
    let stage = place.run_folder("results", "tiny").join("stages/teachers");
    // A lease of an ended process on this machine, whose number now belongs to a running one, is taken over at once.
    lease(&stage, std::process::id(), 1, false);
    let began = Instant::now();
    place.succeeds(&["run", "config.toml", "--stage", "teachers", "--shard", "3/5"]);
    assert!(began.elapsed() < Duration::from_secs(30), "a dead process was waited for");
    assert!(!stage.join("teacher-0002.lease").exists());

    // A live process elsewhere is waited for; other units are done meanwhile.
    fs::remove_file(stage.join("teacher-0002.json")).expect("removed");
    lease(&stage, 1, 1, true);
    let mut shard = place.command(&[&TEACHERS[..], &["--threads", "1", "--json"]].concat());
    let shard = shard.env("SPEED_LEASE_TIMES", "100,5000").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut shard = shard.spawn().expect("the binary starts");
    let mut beats = 0;
    let mut beat = || {
        beats += 1;
        fs::write(stage.join("alive-test"), beats.to_string()).expect("a beat");
        std::thread::sleep(Duration::from_millis(100));
    };
    // The next unit is done while it waits.
    while !stage.join("teacher-0004.json").exists() {
        beat();
        assert!(shard.try_wait().expect("a child").is_none(), "it did not wait");
    }
    // Longer than an abandoned lease is kept.
    (0..60).for_each(|_| beat());
    assert!(shard.try_wait().expect("a child").is_none(), "it did not wait");
    // A run with --force reports the working process and changes nothing.
    let mut forced = place.command(&["run", "config.toml", "--force", "teachers"]);
    let output = std::thread::scope(|scope| {
        let forced = scope.spawn(|| forced.env("SPEED_LEASE_TIMES", "100,5000").output().expect("it starts"));
        while !forced.is_finished() {
            beat();
        }
        forced.join().expect("ended")
    });
    check_failure(&output, 4, &["stages/teachers", "process ", "works on it"]);
    // Its counter no longer changes, so the process counts as ended.
    assert_eq!(ended(shard)["units"], 3);
    assert!(!stage.join("teacher-0002.lease").exists() && stage.join("teacher-0002.json").exists());
}
