//! `speed server verify`: a party computes the sum and the answers of a round again.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use speed_aggregation::Server;
use speed_aggregation::log::RoundLog;
use speed_aggregation::protocol::{RevealedSeed, SignedResult, Submission, TeacherStatus, Verification};
use speed_core::{Digest, NoisePlacement};

use super::admission::{Admission, ProofChecks};
use super::inbox::Inbox;
use super::labelling::Progress;
use super::round_server::read_evaluation_key;
use crate::checks::{check_log_signature, expect_result, expect_round, expect_signed, read_signed_result};
use crate::error::Refused;
use crate::file_kind::FileKind;
use crate::files::{Access, decode_input, expect_absent, read_input, refused, visible_files, write_new};
use crate::identity::Identity;
use crate::log_form::LogForm;
use crate::refusal::Refusal;
use crate::round_file::RoundFile;

/// The options of a verification.
#[derive(Clone, Debug)]
pub struct VerifyOptions {
    /// The student's evaluation key.
    pub evaluation_key: PathBuf,
    /// The round's proof key, if the round asks for proofs.
    pub proof_key: Option<PathBuf>,
    /// The round's file.
    pub round: PathBuf,
    /// The result that the server signed.
    pub result: PathBuf,
    /// The round's log, which the server signed.
    pub log: PathBuf,
    /// The seed that the server revealed.
    pub seed: PathBuf,
    /// A directory with the messages that the log names as counted. Other files are ignored.
    pub messages: PathBuf,
    /// Threads; the outcome does not depend on it.
    pub threads: NonZeroUsize,
    /// A teacher's signing key and the verification to create, which is written if the server did not lie.
    pub sign: Option<(PathBuf, PathBuf)>,
}

/// The report of a verification.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct VerifyReport {
    /// The round's id.
    pub round: String,
    /// The round's name.
    pub name: String,
    /// True if the round is a simulation.
    pub simulation: bool,
    /// Number of queries.
    pub queries: usize,
    /// Number of teachers of the round.
    pub teachers: usize,
    /// Number of teachers that the server counted. A party counts with all its teachers.
    pub counted: usize,
    /// True if the server computed everything that it signed. Otherwise the files with its signatures convict it.
    pub honest: bool,
    /// True if log and result name different sums, results or counted parties, or no honest server writes such a log.
    pub log_differs: bool,
    /// The fault of the log, unless it is another sum or result. If its entries are none that an honest server writes, it
    /// does not determine the counted messages, and neither sum nor answers are computed.
    pub log_fault: Option<String>,
    /// True if the counted messages do not have the sum that the server signed. Then no answers are computed.
    pub sum_differs: bool,
    /// Counted messages that a server must refuse, with the reasons.
    pub refused: Vec<Refusal>,
    /// Queries whose signed answer is not the one that follows from the sum and the seed.
    pub answers_differ: Vec<usize>,
    /// The signed verification, if it was written.
    pub verification: Option<PathBuf>,
}

/// Computes the sum of the counted messages and the encrypted winners again, and compares them with the server's signed
/// result, bit for bit. Takes as long as the argmax: about half a core-second for a query of ten classes.
///
/// The revealed seed must stay secret from the student, so the verifier must not be the student.
///
/// # Errors
/// If an input is missing, damaged, unsigned or not the round's, if a counted message is not in the directory, or if the
/// server added noise of its own. A lie of the server is not an error: [`VerifyReport::honest`] is false.
pub fn verify(options: &VerifyOptions, progress: &dyn Progress) -> Result<VerifyReport, Refused> {
    let claim = Claim::read(options)?;
    let signer = options.sign.as_ref().map(|(key, out)| Signer::read(key, out, &claim.file)).transpose()?;
    let round = claim.file.round();
    let list = claim.result.list();
    let mut report = VerifyReport {
        round: claim.file.id().to_hex(),
        name: claim.file.name().to_owned(),
        simulation: round.is_simulation(),
        queries: round.shape().queries(),
        teachers: round.shape().teachers(),
        counted: round.teachers_counted(list.statuses()),
        honest: false,
        log_differs: true,
        log_fault: None,
        sum_differs: false,
        refused: Vec::new(),
        answers_differ: Vec::new(),
        verification: None,
    };
    match &claim.form {
        Err(fault) => report.log_fault = Some(fault.to_string()),
        Ok(form) => {
            let Summed { server, refused, signer } = claim.sum(form, options, progress)?;
            let fault = claim.other_party(form).or(signer);
            report.log_differs = claim.log_differs(form) || fault.is_some();
            report.log_fault = fault;
            report.refused = refused;
            report.sum_differs = match &server {
                Some(server) => Digest::of(server.state()?) != claim.result.sum(),
                None => true,
            };
            if let (Some(server), false) = (server, report.sum_differs) {
                report.answers_differ = claim.differing(&server, options.threads, progress)?;
            }
        }
    }
    report.honest =
        !report.log_differs && !report.sum_differs && report.refused.is_empty() && report.answers_differ.is_empty();
    if let (true, Some(signer)) = (report.honest, signer) {
        let Signer { identity, teacher, out } = signer;
        let verification =
            Verification::new(claim.file.id(), [claim.digest, claim.log], teacher, |digest| identity.sign(digest));
        write_new(out, &verification.to_bytes(), Access::Shared)?;
        report.verification = Some(out.to_path_buf());
    }
    Ok(report)
}

