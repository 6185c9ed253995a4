//! Metrics for monitoring a server.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use crate::network::stage::RoundState;
use crate::network::transport::{Counters, Gauge};

/// Counters and gauges of a server. None of them reveals votes.
#[derive(Default)]
pub(crate) struct Metrics {
    pub(crate) limited: Gauge,
    /// In seconds since 1970, or 0 if there is none.
    pub(crate) deadline: Gauge,
    pub(crate) queries: Gauge,
    pub(crate) answered: Gauge,
    refused: Mutex<BTreeMap<&'static str, u64>>,
}

impl Metrics {
    /// Counts a refused message.
    pub(crate) fn refused(&self, reason: &'static str) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner).entry(reason).or_default() += 1;
    }

    /// Returns all metrics in the text format of Prometheus, including those that the caller supplies.
    pub(crate) fn to_text(&self, state: &RoundState, connections: &Counters) -> String {
        let mut text = String::new();
        let mut one = |name: &str, kind: &str, help: &str, value: u64| {
            let _ = writeln!(text, "# HELP speed_{name} {help}\n# TYPE speed_{name} {kind}\nspeed_{name} {value}");
        };
        one("teachers", "gauge", "Teachers of the round.", state.teachers as u64);
        one("teachers_minimum", "gauge", "Teachers that must answer.", state.minimum as u64);
        one("messages_received", "gauge", "Teachers whose messages are kept.", state.received as u64);
        one(
            "deadline_seconds",
            "gauge",
            "When the sum may be closed without the others (0: never).",
            self.deadline.get(),
        );
        one("queries", "gauge", "Queries of the round, once the argmax began.", self.queries.get());
        one("queries_answered", "gauge", "Queries answered.", self.answered.get());
        one("connections", "gauge", "Open connections.", connections.open.get());
        one(
            "connections_accepted_total",
            "counter",
            "Accepted connections, including failed ones.",
            connections.accepted.get(),
        );
        one(
            "connections_busy_total",
            "counter",
            "Connections dropped because there were too many.",
            connections.refused_busy.get(),
        );
        one("handshakes_failed_total", "counter", "Handshakes that failed.", connections.refused_handshake.get());
        one("requests_limited_total", "counter", "Requests beyond the rate of their party.", self.limited.get());
        let _ = writeln!(text, "# HELP speed_messages_refused_total Messages refused, by reason.");
        let _ = writeln!(text, "# TYPE speed_messages_refused_total counter");
        for (reason, count) in &*self.refused.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = writeln!(text, "speed_messages_refused_total{{reason=\"{reason}\"}} {count}");
        }
        let _ = writeln!(text, "# HELP speed_stage The stage of the round.\n# TYPE speed_stage gauge");
        let _ = writeln!(text, "speed_stage{{stage=\"{}\"}} 1", state.stage);
        text
    }
}
