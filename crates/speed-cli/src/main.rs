//! `speed`: private collaborative deep learning from the command line.

// Large blocks come and go with every step of a training; the system's allocator gives them back and takes them again.
#[global_allocator]
static ALLOCATOR: speed_allocator::Allocator = speed_allocator::ALLOCATOR;

fn main() -> std::process::ExitCode {
    speed_allocator::keep_freed_memory();
    speed_cli::main()
}
