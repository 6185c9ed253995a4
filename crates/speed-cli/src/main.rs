//! `speed`: private collaborative deep learning from the command line.

// Every step of a training allocates and frees large blocks; the system's allocator would return them to the system and
// request them again.
#[global_allocator]
static ALLOCATOR: speed_nn::allocator::Allocator = speed_nn::allocator::ALLOCATOR;

fn main() -> std::process::ExitCode {
    speed_nn::allocator::keep_freed_memory();
    speed_cli::main()
}
