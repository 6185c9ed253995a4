//! `speed` with a custom teacher and a custom student: all commands, and two more names in configs.
//!
//! `cargo run --release -- run config.toml`

mod student;
mod teacher;

use speed_student::StudentMethod;
use speed_teacher::Architecture;

// Every step of a training allocates and frees large blocks, which the system's allocator would return to the system
// each time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    speed_cli::main_with(|| {
        Architecture::register::<teacher::Strided>("strided").expect("a name that is free");
        StudentMethod::register("labels-only", &student::LabelsOnly).expect("a name that is free");
    })
}
