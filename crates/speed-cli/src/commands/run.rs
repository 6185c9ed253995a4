//! `speed run`

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
        let plan = plan(&config, &settings);
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
    text
}
