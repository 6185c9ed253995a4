//! `speed ledger`

use std::path::PathBuf;

use clap::Subcommand;
use serde_json::json;
use speed_accountant::ledger::{ChargeRequest, Ledger, LedgerError, PartyCost, PartySize, Statement};
use speed_accountant::{AccountError, Budget, Delta, Price, PriceLimit, QueryBatch, round_up};
use speed_core::{printable, printable_path};
use speed_experiment::report::Table;

use super::budget::{QueryTerms, refused};
use super::noise::noise;
use crate::bar::warn;
use crate::commands::{Failure, print_report, usage};
use crate::options::{MaxEpsilon, NoiseOptions, delta};
use crate::terminal;

#[derive(Debug, Subcommand)]
pub(crate) enum LedgerCommand {
    /// Start a ledger with a budget
    Create {
        /// The file to create, which must not exist
        file: PathBuf,
        /// Epsilon of the budget
        #[arg(long, value_name = "E")]
        epsilon: f64,
        /// Delta of the budget
        #[arg(long, value_name = "D", value_parser = delta)]
        delta: Delta,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Charge queries before they are answered; refused if they would exceed the budget
    Charge {
        /// The ledger
        file: PathBuf,
        /// Number of queries
        #[arg(long, value_name = "N")]
        queries: usize,
        /// Number of classes; two classes cost less than a larger number [default: any number]
        #[arg(long, value_name = "K")]
        classes: Option<usize>,
        /// Answer only where the largest noisy count reaches this many votes; with two classes a threshold costs more
        #[arg(long, value_name = "VOTES")]
        threshold: Option<f64>,
        /// Charge checks: only whether the largest count reaches --threshold is asked, with one draw of noise for all
        /// classes
        #[arg(long, requires = "threshold")]
        check: bool,
        #[command(flatten)]
        noise: NoiseOptions,
        /// Number of teachers; --honest-ratio is then rounded down to an integer number of teachers. With --classes, delta
        /// includes the distance of their sampler from exact noise
        #[arg(long, value_name = "N")]
        teachers: Option<usize>,
        /// Number of teachers of the party that the ledger is of. The ledger then also states the cost for all votes of the
        /// party together; the budget limits the cost for one teacher
        #[arg(long, value_name = "M", requires = "teachers", requires = "classes")]
        party_teachers: Option<usize>,
        #[command(flatten)]
        limit: MaxEpsilon,
        /// Purpose of the queries, in your own words
        #[arg(long, value_name = "TEXT", default_value = "")]
        label: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the budget, the charges and the spent epsilon
    Show {
        /// The ledger
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check every line and checksum
    Check {
        /// The ledger
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(in crate::commands) fn ledger(command: &LedgerCommand) -> Result<(), Failure> {
    match command {
        LedgerCommand::Create { file, epsilon, delta, json } => {
            let ledger = Ledger::create(file, Budget { epsilon: Some(*epsilon), delta: *delta })?;
            show(&ledger.statement()?, *json)
        }
        LedgerCommand::Charge {
            file,
            queries,
            classes,
            threshold,
            check,
            noise: options,
            teachers,
            party_teachers,
            limit,
            label,
            json,
        } => {
            let terms = QueryTerms::new(options, *teachers, *classes, *threshold)?.with_checks(*check);
            let noise = noise(options, *teachers, threshold.is_some())?;
            let ledger = Ledger::open(file)?;
            // A ledger without a budget has no room to query, so its claim determines whether samplers are included.
            let room = ledger.room(None).ok();
            let batch = terms.batch(room.as_ref(), noise, *queries).map_err(|error| refused(&error))?;
            check_price(limit.limit()?, &batch, ledger.statement()?.budget.delta)?;
            let size = |party_teachers| Some(PartySize { party_teachers, teachers: (*teachers)? });
            let mut statement = ledger.charge_once(&ChargeRequest {
                label,
                event: &batch.event,
                classes: batch.classes,
                queries: batch.queries,
                party: party_teachers.and_then(size),
                question: "",
                noise_digest: "",
                is_only: false,
                limit: None,
            })?;
            if let Some(torn) = statement.torn {
                statement.torn = statement.torn.filter(|_| *json);
                warn(&format!(
                    "{}: the charge replaced {} bytes of an incomplete line; if no crash left them, a charge is missing: restore the file from a copy",
                    printable_path(file),
                    torn.bytes
                ));
            }
            show(&statement, *json)
        }
        LedgerCommand::Show { file, json } => show(&Ledger::open(file).and_then(|ledger| ledger.statement())?, *json),
        LedgerCommand::Check { file, json } => {
            let statement = Ledger::open(file).and_then(|ledger| ledger.statement())?;
            if let Some(torn) = statement.torn {
                let (path, line, damage) = (file.clone(), torn.line, torn.damage());
                return Err(LedgerError::Damaged { path, line, damage }.into());
            }
            let entries = statement.charges.len() + 1;
            print_report(*json, &json!({ "file": file, "good": true, "entries": entries }), || {
                format!("{}: {entries} entries, all checksums are correct\n", printable_path(file))
            })
        }
    }
}

/// Refuses a charge above the price limit, with the same rule as rounds and runs.
fn check_price(limit: PriceLimit, batch: &QueryBatch, delta: Delta) -> Result<(), Failure> {
    let price = match Price::for_batches(std::slice::from_ref(batch), delta) {
        Ok(Some(price)) => Ok(price),
        Ok(None) => return Ok(()),
        // The ledger reports invalid numbers in more detail.
        Err(AccountError::NoQueries | AccountError::Queries { .. } | AccountError::TooFewClasses { .. }) => {
            return Ok(());
        }
        Err(error) => Err(error),
    };
    limit.check("the charge", price, delta).map_err(|error| usage("max-epsilon", error.to_string()))
}

fn show(statement: &Statement, json: bool) -> Result<(), Failure> {
    print_report(json, statement, || statement_text(statement))
}

fn statement_text(statement: &Statement) -> String {
    let party = statement.party;
    let own = ["label", "queries", "classes", "threshold", "noise", "tau", "epsilon per query", "sampler"];
    let mut table = Table::new(own.into_iter().chain(party.map(|_| "teachers of the party")));
    for charge in &statement.charges {
        let mut row = vec![
            printable(&charge.label),
            charge.queries.to_string(),
            charge.classes.map_or_else(|| "any".to_owned(), |classes| classes.to_string()),
            match charge.threshold {
                Some(votes) if charge.is_check => format!("{votes} (check)"),
                Some(votes) => votes.to_string(),
                None => "none".to_owned(),
            },
            charge.mechanism.to_string(),
            charge.tau.get().to_string(),
            match charge.per_query_epsilon {
                epsilon if epsilon.is_finite() => format!("{:.6}", round_up(epsilon, 6)),
                _ => "none".to_owned(),
            },
            if charge.names_sampler() { "named" } else { "not named" }.to_owned(),
        ];
        row.extend(party.map(|_| match charge.teachers {
            Some(teachers) => format!("{} of {teachers}", charge.party_teachers),
            None => charge.party_teachers.to_string(),
        }));
        table.push(row);
    }
    let torn = statement.torn.map_or_else(String::new, |torn| format!("line {}: {}\n", torn.line, torn.damage()));
    // The budget fixes the order of moments, which is far from the best one for charges that cost much less.
    let is_far = statement.spent_epsilon > 10.0 * statement.fixed_epsilon;
    let far = "a budget that is far from the cost of its charges counts them for more than they cost; a smaller one counts them closer\n";
    format!(
        "{}\nspent{}: epsilon {:.4}{} at delta {:e}; {:.4} if all charges were fixed before the first answer\n{}{}{}\n{torn}",
        terminal::table(&table),
        if party.is_some() { " for one teacher" } else { "" },
        round_up(statement.spent_epsilon, 4),
        statement.budget.epsilon.map_or_else(String::new, |budget| format!(" of {budget}")),
        statement.budget.delta.get(),
        round_up(statement.fixed_epsilon, 4),
        if is_far && statement.budget.epsilon.is_some() { far } else { "" },
        party.map_or_else(String::new, |party| party_text(&party)),
        statement.claim
    )
}

/// Returns the cost for all votes of the party in one line.
fn party_text(party: &PartyCost) -> String {
    let PartyCost { teachers, spent_epsilon, fixed_epsilon, .. } = *party;
    let whose = format!("for all votes of the party of up to {teachers} teachers");
    if !spent_epsilon.is_finite() {
        return format!("spent {whose}: no finite epsilon is known\n");
    }
    let [spent, fixed] = [spent_epsilon, fixed_epsilon].map(|epsilon| round_up(epsilon, 4));
    format!("spent {whose}: epsilon {spent:.4}; {fixed:.4} if all charges were fixed before the first answer\n")
}
