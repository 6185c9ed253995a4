//! `speed round`: checks a round's file and prints its terms.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use speed_accountant::Delta;
use speed_core::vote_files::csv_cell;
use speed_core::{NoisePlacement, printable};
use speed_round::{Influence, Party, RoundFile, RoundPrice};

use super::{Failure, WITHOUT_PROOFS, influence, mark, print, print_report};
use crate::options::delta;

#[derive(Debug, Args)]
pub(crate) struct ShowRoundOptions {
    /// The round's file
    round: PathBuf,
    /// Delta at which the round's epsilon is printed
    #[arg(long, value_name = "D", default_value = "1e-5", value_parser = delta)]
    delta: Delta,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn show(options: &ShowRoundOptions) -> Result<(), Failure> {
    let file = RoundFile::read(&options.round)?;
    if !options.json {
        // Costs of wide noise take seconds.
        print(&to_text(&file))?;
    }
    let price = RoundPrice::for_round(&file, None, options.delta)?;
    print_report(options.json, &to_json(&file, &price), || price.to_text())
}

fn to_json(file: &RoundFile, price: &RoundPrice) -> serde_json::Value {
    let (round, roster) = (file.round(), file.roster());
    let party = |party: &Party| json!({ "name": party.name(), "key": party.key().to_hex() });
    let teacher = |party: &Party| json!({ "name": party.name(), "key": party.key().to_hex(), "teachers": party.teachers(), "classes": party.classes() });
    json!({
        "round": file.id().to_hex(), "name": file.name(), "key": file.key().to_hex(), "simulation": round.is_simulation(),
        "queries": round.shape().queries(), "classes": round.shape().classes(), "class_names": file.classes().all_names(),
        "query_list": round.query_list().map(|list| list.to_hex()), "threshold": round.threshold(),
        "minimum": round.min_teachers(), "noise": file.noise().mechanism().identifier(),
        "noise_by_server": round.placement() == NoisePlacement::Central, "proof_key": round.proofs().map(|key| key.to_hex()),
        "evaluation_key": round.evaluation_key().map(|key| key.to_hex()),
        "voters": file.voters(), "one_teacher": Influence::of(file), "opener": file.opener().map(|(_, party)| party.name()),
        "student": party(roster.student()), "server": party(roster.server()),
        "teachers": roster.teachers().iter().map(teacher).collect::<Vec<_>>(), "price": price,
    })
}

/// Returns the names of a round's classes, as `--classes` takes them.
pub(super) fn class_names(file: &RoundFile) -> String {
    file.classes().all_names().iter().map(|name| csv_cell(name)).collect::<Vec<_>>().join(",")
}

/// Returns the line about the number of parties that can vote for each class; empty if no party states its classes.
pub(super) fn voters(file: &RoundFile) -> String {
    let Some(voters) = file.voters() else { return String::new() };
    let (parties, names) = (file.roster().teachers(), file.classes().all_names());
    let silent = parties.iter().filter(|party| party.classes().is_none()).count();
    let silent = match silent {
        0 => String::new(),
        count => format!("; {count} of them state no classes and count for all"),
    };
    let each: Vec<String> =
        names.iter().zip(voters).map(|(name, voters)| format!("{} {voters}", csv_cell(name))).collect();
    format!(
        "parties that can vote for each class, of {}, as their cards state: {}{silent}\n",
        parties.len(),
        each.join(", ")
    )
}

/// Returns the line about the opener. A name alone does not tell parties apart for people, so the key's first digits follow it.
pub(super) fn opened_together(index: usize, opener: &Party) -> String {
    format!(
        "the student opens the result together with teacher {index}, {} (key {}): neither can open the result alone\n",
        printable(opener.name()),
        opener.key()
    )
}

fn to_text(file: &RoundFile) -> String {
    let (round, roster) = (file.round(), file.roster());
    let shape = round.shape();
    let list = match round.query_list() {
        Some(list) => format!("listed in the file with SHA-256 {}", list.to_hex()),
        None => "not listed: this file does not identify them".to_owned(),
    };
    let noise = match round.placement() {
        NoisePlacement::Distributed => "each teacher adds a share",
        NoisePlacement::Central => "the server adds it, and knows it",
    };
    let coins = file.noise().coins_of_teacher(shape.teachers());
    let coins = coins.map_or_else(String::new, |coins| format!(" ({coins} of each teacher)"));
    let threshold =
        round.threshold().map_or(String::new(), |threshold| format!("no label below {threshold} noisy votes\n"));
    let proofs = match round.proofs() {
        Some(key) => {
            format!(
                "messages carry proofs that they are well formed, for the proof key with SHA-256 {}\n{}",
                key.to_hex(),
                influence(Influence::of(file))
            )
        }
        None => WITHOUT_PROOFS.to_owned(),
    };
    let evaluation = match round.evaluation_key() {
        Some(key) => format!("with SHA-256 {}", key.to_hex()),
        None => "not stated: the server accepts any evaluation.key of this encryption key".to_owned(),
    };
    let mut text = format!(
        "{}round {:?}\nid {}\nencryption key (public.key) {}\nevaluation key {evaluation}\n{} queries of {} classes: {}; {list}\nnoise {}{coins}: {noise}\n{threshold}{} of {} \
         teachers must answer\n{proofs}\n",
        mark(round.is_simulation()),
        file.name(),
        file.id().to_hex(),
        file.key().to_hex(),
        shape.queries(),
        shape.classes(),
        class_names(file),
        file.noise().mechanism().identifier(),
        round.min_teachers(),
        shape.teachers(),
    );
    text.push_str(&voters(file));
    if let Some((index, opener)) = file.opener() {
        text.push_str(&format!("{}\n", opened_together(index, opener)));
    }
    let mut line = |role: String, party: &Party| {
        let teachers = if party.teachers() > 1 { format!(", {} teachers", party.teachers()) } else { String::new() };
        text.push_str(&format!("{role:<12} {}  {}{teachers}\n", party.key().to_hex(), printable(party.name())));
    };
    line("student".to_owned(), roster.student());
    line("server".to_owned(), roster.server());
    for (index, teacher) in roster.teachers().iter().enumerate() {
        line(format!("teacher {index}"), teacher);
    }
    text + "\n"
}
