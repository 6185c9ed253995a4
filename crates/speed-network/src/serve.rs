//! A server of one round.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use serde::Serialize;
use speed_roles::server::{Progress, Refusal, RoundServer, ServerOptions};
use speed_roles::{Roster, RoundFile};
use speed_transport::server_config;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::desk::Desk;
use crate::error::{NetworkError, expect_address};
use crate::keeper::Keeper;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::routes::{self, parties};
use crate::stage::Stage;
use crate::watchers::Few;

/// The options of a server of a round.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Keys, round, registry and ledger.
    pub server: ServerOptions,
    /// The address for the round's parties, `host:port`.
    pub listen: String,
    /// The address of /health and /metrics, without TLS, for those who watch the server; none without it.
    pub watch: Option<String>,
    /// The time after the round was first served at which the sum is closed with the teachers that must answer; without it all are waited for.
    pub wait: Option<Duration>,
    /// Whether the server ends once the student has the result.
    pub until_fetched: bool,
    /// Limits on clients.
    pub limits: Limits,
}

/// Events of a server, beside those of the argmax.
pub trait ServeProgress: Progress + Send {
    /// Tells where the server listens: for parties, and for those who watch it.
    fn listens(&self, parties: SocketAddr, watchers: Option<SocketAddr>);
    /// Tells how many of the teachers' messages are kept.
    fn received(&self, count: usize, teachers: usize);
}

/// The report of a server that ended.
#[derive(Debug, Serialize)]
pub struct ServeReport {
    /// The round's id.
    pub round: String,
    /// True if the round is a simulation.
    pub simulation: bool,
    /// Teachers of the round.
    pub teachers: usize,
    /// Teachers whose messages are kept.
    pub received: usize,
    /// True if the result is there.
    pub done: bool,
    /// True if the student has it.
    pub fetched: bool,
}