/// Everything that a server signed about a round.
struct Claim {
    file: RoundFile,
    result: SignedResult,
    /// SHA-256 of the result's file.
    digest: Digest,
    /// SHA-256 of the log's file.
    log: Digest,
    /// The log, or the reason why no honest server writes it.
    form: Result<LogForm, Refused>,
    seed: RevealedSeed,
}

/// The sum of the counted messages.
struct Summed {
    /// `None` if the messages cannot be the sum.
    server: Option<Server>,
    refused: Vec<Refusal>,
    /// The first message that the log names as another teacher's.
    signer: Option<String>,
}

impl Claim {
    /// Reads the server's files and checks that it signed all of them for this round.
    fn read(options: &VerifyOptions) -> Result<Self, Refused> {
        let file = RoundFile::read(&options.round)?;
        if file.round().placement() == NoisePlacement::Central {
            return Err(Refused::usage(
                "the server adds the noise of this round, and only the server knows it: no other party can compute the sum again",
            ));
        }
        let (result, digest) = read_signed_result(&options.result, &file)?;
        let bytes = read_input(&options.log, FileKind::LOG)?;
        let signed_log = Digest::of(&bytes);
        let log = RoundLog::from_bytes(&bytes).map_err(|fault| refused(&options.log, FileKind::LOG, fault))?;
        check_log_signature(&log, &file).map_err(Refused::input(&options.log))?;
        let form = LogForm::read(log.entries(), file.round());
        if form.as_ref().is_ok_and(|form| form.result.is_none()) {
            return Err(Refused::input(&options.log)("ends before the result: fetch the log again"));
        }
        let seed = decode_input(&options.seed, FileKind::REVEALED_SEED, RevealedSeed::from_bytes)?;
        expect_round(&file, seed.round())
            .and_then(|()| expect_signed(&file, seed.signed()))
            .and_then(|()| expect_result(digest, seed.result()))
            .map_err(Refused::input(&options.seed))?;
        Ok(Self { file, result, digest, log: signed_log, form, seed })
    }

    /// Returns whether the log names another result or another sum than the result.
    fn log_differs(&self, form: &LogForm) -> bool {
        form.result != Some(self.digest) || form.sum != Some(self.result.sum())
    }

    /// Returns the first party that only one of log and result counts.
    fn other_party(&self, form: &LogForm) -> Option<String> {
        let statuses = self.result.list().statuses().iter().enumerate();
        let mut differing =
            statuses.filter(|(party, status)| (**status == TeacherStatus::Counted) != form.counted.contains_key(party));
        let (teacher, _) = differing.next()?;
        Some(format!("log and result contradict each other about teacher {teacher}: only one of them counts it"))
    }

