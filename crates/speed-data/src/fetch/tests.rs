//! Downloads from a server on this machine that can misbehave.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use tempfile::TempDir;

use super::*;
use crate::toy::toy;

fn sha256(catalog: &Catalog, file: usize) -> &'static str {
    catalog.files[file].checksum.sha256().expect("known")
}

/// An answer: status line, headers, body; the connection closes after it.
struct Reply(&'static str, Vec<String>, Vec<u8>);

fn whole(body: &[u8]) -> Reply {
    Reply("200 OK", vec![format!("Content-Length: {}", body.len())], body.to_vec())
}

fn not_found() -> Reply {
    Reply("404 Not Found", vec!["Content-Length: 0".to_owned()], vec![])
}

fn honest(body: &[u8], from: Option<usize>) -> Reply {
    match from {
        None => whole(body),
        Some(from) if from >= body.len() => {
            Reply("416 Range Not Satisfiable", vec!["Content-Length: 0".to_owned()], vec![])
        }
        Some(from) => {
            let rest = &body[from..];
            let range = format!("Content-Range: bytes {from}-{}/{}", body.len() - 1, body.len());
            Reply("206 Partial Content", vec![format!("Content-Length: {}", rest.len()), range], rest.to_vec())
        }
    }
}

/// Promises the length of `reply` but closes after half of it.
fn cut(reply: Reply) -> Reply {
    let half = reply.2.len() / 2;
    Reply(reply.0, reply.1, reply.2[..half].to_vec())
}

/// The server's requests: path and start of the range.
type Requests = Arc<Mutex<Vec<(String, Option<usize>)>>>;

/// Starts a server; `answer` gets the path, the start of the range and the number of earlier requests for this path.
/// The thread ends with the test process.
fn serve(answer: impl Fn(&str, Option<usize>, usize) -> Reply + Send + 'static) -> (String, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let requests = Requests::default();
    let log = Arc::clone(&requests);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // An early disconnect of the client is not an error here.
            let _ = respond(stream, &log, &answer);
        }
    });
    (url, requests)
}

/// Starts a server of all files.
fn serve_all(files: &HashMap<String, Vec<u8>>) -> (String, Requests) {
    let files = files.clone();
    serve(move |path, from, _| honest(&files[path], from))
}

