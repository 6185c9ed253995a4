//! `speed show` of unfinished runs: units, and Slurm's state of the jobs.

use std::fs::{self, File};

use serde_json::{Value, json};

use super::fake::Cluster;
use crate::cli::common::{check_failure, contains, encrypted};

fn status(cluster: &Cluster, run: &str) -> Value {
    let output = cluster.command(&["show", run, "--json"]).output().expect("the binary starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn units_jobs_and_the_logs_of_failed_ones_are_shown() {
    let cluster = Cluster::new("place", &encrypted());
    cluster.submits(&["--shards", "3"]);
    let run = cluster.run_folder();
    let name = run.to_str().expect("text");
    let local = cluster.path("results");
    let results = ["--results", local.to_str().expect("text")];
    let shard = [["run", "config.toml"], results, ["--stage", "data"]].concat();
    cluster.place.succeeds(&shard);
    let shard = [["run", "config.toml"], results, ["--stage", "teachers"], ["--shard", "3/3"]].concat();
    cluster.place.succeeds(&shard);
    // A shard at work.
    let lock = File::create(run.join("shards/teachers-1-of-3.lock")).expect("a file");
    lock.lock().expect("a lock");
    cluster.queue("2|1|RUNNING\n2|3|COMPLETED\n3|N/A|PENDING\n");
    cluster.accounts("1|COMPLETED|0:0\n2_1|RUNNING|0:0\n2_2|FAILED|9:0\n2_3|COMPLETED|0:0\n4_[1-3]|PENDING|0:0\n");
    let said = status(&cluster, name);
    let units = &said["runs"][0]["units"];
    let counts = |units: &Value| json!([units["stage"], units["done"], units["of"], units["at_most"]]);
    assert_eq!(counts(&units[0]), json!(["teachers", 1, 5, false]));
    assert_eq!(counts(&units[1]), json!(["aggregate-tau-0-8", 0, 4, false]));
    assert_eq!(counts(&units[2]), json!(["student", 0, 8, true]));
    assert_eq!(said["runs"][0]["shards"], json!([{ "stage": "teachers", "of": 3, "shard": 1 }]));
    let task = |step: &str, shard: Value| {
        let tasks = said["tasks"].as_array().expect("tasks").iter();
        let found: Vec<&Value> = tasks.filter(|task| task["step"] == step && task["shard"] == shard).collect();
        assert_eq!(found.len(), 1, "{step} {shard}: {said}");
        found[0].clone()
    };
    let failed = task("teachers", json!(2));
    assert_eq!((&failed["outcome"], &failed["exit_code"]), (&json!("failed"), &json!("9:0")));
    assert!(failed["log"].as_str().is_some_and(|log| log.ends_with("-2_2.out")), "{failed}");
    let outcomes = [
        task("teachers", json!(1)),
        task("teachers", json!(3)),
        task("queries", Value::Null),
        task("data", Value::Null),
    ];
    assert_eq!(outcomes.map(|task| task["outcome"].clone()), ["running", "done", "waiting", "done"]);
    assert_eq!(task("aggregate", json!(1))["outcome"], "forgotten");
    // Without accounting, only the exit code is unknown.
    fs::remove_file(cluster.path("fake/accounts")).expect("removed");
    assert_eq!(status(&cluster, name)["tasks"][1]["outcome"], "running");

    let text = cluster.command(&["show", name]).output().expect("the binary starts");
    let text = String::from_utf8(text.stdout).expect("text");
    contains(
        &text,
        &[
            "1 of 5",
            "at most 8",
            "at work: teachers 1/3\n",
            "shards work on it",
            "teachers 2/3: job 2, not known to Slurm",
            "log: none",
        ],
    );
    cluster.queue("2|1|SUSPENDED\n2|2|REQUEUE_HOLD\n2|3|PREEMPTED\n3|N/A|PENDING\n");
    let said = status(&cluster, name);
    let of_teachers = |key: &str| {
        let tasks = said["tasks"].as_array().expect("tasks").iter();
        tasks.filter(|task| task["step"] == "teachers").map(|task| task[key].clone()).collect::<Vec<_>>()
    };
    assert_eq!(of_teachers("outcome"), ["held", "held", "waiting"]);
    assert_eq!(
        of_teachers("needs"),
        [
            json!("Slurm after a preemption, or by an administrator: scontrol resume"),
            json!("scontrol release"),
            Value::Null
        ]
    );
    let output = cluster.command(&["show", name]).output().expect("the binary starts");
    let text = String::from_utf8(output.stdout).expect("text");
    for line in ["by an administrator: scontrol resume 2_1", "teachers 2/3: REQUEUE_HOLD: scontrol release 2_2"] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn without_slurm_units_alone_are_shown() {
    let cluster = Cluster::new("place", &encrypted());
    cluster.place.succeeds(&["run", "config.toml", "--results", "place/results", "--stage", "student"]);
    let run = cluster.run_folder();
    let name = run.to_str().expect("text");
    let said = status(&cluster, name);
    assert!(cluster.calls("squeue").is_empty(), "nothing was submitted, so nobody is asked");
    assert_eq!(said["runs"][0]["state"], "stopped");
    let units = said["runs"][0]["units"].as_array().expect("units");
    for stage in units {
        assert!(stage["done"] == stage["of"] && stage["at_most"] == false, "{stage}");
    }
    let stages = said["runs"][0]["stages"].as_array().expect("stages");
    assert!(stages.iter().all(|stage| stage["state"] == "done"), "{stages:?}");
    // Two rows with the same labels share students.
    let students = fs::read_dir(run.join("stages")).expect("stages").flatten();
    let students = students.filter(|entry| entry.file_name().to_string_lossy().starts_with("student-")).count();
    assert_eq!(units[2]["of"], students);

    cluster.submits(&[]);
    fs::write(
        run.join("slurm/jobs.json"),
        r#"{"runs":[],"jobs":[{"step":"report","job":"1","name":"n","shards":[],"of":1,"submitted_at":1}]}"#,
    )
    .expect("a record");
    let without = cluster.place.command(&["show", name]).env("PATH", cluster.path("nothing")).output().expect("starts");
    let text = String::from_utf8(without.stdout).expect("text");
    assert!(without.status.success() && text.contains("Slurm was not asked: squeue is not on PATH"), "{text}");
    assert!(!text.contains("submits them again"), "nobody knows what waits: {text}");
    cluster.program("squeue", "printf '1|1|\\033[2Jx\\n'");
    let odd = status(&cluster, name);
    assert!(
        odd["slurm_error"].as_str().is_some_and(|error| !error.contains('\u{1b}') && error.contains("JOB|TASK")),
        "{odd}"
    );
    fs::write(run.join("slurm/jobs.json"), "{\"jobs\":7}").expect("a record");
    let damaged = cluster.command(&["show", name]).output().expect("the binary starts");
    check_failure(&damaged, 4, &["jobs.json", "not a report that this version wrote"]);
    check_failure(&cluster.place.speed(&["show", "nothing"]), 4, &["no run of this name"]);
}
