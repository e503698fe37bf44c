//! Tokens: without the right one nothing is answered, and it may end at any time.

use std::io::BufReader;

use longtake::Timestamp;
use longtake_serve::{Limits, Options, Scope, ServeError, Server, TokenStore};
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{Answer, Recorded, Service, is_guarded};

/// More than sockets and the service together hold for a client that does not read.
const MUCH: u64 = 60_000_000;

/// A store with a token of each scope.
pub struct Tokens {
    folder: TempDir,
    pub store: TokenStore,
    pub read: String,
    pub protect: String,
    pub admin: String,
}

impl Tokens {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("making a folder");
        let store = TokenStore::new(Some(&folder.path().join("tokens.toml")));
        let store = store.expect("it is named");
        let create = |name, scope| store.create(name, scope, None).expect("it can be created");
        Self {
            read: create("reader", Scope::Read),
            protect: create("protector", Scope::Protect),
            admin: create("admin", Scope::Admin),
            store,
            folder,
        }
    }

    /// A place for a file.
    pub fn beside(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// Options of a service that knows them, on any free port.
    pub fn options(&self) -> Options {
        let listen = ([127, 0, 0, 1], 0).into();
        Options { tokens: Some(self.store.path().to_owned()), listen, ..Options::default() }
    }

    /// Options of a service that requires one of them.
    pub fn required(&self) -> Options {
        Options { require_token: true, ..self.options() }
    }
}

/// The header that shows a token.
pub fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

/// The address that is asked by POST and changes nothing.
const QUERY: &str = "/query";

/// Whether a request changes nothing.
fn reads((method, path): &(String, String)) -> bool {
    method == "GET" || path == QUERY
}

/// The method and the address of each documented request, changes in an order in which they can be carried out.
fn documented(service: &Service, token: &str) -> Vec<(String, String)> {
    let document = service.request("GET", "/api/v1/openapi.json", &bearer(token), "");
    let document = Answer::read(document).json();
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().expect("an object") {
        let path = path.replace("{array}", "radar").replace("{take}", "last");
        assert!(!path.contains('{'), "{path}");
        let methods = item.as_object().expect("an object").keys().map(|key| key.to_uppercase());
        all.extend(methods.rev().map(|method| (method, path.clone())));
    }
    assert!(all.len() >= 11, "{all:?}");
    all
}

/// The status that a request is answered with. Some answers don't end.
fn status(service: &Service, (method, path): &(String, String), headers: &str) -> u16 {
    let body = match (method.as_str(), path.as_str()) {
        ("GET", _) => "",
        (_, QUERY) => "tcp",
        _ => r#"{"since": "1", "until": "2"}"#,
    };
    let headers = format!("Content-Type: application/json\r\n{headers}");
    let mut answer = BufReader::new(service.request(method, path, &headers, body));
    Answer::head(&mut answer).expect("it is answered").0
}

#[test]
fn every_documented_address_is_answered_with_the_right_token_alone() {
    let (recorded, tokens) = (Recorded::traffic(1_000_000), Tokens::new());
    let expired = tokens.store.create("expired", Scope::Admin, Some(Timestamp::from_nanos(1)));
    let expired = expired.expect("it can be created");
    let revoked = tokens.store.create("revoked", Scope::Admin, None).expect("it can be created");
    let service = recorded.served_as(tokens.required());
    let all = documented(&service, &revoked);
    tokens.store.revoke("revoked").expect("it is there");
    let refused = [
        String::new(),
        bearer(&expired),
        bearer(&revoked),
        bearer(&format!("longtake_{}", "0".repeat(64))),
        bearer(""),
        bearer(&tokens.read).replace("Bearer", "Basic"),
        bearer(&tokens.read).repeat(2),
        format!("X-Token: {}\r\n", tokens.admin),
    ];
    for request in &all {
        for headers in &refused {
            assert_eq!(status(&service, request, headers), 401, "{request:?} {headers}");
        }
        let (method, path) = request;
        let in_address = (method.clone(), format!("{path}?token={}", tokens.admin));
        assert_eq!(status(&service, &in_address, ""), 401, "{in_address:?}");
        if !reads(request) {
            assert_eq!(status(&service, request, &bearer(&tokens.read)), 403, "{request:?}");
        }
    }
    for token in [&tokens.read, &tokens.protect, &tokens.admin] {
        let reads_only = *token == tokens.read;
        for request in all.iter().filter(|request| !reads_only || reads(request)) {
            assert_eq!(status(&service, request, &bearer(token)), 200, "{request:?}");
        }
    }
}

