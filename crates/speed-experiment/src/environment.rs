//! The machine and the versions of this process.
//!
//! It reads two fields of files under `/proc` itself, because a library for every system (`sysinfo`) would be large for
//! this purpose.

use crate::report::Environment;

/// Describes this process, with the `device` of its trainings.
pub fn current_environment(device: &str) -> Environment {
    Environment {
        speed: env!("CARGO_PKG_VERSION").to_owned(),
        burn: BURN.to_owned(),
        tfhe: TFHE.to_owned(),
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        processor: processor(),
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        products: speed_nn::matrix::product_unit().to_string(),
        arithmetic: speed_nn::kind(),
        device: device.to_owned(),
        memory_gib: field_of("/proc/meminfo", "MemTotal")
            .and_then(|text| text.trim_end_matches("kB").trim().parse::<f64>().ok())
            .map(|kib| (kib / 1024.0 / 1024.0 * 10.0).round() / 10.0),
    }
}

pub(crate) fn processor() -> String {
    field_of("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned())
}

/// The versions that the workspace pins; a test compares them with its lock file.
const BURN: &str = "0.22.1";
const TFHE: &str = "1.8.2";

fn field_of(file: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_the_lock_file() {
        // A package of this crate alone has another lock file.
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock");
        let Ok(lock) = std::fs::read_to_string(path) else { return };
        for (package, version) in [("burn", BURN), ("tfhe", TFHE)] {
            let entry = format!("name = \"{package}\"\nversion = \"{version}\"\n");
            assert!(lock.replace('\r', "").contains(&entry), "{package} is not {version}");
        }
    }
}
