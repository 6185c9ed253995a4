//! Refusals of shards, and of other processes beside them.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::json;

use super::{ended, start};
use crate::cli::common::{Workplace, check_failure, encrypted, entries, read_json, succeeded};

const TEACHERS: &str = "run config.toml --stage teachers --shard 1/2";

#[test]
fn a_missing_earlier_stage_is_named() {
    let place = Workplace::new(&encrypted());
    place.fails(&TEACHERS, 4, &["stages/data", "speed run CONFIG --stage data"]);
    assert!(!place.path("results").exists(), "something was written");
    place.succeeds("run config.toml --stage data");
    place.fails("run config.toml --stage aggregate --shard 1/2", 4, &["--stage teachers"]);
    place.fails("run config.toml --stage student --shard 1/2", 4, &["--stage teachers"]);
    // Nothing after the stage was begun.
    let run = place.run_folder("results", "tiny");
    assert_eq!(entries(&run.join("stages")).len(), 1);
    assert!(!run.join("tables").exists());
}

#[test]
fn a_shard_waits_for_an_earlier_stage_that_appears_late() {
    let place = Workplace::new(&encrypted());
    let waiting = |seconds: &'static str| format!("{TEACHERS} --threads 1 --latency-wait {seconds}");
    place.fails(&waiting("1"), 4, &["data is not seen done yet: waiting up to 1 s", "speed run CONFIG --stage data"]);

    // A file system may show files of another machine late.
    place.succeeds("run config.toml --stage data");
    let run = place.run_folder("results", "tiny");
    let [stage, elsewhere] = ["stages/data", "data"].map(|name| run.join(name));
    fs::rename(&stage, &elsewhere).expect("renamed");
    let mut shard = place.command(&waiting("600")).stderr(Stdio::piped()).spawn().expect("the binary starts");
    let mut said = BufReader::new(shard.stderr.take().expect("piped")).lines().map_while(Result::ok);
    assert!(said.any(|line| line.contains("waiting up to 600 s")), "the shard did not wait");
    fs::rename(&elsewhere, &stage).expect("renamed");
    // Reads to the end, so that the shard can continue writing.
    let rest: Vec<String> = said.collect();
    assert!(shard.wait().expect("ended").success(), "{rest:?}");
    assert!(run.join("stages/teachers/teacher-0000.bin").exists());
}

#[test]
fn another_config_is_refused_with_what_differs() {
    let place = Workplace::new(&encrypted());
    place.succeeds("run config.toml --stage data");
    let run = place.run_folder("results", "tiny");
    let id = run.file_name().expect("an id").to_str().expect("text");
    place.succeeds(&format!("run config.toml --run {id} --stage data"));
    let other = format!("run config.toml --run {id} --set teacher.steps=13 --set row.0.name=x");
    place.fails(&other, 2, &[&format!("--run {id}"), "teacher.steps", "row.0.name"]);
    place.fails("run config.toml --run 0123", 2, &["--run 0123", id]);
    // The directory has work for other inputs: a shard does not set it aside.
    ended(start(&place, "results", "teachers", "1/2"));
    let stage = run.join("stages/teachers");
    fs::write(stage.join("fingerprint"), "0".repeat(64)).expect("written");
    let mut parts = read_json(&stage.join("inputs.json"));
    parts["images"] = json!("1".repeat(64));
    fs::write(stage.join("inputs.json"), parts.to_string()).expect("written");
    place.fails(&TEACHERS, 4, &["stages/teachers", "other inputs", "these differ: images"]);
    assert!(!run.join("stages/teachers.superseded-1").exists());
    place.succeeds("run config.toml --stage teachers");
    assert!(run.join("stages/teachers.superseded-1").exists());
}

#[test]
fn another_binary_is_refused_without_an_override() {
    let place = Workplace::new(&encrypted());
    place.succeeds("run config.toml --stage data");
    ended(start(&place, "results", "teachers", "1/2"));
    let other = place.path("speed");
    fs::copy(env!("CARGO_BIN_EXE_speed"), &other).expect("a copy");
    // The same bytes under another name are the same program.
    let run = |share: &str| {
        let arguments = format!("run config.toml --stage teachers --shard {share}");
        Command::new(&other).args(arguments.split(' ')).current_dir(place.path(".")).output().expect("it starts")
    };
    assert!(succeeded(run("1/2")).contains("0 of them here"));
    fs::OpenOptions::new().append(true).open(&other).expect("a binary").write_all(b"x").expect("written");
    for share in ["1/2", "2/2"] {
        check_failure(&run(share), 4, &["stages/teachers", "another program", "SHA-256", "--mix-machines"]);
    }
    succeeded(run("2/2 --mix-machines"));
}

#[test]
fn a_shard_at_work_is_named_to_other_processes() {
    let place = Workplace::new(&encrypted());
    place.succeeds("run config.toml --stage data");
    let run = place.run_folder("results", "tiny");
    fs::create_dir(run.join("shards")).expect("a folder");
    let lock = File::create(run.join("shards/teachers-1-of-2.lock")).expect("a file");
    lock.lock().expect("a lock");
    let others = [
        TEACHERS,
        "run config.toml --stage teachers --shard 1/3",
        "run config.toml",
        "run config.toml --stage teachers --force data",
    ];
    for arguments in others {
        place.fails(arguments, 4, &["shard 1/2 of teachers works in this folder", "wait until it finishes"]);
    }
    assert!(!run.join("stages/teachers").exists(), "something was begun");
    // The other shard of the same division works beside it, and the next process of the shard after its end.
    assert_eq!(ended(start(&place, "results", "teachers", "2/2"))["done_here"], 2);
    drop(lock);
    assert_eq!(ended(start(&place, "results", "teachers", "1/2"))["done_here"], 3);

    let lock = File::options().write(true).open(run.join("run.lock")).expect("a file");
    lock.lock().expect("a lock");
    place.fails(&TEACHERS, 4, &["another `speed` works in this folder"]);
}
