//! Monitoring connections: few, and without TLS.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A listener with a limited number of connections at a time. A client that holds all of them blocks other monitoring
/// clients, but no party of the round.
pub(crate) struct MonitoringListener {
    listener: TcpListener,
    places: Arc<Semaphore>,
}

impl MonitoringListener {
    pub(crate) fn new(listener: TcpListener, places: usize) -> Self {
        Self { listener, places: Arc::new(Semaphore::new(places)) }
    }
}

impl Listener for MonitoringListener {
    type Io = MonitoringConnection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (MonitoringConnection, SocketAddr) {
        loop {
            // axum retries failures of `accept`, after a pause.
            let (stream, address) = Listener::accept(&mut self.listener).await;
            if let Ok(place) = self.places.clone().try_acquire_owned() {
                return (MonitoringConnection { stream, _place: place }, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection and its permit.
pub(crate) struct MonitoringConnection {
    stream: TcpStream,
    _place: OwnedSemaphorePermit,
}

impl AsyncRead for MonitoringConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for MonitoringConnection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
