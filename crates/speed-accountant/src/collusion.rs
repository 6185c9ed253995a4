//! Exact averages over noise that the adversary knows: integer Laplace noise of which a ratio `tau` is secret.
//!
//! A class's noise is `r = s + c`: `s` is secret (shape `tau`), `c` is known (shape `1 - tau`, or less if a part is
//! missing). Let class `a` lose a vote and `b` gain one. An observer of the answer, `c_a`, `c_b` and the best noisy
//! count `m` of all other classes (with its class; the threshold is one more candidate) sees at least as much about the
//! pair as the adversary learns, and `m` does not depend on the move. Given these values there are three answers, `a`,
//! `b` and neither, with probabilities that depend only on how much noise `a` and `b` need to reach `m`:
//! `A = m - n_a - c_a`, `B = m - n_b - c_b`. So any convex divergence of the query is at most the mean over
//! `m, c_a, c_b` of a function of `(A, B)` ([`plane`]). This function is smoothed once with the law of `c` and then
//! read for every row, pair of classes and `m` ([`row`]). For two classes this is exact. [`known_noise`] has the cost
//! of the truncations.
//!
//! If only the vote for `a` becomes empty, or an empty vote becomes one for `a`, let `m` be the best of all classes but
//! `a`. There are two answers, `a` and another: those of a class `b` that never reaches its mark, `B` infinite.

mod known_noise;
mod plane;
mod row;

pub(crate) use known_noise::KnownNoise;
pub(crate) use row::KnownRow;
