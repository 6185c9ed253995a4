//! One step of a labelling: the checks of a row's queries, or their answers. Both are paid for and resumed
//! in the same way, query by query.

use std::cell::OnceCell;

use serde_json::{Value, json};

use super::answers::{self, Answers};
use super::argmax::{self, LabellingOutcome, Method};
use super::keys::RunKeys;
use super::noise::NoisyTeachers;
use super::question::RowQuestion;
use crate::config::AggregationKind;
use crate::error::ExperimentError;
use crate::ledger::Payment;
use crate::stages::context::Context;
use crate::stages::truth::Truth;
use crate::store::{Identity, StageFolder, StageState, unit_meta};

pub(super) struct Asking<'a> {
    pub(super) name: &'a str,
    pub(super) question: RowQuestion<'a>,
    keys: &'a RunKeys,
    method: OnceCell<Method<'a>>,
}

impl<'a> Asking<'a> {
    pub(super) fn new(name: &'a str, question: RowQuestion<'a>, keys: &'a RunKeys) -> Self {
        Self { name, question, keys, method: OnceCell::new() }
    }

    pub(super) fn noisy_teachers(&self) -> Result<usize, ExperimentError> {
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

    pub(super) fn is_encrypted(&self) -> bool {
        self.question.row.aggregation == AggregationKind::Encrypted
    }

    /// Returns whether every query has a saved answer, for example from shards.
    fn has_all_answers(&self, context: &Context<'_>, identity: &Identity) -> bool {
        let remains = context.store.remains_of(&identity.name);
        let is_there = |query| remains.folder().join(unit_meta(&answers::unit(query))).exists();
        self.question.len() == 0 || remains.is_of(identity.fingerprint) && (0..self.question.len()).all(is_there)
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
            noise: self.question.noise,
            answers,
            queries: self.question.len(),
            classes: self.question.votes.shape().classes(),
        }
    }

    pub(super) fn inputs(&self, context: &Context<'_>) -> Result<Value, ExperimentError> {
        let (config, RowQuestion { row, noise, asked, votes_hash, queries, truth, .. }) =
            (context.config, self.question);
        Ok(json!({
            "votes": votes_hash,
            "queries": queries.images(),
            "groups": queries.groups(),
            "parties": config.ensemble.parties,
            "asked": asked,
            "aggregation": row.aggregation,
            "circuit": row.circuit,
            "noisy_teachers": self.noisy_teachers()?,
            "noise": noise.written(config.noise.source),
            "seed": config.seed,
            "pool": truth.and_then(Truth::digest),
        }))
    }

    /// Copies outcomes that are done, and pays for all others before they are given.
    pub(super) fn open(&self, context: &Context<'_>, identity: &Identity) -> Result<StageState, ExperimentError> {
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
            StageState::Outstanding(folder) => Err(ExperimentError::taken_away(folder.path())),
        }
    }

    /// Returns the outcomes of all asked queries, and computes those that are missing.
    pub(super) fn outcomes(
        &self,
        context: &Context<'_>,
        folder: &mut StageFolder,
    ) -> Result<LabellingOutcome, ExperimentError> {
        let noise = NoisyTeachers { count: self.noisy_teachers()?, key: folder.noise_key().cloned() };
        if !self.is_encrypted() {
            return argmax::in_clear(context, &self.question, &noise);
        }
        let all: Vec<usize> = (0..self.question.len()).collect();
        let answers = Answers::open(context, self.question, folder, &noise, &all, || self.method(context))?;
        let here = answers.complete(&all)?;
        let labelled = answers.labelled()?;
        folder.resumed(all.len() - here);
        Ok(labelled)
    }

    pub(super) fn clean_up(&self, context: &Context<'_>, identity: &Identity) -> Result<(), ExperimentError> {
        self.payment(context, identity).forget_noise()?;
        if self.is_encrypted() {
            // The outcomes contain the results of these units.
            context.store.remains_of(self.name).remove_all(answers::UNIT);
        }
        Ok(())
    }

    /// Returns the number of encrypted queries. Clear-text queries are not units, because they take only a moment in the run
    /// that collects the results.
    pub(super) fn units(&self) -> usize {
        if self.is_encrypted() { self.question.len() } else { 0 }
    }

    /// Ensures that these queries are answered, and returns how many this process answered.
    pub(super) fn answer(
        &self,
        context: &Context<'_>,
        folder: &StageFolder,
        units: &[usize],
    ) -> Result<usize, ExperimentError> {
        let noise = NoisyTeachers { count: self.noisy_teachers()?, key: folder.noise_key().cloned() };
        let answers = Answers::open(context, self.question, folder, &noise, units, || self.method(context))?;
        let here = answers.complete(units)?;
        let did = if self.question.noise.is_check { "checked" } else { "answered" };
        context.progress.end(&format!("{}: {} queries {did}", self.question.row.name, units.len()));
        Ok(here)
    }
}