    /// Adds the counted messages, with all checks of a server, and closes the sum. Returns no server if the messages
    /// cannot be the sum: one is refused, or the result has other statuses.
    fn sum(&self, form: &LogForm, options: &VerifyOptions, progress: &dyn Progress) -> Result<Summed, Refused> {
        let checks = ProofChecks::read(&options.evaluation_key, options.proof_key.as_deref(), &self.file)?;
        let admission = Admission { file: &self.file, checks: Some(&checks) };
        let key = read_evaluation_key(&options.evaluation_key, &self.file)?.expand();
        let mut server = Server::new(key, self.file.round().clone())?
            .with_circuit(self.seed.circuit().into())?
            .with_answer_seed(self.seed.seed().clone());
        // The form counts no message twice.
        let mut missing: HashMap<Digest, usize> =
            form.counted.iter().map(|(party, digest)| (*digest, *party)).collect();
        let mut signer = None;
        let files = visible_files(&options.messages)?;
        let inbox = Inbox { network: None, files: &files };
        let refused = inbox.offer(Submission::max_size(self.file.round()), &mut |bytes, _| match missing
            .remove(&Digest::of(bytes))
        {
            Some(teacher) => {
                let found = admission.admit(&mut server, bytes, false)?;
                if found != teacher && signer.is_none() {
                    signer = Some(format!(
                        "the log counts a message that teacher {found} signed as one of teacher {teacher}"
                    ));
                }
                Ok(())
            }
            None => Ok(()),
        })?;
        // Files that cannot be read are not the server's fault.
        let refused: Vec<Refusal> = refused.into_iter().filter(|refusal| !refusal.is_unreadable()).collect();
        refused.iter().for_each(|refusal| progress.refused(refusal));
        if let Some((digest, teacher)) = missing.into_iter().min_by_key(|(_, teacher)| *teacher) {
            return Err(Refused::input(&options.messages)(format!(
                "has no file with the SHA-256 {digest}, the message of teacher {teacher} that the server counted according to its log: ask \
                 the teacher or the server for it"
            )));
        }
        for (teacher, status) in self.result.list().statuses().iter().enumerate() {
            server.note(teacher, *status);
        }
        let is_sum = refused.is_empty()
            && server.statuses() == self.result.list().statuses()
            && server.teachers_received() >= self.file.round().min_teachers();
        if is_sum {
            server.close(self.file.round().min_teachers())?;
        }
        Ok(Summed { server: is_sum.then_some(server), refused, signer })
    }

    /// Returns the queries whose signed answers differ from the computed ones.
    fn differing(
        &self,
        server: &Server,
        threads: NonZeroUsize,
        progress: &dyn Progress,
    ) -> Result<Vec<usize>, Refused> {
        let signed: Vec<_> = self.result.list().answers().collect();
        let queries: Vec<usize> = (0..signed.len()).collect();
        let differing = Mutex::new(Vec::new());
        progress.begin(queries.len(), 0);
        server.answer::<Refused>(threads, &queries, &|group, _| {
            progress.advance(group.len());
            let others = group.iter().filter(|answer| signed.get(answer.query()) != Some(answer));
            let mut differing = differing.lock().unwrap_or_else(PoisonError::into_inner);
            differing.extend(others.map(speed_aggregation::EncryptedAnswer::query));
            Ok(())
        })?;
        let mut differing = differing.into_inner().unwrap_or_else(PoisonError::into_inner);
        differing.sort_unstable();
        Ok(differing)
    }
}

/// The teacher that signs a verification.
struct Signer<'a> {
    identity: Identity,
    teacher: usize,
    out: &'a Path,
}

impl<'a> Signer<'a> {
    fn read(key: &Path, out: &'a Path, file: &RoundFile) -> Result<Self, Refused> {
        expect_absent(out)?;
        let is = "none of the round's teachers: only a teacher's verification counts";
        let (identity, teacher) = Identity::read_as(key, |key| file.roster().teacher(key), is)?;
        Ok(Self { identity, teacher, out })
    }
}

/// Returns the teacher that signed a verification of the result with this SHA-256.
pub(crate) fn check_verification(
    verification: &Verification,
    file: &RoundFile,
    result: Digest,
) -> Result<usize, Refused> {
    expect_round(file, verification.round())?;
    expect_result(result, verification.result())?;
    let ((digest, signature), teacher) = (verification.signed(), verification.teacher());
    match file.roster().teachers().get(teacher) {
        Some(party) if party.key().verifies(digest, signature) => Ok(teacher),
        _ => Err(Refused::fault(format!("is not signed by teacher {teacher} of the round, which it names"))),
    }
}
