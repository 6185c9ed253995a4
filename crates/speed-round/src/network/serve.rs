//! The server of one round.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use serde::Serialize;
use speed_core::ExitCode;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::network::error::{expect_address, no_runtime};
use crate::network::keeper::Keeper;
use crate::network::limits::Limits;
use crate::network::metrics::Metrics;
use crate::network::monitoring::MonitoringListener;
use crate::network::routes::{self, parties};
use crate::network::served_round::ServedRound;
use crate::network::stage::Stage;
use crate::network::transport::server_config;
use crate::server::{Progress, Refusal, RoundServer, ServerOptions};
use crate::{Refused, RoundFile};

/// The options of a server of a round.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Keys, round, registry and ledger.
    pub server: ServerOptions,
    /// The address for the round's parties, `host:port`.
    pub listen: String,
    /// The address of /health and /metrics, without TLS, for monitoring; `None` disables them.
    pub watch: Option<String>,
    /// The time after the first start of the round at which the sum is closed, if the required teachers have answered;
    /// `None` waits for all teachers.
    pub wait: Option<Duration>,
    /// Whether the server exits once the student has the result.
    pub until_fetched: bool,
    /// Limits on clients.
    pub limits: Limits,
}

/// Events of a server, in addition to those of the argmax.
pub trait ServeProgress: Progress + Send {
    /// Reports the addresses on which the server listens, for parties and for monitoring.
    fn listens(&self, parties: SocketAddr, watchers: Option<SocketAddr>);
    /// Reports how many of the teachers' messages are kept.
    fn received(&self, count: usize, teachers: usize);
}

/// The final report of a server.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct ServeReport {
    /// The round's id.
    pub round: String,
    /// Whether the round is a simulation.
    pub simulation: bool,
    /// Number of teachers of the round.
    pub teachers: usize,
    /// Number of teachers whose messages are kept.
    pub received: usize,
    /// Whether the result exists.
    pub done: bool,
    /// Whether the student has the result.
    pub fetched: bool,
}

