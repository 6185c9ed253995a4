//! Hostile clients: parties of the roster that violate the protocol, and clients that are not on it.

use std::error::Error;
use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use speed_core::Digest;
use speed_round::network::transport::Method;
use speed_round::network::{ClientOptions, connect};

use super::round::Round;

/// The attacks, by name.
const ATTACKS: [&str; 5] = ["malformed", "another's message", "too long", "too slow", "no TLS at all"];

/// Attacks until the honest teachers are done: every hostile party in turn, on a few threads. Returns the number of
/// refused attacks of each kind.
pub(crate) fn attack(
    round: &Round,
    address: &str,
    is_over: &AtomicBool,
) -> Result<Vec<(&'static str, usize)>, Box<dyn Error + Send + Sync>> {
    let threads = 10;
    let counts = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn(move || -> Result<[usize; ATTACKS.len()], Box<dyn Error + Send + Sync>> {
                    let mut refused = [0; ATTACKS.len()];
                    for turn in (thread..).step_by(threads) {
                        if is_over.load(Ordering::Relaxed) {
                            break;
                        }
                        let kind = turn % ATTACKS.len();
                        let party = round.teachers + turn % round.hostile;
                        refused[kind] += usize::from(one(round, address, kind, party)?);
                        std::thread::sleep(Duration::from_millis(100));
                    }
                    Ok(refused)
                })
            })
            .collect();
        runs.into_iter().map(|run| run.join().expect("attacks end")).collect::<Result<Vec<_>, _>>()
    })?;
    let sum = |kind: usize| counts.iter().map(|refused| refused[kind]).sum();
    Ok(ATTACKS.iter().enumerate().map(|(kind, name)| (*name, sum(kind))).collect())
}

/// Returns whether the attack was refused, or false if the server was not reachable. Fails if the attack succeeded.
fn one(round: &Round, address: &str, kind: usize, party: usize) -> Result<bool, Box<dyn Error + Send + Sync>> {
    let client = round.client(&party.to_string(), address, Duration::ZERO);
    match ATTACKS[kind] {
        "malformed" | "another's message" => {
            let victim = party % round.teachers;
            let mut bytes = fs::read(round.message(victim))?;
            if ATTACKS[kind] == "malformed" {
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
            }
            put(&client, Digest::of(&bytes), bytes.len() as u64, bytes)
        }
        "too long" => put(&client, Digest::of("endless"), 1 << 40, vec![0; 1 << 20]),
        slow_or_plain => {
            let Ok(mut stream) = TcpStream::connect(address) else { return Ok(false) };
            let bytes: &[u8] = if slow_or_plain == "too slow" { &[22, 3, 1] } else { b"GET /v3/log HTTP/1.1\r\n\r\n" };
            let _ = stream.write_all(bytes);
            std::thread::sleep(Duration::from_millis(500));
            Ok(true)
        }
    }
}

/// Sends bytes as a file of the given length, and returns whether they were refused.
fn put(
    client: &ClientOptions,
    digest: Digest,
    length: u64,
    bytes: Vec<u8>,
) -> Result<bool, Box<dyn Error + Send + Sync>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let Ok(mut connection) = connect(client).await else { return Ok(false) };
        let path = format!("/v3/messages/{}", digest.to_hex());
        let headers = [("upload-length", length.to_string()), ("upload-offset", "0".to_owned())];
        match connection.request(Method::PUT, &path, &headers, bytes.into(), 1 << 14).await {
            Ok(reply) if reply.status < 400 => Err("a hostile message was taken".into()),
            // Neither kept nor refused: the server asks to retry later.
            Ok(reply) => Ok(!matches!(reply.status, 408 | 429 | 503)),
            // The server replies and closes the connection before it has read bytes that it does not want.
            Err(_) => Ok(false),
        }
    })
}
