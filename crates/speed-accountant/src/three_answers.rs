//! One query given the best of all classes but two: three answers, for any votes.
//!
//! Let class `a` lose a vote and `b` gain one. Show the adversary also `m`, the best noisy count of all other classes
//! (a threshold is one of them), and its class; `m` does not depend on the move. Three answers remain: `a`, `b` and
//! neither. With integer noise, their probabilities depend only on the marks that `a` and `b` must reach, `A = m - n_a`
//! and `B = m - n_b` (ties move a mark by one), and on which class wins if both pass their marks by the same amount:
//!
//! - `P[a] = sum over u >= 0 of p(A + u) F(B + u)`, if `a` wins such ties,
//! - `P[b] = sum over v >= 0 of p(B + v) F(A + v - 1)`,
//! - `P[neither] = F(A - 1) F(B - 1)`;
//!
//! at the neighbour with `(A + 1, B - 1)`. If `b` wins such ties, exchange `a` and `b`: this is the same pair of
//! distributions in reverse order, so both directions together cover both rules.
//!
//! Any convex divergence of the query is at most the mean over `m` of the divergence of the three answers, so at most
//! the supremum of that divergence over the plane of `(A, B)`: for any votes, any number of classes, any threshold, and
//! with known noise, which shifts `(A, B)` ([`profile`]). Given a bound on the probability of any answer other than a
//! given one, it is at most a concave function of that bound ([`envelope`]). These modules have the cost of the
//! truncations.
//!
//! # Empty votes
//!
//! A neighbour's vote may also become empty, or an empty vote one for a class: one count, that of `a`, changes by one.
//! Then show the adversary `m`, the best noisy count of all classes but `a`. Two answers remain, with
//! `P[a] = P[noise >= A]`, and `A + 1` at the neighbour, or the reverse. This is the pair of the marks `(A, B)` and
//! `(A + 1, B - 1)` with an infinite `B`: a class `b` that never reaches its mark. Every bound here covers all marks, those
//! beyond its tables as at the end of the tables with a margin for `b`; so it covers the infinite ones too. An empty vote is
//! a vote for one more class, which never wins.
//!
//! Two classes without a threshold depend on their lead only. It moves by one vote instead of two, which is never worse
//! (`ExactDifference::losses`; in an excess, a sum of terms `P' phi(P / P')` that are convex in `P` and in `P'` and 0 where
//! they are equal, no term is larger, and an answer that is left out after two steps is left out after one).

mod envelope;
mod largest_moment;
mod profile;
mod rows;

pub(crate) use envelope::Envelope;
pub(crate) use largest_moment::{Answer, Excess, LONGEST, LargestMoment, ROUNDING, TwoCounts, WIDEST_FOR_A_PARTY};
pub(crate) use profile::{MIN_SCALE_OF_THREE_ANSWERS, ThreeAnswers};
pub(crate) use rows::for_each_row;
