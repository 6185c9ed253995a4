//! Pages of runs and sweeps: complete, self-contained, and without private content.

use std::fs;

use crate::cli::budget::REAL;
use crate::cli::common::{TINY, Workplace, contains, read_json, sweep_folder};

/// Markup that would load or run something.
const FOREIGN: [&str; 8] = ["http:", "https:", "<script", "<link", "<iframe", "<form", "@import", "javascript:"];

/// A run with all kinds of rows in clear text, one with markup as its name.
fn tiny() -> String {
    TINY.replace("name = \"Trusted\"", "name = \"<script>alert(1)</script> & <b>\"")
}

#[track_caller]
pub(crate) fn check_alone(page: &str) {
    for foreign in FOREIGN {
        assert!(!page.contains(foreign), "{foreign} is in the page");
    }
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"), "not whole");
}

/// Returns the texts of all elements of a kind, without markup inside them.
fn texts(page: &str, element: &str) -> Vec<String> {
    let (open, close) = (format!("<{element}"), format!("</{element}>"));
    let parts = page.split(&open).skip(1);
    let inner = parts.filter_map(|part| part.split_once('>')?.1.split_once(&close));
    let plain = |text: &str| text.split('<').map(|part| part.rsplit('>').next().unwrap_or("")).collect::<String>();
    inner.map(|(inner, _)| plain(inner)).collect()
}

#[test]
fn a_page_holds_the_table_the_plots_and_every_query() {
    let place = Workplace::finished(&tiny());
    let run = place.run_folder("results", "tiny");
    let page = fs::read_to_string(run.join("tables/report.html")).expect("a page");
    check_alone(&page);
    assert_eq!(place.succeeds("show tiny --html"), page, "shown from the report alone");
    contains(&page, &["SIMULATION", "&lt;script&gt;alert(1)&lt;/script&gt; &amp; &lt;b&gt;"]);

    // Every cell of the table, with the claims behind its epsilons.
    let report = read_json(&run.join("tables/report.json"));
    let cells = texts(&page, "td");
    let rows = report["rows"].as_array().expect("rows");
    for row in rows.iter().filter(|row| row["students"].as_array().is_some_and(|students| !students.is_empty())) {
        let accuracies = row["students"].as_array().expect("students").iter();
        let accuracies: Vec<f64> = accuracies.map(|student| student["accuracy"].as_f64().expect("a share")).collect();
        let mean = format!("{:.2} ± ", 100.0 * accuracies.iter().sum::<f64>() / accuracies.len() as f64);
        assert!(cells.iter().any(|cell| cell.starts_with(&mean)), "{mean} is not in {cells:?}");
    }
    let links = page.matches("href=\"#claim-").count();
    assert!(links >= 8 && page.contains("id=\"claim-1\""), "{links} links to claims");
    assert_eq!(page.matches("src=\"data:image/svg+xml;base64,").count(), 2, "plots of students and epochs");
    assert!(page.contains("src=\"data:image/png;base64,"), "images drawn by students");

    // Four queries with picture, truth and votes, because a simulation is not private.
    let asked = read_json(&run.join("tables/queries.json"));
    assert_eq!(page.matches("class=\"picture\"").count(), 4);
    for (query, votes) in asked["votes"].as_array().expect("votes").iter().enumerate() {
        let total: u64 = votes.as_array().expect("counts").iter().map(|count| count.as_u64().expect("a count")).sum();
        assert_eq!(total, 5, "one vote a teacher");
        let truth = &asked["truth"][query];
        assert!(page.contains(&format!("query {}, true <strong>{truth}</strong>", query + 1)), "query {query}");
    }
}

#[test]
fn with_real_noise_a_page_holds_what_a_claim_covers_and_no_votes() {
    let real = tiny()
        .replace("source = \"simulation\"", "source = \"operating-system\"")
        .replace("gamma = 1.0", "gamma = 0.3");
    let place = Workplace::new(&real);
    let printed = place.succeeds("run config.toml --set table.baselines=true");
    let run = place.run_folder("results", "tiny");
    assert!(printed.contains("5 teachers, ") && !printed.contains("plurality"), "{printed}");
    assert!(printed.contains("ε data-independent") && !printed.contains("HE = clear"), "{printed}");
    let text = fs::read_to_string(run.join("tables/report.md")).expect("a report");
    assert!(text.contains("NOT FOR PUBLICATION") && !text.contains("plurality"), "{text}");
    #[cfg(unix)]
    for file in ["votes.npy", "ensemble.json"] {
        let file = run.join("stages/votes").join(file);
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).expect("a file").permissions());
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
    let page = fs::read_to_string(run.join("tables/report.html")).expect("a page");
    check_alone(&page);
    assert!(!page.contains("SIMULATION") && page.contains("The noise is real"), "{page}");
    let asked = read_json(&run.join("tables/queries.json"));
    assert!(asked.get("votes").is_none(), "{asked}");
    // The row without noise is not covered by a claim, so it and its labels are left out.
    let rows: Vec<&str> =
        asked["rows"].as_array().expect("rows").iter().filter_map(|row| row["row"].as_str()).collect();
    assert_eq!(rows, ["<script>alert(1)</script> & <b>", "tau = 0.8"]);
    let report = read_json(&run.join("tables/report.json"));
    let names = texts(&page, "th");
    assert!(!names.iter().any(|name| name == "Non-private"), "{names:?}");
    for head in ["ε data-dependent", "ε data-dependent collusion", "ε paper formulas", "HE = clear"] {
        assert!(!names.iter().any(|name| name == head), "{head}");
    }
    assert!(names.iter().any(|name| name == "ε data-independent"), "{names:?}");
    let ensemble = report["ensemble"]["plurality_accuracy"].as_f64().expect("known to its owner");
    let facts = texts(&page, "dd").concat();
    assert!(!facts.contains(&format!("{:.2} % by plurality", 100.0 * ensemble)), "{facts}");
    assert!(!page.contains(">votes "), "votes are shown");
    // The name of a student's stage would confirm guessed labels.
    let rows = report["rows"].as_array().expect("rows");
    let students = |row: usize| {
        let lists = [&rows[row]["students"], &rows[row]["baselines"]["labelled_only"]];
        let scores = std::iter::once(&rows[row]["baselines"]["label_spreading"]);
        lists.into_iter().flat_map(|list| list.as_array().expect("students")).chain(scores)
    };
    let covered: Vec<&str> = students(1).chain(students(2)).filter_map(|student| student["stage"].as_str()).collect();
    let hidden: Vec<&str> = students(0).filter_map(|student| student["stage"].as_str()).collect();
    let leaked = hidden.iter().find(|stage| !covered.contains(stage) && page.contains(**stage));
    assert!(!hidden.is_empty() && leaked.is_none(), "{leaked:?}");
    assert!(page.contains("All runs of the experiment together: "), "the ledger's claim");
    // Covered labels cover the students and baselines that learn from them, but the teachers are private.
    assert!(page.contains("id=\"classes\"") && page.contains("label spreading"), "{page}");
    assert!(report["ensemble"]["test_accuracy"].is_number() && !page.contains("ean teacher"), "{page}");
    assert!(!page.contains("classes.csv") && !page.contains("baselines.csv"), "files with rows without a claim");
}