#[test]
fn a_refusal_says_what_is_needed_and_shows_nothing() {
    let (recorded, tokens) = (Recorded::traffic(1_000_000), Tokens::new());
    let service = recorded.served_as(tokens.required());
    for path in ["/nowhere", "/metrics", "/api/v1/arrays/radar", "/api/v1/arrays/none"] {
        let answer = service.get(path);
        assert!(answer.status == 401 && is_guarded(&answer), "{path}");
        assert!(answer.headers["www-authenticate"].starts_with("Bearer"), "{path}");
        assert_eq!(answer.headers["connection"], "close");
        let text = answer.text();
        assert!(text.contains("longtake token create") && !text.contains("radar"), "{text}");
    }
    // The first page needs no token, because browsers have none.
    let page = service.get("/");
    assert!(page.status == 200 && !page.text().contains("radar"));
    let forbidden =
        service.request("DELETE", "/api/v1/arrays/radar/protected", &bearer(&tokens.read), "");
    let error = Answer::read(forbidden).json()["error"].to_string();
    assert!(["reader", "read", "protect"].iter().all(|word| error.contains(word)), "{error}");
}

#[test]
fn on_a_loopback_address_only_changes_need_a_token_but_a_wrong_one_is_refused() {
    let (recorded, tokens) = (Recorded::traffic(1_000_000), Tokens::new());
    let service = recorded.served_as(tokens.options());
    for request in documented(&service, &tokens.read) {
        let expected = if reads(&request) { 200 } else { 401 };
        assert_eq!(status(&service, &request, ""), expected, "{request:?}");
        assert_eq!(status(&service, &request, &bearer("nonsense")), 401, "{request:?}");
    }
    assert_eq!(protected(&recorded), serde_json::json!([]));
    // A store that can't be read lets nobody in.
    std::fs::write(tokens.store.path(), "nonsense").expect("it is ours");
    let request = ("GET".to_owned(), "/metrics".to_owned());
    assert_eq!(status(&service, &request, &bearer(&tokens.admin)), 500);
    assert_eq!(status(&service, &request, ""), 200);
}

#[test]
fn a_token_that_is_revoked_ends_what_it_reads() {
    let (recorded, tokens) = (Recorded::traffic(MUCH), Tokens::new());
    let service = recorded.served_as(tokens.options());
    let path = "/api/v1/arrays/radar/packets";
    let reading = service.request("GET", path, &bearer(&tokens.read), "");
    let mut reader = BufReader::new(reading);
    let head = Answer::head(&mut reader).expect("it is answered");
    tokens.store.revoke("reader").expect("it is there");
    let answer = Answer::behind(head, &mut reader);
    assert!(answer.status == 200 && !answer.is_whole);
    service.wait_until_nobody_reads();
}

#[test]
fn a_token_reads_packets_twice_at_the_same_time_at_most() {
    let (recorded, tokens) = (Recorded::traffic(MUCH), Tokens::new());
    let service = recorded.served_as(tokens.options());
    let ask = |path: &str, token: &str| {
        service.request("GET", &format!("/api/v1/arrays/radar/{path}"), &bearer(token), "")
    };
    let _reading = [ask("packets", &tokens.read), ask("packets", &tokens.read)];
    while service.metric("longtake_serve_reading") != Some(2.0) {}
    let refused = Answer::read(ask("flows?top=1", &tokens.read));
    assert!(refused.status == 503 && refused.headers.contains_key("retry-after"));
    assert!(refused.text().contains("2 requests with this token"), "{}", refused.text());
    assert_eq!(Answer::read(ask("takes", &tokens.read)).status, 200);
    assert_eq!(Answer::read(ask("flows?top=1", &tokens.admin)).status, 200);
    service.json("/api/v1/arrays/radar/flows?top=1");
    assert_eq!(Limits::default().reading_of_token_max, 2);
}

#[test]
fn a_service_that_requires_tokens_does_not_start_without_a_valid_one() {
    let (recorded, tokens) = (Recorded::empty(), Tokens::new());
    let arrays = vec![recorded.place()];
    let refused = |options: &Options| {
        let options = Options { arrays: arrays.clone(), ..options.clone() };
        let refused = Server::bind(&options).expect_err("it does not start");
        (matches!(refused, ServeError::NoToken(_)), refused.to_string())
    };
    for name in ["reader", "protector", "admin"] {
        tokens.store.revoke(name).expect("it is there");
    }
    tokens.store.create("old", Scope::Read, Some(Timestamp::MIN)).expect("it can be created");
    let (is_for_token, text) = refused(&tokens.required());
    assert!(is_for_token && text.contains("longtake token create"), "{text}");
    assert!(text.contains(&tokens.store.path().display().to_string()), "{text}");
    let nowhere = Options { tokens: Some(tokens.beside("none")), ..tokens.required() };
    assert!(refused(&nowhere).0);
    std::fs::write(tokens.beside("other"), "[array]").expect("it is ours");
    let other = Options { tokens: Some(tokens.beside("other")), ..tokens.required() };
    let (is_for_token, text) = refused(&other);
    assert!(!is_for_token && text.contains("other"), "{text}");
}

/// The protected spans of an array.
pub fn protected(recorded: &Recorded) -> Value {
    let described = recorded.open().describe().expect("it can be read");
    longtake::json::described(&described)["protected"].clone()
}
