//! `speed submit` and `speed show`, with fake Slurm programs that record their calls or run jobs at once.

mod fake;
mod status;

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use self::fake::Cluster;
use crate::cli::common::{Workplace, check_failure, contains, determined, encrypted, has, read_json, swept};

#[test]
fn steps_are_submitted_in_order_each_depending_on_the_previous() {
    let cluster = Cluster::new("place", &encrypted());
    let said = cluster.submits(&["--shards", "3", "--at-once", "2", "--partition", "long", "--account=abc-1"]);
    assert!(said.contains("teachers: job 2, 1-3 of 3 shards\n"), "{said}");
    let calls = cluster.calls("sbatch");
    let steps = ["data", "teachers", "queries", "aggregate", "aggregate-all", "student", "report"];
    assert_eq!(calls.len(), steps.len(), "{calls:?}");
    for (job, (call, step)) in calls.iter().zip(steps).enumerate() {
        let option = |start: &str| call.iter().find_map(|word| word.strip_prefix(start));
        let has_shards = matches!(step, "teachers" | "aggregate" | "student");
        assert_eq!(option("--array="), has_shards.then_some("1-3%2"), "{step}");
        assert_eq!(option("--dependency=afterok:"), (job > 0).then(|| job.to_string()).as_deref(), "{step}");
        let is_script = call.last().is_some_and(|script| script.ends_with(&format!("/{step}.sh")));
        assert!(is_script && call[0] == "--parsable", "{call:?}");
    }

    let run = cluster.run_folder();
    let teachers = fs::read_to_string(run.join("slurm/teachers.sh")).expect("a script");
    contains(
        &teachers,
        &[
            "#SBATCH --requeue\n",
            "#SBATCH --open-mode=append\n",
            "#SBATCH --kill-on-invalid-dep=yes\n",
            "#SBATCH --cpus-per-task=1\n",
            "#SBATCH --partition=long\n",
            "#SBATCH --account=abc-1\n",
            "#SBATCH --time=0:10:00\n",
            "#SBATCH --mem=1300M\n",
            "--stage teachers --shard \"$shard/3\" --latency-wait 90\n",
        ],
    );
    let report = fs::read_to_string(run.join("slurm/report.sh")).expect("a script");
    assert!(!report.contains("--stage") && !report.contains("shard"), "{report}");
    let jobs = read_json(&run.join("slurm/jobs.json"));
    let students = &jobs["jobs"][5];
    has(students, &json!({ "step": "student", "of": 3, "job": "6" }));
    assert!(students["submitted_at"].as_u64().is_some_and(|at| at > 1_700_000_000), "{students}");

    // The scripts also run by hand.
    let by_hand = |name: &str, shard: Option<&str>| {
        let mut command = std::process::Command::new("bash");
        let command = command.arg(run.join("slurm").join(name)).args(shard);
        command.env_remove("SLURM_ARRAY_TASK_ID").output().expect("bash")
    };
    assert!(by_hand("data.sh", None).status.success());
    let without = by_hand("teachers.sh", None);
    assert!(String::from_utf8_lossy(&without.stderr).contains("expected the number of a shard, from 1 to 3"));
    assert!(!without.status.success());
    let second = by_hand("teachers.sh", Some("2"));
    assert!(String::from_utf8_lossy(&second.stdout).contains("shard 2/3 of teachers: 2 units done"), "{second:?}");
}

