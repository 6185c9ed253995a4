//! A run that is killed at any moment resumes and ends with the same bytes, for any number of threads.

use std::io::BufRead as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use speed_core::fixture::exhaustive;

use crate::cli::common::{TINY, Workplace, check_failure, contains, determined, encrypted, entries, models};

#[test]
fn kill_and_resume_give_the_bytes_of_an_undisturbed_run_on_any_number_of_threads() {
    let place = Workplace::finished(&encrypted());
    let expected = determined(&place.run_folder("results", "tiny"));
    assert!(expected.keys().any(|name| name.contains("labels.csv")));
    let students = |name: &str| expected.keys().filter(|key| key.starts_with(name) && key.contains(".json")).count();
    // Rows with equal labels share students. Students of the other method are never shared.
    assert!(students("student-") > students("student-pseudo-labels-"));
    assert_eq!(students("student-pseudo-labels-"), 2);

    let kept = models(&place.run_folder("results", "tiny"));
    assert_eq!(kept.len(), 4 * 2, "every student of every row is kept");

    // A quiet run prints no progress, and a narrow terminal changes no file.
    let started = Instant::now();
    let mut command = place.command("run config.toml --results one --threads 1 --quiet");
    let quiet = command.env("COLUMNS", "40").output().expect("the binary starts");
    let duration = started.elapsed();
    assert!(quiet.status.success() && quiet.stderr.is_empty(), "{}", String::from_utf8_lossy(&quiet.stderr));
    assert!(String::from_utf8_lossy(&quiet.stdout).contains("tau = 0.8"));
    assert_eq!(determined(&place.run_folder("one", "tiny")), expected, "threads changed the results");
    assert!(models(&place.run_folder("one", "tiny")) == kept, "threads changed the models");

    // Kills the run, each time a little later. Every attempt resumes the one before.
    let kills = if exhaustive() { 20 } else { 1 };
    for k in 1..=kills {
        let mut command = place.command("run config.toml --results killed --threads 2");
        let mut child = command.stderr(Stdio::null()).spawn().expect("the binary starts");
        std::thread::sleep(Duration::from_millis(30) + duration * k / (2 * kills));
        child.kill().expect("kill -9");
        child.wait().expect("ended");
    }
    place.succeeds("run config.toml --results killed");
    assert_eq!(determined(&place.run_folder("killed", "tiny")), expected, "kills changed the results");
    assert!(models(&place.run_folder("killed", "tiny")) == kept, "kills changed the models");
}

/// As process 1 of a container, the program of commit b3db769 ignored both signals.
#[cfg(unix)]
#[test]
fn signals_end_a_run_with_their_exit_codes_and_it_resumes() {
    let place = Workplace::finished(TINY);
    let expected = determined(&place.run_folder("results", "tiny"));
    for (signal, code) in [("-TERM", 143), ("-INT", 130)] {
        let mut command = place.command("run config.toml --results ended");
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the binary starts");
        // The first line shows that the handlers exist; the trainings then take seconds.
        let mut line = String::new();
        let said = child.stderr.take().expect("a pipe");
        std::io::BufReader::new(said).read_line(&mut line).expect("a line");
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill").success());
        assert_eq!(child.wait().expect("ended").code(), Some(code));
    }
    place.succeeds("run config.toml --results ended");
    assert_eq!(determined(&place.run_folder("ended", "tiny")), expected);
}

#[test]
fn a_finished_run_is_shown_listed_and_not_done_again() {
    let place = Workplace::finished(&encrypted());
    let (table, said) = place.outputs("run config.toml");
    assert!(said.contains("teachers: done already"), "{said}");
    contains(&table, &["SIMULATION", "Non-private", "Trusted", "tau = 0.8", "4/4", "GAN", "ours"]);
    let run = place.run_folder("results", "tiny");
    let run = run.to_str().expect("text");

    // The config in the run's folder is that of the same run.
    let plan = place.json(&format!("run {run}/config.toml --dry-run --json"));
    assert!(plan["rows"].as_array().is_some_and(|rows| rows.iter().all(|row| row["done"] == true)), "{plan}");
    let relative = Path::new("results/tiny").join(Path::new(run).file_name().expect("an id"));
    assert_eq!(table, place.succeeds(&format!("show {}", relative.display())));

    let report = place.json(&format!("show {run} --json"));
    let rows = report["rows"].as_array().expect("rows");
    assert!((&report["simulation"], rows.len()) == (&true.into(), 4), "{report}");
    assert!(rows[2]["data_dependent"]["epsilon"].as_f64().is_some_and(|epsilon| epsilon > 0.0));
    // A row that learns from another row's labels releases nothing.
    assert_eq!(rows[3]["data_dependent"], rows[2]["data_dependent"]);
    assert_eq!(rows[3]["method"], "pseudo-labels");
    let kind = report["environment"]["arithmetic"].as_str().expect("a kind of machine");
    assert_eq!(report["kinds_of_machine"], serde_json::json!([kind]));
    assert!(
        !Path::new(run).join("stages/aggregate-trusted/arithmetic").exists(),
        "answers do not depend on the machine"
    );
    assert!(!Path::new(run).join("stages/aggregate-tau-0-8-ours").exists());
    for plot in ["students.svg", "epochs.svg"] {
        let svg = std::fs::read_to_string(Path::new(run).join("tables").join(plot)).expect(plot);
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"), "{svg}");
    }

    // A forced stage is repeated; its old results are set aside, not deleted.
    assert!(!place.says("run config.toml --force queries --stage queries").contains("queries: done already"));
    assert!(Path::new(run).join("stages/queries.superseded-1").is_dir());
}

#[test]
fn a_damaged_checkpoint_is_reported_and_its_training_restarts() {
    let place = Workplace::finished(TINY);
    let run = place.run_folder("results", "tiny");
    let (expected, kept) = (determined(&run), models(&run));
    let mut students = 0;
    for stage in entries(&run.join("stages")) {
        if stage.join("student.json").exists() {
            // The state after a kill, except for the bytes.
            std::fs::remove_file(stage.join("stage.json")).expect("a record");
            std::fs::write(stage.join("checkpoint.bin"), [7; 300]).expect("a checkpoint");
            students += 1;
        }
    }
    assert!(students > 2);
    let said = place.says("run config.toml");
    assert_eq!(said.matches("restarts: checkpoint.bin: ").count(), students, "{said}");
    assert_eq!(determined(&run), expected);
    assert!(models(&run) == kept);
}

#[test]
fn a_missing_gpu_is_refused_by_name() {
    let place = Workplace::new(TINY);
    let arguments = "run config.toml --set device=wgpu";
    if cfg!(feature = "wgpu") {
        // Some drivers look for a display, and one of them complains about the second variable.
        let mut command = place.command(&arguments);
        command.env("CUBECL_WGPU_DEFAULT_DEVICE", "DiscreteGpu(99)").env("XDG_RUNTIME_DIR", place.path("."));
        let output = command.output().expect("the binary starts");
        check_failure(&output, 6, &["no GPU was found"]);
    } else {
        place.fails(&arguments, 2, &["--features wgpu"]);
    }
}
