//! The card of a model: its task, the participants, and their protection.
//!
//! The sections of the Markdown form are those of Hugging Face's model cards; the fields on privacy are those of tier 3 of the
//! Differential Privacy Deployments Registry (registry.opendp.org).

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use speed_accountant::{Account, UNDIVIDED, epsilon_text, round_up, without_protection};
use speed_core::{Digest, printable};

use crate::error::ExperimentError;
use crate::report::classification::Classification;
use crate::report::run::{EncoderFacts, Environment, FROM_PUBLIC_DATA};
use crate::report::table::markdown;

/// The version of the card's format.
pub const CARD_FORMAT: u32 = 1;

/// Largest delta of a claim on a card. With a larger one, a claim may hold although the votes of some teachers are published.
pub const MAX_CARD_DELTA: f64 = 1e-3;

const CHECKSUM: &str = "sha256";

/// The card of one or more models that differ only in their random weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelCard {
    /// The version of the format: [`CARD_FORMAT`].
    pub format: u32,
    /// Whether keys or noise come from a seed, so nothing is private.
    pub simulation: bool,
    /// Whether a finite data-independent claim of small delta covers the labels, whose noise is real; `None` if the origin of
    /// the labels is unknown.
    pub publishable: Option<bool>,
    /// The files of the models.
    pub models: Vec<ModelFile>,
    /// The task.
    pub task: Task,
    /// The labels and images of the training.
    pub training: TrainingData,
    /// The encoder that turns pictures into the model's vectors; absent for models of pictures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoder: Option<EncoderFacts>,
    /// The origin of the labels.
    pub source: CardSource,
    /// The holders of private data; `None` if the origin of the labels is unknown.
    pub participants: Option<Participants>,
    /// The protection of the participants; `None` without noise or if the origin of the labels is unknown.
    pub privacy: Option<Privacy>,
    /// The results of the first model on labelled images; `None` if there were none.
    pub evaluation: Option<Classification>,
    /// The versions of the programs, and the machine of the training.
    pub versions: Versions,
}

/// The file of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFile {
    /// Its name in the directory of the card.
    pub file: String,
    /// Its SHA-256 in hexadecimal digits.
    pub sha256: String,
}

/// The task of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Always `image-classification`.
    pub kind: String,
    /// The names of the classes, in the order of the probabilities.
    pub classes: Vec<String>,
    /// Channels, height and width of the images.
    pub shape: [usize; 3],
    /// Whether images of other sizes are resized.
    pub resizes: bool,
}

/// The labels and images of a training.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingData {
    /// The method.
    pub method: String,
    /// Number of public images.
    pub pool_images: usize,
    /// Number of queries.
    pub queries: usize,
    /// Number of queries with a label.
    pub labelled: usize,
}

/// The origin of labels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum CardSource {
    /// A row of an experiment's run.
    Run {
        /// The name of the experiment.
        experiment: String,
        /// The id of the run, which is derived from its config.
        run: String,
        /// The row of its table.
        row: String,
    },
    /// A round between parties.
    Round {
        /// The round's id in hexadecimal digits.
        id: String,
        /// The round's name.
        name: String,
        /// The digest of the teachers' messages in the order of the server's log, in hexadecimal digits; `None` if the
        /// result of the round was not stated.
        sum: Option<String>,
    },
    /// A file of labels whose origin was not stated.
    Labels,
}

/// The holders of private data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Participants {
    /// Number of teachers.
    pub teachers: usize,
    /// Number of teachers whose votes were counted; of a round whose result was not stated, the smallest number that it
    /// accepts, so at least so many were counted.
    pub counted: usize,
    /// Their names; empty in experiments.
    pub names: Vec<String>,
}

/// The protection of the participants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Privacy {
    /// The kind of differential privacy.
    pub dp_flavor: String,
    /// The protected unit.
    pub privacy_unit: String,
    /// Who adds the noise.
    pub deployment_model: String,
    /// The noise.
    pub mechanism: String,
    /// The claim for any votes, with epsilon and delta; `None` if no finite one is known.
    pub data_independent: Option<Account>,
    /// The claim at the given votes, which depends on them; only in simulations.
    pub data_dependent: Option<Account>,
    /// The protection of all votes of a party together; absent if every party has one teacher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub party: Option<PartyPrivacy>,
    /// Facts that no claim covers.
    pub unprotected_quantities: String,
    /// What may be done with the model without further cost.
    pub post_processing: String,
}