/// The second shard of the teachers ends at once; all jobs that depend on it are cancelled, as Slurm does. Only what is missing is
/// submitted again.
#[test]
fn scripts_do_the_experiment_from_a_folder_of_any_name_and_only_what_is_missing_is_submitted_again() {
    let cluster = Cluster::new("it's a \"folder\" $(touch harm) %j & more", &encrypted());
    cluster.set("now", "");
    cluster.fails("teachers", 2);
    // The option changes nothing, so that the run is the finished one.
    let set = ["--set", "table.repeats=2"];
    cluster.submits(&[&["--shards", "3"], &set[..]].concat());
    let run = cluster.run_folder();
    assert!(!run.join("tables/table.md").exists());
    assert!(run.join("stages/teachers/teacher-0000.json").exists());
    assert!(!run.join("stages/teachers/teacher-0001.json").exists());
    let first = cluster.calls("sbatch").len();

    cluster.fails("none", 0);
    let said = cluster.submits(&set);
    assert!(said.contains("data: done\nteachers: job 8, 2 of 3 shards\n"), "{said}");
    let again = cluster.calls("sbatch").split_off(first);
    assert!(
        again[0].contains(&"--array=2".to_owned()) && again[0].last().is_some_and(|path| path.ends_with("teachers.sh"))
    );
    assert_eq!(again.len(), 6, "{again:?}");
    assert!(run.join("tables/table.md").exists(), "{:?}", cluster.logs(&run));
    assert!(!cluster.path("harm").exists());
    let place = Workplace::finished(&encrypted());
    assert_eq!(determined(&run), determined(&place.run_folder("results", "tiny")));
    // Nothing is left, so nothing is submitted.
    let before = cluster.calls("sbatch").len();
    let said = cluster.submits(&set);
    assert_eq!(said.matches(": done\n").count(), 7, "{said}");
    assert_eq!(cluster.calls("sbatch").len(), before);
    // If a step has no record, it and all steps after it count as not done, and all before it as done.
    let states = || -> Vec<String> {
        let said = cluster.submits(&[&set[..], &["--dry-run", "--json"]].concat());
        let said: Value = serde_json::from_str(&said).expect("JSON");
        let steps = said["steps"].as_array().expect("steps");
        steps.iter().filter_map(|step| step["state"].as_str()).map(str::to_owned).collect()
    };
    for (stage, done) in [("queries", 2), ("aggregate-tau-0-8", 3)] {
        let record = run.join("stages").join(stage).join("stage.json");
        let whole = fs::read(&record).expect("a record");
        fs::remove_file(&record).expect("removed");
        let expected: Vec<&str> = (0..7).map(|step| if step < done { "done" } else { "to-do" }).collect();
        assert_eq!(states(), expected, "{stage}");
        fs::write(&record, whole).expect("written");
    }
}

#[test]
fn a_dry_run_prints_everything_with_all_options_and_leaves_nothing() {
    let cluster = Cluster::new("place", &encrypted());
    let options = ["--sbatch=--gres=gpu:1", "--sbatch", "--comment=two words; $(id)", "--time=1-00:00:00"];
    let options = [&options[..], &["--memory", "3G", "--cpus", "4", "--shards", "2", "--dry-run"]].concat();
    let said = cluster.submits(&options);
    contains(&said, &["#!/bin/bash", "--stage queries", "--dependency=afterok:${teachers%%;*}"]);
    contains(&said, &[" --gres=gpu:1 '--comment=two words; $(id)' "]);
    contains(&said, &["--time=1-00:00:00\n", "--mem=3G\n", "--cpus-per-task=4\n", "${SLURM_CPUS_PER_TASK:-4}"]);
    let json = cluster.submits(&[&options[..], &["--json"]].concat());
    let said: Value = serde_json::from_str(&json).expect("JSON");
    has(&said, &json!({ "schema": 1 }));
    has(&said["steps"][1], &json!({ "submitted": [1, 2], "state": "to-do" }));
    assert!(cluster.calls("sbatch").is_empty() && !cluster.path("results").exists());
}

#[test]
fn live_jobs_are_kept_and_jobs_that_wait_in_vain_replaced() {
    let cluster = Cluster::new("place", &encrypted());
    cluster.submits(&["--shards", "3"]);
    let results = cluster.path("results");
    let results = results.to_str().expect("text");
    cluster.place.succeeds(&["run", "config.toml", "--results", results, "--stage", "data"]);
    // The first shard failed and the others continue; the job of the votes still waits, in vain.
    let others = "3|N/A|PENDING\n4|1|PENDING\n5|N/A|PENDING\n6|1|PENDING\n7|N/A|PENDING\n";
    cluster.set("queue", &format!("1|N/A|COMPLETED\n2|1|FAILED\n2|2|RUNNING\n2|3|PENDING\n{others}"));
    let said = cluster.submits(&[]);
    assert!(said.contains("teachers: job 8, 1 of 3 shards\nqueries: job 9\n"), "{said}");
    let cancelled: Vec<String> = cluster.calls("scancel").concat();
    assert_eq!(cancelled, ["3", "4", "5", "6", "7"]);
    let votes = &cluster.calls("sbatch")[8];
    assert!(votes.contains(&"--dependency=afterok:2_2:2_3:8".to_owned()), "{votes:?}");

    cluster.set("queue", "8|1|RUNNING\n2|2|RUNNING\n2|3|PENDING\n9|N/A|PENDING\n10|1|PENDING\n11|N/A|PENDING\n12|1|PENDING\n13|N/A|PENDING\n");
    let said = cluster.submits(&[]);
    // The other shards of the later arrays are not in the queue.
    contains(
        &said,
        &["teachers: already queued or running\nqueries: already queued or running\naggregate: job 14, 2-3"],
    );
    let other = cluster.submit(&["--shards", "2"]);
    check_failure(&other, 2, &["--shards", "job 2 with 3", "scancel 2"]);

    // The shard was done by hand meanwhile, but its task failed, so no job can depend on the complete array.
    let by_hand = ["run", "config.toml", "--results", results, "--stage", "teachers", "--shard", "1/3"];
    cluster.place.succeeds(&by_hand);
    cluster.set("queue", "2|1|FAILED\n2|2|RUNNING\n2|3|PENDING\n");
    cluster.submits(&[]);
    let calls = cluster.calls("sbatch");
    let queries = calls.iter().rfind(|call| call.iter().any(|word| word.ends_with("/queries.sh"))).expect("queries");
    assert!(queries.contains(&"--dependency=afterok:2_2:2_3".to_owned()), "{queries:?}");
}

