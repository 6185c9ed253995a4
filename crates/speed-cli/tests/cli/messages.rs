//! Messages with suggestions, and the files that a failed start leaves.

use std::fs;

use serde_json::Value;

use crate::cli::bad_input::npy;
use crate::cli::common::{TINY, Workplace, sets};
use crate::cli::roles::{AGGREGATE, ANSWER, Parties};

#[test]
fn a_misspelt_key_or_value_gets_a_suggestion() {
    let place = Workplace::new(TINY);
    for (set, words) in [
        ("noise.gama=1", "did you mean `gamma`?"),
        ("nois.gamma=1", "did you mean `noise`?"),
        ("row.*.agregation=trusted", "did you mean `aggregation`?"),
        ("noise.delta=1e-5", "did you mean `privacy.delta`?"),
        ("gamma=1", "did you mean `noise.gamma`"),
        ("noise.epsilon=1", "speed calibrate"),
        ("privacy.epsilon=1", "speed calibrate"),
        ("noise.source=simulatoin", "did you mean simulation?"),
        ("seed.x=1", "seed is not a section"),
    ] {
        place.fails(&format!("run config.toml --set {set}"), 2, &["--set", words]);
    }
    place.write("other.toml", TINY.replacen("[noise]", "[noize]", 1));
    place.fails("run other.toml", 2, &["other.toml:", "key `noize`: unknown key; did you mean `noise`?"]);
    place.write("swept.toml", format!("{TINY}\n[sweep]\ngama = [1.0]\n"));
    place.fails("run swept.toml", 2, &["did you mean `gamma`?"]);
    // For a word that resembles no choice, all choices are listed.
    place.fails("run config.toml --set noise.xyz=1", 2, &["allowed here: coins, gamma, mechanism"]);
    place.fails(
        "account --any-votes --queries 1 --mechanism laplase --gamma 1 --delta 1e-5",
        2,
        &["did you mean laplace?"],
    );
}

#[test]
fn a_misspelt_config_or_run_gets_a_suggestion() {
    let place = Workplace::new(TINY);
    fs::create_dir(place.path("configs")).expect("a folder");
    place.write("configs/mnist.toml", TINY);
    for name in ["mnist", "configs/mnits.toml"] {
        for command in [&format!("run {name}"), &format!("submit {name} --slurm")] {
            place.fails(command, 2, &["cannot read config", "did you mean configs/mnist.toml?"]);
        }
    }
    place.fails("run confg.toml", 2, &["did you mean config.toml?"]);
    place.fails("compare nosuch", 4, &["nosuch", "no finished run of this name"]);
    fs::create_dir_all(place.path("results/quickstart")).expect("a folder");
    for command in ["show quikstart", "compare quikstart --paper", "show quikstart --follow"] {
        place.fails(command, 4, &["did you mean quickstart?"]);
    }
}

