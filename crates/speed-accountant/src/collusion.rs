//! Exact averages over noise that the adversary knows: integer Laplace noise of which a ratio `tau` is secret.
//!
//! docs/privacy.md, "Collusion", has the argument. A class's noise is `r = s + c`: `s` is secret (shape `tau`), `c` is known
//! (shape `1 - tau`, or less if a part is missing). The moment is at most the mean over `m, c_a, c_b` of a function of
//! `A = m - n_a - c_a` and `B = m - n_b - c_b` ([`plane`]). This function is smoothed once with the law of `c` and then read
//! for every row, pair of classes and `m` ([`row`]). [`known_noise`] has the cost of the truncations.
//!
//! If only the vote for `a` becomes empty, or an empty vote becomes one for `a`, let `m` be the best of all classes but
//! `a`. There are two answers, `a` and another: those of a class `b` that never reaches its mark, `B` infinite.

mod known_noise;
mod plane;
mod row;

pub(crate) use known_noise::KnownNoise;
pub(crate) use row::KnownRow;
