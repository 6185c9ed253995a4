//! What every command does to its process before its work.

#[cfg(unix)]
use speed_core::ExitCode;

#[cfg(unix)]
pub(crate) fn begin() {
    protect_memory();
    end_on_signals();
}

#[cfg(not(unix))]
pub(crate) fn begin() {}

/// Keeps keys, votes and noise out of core dumps, and other processes of the same user out of this process's memory. Best effort: a system
/// may refuse.
#[cfg(unix)]
fn protect_memory() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// Ends the process on SIGINT and SIGTERM, with the exit codes of a process that they kill. The system ignores both for process 1, as in a
/// container, unless there is a handler. Work can be ended at any moment; a server that serves ends by itself.
#[cfg(unix)]
fn end_on_signals() {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let wait = || {
        let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) else { return };
        for signal in signals.forever() {
            if !speed_network::ends_by_itself() {
                let code = if signal == SIGINT { ExitCode::Interrupted } else { ExitCode::Terminated };
                std::process::exit(code.code().into());
            }
        }
    };
    // Without the thread there are no handlers, and the signals do what they do by default.
    let _ = std::thread::Builder::new().name("signals".into()).spawn(wait);
}