#[test]
fn a_file_at_the_path_of_the_results_is_named() {
    let place = Workplace::new(TINY);
    place.write("file", "x");
    for command in
        ["run config.toml", "run config.toml --stage votes", "list", "show x", "compare x y", "show x --follow"]
    {
        let output = place.speed(&format!("{command} --results file"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{command:?}: {said}");
        assert!(
            said.contains("file: is a file, expected a folder of results") && !said.contains("finished work"),
            "{said}"
        );
    }
}

#[test]
fn a_start_that_fails_leaves_no_folder() {
    let votes = TINY.replace("[queries]", "[votes]\nsource = \"file\"\nfile = \"votes.npy\"\n[queries]");
    for (config, changes, code) in [
        (TINY, &["data.source=mnist"][..], 3),
        (TINY, &["data.source=none", "votes.source=uniform", "table.repeats=0", "data.labels=nowhere.npy"], 3),
        (TINY, &["ensemble.teachers=400"], 2),
        (&votes, &["votes.file=bad.npy"], 3),
    ] {
        let place = Workplace::new(config);
        npy(&place.path("bad.npy"), "2, 3", &[1, 1, 1, 1, 1, 2]);
        place.fails(&format!("run config.toml{}", sets(changes)), code, &[]);
        assert!(!place.path("results/tiny").exists(), "{changes:?}");
    }
    // An unreadable ledger is detected after the directory is opened.
    let place = Workplace::new(crate::cli::budget::REAL);
    fs::create_dir_all(place.path("results/real")).expect("a folder");
    place.write("results/real/ledger", "no ledger");
    place.fails(&crate::cli::budget::RUN, 3, &["ledger"]);
    assert_eq!(fs::read_dir(place.path("results/real")).expect("a folder").count(), 1);
}

#[test]
fn a_list_has_dates_states_epsilons_and_accuracies() {
    let place = Workplace::finished(TINY);
    place.succeeds("run config.toml --set seed=4 --stage votes");
    let list = place.succeeds("list");
    assert!(["date (UTC)", "epsilon", "student %", "labels %"].iter().all(|head| list.contains(head)), "{list}");
    let line = |word: &str| list.lines().find(|line| line.contains(word)).expect("a line").to_owned();
    assert!(line(" finished ").contains("simulation") && line("unfinished, 3 stages").contains("-"), "{list}");
    let json = place.json("list --json");
    let finished = json["runs"].as_array().expect("runs").iter().find(|run| run["finished"] == true).expect("a run");
    assert!(finished["epsilon"].as_f64().is_some_and(|epsilon| epsilon > 1.0), "{finished}");
    assert!(finished["student_accuracy"].as_f64().is_some_and(|accuracy| accuracy > 0.0), "{finished}");
    assert!(finished["ended_at"].as_u64().is_some_and(|seconds| seconds > 1_700_000_000), "{finished}");
    // A run without its config is still listed.
    let run = place.path("results/tiny").join(finished["run"].as_str().expect("an id"));
    fs::write(run.join("config.toml"), "").expect("emptied");
    let list = place.succeeds("list");
    assert!(list.lines().filter(|line| line.contains("results/tiny/")).count() >= 2, "{list}");

    // Published runs count as finished, even without their stages.
    let published = concat!(env!("CARGO_MANIFEST_DIR"), "/../../results");
    let list = place.json(&["list", "--results", published, "--json"]);
    let runs: Vec<&Value> = list["runs"].as_array().expect("runs").iter().collect();
    let published =
        runs.iter().filter(|run| run["folder"].as_str().is_some_and(|folder| folder.contains("/published/")));
    assert!(published.clone().count() > 5);
    for run in published {
        assert_eq!(
            (&run["state"], &run["finished"], &run["damage"]),
            (&"finished".into(), &true.into(), &Value::Null),
            "{run}"
        );
    }
}

#[test]
fn names_that_people_cannot_read_are_refused() {
    let place = Workplace::new("");
    for (role, name) in [("teacher", " St Mary's"), ("server", "a\u{200b}b"), ("teacher", "a\tb")] {
        let keygen = [role, "keygen", "--name", name, "--out", "key"];
        place.fails(&keygen, 2, &["a party's name needs", "visible characters"]);
    }
    place.fails(&["student", "identity", "--name", "\u{3164}", "--out", "key"], 2, &["a party's name needs"]);
    place.succeeds(&["teacher", "keygen", "--name", "St Mary's 日本", "--out", "key"]);
    Workplace::new(&TINY.replace("\"Trusted\"", "\"Trusted\\u200b\"")).fails("run config.toml", 2, &["`row.1.name`"]);
}

#[test]
fn a_file_in_the_place_of_another_is_named_by_its_kind() {
    let parties = Parties::new();
    parties.agree(2, 1, "--gamma 1");
    let fails = |party: &str, line: &str, words: [&str; 2]| {
        let output = parties.run(party, line);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(words.iter().all(|word| said.contains(word)), "{line}: {said}");
        assert!(matches!(output.status.code(), Some(2 | 3)), "{said}");
    };
    parties.send(("student", "evaluation.key"), ("teacher 0", "evaluation.key"));
    parties.send(("student", "roster.toml"), ("teacher 0", "roster.toml"));
    parties.write("teacher 0", "votes.csv", "1\n2\n");
    let answer = format!("{ANSWER} --simulation 8 --out message");
    for (option, right, file, words) in [
        (
            "--signing-key",
            "signing.key",
            "public.key",
            ["is a public key (public.key)", "expected a signing key (PEM)"],
        ),
        ("--public-key", "public.key", "signing.key", ["is a signing key (PEM)", "expected a public key (public.key)"]),
        ("--round", "round.toml", "evaluation.key", ["is an evaluation key", "expected a round's file"]),
        ("--votes", "votes.csv", "roster.toml", ["is a roster or a card of one", "expected votes"]),
    ] {
        fails("teacher 0", &answer.replace(&format!("{option} {right}"), &format!("{option} {file}")), words);
    }
    parties.send(("student", "public.key"), ("server", "public.key"));
    fs::create_dir_all(parties.path("server", "inbox")).expect("a folder");
    let wrong = AGGREGATE.replace("--evaluation-key evaluation.key", "--evaluation-key public.key");
    fails("server", &wrong, ["is a public key", "expected an evaluation key"]);
    let open = "student open --round round.toml --out labels";
    fails(
        "student",
        &format!("{open} --secret-key evaluation.key --result round.toml"),
        ["is an evaluation key", "expected a secret key"],
    );
    fails(
        "student",
        &format!("{open} --secret-key secret.key --result public.key"),
        ["is a public key", "expected a round's result"],
    );
    let round = "student round --name x --queries 2 --classes 4 --gamma 1 --proofs off --simulation --out other.toml";
    fails(
        "student",
        &format!("{round} --public-key public.key --roster round.toml"),
        ["is a round's file", "expected a roster"],
    );
    fails("student", "round roster.toml", ["is a roster", "expected a round's file"]);
}

#[test]
fn a_message_names_its_file_once_and_is_one_line() {
    let place = Workplace::new("");
    let said = |arguments: &str| {
        let output = place.speed(arguments);
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let text = said("teacher keygen --name x --out nowhere/key");
    // The registry is made first, because a key never exists without it.
    assert_eq!(text, "error: cannot create nowhere/key.registry: No such file or directory (os error 2)\n");
    let text = said("student identity --name x --out nowhere/key");
    assert_eq!(text, "error: cannot write nowhere/key: No such file or directory (os error 2)\n");
    place.write("bad.toml", "x\n");
    let text = said("round bad.toml");
    assert!(text.lines().count() == 1 && text.contains("line 1, column") && text.contains("expected `=`"), "{text}");
    assert_eq!(text.matches("bad.toml").count(), 1, "{text}");
}

/// Checks that no text of the program contains the indent of a continued source line.
#[test]
fn no_message_has_the_indentation_of_its_source() {
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders: Vec<_> =
        fs::read_dir(crates).expect("crates").map(|entry| entry.expect("an entry").path().join("src")).collect();
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("an entry").path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source");
                // A word, four blanks or more, and another word, within quotes.
                let odd = text.lines().filter(|line| !line.trim_start().starts_with("//")).filter(|line| {
                    let within = line.split('"').skip(1).step_by(2);
                    within.filter(|text| !text.starts_with(' ')).any(|text| {
                        text.split("    ").skip(1).any(|rest| rest.trim_start().starts_with(char::is_alphabetic))
                            && text.starts_with(char::is_alphabetic)
                            && !text.contains("  speed ")
                    })
                });
                found.extend(odd.map(|line| format!("{}: {}", path.display(), line.trim())));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}