fn respond(
    mut stream: TcpStream,
    log: &Requests,
    answer: &impl Fn(&str, Option<usize>, usize) -> Reply,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut from = None;
    for line in lines {
        let line = line?.to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(range) = line.strip_prefix("range: bytes=") {
            from = range.trim_end_matches('-').parse().ok();
        }
    }
    let before = {
        let mut log = log.lock().expect("no panic while held");
        log.push((path.clone(), from));
        log.iter().filter(|(other, _)| *other == path).count() - 1
    };
    let Reply(status, headers, body) = answer(&path, from, before);
    write!(stream, "HTTP/1.1 {status}\r\nConnection: close\r\n")?;
    headers.iter().try_for_each(|header| write!(stream, "{header}\r\n"))?;
    write!(stream, "\r\n")?;
    stream.write_all(&body)
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn run(
    catalog: &'static Catalog,
    dir: &TempDir,
    mirrors: &[&str],
) -> (Result<FetchReport, DataError>, Vec<FetchEvent>) {
    let mirrors: Vec<String> = mirrors.iter().map(|&mirror| mirror.to_owned()).collect();
    let mut events = Vec::new();
    let report = fetch_catalog(catalog, dir.path(), &mirrors, &mut |progress| events.push(progress.event));
    (report, events)
}

/// Returns whether the directory holds exactly the files of the dataset, byte for byte.
fn complete(dir: &TempDir, files: &HashMap<String, Vec<u8>>) -> bool {
    let folder = dir.path().join("toy");
    let listed = fs::read_dir(&folder).expect("a folder").count();
    listed == files.len()
        && files.iter().all(|(path, body)| fs::read(folder.join(&path[1..])).is_ok_and(|found| found == *body))
}

const A_IMAGES: &str = "/a-images.gz";

#[test]
fn a_full_download_is_checked_and_in_place_and_the_next_call_keeps_it() {
    let (catalog, files) = toy();
    let dir = folder();
    let (url, requests) = serve_all(&files);
    // The address of a mirror may end in a slash or not.
    let (report, events) = run(catalog, &dir, &[&format!("{url}/")]);
    assert_eq!(report.expect("all is well").downloaded.len(), 4);
    assert!(complete(&dir, &files));
    let size = files[A_IMAGES].len() as u64;
    assert!(events.contains(&FetchEvent::Received { bytes: size, total: Some(size) }));

    let (report, events) = run(catalog, &dir, &[&url]);
    assert_eq!(report.expect("all is well").kept.len(), 4);
    assert_eq!(events, []);
    assert_eq!(requests.lock().expect("no panic").len(), 4, "no file is requested twice");
}

#[test]
fn an_interrupted_download_resumes() {
    let (catalog, files) = toy();
    let dir = folder();
    let served = files.clone();
    let (url, requests) = serve(move |path, from, before| {
        let reply = honest(&served[path], from);
        if path == A_IMAGES && before < 3 { cut(reply) } else { reply }
    });
    let (report, _) = run(catalog, &dir, &[&url]);
    report.expect("all is well");
    assert!(complete(&dir, &files));
    let size = files[A_IMAGES].len();
    let asked: Vec<_> = requests.lock().expect("no panic").iter().filter(|r| r.0 == A_IMAGES).map(|r| r.1).collect();
    let first = size / 2;
    let second = first + (size - first) / 2;
    let third = second + (size - second) / 2;
    assert_eq!(asked, [None, Some(first), Some(second), Some(third)]);
}

#[test]
fn a_later_call_and_another_mirror_continue_a_part() {
    let (catalog, files) = toy();
    let dir = folder();
    fs::create_dir(dir.path().join("toy")).expect("a folder");
    fs::write(dir.path().join("toy/a-images.gz.part"), &files[A_IMAGES][..1000]).expect("a file");
    // A complete part, as after a kill before the rename, needs no network.
    fs::write(dir.path().join("toy/b-labels.gz.part"), &files["/b-labels.gz"]).expect("a file");
    let (dead, _) = serve(|_, _, _| not_found());
    let (url, requests) = serve_all(&files);
    let (report, events) = run(catalog, &dir, &[&dead, &url]);
    report.expect("the second mirror works");
    assert!(complete(&dir, &files));
    let requests = requests.lock().expect("no panic");
    assert!(requests.contains(&(A_IMAGES.to_owned(), Some(1000))));
    assert!(!requests.iter().any(|request| request.0 == "/b-labels.gz"));
    assert!(events.iter().any(|event| matches!(event, FetchEvent::Failed { reason, .. } if reason.contains("404"))));
}

#[test]
fn a_server_without_ranges_starts_over() {
    let (catalog, files) = toy();
    let dir = folder();
    let served = files.clone();
    let (url, _) = serve(move |path, _, before| {
        let reply = whole(&served[path]);
        if path == A_IMAGES && before == 0 { cut(reply) } else { reply }
    });
    run(catalog, &dir, &[&url]).0.expect("all is well");
    assert!(complete(&dir, &files));
}

#[test]
fn a_damaged_or_overlong_part_and_a_lying_range_start_over() {
    let (catalog, files) = toy();
    for part in [vec![7; 1000], vec![7; 2_000_000]] {
        let dir = folder();
        fs::create_dir(dir.path().join("toy")).expect("a folder");
        fs::write(dir.path().join("toy/a-images.gz.part"), part).expect("a file");
        let (url, _) = serve_all(&files);
        run(catalog, &dir, &[&url]).0.expect("all is well");
        assert!(complete(&dir, &files));
    }
    let dir = folder();
    fs::create_dir(dir.path().join("toy")).expect("a folder");
    fs::write(dir.path().join("toy/a-images.gz.part"), &files[A_IMAGES][..1000]).expect("a file");
    let served = files.clone();
    let (url, _) = serve(move |path, from, _| honest(&served[path], from.map(|from| from - 1)));
    run(catalog, &dir, &[&url]).0.expect("all is well");
    assert!(complete(&dir, &files));
}

#[test]
fn wrong_content_is_refused_and_leaves_nothing_that_looks_valid() {
    let (catalog, files) = toy();
    let dir = folder();
    let served = files.clone();
    // b-images has the right format but is not a-images; a page of text is not even gzip; the last two are endless or
    // too long.
    let (swapped, _) = serve(move |path, _, _| whole(&served[if path == A_IMAGES { "/b-images.gz" } else { path }]));
    let (page, _) = serve(|_, _, _| whole(b"<!doctype html> please log in"));
    let (endless, _) = serve(|_, _, _| Reply("200 OK", vec![], vec![1; 1_000_000]));
    let (huge, _) = serve(|_, _, _| Reply("200 OK", vec!["Content-Length: 9000000000".to_owned()], vec![1; 10]));
    let (report, _) = run(catalog, &dir, &[&swapped, &page, &endless, &huge]);
    let error = report.expect_err("no mirror is good").to_string();
    let reasons: Vec<&str> = error.lines().skip(1).collect();
    assert!(reasons[0].contains("wrong number of images: expected 300, found 50"), "{reasons:?}");
    assert!(reasons[1].contains("wrong magic number"), "{reasons:?}");
    assert!(reasons[2].contains("too long"), "{reasons:?}");
    assert!(reasons[3].contains("too long") && reasons[3].contains("9000000000"), "{reasons:?}");
    assert!(!dir.path().join("toy/a-images.gz").exists());
}

#[test]
fn when_every_mirror_fails_the_error_says_what_to_put_where() {
    let (catalog, files) = toy();
    let dir = folder();
    let served = files.clone();
    let (url, _) =
        serve(move |path, from, _| if path == "/b-images.gz" { not_found() } else { honest(&served[path], from) });
    // Nothing listens on a port that was just released.
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
    let closed = format!("http://{port}");
    let text = run(catalog, &dir, &[&url, &closed]).0.expect_err("b-images is nowhere").to_string();
    let place = dir.path().join("toy/b-images.gz").display().to_string();
    for part in [&place, sha256(catalog, 2), sha256(catalog, 3), "404", &closed, "speed data check toy"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("a-images"), "existing files are not in the instructions: {text}");
    assert!(dir.path().join("toy/a-images.gz").exists(), "downloaded files are kept");
}

#[test]
fn an_invalid_file_is_not_overwritten_and_stops_before_any_download() {
    let (catalog, files) = toy();
    let dir = folder();
    let path = dir.path().join("b-images");
    fs::write(&path, "mine").expect("a file");
    let (url, requests) = serve_all(&files);
    let error = run(catalog, &dir, &[&url]).0.expect_err("a file is in the way");
    assert!(error.to_string().contains("b-images") && error.to_string().contains("move it away"), "{error}");
    assert_eq!(fs::read(&path).expect("still there"), b"mine");
    assert!(requests.lock().expect("no panic").is_empty());
}

#[test]
fn two_downloads_of_one_file_do_not_mix() {
    let (catalog, _) = toy();
    let dir = folder();
    fs::create_dir(dir.path().join("toy")).expect("a folder");
    let held = PartialFile::open(&dir.path().join("toy/a-images.gz")).expect("an unlocked file");
    let error = run(catalog, &dir, &["http://127.0.0.1:9"]).0.expect_err("held");
    let expected = format!("another process is downloading {}; wait until it has finished", held.path.display());
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_download_that_never_completes_is_abandoned() {
    let (catalog, files) = toy();
    let dir = folder();
    let (url, requests) = serve(move |path, from, _| cut(honest(&files[path], from)));
    let text = run(catalog, &dir, &[&url]).0.expect_err("never complete").to_string();
    assert!(text.contains("gave up after 10 attempts: interrupted"), "{text}");
    assert_eq!(requests.lock().expect("no panic").len(), TRIES);
}

#[test]
fn an_invalid_address_and_an_unknown_dataset_are_errors() {
    let (catalog, _) = toy();
    let text = run(catalog, &folder(), &["no address"]).0.expect_err("no address").to_string();
    assert!(text.contains("no address/a-images.gz"), "{text}");
    let text = fetch("toy", folder().path(), &[], &mut |_| {}).expect_err("unknown").to_string();
    assert!(text.contains("unknown dataset `toy`"), "{text}");
}
