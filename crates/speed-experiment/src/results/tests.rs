//! Reports that were read from files: comparisons of handmade reports, and published reports.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::read_report;
use crate::config::{Config, Source};
use crate::report::{Comparison, FigureComparison, Report, WithoutSpread};

const CONFIG: &str = r#"
name = "hand"
[[row]]
name = "tau = 0.9"
aggregation = "encrypted"
honest_ratio = 0.9
paper_epsilon = 1.66
paper_accuracy = 96.02
paper_deviation = 2.92
paper_minutes = 6.5
[[row]]
name = "ours"
labels_of = "tau = 0.9"
student = "pseudo-labels"
"#;

fn account(epsilon: f64, delta: f64) -> Value {
    json!({
        "epsilon": epsilon, "delta": delta, "composition": "moments", "order": null, "order_at_edge": false, "per_query_epsilon": 0.2, "queries": 100,
        "data_dependent_queries": 0, "noise": "discrete_laplace", "gamma": 0.1, "tau": 0.9, "bound": "tight", "assume": "dropout",
        "extent": "up_to", "directions": "both", "publishable": true, "claim": "a claim",
    })
}

/// Returns a report of two rows; the students of the first row have these accuracies.
fn report(overrides: &[&str], accuracies: &[f64], delta: f64) -> Value {
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    let source = Source::new("config", CONFIG).with_overrides(&overrides).expect("overrides");
    let config = Config::load(&source).expect("a config");
    let paper = json!({ "epsilon": 1.66, "accuracy": 96.02, "deviation": 2.92, "minutes": 6.5 });
    let students: Vec<Value> = accuracies
        .iter()
        .enumerate()
        .map(|(index, accuracy)| json!({ "stage": format!("s{index}"), "accuracy": accuracy, "accuracy_raw": 0.5 }))
        .collect();
    let row = |name: &str, paper: Value| {
        json!({
            "name": name, "aggregation": "encrypted", "honest_ratio": 0.9, "labels_of": "", "method": "gan",
            "data_dependent": null, "paper_formulas": account(0.84, delta), "data_independent": account(6.0, delta), "without_value": [],
            "label_accuracy": 0.99, "agreement": 100, "queries": 100, "students": students, "student_mean": null,
            "student_deviation": null, "paper": paper,
        })
    };
    json!({
        "experiment": "hand", "run": "0123", "simulation": true, "config": config.to_raw(),
        "ensemble": { "teachers": 250, "pool_images": 9000, "mean_accuracy": 0.9, "plurality_accuracy": null },
        "rows": [row("tau = 0.9", paper), row("ours", json!({}))],
        "environment": {
            "speed": "0.2.0", "burn": "1", "tfhe": "1", "system": "s", "processor": "p", "processors": 2, "products": "",
            "arithmetic": "", "device": "", "memory_gib": null
        },
        "kinds_of_machine": [],
        "stage_times": [{ "stage": "data", "seconds": 1.5, "resumed_units": 0 }],
    })
}

fn read(value: Value) -> Report {
    serde_json::from_value(value).expect("a report")
}

fn compare(values: Vec<Value>, paper: bool) -> Comparison {
    let runs: Vec<(String, Report)> = values.into_iter().map(|value| ("folder".to_owned(), read(value))).collect();
    Comparison::new(&runs, paper)
}

#[track_caller]
fn figure<'a>(comparison: &'a Comparison, row: &str, key: &str) -> &'a FigureComparison {
    let row = comparison.rows.iter().find(|other| other.name == row).expect("the row");
    row.figures.iter().find(|other| other.figure == key).expect("the figure")
}

#[test]
fn settings_that_differ_are_named_and_no_others() {
    let first = report(&[], &[0.9], 1e-5);
    let mut second = report(&["seed=7", "student.epochs=50"], &[0.9], 1e-5);
    second["config"]["row"][0]["honest_ratio"] = json!(0.8);
    second["environment"]["speed"] = json!("0.3.0");
    let comparison = compare(vec![first.clone(), second], false);
    let found: Vec<(&str, String)> = comparison
        .settings
        .iter()
        .map(|setting| (setting.key.as_str(), serde_json::to_string(&setting.values[1]).expect("json")))
        .collect();
    let expected = [
        ("seed", "7"),
        ("student.epochs", "50"),
        ("row.\"tau = 0.9\".honest_ratio", "0.8"),
        ("environment.speed", "\"0.3.0\""),
    ];
    assert_eq!(found, expected.map(|(key, value)| (key, value.to_owned())));
    let same = compare(vec![first.clone(), first], false);
    assert!(same.settings.is_empty() && same.to_text(None).contains("are the same"), "{}", same.to_text(None));
}

