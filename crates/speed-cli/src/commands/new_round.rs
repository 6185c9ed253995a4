//! `speed student round`: writes a round, or the rounds of several key sets.

use std::path::PathBuf;

use serde_json::{Value, json};
use speed_accountant::forecast::{Agreement, AgreementForecast, Forecast};
use speed_accountant::{AccountError, HonestRatio, PrivacyEvent};
use speed_core::{RandomnessKind, printable_path};
use speed_round::bundle::{self, BundleOptions};
use speed_round::{Influence, RolesError, Roster, RoundFile, RoundRandomness, Terms, hash_query_list, student};

use super::price::RoundPrice;
use super::round::opened_together;
use super::{Failure, WITHOUT_PROOFS, flag, influence, mark, print, print_json, round_noise, usage};
use crate::bar::Waiting;
use crate::options::RoundOptions;

pub(super) fn create(options: &RoundOptions) -> Result<(), Failure> {
    let first = KeyFiles::first(options);
    let terms = terms(options, &first)?;
    // The rounds of several key sets have the same noise, so all of them together cost as much as one round of all queries.
    let price =
        RoundPrice::for_round(&student::terms(&terms, &first.public, &options.out)?, None, options.price.delta)?;
    price.check(&options.price, options.simulation)?;
    let unanimous = unanimous(&terms)?;
    if unanimous.loses_unanimity() && !options.accept_wrong_labels && !options.simulation {
        return Err(wrong_labels(&terms, &unanimous));
    }
    let forecast = options.agreement.map(|agreement| forecast(&terms, agreement)).transpose()?;
    let outlook = Outlook { price, unanimous, forecast };
    match (&options.keys, &options.query_list) {
        (Some(keys), Some(query_list)) => {
            let bundle = BundleOptions {
                keys: keys.clone(),
                query_list: query_list.clone(),
                known: options.known.clone(),
                proofs: options.proofs,
                out: options.out.clone(),
                randomness: randomness(options),
            };
            several(options, &terms, &bundle, &outlook)
        }
        _ => one(options, &terms, first.public, &outlook),
    }
}

/// What parties expect of a round before it begins.
struct Outlook {
    price: RoundPrice,
    unanimous: Forecast,
    forecast: Option<AgreementForecast>,
}

impl Outlook {
    fn to_text(&self) -> String {
        let forecast = self.forecast.as_ref().map_or_else(String::new, |forecast| format!("{forecast}\n"));
        format!("forecast of a unanimous vote: {}\n{}{forecast}", self.unanimous, self.price.to_text())
    }
}

/// The files of a key set.
struct KeyFiles {
    public: PathBuf,
    evaluation: PathBuf,
}

impl KeyFiles {
    /// Returns the keys of the round, or the first of several key sets.
    fn first(options: &RoundOptions) -> Self {
        let of_set = || options.keys.as_deref().map(|keys| keys.join("1").join("public.key"));
        let public = options.public_key.clone().or_else(of_set).unwrap_or_default();
        let evaluation = options.evaluation_key.clone().unwrap_or_else(|| public.with_file_name("evaluation.key"));
        Self { public, evaluation }
    }
}

/// A simulation hides nothing, and the seed makes its rounds reproducible.
fn randomness(options: &RoundOptions) -> RoundRandomness {
    RoundRandomness::from_seed(options.simulation.then_some(0))
}

/// Makes a round, with a sign of life while the proof key is generated.
fn waiting<T>(options: &RoundOptions, make: impl FnOnce() -> Result<T, RolesError>) -> Result<T, RolesError> {
    if options.proofs { Waiting::during("proof key", make) } else { make() }
}

fn one(options: &RoundOptions, terms: &Terms, public_key: PathBuf, outlook: &Outlook) -> Result<(), Failure> {
    let proof_key =
        options.proofs.then(|| options.proof_key.clone().unwrap_or_else(|| options.out.with_file_name("proof.key")));
    let round = student::RoundOptions {
        public_key,
        proof_key: proof_key.clone(),
        reuse_keys: options.reuse_keys,
        out: options.out.clone(),
        randomness: randomness(options),
    };
    let file = waiting(options, || student::round(terms, &round))?;
    if options.json {
        let mut value = to_json(&file, outlook);
        value["proof_key"] = json!(proof_key);
        value["out"] = json!(options.out);
        return print_json(&value);
    }
    let proofs = match &proof_key {
        Some(path) => {
            let influence = influence(Influence::of(&file));
            format!("proof key in {}, for teachers and server\n{influence}", printable_path(path))
        }
        None => WITHOUT_PROOFS.to_owned(),
    };
    let opener = file.opener().map_or_else(String::new, |(index, party)| opened_together(index, party));
    let (mark, id) = (mark(options.simulation), file.id().to_hex());
    print(&format!("{mark}round {id} in {}\n{opener}{proofs}{}", printable_path(&options.out), outlook.to_text()))
}

