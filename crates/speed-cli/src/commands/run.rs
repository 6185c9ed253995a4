//! `speed run`

use speed_accountant::round_up;
use speed_experiment::{Config, Options, Plan, Source, plan, run as run_experiment};

use super::{Failure, print, print_json};
use crate::bar::Bar;
use crate::options::RunOptions;

pub(super) fn run(options: &RunOptions) -> Result<(), Failure> {
    let source = Source::read(&options.config)?.with_overrides(&options.overrides)?;
    let config = Config::load(&source)?;
    let threads =
        options.threads.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    let settings = Options {
        results: options.results.clone(),
        datasets: options.datasets.clone(),
        threads,
        force: options.force.clone(),
    };
    if options.dry_run {
        let plan = plan(&config, &settings)?;
        return if options.json { print_json(&plan) } else { print(&plan_text(&plan)) };
    }
    let report = run_experiment(&config, &settings, &Bar::new())?;
    if options.json { print_json(&report) } else { print(&report.to_text()) }
}

fn plan_text(plan: &Plan) -> String {
    let mut text = format!("{}\n# folder: {}\n# stages:\n", plan.config.to_toml(), plan.folder.display());
    for (stage, done) in &plan.stages {
        text.push_str(&format!("#   {stage}: {}\n", if *done { "done" } else { "to do" }));
    }
    if !plan.rows.is_empty() {
        text.push_str("# epsilon whatever the votes are, before any is cast:\n");
    }
    for row in &plan.rows {
        let epsilon = match (row.epsilon_any_votes, &row.without_value) {
            (Some(epsilon), _) => format!("{:.2}", round_up(epsilon, 2)),
            (None, why) => format!("none ({})", why.as_deref().unwrap_or("not known")),
        };
        let done = if row.done { ", done" } else { "" };
        text.push_str(&format!("#   {} ({} queries{done}): {epsilon}\n", row.name, row.queries));
    }
    match plan.budget_needed {
        Some(needed) => {
            let budget = plan.config.privacy.budget;
            let of =
                if budget > 0.0 { format!("privacy.budget = {budget}") } else { "no privacy.budget is set".into() };
            text.push_str(&format!(
                "# the ledger's epsilon after it, at delta {:e}: {:.2} ({of})\n",
                plan.config.privacy.delta,
                round_up(needed, 2)
            ));
        }
        None => text.push_str("# a simulation: nothing is charged, and nothing is private\n"),
    }
    text
}