/// The protection of all votes of a party with several teachers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartyPrivacy {
    /// The number of teachers of the largest party.
    pub teachers: u32,
    /// The protected unit.
    pub privacy_unit: String,
    /// The assumption under which the claim for one teacher is one for a person.
    pub one_person: String,
    /// The claim for any votes, with epsilon and delta; `None` if no finite one is known.
    pub data_independent: Option<Account>,
}

impl PartyPrivacy {
    /// Returns the protection of the votes of a party with this many teachers; `None` for one teacher.
    pub fn of_votes(teachers: u32, data_independent: Option<Account>) -> Option<Self> {
        (teachers > 1).then(|| Self {
            teachers,
            privacy_unit: format!(
                "all votes of the {teachers} teachers of the largest party in these queries; neighbours differ in the votes of all \
                 teachers of one party on every query"
            ),
            one_person: format!("the claim for one teacher covers one person {UNDIVIDED}"),
            data_independent,
        })
    }
}

impl Privacy {
    /// Returns the protection by the noise `mechanism` on votes.
    pub fn of_votes(mechanism: String, source: NoiseSource, data_independent: Option<Account>) -> Self {
        let deployment_model = match source {
            NoiseSource::Teachers => "distributed: every teacher adds a share of the noise before encryption",
            NoiseSource::Server => "central: the server adds the noise to encrypted votes, and knows it",
            NoiseSource::TrustedAggregator => "central: a trusted aggregator sees the votes and adds the noise",
        };
        Self {
            dp_flavor: "approximate differential privacy (epsilon, delta)".into(),
            privacy_unit:
                "all votes of one teacher in these queries; neighbours differ in one teacher's vote on every query"
                    .into(),
            deployment_model: deployment_model.into(),
            mechanism,
            data_independent,
            data_dependent: None,
            party: None,
            unprotected_quantities: "the queries, the number of teachers, and who took part".into(),
            post_processing:
                "the model depends on the teachers only through the labels, so it costs no more than they do".into(),
        }
    }
}

/// The party that adds the noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoiseSource {
    /// Each teacher adds a share.
    Teachers,
    /// The server adds all noise under encryption.
    Server,
    /// An aggregator that sees all votes adds the noise.
    TrustedAggregator,
}

/// Returns whether a claim of a card covers labels: it is finite, and its delta is at most [`MAX_CARD_DELTA`].
pub fn covers_labels(claim: Option<&Account>) -> bool {
    claim.is_some_and(|claim| claim.delta <= MAX_CARD_DELTA)
}

/// The versions of the programs that trained a model, and its machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Versions {
    /// This program.
    pub speed: String,
    /// The networks' library.
    pub burn: String,
    /// The encryption's library.
    pub tfhe: String,
    /// The operating system and the kind of processor.
    pub system: String,
}

impl From<&Environment> for Versions {
    fn from(environment: &Environment) -> Self {
        Self {
            speed: environment.speed.clone(),
            burn: environment.burn.clone(),
            tfhe: environment.tfhe.clone(),
            system: environment.system.clone(),
        }
    }
}

/// Returns the error of a card whose contents do not match its checksum.
fn was_changed() -> ExperimentError {
    ExperimentError::fault("the card was changed: its contents do not match its checksum")
}

/// Returns the error of a field with another value than the files that the card describes.
fn other_field(field: &str, expected: &str, found: &str) -> ExperimentError {
    let [field, expected, found] = [field, expected, found].map(printable);
    ExperimentError::fault(format_args!("{field}: expected {expected}, found {found}"))
}

