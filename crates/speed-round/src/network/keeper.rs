//! The thread that stores messages: all waiting messages are written in one step.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use speed_aggregation::log::Receipt;
use speed_core::Digest;
use tokio::sync::{oneshot, watch};

use crate::Refused;
use crate::server::{Admitted, Reception, Refusal, RoundServer};

/// The most messages that become durable in one step.
const BATCH: usize = 256;

/// The answer to a message.
pub(crate) type Decision = Result<Receipt, Refusal>;

/// Where the decision about a message goes. A message that still has to be checked goes back.
type Reply = oneshot::Sender<Result<Decision, Admitted>>;

enum KeeperRequest {
    /// Decides about the message without storing it.
    Ask(Admitted, Reply),
    Keep(Admitted, Reply),
    /// Includes the message's SHA-256.
    Note(Digest, Refusal, oneshot::Sender<Refusal>),
    Close(oneshot::Sender<()>),
}

/// The keeper of a round's messages. Every acknowledged message is on disk.
pub(crate) struct Keeper {
    orders: Sender<KeeperRequest>,
    /// Teachers whose messages are kept.
    pub(crate) received: watch::Receiver<usize>,
    thread: JoinHandle<Result<(), Refused>>,
}

/// A cloneable handle for requests to the keeper.
#[derive(Clone)]
pub(crate) struct KeeperHandle(Sender<KeeperRequest>);

impl Keeper {
    pub(crate) fn start(server: Arc<RoundServer>) -> Self {
        let ((orders, queue), (count, received)) = (channel(), watch::channel(0));
        let thread = std::thread::spawn(move || keep(&server, &queue, &count));
        Self { orders, received, thread }
    }

    pub(crate) fn handle(&self) -> KeeperHandle {
        KeeperHandle(self.orders.clone())
    }

    /// Returns the error of a keeper that ended prematurely, if there is one.
    pub(crate) fn failure(self) -> Option<Refused> {
        match self.thread.join() {
            Ok(ended) => ended.err(),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl KeeperHandle {
    /// Returns the earlier decision about a message, or the message if it still has to be checked. `None` if the keeper
    /// has ended.
    pub(crate) async fn ask(&self, message: Admitted) -> Option<Result<Decision, Admitted>> {
        let (reply, decided) = oneshot::channel();
        self.0.send(KeeperRequest::Ask(message, reply)).ok()?;
        decided.await.ok()
    }

    /// Stores a message. `None` if the keeper has ended.
    pub(crate) async fn keep(&self, message: Admitted) -> Option<Decision> {
        let (reply, kept) = oneshot::channel();
        self.0.send(KeeperRequest::Keep(message, reply)).ok()?;
        kept.await.ok()?.ok()
    }

    /// Records in the log that a message was refused, and returns the refusal. `None` if the keeper has ended.
    pub(crate) async fn note(&self, message: Digest, refusal: Refusal) -> Option<Refusal> {
        let (reply, noted) = oneshot::channel();
        self.0.send(KeeperRequest::Note(message, refusal, reply)).ok()?;
        noted.await.ok()
    }

    /// Stops accepting messages.
    pub(crate) async fn close(&self) {
        let (reply, closed) = oneshot::channel();
        if self.0.send(KeeperRequest::Close(reply)).is_ok() {
            let _ = closed.await;
        }
    }
}

fn keep(server: &RoundServer, queue: &Receiver<KeeperRequest>, count: &watch::Sender<usize>) -> Result<(), Refused> {
    let mut reception = Reception::open(server)?;
    count.send_replace(reception.received());
    while let Ok(first) = queue.recv() {
        let (mut messages, mut replies, mut closing) = (Vec::new(), Vec::new(), Vec::new());
        let (mut refusals, mut refused) = (Vec::new(), Vec::new());
        // Orders after an order to close came too late.
        for order in std::iter::once(first).chain(queue.try_iter()) {
            match order {
                KeeperRequest::Ask(message, reply) if !reception.is_decided(&message) => drop(reply.send(Err(message))),
                KeeperRequest::Ask(message, reply) | KeeperRequest::Keep(message, reply) => {
                    messages.push(message);
                    replies.push(reply);
                }
                KeeperRequest::Note(message, refusal, reply) => {
                    refusals.push((message, refusal));
                    refused.push(reply);
                }
                KeeperRequest::Close(reply) => closing.push(reply),
            }
            if messages.len() + refusals.len() == BATCH || !closing.is_empty() {
                break;
            }
        }
        // An error ends the thread and drops the replies, so no message is acknowledged.
        let decisions = reception.keep(&messages, &refusals)?;
        count.send_replace(reception.received());
        // A client that has disconnected can ask again, and gets the same receipt.
        replies.into_iter().zip(decisions).for_each(|(reply, decision)| drop(reply.send(Ok(decision))));
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
