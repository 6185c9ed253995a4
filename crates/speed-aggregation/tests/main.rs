//! The protocol and the proofs through the public interface.

#[cfg(feature = "proofs")]
mod proofs;
mod protocol;
