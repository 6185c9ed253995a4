//! `speed verify`

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use speed_accountant::{Account, Delta, epsilon_text};
use speed_core::printable_path;
use speed_experiment::model::{Description, Network};
use speed_experiment::report::{CardSource, ModelCard, PartyPrivacy, TrainingData};
use speed_experiment::{ExperimentError, OF_REPORT, models_of_card, read_card, task, verify_run_card};

use super::card::RoundFacts;
use super::{Failure, usage};
use crate::output::{mark, print_report};

#[derive(Debug, Args)]
pub(crate) struct VerifyOptions {
    /// The card: models/ROW/model-card.json in a run's folder, or the -card.json beside a model
    #[arg(value_name = "CARD")]
    card: PathBuf,
    /// The folder of the run, for a card that was moved away from it; the models must be beside the card
    #[arg(long, value_name = "DIR", conflicts_with = "round")]
    run: Option<PathBuf>,
    /// The round's file, for the card of a round's model
    #[arg(long, value_name = "FILE")]
    round: Option<PathBuf>,
    /// The round's result, if the card was written with it
    #[arg(long, value_name = "FILE", requires = "round")]
    result: Option<PathBuf>,
    /// Print JSON (docs/json.md)
    #[arg(long)]
    json: bool,
}

/// The JSON output.
#[derive(Serialize)]
struct Output {
    /// The card, as given.
    card: String,
    simulation: bool,
    publishable: Option<bool>,
    /// `run`, `round` or `labels`.
    source: &'static str,
    /// The number of model files, which have the hashes of the card.
    models: usize,
    /// The epsilon of the labels for any votes, computed again; `None` if there is none or nothing to compute it from.
    epsilon: Option<f64>,
    delta: Option<f64>,
    /// The same for all votes of the largest party, computed again; only if parties have several teachers.
    #[serde(skip_serializing_if = "Option::is_none")]
    party: Option<PartyOutput>,
    /// The fields that are statements of the card's author, or of the run's report.
    unchecked: Vec<&'static str>,
}

/// The cost for all votes of the largest party.
#[derive(Serialize)]
struct PartyOutput {
    teachers: u32,
    epsilon: Option<f64>,
}

/// The fields of a student's card that are the student's own statements: also that the model learned from these labels.
const OF_STUDENT: [&str; 5] = ["source", "training.pool_images", "training.labelled", "evaluation", "versions"];

pub(super) fn verify(options: &VerifyOptions) -> Result<(), Failure> {
    let VerifyOptions { card: path, run, round, json, .. } = options;
    let card = read_card(path)?;
    let (source, account, unchecked) = match &card.source {
        CardSource::Run { .. } => {
            if round.is_some() {
                return Err(usage("round", "expected --run or nothing: this card is of a run"));
            }
            ("run", verify_run_card(path, &card, run.as_deref())?, OF_REPORT.to_vec())
        }
        CardSource::Round { .. } => ("round", of_round(options, &card)?, vec!["training", "evaluation", "versions"]),
        CardSource::Labels => {
            if round.is_some() || run.is_some() {
                return Err(usage("round", "expected no file: this card states no run and no round"));
            }
            of_files(options, &card, None)?;
            ("labels", None, [&["training.queries"], &OF_STUDENT[..]].concat())
        }
    };
    // The verified card has the values that were computed again.
    let party = card.privacy.as_ref().and_then(|privacy| privacy.party.as_ref());
    let output = Output {
        card: path.display().to_string(),
        simulation: card.simulation,
        publishable: card.publishable,
        source,
        models: card.models.len(),
        epsilon: account.as_ref().map(|account| account.epsilon),
        delta: account.as_ref().map(|account| account.delta),
        party: party.map(|party| PartyOutput {
            teachers: party.teachers,
            epsilon: party.data_independent.as_ref().map(|account| account.epsilon),
        }),
        unchecked,
    };
    print_report(*json, &output, || text(&output, &card, account.as_ref()))
}