impl ModelCard {
    /// Returns the card as JSON with a checksum.
    ///
    /// # Panics
    /// Never: a card is valid JSON.
    pub fn to_json(&self) -> String {
        let mut card = serde_json::to_value(self).expect("a card is valid JSON");
        card[CHECKSUM] = checksum(&card).into();
        format!("{card:#}\n")
    }

    /// Reads a card. The checksum finds a field that was changed by mistake; an attacker can replace the checksum
    /// too, so [`differing_field`](Self::differing_field) compares it with the files that it describes.
    ///
    /// # Errors
    /// If the text is not an unchanged card.
    pub fn from_json(text: &[u8]) -> Result<Self, ExperimentError> {
        let format = |error: serde_json::Error| Self::not_a_card(&error.to_string());
        let mut card: Value = serde_json::from_slice(text).map_err(format)?;
        let version = card.get("format").and_then(Value::as_u64);
        if let Some(found) = version.filter(|version| *version != u64::from(CARD_FORMAT)) {
            let expected = format!("expected a card of format {CARD_FORMAT}, found {found}");
            return Err(ExperimentError::fault(format_args!("{expected}: use the version of speed that wrote it")));
        }
        let sealed = card.as_object_mut().and_then(|card| card.remove(CHECKSUM));
        if sealed.ok_or_else(|| Self::not_a_card(&format!("expected the key {CHECKSUM}")))? != checksum(&card) {
            return Err(was_changed());
        }
        let card: Self = serde_json::from_value(card).map_err(format)?;
        // Other texts could show readers other values, by a key that occurs twice.
        if card.to_json().as_bytes() == text { Ok(card) } else { Err(was_changed()) }
    }

    /// Returns the error of a file that is not a card.
    pub fn not_a_card(reason: &str) -> ExperimentError {
        let expected = "expected the card of a model (model-card.json), found other text";
        ExperimentError::fault(format_args!("{expected}: {}", printable(reason)))
    }

    /// Compares the card with `expected`, the card of the same files.
    ///
    /// # Errors
    /// The first field that differs. Epsilons may differ in their last bits between machines, by a relative 1e-9.
    pub fn differing_field(&self, expected: &Self) -> Result<(), ExperimentError> {
        let [found, expected] = [self, expected].map(|card| serde_json::to_value(card).unwrap_or_default());
        compare("", &expected, &found)
    }

    /// Returns the facts that model hubs read, in YAML, of which JSON's texts are a part. The accuracy is absent where the model must not be
    /// published. The licence is the owner's choice, which the card does not know.
    fn front_matter(&self) -> String {
        let mut text = "---\nlicense: unknown\npipeline_tag: image-classification\nlibrary_name: onnx\ntags:\n- differential-privacy\n- \
                        image-classification\n- speed\n"
            .to_owned();
        if self.simulation {
            text.push_str("- simulation\n");
        }
        let accuracy = self.evaluation.as_ref().and_then(Classification::accuracy);
        if let (Some(accuracy), Some(model)) = (accuracy, self.models.first())
            && (self.simulation || self.publishable != Some(false))
        {
            let name = Value::from(printable(model.file.trim_end_matches(".safetensors")));
            let lines = [
                "model-index:".to_owned(),
                format!("- name: {name}"),
                "  results:".to_owned(),
                "  - task:".to_owned(),
                "      type: image-classification".to_owned(),
                "    dataset:".to_owned(),
                "      type: test-images".to_owned(),
                "      name: labelled test images".to_owned(),
                "    metrics:".to_owned(),
                "    - type: accuracy".to_owned(),
                format!("      value: {accuracy}\n"),
            ];
            text.push_str(&lines.join("\n"));
        }
        text + "---\n\n"
    }

    /// Returns the card in Markdown. `name` is the file of the same card in JSON.
    pub fn to_markdown(&self, name: &str) -> String {
        let mut text = self.front_matter();
        let mut section = |title: &str, body: &str| {
            let _ = writeln!(text, "## {title}\n\n{}\n", body.trim_end());
        };
        section("Model Details", &self.details());
        section("Uses", self.uses());
        section("Privacy", &self.privacy());
        section("Bias, Risks, and Limitations", &self.limits());
        section("How to Get Started with the Model", &self.start(name));
        section("Training Details", &self.training_details());
        section("Evaluation", &self.evaluation());
        section("Technical Specifications", &self.specifications());
        format!("{}\n", text.trim_end())
    }

