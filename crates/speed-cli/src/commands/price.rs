//! Limits on privacy costs.

use speed_accountant::PriceLimit;
use speed_round::RoundPrice;

use super::{Failure, flag};
use crate::options::MaxEpsilon;

/// Returns the limit that a command line sets.
pub(super) fn limit(given: MaxEpsilon) -> Result<PriceLimit, Failure> {
    PriceLimit::new(given.max_epsilon).map_err(|error| flag("max-epsilon", &error))
}

/// Refuses a round whose price is above the limit. A simulation is never refused.
pub(super) fn check(price: &RoundPrice, given: MaxEpsilon, simulation: bool) -> Result<(), Failure> {
    let limit = limit(given)?;
    if simulation { Ok(()) } else { price.check(limit).map_err(|error| flag("max-epsilon", &error)) }
}
