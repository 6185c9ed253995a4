//! Leases between processes, two of which are simulated by this one.

use super::*;

/// Returns a process of another machine, with a short timeout for a test.
fn elsewhere(abandoned_after: Duration) -> Leases {
    let leases = Leases::new().expect("random bytes");
    let other = String::from_utf8(leases.me.to_json()).expect("text").replace("pid:[", "other:[");
    Leases { me: Holder::from_json(other.as_bytes()), abandoned_after, ..leases }
}

fn ours(leased: Leased) -> Lease {
    match leased {
        Leased::Ours(lease) => lease,
        Leased::Theirs(holder) => panic!("of {holder}"),
    }
}

#[test]
fn a_leased_unit_belongs_to_one_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let [one, other] = [(); 2].map(|()| Leases::new().expect("random bytes"));
    let lease = ours(one.take(folder.path(), "a").expect("written"));
    let Leased::Theirs(holder) = other.take(folder.path(), "a").expect("written") else { panic!("twice") };
    assert!(holder.to_string().contains(&std::process::id().to_string()), "{holder}");
    assert!(matches!(other.take(folder.path(), "b").expect("written"), Leased::Ours(_)));
    assert!(other.refuse_others(folder.path()).is_err_and(|error| error.to_string().contains("process ")));
    drop(lease);
    assert!(other.refuse_others(folder.path()).is_ok());
    drop(ours(other.take(folder.path(), "a").expect("written")));
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0, "files remain");
}

#[test]
fn the_lease_of_a_dead_process_is_taken_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let mine = Leases::new().expect("random bytes");
    let mut dead: serde_json::Value = serde_json::from_slice(&mine.me.numbered(7).to_json()).expect("JSON");
    dead["started"] = serde_json::json!(1);
    fs::write(folder.path().join("a.lease"), dead.to_string()).expect("written");
    // A process of this machine: taken over at once.
    drop(ours(mine.take(folder.path(), "a").expect("written")));
    // A process of another machine: taken over after its counter has not changed, or is missing, for a while by our own
    // clock.
    for (text, heart) in [(dead.to_string().replace("pid:[", "far:["), "alive-x"), ("rubbish".to_owned(), "alive-y")] {
        fs::write(folder.path().join("a.lease"), text).expect("written");
        fs::write(folder.path().join(heart), "5").expect("written");
        let mine = Leases { abandoned_after: Duration::from_millis(100), ..Leases::new().expect("random bytes") };
        assert!(matches!(mine.take(folder.path(), "a").expect("written"), Leased::Theirs(_)));
        std::thread::sleep(Duration::from_millis(150));
        drop(ours(mine.take(folder.path(), "a").expect("written")));
    }
}

#[test]
fn a_counter_that_grows_keeps_a_lease() {
    let folder = tempfile::tempdir().expect("a folder");
    let far = elsewhere(Duration::from_secs(60));
    let far = Leases { heartbeat: Arc::new(Heartbeat::new(far.me.heart.clone(), Duration::from_millis(20))), ..far };
    let lease = ours(far.take(folder.path(), "a").expect("written"));
    let mine = Leases { abandoned_after: Duration::from_secs(2), ..Leases::new().expect("random bytes") };
    // Longer than an abandoned lease is kept.
    for _ in 0..60 {
        assert!(matches!(mine.take(folder.path(), "a").expect("written"), Leased::Theirs(_)));
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(mine.refuse_others(folder.path()).is_err());
    // A live process that was considered dead does not remove the other's lease when it ends.
    let judged = read(&folder.path().join("a.lease")).expect("a lease");
    take_away(&folder.path().join("a.lease"), &judged).expect("taken");
    let other = ours(mine.take(folder.path(), "a").expect("written"));
    drop(lease);
    assert!(folder.path().join("a.lease").exists());
    // A lease that was created again between the check and the removal is put back.
    take_away(&folder.path().join("a.lease"), &judged).expect("put back");
    assert!(read(&folder.path().join("a.lease")).is_some_and(|found| found.token == other.token));
}

#[test]
fn obstacles_at_the_path_of_a_lease_are_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(format!("{name}.lease"));
    fs::create_dir(at("folder")).expect("a folder");
    #[cfg(unix)]
    std::os::unix::fs::symlink("nowhere", at("link")).expect("a link");
    let mut odd = elsewhere(Duration::ZERO).me;
    odd.token = "a/../b".into();
    fs::write(at("odd"), odd.to_json()).expect("written");
    let mine = Leases { abandoned_after: Duration::from_millis(50), ..Leases::new().expect("random bytes") };
    for unit in ["folder", "link", "odd"] {
        let taken = (0..100).find_map(|_| match mine.take(folder.path(), unit).expect("written") {
            Leased::Ours(lease) => Some(lease),
            Leased::Theirs(_) => {
                std::thread::sleep(Duration::from_millis(20));
                None
            }
        });
        assert!(taken.is_some(), "{unit}");
    }
}

#[test]
fn a_lease_taken_while_others_are_checked_is_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.lease"), elsewhere(Duration::ZERO).me.to_json()).expect("written");
    let [mine, other] = [(); 2].map(|()| Leases::new().expect("random bytes"));
    let mine = Leases { abandoned_after: Duration::from_secs(10), ..mine };
    let other = Leases { abandoned_after: Duration::from_millis(50), ..other };
    std::thread::scope(|scope| {
        let refused = scope.spawn(|| mine.refuse_others(folder.path()));
        // It waits for the lease of an ended process, and takes it over before the first one is certain that it is
        // abandoned.
        let lease = loop {
            match other.take(folder.path(), "a").expect("written") {
                Leased::Ours(lease) => break lease,
                Leased::Theirs(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        assert!(refused.join().expect("no panic").is_err(), "its folder would be renamed under it");
        drop(lease);
    });
}
