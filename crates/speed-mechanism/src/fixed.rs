//! Unsigned 192-bit fixed-point numbers with directed rounding: 32 bits before the point, 160 after.
//!
//! A double has 53 bits, but the sampler's table must be accurate to 2^-100 in total. This is the smallest format that
//! can carry such a certificate. Every operation rounds down, and its `_up` twin is at least as large as the exact
//! result.

const LIMBS: usize = 3;
/// Bits after the point.
const FRACTION_BITS: usize = 160;

/// A number in [0, 2^32), a multiple of 2^-160. Limbs from the least significant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fixed([u64; LIMBS]);

impl PartialOrd for Fixed {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Fixed {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.iter().rev().cmp(other.0.iter().rev())
    }
}

impl Fixed {
    pub(crate) const ZERO: Self = Self([0; LIMBS]);
    /// The distance between neighbours, 2^-160.
    pub(crate) const ULP: Self = Self([1, 0, 0]);
    pub(crate) const ONE: Self = Self::integer(1);

    pub(crate) const fn integer(value: u32) -> Self {
        Self([0, 0, (value as u64) << 32])
    }

    /// Returns `value * 2^-128` exactly: a number below one from its first 128 bits.
    pub(crate) fn from_fraction(value: u128) -> Self {
        Self([(value as u64) << 32, (value >> 32) as u64, (value >> 96) as u64])
    }

    /// Returns the first 128 bits after the point, rounded down. Numbers of at least one become the largest fraction.
    pub(crate) fn to_fraction(self) -> u128 {
        if self >= Self::ONE {
            return u128::MAX;
        }
        u128::from(self.0[0] >> 32) | u128::from(self.0[1]) << 32 | u128::from(self.0[2]) << 96
    }

    /// Returns the exact value of a double in [2^-100, 2^32), rounded down to a multiple of 2^-160 (exact from 2^-107
    /// up).
    pub(crate) fn from_f64(value: f64) -> Self {
        let mut rest = value;
        let mut limbs = [0; LIMBS];
        // A double has at most 53 bits, so subtracting integer parts is exact.
        for (limb, unit) in limbs.iter_mut().zip([2f64.powi(-160), 2f64.powi(-96), 2f64.powi(-32)]).rev() {
            let whole = (rest / unit).floor();
            *limb = whole as u64;
            rest -= whole * unit;
        }
        Self(limbs)
    }

    /// Returns a double that is at least this number.
    pub(crate) fn to_f64_up(self) -> f64 {
        if self == Self::ZERO {
            return 0.0;
        }
        let [low, middle, high] = self.0.map(|limb| limb as f64);
        // Three conversions, two sums and powers of two: the errors add up to less than four roundings, each of at most
        // 2^-53.
        (high * 2f64.powi(-32) + middle * 2f64.powi(-96) + low * 2f64.powi(-160)) * (1.0 + 4.0 * f64::EPSILON)
    }

    pub(crate) fn add(self, other: Self) -> Self {
        let mut carry = false;
        let mut sum = [0; LIMBS];
        for (limb, (a, b)) in sum.iter_mut().zip(self.0.into_iter().zip(other.0)) {
            (*limb, carry) = a.carrying_add(b, carry);
        }
        debug_assert!(!carry, "fixed-point sum left its range");
        Self(sum)
    }

    /// Returns the difference, or zero if `other` is larger.
    pub(crate) fn saturating_sub(self, other: Self) -> Self {
        if self <= other {
            return Self::ZERO;
        }
        let mut borrow = false;
        let mut difference = [0; LIMBS];
        for (limb, (a, b)) in difference.iter_mut().zip(self.0.into_iter().zip(other.0)) {
            (*limb, borrow) = a.borrowing_sub(b, borrow);
        }
        Self(difference)
    }