#[test]
fn one_of_two_concurrent_submissions_is_refused() {
    let cluster = Cluster::new("place", &encrypted());
    let waits = "touch \"$fake/here\"; for _ in {1..3000}; do [ ! -e \"$fake/go\" ] || break; sleep 0.01; done; echo 1";
    cluster.program("sbatch", waits);
    let results = cluster.path("results");
    let arguments = ["submit", "config.toml", "--slurm", "--results", results.to_str().expect("text")];
    let mut first = cluster.command(&arguments).stdout(Stdio::null()).spawn().expect("the binary starts");
    while !cluster.path("fake/here").exists() {
        assert!(first.try_wait().expect("a process").is_none(), "it ended before it submitted");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    check_failure(&cluster.submit(&[]), 4, &["slurm", "another `speed`", "wait for it"]);
    cluster.submits(&["--dry-run"]);
    cluster.set("go", "");
    assert!(first.wait().expect("a process").success());
    cluster.submits(&[]);
}

#[test]
fn a_missing_or_refusing_cluster_is_reported() {
    let cluster = Cluster::new("place", &encrypted());
    let mut command = cluster.place.command(&["submit", "config.toml", "--slurm"]);
    let output = command.env("PATH", cluster.path("nothing")).output().expect("the binary starts");
    check_failure(&output, 5, &["sbatch", "PATH", "slurm-client", "--dry-run"]);
    cluster.program("sbatch", "echo 'sbatch: error: invalid partition' >&2; exit 1");
    let refused = cluster.submit(&["--shards", "2"]);
    check_failure(&refused, 5, &["sbatch", "code 1", "invalid partition"]);
    // The number of shards is still recorded.
    let said: Value = serde_json::from_str(&cluster.submits(&["--dry-run", "--json"])).expect("JSON");
    has(&said, &json!({ "refused": null }));
    has(&said["steps"][1], &json!({ "shards": 2 }));
    cluster.program("sbatch", "echo 'welcome to the cluster'");
    check_failure(&cluster.submit(&[]), 5, &["sbatch", "welcome", "expected a job's number"]);
}

#[test]
fn a_sweep_is_submitted_as_one() {
    let cluster = Cluster::new("a sweep", &swept("gamma = [0.5, 1.0]"));
    let submit = || -> Value {
        let said = cluster.submits(&["--shards", "2", "--set", "seed=9", "--json"]);
        serde_json::from_str(&said).expect("JSON")
    };
    let said = submit();
    let folder = Path::new(said["folder"].as_str().expect("a folder"));
    // Slurm has forgotten all jobs, and nothing was done.
    let tasks = || cluster.status(folder)["tasks"].as_array().expect("tasks").clone();
    let begun = tasks();
    assert!(!begun.is_empty() && begun.iter().all(|task| task["outcome"] == "forgotten"), "{begun:?}");
    cluster.set("now", "");
    let said = submit();
    assert!(folder.join("sweep.md").exists(), "{:?}", cluster.logs(folder));
    let steps: Vec<&str> =
        said["steps"].as_array().expect("steps").iter().filter_map(|step| step["step"].as_str()).collect();
    assert_eq!(steps, ["data", "teachers", "aggregate-all", "student", "report"]);
    // The sweep is not finished without its report. Slurm has forgotten all jobs by now; the units of all others are done.
    fs::remove_file(folder.join("sweep.json")).expect("removed");
    let tasks = tasks();
    let (report, others) = tasks.split_last().expect("tasks");
    assert!(others.iter().all(|task| task["outcome"] == "done") && report["outcome"] == "forgotten", "{tasks:?}");
}
