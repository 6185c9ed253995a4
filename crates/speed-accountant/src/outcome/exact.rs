//! The probability that the winner does not win, by integration over its own noise.

use speed_mechanism::{
    Binomial, DiscreteLaplace, Gaussian, GeneralisedLaplace, LaplaceTable, Lattice, Mechanism, Skellam,
};

use super::gaps::Gaps;
use crate::event::PrivacyEvent;
use crate::quadrature::{Precision, line};

/// The noise of one class, ready to be evaluated many times.
pub(crate) enum ClassNoise {
    Laplace { table: Box<LaplaceTable>, scale: f64 },
    Gaussian(Gaussian),
    Integer { lattice: Lattice, pmf: Vec<f64>, log_below: Vec<f64> },
}

/// Tails beyond this exponent are neglected.
pub(crate) const NEGLIGIBLE: f64 = 50.0;
/// Larger gaps use the value at the end of the table, which is an upper bound.
const MAX_GAP: i64 = 1 << 12;
/// Below this ratio, too much of the cusp of continuous Laplace noise is closer to 0 than any node: `1e-60^{2 tau}`,
/// because the density there is like `|x|^{2 tau - 1}`. The integral would no longer be an upper bound.
pub(crate) const MIN_RATIO: f64 = 0.1;

impl ClassNoise {
    /// Says whether integrals over this noise keep their margins.
    pub(crate) fn is_integrable(event: &PrivacyEvent) -> bool {
        !matches!(event.mechanism(), Mechanism::Laplace { .. }) || event.tau().get() >= MIN_RATIO
    }

    pub(crate) fn new(event: &PrivacyEvent, largest_gap: i64) -> Self {
        let tau = event.tau();
        match event.mechanism() {
            Mechanism::Laplace { gamma } => Self::Laplace {
                table: Box::new(LaplaceTable::new(GeneralisedLaplace::of_class(gamma, tau))),
                scale: 1.0 / gamma.get(),
            },
            Mechanism::Gaussian { sigma } => Self::Gaussian(Gaussian::of_class(sigma, tau)),
            Mechanism::DiscreteLaplace { gamma } => {
                let reach = (NEGLIGIBLE / gamma.get()).ceil() as usize + largest_gap.clamp(0, MAX_GAP) as usize + 8;
                Self::integer(DiscreteLaplace::of_class(gamma, tau).lattice(reach))
            }
            Mechanism::Skellam { sigma } => {
                let noise = Skellam::of_class(sigma, tau);
                let reach = reach_of_variance(noise.variance()) + largest_gap.clamp(0, MAX_GAP) as usize + 8;
                Self::integer(noise.lattice(reach))
            }
            Mechanism::Binomial { coins } => {
                let noise = Binomial::of_class(coins, tau);
                let reach = reach_of_variance(noise.variance()) + largest_gap.clamp(0, MAX_GAP) as usize + 8;
                Self::integer(noise.lattice(reach))
            }
        }
    }

    fn integer(lattice: Lattice) -> Self {
        let reach = lattice.reach() as i64;
        let log_below = (-reach..=reach).map(|k| (-lattice.log_survival(k).exp()).ln_1p()).collect();
        let pmf = (-reach..=reach).map(|k| lattice.log_pmf(k).exp()).collect();
        Self::Integer { lattice, pmf, log_below }
    }

    /// Returns `ln q`, for the winner of `gaps`. In a tie of integer noise the winner loses.
    pub(crate) fn log_q(&self, gaps: &Gaps, threshold: Option<f64>, precision: Precision) -> f64 {
        match self {
            Self::Laplace { table, scale } => {
                // Where the winner's density is small, a cusp of another class hardly matters.
                let matters = |gap: &&i64| precision == Precision::Fine || **gap as f64 <= 11.0 * scale;
                let mut breaks: Vec<f64> = gaps.gaps.iter().filter(matters).map(|&gap| -gap as f64).collect();
                breaks.push(0.0);
                continuous(
                    gaps,
                    threshold,
                    breaks,
                    *scale,
                    |r| table.log_density(r),
                    |r| table.log_survival(r),
                    precision,
                )
            }
            Self::Gaussian(noise) => {
                // There are no cusps; steps of a few deviations suit the half lines of the quadrature.
                let sigma = noise.deviation();
                let furthest = gaps.gaps.last().copied().unwrap_or(0) as f64;
                let steps = ((furthest / (4.0 * sigma)).ceil() as usize).min(12);
                let mut breaks: Vec<f64> = (0..=steps).map(|i| -4.0 * sigma * i as f64).collect();
                breaks.extend([4.0 * sigma, -gaps.gaps[0] as f64 / 2.0]);
                continuous(
                    gaps,
                    threshold,
                    breaks,
                    sigma / 3.0,
                    |r| noise.log_density(r),
                    |r| noise.log_survival(r),
                    precision,
                )
            }
            Self::Integer { lattice, pmf, log_below } => integer(lattice, pmf, log_below, gaps, threshold),
        }
    }
}

pub(crate) fn reach_of_variance(variance: f64) -> usize {
    ((2.0 * NEGLIGIBLE * variance).sqrt() + NEGLIGIBLE).ceil() as usize
}

