//! The client's side of a connection.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, Error as TlsError};

use crate::error::Fault;

/// A connection to a round's server.
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    timeout: Duration,
}

/// An answer.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Connection {
    /// Connects to `host:port`, trying every address of the host, and shows who is there.
    pub(crate) async fn open(address: &str, tls: Arc<ClientConfig>, patience: Duration) -> Result<Self, Fault> {
        let connect = async {
            let stream = TcpStream::connect(address).await.map_err(Fault::Connect)?;
            let _ = stream.set_nodelay(true);
            // The roster knows keys, not names: this one is sent nowhere.
            let name = ServerName::try_from("server").expect("a name");
            let stream = TlsConnector::from(tls).connect(name, stream).await.map_err(tls_fault)?;
            Ok(handshake(TokioIo::new(stream)).await?)
        };
        let (sender, connection) = timeout(patience, connect).await.unwrap_or(Err(Fault::TooSlow(patience)))?;
        tokio::spawn(connection);
        Ok(Self { sender, timeout: patience })
    }

    /// Sends a request and reads the answer, of at most `most` bytes.
    pub(crate) async fn request(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, String)],
        body: Bytes,
        most: usize,
    ) -> Result<Reply, Fault> {
        let mut request = Request::builder().method(method).uri(path).header("host", "server");
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = request.body(Full::new(body)).map_err(|_| Fault::Answer { expected: "request" })?;
        let answer = async {
            let response = self.sender.send_request(request).await.map_err(broken)?;
            let status = response.status().as_u16();
            let body = Limited::new(response.into_body(), most).collect().await.map_err(|error| {
                if error.is::<LengthLimitError>() {
                    return Fault::TooLong { most };
                }
                error.downcast::<hyper::Error>().map_or(Fault::Answer { expected: "body" }, |error| broken(*error))
            })?;
            Ok(Reply { status, body: body.to_bytes().to_vec() })
        };
        timeout(self.timeout, answer).await.unwrap_or(Err(Fault::TooSlow(self.timeout)))
    }
}

/// Tells the server that is another from the network that fails.
fn tls_fault(error: std::io::Error) -> Fault {
    match error.get_ref().and_then(|source| source.downcast_ref::<TlsError>()) {
        Some(TlsError::InvalidCertificate(_)) => Fault::OtherServer,
        Some(TlsError::AlertReceived(_)) => Fault::NotOnRoster,
        _ => Fault::Handshake(error),
    }
}

/// In TLS 1.3 a client learns that it is refused when it reads for the first time.
fn broken(error: hyper::Error) -> Fault {
    let mut source = error.source();
    while let Some(cause) = source {
        let inner = cause.downcast_ref::<std::io::Error>().and_then(|error| error.get_ref());
        if inner.is_some_and(|inner| matches!(inner.downcast_ref(), Some(TlsError::AlertReceived(_)))) {
            return Fault::NotOnRoster;
        }
        source = cause.source();
    }
    Fault::Broken(error)
}
