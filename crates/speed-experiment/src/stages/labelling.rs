//! The labelling of a row's queries: adds noise shares, and computes the plurality, the clear-text argmax or the
//! homomorphic argmax.

mod answers;
mod argmax;
mod keys;
mod noise;
mod question;
mod record;

pub(crate) use answers::unit as query_unit;
pub(crate) use keys::Keys;
pub(crate) use question::Question;
pub(crate) use record::{LabellingTimes, RowLabels};

use std::cell::OnceCell;

use serde_json::{Value, json};

use self::answers::Answers;
use self::argmax::{Labelled, Method};
use super::context::Context;
use super::divided::Divided;
use super::names::StageName;
use super::stage::Stage;
use super::truth::Truth;
use crate::config::AggregationKind;
use crate::error::{ExperimentError, ResultsFault};
use crate::ledger::Payment;
use crate::store::{FinishedStage, Identity, StageFolder, StageState, unit_meta};

/// The kind of these stages. It does not contain the row's name, because answers do not depend on it.
const KIND: &str = "aggregate";

/// The file of the labels, one line per query.
const LABELS: &str = "labels.csv";
/// The file of the labels and their accuracy.
const RECORD: &str = "aggregate.json";
/// The file of the times of the homomorphic part.
const TIMES: &str = "times.json";

/// The labelling of a row's queries.
pub(crate) struct LabellingStage<'a> {
    name: &'a StageName,
    question: Question<'a>,
    keys: &'a Keys,
    method: OnceCell<Method<'a>>,
}

impl<'a> LabellingStage<'a> {
    pub(crate) fn new(name: &'a StageName, question: Question<'a>, keys: &'a Keys) -> Self {
        Self { name, question, keys, method: OnceCell::new() }
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
    fn say(&self, context: &Context<'_>, labelled: &Labelled) {
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
        let (config, Question { row, votes_hash, queries, truth, .. }) = (context.config, self.question);
        Ok(json!({
            "votes": votes_hash,
            "queries": queries,
            "aggregation": row.aggregation,
            "circuit": row.circuit,
            "noisy_teachers": self.noisy_teachers()?,
            "noise": row.noise.written(config.noise.randomness),
            "seed": config.seed,
            "pool": truth.and_then(Truth::digest),
        }))
    }

    /// Copies answers that are done, and pays for all others before they are given.
    fn open(&self, context: &Context<'_>, identity: &Identity) -> Result<StageState, ExperimentError> {
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
        let Question { row, queries, truth, .. } = self.question;
        let noise = noise::NoisyTeachers { count: self.noisy_teachers()?, key: folder.noise_key().cloned() };
        let labelled = match self.is_encrypted() {
            true => {
                let all: Vec<usize> = (0..queries.len()).collect();
                let answers = Answers::of(context, self.question, folder, &noise, &all, || self.method(context))?;
                let here = answers.share(&all)?;
                let labelled = answers.labelled()?;
                folder.resumed(all.len() - here);
                labelled
            }
            false => argmax::in_clear(context, &self.question, &noise)?,
        };
        self.say(context, &labelled);
        let times = LabellingTimes::new(&labelled, context.threads);
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
        let Question { queries, truth, .. } = self.question;
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
        let answers = Answers::of(context, self.question, folder, &noise, units, || self.method(context))?;
        let here = answers.share(units)?;
        context.progress.end(&format!("{}: {} queries answered", self.question.row.name, units.len()));
        Ok(here)
    }
}
