//! Enclosures of non-negative numbers: every operation keeps the lower and the upper bound valid.

use crate::fixed::Fixed;

/// A non-negative number known to lie between `low` and `high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Enclosure {
    pub(crate) low: Fixed,
    pub(crate) high: Fixed,
}

impl Enclosure {
    pub(crate) const ZERO: Self = Self { low: Fixed::ZERO, high: Fixed::ZERO };
    pub(crate) const ONE: Self = Self { low: Fixed::ONE, high: Fixed::ONE };

    pub(crate) fn integer(value: u32) -> Self {
        Self { low: Fixed::integer(value), high: Fixed::integer(value) }
    }

    pub(crate) fn add(self, other: Self) -> Self {
        Self { low: self.low.add(other.low), high: self.high.add(other.high) }
    }

    /// Returns the difference of two numbers; the first must be at least as large as the second.
    pub(crate) fn sub(self, other: Self) -> Self {
        Self { low: self.low.saturating_sub(other.high), high: self.high.saturating_sub(other.low) }
    }

    pub(crate) fn mul(self, other: Self) -> Self {
        Self { low: self.low.mul(other.low), high: self.high.mul_up(other.high) }
    }

    /// Returns the quotient; the lower bound of `divisor` must be positive.
    pub(crate) fn div(self, divisor: Self) -> Self {
        Self { low: self.low.div(divisor.high), high: self.high.div_up(divisor.low) }
    }

    /// Returns `e^-x` for the exact value of a double `x` from 2^-50 to 2^20.
    pub(crate) fn exp_negative(x: f64) -> Self {
        if x >= 128.0 {
            // e^-128 is less than 2^-184.
            return Self { low: Fixed::ZERO, high: Fixed::ULP };
        }
        // A series with an argument of at most one gives e^argument; its inverse is squared `halvings` times.
        let halvings = if x > 1.0 { x.log2().ceil() as i32 } else { 0 };
        let argument = Fixed::from_f64(x * 2f64.powi(-halvings));
        let argument = Self { low: argument, high: argument };
        let (mut sum, mut term) = (Self::ONE, Self::ONE);
        // 1/45! is less than 2^-186.
        for i in 1..=45 {
            term = term.mul(argument).div(Self::integer(i));
            sum = sum.add(term);
        }
        // The remainder of the series is less than its last term.
        sum.high = sum.high.add(term.high);
        let mut inverse = Self::ONE.div(sum);
        for _ in 0..halvings {
            inverse = inverse.mul(inverse);
        }
        inverse
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_agrees_with_doubles_and_is_narrow() {
        for x in [1e-5, 1e-3, 0.05, 0.1, 0.7, 1.0, 1.5, 3.3, 10.0, 64.0] {
            let enclosure = Enclosure::exp_negative(x);
            let width = enclosure.high.saturating_sub(enclosure.low).to_f64_up();
            assert!(width < 2f64.powi(-150), "e^-{x} is only known to {width:e}");
            let high = enclosure.high.to_f64_up();
            assert!((high - (-x).exp()).abs() <= 1e-15 * (-x).exp() + 2f64.powi(-150), "e^-{x} became {high:e}");
        }
    }

    #[test]
    fn exponential_has_the_digits_of_a_reference() {
        // e^-1, the decimal expansion to 47 digits.
        let digits = "36787944117144232159552377016146086744581113103";
        let ten = Enclosure::integer(10);
        let decimal = digits
            .bytes()
            .rev()
            .fold(Enclosure::ZERO, |rest, digit| rest.add(Enclosure::integer(u32::from(digit - b'0'))).div(ten));
        let ours = Enclosure::exp_negative(1.0);
        // 47 digits are 2^-156.
        assert!(ours.high.saturating_sub(decimal.low).to_f64_up() < 2f64.powi(-150));
        assert!(decimal.high.saturating_sub(ours.low).to_f64_up() < 2f64.powi(-150));
    }
}
