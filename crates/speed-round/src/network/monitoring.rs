//! Monitoring connections: few, and without TLS.

use std::future::Future as _;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

use crate::network::transport::{Evicted, Place, Strangers};

/// The maximum number of connections.
const MOST: usize = 32;

/// A listener with a limited number of connections at a time. A new connection takes the place of one from the
/// address that has the most, so silent connections cannot block others.
pub(crate) struct MonitoringListener {
    listener: TcpListener,
    strangers: Arc<Mutex<Strangers>>,
}

impl MonitoringListener {
    pub(crate) fn new(listener: TcpListener) -> Self {
        Self { listener, strangers: Arc::new(Mutex::new(Strangers::new(MOST))) }
    }
}

impl Listener for MonitoringListener {
    type Io = MonitoringConnection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (MonitoringConnection, SocketAddr) {
        // axum retries failures of `accept`, after a pause.
        let (stream, address) = Listener::accept(&mut self.listener).await;
        let (place, evicted, _) = self.strangers.lock().unwrap_or_else(PoisonError::into_inner).enter(address.ip());
        (MonitoringConnection { stream, place, evicted: Some(evicted), strangers: self.strangers.clone() }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection and its place.
pub(crate) struct MonitoringConnection {
    stream: TcpStream,
    place: Place,
    /// `None` if a newer connection has its place.
    evicted: Option<Evicted>,
    strangers: Arc<Mutex<Strangers>>,
}

impl MonitoringConnection {
    /// Fails once a newer connection has the place, and lets the task wake up then, whether it reads or writes.
    fn expect_place(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        // The sender sends nothing: it is dropped with the place.
        if self.evicted.as_mut().is_some_and(|evicted| Pin::new(evicted).poll(context).is_ready()) {
            self.evicted = None;
        }
        self.evicted.as_ref().map(drop).ok_or_else(|| io::ErrorKind::ConnectionAborted.into())
    }
}

impl Drop for MonitoringConnection {
    fn drop(&mut self) {
        self.strangers.lock().unwrap_or_else(PoisonError::into_inner).leave(self.place);
    }
}

impl AsyncRead for MonitoringConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.expect_place(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for MonitoringConnection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.expect_place(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.expect_place(context)?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::Router;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Serves /health with a long answer.
    async fn serve() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let app = Router::new().route("/health", get(async || "ok".repeat(20_000)));
        tokio::spawn(async { axum::serve(MonitoringListener::new(listener), app).await });
        address
    }

    async fn expect_health(address: SocketAddr) {
        let answer = async {
            let mut stream = TcpStream::connect(address).await.expect("a connection");
            stream.write_all(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.expect("a head");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.expect("an answer");
            answer
        };
        let answer = tokio::time::timeout(Duration::from_secs(10), answer).await.expect("in time");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok"), "{answer}");
    }

    /// Returns whether a connection was cut: its rest ends, or is reset.
    async fn one_ends(connections: &mut [TcpStream]) -> bool {
        for connection in connections {
            let mut rest = Vec::new();
            let all = connection.read_to_end(&mut rest);
            if tokio::time::timeout(Duration::from_millis(500), all).await.is_ok() {
                return true;
            }
        }
        false
    }

    #[tokio::test]
    async fn clients_that_never_read_are_cut_for_others() {
        let address = serve().await;
        let mut greedy = Vec::new();
        for _ in 0..40 {
            let mut stream = TcpStream::connect(address).await.expect("a connection");
            // More requests than answers fit into the buffers of the connection, so the server waits to write.
            let requests = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n".repeat(2000);
            drop(tokio::time::timeout(Duration::from_millis(50), stream.write_all(&requests)).await);
            greedy.push(stream);
        }
        expect_health(address).await;
        assert!(one_ends(&mut greedy).await, "all connections are still open");
    }

    #[tokio::test]
    async fn half_sent_heads_do_not_block_monitoring() {
        // On the commit before, 40 of them held all 32 places for 60 s.
        let address = serve().await;
        let mut half_sent = Vec::new();
        for _ in 0..40 {
            let mut stream = TcpStream::connect(address).await.expect("a connection");
            stream.write_all(b"GET /health HTTP/1.1\r\nHost: x\r\n").await.expect("half a head");
            half_sent.push(stream);
        }
        expect_health(address).await;
        assert!(one_ends(&mut half_sent).await, "all connections are still open");
    }
}
