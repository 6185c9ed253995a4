//! The labelling of a row's queries: adds noise shares, and computes the plurality, the clear-text argmax or the
//! homomorphic argmax.

mod answers;
mod argmax;
mod keys;
mod noise;
mod question;
mod record;

pub(super) use keys::RunKeys;
pub(crate) use record::RowLabels;

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use speed_report::LabellingTimes;

use self::answers::Answers;
use self::argmax::{LabellingOutcome, Method};
use self::question::RowQuestion;
use self::record::RECORD;
use super::complete::complete;
use super::context::Context;
use super::divided::Divided;
use super::kind::{Kind, Node};
use super::outputs::Outputs;
use super::question_round::QuestionRound;
use super::shard_units::ShardUnits;
use super::stage::{Stage, StageName};
use super::truth::Truth;
use super::units::StageUnits;
use crate::config::{AggregationKind, Config, RowConfig};
use crate::cost::{Meter, StageCost, labelling_cost};
use crate::error::{ExperimentError, ResultsFault};
use crate::ledger::Payment;
use crate::store::{FinishedStage, Identity, StageFolder, StageState, unit_meta};

/// The name of the kind in directories and fingerprints. Fingerprints do not contain the row's name, because answers do
/// not depend on it.
pub(super) const KIND: &str = "aggregate";
/// The name of the kind of the second questions in directories.
pub(super) const AGAIN: &str = "aggregate-again";

/// The file of the labels, one line per query.
const LABELS: &str = "labels.csv";
/// The file of the times of the homomorphic part.
const TIMES: &str = "times.json";

/// The labels of all rows with their own labels, by the rows' places in the config, and times of the homomorphic part.
#[derive(Default)]
pub(crate) struct RowLabellings(pub(crate) BTreeMap<usize, (RowLabels, Option<LabellingTimes>)>);

/// The labels of the rows' second questions, by the rows' places in the config, and times of the homomorphic part.
#[derive(Default)]
pub(crate) struct LabellingsAgain(pub(crate) BTreeMap<usize, (RowLabels, Option<LabellingTimes>)>);

/// The labelling of every row's queries in a round of questions.
pub(super) struct Labelling(pub(super) QuestionRound);

impl Kind for Labelling {
    fn name(&self) -> &'static str {
        self.0.name(KIND, AGAIN)
    }

    fn alias(&self) -> Option<&'static str> {
        (self.0 == QuestionRound::First).then_some("labelling")
    }

    fn is_per_row(&self) -> bool {
        true
    }

    fn is_in(&self, config: &Config, _: Option<usize>) -> bool {
        self.0.is_in(config)
    }

    fn unit_name(&self) -> Option<&'static str> {
        (self.0 == QuestionRound::First).then_some("queries on ciphertexts")
    }

    /// Returns 0 if there is a second round, because shards do not know the number of its questions.
    fn units(&self, config: &Config, row: Option<usize>) -> usize {
        if config.queries.again.is_some() { 0 } else { self.on_ciphertexts(config, row) }
    }

    fn has_serial_units(&self) -> bool {
        false
    }

    fn charged_queries(&self, config: &Config, row: &RowConfig) -> usize {
        let first = row.query_count(config.queries.count);
        match self.0 {
            QuestionRound::First => first,
            QuestionRound::Again => config.queries.most(row) - first,
        }
    }

    fn complete(&self, context: &Context<'_>, node: &Node, outputs: &mut Outputs) -> Result<(), ExperimentError> {
        let Some(row) = node.row else { return Ok(()) };
        let labelled = complete(context, &LabellingStage::of_row(context, node, (row, self.0), outputs))?;
        match self.0 {
            QuestionRound::First => outputs.get_mut::<RowLabellings>().0.insert(row, labelled),
            QuestionRound::Again => outputs.get_mut::<LabellingsAgain>().0.insert(row, labelled),
        };
        Ok(())
    }

    fn share(
        &self,
        context: &Context<'_>,
        node: &Node,
        outputs: &mut Outputs,
        shard: &mut ShardUnits,
    ) -> Result<(), ExperimentError> {
        let Some(row) = node.row else { return Ok(()) };
        shard.divide(context, &LabellingStage::of_row(context, node, (row, self.0), outputs))
    }

    fn count_units(&self, run: &Path, config: &Config, node: &Node, _: &[Node]) -> Option<StageUnits> {
        let units = if self.0 == QuestionRound::First { self.on_ciphertexts(config, node.row) } else { 0 };
        (units > 0).then(|| StageUnits::in_stage(run, &node.name, units, answers::unit))
    }

    fn cost(&self, config: &Config, _: &Meter) -> Result<Vec<StageCost>, ExperimentError> {
        let rows = (0..config.rows.len()).filter(|&row| config.labels_of(row) == row);
        let queries = rows.map(|row| (config.rows[row].circuit, self.on_ciphertexts(config, Some(row))));
        let queries: Vec<_> = queries.filter(|(_, units)| *units > 0).collect();
        Ok(labelling_cost(self.name(), &queries))
    }
}