/// Verifies the card of a round's model, and returns the claim that was computed again.
fn of_round(options: &VerifyOptions, card: &ModelCard) -> Result<Option<Account>, Failure> {
    let Some(round) = &options.round else {
        return Err(usage("round", "expected the round's file: this card is of a round"));
    };
    let CardSource::Round { sum, .. } = &card.source else { return Ok(None) };
    if sum.is_some() != options.result.is_some() {
        let expected = if sum.is_some() { "the round's result" } else { "no result" };
        return Err(usage("result", format!("expected {expected}, as when the card was written")));
    }
    let claim = card.privacy.as_ref().and_then(|privacy| privacy.data_independent.as_ref());
    let delta = Delta::new(claim.map_or(1e-5, |claim| claim.delta))
        .map_err(|error| ModelCard::not_a_card(&error.to_string()).at(&options.card))?;
    let facts = RoundFacts::read(round, options.result.as_deref(), delta)?;
    of_files(options, card, Some(&facts))?;
    Ok(facts.privacy.data_independent)
}

/// Compares a card with its model and, if it has one, with its round.
fn of_files(options: &VerifyOptions, card: &ModelCard, round: Option<&RoundFacts>) -> Result<(), Failure> {
    let other = || ExperimentError::other_model(&options.card);
    let models = models_of_card(&options.card, card)?;
    let [(file, description)] = models.as_slice() else { return Err(other().into()) };
    let Description { network, origin, .. } = description;
    let training = TrainingData {
        method: network.name().to_owned(),
        queries: round.map_or(card.training.queries, |round| round.origin.queries),
        ..card.training.clone()
    };
    let expected = ModelCard {
        models: vec![file.clone()],
        task: task(description),
        training,
        encoder: description.encoder.as_ref().map(|encoder| encoder.facts.clone()),
        simulation: round.is_some_and(|round| round.origin.simulation),
        publishable: round.and_then(|round| round.origin.publishable),
        participants: round.map(|round| round.participants.clone()),
        source: round.map_or(CardSource::Labels, |round| round.source.clone()),
        privacy: round.map(|round| round.privacy.clone()),
        ..card.clone()
    };
    card.differing_field(&expected).map_err(|error| error.at(&options.card))?;
    let round = round.map(|round| round.origin.id.as_str());
    let is_own = matches!(network, Network::Student { .. }) && origin.round.as_deref() == round && origin.run.is_none();
    if !is_own || origin.simulation != card.simulation || origin.publishable != card.publishable {
        return Err(other().into());
    }
    Ok(())
}

fn text(output: &Output, card: &ModelCard, account: Option<&Account>) -> String {
    let mut text = format!(
        "{}{}: the card describes its {} model file{}\n",
        mark(output.simulation),
        printable_path(output.card.as_ref()),
        output.models,
        if output.models == 1 { "" } else { "s" }
    );
    text.push_str(&match (account, output.source, &card.privacy) {
        (Some(account), ..) => format!(
            "epsilon {} at delta {:e}, computed again. {}\n",
            epsilon_text(account.epsilon),
            account.delta,
            account.claim
        ),
        (None, "labels", _) => "no epsilon: the card does not state the origin of its labels\n".to_owned(),
        (None, _, None) => "no epsilon: the labels have no noise\n".to_owned(),
        (None, _, Some(_)) => "no finite epsilon is known for this noise, as the card says\n".to_owned(),
    });
    if let Some(party) = card.privacy.as_ref().and_then(|privacy| privacy.party.as_ref()) {
        let PartyPrivacy { teachers, data_independent, one_person, .. } = party;
        text.push_str(&match data_independent {
            Some(Account { epsilon, delta, claim, .. }) => format!(
                "for all votes of a party of {teachers} teachers: epsilon {} at delta {delta:e}, computed again. {claim}\n",
                epsilon_text(*epsilon)
            ),
            None => format!("for all votes of a party of {teachers} teachers: no finite epsilon is known, as the card says\n"),
        });
        text.push_str(&format!("{one_person}\n"));
    }
    let (files, author) = match output.source {
        "run" => {
            ("The files of a run have no signature, so they only show that they fit together. ", "the run's report")
        }
        "round" => ("The server's signature is on the round's result, and not on the model. ", "the student"),
        _ => ("", "the student"),
    };
    text.push_str(&format!("{files}Statements of {author}: {}\n", output.unchecked.join(", ")));
    text
}
