//! One HTTP request whose body is appended to a file.

use std::io::Read;
use std::time::Duration;

use ureq::http::header::{CONTENT_RANGE, RANGE};
use ureq::http::{HeaderMap, StatusCode, Uri};
use ureq::{Agent, Proxy};

use super::event::FetchEvent;
use super::part::PartialFile;
use crate::DataError;

const RESOLVE: Duration = Duration::from_secs(15);
const CONNECT: Duration = Duration::from_secs(20);
const RESPONSE: Duration = Duration::from_secs(30);
/// A connection that is silent for this time counts as broken; a slow one has no time limit.
const SILENCE: Duration = Duration::from_secs(30);

/// The cause of a transfer that ended early.
pub(super) enum Stopped {
    /// The server or the network, with the reason. Bytes that arrived before are kept.
    Remote(String),
    /// The server cannot continue from the end of the file.
    BadRange,
    /// A fault of this machine.
    Local(DataError),
}

/// Requests the missing bytes of `part` and appends them, up to `limit` bytes in total. Returns whether earlier bytes
/// were kept.
pub(super) fn append(
    url: &str,
    part: &mut PartialFile,
    limit: u64,
    emit: &mut dyn FnMut(FetchEvent),
) -> Result<bool, Stopped> {
    let remote = |error: ureq::Error| Stopped::Remote(error.to_string());
    let mut request = agent(url).get(url);
    let from = part.len;
    if from > 0 {
        request = request.header(RANGE, format!("bytes={from}-"));
    }
    let mut response = match request.call() {
        Err(ureq::Error::StatusCode(416)) => return Err(Stopped::BadRange),
        other => other.map_err(remote)?,
    };
    let resumed = match response.status() {
        StatusCode::PARTIAL_CONTENT if range_start(response.headers()) == Some(from) => from > 0,
        StatusCode::PARTIAL_CONTENT => return Err(Stopped::BadRange),
        StatusCode::OK => {
            // The server ignores Range and sends everything.
            part.clear().map_err(Stopped::Local)?;
            false
        }
        status => return Err(Stopped::Remote(format!("expected HTTP status 200 or 206, found {}", status.as_u16()))),
    };

    let total = response.body().content_length().map(|rest| part.len.saturating_add(rest));
    if let Some(total) = total.filter(|&total| total > limit) {
        return Err(Stopped::Remote(format!("the file is too long: expected at most {limit} bytes, found {total}")));
    }
    let mut body = response.body_mut().as_reader();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = body.read(&mut buffer).map_err(|error| Stopped::Remote(format!("interrupted: {error}")))?;
        if count == 0 {
            return Ok(resumed);
        }
        if part.len + count as u64 > limit {
            part.clear().map_err(Stopped::Local)?;
            return Err(Stopped::Remote(format!("the file is too long: expected at most {limit} bytes")));
        }
        part.append(&buffer[..count]).map_err(Stopped::Local)?;
        emit(FetchEvent::Received { bytes: part.len, total });
    }
}

/// Returns the first byte of `Content-Range: bytes FIRST-LAST/TOTAL`.
fn range_start(headers: &HeaderMap) -> Option<u64> {
    let value = headers.get(CONTENT_RANGE)?.to_str().ok()?;
    value.trim().strip_prefix("bytes ")?.split('-').next()?.trim().parse().ok()
}

fn agent(url: &str) -> Agent {
    // A proxy in the environment is rarely meant for the machine itself.
    let proxy = if is_this_machine(url) { None } else { Proxy::try_from_env() };
    Agent::config_builder()
        .proxy(proxy)
        .user_agent(concat!("speed-data/", env!("CARGO_PKG_VERSION")))
        // The stored file must arrive byte for byte.
        .accept_encoding("identity")
        .timeout_resolve(Some(RESOLVE))
        .timeout_connect(Some(CONNECT))
        .timeout_recv_response(Some(RESPONSE))
        .timeout_per_read(Some(SILENCE))
        .build()
        .into()
}

fn is_this_machine(url: &str) -> bool {
    let host = url.parse::<Uri>().ok().and_then(|uri| uri.host().map(str::to_owned)).unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_addresses_are_recognised() {
        for url in ["http://127.0.0.1:80/x", "http://localhost/x", "https://[::1]:8080/"] {
            assert!(is_this_machine(url), "{url}");
        }
        for url in ["https://storage.googleapis.com/x", "http://128.0.0.1/", "http://localhost.example.com/", "?"] {
            assert!(!is_this_machine(url), "{url}");
        }
    }

    #[test]
    fn ranges_are_read_strictly() {
        let start = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_RANGE, value.parse().expect("a header value"));
            range_start(&headers)
        };
        assert_eq!(start("bytes 10-19/20"), Some(10));
        assert_eq!(start("bytes 0-19/*"), Some(0));
        for bad in ["10-19/20", "bytes */20", "bytes -5", "items 1-2/3"] {
            assert_eq!(start(bad), None, "{bad}");
        }
        assert_eq!(range_start(&HeaderMap::new()), None);
    }
}
