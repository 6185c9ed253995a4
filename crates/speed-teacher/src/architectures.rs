//! The built-in networks, one file each.

mod deeper;
mod reference;
mod small;
mod small_contrast;

pub(crate) use deeper::DeeperNetwork;
pub(crate) use reference::ReferenceNetwork;
pub(crate) use small::SmallNetwork;
pub(crate) use small_contrast::SmallContrastNetwork;
