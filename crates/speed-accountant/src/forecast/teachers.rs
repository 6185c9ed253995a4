//! The least number of teachers that give enough right labels at the same epsilon.

use speed_mechanism::{BinomialShare, HonestRatio, Mechanism, NoiseCoins, NoiseDeviation};

use super::labels::right_share;
use super::votes::{MAX_TEACHERS, VotesModel};
use crate::error::AccountError;
use crate::event::PrivacyEvent;

/// How many numbers below the found one are tried. Votes and coins are rounded to integers, so the share of right labels does
/// not rise at every number.
const BELOW: usize = 16;

/// Finds the least number of teachers with which the mean share of right labels is at least `share`, if they vote as `model`
/// expects and their noise costs at most the same epsilon as `mechanism`, the noise of `teachers` teachers of which a ratio
/// `honest` is counted. `None` if [`MAX_TEACHERS`] are not enough.
///
/// The noise of all teachers stays the same. Each teacher's coins are an integer, rounded up so that the counted coins do not
/// become fewer; sigma is adapted to the ratio among an integer number of teachers, gamma is not.
///
/// The number is found by bisection, and then 16 numbers below it are tried.
///
/// # Errors
/// The errors of [`super::Forecast::new`].
pub fn least_teachers(
    mechanism: Mechanism,
    honest: HonestRatio,
    teachers: usize,
    model: &VotesModel,
    share: f64,
) -> Result<Option<usize>, AccountError> {
    let is_enough = |number: usize| match same_noise(mechanism, honest, teachers, number) {
        // The labels have the noise of all teachers.
        Some(noise) => Ok(right_share(&PrivacyEvent::new(noise, HonestRatio::ALL), model, number)? >= share),
        None => Ok::<_, AccountError>(false),
    };
    let (mut few, mut enough) = (0, 1);
    while !is_enough(enough)? {
        if enough == MAX_TEACHERS {
            return Ok(None);
        }
        (few, enough) = (enough, (2 * enough).min(MAX_TEACHERS));
    }
    while enough - few > 1 {
        let middle = few + (enough - few) / 2;
        if is_enough(middle)? { enough = middle } else { few = middle }
    }
    let mut least = enough;
    for number in enough.saturating_sub(BELOW).max(1)..enough {
        if is_enough(number)? {
            least = number;
            break;
        }
    }
    Ok(Some(least))
}

/// Returns the noise of `to` teachers that costs at most what `mechanism` costs with `from` teachers; `None` if they cannot
/// draw it.
fn same_noise(mechanism: Mechanism, honest: HonestRatio, from: usize, to: usize) -> Option<Mechanism> {
    let (before, after) = (honest.effective(from).ok()?, honest.effective(to).ok()?);
    match mechanism {
        Mechanism::Binomial { coins } => {
            let counted = honest.noisy_teachers(to).ok()? as u64;
            let each = coins.of_ratio(before).div_ceil(counted).max(1);
            let coins = NoiseCoins::new(each.saturating_mul(to as u64)).ok()?;
            BinomialShare::new(coins, to).ok()?;
            Some(Mechanism::binomial(coins))
        }
        Mechanism::Gaussian { sigma } => Some(Mechanism::gaussian(rescaled(sigma, before, after)?)),
        Mechanism::Skellam { sigma } => Some(Mechanism::skellam(rescaled(sigma, before, after)?)),
        Mechanism::Laplace { .. } | Mechanism::DiscreteLaplace { .. } => Some(mechanism),
    }
}

fn rescaled(sigma: NoiseDeviation, before: HonestRatio, after: HonestRatio) -> Option<NoiseDeviation> {
    NoiseDeviation::new(sigma.get() * (before.get() / after.get()).sqrt()).ok()
}

#[cfg(test)]
mod tests {
    use super::super::Agreement;
    use super::*;

    #[test]
    fn fewer_teachers_give_fewer_right_labels() {
        let agreement = Agreement::new(0.8).expect("valid");
        for (mechanism, honest) in [
            (Mechanism::binomial(NoiseCoins::new(1000).expect("valid")), 1.0),
            (Mechanism::binomial(NoiseCoins::new(2500).expect("valid")), 0.9),
            (Mechanism::skellam(NoiseDeviation::new(30.0).expect("valid")), 0.7),
            (Mechanism::discrete_laplace(speed_mechanism::InverseScale::new(0.1).expect("valid")), 1.0),
        ] {
            let honest = HonestRatio::new(honest).expect("valid");
            for model in [VotesModel::even(agreement, 10), VotesModel::one_rival(agreement, 10)] {
                let model = model.expect("valid");
                let found = least_teachers(mechanism, honest, 250, &model, 0.95).expect("valid").expect("a number");
                let share = |number: usize| {
                    let noise = same_noise(mechanism, honest, 250, number).expect("noise");
                    right_share(&PrivacyEvent::new(noise, HonestRatio::ALL), &model, number).expect("valid")
                };
                assert!(share(found) >= 0.95, "{mechanism}: {found}");
                for fewer in found.saturating_sub(40).max(2)..found {
                    assert!(share(fewer) < 0.95, "{mechanism}: {fewer} and not {found}");
                }
            }
        }
    }

    #[test]
    fn a_rival_with_more_votes_is_never_enough() {
        let noise = Mechanism::binomial(NoiseCoins::new(1000).expect("valid"));
        let model = VotesModel::one_rival(Agreement::new(0.45).expect("valid"), 3).expect("valid");
        assert_eq!(least_teachers(noise, HonestRatio::ALL, 100, &model, 0.95), Ok(None));
    }

    #[test]
    fn the_counted_coins_do_not_become_fewer() {
        let honest = HonestRatio::new(0.7).expect("valid");
        let coins = NoiseCoins::new(2000).expect("valid");
        let counted = coins.of_ratio(honest.effective(250).expect("teachers"));
        for teachers in 2..2000 {
            let Some(Mechanism::Binomial { coins }) = same_noise(Mechanism::binomial(coins), honest, 250, teachers)
            else {
                panic!("binomial noise of {teachers}")
            };
            let ratio = honest.effective(teachers).expect("teachers");
            assert!(coins.of_ratio(ratio) >= counted && coins.get() % teachers as u64 == 0, "{teachers}");
        }
    }
}
