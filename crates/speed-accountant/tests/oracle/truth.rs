//! The exact least epsilon of a case, or a lower bound.

use speed_accountant::NeighbouringRelation;

use crate::neighbours::neighbours;
use crate::oracle::case::{Case, Setting};
use crate::oracle::composition::{Losses, Outcome, outcomes};
use crate::oracle::grid;
use crate::oracle::view::{Law, View};

/// More choices of a neighbour for each run are not tried one by one.
const MOST_CHOICES: usize = 144;

/// One run of equal queries: the probabilities of each view at the votes and at each neighbour.
struct Run {
    here: Vec<f64>,
    neighbours: Vec<Vec<f64>>,
    times: usize,
}

/// Computes the least epsilon of the case, over all its settings, neighbours and directions. If only a bound is
/// affordable, it is a lower bound. The other teacher makes the same move at all queries of a run.
pub(crate) fn least_epsilon(case: &Case) -> f64 {
    case.settings.iter().fold(0.0, |least, &setting| in_setting(case, setting, least))
}

fn in_setting(case: &Case, setting: Setting, least: f64) -> f64 {
    let law = Law {
        noise: case.noise,
        gamma: case.gamma,
        secret: setting.secret as f64 / case.teachers as f64,
        known: setting.known as f64 / case.teachers as f64,
        threshold: case.threshold,
    };
    let runs: Vec<Run> = case
        .runs
        .iter()
        .map(|(row, times)| {
            let votes: Vec<i64> = row.iter().map(|&votes| i64::from(votes)).collect();
            let view = View::new(law, &votes);
            let neighbours =
                neighbours(&votes, case.teachers).iter().map(|votes| view.log_probabilities(votes)).collect();
            Run { here: view.log_probabilities(&votes), neighbours, times: *times }
        })
        .collect();
    let both: &[bool] = if case.directions == NeighbouringRelation::BothWays { &[false, true] } else { &[false] };
    let (mut least, log_delta) = (least, case.delta.ln());
    for &back in both {
        let queries: Vec<Vec<(Vec<Outcome>, usize)>> = runs.iter().map(|run| run.queries(back)).collect();
        let chosen = |moves: &[usize]| -> Vec<(Vec<Outcome>, usize)> {
            queries.iter().zip(moves).map(|(queries, &chosen)| queries[chosen].clone()).collect()
        };
        let first = vec![0; runs.len()];
        let choices: usize = queries.iter().map(Vec::len).product();
        let few = choices <= MOST_CHOICES && Losses::new(&chosen(&first), log_delta).is_some();
        let moves = if few { all(&queries) } else { worst(&queries) };
        least = moves.iter().fold(least, |least, moves| of_runs(&chosen(moves), log_delta, least));
    }
    least
}

/// Lists all choices of a neighbour for each run.
fn all(queries: &[Vec<(Vec<Outcome>, usize)>]) -> Vec<Vec<usize>> {
    queries.iter().fold(vec![Vec::new()], |choices, neighbours| {
        let longer = |choice: &Vec<usize>| -> Vec<Vec<usize>> {
            (0..neighbours.len()).map(|neighbour| [choice.as_slice(), &[neighbour]].concat()).collect()
        };
        choices.iter().flat_map(longer).collect()
    })
}

/// Keeps the choices whose moments are largest at some order. Used if composing every choice would take long.
fn worst(queries: &[Vec<(Vec<Outcome>, usize)>]) -> Vec<Vec<usize>> {
    let losses = || queries.iter().flatten().flat_map(|(query, _)| query.iter().map(|outcome| outcome.loss));
    let largest = losses().fold(f64::MIN_POSITIVE, f64::max);
    let mut found: Vec<Vec<usize>> = [0.03, 0.3, 1.0, 3.0, 10.0, 100.0]
        .iter()
        .map(|order| {
            let moment = |query: &[Outcome]| -> f64 {
                let tilt = order / largest;
                query.iter().map(|outcome| (outcome.log_p + tilt * (outcome.loss - largest)).exp()).sum()
            };
            let of_run = |neighbours: &Vec<(Vec<Outcome>, usize)>| {
                let moments: Vec<f64> = neighbours.iter().map(|(query, _)| moment(query)).collect();
                (0..moments.len()).max_by(|&a, &b| moments[a].total_cmp(&moments[b])).unwrap_or(0)
            };
            queries.iter().map(of_run).collect()
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

impl Run {
    /// Lists the outcomes of one query with each neighbour.
    fn queries(&self, back: bool) -> Vec<(Vec<Outcome>, usize)> {
        let of = |there: &Vec<f64>| if back { outcomes(there, &self.here) } else { outcomes(&self.here, there) };
        self.neighbours.iter().map(|there| (of(there), self.times)).collect()
    }
}

/// Computes the least epsilon of these runs, or returns `least` if that is larger.
pub(crate) fn of_runs(runs: &[(Vec<Outcome>, usize)], log_delta: f64, least: f64) -> f64 {
    match Losses::new(runs, log_delta) {
        Some(losses) => losses.least_epsilon(least),
        None => grid::least_epsilon(runs, log_delta, least),
    }
}
