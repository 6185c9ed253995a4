//! The requests of teachers and student to a round's server.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustls::ClientConfig;
use serde::Serialize;
use speed_aggregation::log::{Receipt, RoundLog};
use speed_aggregation::protocol::{SignedResult, Submission};
use speed_core::{Digest, ExitCode};

use crate::checks::{check_receipt, check_result, read_message};
use crate::network::error::{Fault, expect_address, no_runtime};
use crate::network::routes::{LENGTH, OFFSET};
use crate::network::stage::RoundState;
use crate::network::transport::{Client, Method, Reply, client_config};
use crate::{Identity, Refused, RoundFile, write_once};

/// The options of every client.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The party's signing key.
    pub signing_key: PathBuf,
    /// The round's file, which identifies the server.
    pub round: PathBuf,
    /// The server's address, `host:port`.
    pub server: String,
    /// How long to retry a server that is unreachable, busy or not finished.
    pub patience: Duration,
}

/// The report of a teacher that sent its message.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct SendReport {
    /// The round's id.
    pub round: String,
    /// Bytes of the message.
    pub bytes: usize,
    /// Number of connections used.
    pub connections: usize,
    /// The file with the server's receipt.
    pub receipt: PathBuf,
}

/// The report of a party that fetched a file.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct FetchReport {
    /// The round's id.
    pub round: String,
    /// The file written.
    pub out: PathBuf,
    /// Its length in bytes.
    pub bytes: usize,
}

/// Sends a teacher's message and writes the server's receipt. An interrupted upload resumes. The same message may be
/// sent any number of times, and counts once.
///
/// # Errors
/// If a file is missing or does not match, the server cannot be reached in time, or it refuses the message.
pub fn send(options: &ClientOptions, message: &Path, receipt: &Path) -> Result<SendReport, Refused> {
    let caller = Caller::new(options)?;
    let bytes = read_message(message, &caller.file)?;
    let submission = Submission::from_bytes(&bytes).map_err(Refused::input(message))?;
    let mut connections = 0;
    let found = caller.ask(async |caller| {
        connections += 1;
        caller.upload(&bytes).await
    })?;
    check_receipt(&found, &caller.file, submission.message().teacher(), Digest::of(&bytes))
        .map_err(Refused::input(receipt))?;
    write_once(receipt, &found.to_bytes())?;
    let round = caller.file.id().to_hex();
    Ok(SendReport { round, bytes: bytes.len(), connections, receipt: receipt.to_path_buf() })
}

/// Fetches the result of a round, which the server gives only to the student. Waits for the result if necessary.
///
/// # Errors
/// If a file is missing or does not match, the server cannot be reached in time or has no result by then, or the result
/// is not the round's.
pub fn fetch(options: &ClientOptions, out: &Path) -> Result<FetchReport, Refused> {
    let caller = Caller::new(options)?;
    let most = SignedResult::size(caller.file.round());
    let bytes = caller.ask(async |caller| caller.download("/v3/result", most).await)?;
    let result = SignedResult::from_bytes(&bytes).map_err(|_| caller.refused(&Fault::invalid("result")))?;
    check_result(&result, &caller.file).map_err(Refused::input(out))?;
    write_once(out, &bytes)?;
    // The result has arrived even if the server does not learn of it.
    let _ = caller.ask(async |caller| {
        let mut connection = caller.connect().await?;
        Ok::<Reply, Fault>(connection.request(Method::PUT, "/v3/fetched", &[], Bytes::new(), SMALL).await?)
    });
    Ok(FetchReport { round: caller.file.id().to_hex(), out: out.to_path_buf(), bytes: bytes.len() })
}

/// Fetches the log of a round, which the server gives to every party.
///
/// # Errors
/// If a file is missing or does not match, the server cannot be reached in time, or the reply is not a log.
pub fn fetch_log(options: &ClientOptions, out: &Path) -> Result<FetchReport, Refused> {
    let caller = Caller::new(options)?;
    let bytes = caller.ask(async |caller| caller.download("/v3/log", RoundLog::MAX_BYTES).await)?;
    RoundLog::from_bytes(&bytes).map_err(|_| caller.refused(&Fault::invalid("log")))?;
    write_once(out, &bytes)?;
    Ok(FetchReport { round: caller.file.id().to_hex(), out: out.to_path_buf(), bytes: bytes.len() })
}

/// Connects a party to its round's server.
///
/// # Errors
/// If a file is missing or does not match, the server cannot be reached, or it is a different server.
pub async fn connect(options: &ClientOptions) -> Result<Client, Refused> {
    let caller = Caller::new(options)?;
    caller.connect().await.map_err(|fault| caller.refused(&fault))
}

/// Maximum bytes of a reply that is not a file.
const SMALL: usize = 16 << 10;
/// Timeout of a connection or a request.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A party that sends requests to a server.
struct Caller {
    file: RoundFile,
    server: String,
    tls: Arc<ClientConfig>,
    patience: Duration,
}

