//! The command line: its help, and the option of all commands.

use clap::Parser;
use speed_core::ExitCode;

use crate::commands::Command;

const ABOUT: &str = "Private collaborative deep learning: SPEED (Grivet Sébert et al.) in Rust";

const LONG_ABOUT: &str = "\
Private collaborative deep learning: SPEED (Grivet Sébert et al.) in Rust.

n data holders train private teachers. For every public query each teacher votes, adds its share of noise and encrypts \
the noisy vote under the student's key. A server sums the ciphertexts and computes the argmax without seeing a plaintext. \
The student decrypts the winning label and learns from it. An accountant computes the privacy cost.";

const FIRST_STEPS: &str = "\
First steps:
  speed run configs/quickstart.toml     built-in digits, a minute, no download
  speed data fetch mnist                the MNIST files into datasets/mnist
  speed run configs/mnist.toml          the paper's table
  speed list                            all runs
  speed show mnist --follow             progress of a run in another terminal
  speed show mnist --json               a finished run, for a program
  speed predict --model FILE IMAGES     labels from a trained student
  speed export --model FILE --out m.onnx    the model for other programs
  speed data example --out trial        pictures for docs/first-model.md
  speed compare RUN RUN --paper         runs side by side, with the paper
  speed account --votes VOTES.npy --gamma 0.1 --delta 1e-5    privacy cost

A labelling round between organisations (docs/hospitals.md; student and server
must not work together):
  speed student keygen --out keys           keys: secret.key stays, public.key
                                            to teachers, evaluation.key to the
                                            server
  speed student round ... --out round.toml  the terms; to everyone
  speed round round.toml                    each party: check terms and price
  speed teacher train ... --out FILE        each teacher: a model of its own
  speed teacher vote ... --out votes.csv    images, and its votes
  speed teacher answer ... --out FILE       each teacher: noisy votes,
                                            encrypted; to the server
  speed server aggregate ... --out result   the server: encrypted winners; to
                                            the student
  speed server verify ... --out FILE        a teacher: computes the answers again
  speed student open ... --out labels.csv   labels
  speed student train ... --out FILE        the student: a model from the labels
  The same over a network: speed server serve, teacher send, teacher log,
  teacher check, student fetch

To resume an interrupted run, repeat its command.

Exit codes:";

/// Returns the text after the help: first steps, and the exit codes.
fn after_help() -> String {
    let code = |code: ExitCode| format!("\n  {:>3}  {}", code.code(), code.meaning());
    format!("{FIRST_STEPS}{}", ExitCode::ALL.map(code).concat())
}

/// Private collaborative deep learning.
#[derive(Debug, Parser)]
#[command(name = "speed", version, about = ABOUT, long_about = LONG_ABOUT, after_help = after_help())]
#[command(arg_required_else_help = true, max_term_width = 110)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Do not report progress and notes; errors and warnings about data are still reported
    #[arg(long, short, global = true, display_order = 900)]
    pub(crate) quiet: bool,
}
