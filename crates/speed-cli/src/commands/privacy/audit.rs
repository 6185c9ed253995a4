//! `speed audit`

use std::path::Path;

use clap::{Args, ValueEnum};
use serde_json::json;
use speed_accountant::audit::{NoisyArgmax, ShareNoise, TruncatedShare, audit_at};
use speed_accountant::theory::tight_per_query_epsilon;
use speed_accountant::{Accountant, Bound, Delta, PrivacyEvent};
use speed_core::vote_files::Known;
use speed_core::{ExitCode, Randomness};
use speed_experiment::ExperimentError;
use speed_mechanism::{
    BinomialShare, DiscreteGaussian, HonestRatio, Mechanism, MechanismError, NoiseDeviation, NoiseGenerator,
    NoiseShare, SkellamShare,
};

use super::noise::noise;
use super::votes::{self, GIVE_LABELS, ReadVotes};
use crate::bar::Bar;
use crate::commands::{Failure, print_report, usage};
use crate::options::{FormOption, NoiseOptions, delta};

/// Origin of the noise of an audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShareKind {
    /// This project's exact integer shares (Gaussian noise has no shares: one exact discrete Gaussian draw)
    Exact,
    /// Shares truncated to integers as in the paper's published code: not as private as claimed
    Truncated,
}

