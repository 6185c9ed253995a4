//! A round of two teachers, and the shared state of its server.

use std::num::NonZeroUsize;
use std::path::Path;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use speed_accountant::{Delta, PriceLimit};
use speed_aggregation::{Parameters, PrivacyNoise};
use speed_core::fixture::{copy_folder, fixture_of_this_test};
use speed_core::{Circuit, Classes, NoisePlacement, RandomnessKind};
use tempfile::TempDir;
use tokio::sync::watch;
use tower_service::Service as _;

use crate::network::keeper::Keeper;
use crate::network::limits::Limits;
use crate::network::routes::*;
use crate::server::{RoundServer, ServerOptions};
use crate::teacher::TeacherOptions;
use crate::{Identity, LedgerOptions, Party, Role, Roster, RoundFile, RoundRandomness, Terms, generate_party, student};

const RANDOMNESS: RoundRandomness = RoundRandomness::simulation(3);

/// The server state of a round of two teachers, and the files of all parties.
pub(super) struct Office {
    pub(super) folder: TempDir,
    pub(super) served: Arc<ServedRound>,
    pub(super) app: Router,
}

/// The inputs of a teacher's message: names of files, and its votes.
pub(super) struct Answer<'a> {
    pub(super) party: &'a str,
    pub(super) round: &'a str,
    pub(super) public_key: &'a str,
    pub(super) votes: &'a str,
    pub(super) registry: &'a str,
}

pub(super) const NORTH: Answer<'_> =
    Answer { party: "north", round: "round.toml", public_key: "public.key", votes: "1\n", registry: "registry" };

impl Office {
    pub(super) fn open(limits: Limits) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = |name: &str| folder.path().join(name);
        let party = |role, name: &str| {
            generate_party(role, name, (1, None), &path(&format!("{name}.key"))).expect("an empty folder");
            Party::new(name, Identity::read(&path(&format!("{name}.key"))).expect("a key").key()).expect("a name")
        };
        let roster = Roster::new(
            party(Role::Student, "student"),
            party(Role::Server, "server"),
            vec![party(Role::Teacher, "north"), party(Role::Teacher, "south")],
        );
        let keys = fixture_of_this_test("keys", |keys| {
            student::keygen(keys, &Parameters::TOURNAMENT_128, RANDOMNESS).expect("an empty folder");
        });
        copy_folder(&keys, folder.path());
        write_round(folder.path(), roster.expect("four parties"), "round.toml", "public.key");
        let server = RoundServer::open(ServerOptions {
            signing_key: path("server.key"),
            evaluation_key: path("evaluation.key"),
            proof_key: None,
            round: path("round.toml"),
            min_teachers: None,
            registry: path("server.registry"),
            new_registry: false,
            ledger: ledger(&folder),
            circuit: Circuit::Tournament,
            threads: NonZeroUsize::MIN,
            randomness: RANDOMNESS,
            copies: None,
        });
        let server = Arc::new(server.expect("fitting files"));
        let keeper = Keeper::start(server.clone());
        let stage = watch::channel(Stage::Open).1;
        let served = Arc::new(ServedRound::new(&server, &keeper, stage, limits, 2).expect("a registry"));
        Self { folder, app: parties(served.clone()), served }
    }

    pub(super) fn key(&self, party: &str) -> PeerKey {
        let path = self.folder.path().join(format!("{party}.key"));
        PeerKey(*Identity::read(&path).expect("a key").key().as_bytes())
    }

    /// Returns a teacher's message to the round.
    pub(super) fn message(&self, party: &str) -> Vec<u8> {
        self.message_of(Answer { party, ..NORTH })
    }

    pub(super) fn message_to(&self, round: &str, party: &str) -> Vec<u8> {
        self.message_of(Answer { party, round, ..NORTH })
    }

    pub(super) fn message_of(&self, answer: Answer<'_>) -> Vec<u8> {
        let Answer { party, round, public_key, votes, registry } = answer;
        let path = |name: &str| self.folder.path().join(name);
        let out = path(&format!("{party} to {} by {registry}", round.replace('/', "-")));
        std::fs::write(path("votes.csv"), votes).expect("votes");
        crate::teacher::answer(&TeacherOptions {
            signing_key: path(&format!("{party}.key")),
            public_key: path(public_key),
            proof_key: None,
            round: path(round),
            votes: path("votes.csv"),
            form: None,
            out: out.clone(),
            query_list: None,
            mechanism: None,
            registry: path(&format!("{party}.{registry}")),
            new_registry: true,
            ledger: LedgerOptions { path: path(&format!("{party}.{registry}.ledger")), ..ledger(&self.folder) },
            limit: PriceLimit::default(),
            reuse_keys: false,
            randomness: RANDOMNESS,
        })
        .expect("valid");
        std::fs::read(out).expect("a message")
    }

    /// Creates another round of the same parties under a public key.
    pub(super) fn other_round(&self, name: &str, public_key: &str) {
        let roster = RoundFile::read(&self.folder.path().join("round.toml")).expect("a round").roster().clone();
        write_round(self.folder.path(), roster, name, public_key);
    }

    /// Sends a complete message, and returns status and text of the answer.
    pub(super) async fn send(&self, peer: PeerKey, message: &[u8]) -> (StatusCode, String) {
        let whole = message.to_vec().into();
        let (status, body) = self.put(peer, Digest::of(message), (message.len(), 0), whole).await;
        (status, String::from_utf8_lossy(&body).into_owned())
    }

    /// Sends a request, and returns the answer.
    pub(super) async fn ask(
        &self,
        peer: PeerKey,
        request: hyper::http::request::Builder,
        body: Body,
    ) -> (StatusCode, Bytes) {
        let mut request = request.body(body).expect("a request");
        request.extensions_mut().insert(peer);
        let response = self.app.clone().call(request).await.expect("an answer");
        let status = response.status();
        (status, response.into_body().collect().await.expect("whole").to_bytes())
    }

    pub(super) async fn put(
        &self,
        peer: PeerKey,
        digest: Digest,
        (length, offset): (usize, usize),
        body: Body,
    ) -> (StatusCode, Bytes) {
        let request = Request::put(format!("/v3/messages/{}", digest.to_hex()));
        self.ask(peer, request.header(LENGTH, length).header(OFFSET, offset), body).await
    }
}

/// Writes a simulated round of one query under a public key.
fn write_round(folder: &Path, roster: Roster, name: &str, public_key: &str) {
    let terms = Terms {
        name: name.into(),
        roster,
        queries: 1,
        classes: Classes::numbered(2).expect("two classes"),
        query_list: None,
        min_teachers: 2,
        noise: PrivacyNoise::named("discrete-laplace", 5.0).expect("valid"),
        placement: NoisePlacement::Distributed,
        threshold: None,
        proofs: None,
        evaluation_key: None,
        opener: None,
        randomness: RandomnessKind::Simulation,
    };
    let [public_key, out] = [public_key, name].map(|name| folder.join(name));
    let options = student::RoundOptions { public_key, proof_key: None, reuse_keys: true, out, randomness: RANDOMNESS };
    student::round(&terms, &options).expect("valid");
}

fn ledger(folder: &TempDir) -> LedgerOptions {
    LedgerOptions { path: folder.path().join("ledger"), delta: Delta::new(1e-5).expect("valid") }
}
