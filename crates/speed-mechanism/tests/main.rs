//! The noise through the public interface.

mod parameters;
mod reference;
mod sampler;