impl Labelling {
    /// Returns the largest number of queries of a row that are labelled on ciphertexts.
    fn on_ciphertexts(&self, config: &Config, row: Option<usize>) -> usize {
        let row = row.map(|row| &config.rows[row]).filter(|row| row.aggregation == AggregationKind::Encrypted);
        row.map_or(0, |row| self.charged_queries(config, row))
    }
}

/// The labelling of a row's queries.
struct LabellingStage<'a> {
    name: &'a StageName,
    question: RowQuestion<'a>,
    keys: &'a RunKeys,
    method: OnceCell<Method<'a>>,
}

impl<'a> LabellingStage<'a> {
    /// Creates the labelling of a row in a round of questions. All rows use the same keys.
    fn of_row(
        context: &Context<'a>,
        node: &'a Node,
        (row, round): (usize, QuestionRound),
        outputs: &'a mut Outputs,
    ) -> Self {
        outputs.get_mut::<RunKeys>();
        let question = RowQuestion::of_row(context, (row, round), outputs);
        Self { name: &node.name, question, keys: outputs.get(), method: OnceCell::new() }
    }

    fn noisy_teachers(&self) -> Result<usize, ExperimentError> {
        Ok(self.question.row.honest_ratio.noisy_teachers(self.question.votes.shape().teachers())?)
    }

    /// Returns the method with its keys, which the first call generates.
    fn method(&self, context: &Context<'_>) -> Result<&Method<'a>, ExperimentError> {
        if let Some(method) = self.method.get() {
            return Ok(method);
        }
        let method = Method::open(context, self.keys, &self.question)?;
        Ok(self.method.get_or_init(|| method))
    }

    fn is_encrypted(&self) -> bool {
        self.question.row.aggregation == AggregationKind::Encrypted
    }

    /// Returns whether every query has a saved answer, for example from shards.
    fn has_all_answers(&self, context: &Context<'_>, identity: &Identity) -> bool {
        let remains = context.store.remains_of(&identity.name);
        let is_there = |query| remains.folder().join(unit_meta(&answers::unit(query))).exists();
        remains.is_of(identity.fingerprint) && (0..self.question.queries.len()).all(is_there)
    }

    /// Reports the number of labels.
    fn report(&self, context: &Context<'_>, labelled: &LabellingOutcome) {
        let (row, queries, given) =
            (&self.question.row.name, labelled.labels.len(), labelled.labels.iter().flatten().count());
        context.progress.end(&match given < queries {
            true => format!("{row}: {given} labels of {queries} queries"),
            false => format!("{row}: {given} labels"),
        });
    }

    fn payment<'p>(&self, context: &Context<'p>, answers: &'p Identity) -> Payment<'p>
    where
        'a: 'p,
    {
        Payment {
            config: context.config,
            store: context.store,
            progress: context.progress,
            row: self.question.row,
            answers,
            queries: self.question.queries.len(),
            classes: self.question.votes.shape().classes(),
            label_end: self.question.round.name("", ", second questions"),
        }
    }
}

impl Stage for LabellingStage<'_> {
    type Output = (RowLabels, Option<LabellingTimes>);

    fn name(&self) -> &StageName {
        self.name
    }

    fn kind(&self) -> &str {
        KIND
    }

    fn code_version(&self) -> u32 {
        3
    }

    // Version 2 gave the same answers, but its fingerprint contained the row's name.
    fn earlier_version(&self) -> Option<u32> {
        Some(2)
    }

