//! What a result was made on and with.

use serde::{Deserialize, Serialize};

/// The machine and the versions behind a run; no host name, user or path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of SPEED.
    pub speed: String,
    /// Version of Burn.
    pub burn: String,
    /// Version of TFHE-rs.
    pub tfhe: String,
    /// Operating system and architecture.
    pub system: String,
    /// Processor model, where the system tells it.
    pub processor: String,
    /// Logical processors that this process may use.
    pub processors: usize,
    /// What multiplies the students' and small teachers' matrices; decides about their last bits.
    #[serde(default)]
    pub products: String,
    /// The kind of machine, as far as the bits of trainings tell: equal on two machines, both give the same ones.
    #[serde(default)]
    pub arithmetic: String,
    /// What computed the trainings that `device` in the config sends to a device.
    #[serde(default)]
    pub device: String,
    /// Memory in GiB, where the system tells it.
    pub memory_gib: Option<f64>,
}

impl Environment {
    /// Of this process, with what computes trainings.
    #[must_use]
    pub fn current(device: &str) -> Self {
        Self {
            speed: env!("CARGO_PKG_VERSION").to_owned(),
            burn: locked_version("burn"),
            tfhe: locked_version("tfhe"),
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            processor: field_of("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned()),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            products: speed_nn::matrix::product_unit().to_string(),
            arithmetic: speed_nn::matrix::kind(),
            device: device.to_owned(),
            memory_gib: field_of("/proc/meminfo", "MemTotal")
                .and_then(|text| text.trim_end_matches("kB").trim().parse::<f64>().ok())
                .map(|kib| (kib / 1024.0 / 1024.0 * 10.0).round() / 10.0),
        }
    }
}

/// The version that this binary was built with.
fn locked_version(package: &str) -> String {
    let lock = include_str!("../../../Cargo.lock");
    let header = format!("name = \"{package}\"\nversion = \"");
    lock.split_once(&header)
        .and_then(|(_, rest)| rest.split_once('"'))
        .map_or_else(|| "unknown".to_owned(), |(version, _)| version.to_owned())
}

fn field_of(file: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_the_lock_file() {
        assert_eq!(locked_version("burn"), "0.22.1");
        assert_eq!(locked_version("tfhe"), "1.8.2");
        assert_eq!(locked_version("no-such-package"), "unknown");
    }
}
