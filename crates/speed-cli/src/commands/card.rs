//! The card of a student that learned from the labels of a round.

use std::path::{Path, PathBuf};

use speed_accountant::Delta;
use speed_core::NoisePlacement;
use speed_experiment::model::Description;
use speed_experiment::report::{
    CARD_FORMAT, CardSource, MAX_CARD_DELTA, ModelCard, ModelFile, NoiseSource, Participants, PartyPrivacy, Privacy,
    TrainingData, Versions, covers_labels,
};
use speed_experiment::training::{RoundOrigin, StudentReport};
use speed_experiment::{current_environment, task};
use speed_round::student::read_result;
use speed_round::{Party, RoundAccounts, RoundFile};

use super::{Failure, usage};

/// The facts about a round that a card states.
pub(super) struct RoundFacts {
    pub(super) origin: RoundOrigin,
    pub(super) source: CardSource,
    pub(super) participants: Participants,
    pub(super) privacy: Privacy,
}

impl RoundFacts {
    /// Reads the facts from the file of a round and, if it is given, its result.
    pub(super) fn read(round: &Path, result: Option<&Path>, delta: Delta) -> Result<Self, Failure> {
        if delta.get() > MAX_CARD_DELTA {
            return Err(usage("delta", format!("expected at most {MAX_CARD_DELTA:e}, found {:e}", delta.get())));
        }
        let file = RoundFile::read(round)?;
        let result = result.map(|path| read_result(path, &file)).transpose()?;
        let (round, shape) = (file.round(), file.round().shape());
        // Without the result, at least this many teachers are counted, and fewer cost more.
        let counted =
            result.as_ref().map_or(round.min_teachers(), |result| round.teachers_counted(result.list().statuses()));
        let RoundAccounts { one_teacher, party } = RoundAccounts::new(&file, counted, delta)?;
        let account = one_teacher.ok();
        let party = party.and_then(|(teachers, account)| PartyPrivacy::of_votes(teachers, account.ok()));
        let noise_source = match round.placement() {
            NoisePlacement::Distributed => NoiseSource::Teachers,
            NoisePlacement::Central => NoiseSource::Server,
        };
        let names = file.roster().teachers().iter().map(Party::name).map(str::to_owned).collect();
        Ok(Self {
            origin: RoundOrigin {
                id: file.id().to_hex(),
                queries: shape.queries(),
                classes: file.classes().clone(),
                simulation: round.is_simulation(),
                query_list: round.query_list(),
                // Only the result shows that the round was held.
                publishable: result.is_some().then(|| !round.is_simulation() && covers_labels(account.as_ref())),
            },
            source: CardSource::Round {
                id: file.id().to_hex(),
                name: file.name().to_owned(),
                sum: result.map(|result| result.sum().to_hex()),
            },
            participants: Participants { teachers: shape.teachers(), counted, names },
            privacy: Privacy {
                party,
                ..Privacy::of_votes(file.noise().mechanism().identifier(), noise_source, account)
            },
        })
    }
}

/// Returns the paths of the card in JSON and in Markdown of the model at `model`.
pub(super) fn card_paths(model: &Path) -> [PathBuf; 2] {
    let stem = model.file_stem().unwrap_or_default().to_string_lossy();
    ["json", "md"].map(|end| model.with_file_name(format!("{stem}-card.{end}")))
}

/// Returns the card of a trained student whose model is in `file`.
pub(super) fn card(
    report: &StudentReport,
    description: &Description,
    file: ModelFile,
    round: Option<&RoundFacts>,
) -> ModelCard {
    ModelCard {
        format: CARD_FORMAT,
        simulation: round.is_some_and(|round| round.origin.simulation),
        publishable: round.and_then(|round| round.origin.publishable),
        models: vec![file],
        task: task(description),
        training: TrainingData {
            method: report.method.to_owned(),
            pool_images: report.pool.images,
            queries: report.labelled + report.unanswered,
            labelled: report.labelled,
        },
        encoder: description.encoder.as_ref().map(|encoder| encoder.facts.clone()),
        source: round.map_or(CardSource::Labels, |round| round.source.clone()),
        participants: round.map(|round| round.participants.clone()),
        privacy: round.map(|round| round.privacy.clone()),
        evaluation: report.test.clone(),
        versions: Versions::from(&current_environment("processor")),
    }
}