impl Caller {
    fn new(options: &ClientOptions) -> Result<Self, Refused> {
        let file = RoundFile::read(&options.round)?;
        expect_address("reach a server at", &options.server)?;
        let tls = client_config(
            Identity::read(&options.signing_key)?.signing_key(),
            *file.roster().server().key().as_bytes(),
        )?;
        Ok(Self { file, server: options.server.clone(), tls: Arc::new(tls), patience: options.patience })
    }

    fn refused(&self, fault: &Fault) -> Refused {
        Refused::fault(format_args!("{}: {fault}", self.server))
    }

    /// Retries until there is an answer, a refusal, or no time left. An attempt ends with this time too, or after the time of one request if that
    /// is longer, whatever the server answers. Pauses grow by a factor of 1.5 from 0.1 s to 5 s.
    fn ask<T>(&self, mut ask: impl AsyncFnMut(&Self) -> Result<T, Fault>) -> Result<T, Refused> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(no_runtime)?;
        runtime.block_on(async {
            let (start, mut pause) = (Instant::now(), Duration::from_millis(100));
            loop {
                let left = self.patience.saturating_sub(start.elapsed()).max(TIMEOUT);
                let answer = tokio::time::timeout(left, ask(self)).await.unwrap_or(Err(Fault::Late));
                match answer {
                    Ok(answer) => return Ok(answer),
                    Err(fault) if !fault.is_passing() => return Err(self.refused(&fault)),
                    Err(fault) if matches!(fault, Fault::Late) || start.elapsed() + pause > self.patience => {
                        let message = format!("{}: {fault} (tried for {:.0?})", self.server, start.elapsed());
                        return Err(Refused::new(ExitCode::InputOutput, message));
                    }
                    Err(fault) => tracing::debug!(server = %self.server, %fault, "asking again"),
                }
                tokio::time::sleep(pause).await;
                pause = (3 * pause / 2).min(Duration::from_secs(5));
            }
        })
    }

    async fn connect(&self) -> Result<Client, Fault> {
        Ok(Client::connect(&self.server, self.tls.clone(), TIMEOUT).await?)
    }

    /// Checks that the server serves this round and not another of its rounds.
    async fn check_round(&self, connection: &mut Client) -> Result<(), Fault> {
        let reply = connection.request(Method::GET, "/v3/round", &[], Bytes::new(), SMALL).await?;
        let state: RoundState = serde_json::from_slice(&success(reply)?.body).map_err(|_| Fault::invalid("round"))?;
        let expected = self.file.id().to_hex();
        if state.round == expected {
            Ok(())
        } else {
            let found = speed_core::printable(&state.round.chars().take(64).collect::<String>());
            Err(Fault::Answer(format!("serves round {found}, expected {expected}")))
        }
    }

    async fn upload(&self, bytes: &[u8]) -> Result<Receipt, Fault> {
        let mut connection = self.connect().await?;
        self.check_round(&mut connection).await?;
        let path = format!("/v3/messages/{}", Digest::of(bytes).to_hex());
        let reply = connection.request(Method::GET, &path, &[], Bytes::new(), SMALL).await?;
        let (mut offset, mut stuck) = (offset(&success(reply)?)?, 0);
        // Only bytes that no answer counted before are progress: a server may alternate between offsets.
        let mut most = offset;
        while stuck < 8 {
            let rest = bytes.get(offset..).ok_or_else(|| Fault::invalid("offset"))?;
            let headers = [(LENGTH, bytes.len().to_string()), (OFFSET, offset.to_string())];
            let reply = connection.request(Method::PUT, &path, &headers, Bytes::copy_from_slice(rest), SMALL).await?;
            match reply.status {
                201 => return Receipt::from_bytes(&reply.body).map_err(|_| Fault::invalid("receipt")),
                202 | 409 => {
                    let found = self::offset(&reply)?;
                    stuck = if found > most { 0 } else { stuck + 1 };
                    (offset, most) = (found, most.max(found));
                }
                _ => return Err(success(reply).err().unwrap_or_else(|| Fault::invalid("receipt"))),
            }
        }
        Err(Fault::invalid("progress"))
    }

    async fn download(&self, path: &str, most: usize) -> Result<Vec<u8>, Fault> {
        let mut connection = self.connect().await?;
        self.check_round(&mut connection).await?;
        let reply = connection.request(Method::GET, path, &[], Bytes::new(), most.max(SMALL)).await?;
        match reply.status {
            202 => Err(Fault::Busy("the result is not ready yet".to_owned())),
            _ => Ok(success(reply)?.body),
        }
    }
}

/// Parses the number of bytes that the server has.
fn offset(reply: &Reply) -> Result<usize, Fault> {
    let text = std::str::from_utf8(&reply.body).ok();
    text.and_then(|text| text.parse().ok()).ok_or_else(|| Fault::invalid("offset"))
}

fn success(reply: Reply) -> Result<Reply, Fault> {
    let message =
        || speed_core::printable(&String::from_utf8_lossy(&reply.body).chars().take(1000).collect::<String>());
    match reply.status {
        200..300 => Ok(reply),
        408 | 429 | 503 => Err(Fault::Busy(message())),
        status => Err(Fault::Answer(format!("answers {status}: {}", message()))),
    }
}
