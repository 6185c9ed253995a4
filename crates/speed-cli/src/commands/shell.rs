//! `speed completions` and `speed manual`: shell completions and manual pages.

use std::path::{Path, PathBuf};

use clap::Args;
use clap_complete::Shell;
use clap_mangen::Man;
use speed_core::printable_path;
use speed_experiment::ExperimentError;
use speed_experiment::training::check_new;

use super::{Failure, print};

#[derive(Debug, Args)]
pub(crate) struct CompletionsOptions {
    /// The shell
    shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManualOptions {
    /// The folder to create
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

pub(super) fn completions(options: CompletionsOptions, mut command: clap::Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut command, "speed", &mut script);
    print(&String::from_utf8_lossy(&script))
}

pub(super) fn manual(options: ManualOptions, command: clap::Command) -> Result<(), Failure> {
    let failed = |path: &Path| ExperimentError::io("write", path.to_path_buf());
    let Some(folder) = options.folder.as_deref() else {
        let mut page = Vec::new();
        Man::new(command).render(&mut page).map_err(failed(Path::new("the manual")))?;
        return print(&String::from_utf8_lossy(&page));
    };
    for page in pages(&command, "speed") {
        check_new(&folder.join(page))?;
    }
    std::fs::create_dir_all(folder).map_err(failed(folder))?;
    clap_mangen::generate_to(command, folder).map_err(failed(folder))?;
    print(&format!("{}\n", printable_path(folder)))
}

/// Returns the names of the manual pages of a command and its subcommands.
fn pages(command: &clap::Command, name: &str) -> Vec<String> {
    let of = |sub: &clap::Command| pages(sub, &format!("{name}-{}", sub.get_name()));
    let visible = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    std::iter::once(format!("{name}.1")).chain(visible.flat_map(of)).collect()
}