#[test]
fn differences_of_students_have_their_spread() {
    let first = report(&[], &[0.01, 0.02, 0.03], 1e-5);
    let second = report(&[], &[0.03, 0.05, 0.07], 1e-5);
    let of = |values| {
        let comparison = compare(values, false);
        figure(&comparison, "tau = 0.9", "student_percent").differences[1].expect("a difference")
    };
    // The tests of spread.rs derive these numbers.
    let found = of(vec![first.clone(), second]);
    assert!((found.difference - 3.0).abs() < 1e-9, "{found:?}");
    assert!((found.standard_error.expect("an error") - (5.0f64 / 3.0).sqrt()).abs() < 1e-9, "{found:?}");
    let one = of(vec![first.clone(), report(&[], &[0.05], 1e-5)]);
    assert_eq!((one.without_spread, one.interval), (Some(WithoutSpread::OneStudent), None));
    assert_eq!(of(vec![first.clone(), first]).without_spread, Some(WithoutSpread::SameStudents));
}

#[test]
fn epsilons_of_other_claims_are_not_subtracted() {
    let first = report(&[], &[0.9], 1e-5);
    let mut second = report(&[], &[0.9], 1e-6);
    let comparison = compare(vec![first.clone(), second.clone()], false);
    let line = figure(&comparison, "ours", "epsilon_data_independent");
    assert!(line.values.iter().all(Option::is_some) && line.differences[1].is_none());
    assert_eq!((line.claims.len(), line.claims[0].field), (1, "delta"));
    let text = comparison.to_text(None);
    assert!(text.contains("other claim") && text.contains("delta is A 1e-5, B 1e-6"), "{text}");

    // A different tau is a different setting of the same claim, so the difference is computed with a note.
    second["rows"][1]["data_independent"] = account(8.0, 1e-5);
    second["rows"][1]["data_independent"]["tau"] = json!(0.7);
    let comparison = compare(vec![first, second], false);
    let line = figure(&comparison, "ours", "epsilon_data_independent");
    assert_eq!(line.differences[1].map(|difference| difference.difference), Some(2.0));
    assert!(comparison.notes.iter().any(|note| note.contains("tau is A 0.9, B 0.7")), "{:?}", comparison.notes);
}

#[test]
fn the_paper_stands_beside_the_rows_that_it_has() {
    let comparison = compare(vec![report(&[], &[0.97, 0.98], 1e-5)], true);
    let [accuracy, epsilon] =
        ["student_percent", "epsilon_paper_formulas"].map(|f| figure(&comparison, "tau = 0.9", f));
    let difference = accuracy.differences[1].expect("a difference");
    assert!((difference.difference - (96.02 - 97.5)).abs() < 1e-9, "{difference:?}");
    assert_eq!(difference.without_spread, Some(WithoutSpread::Paper));
    assert!(epsilon.values.iter().all(Option::is_some) && epsilon.differences[1].is_none());
    let text = comparison.to_text(None);
    assert!(text.contains("PATE's published votes") && text.contains("row \"ours\" is only in A"), "{text}");
    let mut other = report(&[], &[0.9], 1e-5);
    other["rows"][0]["paper"]["epsilon"] = json!(3.0);
    let notes = compare(vec![report(&[], &[0.9], 1e-5), other], true).notes;
    assert!(notes.iter().any(|note| note.contains("different figures of the paper")), "{notes:?}");
}

#[test]
fn rows_of_one_run_and_names_of_hostile_ones() {
    let first = report(&[], &[0.9], 1e-5);
    let mut second = first.clone();
    second["rows"][1]["name"] = json!("evil\u{1b}[2J\n| row");
    second["config"]["name"] = json!("\u{202e}");
    let comparison = compare(vec![first, second], false);
    assert_eq!(comparison.rows.len(), 3);
    for text in [comparison.to_text(None), comparison.to_markdown()] {
        assert!(text.contains("row \"ours\" is only in A"), "{text}");
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
    }
    assert!(serde_json::to_value(&comparison).is_ok_and(|json| json["runs"].is_array()));
}

/// Returns the directory of the results, or `None` in a package of this crate alone.
fn results() -> Option<&'static Path> {
    let results = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../results"));
    results.join("README.md").exists().then_some(results)
}