    fn details(&self) -> String {
        let [channels, height, width] = self.task.shape;
        let mut text = String::new();
        if self.simulation {
            text.push_str("**SIMULATION: keys or noise come from a seed, so nothing is private.**\n\n");
        }
        let classes: Vec<String> = self.task.classes.iter().map(|name| escaped(name)).collect();
        let images = match &self.encoder {
            Some(_) => "pictures, by the vectors of an encoder".to_owned(),
            None => format!("images of {channels} x {height} x {width} values"),
        };
        let _ = writeln!(text, "- Task: classification of {images}");
        let _ = writeln!(text, "- Classes: {}", classes.join(", "));
        if let Some(encoder) = &self.encoder {
            let _ = writeln!(text, "- Encoder: {}", escaped(&encoder.in_words()));
        }
        let _ = writeln!(text, "- Labels: {}", self.origin());
        for ModelFile { file, sha256 } in &self.models {
            let _ = writeln!(text, "- File: `{}`, SHA-256 `{}`", code(file), code(sha256));
        }
        text
    }

    fn origin(&self) -> String {
        match &self.source {
            CardSource::Run { experiment, run, row } => {
                format!("row {} of run {} of experiment {}", escaped(row), escaped(run), escaped(experiment))
            }
            CardSource::Round { id, name, .. } => {
                format!("round {}, id `{}`, as the student states", escaped(name), code(id))
            }
            CardSource::Labels => "a file whose origin was not stated".to_owned(),
        }
    }

    fn uses(&self) -> &'static str {
        match (self.publishable, self.simulation) {
            (_, true) => "For experiments only: the labels are not protected.",
            (Some(true), _) => "The claim below covers the labels for any votes, so the model may be published.",
            (Some(false), _) => "**Do not publish this model: no finite data-independent claim covers its labels.**",
            (None, _) => {
                "It is unknown whether the model may be published, because the origin of its labels was not stated."
            }
        }
    }

    fn privacy(&self) -> String {
        let mut text = String::new();
        if self.encoder.is_some() {
            let _ = writeln!(text, "- {FROM_PUBLIC_DATA}");
        }
        if let Some(Participants { teachers, counted, names }) = &self.participants {
            let least = if matches!(self.source, CardSource::Round { sum: None, .. }) { "at least " } else { "" };
            let _ = writeln!(text, "- Participants: {least}{counted} of {teachers} teachers counted");
            if !names.is_empty() {
                let names: Vec<String> = names.iter().map(|name| escaped(name)).collect();
                let _ = writeln!(text, "- Names: {}", names.join(", "));
            }
        }
        let Some(privacy) = &self.privacy else {
            return text + "- No claim: the labels have no noise, or their origin was not stated.\n";
        };
        let _ = writeln!(text, "- Flavor: {}", privacy.dp_flavor);
        let _ = writeln!(text, "- Privacy unit: {}", privacy.privacy_unit);
        let _ = writeln!(text, "- Deployment model: {}", privacy.deployment_model);
        let _ = writeln!(text, "- Mechanism: {}", escaped(&privacy.mechanism));
        text.push_str(&claim_line("Data-independent", privacy.data_independent.as_ref()));
        if let Some(party) = &privacy.party {
            text.push_str(&claim_line("Data-independent, all votes of one party", party.data_independent.as_ref()));
            let _ = writeln!(text, "- Privacy unit of that claim: {}", escaped(&party.privacy_unit));
            let _ = writeln!(text, "- One person: {}", escaped(&party.one_person));
        }
        match &privacy.data_dependent {
            None => text.push_str("- Data-dependent: not stated, because it depends on the secret votes.\n"),
            account => text.push_str(&claim_line("Data-dependent", account.as_ref())),
        }
        let _ = writeln!(text, "- Unprotected quantities: {}", privacy.unprotected_quantities);
        let _ = writeln!(text, "- Post-processing: {}", privacy.post_processing);
        text
    }

    fn limits(&self) -> String {
        let mut text = String::new();
        if self.privacy.is_some() {
            text.push_str(
                "The epsilon protects the votes of a teacher in these queries. It does not protect the public images, and it says \
                 nothing about other rounds of the same teachers: their costs add up. ",
            );
        }
        text.push_str(
            "The model may be wrong more often for classes with few labels. It was not tested for medical or other decisions about \
             people.",
        );
        if matches!(self.source, CardSource::Run { .. }) {
            text.push_str(
                " The files of a run have no signature: `speed verify` shows that they fit together, and not who wrote them.",
            );
        }
        text
    }

    fn start(&self, name: &str) -> String {
        let file = self.models.first().map_or("FILE", |model| &model.file);
        let encoder = if self.encoder.is_some() { " --encoder ENCODER" } else { "" };
        format!("    speed predict --model {}{encoder} IMAGES\n    speed verify {}\n", code(file), code(name))
    }

    fn training_details(&self) -> String {
        let TrainingData { method, pool_images, queries, labelled } = &self.training;
        format!(
            "- Method: {}\n- Public images: {pool_images}, of which {queries} were queries and {labelled} have a label\n",
            escaped(method)
        )
    }

    fn evaluation(&self) -> String {
        let Some(result) = &self.evaluation else {
            return "The accuracy is unknown: there were no labelled test images.\n".to_owned();
        };
        let table = result.table().for_markdown().to_markdown();
        let words: String = result.in_words().iter().map(|line| format!("- {}\n", escaped(line))).collect();
        format!("Results of the first file, with Wilson intervals at 95 %:\n\n{table}\n{words}")
    }

    fn specifications(&self) -> String {
        let Versions { speed, burn, tfhe, system } = &self.versions;
        format!("speed {}, burn {}, tfhe {}, {}\n", escaped(speed), escaped(burn), escaped(tfhe), escaped(system))
    }
}