/// Serves a round: takes messages until all teachers have answered, or after `wait` as many as must, computes the winners, and gives the result to the
/// student and the log to all parties, until the student has the result or the process is told to stop (SIGTERM, SIGINT). Killed at any moment and
/// called again it goes on: what it acknowledged is kept.
///
/// # Errors
/// If a file is missing or does not fit, another program works with the registry, nothing can listen there, or a step of the round fails.
pub fn serve(options: &ServeOptions, progress: Arc<dyn ServeProgress>) -> Result<ServeReport, NetworkError> {
    for address in [Some(&options.listen), options.watch.as_ref()].into_iter().flatten() {
        expect_address("listen on", address)?;
    }
    let server = Arc::new(RoundServer::open(options.server.clone())?);
    let tls = Arc::new(server_config(server.identity().signing_key(), &keys(server.file()))?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(NetworkError::Runtime)?;
    let ended = runtime.block_on(run(options, &server, tls, progress));
    // Checks that still run end with the process.
    runtime.shutdown_background();
    ended
}

/// Returns the keys of everyone who may connect.
fn keys(file: &RoundFile) -> HashSet<[u8; 32]> {
    let roster: &Roster = file.roster();
    roster.teachers().iter().chain([roster.student()]).map(|party| *party.key().as_bytes()).collect()
}

async fn run(
    options: &ServeOptions,
    server: &Arc<RoundServer>,
    tls: Arc<rustls::ServerConfig>,
    progress: Arc<dyn ServeProgress>,
) -> Result<ServeReport, NetworkError> {
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
    // From the first start on, which the registry knows: whoever restarts the server gains no time.
    let deadline = deadline(server.opened()?, options.wait);
    let checks = options.server.threads.get();
    let desk = Arc::new(Desk::new(server, &keeper, stage.subscribe(), options.limits.clone(), checks)?);
    if let Some(deadline) = deadline {
        let seconds = deadline.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        desk.metrics.deadline.set(seconds);
        let left = deadline.duration_since(SystemTime::now()).unwrap_or_default().as_secs();
        tracing::info!(
            seconds_since_1970 = seconds,
            seconds_left = left,
            "then the sum is closed without those who are missing"
        );
    }
    let (limits, counters) = (options.limits.connections.clone(), desk.connections.clone());
    let serving =
        tokio::spawn(speed_transport::serve(parties_at, tls, limits, parties(desk.clone()), stopped.clone(), counters));
    let watching =
        watchers_at.map(|listener| tokio::spawn(watch_at(listener, routes::watchers(desk.clone()), stopped)));

    let mut fetched = desk.fetched.subscribe();
    let whole = async {
        if *stage.borrow() != Stage::Done {
            label(&desk, keeper, deadline, &stage, &progress).await?;
        }
        tracing::info!(fetched = *fetched.borrow(), "the result is there");
        if options.until_fetched {
            let _ = fetched.wait_for(|fetched| *fetched).await;
            Ok(())
        } else {
            std::future::pending().await
        }
    };
    let outcome: Result<(), NetworkError> = tokio::select! {
        outcome = whole => outcome,
        () = told_to_stop() => Ok(()),
    };
    stop.send_replace(true);
    let _ = serving.await;
    if let Some(watching) = watching {
        watching.abort();
    }
    outcome?;
    Ok(report(&desk))
}

/// Returns when the sum may be closed without the others. A first start in the future counts for nothing.
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
    desk: &Desk,
    keeper: Keeper,
    deadline: Option<SystemTime>,
    stage: &watch::Sender<Stage>,
    progress: &Arc<dyn ServeProgress>,
) -> Result<(), NetworkError> {
    if !closing(&desk.server, keeper.received.clone(), deadline, progress.as_ref()).await? {
        return Err(keeper.failure().map_or(NetworkError::Stopped, NetworkError::from));
    }
    // The parties learn that it is closed; then nothing more comes in.
    stage.send_replace(Stage::Closed);
    desk.keeper.close().await;
    let (server, shown) = (desk.server.clone(), Shown { progress: progress.clone(), metrics: desk.metrics.clone() });
    match tokio::task::spawn_blocking(move || server.evaluate_received(&shown)).await {
        Ok(counted) => tracing::info!(counted = counted?, "labelled"),
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
    stage.send_replace(Stage::Done);
    Ok(())
}

fn report(desk: &Desk) -> ServeReport {
    let file = desk.server.file();
    ServeReport {
        round: file.id().to_hex(),
        simulation: file.round().is_simulation(),
        teachers: file.roster().teachers().len(),
        received: *desk.received.borrow(),
        done: *desk.stage.borrow() == Stage::Done,
        fetched: *desk.fetched.borrow(),
    }
}

/// Waits until the sum may be closed: all teachers have answered, or the time is over and as many as must have; or it is closed already. Returns false if
/// nobody keeps messages any more.
async fn closing(
    server: &RoundServer,
    mut received: watch::Receiver<usize>,
    deadline: Option<SystemTime>,
    progress: &dyn ServeProgress,
) -> Result<bool, NetworkError> {
    if server.is_closed()? {
        return Ok(true);
    }
    let (teachers, minimum) = (server.file().roster().teachers().len(), server.minimum());
    let over = async {
        match deadline {
            Some(deadline) => tokio::time::sleep(deadline.duration_since(SystemTime::now()).unwrap_or_default()).await,
            None => std::future::pending().await,
        }
    };
    let mut over = std::pin::pin!(over);
    let (mut is_over, mut told) = (false, None);
    // The keeper says first how many an earlier process kept.
    if received.changed().await.is_err() {
        return Ok(false);
    }
    loop {
        let count = *received.borrow_and_update();
        if told.replace(count) != Some(count) {
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

/// What is shown of the argmax, counted as well.
struct Shown {
    progress: Arc<dyn ServeProgress>,
    metrics: Arc<Metrics>,
}

impl Progress for Shown {
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

async fn listen(address: &str) -> Result<TcpListener, NetworkError> {
    TcpListener::bind(address).await.map_err(|source| NetworkError::Listen { address: address.to_owned(), source })
}

fn address(listener: &TcpListener) -> SocketAddr {
    listener.local_addr().unwrap_or_else(|_| SocketAddr::from(([0, 0, 0, 0], 0)))
}

/// The most connections of those who watch.
const WATCHERS: usize = 32;

/// Answers those who watch, without TLS, until the server stops.
async fn watch_at(listener: TcpListener, app: Router, mut stop: watch::Receiver<bool>) {
    let stopped = async move {
        let _ = stop.wait_for(|stop| *stop).await;
    };
    let _ = axum::serve(Few::new(listener, WATCHERS), app).with_graceful_shutdown(stopped).await;
}

/// Waits for the process to be told to stop.
async fn told_to_stop() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let (Ok(mut terminate), Ok(mut interrupt)) =
            (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
        {
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
        // Nothing is waited for, whatever the clock was.
        assert!(deadline(now + 1000 * hour, Some(Duration::ZERO)).expect("a time") <= SystemTime::now());
    }
}
