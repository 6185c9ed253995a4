//! The thread that keeps messages: one after another, as many at once as wait.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use speed_aggregation::Receipt;
use speed_core::Digest;
use speed_roles::RolesError;
use speed_roles::server::{Admitted, Reception, Refusal, RoundServer};
use tokio::sync::{oneshot, watch};

/// The most messages that become durable in one step.
const BATCH: usize = 256;

/// The answer to a message.
pub(crate) type Kept = Result<Receipt, Refusal>;

enum Order {
    /// The message comes back if it is to be looked at.
    Ask(Admitted, oneshot::Sender<Result<Kept, Admitted>>),
    Keep(Admitted, oneshot::Sender<Kept>),
    /// With the message's SHA-256.
    Note(Digest, Refusal, oneshot::Sender<Refusal>),
    Close(oneshot::Sender<()>),
}

/// The keeper of a round's messages. What it acknowledges is on the disk.
pub(crate) struct Keeper {
    orders: Sender<Order>,
    /// Teachers whose messages are kept.
    pub(crate) received: watch::Receiver<usize>,
    thread: JoinHandle<Result<(), RolesError>>,
}

/// The keeper of which everyone can ask.
#[derive(Clone)]
pub(crate) struct KeeperHandle(Sender<Order>);

impl Keeper {
    pub(crate) fn start(server: Arc<RoundServer>) -> Self {
        let ((orders, queue), (count, received)) = (channel(), watch::channel(0));
        let thread = std::thread::spawn(move || keep(&server, &queue, &count));
        Self { orders, received, thread }
    }

    pub(crate) fn handle(&self) -> KeeperHandle {
        KeeperHandle(self.orders.clone())
    }

    /// Returns the error of a keeper that has ended although there may be orders, if it gave one.
    pub(crate) fn failure(self) -> Option<RolesError> {
        match self.thread.join() {
            Ok(ended) => ended.err(),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl KeeperHandle {
    /// Returns what became of a message already, or the message, if it is to be looked at. None if the keeper has ended.
    pub(crate) async fn ask(&self, message: Admitted) -> Option<Result<Kept, Admitted>> {
        let (reply, decided) = oneshot::channel();
        self.0.send(Order::Ask(message, reply)).ok()?;
        decided.await.ok()
    }

    /// Keeps a message. None if the keeper has ended.
    pub(crate) async fn keep(&self, message: Admitted) -> Option<Kept> {
        let (reply, kept) = oneshot::channel();
        self.0.send(Order::Keep(message, reply)).ok()?;
        kept.await.ok()
    }

    /// Notes in the log that a message was refused, and returns the refusal. None if the keeper has ended.
    pub(crate) async fn note(&self, message: Digest, refusal: Refusal) -> Option<Refusal> {
        let (reply, noted) = oneshot::channel();
        self.0.send(Order::Note(message, refusal, reply)).ok()?;
        noted.await.ok()
    }

    /// Lets no further message in.
    pub(crate) async fn close(&self) {
        let (reply, closed) = oneshot::channel();
        if self.0.send(Order::Close(reply)).is_ok() {
            let _ = closed.await;
        }
    }
}

/// The one who waits for what becomes of a message.
enum Waiting {
    Asked(oneshot::Sender<Result<Kept, Admitted>>),
    Kept(oneshot::Sender<Kept>),
}

impl Waiting {
    /// Tells it. Whoever went away asks again, and gets the same receipt.
    fn tell(self, kept: Kept) {
        match self {
            Self::Asked(reply) => drop(reply.send(Ok(kept))),
            Self::Kept(reply) => drop(reply.send(kept)),
        }
    }
}

fn keep(server: &RoundServer, queue: &Receiver<Order>, count: &watch::Sender<usize>) -> Result<(), RolesError> {
    let mut reception = Reception::open(server)?;
    count.send_replace(reception.received());
    while let Ok(first) = queue.recv() {
        let (mut messages, mut replies, mut closing) = (Vec::new(), Vec::new(), Vec::new());
        let (mut refusals, mut refused) = (Vec::new(), Vec::new());
        // Whoever waits behind an order to close came too late.
        for order in std::iter::once(first).chain(queue.try_iter()) {
            match order {
                Order::Ask(message, reply) if !reception.is_decided(&message) => drop(reply.send(Err(message))),
                Order::Ask(message, reply) => {
                    messages.push(message);
                    replies.push(Waiting::Asked(reply));
                }
                Order::Keep(message, reply) => {
                    messages.push(message);
                    replies.push(Waiting::Kept(reply));
                }
                Order::Note(message, refusal, reply) => {
                    refusals.push((message, refusal));
                    refused.push(reply);
                }
                Order::Close(reply) => closing.push(reply),
            }
            if messages.len() + refusals.len() == BATCH || !closing.is_empty() {
                break;
            }
        }
        // An error ends the thread, and drops the replies: nobody is told that a message was kept.
        let kept = reception.keep(&messages, &refusals)?;
        count.send_replace(reception.received());
        replies.into_iter().zip(kept).for_each(|(reply, kept)| reply.tell(kept));
        for (reply, (_, refusal)) in refused.into_iter().zip(refusals) {
            let _ = reply.send(refusal);
        }
        if !closing.is_empty() {
            reception.close();
        }
        for reply in closing {
            let _ = reply.send(());
        }
    }
    Ok(())
}