#[test]
fn published_reports_are_read_and_compared() {
    let Some(results) = results() else { return };
    let runs = ["98289c3ec086", "8f583f0dae24", "37055e8971f0", "d69abe536a6f"];
    let read = |id: &str| {
        let folder = crate::find_run(results, Path::new(id)).expect(id);
        (id.to_owned(), read_report(&folder).expect(id))
    };
    let comparison = Comparison::new(&runs.map(read), true);
    assert!(comparison.settings.iter().any(|setting| setting.key == "environment.speed"));
    let line = figure(&comparison, "tau = 0.7", "student_percent");
    let means: Vec<Option<f64>> =
        line.values.iter().map(|value| value.as_ref().map(|v| (100.0 * v.value).round() / 100.0)).collect();
    assert_eq!(means, [Some(96.90), Some(97.43), Some(94.73), None, Some(96.06)]);
    let text = comparison.to_text(None);
    assert!(text.contains("SIMULATION") && !text.contains("NaN"), "{text}");
}

#[test]
fn the_published_gans_of_500_epochs_begin_as_those_of_200() {
    let Some(results) = results() else { return };
    let [short, long] = ["mnist/d856c194233c", "mnist-500-epochs/8f583f0dae24"].map(|run| {
        let file = results.join("published").join(run).join("tables/epochs.csv");
        std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    });
    let short: Vec<&str> = short.lines().skip(1).collect();
    let shared = |line: &str| {
        let key = line.splitn(3, ',').take(2).collect::<Vec<_>>().join(",") + ",";
        short.iter().filter(|other| other.starts_with(&key)).map(|other| assert_eq!(*other, line)).count()
    };
    assert_eq!(long.lines().skip(1).map(shared).sum::<usize>(), 6 * 40);
}

#[test]
fn published_pages_are_those_of_their_reports() {
    let Some(results) = results() else { return };
    let folders =
        |path: PathBuf| std::fs::read_dir(path).into_iter().flatten().map(|entry| entry.expect("a file").path());
    let runs = folders(results.join("published")).flat_map(folders);
    let mut pages = 0;
    for run in runs.filter(|run| run.join("tables/report.json").exists()) {
        // A report has no accuracies by epoch.
        let files = read_report(&run).expect("a report").files().into_iter().filter(|(name, _)| *name != "epochs.csv");
        for (name, text) in files {
            let file = run.join("tables").join(name);
            let Ok(found) = std::fs::read_to_string(&file) else { continue };
            assert!(found == text, "{}: expected what the program makes of report.json", file.display());
            pages += 1;
        }
    }
    assert!(pages > 0, "no page was compared");
}

/// Returns a published report, or `None` in a package of this crate alone.
fn published() -> Option<Report> {
    Some(read_report(&results()?.join("published/mnist-times/98289c3ec086")).expect("a report"))
}

#[test]
fn a_claim_of_two_columns_is_stated_once() {
    let Some(report) = published() else { return };
    let text = report.to_markdown();
    let (_, claims) = text.split_once("## Claims").expect("claims");
    let of = |row: &str| claims.lines().filter(|line| line.starts_with(&format!("- **{row}**"))).count();
    // Without other teachers, dropout and collusion are identical.
    assert_eq!((of("tau = 1"), of("tau = 0.9")), (3, 4), "{claims}");
    assert!(claims.contains("- **tau = 1**, 0.29 (ε data-dependent and ε data-dependent collusion): "), "{claims}");
    assert!(claims.contains("- **tau = 0.9**, 6.08 (ε data-independent): "), "{claims}");
}

#[test]
fn a_summary_has_few_columns_and_the_publishable_epsilon_first() {
    let Some(report) = published() else { return };
    let heads = report.summary();
    let expected = ["row", "ε data-independent", "labels %", "student", "student %", "HE = clear", "HE s"];
    assert_eq!(heads.columns(), expected);
    assert!(report.table_with_times().columns().len() > 12);
}

#[test]
fn names_are_never_cut_in_a_plot() {
    let Some(mut report) = published() else { return };
    let plot = |report: &Report| report.strip_plot().expect("students");
    let narrow = plot(&report);
    report.rows[0].name = "a row of a name that is much longer than any other <one>".into();
    let wide = plot(&report);
    assert!(wide.contains("much longer than any other &lt;one&gt;"), "{wide}");
    let width = |svg: &str| svg.split("width=\"").nth(1).and_then(|rest| rest.split('"').next()?.parse::<u32>().ok());
    assert!(width(&wide) > width(&narrow));
    assert_eq!(plot(&report), wide, "the same bytes");
    report.rows.clear();
    assert_eq!(report.strip_plot(), None);
}
