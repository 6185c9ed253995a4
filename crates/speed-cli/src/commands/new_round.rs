//! `speed student round`: writes a round, or the rounds of several key sets.

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args};
use serde_json::{Value, json};
use speed_accountant::forecast::{Agreement, AgreementForecast, Forecast};
use speed_accountant::{AccountError, HonestRatio, PrivacyEvent};
use speed_core::{Classes, NoisePlacement, RandomnessKind, printable_path};
use speed_round::bundle::{self, BundleOptions};
use speed_round::{
    Influence, Refused, Roster, RoundFile, RoundPrice, RoundRandomness, Terms, hash_query_list, student,
};

use super::round::{opened_together, voters};
use super::round_noise::RoundNoiseOptions;
use super::{Failure, WITHOUT_PROOFS, influence, mark, print_report, round_noise, usage};
use crate::bar::Bar;
use crate::options::{PriceOptions, agreement, classes};

/// A choice of those who add the privacy noise.
fn noise_placement() -> impl TypedValueParser<Value = NoisePlacement> {
    PossibleValuesParser::new(["teachers", "server"])
        .map(|noise| if noise == "server" { NoisePlacement::Central } else { NoisePlacement::Distributed })
}

/// A choice whether messages need proofs.
fn proofs() -> impl TypedValueParser<Value = bool> {
    PossibleValuesParser::new(["required", "off"]).map(|proofs| proofs == "required")
}

