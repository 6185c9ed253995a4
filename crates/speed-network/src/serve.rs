//! A server of one round.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use serde::Serialize;
use speed_roles::server::{Progress, Refusal, RoundServer, ServerOptions};
use speed_roles::{Roster, RoundFile};
use speed_transport::{Counters, server_config};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use crate::error::NetworkError;
use crate::keeper::Keeper;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::rates::Rates;
use crate::routes::{Desk, parties, watchers};
use crate::stage::Stage;
use crate::uploads::Uploads;

/// The options of a server of a round.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Keys, round, registry and ledger.
    pub server: ServerOptions,
    /// The address for the round's parties, `host:port`.
    pub listen: String,
    /// The address of /health and /metrics, without TLS, for those who watch the server; none without it.
    pub watch: Option<String>,
    /// The time after which the sum is closed with the teachers that must answer; without it all are waited for.
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
    let first = if server.result()?.is_some() { Stage::Done } else { Stage::Open };
    let (keeper, (stage, fetched), metrics) =
        (Keeper::start(server.clone()), (watch::channel(first), watch::channel(false)), Arc::new(Metrics::default()));
    let connections = Arc::new(Counters::default());
    let desk = Arc::new(Desk {
        server: server.clone(),
        keeper: keeper.handle(),
        received: keeper.received.clone(),
        stage: stage.1.clone(),
        fetched: fetched.0.clone(),
        uploads: Uploads::new(options.limits.unfinished.max(16 * server.max_message())),
        rates: Rates::new(options.limits.burst, options.limits.rate),
        limits: options.limits.clone(),
        checks: Semaphore::new(options.server.threads.get()),
        metrics: metrics.clone(),
        connections: connections.clone(),
    });
    let (stop, stopped) = watch::channel(false);
    let (address, listening) = {
        let listener = listen(&options.listen).await?;
        let (limits, app) = (options.limits.connections.clone(), parties(desk.clone()));
        let address = address(&listener);
        (address, tokio::spawn(speed_transport::serve(listener, tls, limits, app, stopped.clone(), connections)))
    };
    let watching = match &options.watch {
        Some(address) => Some(watch_at(address, watchers(desk.clone()), stopped).await?),
        None => None,
    };
    progress.listens(address, watching.as_ref().map(|(address, _)| *address));
    drop(desk);

    let (received, handle) = (keeper.received.clone(), keeper.handle());
    let evaluated = async {
        if !closing(server, received.clone(), options.wait, progress.as_ref()).await? {
            return Err(keeper.failure().map_or(NetworkError::Stopped, NetworkError::from));
        }
        // The parties learn that it is closed; then nothing more comes in.
        stage.0.send_replace(Stage::Closed);
        handle.close().await;
        let (server, shown) = (server.clone(), Shown { progress: progress.clone(), metrics: metrics.clone() });
        let evaluate = tokio::task::spawn_blocking(move || server.evaluate_received(&shown));
        match evaluate.await {
            Ok(result) => result.map_err(NetworkError::from)?,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        };
        stage.0.send_replace(Stage::Done);
        Ok::<(), NetworkError>(())
    };
    let mut fetching = fetched.1.clone();
    let whole = async {
        if first != Stage::Done {
            evaluated.await?;
        }
        tracing::info!("the result is there");
        if options.until_fetched {
            let _ = fetching.wait_for(|fetched| *fetched).await;
        } else {
            std::future::pending::<()>().await;
        }
        Ok(())
    };
    let outcome: Result<(), NetworkError> = tokio::select! {
        outcome = whole => outcome,
        () = told_to_stop() => Ok(()),
    };
    let received = *received.borrow();
    stop.send_replace(true);
    let _ = listening.await;
    if let Some((_, watching)) = watching {
        watching.abort();
    }
    outcome?;
    let done = *stage.1.borrow() == Stage::Done;
    let file = server.file();
    Ok(ServeReport {
        round: file.id().to_hex(),
        simulation: file.round().is_simulation(),
        teachers: file.roster().teachers().len(),
        received,
        done,
        fetched: *fetched.1.borrow(),
    })
}

/// Waits until the sum may be closed: all teachers have answered, or the time is over and as many as must have; or it is closed already. Returns false if
/// nobody keeps messages any more.
async fn closing(
    server: &RoundServer,
    mut received: watch::Receiver<usize>,
    wait: Option<Duration>,
    progress: &dyn ServeProgress,
) -> Result<bool, NetworkError> {
    if server.is_closed()? {
        return Ok(true);
    }
    let (teachers, minimum) = (server.file().roster().teachers().len(), server.minimum());
    let over = async {
        match wait {
            Some(wait) => tokio::time::sleep(wait).await,
            None => std::future::pending().await,
        }
    };
    let mut over = std::pin::pin!(over);
    let mut is_over = false;
    loop {
        let count = *received.borrow_and_update();
        progress.received(count, teachers);
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

/// Answers those who watch, without TLS.
async fn watch_at(
    place: &str,
    app: Router,
    mut stop: watch::Receiver<bool>,
) -> Result<(SocketAddr, JoinHandle<()>), NetworkError> {
    let listener = listen(place).await?;
    let address = address(&listener);
    let serving = tokio::spawn(async move {
        let stopped = async move {
            let _ = stop.wait_for(|stop| *stop).await;
        };
        let _ = axum::serve(listener, app).with_graceful_shutdown(stopped).await;
    });
    Ok((address, serving))
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