fn claim_line(name: &str, account: Option<&Account>) -> String {
    let Some(Account { epsilon, delta, claim, .. }) = account else {
        return format!("- {name}: no finite epsilon is known.\n");
    };
    let warning = without_protection(round_up(*epsilon, 2)).map_or_else(String::new, |words| format!(" {words}"));
    format!("- {name}: epsilon {} at delta {delta:e}. {}{warning}\n", epsilon_text(*epsilon), escaped(claim))
}

/// Returns untrusted text for a line of Markdown.
fn escaped(text: &str) -> String {
    markdown(text).replace('|', "\\|")
}

/// Returns untrusted text for code in a line of Markdown.
fn code(text: &str) -> String {
    printable(text).replace('`', "'")
}

fn checksum(card: &Value) -> String {
    Digest::of(card.to_string().as_bytes()).to_hex()
}

fn compare(place: &str, expected: &Value, found: &Value) -> Result<(), ExperimentError> {
    let below = |key: &str| if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") };
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            if let Some(key) = expected.keys().find(|key| !found.contains_key(*key)) {
                return Err(other_field(&below(key), &expected[key].to_string(), "nothing"));
            }
            if let Some(key) = found.keys().find(|key| !expected.contains_key(*key)) {
                return Err(other_field(&below(key), "nothing", &found[key].to_string()));
            }
            expected.iter().try_for_each(|(key, expected)| compare(&below(key), expected, &found[key]))
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            let mut pairs = expected.iter().zip(found).enumerate();
            pairs.try_for_each(|(index, (expected, found))| compare(&below(&index.to_string()), expected, found))
        }
        (Value::Number(a), Value::Number(b)) if is_close(a.as_f64(), b.as_f64()) => Ok(()),
        _ if expected == found => Ok(()),
        _ => Err(other_field(place, &expected.to_string(), &found.to_string())),
    }
}

fn is_close(a: Option<f64>, b: Option<f64>) -> bool {
    matches!((a, b), (Some(a), Some(b)) if (a - b).abs() <= 1e-9 * a.abs())
}

#[cfg(test)]
mod tests {
    use speed_nn::onnx::EncoderPreparation;