    pub(crate) fn mul(self, other: Self) -> Self {
        let mut product = [0u64; 2 * LIMBS];
        for (i, &a) in self.0.iter().enumerate() {
            let mut carry = 0u128;
            for (j, &b) in other.0.iter().enumerate() {
                let sum = u128::from(a) * u128::from(b) + u128::from(product[i + j]) + carry;
                product[i + j] = sum as u64;
                carry = sum >> 64;
            }
            product[i + LIMBS] = carry as u64;
        }
        debug_assert!(product[5] >> 32 == 0, "fixed-point product left its range");
        // Shifts down by 160 bits: two limbs and 32 bits.
        Self([2, 3, 4].map(|i| product[i] >> 32 | product[i + 1] << 32))
    }

    pub(crate) fn mul_up(self, other: Self) -> Self {
        self.mul(other).add(Self::ULP)
    }

    /// Returns the quotient, which must be below 2^32; `divisor` must be positive and below 2^31.
    pub(crate) fn div(self, divisor: Self) -> Self {
        debug_assert!(divisor > Self::ZERO && divisor.0[2] >> 63 == 0, "fixed-point divisor left its range");
        let mut rest = Self::ZERO;
        let mut quotient = [0u64; LIMBS];
        // Long division, one bit at a time: 192 bits of the dividend, then 160 zeros.
        for position in (0..LIMBS * 64 + FRACTION_BITS).rev() {
            rest = rest.add(rest);
            if position >= FRACTION_BITS {
                let bit = position - FRACTION_BITS;
                rest.0[0] |= self.0[bit / 64] >> (bit % 64) & 1;
            }
            if rest >= divisor {
                rest = rest.saturating_sub(divisor);
                debug_assert!(position < LIMBS * 64, "fixed-point quotient left its range");
                if let Some(limb) = quotient.get_mut(position / 64) {
                    *limb |= 1 << (position % 64);
                }
            }
        }
        Self(quotient)
    }

    pub(crate) fn div_up(self, divisor: Self) -> Self {
        self.div(divisor).add(Self::ULP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_fractions_compute_exactly() {
        let third = Fixed::ONE.div(Fixed::integer(3));
        assert_eq!(third.to_fraction(), u128::MAX / 3);
        assert_eq!(Fixed::integer(21).div(Fixed::integer(7)), Fixed::integer(3));
        assert_eq!(Fixed::integer(65_535).mul(Fixed::integer(65_537)), Fixed::integer(u32::MAX));
        assert_eq!(third.add(third).add(third).add(Fixed::ULP), Fixed::ONE);
        assert_eq!(Fixed::ONE.saturating_sub(Fixed::integer(2)), Fixed::ZERO);
        assert_eq!(Fixed::from_fraction(1 << 127), Fixed::from_f64(0.5));
        assert_eq!(Fixed::ONE.to_fraction(), u128::MAX);
    }

    #[test]
    fn doubles_convert_exactly_and_back_upwards() {
        for value in [0.1, 1.0, 1.0 / 3.0, 1e-3, 123_456.789, 2f64.powi(-100)] {
            let back = Fixed::from_f64(value).to_f64_up();
            assert!(back >= value && back <= value * (1.0 + 1e-14), "{value} became {back}");
        }
        // 0.1 is 3602879701896397 / 2^55 as a double.
        assert_eq!(Fixed::from_f64(0.1).to_fraction(), 3_602_879_701_896_397_u128 << 73);
        assert_eq!(Fixed::ZERO.to_f64_up(), 0.0);
    }

    #[test]
    fn products_carry_across_limbs() {
        // (1 - 2^-64) squared is 1 - 2^-63 + 2^-128.
        let near_one = Fixed::from_fraction(u128::MAX << 64);
        let square = near_one.mul(near_one);
        assert_eq!(square, Fixed::from_fraction((u128::MAX << 65) | 1));
        let back = square.div(near_one);
        assert!(back <= near_one && back.add(Fixed::ULP) >= near_one);
        assert!(near_one.mul_up(near_one) > square);
    }
}
