//! Values that many tests share.

use speed_accountant::{Delta, PrivacyEvent};
use speed_mechanism::{HonestRatio, InverseScale, MechanismKind};

pub(crate) fn delta(value: f64) -> Delta {
    Delta::new(value).expect("a delta")
}

pub(crate) fn gamma(value: f64) -> InverseScale {
    InverseScale::new(value).expect("a scale")
}

pub(crate) fn tau(value: f64) -> HonestRatio {
    HonestRatio::new(value).expect("a ratio")
}

/// Returns one query with noise of this kind and scale of a ratio of the teachers.
pub(crate) fn event(kind: MechanismKind, scale: f64, ratio: f64) -> PrivacyEvent {
    PrivacyEvent::new(kind.with_scale(scale).expect("in range"), tau(ratio))
}
