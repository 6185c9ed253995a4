//! What an epsilon means, in words.

use crate::PrivacyEvent;

/// The claim of a data-dependent account.
pub(crate) fn data_dependent(event: &PrivacyEvent, epsilon: f64, delta: f64) -> String {
    format!(
        "(epsilon, delta) = ({epsilon}, {delta:e}) differential privacy of the published labels, from the votes \
         (Algorithm 1). Neighbours differ in one teacher's vote. {}. The ratio tau is read as dropout: noise of the \
         others is missing, not known to an adversary (with known noise the data-dependent part does not hold). The \
         bound covers one direction, from these votes to a neighbour's, not back. It depends on the votes, so \
         publishing it as it is can itself leak; a release needs smooth sensitivity",
        noise(event)
    )
}

/// The claim of an account that used no votes.
pub(crate) fn data_independent(event: &PrivacyEvent, epsilon: f64, delta: f64) -> String {
    format!(
        "(epsilon, delta) = ({epsilon}, {delta:e}) differential privacy of the published labels, without looking at \
         the votes. Neighbours differ in one teacher's vote. {}. The ratio tau may be read as dropout or as collusion: \
         noise of the others may be missing or known. The bound covers both directions and may be published",
        noise(event)
    )
}

fn noise(event: &PrivacyEvent) -> String {
    let sampler = if event.sampling_distance() > 0.0 {
        format!(", sampled within a statistical distance of {:e} that delta includes", event.sampling_distance())
    } else {
        String::new()
    };
    format!(
        "The noise is {} of inverse scale gamma = {} a vote, from a ratio tau = {} of the teachers{sampler}",
        event.noise(),
        event.gamma().get(),
        event.tau().get()
    )
}
