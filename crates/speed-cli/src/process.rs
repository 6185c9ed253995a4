//! Process settings of the commands.

#[cfg(unix)]
use speed_core::ExitCode;

/// Sets what every command needs: no core dump, and an end on signals.
#[cfg(unix)]
pub(crate) fn begin() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    // Jobs that this process submits may raise the limit again.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), ..getrlimit(Resource::Core) });
    end_on_signals();
}

#[cfg(not(unix))]
pub(crate) fn begin() {}

/// Keeps other processes of the same user out of this process's memory, which holds keys, votes or noise of a round. Best effort: a system may
/// refuse. Not for runs: where `/proc` is hidden, their shards could not see that this process lives.
pub(crate) fn hide_memory() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// Ends the process on SIGINT and SIGTERM, with the exit codes of a process that they kill. The system ignores both for process 1, as in a
/// container, unless there is a handler. Work can be ended at any moment; a server that serves ends by itself.
#[cfg(unix)]
fn end_on_signals() {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) else { return };
    let wait = move || {
        for signal in signals.forever() {
            if !speed_round::network::ends_by_itself() {
                let code = if signal == SIGINT { ExitCode::Interrupted } else { ExitCode::Terminated };
                std::process::exit(code.code().into());
            }
        }
    };
    if std::thread::Builder::new().name("signals".into()).spawn(wait).is_err() {
        // The handlers would swallow the signals.
        std::process::exit(ExitCode::Computation.code().into());
    }
}