fn several(options: &RoundOptions, terms: &Terms, bundle: &BundleOptions, outlook: &Outlook) -> Result<(), Failure> {
    let parts = waiting(options, || bundle::rounds(terms, bundle))?;
    if options.json {
        let rounds = parts.iter().map(|part| {
            let (file, queries) = (&part.file, part.file.round().shape().queries());
            json!({
                "round": file.id().to_hex(), "name": file.name(), "key": file.key().to_hex(), "queries": queries, "out": part.folder,
            })
        });
        let rounds: Vec<Value> = rounds.collect();
        let mut value = to_json(&parts[0].file, outlook);
        for field in ["round", "key"] {
            value.as_object_mut().expect("an object").remove(field);
        }
        value["name"] = json!(terms.name);
        value["rounds"] = json!(rounds);
        value["out"] = json!(options.out);
        return print_json(&value);
    }
    let mut text = mark(options.simulation).to_owned();
    for part in &parts {
        let (id, queries) = (part.file.id().to_hex(), part.file.round().shape().queries());
        text.push_str(&format!("round {id} of {queries} queries in {}\n", printable_path(&part.folder)));
    }
    text.push_str(&if options.proofs { influence(Influence::of(&parts[0].file)) } else { WITHOUT_PROOFS.to_owned() });
    text.push_str("of all rounds together:\n");
    print(&(text + &outlook.to_text()))
}

fn to_json(file: &RoundFile, outlook: &Outlook) -> Value {
    let round = file.round();
    json!({
        "round": file.id().to_hex(), "name": file.name(), "key": file.key().to_hex(),
        "simulation": round.is_simulation(), "noise": file.noise().mechanism().identifier(),
        "noise_bound": round.range().noise_bound(), "one_teacher": Influence::of(file), "price": outlook.price,
        "teachers": round.shape().teachers(), "class_names": file.classes().all_names(), "parties": round.parties(),
        "opener": file.opener().map(|(_, party)| party.name()),
        "unanimous": outlook.unanimous, "forecast": outlook.forecast,
    })
}

/// Returns the noise of a query of a round in which all teachers answer.
fn whole_event(terms: &Terms) -> Result<PrivacyEvent, AccountError> {
    let event = PrivacyEvent::new(terms.noise.mechanism(), HonestRatio::ALL);
    #[expect(clippy::cast_precision_loss, reason = "the event refuses inexact values")]
    terms.threshold.map_or(Ok(event), |votes| event.with_threshold(votes as f64))
}

/// Forecasts the labels of a round in which all teachers answer.
fn forecast(terms: &Terms, agreement: Agreement) -> Result<AgreementForecast, Failure> {
    let teachers = terms.roster.teacher_count();
    let forecast = whole_event(terms)
        .and_then(|event| AgreementForecast::new(&event, (agreement, terms.classes.len()), teachers, terms.queries));
    forecast.map_err(|error| flag("agreement", &error))
}

/// Forecasts the labels of a round in which all teachers answer and agree.
fn unanimous(terms: &Terms) -> Result<Forecast, Failure> {
    let teachers = terms.roster.teacher_count();
    let forecast =
        whole_event(terms).and_then(|event| Forecast::unanimous(&event, terms.classes.len(), teachers, terms.queries));
    forecast.map_err(|error| flag("queries", &error))
}

/// Returns the refusal of a round whose noise outweighs all votes.
fn wrong_labels(terms: &Terms, unanimous: &Forecast) -> Failure {
    let teachers = terms.roster.teacher_count();
    usage(
        "accept-wrong-labels",
        format!(
            "the noise is too wide for {teachers} teachers: even a unanimous vote gives only {unanimous}; use less noise, or more teachers \
             (`speed teacher keygen --teachers`); if that is meant, allow it with --accept-wrong-labels"
        ),
    )
}

/// Returns the terms from the options.
fn terms(options: &RoundOptions, keys: &KeyFiles) -> Result<Terms, Failure> {
    let roster = Roster::read(&options.roster)?;
    if let Some(parties) = options.parties {
        let expected = roster.expect(parties, options.teachers.unwrap_or(parties));
        expected.map_err(|error| RolesError::input(&options.roster)(error))?;
    }
    // Each of several key sets has an evaluation key of its own.
    let evaluation_key = match options.keys {
        Some(_) => None,
        None => Some(student::evaluation_key_digest(&keys.evaluation, &keys.public)?),
    };
    let noise = round_noise::of_round(&options.mechanism, roster.teacher_count(), options.threshold.is_some())?;
    Ok(Terms {
        name: options.name.clone(),
        query_list: options.query_list.as_deref().map(|list| hash_query_list(list, options.queries)).transpose()?,
        min_teachers: options.min_teachers.unwrap_or(roster.teacher_count()),
        roster,
        queries: options.queries,
        classes: options.classes.clone(),
        noise,
        placement: options.noise,
        threshold: options.threshold,
        proofs: None,
        opener: options.opener.clone(),
        evaluation_key,
        randomness: if options.simulation { RandomnessKind::Simulation } else { RandomnessKind::OperatingSystem },
    })
}