#[derive(Debug, Args)]
pub(crate) struct RoundOptions {
    /// The public.key that teachers will encrypt under
    #[arg(long, value_name = "FILE", required_unless_present = "keys")]
    public_key: Option<PathBuf>,
    /// A folder of several key sets (keygen --sets), among which the queries are divided: one round for each, in a folder of --out
    #[arg(long, value_name = "DIR", conflicts_with_all = ["public_key", "evaluation_key", "proof_key", "reuse_keys"], requires = "query_list")]
    keys: Option<PathBuf>,
    /// Known answers that `student mix` mixed into the list; each part of them is written beside its secret key
    #[arg(long, value_name = "FILE", requires = "keys")]
    known: Option<PathBuf>,
    /// The evaluation.key of the same keys, whose SHA-256 enters the round's id [default: evaluation.key beside the public key]
    #[arg(long, value_name = "FILE")]
    evaluation_key: Option<PathBuf>,
    /// Name of the round; two rounds with the same key need different names
    #[arg(long)]
    name: String,
    /// Number of queries
    #[arg(long, value_name = "N")]
    queries: usize,
    /// A file that lists the queries in order; its SHA-256 enters the round's id
    #[arg(long, value_name = "FILE")]
    query_list: Option<PathBuf>,
    /// The names of the classes in their order, separated by commas, by which votes and labels refer to them; or their number, if they are
    /// called 0, 1 and so on
    #[arg(long, value_name = "NAMES", value_parser = classes)]
    classes: Classes,
    /// The parties: a folder with the card of each in a file of its own, or a file with all cards one after another
    #[arg(long, value_name = "FOLDER")]
    roster: PathBuf,
    /// Number of parties that answer; a roster with another number is refused
    #[arg(long, value_name = "N", required_unless_present = "simulation")]
    parties: Option<usize>,
    /// Number of teachers of all parties together; a roster with another number is refused [default: one of each party]
    #[arg(long, value_name = "N", requires = "parties")]
    teachers: Option<usize>,
    /// Number of teachers that must answer; a party counts with all its teachers [default: all]
    #[arg(long, value_name = "M")]
    min_teachers: Option<usize>,
    #[command(flatten)]
    mechanism: RoundNoiseOptions,
    /// The parties that add the noise: every teacher a share, or the server all of it (docs/threat-models.md)
    #[arg(long, value_name = "NOISE", default_value = "teachers", value_parser = noise_placement())]
    noise: NoisePlacement,
    /// Give no answer where the largest noisy count is below this number of votes
    #[arg(long, value_name = "VOTES")]
    threshold: Option<i64>,
    /// Proofs that messages are well formed. Without proofs, a teacher that sends malformed ciphertexts and sees the
    /// labels can recover the secret key from them (docs/threat-models.md)
    #[arg(long, value_name = "PROOFS", default_value = "required", value_parser = proofs(), action = ArgAction::Set)]
    proofs: bool,
    /// The teacher that opens the result together with the student, by its name in the roster: the holder of opener.share,
    /// for keys of speed student keygen --joint
    #[arg(long, value_name = "NAME", conflicts_with = "keys")]
    opener: Option<String>,
    /// Reuse the keys of another round. All rounds of a key together may have 333 bits of labels (100 labels of ten classes)
    #[arg(long)]
    reuse_keys: bool,
    /// The proof key to write, for teachers and server [default: proof.key beside the round's file]
    #[arg(long, value_name = "FILE")]
    proof_key: Option<PathBuf>,
    #[command(flatten)]
    price: PriceOptions,
    /// Expected share of the teachers that vote for the right class: also print the forecast of speed plan
    #[arg(long, value_name = "SHARE", value_parser = agreement)]
    agreement: Option<Agreement>,
    /// Write a round in which even a unanimous vote gives a wrong label more than 5 % of the time
    #[arg(long)]
    accept_wrong_labels: bool,
    /// Make the round a simulation, whose keys or noise come from a seed: no privacy
    #[arg(long)]
    simulation: bool,
    /// The round's file to write; with --keys the folder of the rounds
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn create(options: &RoundOptions) -> Result<(), Failure> {
    // The keys of the round, or the first of several key sets.
    let of_set = || options.keys.as_deref().map(|keys| keys.join("1").join("public.key"));
    let public_key = options.public_key.clone().or_else(of_set).unwrap_or_default();
    let terms = terms(options, &public_key)?;
    // The rounds of several key sets have the same noise, so all of them together cost as much as one round of all queries.
    let price = RoundPrice::for_round(&student::terms(&terms, &public_key, &options.out)?, None, options.price.delta)?;
    options.price.limit.check(&price, options.simulation)?;
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
        _ => one(options, &terms, public_key, &outlook),
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

/// A simulation hides nothing, and the seed makes its rounds reproducible.
fn randomness(options: &RoundOptions) -> RoundRandomness {
    RoundRandomness::from_seed(options.simulation.then_some(0))
}

/// Makes a round, with a sign of life while the proof key is generated.
fn waiting<T>(options: &RoundOptions, make: impl FnOnce() -> Result<T, Refused>) -> Result<T, Refused> {
    if options.proofs { Bar::during("proof key", make) } else { make() }
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
    let mut value = to_json(&file, outlook);
    value["proof_key"] = json!(proof_key);
    value["out"] = json!(options.out);
    print_report(options.json, &value, || {
        let proofs = match &proof_key {
            Some(path) => {
                let influence = influence(Influence::of(&file));
                format!("proof key in {}, for teachers and server\n{influence}", printable_path(path))
            }
            None => WITHOUT_PROOFS.to_owned(),
        };
        let opener = file.opener().map_or_else(String::new, |(index, party)| opened_together(index, party));
        let (mark, id, voters) = (mark(options.simulation), file.id().to_hex(), voters(&file));
        format!("{mark}round {id} in {}\n{voters}{opener}{proofs}{}", printable_path(&options.out), outlook.to_text())
    })
}

fn several(options: &RoundOptions, terms: &Terms, bundle: &BundleOptions, outlook: &Outlook) -> Result<(), Failure> {
    let parts = waiting(options, || bundle::rounds(terms, bundle))?;
    print_report(options.json, &several_json(options, terms, &parts, outlook), || {
        let mut text = mark(options.simulation).to_owned();
        for part in &parts {
            let (id, queries) = (part.file.id().to_hex(), part.file.round().shape().queries());
            text.push_str(&format!("round {id} of {queries} queries in {}\n", printable_path(&part.folder)));
        }
        text.push_str(&voters(&parts[0].file));
        let proofs = options.proofs.then(|| influence(Influence::of(&parts[0].file)));
        text.push_str(proofs.as_deref().unwrap_or(WITHOUT_PROOFS));
        text + "of all rounds together:\n" + &outlook.to_text()
    })
}

fn several_json(options: &RoundOptions, terms: &Terms, parts: &[bundle::Part], outlook: &Outlook) -> Value {
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
    value
}

fn to_json(file: &RoundFile, outlook: &Outlook) -> Value {
    let round = file.round();
    json!({
        "round": file.id().to_hex(), "name": file.name(), "key": file.key().to_hex(),
        "simulation": round.is_simulation(), "noise": file.noise().mechanism().identifier(),
        "noise_bound": round.range().noise_bound(), "one_teacher": Influence::of(file), "price": outlook.price,
        "teachers": round.shape().teachers(), "class_names": file.classes().all_names(), "parties": round.parties(),
        "voters": file.voters(),
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
    forecast.map_err(|error| usage("agreement", &error))
}

/// Forecasts the labels of a round in which all teachers answer and agree.
fn unanimous(terms: &Terms) -> Result<Forecast, Failure> {
    let teachers = terms.roster.teacher_count();
    let forecast =
        whole_event(terms).and_then(|event| Forecast::unanimous(&event, terms.classes.len(), teachers, terms.queries));
    forecast.map_err(|error| usage("queries", &error))
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

fn terms(options: &RoundOptions, public_key: &Path) -> Result<Terms, Failure> {
    let roster = Roster::read(&options.roster)?;
    if let Some(parties) = options.parties {
        let expected = roster.expect(parties, options.teachers.unwrap_or(parties));
        expected.map_err(Refused::input(&options.roster))?;
    }
    // Each of several key sets has an evaluation key of its own.
    let evaluation_key = match options.keys {
        Some(_) => None,
        None => {
            let beside = || public_key.with_file_name("evaluation.key");
            let path = options.evaluation_key.clone().unwrap_or_else(beside);
            Some(student::evaluation_key_digest(&path, public_key)?)
        }
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
