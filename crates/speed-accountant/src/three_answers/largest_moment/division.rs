//! Division of a rectangle of marks until the largest bound is close to an attained value.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::answer::{Answer, Excess};

/// After this number of divisions the largest bound is used as it is.
const MAX_DIVISIONS: usize = 200_000;

/// Marks `A` and `B` from the first to the second number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rectangle {
    pub(super) a: (i64, i64),
    pub(super) b: (i64, i64),
}

/// A rectangle with the bound of its excess.
struct Bounded(f64, Rectangle);

/// Bounds the largest excess at the marks of a rectangle. `answers` bounds the answers in a rectangle; those of a single
/// mark are attained. Division ends when the moment of the largest bound exceeds that of an attained value by at most the
/// part `tolerance` of its logarithm.
pub(super) fn largest(
    whole: Rectangle,
    tolerance: f64,
    excess: &Excess,
    mut answers: impl FnMut(&Rectangle) -> [Answer; 3],
) -> f64 {
    let mut heap = BinaryHeap::from([Bounded(f64::INFINITY, whole)]);
    let mut attained = 0.0f64;
    let mut divisions = 0;
    while let Some(Bounded(bound, rectangle)) = heap.pop() {
        divisions += 1;
        if bound.ln_1p() <= attained.ln_1p() * (1.0 + tolerance) || divisions > MAX_DIVISIONS {
            return bound;
        }
        let Some(halves) = rectangle.halves() else { return bound };
        for half in halves {
            let found = excess.of(&answers(&half)).min(bound);
            if half.is_mark() {
                attained = attained.max(found);
            }
            if found > attained {
                attained = attained.max(excess.of(&answers(&half.middle())));
            }
            heap.push(Bounded(found, half));
        }
    }
    f64::INFINITY
}

impl Rectangle {
    /// Creates the rectangle of a single mark.
    pub(super) fn of_mark(a: i64, b: i64) -> Self {
        Self { a: (a, a), b: (b, b) }
    }

    pub(super) fn is_mark(&self) -> bool {
        self.a.0 == self.a.1 && self.b.0 == self.b.1
    }

    fn middle(&self) -> Self {
        Self::of_mark(self.a.0 + (self.a.1 - self.a.0) / 2, self.b.0 + (self.b.1 - self.b.0) / 2)
    }

    /// Divides the longer side; `None` for a single mark.
    fn halves(&self) -> Option<[Self; 2]> {
        let Self { a: (a, _), b: (b, _) } = self.middle();
        let ((a0, a1), (b0, b1)) = (self.a, self.b);
        match (a1 - a0).cmp(&(b1 - b0)) {
            Ordering::Less => Some([Self { b: (b0, b), ..*self }, Self { b: (b + 1, b1), ..*self }]),
            _ if a1 > a0 => Some([Self { a: (a0, a), ..*self }, Self { a: (a + 1, a1), ..*self }]),
            _ => None,
        }
    }
}

impl PartialEq for Bounded {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Bounded {}

impl PartialOrd for Bounded {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bounded {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}
