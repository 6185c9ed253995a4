//! Claims between processes, two of which are this one.

use super::*;

/// A process of another machine, with patience for a test.
fn elsewhere(abandoned_after: Duration) -> Claims {
    let claims = Claims::new().expect("random bytes");
    let other = String::from_utf8(claims.me.to_json()).expect("text").replace("pid:[", "other:[");
    Claims { me: Holder::from_json(other.as_bytes()), abandoned_after, ..claims }
}

fn ours(claimed: Claimed) -> Claim {
    match claimed {
        Claimed::Ours(claim) => claim,
        Claimed::Theirs(holder) => panic!("of {holder}"),
    }
}

#[test]
fn a_unit_is_one_process_s_until_it_is_done_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let [one, other] = [(); 2].map(|()| Claims::new().expect("random bytes"));
    let claim = ours(one.take(folder.path(), "a").expect("written"));
    let Claimed::Theirs(holder) = other.take(folder.path(), "a").expect("written") else { panic!("twice") };
    assert!(holder.to_string().contains(&std::process::id().to_string()), "{holder}");
    assert!(matches!(other.take(folder.path(), "b").expect("written"), Claimed::Ours(_)));
    assert!(other.refuse_others(folder.path()).is_err_and(|error| error.to_string().contains("process ")));
    drop(claim);
    assert!(other.refuse_others(folder.path()).is_ok());
    drop(ours(other.take(folder.path(), "a").expect("written")));
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0, "something stayed behind");
}

#[test]
fn the_claim_of_a_process_that_is_gone_is_taken_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let mine = Claims::new().expect("random bytes");
    let mut gone: serde_json::Value = serde_json::from_slice(&mine.me.numbered(7).to_json()).expect("JSON");
    gone["started"] = serde_json::json!(1);
    fs::write(folder.path().join("a.claim"), gone.to_string()).expect("written");
    // Of this machine: at once.
    drop(ours(mine.take(folder.path(), "a").expect("written")));
    // Of another: when its counter has stood still, or is not there, for a while by our own clock.
    for (text, heart) in [(gone.to_string().replace("pid:[", "far:["), "alive-x"), ("rubbish".to_owned(), "alive-y")] {
        fs::write(folder.path().join("a.claim"), text).expect("written");
        fs::write(folder.path().join(heart), "5").expect("written");
        let mine = Claims { abandoned_after: Duration::from_millis(100), ..Claims::new().expect("random bytes") };
        assert!(matches!(mine.take(folder.path(), "a").expect("written"), Claimed::Theirs(_)));
        std::thread::sleep(Duration::from_millis(150));
        drop(ours(mine.take(folder.path(), "a").expect("written")));
    }
}

#[test]
fn a_counter_that_grows_keeps_a_claim() {
    let folder = tempfile::tempdir().expect("a folder");
    let far = elsewhere(Duration::from_secs(60));
    let far = Claims { heart: Arc::new(Heart::new(far.me.heart.clone(), Duration::from_millis(20))), ..far };
    let claim = ours(far.take(folder.path(), "a").expect("written"));
    let mine = Claims { abandoned_after: Duration::from_millis(400), ..Claims::new().expect("random bytes") };
    for _ in 0..20 {
        assert!(matches!(mine.take(folder.path(), "a").expect("written"), Claimed::Theirs(_)));
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(mine.refuse_others(folder.path()).is_err());
    // One that was taken for dead and lives does not take the other's claim away when it ends.
    let judged = read(&folder.path().join("a.claim")).expect("a claim");
    take_away(&folder.path().join("a.claim"), &judged).expect("taken");
    let other = ours(mine.take(folder.path(), "a").expect("written"));
    drop(claim);
    assert!(folder.path().join("a.claim").exists());
    // A claim that was made anew between judging and taking is put back.
    take_away(&folder.path().join("a.claim"), &judged).expect("put back");
    assert!(read(&folder.path().join("a.claim")).is_some_and(|found| found.token == other.token));
}