#[derive(Debug, Args)]
pub(crate) struct AuditOptions {
    #[command(flatten)]
    mechanism: NoiseOptions,
    /// Delta of the claim that Gaussian, Skellam or binomial noise is tested against; ignored for Laplace noise
    #[arg(long, value_name = "D", default_value = "1e-2", value_parser = delta)]
    delta: Delta,
    /// Vote counts of one query, one for each class; or with --query, a file of votes, whose class with the most votes
    /// becomes the first. At the neighbour, one vote moves from the first class to the second
    #[arg(long, value_name = "N,N,...|FILE", default_value = "20,20", num_args = 1..)]
    votes: Vec<String>,
    /// With a file of votes: index of the query, from 0
    #[arg(long, value_name = "I")]
    query: Option<usize>,
    #[command(flatten)]
    form: FormOption,
    /// With a file of labels: the number of classes
    #[arg(long, value_name = "K")]
    classes: Option<usize>,
    /// Answer only where the largest noisy count reaches this many votes [default: the first class's votes]
    #[arg(long, value_name = "VOTES", conflicts_with = "no_threshold")]
    threshold: Option<i64>,
    /// Always answer
    #[arg(long)]
    no_threshold: bool,
    /// Number of runs for each of the two neighbouring votes
    #[arg(long, value_name = "N", default_value = "20000", value_parser = clap::value_parser!(u64).range(100..))]
    runs: u64,
    /// Confidence of the lower bound
    #[arg(long, value_name = "P", default_value = "0.999")]
    confidence: f64,
    /// Origin of the noise
    #[arg(long, value_name = "WHICH", default_value = "exact")]
    noise: ShareKind,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The largest number of values drawn for an audit. More would take days.
const MAX_DRAWS: f64 = 1e12;

pub(in crate::commands) fn audit(options: &AuditOptions) -> Result<(), Failure> {
    let (counts, read) = one_query(options)?;
    let sum = || counts.iter().map(|&count| count as usize).sum();
    let teachers: usize = read.map_or_else(sum, |read| read.teachers);
    let noise = noise(&options.mechanism, Some(teachers), !options.no_threshold)?;
    let tau = options.mechanism.honest_ratio.effective(teachers).map_err(|error| usage("honest-ratio", &error))?;
    let here: Vec<i64> = counts.iter().map(|&count| i64::from(count)).collect();
    if here.len() < 2 || here[0] == 0 {
        return Err(usage("votes", "expected at least two classes and a vote for the first"));
    }
    if !(options.confidence > 0.0 && options.confidence < 1.0) {
        return Err(usage(
            "confidence",
            format!("found {:?}, expected more than 0 and less than 1", options.confidence),
        ));
    }
    let mut there = here.clone();
    there[0] -= 1;
    there[1] += 1;
    let threshold = (!options.no_threshold).then(|| options.threshold.unwrap_or(here[0]));
    let share = share(options.noise, noise, teachers, tau)?;
    let mechanism = NoisyArgmax::new(share, teachers, tau, threshold).map_err(|error| usage("honest-ratio", &error))?;
    let mut event = PrivacyEvent::new(noise, tau);
    if let Some(threshold) = threshold {
        event = event.with_threshold(threshold as f64).map_err(|error| usage("threshold", &error))?;
    }
    let (claim, delta) = claimed(event, here.len(), options.delta)?;
    let mut generator = NoiseGenerator::new(&Randomness::OperatingSystem)
        .map_err(|error| ExperimentError::from(MechanismError::from(error)))?;
    let draws = options.runs as f64 * 2.0 * (here.len() * mechanism.draws_of_a_class()) as f64;
    if draws > MAX_DRAWS {
        let most = (MAX_DRAWS / draws * options.runs as f64).floor();
        return Err(usage(
            "runs",
            format!("{} runs draw {draws:.1e} values, which takes days: at most {most} here", options.runs),
        ));
    }
    let answers = Bar::counting("running the mechanism", options.runs.saturating_mul(2));
    let run = |neighbour: bool| {
        answers.steps(1);
        mechanism.answer(if neighbour { &there } else { &here }, &mut generator)
    };
    let found = audit_at(delta, here.len() + 1, options.runs, options.confidence, run);
    drop(answers);
    let refuted = found.lower_bound > claim;
    let report = json!({
        "lower_bound": found.lower_bound, "claim": claim, "refuted": refuted, "confidence": found.confidence,
        "runs": found.runs, "answer": found.answer, "counts": found.counts,
        "mechanism": options.mechanism.mechanism.to_string(), "gamma": options.mechanism.gamma,
        "sigma": options.mechanism.sigma, "coins": options.mechanism.coins, "delta": delta, "tau": tau.get(), "votes": here, "neighbour": there, "threshold": threshold, "votes_file": read,
    });
    print_report(options.json, &report, || {
        format!(
            "One query costs at least epsilon {:.4} (confidence {}, answer {} came {} and {} times in {} runs each); \
             claimed: {claim:.4}.\n{}",
            found.lower_bound,
            found.confidence,
            found.answer,
            found.counts[0],
            found.counts[1],
            found.runs,
            read.map_or_else(String::new, |read| read.line())
        )
    })?;
    if refuted {
        let fault = format!("the audit refutes the claim: at least {}, claimed {claim}", found.lower_bound);
        return Err(ExperimentError::new(ExitCode::Computation, fault).into());
    }
    Ok(())
}

/// Computes the claimed epsilon of one query, and the delta of that claim.
fn claimed(event: PrivacyEvent, classes: usize, delta: Delta) -> Result<(f64, f64), Failure> {
    let noise = event.mechanism();
    Ok(match noise {
        Mechanism::Laplace { .. } | Mechanism::DiscreteLaplace { .. } => {
            (tight_per_query_epsilon(&event, classes), 0.0)
        }
        // The discrete Gaussian shares the Gaussian's moments, but not its complete privacy curve.
        Mechanism::Gaussian { .. } | Mechanism::Skellam { .. } | Mechanism::Binomial { .. } => {
            let bound = if noise.is_integer() { Bound::Tight } else { Bound::Paper };
            let accountant = Accountant::new(event, delta).with_bound(bound);
            (accountant.account_queries(1).map_err(|error| usage("delta", &error))?.epsilon, delta.get())
        }
    })
}

fn share(kind: ShareKind, noise: Mechanism, teachers: usize, tau: HonestRatio) -> Result<ShareNoise, Failure> {
    let share = match (kind, noise) {
        (ShareKind::Exact, Mechanism::DiscreteLaplace { gamma }) => {
            NoiseShare::new(gamma, teachers).map(|share| ShareNoise::Exact(Box::new(share)))
        }
        (ShareKind::Exact, Mechanism::Skellam { sigma }) => SkellamShare::new(sigma, teachers).map(ShareNoise::Skellam),
        (ShareKind::Exact, Mechanism::Binomial { coins }) => {
            BinomialShare::new(coins, teachers).map(ShareNoise::Binomial)
        }
        (ShareKind::Exact, Mechanism::Gaussian { sigma }) => NoiseDeviation::new(sigma.get() * tau.get().sqrt())
            .map(|sigma| ShareNoise::Gaussian(DiscreteGaussian::new(sigma))),
        (ShareKind::Truncated, Mechanism::DiscreteLaplace { gamma }) => {
            TruncatedShare::new(gamma, teachers).map(ShareNoise::Truncated)
        }
        (ShareKind::Exact, Mechanism::Laplace { .. }) => {
            return Err(usage("mechanism", "continuous Laplace noise has no exact sampler; use discrete-laplace"));
        }
        (ShareKind::Truncated, _) => {
            return Err(usage("noise", "truncated shares need --mechanism discrete-laplace"));
        }
    };
    share.map_err(|error| usage(noise.kind().parameter(), &error))
}

/// Returns the votes of one query, from the command line or from a file. Votes from a file begin with the class that
/// has the most votes.
fn one_query(options: &AuditOptions) -> Result<(Vec<u32>, Option<ReadVotes>), Failure> {
    let inline: Option<Vec<u32>> =
        options.votes.iter().flat_map(|part| part.split(',')).map(|count| count.trim().parse().ok()).collect();
    if let Some(counts) = inline {
        let only = [
            ("query", options.query.is_some()),
            ("classes", options.classes.is_some()),
            ("form", options.form.form.is_some()),
        ];
        return match only.into_iter().find(|(_, is_given)| *is_given) {
            Some((name, _)) => Err(usage(name, "is read only with a file of votes")),
            None => Ok((counts, None)),
        };
    }
    let [path] = options.votes.as_slice() else {
        return Err(usage("votes", "expected the votes for each class, or one file of votes"));
    };
    let path = Path::new(path);
    let known = Known { classes: options.classes, ..Known::default() };
    let file = votes::read(path, options.form.form, &known, GIVE_LABELS)?;
    let all = file.queries();
    let query = options.query.filter(|query| *query < all);
    let query =
        query.ok_or_else(|| usage("query", format!("expected one of the file's {all} queries, 0 to {}", all - 1)))?;
    let (mut counts, read) = votes::counts(path, &file, None, Some(&(query..query + 1)))?;
    let mut counts = counts.pop().unwrap_or_default();
    // In the mechanism, the order of the classes only breaks ties.
    counts.sort_unstable_by(|one, other| other.cmp(one));
    Ok((counts, Some(read)))
}