    use super::*;

    fn card() -> ModelCard {
        ModelCard {
            format: CARD_FORMAT,
            simulation: false,
            publishable: Some(true),
            models: vec![ModelFile { file: "student-0.safetensors".into(), sha256: "00".repeat(32) }],
            task: Task {
                kind: "image-classification".into(),
                classes: vec!["benign".into(), "<b>|x".into()],
                shape: [1, 24, 24],
                resizes: true,
            },
            training: TrainingData { method: "pseudo-labels".into(), pool_images: 400, queries: 40, labelled: 39 },
            encoder: None,
            source: CardSource::Round { id: "ab".into(), name: "![i](p.png)".into(), sum: None },
            participants: Some(Participants { teachers: 20, counted: 18, names: vec!["St Mary's".into()] }),
            privacy: Some(Privacy::of_votes("binomial coins=62".into(), NoiseSource::Teachers, None)),
            evaluation: Some(Classification::new(["benign", "<b>|x"], [(0, 0), (1, 0)]).expect("a classification")),
            versions: Versions { speed: "1".into(), burn: "2".into(), tfhe: "3".into(), system: "linux".into() },
        }
    }

    #[test]
    fn cards_return_from_json_and_every_change_is_found() {
        let card = card();
        let json = card.to_json();
        assert_eq!(ModelCard::from_json(json.as_bytes()), Ok(card.clone()));
        for (from, to) in [("\"counted\": 18", "\"counted\": 17"), ("binomial coins=62", "binomial coins=99")] {
            let changed = json.replace(from, to);
            assert_ne!(changed, json);
            assert_eq!(ModelCard::from_json(changed.as_bytes()), Err(was_changed()));
        }
        // A key that occurs twice, with a correct checksum.
        let twice = json.replacen('{', "{\n  \"simulation\": false,", 1);
        assert_eq!(ModelCard::from_json(twice.as_bytes()), Err(was_changed()));
        let other = json.replace("\"format\": 1", "\"format\": 2");
        let error = ModelCard::from_json(other.as_bytes()).expect_err("another format").to_string();
        assert!(error.starts_with("expected a card of format 1, found 2: "), "{error}");
        for text in ["", "{}", "[]", "{\"sha256\": 1}"] {
            let error = ModelCard::from_json(text.as_bytes()).expect_err("not a card");
            assert!(error == was_changed() || error.to_string().starts_with("expected the card of a model"), "{error}");
        }
    }

    #[test]
    fn a_card_of_other_files_differs_in_a_named_field() {
        let (expected, mut found) = (card(), card());
        assert_eq!(found.differing_field(&expected), Ok(()));
        found.participants = Some(Participants { teachers: 20, counted: 20, names: vec!["St Mary's".into()] });
        let fault = found.differing_field(&expected).expect_err("another number");
        assert_eq!(fault.to_string(), "participants.counted: expected 18, found 20");
        found = card();
        found.privacy = None;
        let fault = found.differing_field(&expected).expect_err("no claim");
        assert!(fault.to_string().starts_with("privacy: expected {"), "{fault}");
    }

