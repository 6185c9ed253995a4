//! The rule for answers that cost too much, shared by programs and runs: a limit or, without one, a refusal if the noise is so
//! small that it hides almost nothing.

use crate::accountant::Accountant;
use crate::delta::Delta;
use crate::error::AccountError;
use crate::privacy_filter::{PrivacyFilter, QueryBatch};
use crate::rounding::round_up;

/// Epsilon of one answer above which noise hides almost nothing: e^10 is 22,000.
const QUESTIONABLE: f64 = 10.0;

/// The data-independent price of answers, at a delta.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// Largest epsilon of a single answer.
    pub one_answer: f64,
    /// Epsilon of all answers together.
    pub all: f64,
}

/// A limit on the price of answers. The default refuses answers of which one may cost more than 10.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PriceLimit(Option<f64>);

/// Refusal of answers whose price exceeds the limit or has to be confirmed, or of a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PriceError(String);

impl Price {
    /// Computes the price of all batches together, or `None` for no batch.
    ///
    /// # Errors
    /// If no finite epsilon is known of one batch, or of all together.
    pub fn for_batches(batches: &[QueryBatch], delta: Delta) -> Result<Option<Self>, AccountError> {
        let mut price: Option<Self> = None;
        for batch in batches {
            let accountant = Accountant::new(batch.event, delta);
            let accountant = batch.classes.map_or(accountant, |classes| accountant.with_classes(classes));
            let account = accountant.account_queries(batch.queries)?;
            let one_answer = price.map_or(0.0, |price| price.one_answer).max(account.per_query_epsilon);
            price = Some(Self { one_answer, all: account.epsilon });
        }
        match price {
            Some(price) if batches.len() > 1 => {
                Ok(Some(Self { all: PrivacyFilter::least_budget(delta, batches)?.epsilon.max(price.all), ..price }))
            }
            price => Ok(price),
        }
    }
}

impl PriceLimit {
    /// No limit.
    pub const UNLIMITED: Self = Self(Some(f64::INFINITY));

    /// Creates a limit. `None` refuses answers of which one may cost more than 10.
    ///
    /// # Errors
    /// If it is not above 0. It may be infinite.
    pub fn new(most: Option<f64>) -> Result<Self, PriceError> {
        match most {
            Some(found) if found.is_nan() || found <= 0.0 => {
                Err(PriceError(format!("found {found:?}, expected a number above 0")))
            }
            most => Ok(Self(most)),
        }
    }

    /// Returns the limit, if one was given.
    pub fn most(self) -> Option<f64> {
        self.0
    }

    /// Checks a price. `what` names the answers in words, for example "the round".
    ///
    /// # Errors
    /// [`PriceError`].
    pub fn check(self, what: &'static str, price: Result<Price, AccountError>, delta: Delta) -> Result<(), PriceError> {
        let delta = delta.get();
        let unknown = |why: AccountError| {
            PriceError(format!(
                "no epsilon is known of {what} at delta {delta:e}, so it is within no limit but inf ({why}); more noise, \
                 fewer queries or a larger delta may give one"
            ))
        };
        let Price { one_answer, all } = match price {
            _ if self == Self::UNLIMITED => return Ok(()),
            Ok(price) if price.one_answer.is_finite() && price.all.is_finite() => price,
            Ok(price) => return Err(unknown(AccountError::NotFinite { found: price.all })),
            Err(why) => return Err(unknown(why)),
        };
        match self.0 {
            Some(most) if all > most => {
                Err(PriceError(format!("{what} may cost epsilon {} at delta {delta:e}, allowed is {most:?}", two(all))))
            }
            None if one_answer > QUESTIONABLE => Err(PriceError(format!(
                "so little noise hides next to nothing: one answer may cost epsilon {}, {what} {}; if that is meant, allow \
                 it with --max-epsilon {}",
                two(one_answer),
                two(all),
                all.ceil()
            ))),
            _ => Ok(()),
        }
    }
}

/// Returns a sentence which says that an epsilon gives no meaningful protection, or `None` for an epsilon of at most 10.
pub fn without_protection(epsilon: f64) -> Option<String> {
    (epsilon > QUESTIONABLE).then(|| {
        format!(
            "Epsilon {} is no meaningful protection: one teacher's data may change the odds of what is seen by a factor of up to e^{}, about \
             10^{:.0}.",
            two(epsilon),
            two(epsilon),
            (epsilon * std::f64::consts::LOG10_E).ceil()
        )
    })
}

fn two(epsilon: f64) -> String {
    format!("{:.2}", round_up(epsilon, 2))
}

#[cfg(test)]
mod tests {
    use speed_mechanism::{HonestRatio, InverseScale, Mechanism};

    use super::*;
    use crate::event::PrivacyEvent;

    fn batch(gamma: f64, queries: usize) -> QueryBatch {
        let noise = Mechanism::discrete_laplace(InverseScale::new(gamma).expect("a scale"));
        QueryBatch::new(PrivacyEvent::new(noise, HonestRatio::ALL), 10, queries)
    }

    #[test]
    fn several_batches_cost_more_than_each_and_the_dearest_answer_counts() {
        let delta = Delta::new(1e-5).expect("a delta");
        let of = |batches: &[QueryBatch]| Price::for_batches(batches, delta).expect("finite").expect("answers");
        let (one, other) = (of(&[batch(0.1, 100)]), of(&[batch(6.0, 1)]));
        let both = of(&[batch(6.0, 1), batch(0.1, 100)]);
        assert!((one.one_answer - 0.2).abs() < 1e-9 && (other.one_answer - 12.0).abs() < 1e-9, "{one:?} {other:?}");
        assert!(both.one_answer == other.one_answer && both.all > one.all && both.all > other.all, "{both:?}");
        assert_eq!(Price::for_batches(&[], delta), Ok(None));
    }

    #[test]
    fn limits_and_questions() {
        let delta = Delta::new(1e-5).expect("a delta");
        let check = |most, price| PriceLimit::new(most).expect("a limit").check("the run", price, delta);
        let dear = Ok(Price { one_answer: 12.0, all: 23.4 });
        let words = |most, price| check(most, price).expect_err("refused").to_string();
        assert!(words(None, dear.clone()).contains("one answer may cost epsilon 12.00, the run 23.40"));
        assert!(words(None, dear.clone()).ends_with("--max-epsilon 24"));
        assert!(
            words(Some(15.0), dear.clone()).contains("the run may cost epsilon 23.40 at delta 1e-5, allowed is 15.0")
        );
        assert!([Some(23.4), Some(f64::INFINITY)].into_iter().all(|most| check(most, dear.clone()).is_ok()));
        assert!(check(None, Ok(Price { one_answer: 10.0, all: 1e6 })).is_ok(), "questioned is the single answer");
        let none: Result<Price, AccountError> = Err(AccountError::NotFinite { found: f64::INFINITY });
        for (price, most) in
            [(none.clone(), None), (none.clone(), Some(1e300)), (Ok(Price { one_answer: f64::NAN, all: 1.0 }), None)]
        {
            assert!(words(most, price).contains("no epsilon is known of the run"));
        }
        assert!(check(Some(f64::INFINITY), none).is_ok());
        for most in [0.0, -1.0, f64::NAN] {
            assert!(PriceLimit::new(Some(most)).is_err(), "{most}");
        }
    }

    #[test]
    fn a_large_epsilon_is_reported_as_no_protection() {
        assert_eq!(without_protection(10.0), None);
        let words = without_protection(35.02).expect("large");
        assert!(words.contains("e^35.02") && words.contains("10^16"), "{words}");
    }
}
