//! The built-in networks, a file each.

mod deeper;
mod reference;
mod small;

pub(crate) use deeper::DeeperNetwork;
pub(crate) use reference::ReferenceNetwork;
pub(crate) use small::SmallNetwork;
