//! The client's side: one connection, one request after another.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, Uri};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinHandle;
use tokio::time::timeout as within;
use tokio_rustls::TlsConnector;

use crate::network::transport::error::{ClientError, tls_cause};

/// How long to wait for a connection's own error after a request on it has failed.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A connection to the server. A failed request ends it, and the server ends it after 10 s without a request
/// ([`ConnectionLimits::header_timeout`](crate::network::transport::ConnectionLimits::header_timeout)), so a client that waits longer must
/// reconnect.
#[derive(Debug)]
pub struct Client {
    address: String,
    timeout: Duration,
    sender: SendRequest<Full<Bytes>>,
    connection: Option<JoinHandle<hyper::Result<()>>>,
}

/// The reply to a request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Reply {
    /// The status code (RFC 9110, section 15).
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
}

impl Client {
    /// Connects to `address`, a host and a port, at the first of the host's addresses where the server of `tls`
    /// answers. `timeout` limits the time for all addresses together, and later for each request. If there are several
    /// addresses, each gets an equal share of the remaining time.
    ///
    /// A server that does not know this client's key reports it after the client's part of the handshake (RFC 8446,
    /// section 4.4), so the first request returns [`ClientError::NotOnRoster`].
    ///
    /// # Errors
    /// If no address answers in time, or a server other than that of `tls` does. If several addresses fail, a failure
    /// of TLS takes precedence.
    pub async fn connect(address: &str, tls: Arc<ClientConfig>, timeout: Duration) -> Result<Self, ClientError> {
        let late = || ClientError::Timeout { awaited: "connection", after: timeout };
        let refused = |source| ClientError::Connect { source };
        let start = Instant::now();
        let found = within(timeout, lookup_host(address)).await.map_err(|_| late())?.map_err(refused)?;
        let found: Vec<SocketAddr> = found.collect();
        let connector = TlsConnector::from(tls);
        let mut failure = refused(io::Error::new(io::ErrorKind::NotFound, "the name resolves to no address"));
        for (tried, ip) in found.iter().enumerate() {
            let shares = u32::try_from(found.len() - tried).unwrap_or(u32::MAX);
            let share = timeout.saturating_sub(start.elapsed()) / shares;
            let attempt = within(share, connect_one(*ip, &connector));
            match attempt.await.unwrap_or_else(|_| Err(late())) {
                Ok((sender, connection)) => {
                    return Ok(Self { address: address.to_owned(), timeout, sender, connection: Some(connection) });
                }
                Err(error) => {
                    // An answer from another server is more informative than no answer.
                    if matches!(failure, ClientError::Connect { .. } | ClientError::Timeout { .. }) {
                        failure = error;
                    }
                }
            }
        }
        Err(failure)
    }

    /// Sends a request and returns its reply with any status. `path` starts with `/`; the header `Host` is the address.
    ///
    /// # Errors
    /// If path or headers are invalid; if the reply is late or its body is longer than `max_reply` bytes; if the
    /// connection ends, with [`ClientError::NotOnRoster`] if the server does not know this client's key.
    pub async fn request(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, String)],
        body: Bytes,
        max_reply: usize,
    ) -> Result<Reply, ClientError> {
        let request = self.build(method, path, headers, body)?;
        let reply = within(self.timeout, self.exchange(request, max_reply)).await;
        let reply = reply.unwrap_or(Err(ClientError::Timeout { awaited: "reply", after: self.timeout }));
        if reply.is_err() {
            // The rest of this reply must not be mistaken for the next one.
            self.close();
        }
        reply
    }

    fn build(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, String)],
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>, ClientError> {
        let refused = |text: &str| ClientError::Request { found: text.chars().take(80).collect() };
        let uri = Uri::try_from(path).ok().filter(|_| path.starts_with('/')).ok_or_else(|| refused(path))?;
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        let host = HeaderValue::from_str(&self.address).map_err(|_| refused(&self.address))?;
        request.headers_mut().insert(HOST, host);
        for (name, value) in headers {
            let header = HeaderName::try_from(*name).ok().zip(HeaderValue::try_from(value).ok());
            let (key, value) = header.ok_or_else(|| refused(&format!("{name}: {value}")))?;
            request.headers_mut().append(key, value);
        }
        Ok(request)
    }

    async fn exchange(&mut self, request: Request<Full<Bytes>>, max_reply: usize) -> Result<Reply, ClientError> {
        let sent = match self.sender.ready().await {
            Ok(()) => self.sender.send_request(request).await,
            Err(error) => Err(error),
        };
        match sent {
            Ok(response) => self.read(response, max_reply).await,
            Err(error) => Err(self.cause(error).await),
        }
    }

    async fn read(&mut self, response: Response<Incoming>, max: usize) -> Result<Reply, ClientError> {
        let (head, mut incoming) = response.into_parts();
        let mut body = Vec::new();
        while let Some(frame) = incoming.frame().await {
            let frame = match frame {
                Ok(frame) => frame,
                Err(error) => return Err(self.cause(error).await),
            };
            // Frames without data are trailers, which neither side sends.
            let Ok(data) = frame.into_data() else { continue };
            if data.len() > max - body.len() {
                return Err(ClientError::ReplyTooLong { max });
            }
            body.extend_from_slice(&data);
        }
        Ok(Reply { status: head.status.as_u16(), headers: head.headers, body })
    }

    /// Returns why the connection ended. A late request fails without the reason, which only the connection itself has.
    async fn cause(&mut self, error: hyper::Error) -> ClientError {
        if tls_cause(&error).is_none()
            && let Some(connection) = self.connection.take()
        {
            let stop = connection.abort_handle();
            let ended = within(LAST_WORDS, connection).await;
            stop.abort();
            if let Ok(Ok(Err(cause))) = ended {
                return ClientError::of_connection(&cause);
            }
        }
        ClientError::of_connection(&error)
    }

    fn close(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.abort();
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.close();
    }
}

async fn connect_one(
    ip: SocketAddr,
    connector: &TlsConnector,
) -> Result<(SendRequest<Full<Bytes>>, JoinHandle<hyper::Result<()>>), ClientError> {
    let stream = TcpStream::connect(ip).await.map_err(|source| ClientError::Connect { source })?;
    // Otherwise the end of a small request waits for the acknowledgement of its start (RFC 896).
    let _ = stream.set_nodelay(true);
    // The name is neither sent nor checked, because the server is identified by its key.
    let stream = connector.connect(ServerName::from(ip.ip()), stream).await;
    let stream = stream.map_err(|error| ClientError::of_connection(&error))?;
    let handshake = http1::handshake(TokioIo::new(stream)).await;
    let (sender, connection) = handshake.map_err(|error| ClientError::of_connection(&error))?;
    Ok((sender, tokio::spawn(connection)))
}