/// Serves a round: accepts messages until all teachers have answered, or after `wait` until the required number has.
/// Then computes the winners, and gives the result to the student and the log to all parties, until the student has the
/// result or the process is told to stop (SIGTERM, SIGINT). If killed at any moment, a restarted server resumes; every
/// acknowledged message is kept.
///
/// # Errors
/// If a file is missing or does not match, another program uses the registry, an address cannot be listened on, or a
/// step of the round fails.
pub fn serve(options: &ServeOptions, progress: Arc<dyn ServeProgress>) -> Result<ServeReport, Refused> {
    for address in [Some(&options.listen), options.watch.as_ref()].into_iter().flatten() {
        expect_address("listen on", address)?;
    }
    let server = Arc::new(RoundServer::open(options.server.clone())?);
    let tls = Arc::new(server_config(server.identity.signing_key(), &keys(&server.file))?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(no_runtime)?;
    let ended = runtime.block_on(run(options, &server, tls, progress));
    // Running checks end with the process.
    runtime.shutdown_background();
    ended
}

/// Returns the keys of all parties that may connect.
fn keys(file: &RoundFile) -> HashSet<[u8; 32]> {
    let roster = file.roster();
    roster.teachers().iter().chain([roster.student()]).map(|party| *party.key().as_bytes()).collect()
}

async fn run(
    options: &ServeOptions,
    server: &Arc<RoundServer>,
    tls: Arc<rustls::ServerConfig>,
    progress: Arc<dyn ServeProgress>,
) -> Result<ServeReport, Refused> {
    let (parties_at, watchers_at) = (
        listen(&options.listen).await?,
        match &options.watch {
            Some(address) => Some(listen(address).await?),
            None => None,
        },
    );
    progress.listens(address(&parties_at), watchers_at.as_ref().map(address));
    let keeper = Keeper::start(server.clone());
    let stage = watch::channel(if server.result()?.is_some() { Stage::Done } else { Stage::Open }).0;
    let (stop, stopped) = watch::channel(false);
    // Counted from the first start, which the registry records, so a restart does not extend the time.
    let deadline = deadline(server.opened()?, options.wait);
    let checks = options.server.threads.get();
    let served = Arc::new(ServedRound::new(server, &keeper, stage.subscribe(), options.limits.clone(), checks)?);
    if let Some(deadline) = deadline {
        let seconds = deadline.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        served.metrics.deadline.set(seconds);
        let left = deadline.duration_since(SystemTime::now()).unwrap_or_default().as_secs();
        tracing::info!(
            seconds_since_1970 = seconds,
            seconds_left = left,
            "then the sum is closed without those who are missing"
        );
    }
    let (limits, counters) = (options.limits.connections.clone(), served.connections.clone());
    let serving = tokio::spawn(crate::network::transport::serve(
        parties_at,
        tls,
        limits,
        parties(served.clone()),
        stopped.clone(),
        counters,
    ));
    let watching =
        watchers_at.map(|listener| tokio::spawn(watch_at(listener, routes::watchers(served.clone()), stopped)));

    let mut fetched = served.fetched.subscribe();
    let whole = async {
        if *stage.borrow() != Stage::Done {
            label(&served, keeper, deadline, &stage, &progress).await?;
        }
        tracing::info!(fetched = *fetched.borrow(), "the result is there");
        if options.until_fetched {
            let _ = fetched.wait_for(|fetched| *fetched).await;
            Ok(())
        } else {
            std::future::pending().await
        }
    };
    let outcome: Result<(), Refused> = tokio::select! {
        outcome = whole => outcome,
        () = stop_signal() => Ok(()),
    };
    stop.send_replace(true);
    let _ = serving.await;
    if let Some(watching) = watching {
        watching.abort();
    }
    outcome?;
    Ok(report(&served))
}

/// Returns when the sum may be closed without the remaining teachers. A first start in the future is ignored.
fn deadline(opened: SystemTime, wait: Option<Duration>) -> Option<SystemTime> {
    let now = SystemTime::now();
    if opened > now {
        tracing::warn!(
            "the round was first served in the future: a clock was wrong, then or now; --wait counts from now"
        );
    }
    opened.min(now).checked_add(wait?)
}

/// Waits for messages, closes the sum and computes the winners.
async fn label(
    served: &ServedRound,
    keeper: Keeper,
    deadline: Option<SystemTime>,
    stage: &watch::Sender<Stage>,
    progress: &Arc<dyn ServeProgress>,
) -> Result<(), Refused> {
    if !closing(&served.server, keeper.received.clone(), deadline, progress.as_ref()).await? {
        let stopped = || Refused::new(ExitCode::Computation, "messages can no longer be stored");
        return Err(keeper.failure().unwrap_or_else(stopped));
    }
    // Announces to the parties that the sum is closed, then stops accepting messages.
    stage.send_replace(Stage::Closed);
    served.keeper.close().await;
    let (server, shown) =
        (served.server.clone(), MeteredProgress { progress: progress.clone(), metrics: served.metrics.clone() });
    match tokio::task::spawn_blocking(move || server.evaluate_received(&shown)).await {
        Ok(counted) => tracing::info!(counted = counted?, "labelled"),
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
    stage.send_replace(Stage::Done);
    Ok(())
}

fn report(served: &ServedRound) -> ServeReport {
    let file = &served.server.file;
    ServeReport {
        round: file.id().to_hex(),
        simulation: file.round().is_simulation(),
        teachers: file.round().shape().teachers(),
        received: *served.received.borrow(),
        done: *served.stage.borrow() == Stage::Done,
        fetched: *served.fetched.borrow(),
    }
}

/// Waits until the sum may be closed: all teachers have answered, the time is over and the required number has, or it
/// is already closed. Returns false if the keeper has ended.
async fn closing(
    server: &RoundServer,
    mut received: watch::Receiver<usize>,
    deadline: Option<SystemTime>,
    progress: &dyn ServeProgress,
) -> Result<bool, Refused> {
    if server.is_closed()? {
        return Ok(true);
    }
    let (teachers, minimum) = (server.file.round().shape().teachers(), server.minimum);
    let over = async {
        match deadline {
            Some(deadline) => tokio::time::sleep(deadline.duration_since(SystemTime::now()).unwrap_or_default()).await,
            None => std::future::pending().await,
        }
    };
    let mut over = std::pin::pin!(over);
    let (mut is_over, mut reported) = (false, None);
    // The keeper's first value is the number of messages kept by earlier processes.
    if received.changed().await.is_err() {
        return Ok(false);
    }
    loop {
        let count = *received.borrow_and_update();
        if reported.replace(count) != Some(count) {
            progress.received(count, teachers);
        }
        if count >= teachers || (is_over && count >= minimum) {
            return Ok(true);
        }
        tokio::select! {
            changed = received.changed() => if changed.is_err() { return Ok(false) },
            () = &mut over, if !is_over => {
                is_over = true;
                if count < minimum {
                    tracing::warn!(count, minimum, "the time is over, and too few teachers have answered: waiting for more");
                }
            }
        }
    }
}

/// Progress of the argmax, which is both displayed and counted.
struct MeteredProgress {
    progress: Arc<dyn ServeProgress>,
    metrics: Arc<Metrics>,
}

impl Progress for MeteredProgress {
    fn refused(&self, refusal: &Refusal) {
        self.progress.refused(refusal);
    }

    fn begin(&self, queries: usize, done: usize) {
        self.metrics.queries.set(queries as u64);
        self.metrics.answered.set(done as u64);
        self.progress.begin(queries, done);
    }

    fn advance(&self, queries: usize) {
        self.metrics.answered.add(queries as u64);
        self.progress.advance(queries);
    }
}

async fn listen(address: &str) -> Result<TcpListener, Refused> {
    let refused = |error| Refused::new(ExitCode::InputOutput, format!("cannot listen on {address}: {error}"));
    TcpListener::bind(address).await.map_err(refused)
}

fn address(listener: &TcpListener) -> SocketAddr {
    listener.local_addr().unwrap_or_else(|_| SocketAddr::from(([0, 0, 0, 0], 0)))
}

/// Answers monitoring requests, without TLS, until the server stops.
async fn watch_at(listener: TcpListener, app: Router, mut stop: watch::Receiver<bool>) {
    let stopped = async move {
        let _ = stop.wait_for(|stop| *stop).await;
    };
    let _ = axum::serve(MonitoringListener::new(listener), app).with_graceful_shutdown(stopped).await;
}

static ENDS_BY_ITSELF: AtomicBool = AtomicBool::new(false);

/// Returns whether to leave a signal to stop (SIGTERM, SIGINT) to a server of this process, which ends by itself while it serves, but not
/// while it loads keys. This is so for the first signal only, and the caller alone counts: the server may see the signal before or after.
pub fn ends_by_itself() -> bool {
    ENDS_BY_ITSELF.swap(false, Ordering::AcqRel)
}

/// Waits for a signal to stop the process.
async fn stop_signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let (Ok(mut terminate), Ok(mut interrupt)) =
            (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
        {
            ENDS_BY_ITSELF.store(true, Ordering::Release);
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_counts_from_the_first_start_unless_that_is_in_the_future() {
        let (now, hour) = (SystemTime::now(), Duration::from_secs(3600));
        assert_eq!(deadline(now - hour, None), None);
        assert_eq!(deadline(now - hour, Some(2 * hour)), Some(now + hour));
        let wrong = deadline(now + 1000 * hour, Some(hour)).expect("a time");
        assert!(wrong >= now + hour && wrong < now + 2 * hour);
        // The time is over at once, whatever the clock was.
        assert!(deadline(now + 1000 * hour, Some(Duration::ZERO)).expect("a time") <= SystemTime::now());
    }
}
