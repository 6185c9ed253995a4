//! `speed run` of a config with `[sweep]`.

use serde_json::json;
use speed_accountant::epsilon_text;
use speed_core::printable_path;
use speed_experiment::{Plan, RunOptions, Sweep, plan_sweep, run_sweep, sweep_folder, sweep_id};

use super::plan::cost_text;
use super::runs::sweep_text;
use super::{Failure, print_report, usage};
use crate::progress::Reporter;

pub(super) fn run(sweep: &Sweep, options: &RunOptions, json: bool, reporter: &Reporter) -> Result<(), Failure> {
    let report = run_sweep(sweep, options, reporter)?;
    let folder = sweep_folder(&report, &options.results);
    reporter.run_finished(&folder);
    print_report(json, &report, || sweep_text(&report, &folder))
}

/// Refuses a sweep whose id differs from `--run`.
pub(super) fn check_id(expected: &str, sweep: &Sweep) -> Result<(), Failure> {
    let id = sweep_id(sweep);
    if id == expected { Ok(()) } else { Err(usage("run", format!("expected {expected}, this config's sweep is {id}"))) }
}

pub(super) fn dry_run(sweep: &Sweep, options: &RunOptions, json: bool) -> Result<(), Failure> {
    let plans = plan_sweep(sweep, options)?;
    print_report(json, &json!({ "settings": plans }), || plans_text(sweep, &plans))
}

fn plans_text(sweep: &Sweep, plans: &[Plan]) -> String {
    let mut text = format!("# a sweep of {}: {} runs\n", sweep.keys.join(", "), plans.len());
    for (setting, plan) in sweep.settings.iter().zip(plans) {
        let values: Vec<String> =
            sweep.keys.iter().zip(&setting.values).map(|(key, value)| format!("{key} = {value}")).collect();
        text.push_str(&format!("{}: {}\n", values.join(", "), plan_text(plan)));
    }
    if let Some(cost) = plans.first().and_then(|plan| plan.cost.as_ref()) {
        text.push_str(&format!(
            "# cost of the first setting alone; the other settings share its unchanged stages\n{}",
            cost_text(cost)
        ));
    }
    text
}

/// Returns the remaining work and its privacy cost in one line.
fn plan_text(plan: &Plan) -> String {
    let done = plan.stages.iter().filter(|stage| stage.done).count();
    let epsilon = |epsilon: Option<f64>| epsilon.map_or_else(|| "none".to_owned(), epsilon_text);
    let rows: Vec<String> =
        plan.rows.iter().map(|row| format!("{} {}", row.name, epsilon(row.data_independent))).collect();
    let missing = plan.missing.as_ref().map_or_else(String::new, |missing| format!("; MISSING: {missing}"));
    let refused = plan.refused.iter().chain(&plan.questioned).map(|why| format!("; REFUSED: {why}"));
    let refused: String = refused.collect();
    let notes: String = plan.notes.iter().map(|note| format!("; {note}")).collect();
    format!(
        "{done} of {} stages done; data-independent epsilon: {}; {}{missing}{refused}{notes}",
        plan.stages.len(),
        if rows.is_empty() { "no noise".to_owned() } else { rows.join(", ") },
        printable_path(&plan.folder)
    )
}
