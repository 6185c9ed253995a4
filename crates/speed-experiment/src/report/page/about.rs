//! The settings of a run, its machine, its times, and the commands that repeat it.

use maud::{Markup, html};
use speed_accountant::ledger::Statement;

use super::frame::{facts, folded, verbatim, wide};
use crate::config::{VotesSource, word};
use crate::report::row::ReportRow;
use crate::report::run::{EncoderFacts, EnsembleQuality, Environment, Report};
use crate::report::table::percent;

pub(super) fn asked(report: &Report) -> Markup {
    let config = &report.config;
    let EnsembleQuality { teachers, pool_images, mean_accuracy, plurality_accuracy, .. } = &report.ensemble;
    let handwriting =
        report.handwriting.as_ref().map_or_else(String::new, |name| format!(", with handwriting from {name}"));
    let quality = match (mean_accuracy, plurality_accuracy) {
        (Some(mean), Some(plurality)) => {
            format!(": {} % right on average, {} % by plurality", percent(*mean), percent(*plurality))
        }
        _ => String::new(),
    };
    let quality = quality + &report.ensemble.empty_in_words();
    let votes = match config.votes.source {
        VotesSource::Truth => "true labels instead of votes".to_owned(),
        VotesSource::Teachers => format!("{teachers} teachers{quality}"),
        source => format!("{teachers} teachers, votes from {}{quality}", word(&source)),
    };
    let parties =
        report.classes.iter().zip(&report.parties_by_class).map(|(name, parties)| format!("{name} {parties}"));
    let encoder = report.encoder.as_ref().map_or_else(String::new, EncoderFacts::in_words);
    let randomness = if report.simulation { "from the seed" } else { "from the operating system" };
    let is_noisy = report.rows.iter().any(ReportRow::is_noisy);
    let noise = if is_noisy { format!("{}, {randomness}", config.noise_in_words()) } else { "none".to_owned() };
    let students = match config.table.repeats {
        0 => String::new(),
        repeats => format!("{repeats} a row, {}", config.student.method.title()),
    };
    facts(&[
        ("Images", format!("{}{handwriting}; a pool of {pool_images}", word(&config.data.source))),
        ("Encoder", encoder),
        ("Teachers", votes),
        ("Parties with images of each class", parties.collect::<Vec<_>>().join(", ")),
        ("Queries", format!("{}, {}", config.queries.count, config.selection_in_words())),
        ("Noise", noise),
        ("Claims", format!("at delta {:e}", config.privacy.delta)),
        ("Students", students),
        ("Seed", config.seed.to_string()),
        ("Ledger", spent(report.ledger.as_ref())),
        (
            "Mixed machines",
            if report.kinds_of_machine.len() > 1 { report.kinds_of_machine.join(", ") } else { String::new() },
        ),
    ])
}

/// Returns the total cost of the answers of all runs of an experiment, with the claim; empty for simulations.
pub(super) fn spent(ledger: Option<&Statement>) -> String {
    ledger.map_or_else(String::new, |ledger| format!("All runs of the experiment together: {}", ledger.claim))
}

pub(super) fn times(report: &Report) -> Option<Markup> {
    let longest = report.stage_times.iter().map(|stage| stage.seconds).fold(0.0, f64::max);
    let all: f64 = report.stage_times.iter().map(|stage| stage.seconds).sum();
    let share = |seconds: f64| if longest > 0.0 { 100.0 * seconds / longest } else { 0.0 };
    let resumed = report.stage_times.iter().any(|stage| stage.resumed_units > 0);
    (!report.stage_times.is_empty()).then(|| html! {
        p.note {
            "Wall-clock time of the attempt that finished each stage, " (duration(all)) " in total; the time of a stage from another run is "
            "the time that it took in that run."
        }
        (wide("Times by stage", &html! {
            table {
                thead { tr {
                    th scope="col" { "stage" }
                    th scope="col" { "time" }
                    @if resumed { th scope="col" { "units of earlier attempts" } }
                    td.words aria-hidden="true" { "relative to the longest" }
                } }
                tbody { @for stage in &report.stage_times { tr {
                    th scope="row" { (stage.stage) }
                    td { (duration(stage.seconds)) }
                    @if resumed { td { @if stage.resumed_units > 0 { (stage.resumed_units) } } }
                    td.bar aria-hidden="true" { span style={ "width:" (format!("{:.1}", share(stage.seconds))) "%" } {} }
                } } }
            }
        }))
    })
}

fn duration(seconds: f64) -> String {
    match seconds {
        ..100.0 => format!("{seconds:.1} s"),
        ..6000.0 => format!("{:.1} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

pub(super) fn config(report: &Report) -> Markup {
    folded("Every key of the run", &verbatim("Config", &report.config.to_toml()))
}

pub(super) fn config_of_sweep(config: &str) -> Markup {
    html! {
        p { "Save this as " code { "sweep.toml" } "; " code { "speed run sweep.toml" } " repeats the sweep." }
        (folded("The config of the first setting, and the swept values", &verbatim("Config of the sweep", config)))
    }
}

pub(super) fn machine(environment: &Environment) -> Markup {
    let Environment { speed, burn, tfhe, system, processor, processors, products, arithmetic, device, memory_gib } =
        environment;
    facts(&[
        ("Processor", format!("{processor}, {processors} used")),
        ("Memory", memory_gib.map_or_else(String::new, |gib| format!("{gib} GiB"))),
        ("System", system.clone()),
        ("Products", products.clone()),
        ("Arithmetic", arithmetic.clone()),
        ("Device", device.clone()),
        ("Versions", format!("speed {speed}, burn {burn}, tfhe {tfhe}")),
    ])
}

pub(super) fn repeat(report: &Report) -> Markup {
    let dataset = report.config.data.source.published();
    let fetch = dataset.map_or_else(String::new, |name| format!("speed data fetch {name}\n"));
    html! {
        p { "Save the config above as " code { "config.toml" } " (the run's folder has a copy), and run these commands with speed " (report.environment.speed) ":" }
        (verbatim("Commands", &format!("{fetch}speed run config.toml\nspeed compare RUN {}\n", report.run)))
        @if !report.is_protected() {
            p {
                "A machine with the same arithmetic reproduces " code { "table.json" } " byte for byte. On other machines, the last bits of trainings "
                "may differ, and so may the figures, unless the config sets " code { "arithmetic = \"portable\"" } "."
            }
        } @else {
            p {
                "Noise comes from the operating system, so a repetition gives other labels with the same claims, and charges them to its own ledger."
            }
        }
    }
}