/// Returns `ln integral f(r) (1 - prod F(r + gap)) dr`, where the winner also loses below the threshold.
fn continuous(
    gaps: &Gaps,
    threshold: Option<f64>,
    mut breaks: Vec<f64>,
    scale: f64,
    log_density: impl Fn(f64) -> f64,
    log_survival: impl Fn(f64) -> f64,
    precision: Precision,
) -> f64 {
    let enough = threshold.map(|threshold| threshold - gaps.winner as f64);
    breaks.extend(enough);
    if enough.is_some_and(|enough| enough.abs() > 24.0 * scale) {
        // Most of a long interval up to the threshold contributes nothing.
        breaks.extend([-12.0 * scale, 12.0 * scale]);
    }
    breaks.sort_by(f64::total_cmp);
    breaks.dedup();
    let distinct = runs(&gaps.gaps);
    let mut total = 0.0;
    for (place, weight) in line(&breaks, scale, precision) {
        let r = place.from(0.0);
        // Coarse integrals are for likely outcomes, for which places further out than this do not matter.
        let too_far = |u: f64| precision == Precision::Coarse && u > 40.0 * scale;
        if too_far(r.abs()) {
            continue;
        }
        let density = log_density(r);
        if density < -700.0 {
            continue;
        }
        let loses = if enough.is_some_and(|enough| place.from(enough) < 0.0) {
            1.0
        } else {
            let stays: f64 = distinct
                .iter()
                .filter(|&&(gap, _)| !too_far(r + gap as f64))
                .map(|&(gap, times)| {
                    let beaten = log_survival(place.from(-gap as f64)).exp();
                    times * (-beaten).ln_1p()
                })
                .sum();
            -stays.exp_m1()
        };
        total += weight * density.exp() * loses;
    }
    total.ln()
}

fn integer(lattice: &Lattice, pmf: &[f64], log_below: &[f64], gaps: &Gaps, threshold: Option<f64>) -> f64 {
    let enough = threshold.map_or(i64::MIN, |threshold| (threshold - gaps.winner as f64) as i64);
    let reach = lattice.reach() as i64;
    // ln P[all others stay below], for every noise of the winner.
    let mut stays = vec![0.0; log_below.len()];
    for (gap, times) in runs(&gaps.gaps) {
        add_shifted(&mut stays, log_below, gap, times);
    }
    let mut total = 0.0;
    for ((r, pmf), stays) in (-reach..=reach).zip(pmf).zip(&stays) {
        let loses = if r < enough { 1.0 } else { -stays.exp_m1() };
        total += pmf * loses;
    }
    // Adds the probability beyond the table, on the winner's low side.
    (total + lattice.log_survival(reach).exp()).ln()
}

/// Adds `times` the values `gap` places further. Beyond the table it adds the value at its end, where almost nothing is
/// left.
fn add_shifted(sums: &mut [f64], values: &[f64], gap: i64, times: f64) {
    let (Some(first), Some(last)) = (values.first(), values.last()) else { return };
    let shift = usize::try_from(gap.unsigned_abs()).unwrap_or(usize::MAX).min(values.len());
    let add = |sums: &mut [f64], value: &f64| sums.iter_mut().for_each(|sum| *sum += times * value);
    let add_all = |sums: &mut [f64], values: &[f64]| {
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += times * value);
    };
    if gap < 0 {
        let (outside, inside) = sums.split_at_mut(shift);
        add(outside, first);
        add_all(inside, values);
    } else {
        let (inside, outside) = sums.split_at_mut(values.len() - shift);
        add_all(inside, &values[shift..]);
        add(outside, last);
    }
}

/// Lists each of the sorted gaps with the number of classes that have it.
pub(crate) fn runs(gaps: &[i64]) -> Vec<(i64, f64)> {
    gaps.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as f64)).collect()
}

#[cfg(test)]
mod tests {
    use speed_mechanism::{HonestRatio, InverseScale};

    use super::*;
    use crate::outcome::bound::COARSE;

    #[test]
    fn coarse_integrals_keep_their_margin() {
        for (gamma, tau) in [(0.01, 0.9), (0.1, 1.0), (0.1, 0.7), (0.1, 0.3), (0.1, 0.1), (1.0, 0.5), (20.0, 0.9)] {
            let (gamma, tau) = (InverseScale::new(gamma).expect("valid"), HonestRatio::new(tau).expect("valid"));
            for noise in [Mechanism::laplace(gamma), Mechanism::discrete_laplace(gamma)] {
                let noise = ClassNoise::new(&PrivacyEvent::new(noise, tau), 250);
                for counts in [
                    [93, 78, 78, 1, 0, 0],
                    [130, 120, 0, 0, 0, 0],
                    [60, 50, 45, 40, 35, 20],
                    [50; 6],
                    [90, 70, 60, 20, 9, 1],
                ] {
                    for threshold in [None, Some(95.0)] {
                        let gaps = Gaps::from_counts(0, &counts).expect("votes");
                        let (fine, coarse) = (
                            noise.log_q(&gaps, threshold, Precision::Fine),
                            noise.log_q(&gaps, threshold, Precision::Coarse),
                        );
                        // Less likely outcomes are not integrated.
                        assert!(
                            fine < -6.0 || (fine - coarse).abs() < COARSE,
                            "{gamma:?} {tau:?} {counts:?}: {coarse} {fine}"
                        );
                    }
                }
            }
        }
    }
}
