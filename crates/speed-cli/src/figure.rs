//! The paper's two figures with the paper's curve and the tight valid one: epsilon of the same votes as a function of
//! gamma, and of tau.

use rayon::prelude::*;
use speed_accountant::{AccountError, Accountant, Adversary, Bound, Delta, NeighbouringRelation, PrivacyEvent};
use speed_experiment::report::Table;
use speed_experiment::report::plot::{Axis, Chart, Line, Point, Series};
use speed_mechanism::{HonestRatio, InverseScale, Mechanism, MechanismKind};

/// Number of points of each curve.
const POINTS: usize = 60;

/// Request for a figure.
#[derive(Clone, Debug)]
pub(crate) struct FigureRequest<'a> {
    /// A row for each query.
    pub(crate) counts: &'a [Vec<u32>],
    /// Number of teachers; the votes that a row lacks are empty.
    pub(crate) teachers: usize,
    /// Kind of Laplace noise of the tight curve; the paper's curve is for its continuous noise.
    pub(crate) kind: MechanismKind,
    /// Delta of all values.
    pub(crate) delta: Delta,
    /// Adversary of the tight curve, which also determines the role of the other teachers' noise.
    pub(crate) adversary: Adversary,
    /// Formulas of the tight curve: [`Bound::Outcome`], with `q` from pairs of classes, takes a second for both
    /// figures, [`Bound::Tight`] a minute.
    pub(crate) bound: Bound,
}

/// Curves over a common x axis, ready to be drawn or written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figure {
    title: String,
    x_label: String,
    x_is_logarithmic: bool,
    curves: Vec<Curve>,
    /// A horizontal line that the curves approach, with its name.
    asymptote: Option<(f64, String)>,
}

#[derive(Clone, Debug, PartialEq)]
struct Curve {
    name: String,
    column: &'static str,
    points: Vec<(f64, f64)>,
}

impl FigureRequest<'_> {
    /// Computes the paper's Figure 2: epsilon for gamma from 0.01 to 100 at one `tau`, with the limit of the paper's curve.
    pub(crate) fn over_gamma(&self, tau: HonestRatio) -> Result<Figure, AccountError> {
        let gammas = (0..POINTS).map(|i| 0.01 * 10f64.powf(4.0 * i as f64 / (POINTS - 1) as f64));
        let curves = self.curves(gammas, |gamma| Ok((InverseScale::new(gamma)?, tau)))?;
        let limit = self.limit()?;
        Ok(Figure {
            title: format!(
                "Epsilon of {} queries, tau = {}, delta = {:e}",
                self.counts.len(),
                tau.get(),
                self.delta.get()
            ),
            x_label: "inverse scale of the noise gamma (per vote)".into(),
            x_is_logarithmic: true,
            curves,
            asymptote: Some((limit, format!("limit of the paper's curve, {limit:.3}"))),
        })
    }

    /// Computes the paper's Figure 3: epsilon for tau from 0.1 to 1 at one `gamma`.
    pub(crate) fn over_tau(&self, gamma: InverseScale) -> Result<Figure, AccountError> {
        let taus = (0..POINTS).map(|i| 0.1 + 0.9 * i as f64 / (POINTS - 1) as f64);
        let curves = self.curves(taus, |tau| Ok((gamma, HonestRatio::new(tau.min(1.0))?)))?;
        Ok(Figure {
            title: format!(
                "Epsilon of {} queries, gamma = {}, delta = {:e}",
                self.counts.len(),
                gamma.get(),
                self.delta.get()
            ),
            x_label: "ratio tau of the teachers whose noise is present and secret".into(),
            x_is_logarithmic: false,
            curves,
            asymptote: None,
        })
    }

    fn curves(
        &self,
        xs: impl Iterator<Item = f64>,
        noise: impl Fn(f64) -> Result<(InverseScale, HonestRatio), AccountError> + Sync,
    ) -> Result<Vec<Curve>, AccountError> {
        let at = |x: f64| -> Result<_, AccountError> {
            let (gamma, tau) = noise(x)?;
            let event = PrivacyEvent::new(Mechanism::laplace(gamma), tau);
            let paper = Accountant::paper(event, self.delta).account(self.counts, self.teachers)?.epsilon;
            let noise = if self.kind == MechanismKind::DiscreteLaplace {
                Mechanism::discrete_laplace(gamma)
            } else {
                Mechanism::laplace(gamma)
            };
            let accountant = Accountant::new(PrivacyEvent::new(noise, tau), self.delta)
                .with_bound(self.bound)
                .with_integrals(self.bound == Bound::Tight)
                .with_relation(NeighbouringRelation::BothWays)
                .with_adversary(self.adversary);
            Ok(((x, paper), (x, accountant.account(self.counts, self.teachers)?.epsilon)))
        };
        let points: Result<Vec<_>, AccountError> = xs.collect::<Vec<_>>().into_par_iter().map(at).collect();
        let (paper, tight) = points?.into_iter().unzip();
        let integer = if self.kind == MechanismKind::DiscreteLaplace { "integer" } else { "continuous" };
        Ok(vec![
            Curve { name: "paper (continuous noise, dropout, one direction)".into(), column: "paper", points: paper },
            Curve {
                name: format!("tight and valid ({integer} noise, {}, both directions)", self.adversary),
                column: "tight",
                points: tight,
            },
        ])
    }

    /// Computes the limit of the paper's curve as gamma goes to infinity: only ties cost anything, and the best order
    /// is the largest one at which the votes still help.
    fn limit(&self) -> Result<f64, AccountError> {
        let event = PrivacyEvent::new(Mechanism::laplace(InverseScale::new(1e5)?), HonestRatio::new(0.9)?);
        Ok(Accountant::paper(event, self.delta).account(self.counts, self.teachers)?.epsilon)
    }
}

impl Figure {
    /// Writes comma-separated values: x and the epsilon of each curve, not rounded.
    pub(crate) fn to_csv(&self) -> String {
        let x = if self.x_is_logarithmic { "gamma" } else { "tau" };
        let mut table = Table::new([x].into_iter().chain(self.curves.iter().map(|curve| curve.column)));
        let rows = self.curves.first().map_or(0, |curve| curve.points.len());
        for row in 0..rows {
            let values = self.curves.iter().map(|curve| curve.points[row].1);
            table.push(
                [self.curves[0].points[row].0].into_iter().chain(values).map(|value| value.to_string()).collect(),
            );
        }
        table.to_csv()
    }

    /// Draws the figure as SVG.
    ///
    /// # Panics
    /// Never: every curve has points.
    pub(crate) fn to_svg(&self) -> String {
        let series = self.curves.iter().map(|curve| Series {
            name: curve.name.clone(),
            points: curve.points.iter().map(|&(x, y)| Point { x, y, spread: None }).collect(),
            line: Line::Plain,
        });
        let x = Axis::new(&self.x_label);
        let chart = Chart {
            title: self.title.clone(),
            x: if self.x_is_logarithmic { x.logarithmic() } else { x },
            y: Axis::new("epsilon of all queries"),
            series: series.collect(),
            asymptote: self.asymptote.clone(),
        };
        chart.to_svg().expect("curves of points")
    }

    /// Returns the points of each curve with its name, and the asymptote.
    pub(crate) fn curves(&self) -> Vec<(&str, &[(f64, f64)])> {
        self.curves.iter().map(|curve| (curve.column, curve.points.as_slice())).collect()
    }

    /// Returns the value of the line that the curves approach.
    pub(crate) fn asymptote(&self) -> Option<f64> {
        self.asymptote.as_ref().map(|(value, _)| *value)
    }
}
