//! `speed` with a teacher and a student of one's own: every command, and two names more for configs.
//!
//! `cargo run --release -- run config.toml`

mod student;
mod teacher;

use speed_student::StudentMethod;
use speed_teacher::Architecture;

// Large blocks come and go with every step of a training; the system's allocator gives them back and takes them again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    speed_cli::main_with(|| {
        Architecture::register::<teacher::Strided>("strided").expect("a name that is free");
        StudentMethod::register::<student::LabelsOnly>("labels-only").expect("a name that is free");
    })
}