    fn side_files(&self) -> Vec<&'static str> {
        if self.is_encrypted() { vec![TIMES] } else { Vec::new() }
    }

    fn inputs(&self, context: &Context<'_>) -> Result<Value, ExperimentError> {
        let (config, RowQuestion { row, votes_hash, queries, truth, .. }) = (context.config, self.question);
        let mut inputs = json!({
            "votes": votes_hash,
            "queries": queries.images(),
            "aggregation": row.aggregation,
            "circuit": row.circuit,
            "noisy_teachers": self.noisy_teachers()?,
            "noise": row.noise.written(config.noise.randomness),
            "seed": config.seed,
            "pool": truth.and_then(Truth::digest),
        });
        // Absent for single images, so that the fingerprints of earlier stages do not change.
        if let Some(groups) = queries.groups() {
            inputs["groups"] = json!(groups);
        }
        // The noise of a simulation depends on the round.
        if self.question.round == QuestionRound::Again {
            inputs["round"] = json!(2);
        }
        Ok(inputs)
    }

    /// Copies answers that are done, and pays for all others before they are given.
    fn open(&self, context: &Context<'_>, identity: &Identity) -> Result<StageState, ExperimentError> {
        // A row without second questions pays nothing; its record says that there are none.
        if self.question.queries.len() == 0 {
            return context.store.stage(identity);
        }
        let payment = self.payment(context, identity);
        let is_done = || context.store.done(identity).is_some();
        if payment.is_underway()? || !is_done() {
            // Failures that do not depend on a query happen before the charge, and every answer comes after it. So an
            // answer may be charged without being given, but is never given without being charged.
            if self.is_encrypted() && !self.has_all_answers(context, identity) {
                self.method(context)?;
            }
            if let Some(folder) = payment.settle(is_done)? {
                return Ok(StageState::Outstanding(folder));
            }
        }
        match context.store.stage(identity)? {
            StageState::Done(done) => Ok(StageState::Done(done)),
            StageState::Outstanding(folder) => {
                let (path, fault) = (folder.path().to_path_buf(), ResultsFault::TakenAway);
                Err(ExperimentError::Results { path, fault })
            }
        }
    }

    fn run(&self, context: &Context<'_>, folder: &mut StageFolder) -> Result<Vec<String>, ExperimentError> {
        let RowQuestion { row, queries, truth, .. } = self.question;
        let noise = noise::NoisyTeachers { count: self.noisy_teachers()?, key: folder.noise_key().cloned() };
        let labelled = match self.is_encrypted() {
            _ if queries.len() == 0 => LabellingOutcome::none(),
            true => {
                let all: Vec<usize> = (0..queries.len()).collect();
                let answers = Answers::open(context, self.question, folder, &noise, &all, || self.method(context))?;
                let here = answers.share(&all)?;
                let labelled = answers.labelled()?;
                folder.resumed(all.len() - here);
                labelled
            }
            false => argmax::in_clear(context, &self.question, &noise)?,
        };
        self.report(context, &labelled);
        let times = record::times(&labelled, context.threads);
        let of_images = truth.filter(|truth| truth.digest().is_some());
        let accuracy = of_images.and_then(|truth| record::share_right(&labelled.labels, queries, truth));
        let labels = RowLabels::new(row, labelled, noise.count, accuracy);
        folder.write(LABELS, labels.to_csv(queries).as_bytes())?;
        folder.write_json(RECORD, &labels)?;
        if self.is_encrypted() {
            folder.write_checked_json(TIMES, &times)?;
        }
        Ok(vec![LABELS.into(), RECORD.into()])
    }

    /// Removes the noise key, because the answers are given.
    fn clean_up(&self, context: &Context<'_>, identity: &Identity) -> Result<(), ExperimentError> {
        self.payment(context, identity).forget_noise()?;
        if self.is_encrypted() {
            // The labels contain the results of these units.
            context.store.remains_of(self.name).remove_all(answers::UNIT);
        }
        Ok(())
    }

    fn load(&self, _: &Context<'_>, done: &FinishedStage) -> Result<Self::Output, ExperimentError> {
        let times = match self.question.row.aggregation {
            AggregationKind::Encrypted => Some(done.read_json(TIMES)?),
            AggregationKind::NonPrivate | AggregationKind::Trusted => None,
        };
        let RowQuestion { queries, truth, .. } = self.question;
        let mut labels: RowLabels = done.read_json(RECORD)?;
        if let Some(truth) = truth.filter(|truth| truth.digest().is_none()) {
            labels.label_accuracy = record::share_right(&labels.labels, queries, truth);
        }
        Ok((labels, times))
    }
}

impl Divided for LabellingStage<'_> {
    /// Returns the number of encrypted queries. Clear-text queries are not divided, because they take only a moment in
    /// the run that collects the results.
    fn units(&self, _: &Context<'_>) -> usize {
        if self.is_encrypted() { self.question.queries.len() } else { 0 }
    }

    fn files(&self, query: usize) -> Vec<String> {
        vec![unit_meta(&answers::unit(query))]
    }

    fn share(&self, context: &Context<'_>, folder: &StageFolder, units: &[usize]) -> Result<usize, ExperimentError> {
        let noise = noise::NoisyTeachers { count: self.noisy_teachers()?, key: folder.noise_key().cloned() };
        let answers = Answers::open(context, self.question, folder, &noise, units, || self.method(context))?;
        let here = answers.share(units)?;
        context.progress.end(&format!("{}: {} queries answered", self.question.row.name, units.len()));
        Ok(here)
    }
}
