//! The text of `speed run --dry-run`

use speed_accountant::{epsilon_text, without_protection};
use speed_core::printable_path;
use speed_experiment::{Cost, Plan, PlannedStage, PlannedTraining, StageCost, Sweep};

/// Returns the stages, the privacy cost and the processor time of a run as text.
pub(super) fn plan_text(plan: &Plan) -> String {
    let mut text = format!("{}\n# folder: {}\n# stages:\n", plan.config.to_toml(), printable_path(&plan.folder));
    for PlannedStage { name, done } in &plan.stages {
        text.push_str(&format!("#   {name}: {}\n", if *done { "done" } else { "to do" }));
    }
    if let Some(missing) = &plan.missing {
        text.push_str(&format!("# MISSING, and the run would stop there: {missing}\n"));
    }
    for note in &plan.notes {
        text.push_str(&format!("# {note}\n"));
    }
    if !plan.rows.is_empty() {
        text.push_str("# data-independent epsilon of each noisy row:\n");
    }
    for row in &plan.rows {
        let epsilon = match (row.data_independent, &row.without_value) {
            (Some(epsilon), _) => epsilon_text(epsilon),
            (None, why) => format!("none ({})", why.as_deref().unwrap_or("not known")),
        };
        let done = if row.done { ", done" } else { "" };
        let party = row.data_independent_party;
        let party =
            party.map_or_else(String::new, |epsilon| format!("; all votes of one party: {}", epsilon_text(epsilon)));
        text.push_str(&format!("#   {} ({} queries{done}): {epsilon}{party}\n", row.name, row.queries));
    }
    let largest = plan.rows.iter().filter_map(|row| row.data_independent).max_by(f64::total_cmp);
    text.extend(largest.and_then(without_protection).map(|words| format!("# {words}\n")));
    for PlannedTraining { method, epochs, steps_an_epoch } in &plan.students {
        text.push_str(&format!("# students by {method}: {epochs} epochs of {steps_an_epoch} steps\n"));
    }
    text.push_str(&price_text(plan));
    if let Some(cost) = &plan.cost {
        text.push_str(&cost_text(cost));
    }
    text
}

fn cost_text(cost: &Cost) -> String {
    let Cost { stages, memory_bytes } = cost;
    let all: f64 = stages.iter().filter_map(|stage| stage.core_seconds).sum();
    let mut text = format!(
        "# all stages here, by a few steps just measured (within a factor of two): {}; about {:.1} GB of memory\n",
        duration(all),
        memory_bytes / 1e9
    );
    for StageCost { kind, core_seconds, .. } in stages {
        let seconds = core_seconds.map_or_else(|| "not known: too large to be tried in a moment".to_owned(), duration);
        text.push_str(&format!("#   {kind}: {seconds}\n"));
    }
    text
}

fn price_text(plan: &Plan) -> String {
    let Some(needed) = plan.budget_needed else {
        return "# a simulation: nothing is charged, and nothing is private\n".to_owned();
    };
    let of = match plan.config.budget() {
        Some(budget) => format!("privacy.budget = {budget}"),
        None => "no privacy.budget is set".to_owned(),
    };
    // A finished run charges nothing.
    let samplers = match plan.samplers_included {
        Some(false) if needed > 0.0 => "; of exact noise: delta does not include the samplers",
        _ => "",
    };
    let mut text = format!(
        "# the ledger's epsilon after the run, at most, at delta {:e}: {} ({of}{samplers})\n",
        plan.budget_delta,
        epsilon_text(needed)
    );
    if let Some(refused) = &plan.refused {
        text.push_str(&format!("# REFUSED: privacy.budget would refuse a row: {refused}\n"));
    }
    if let Some(questioned) = &plan.questioned {
        text.push_str(&format!("# REFUSED for its privacy cost: {questioned}\n"));
    }
    text
}

/// Formats processor time, in the unit that suits it.
fn duration(seconds: f64) -> String {
    match seconds {
        ..100.0 => format!("{seconds:.0} core-seconds"),
        ..6e3 => format!("{:.0} core-minutes", seconds / 60.0),
        _ => format!("{:.0} core-hours", seconds / 3600.0),
    }
}

/// Returns the plan of a sweep, with a line for each setting.
pub(super) fn sweep_text(sweep: &Sweep, plans: &[Plan]) -> String {
    let mut text = format!("# a sweep of {}: {} runs\n", sweep.keys.join(", "), plans.len());
    for (setting, plan) in sweep.settings.iter().zip(plans) {
        let values: Vec<String> =
            sweep.keys.iter().zip(&setting.values).map(|(key, value)| format!("{key} = {value}")).collect();
        text.push_str(&format!("{}: {}\n", values.join(", "), line(plan)));
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
fn line(plan: &Plan) -> String {
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