    #[test]
    fn a_card_of_parties_has_both_claims_and_a_missing_or_changed_one_is_named() {
        assert_eq!(PartyPrivacy::of_votes(1, None), None);
        let with = |teachers| {
            let mut card = card();
            card.privacy.as_mut().expect("noise").party = PartyPrivacy::of_votes(teachers, None);
            card
        };
        let expected = with(25);
        assert_eq!(ModelCard::from_json(expected.to_json().as_bytes()), Ok(expected.clone()));
        let text = expected.to_markdown("model-card.json");
        for words in [
            "- Data-independent: no finite",
            "- Data-independent, all votes of one party: no finite",
            "all votes of the 25 teachers of the largest party",
            "if every party gave all records of a person to the same teacher",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        let differs = |found: &ModelCard, expected: &ModelCard| {
            found.differing_field(expected).expect_err("another claim").to_string()
        };
        assert!(differs(&card(), &expected).starts_with("privacy.party: expected {"));
        assert!(differs(&card(), &expected).ends_with("found nothing"));
        assert!(differs(&expected, &card()).starts_with("privacy.party: expected nothing, found {"));
        assert!(differs(&with(24), &expected).starts_with("privacy.party.privacy_unit: expected"));
        // A card without parties has no such key, and null is not the same.
        let json = card().to_json();
        assert!(!json.contains("party"), "{json}");
        let mut null = serde_json::to_value(card()).expect("JSON");
        null["privacy"]["party"] = Value::Null;
        null[CHECKSUM] = checksum(&null).into();
        assert_eq!(ModelCard::from_json(format!("{null:#}\n").as_bytes()), Err(was_changed()));
    }

    #[test]
    fn a_card_names_the_encoder_and_the_condition_on_it() {
        let preparation = EncoderPreparation {
            size: [160, 160],
            mean: vec![0.5; 3],
            deviation: vec![0.5; 3],
            pool: None,
            mirror: false,
        };
        let encoder = EncoderFacts { file: "a|b.onnx".into(), digest: "cd".repeat(32), width: 1280, preparation };
        let with = ModelCard { encoder: Some(encoder), ..card() };
        assert_eq!(ModelCard::from_json(with.to_json().as_bytes()), Ok(with.clone()));
        let text = with.to_markdown("model-card.json");
        let line = format!("- Encoder: a\\|b.onnx, SHA-256 {}: pictures of 160 x 160 pixels", "cd".repeat(32));
        assert!(text.contains(&line) && text.contains(FROM_PUBLIC_DATA), "{text}");
        assert!(!card().to_json().contains("encoder") && !card().to_markdown("model-card.json").contains("ncoder"));
        let fault = card().differing_field(&with).expect_err("no encoder").to_string();
        assert!(fault.starts_with("encoder: expected {"), "{fault}");
    }

    #[test]
    fn the_front_matter_has_the_accuracy_where_it_may_be_shown() {
        let of = |publishable, simulation, file: &str| {
            let models = vec![ModelFile { file: file.into(), sha256: "00".repeat(32) }];
            let text = ModelCard { publishable, simulation, models, ..card() }.to_markdown("model-card.json");
            let text = text.strip_prefix("---\n").expect("a front matter");
            text.split_once("\n---\n\n").expect("its end").0.to_owned()
        };
        let text = of(Some(true), false, "a\"b: c.safetensors");
        let facts =
            "license: unknown\npipeline_tag: image-classification\nlibrary_name: onnx\ntags:\n- differential-privacy\n";
        assert!(text.starts_with(facts) && !text.contains("simulation"), "{text}");
        assert!(
            text.contains("model-index:\n- name: \"a\\\"b: c\"\n")
                && text.ends_with("- type: accuracy\n      value: 0.5"),
            "{text}"
        );
        assert!(!of(Some(false), false, "a").contains("model-index"));
        let simulated = of(Some(false), true, "a");
        assert!(simulated.contains("- simulation\n") && simulated.contains("value: 0.5"), "{simulated}");
        let unknown = ModelCard { evaluation: None, ..card() }.to_markdown("model-card.json");
        assert!(!unknown.contains("model-index"), "{unknown}");
    }

    #[test]
    fn markdown_has_the_sections_and_escapes_names() {
        let text = card().to_markdown("model-card.json");
        for title in ["Model Details", "Uses", "Privacy", "Training Details", "Evaluation", "Technical Specifications"]
        {
            assert!(text.contains(&format!("\n## {title}\n")), "{title}");
        }
        assert!(text.contains("&lt;b&gt;\\|x") && text.contains("at least 18 of 20 teachers counted"), "{text}");
        assert!(text.contains("!\\[i\\](p.png)") && !text.contains("![i]"), "{text}");
        assert!(!text.contains("<b>"));
        assert!(text.contains("\n- balanced accuracy, the mean over classes: 50.00 %\n"), "{text}");
        assert!(text.contains("\n- WARNING: none of the 1 images of &lt;b&gt;\\|x is classified right"), "{text}");
        assert!(text.contains("no finite epsilon is known"));
    }
}
