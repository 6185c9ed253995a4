//! `speed`: private collaborative deep learning from the command line.

// Large blocks come and go with every step of a training; the system's allocator gives them back and takes them again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    speed_cli::main()
}