#[test]
fn a_page_does_not_show_rows_without_a_claim() {
    let real =
        tiny().replace("source = \"simulation\"", "source = \"operating-system\"").replace("count = 4", "count = 100");
    let place = Workplace::new(&real.replace("gamma = 1.0", "gamma = 10.0"));
    place.succeeds("run config.toml --set table.repeats=0 --max-epsilon inf");
    let page = place.succeeds("show tiny --html");
    contains(&page, &["No row of this run may be shown", "No row's labels may be shown"]);
    assert!(!page.contains("has the true label") && !page.contains("is the true one"), "{page}");
    assert!(page.contains("exact noise"), "the ledger's claim does not cover the samplers, and says so");
}

#[test]
fn untrusted_files_in_a_run_do_not_enter_its_page() {
    let place = Workplace::finished(&tiny());
    let tables = place.run_folder("results", "tiny").join("tables");
    for (name, content) in [("queries.json", ""), ("queries.json", "[]"), ("queries.png", "not a picture")] {
        let kept = fs::read(tables.join(name)).expect("a file");
        fs::write(tables.join(name), content).expect("written");
        place.fails("show tiny --html", 4, &[name, "was changed", "speed run"]);
        fs::write(tables.join(name), kept).expect("written");
    }
    check_alone(&place.succeeds("show tiny --html"));
    let report = fs::read_to_string(tables.join("report.json")).expect("a report");
    let students = report.find("\"students\"").expect("students");
    let accuracy = report[students..].find("\"accuracy\": 0").expect("a student") + students + "\"accuracy\": ".len();
    let end = accuracy + report[accuracy..].find([',', '\n']).expect("a number");
    let faster = format!("{}1e306{}", &report[..accuracy], &report[end..]);
    // The name of the row itself, which comes after that in the config.
    let name = report.rfind("\"Non-private\"").expect("a row");
    let named = |name_of_row: &str| format!("{}\"{name_of_row}\"{}", &report[..name], &report[name + 13..]);
    let (moving, long) = (named("\\u001b[2J"), named(&"x".repeat(300)));
    let other = "not a report that this version wrote";
    for (hostile, found) in [
        ("{}", ["report.json", "a file without a format"]),
        ("{\"schema\": 1}", [other, "report.json"]),
        (&*faster, [other, "accuracies from 0 to 1"]),
        (&*moving, [other, "without control"]),
        (&*long, [other, "xxx"]),
    ] {
        fs::write(tables.join("report.json"), hostile).expect("written");
        place.fails("show tiny --html", 4, &found);
        place.fails("show tiny", 4, &found);
    }
}

#[test]
fn a_sweep_has_a_page_and_the_config_in_it_makes_it_again() {
    let config = REAL.replace("operating-system", "simulation");
    let (head, rows) = config.split_at(config.find("[[row]]").expect("rows"));
    let place = Workplace::new(&format!("{head}[sweep]\ngamma = [0.5, 1.0]\n\"queries.count\" = [3, 4]\n\n{rows}"));
    place.succeeds("run config.toml");
    let folder = sweep_folder(&place.path("results/real"));
    let page = fs::read_to_string(folder.join("report.html")).expect("a page");
    check_alone(&page);
    assert_eq!(place.succeeds("show real --html"), page, "shown from the report alone");
    assert!(page.contains("gamma, queries.count") && texts(&page, "tr").len() > 4 * 3, "{page}");

    let shown = texts(&page, "code").into_iter().find(|code| code.contains("[sweep]")).expect("a config");
    let shown = shown.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    place.write("again.toml", shown);
    place.succeeds("run again.toml --results again");
    let again = place.path("again/real").join(folder.file_name().expect("a name"));
    let [again, first] = [&again, &folder].map(|folder| fs::read(folder.join("sweep.csv")).expect("the same sweep"));
    assert_eq!(again, first);

    // A list that is too short is not valid for any sweep.
    let mut short = read_json(&folder.join("sweep.json"));
    short["settings"][1]["values"] = serde_json::json!(["0.5"]);
    fs::write(folder.join("sweep.json"), short.to_string()).expect("written");
    place.fails("show real --html", 4, &["a value of every key", "1 values of 2 keys"]);
}
