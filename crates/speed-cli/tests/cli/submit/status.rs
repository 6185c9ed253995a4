//! `speed show` of unfinished runs: units, and Slurm's state of the jobs.

use std::fs::{self, File};

use serde_json::{Value, json};

use super::fake::Cluster;
use crate::cli::common::{check_failure, contains, encrypted, entries, has, succeeded};

#[test]
fn units_jobs_and_the_logs_of_failed_ones_are_shown() {
    let cluster = Cluster::new("place", &encrypted());
    cluster.submits(&["--shards", "3"]);
    let run = cluster.run_folder();
    let local = cluster.path("results");
    let run_of = |stage| ["run", "config.toml", "--results", local.to_str().expect("text"), "--stage", stage];
    cluster.place.succeeds(&run_of("data"));
    cluster.place.succeeds(&[&run_of("teachers")[..], &["--shard", "3/3"]].concat());
    // A shard at work.
    let lock = File::create(run.join("shards/teachers-1-of-3.lock")).expect("a file");
    lock.lock().expect("a lock");
    cluster.set("queue", "2|1|RUNNING\n2|3|COMPLETED\n3|N/A|PENDING\n");
    cluster
        .set("accounts", "1|COMPLETED|0:0\n2_1|RUNNING|0:0\n2_2|FAILED|9:0\n2_3|COMPLETED|0:0\n4_[1-3]|PENDING|0:0\n");
    let said = cluster.status(&run);
    let units = json!([
        { "stage": "teachers", "done": 1, "of": 5, "at_most": false },
        { "stage": "aggregate-tau-0-8", "done": 0, "of": 4, "at_most": false },
        { "stage": "student", "done": 0, "of": 8, "at_most": true },
    ]);
    let shard = json!({ "stage": "teachers", "of": 3, "shard": 1 });
    has(&said["runs"][0], &json!({ "units": units, "shards": [shard] }));
    let task = |step: &str, shard: Value| {
        let tasks = said["tasks"].as_array().expect("tasks").iter();
        let found: Vec<&Value> = tasks.filter(|task| task["step"] == step && task["shard"] == shard).collect();
        assert_eq!(found.len(), 1, "{step} {shard}: {said}");
        found[0].clone()
    };
    let failed = task("teachers", json!(2));
    has(&failed, &json!({ "outcome": "failed", "exit_code": "9:0" }));
    assert!(failed["log"].as_str().is_some_and(|log| log.ends_with("-2_2.out")), "{failed}");
    for (step, shard, outcome) in [
        ("teachers", json!(1), "running"),
        ("teachers", json!(3), "done"),
        ("queries", Value::Null, "waiting"),
        ("data", Value::Null, "done"),
        ("aggregate", json!(1), "forgotten"),
    ] {
        assert_eq!(task(step, shard)["outcome"], outcome, "{step}");
    }
    // Without accounting, only the exit code is unknown.
    fs::remove_file(cluster.path("fake/accounts")).expect("removed");
    assert_eq!(cluster.status(&run)["tasks"][1]["outcome"], "running");
    contains(
        &cluster.show(&run),
        &[
            "1 of 5",
            "at most 8",
            "at work: teachers 1/3\n",
            "shards work on it",
            "teachers 2/3: job 2, not known to Slurm",
            "log: none",
        ],
    );
    cluster.set("queue", "2|1|SUSPENDED\n2|2|REQUEUE_HOLD\n2|3|PREEMPTED\n3|N/A|PENDING\n");
    let said = cluster.status(&run);
    let tasks = said["tasks"].as_array().expect("tasks").iter().filter(|task| task["step"] == "teachers");
    let resume = "Slurm after a preemption, or by an administrator: scontrol resume";
    let expected = [("held", json!(resume)), ("held", json!("scontrol release")), ("waiting", Value::Null)]
        .map(|(outcome, needs)| json!([outcome, needs]));
    assert_eq!(tasks.map(|task| json!([task["outcome"], task["needs"]])).collect::<Vec<_>>(), expected);
    let lines = ["by an administrator: scontrol resume 2_1", "teachers 2/3: REQUEUE_HOLD: scontrol release 2_2"];
    contains(&cluster.show(&run), &lines);
}

#[test]
fn without_slurm_units_alone_are_shown() {
    let cluster = Cluster::new("place", &encrypted());
    cluster.place.succeeds(&["run", "config.toml", "--results", "place/results", "--stage", "student"]);
    let run = cluster.run_folder();
    let name = run.to_str().expect("text");
    let said = cluster.status(&run);
    assert!(cluster.calls("squeue").is_empty(), "nothing was submitted, so nobody is asked");
    assert_eq!(said["runs"][0]["state"], "stopped");
    let units = said["runs"][0]["units"].as_array().expect("units");
    for stage in units {
        assert!(stage["done"] == stage["of"] && stage["at_most"] == false, "{stage}");
    }
    let stages = said["runs"][0]["stages"].as_array().expect("stages");
    assert!(stages.iter().all(|stage| stage["state"] == "done"), "{stages:?}");
    // Two rows with the same labels share students.
    let stages = entries(&run.join("stages")).into_iter();
    let students = stages.filter(|path| path.to_string_lossy().contains("/stages/student-")).count();
    assert_eq!(units[2]["of"], students);

    cluster.submits(&[]);
    let record = r#"{"runs":[],"jobs":[{"step":"report","job":"1","name":"n","shards":[],"of":1,"submitted_at":1}]}"#;
    fs::write(run.join("slurm/jobs.json"), record).expect("a record");
    let without = cluster.place.command(&["show", name]).env("PATH", cluster.path("nothing")).output().expect("starts");
    let text = succeeded(without);
    assert!(text.contains("Slurm was not asked: squeue is not on PATH"), "{text}");
    assert!(!text.contains("submits them again"), "nobody knows what waits: {text}");
    cluster.program("squeue", "printf '1|1|\\033[2Jx\\n'");
    let odd = cluster.status(&run)["slurm_error"].to_string();
    assert!(!odd.contains('\u{1b}') && !odd.contains("u001b") && odd.contains("JOB|TASK"), "{odd}");
    fs::write(run.join("slurm/jobs.json"), "{\"jobs\":7}").expect("a record");
    let damaged = cluster.command(&["show", name]).output().expect("the binary starts");
    check_failure(&damaged, 4, &["jobs.json", "not a report that this version wrote"]);
}
