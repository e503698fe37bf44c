//! Connections from other machines are encrypted, and no others are answered.

use std::fs;
use std::io::Read;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use longtake::{FileFormat, Selection};
use longtake_serve::{Limits, Options, ServeError, Server, TlsFiles};

use crate::access::Tokens;
use crate::harness::{Recorded, Service};

/// A new certificate of this machine's own and its key, in files.
pub fn certificate(tokens: &Tokens, name: &str) -> TlsFiles {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).expect("it can be made");
    let place = |end| tokens.beside(&format!("{name}-{end}.pem"));
    let (certificate, key) = (place("cert"), place("key"));
    let files = TlsFiles { certificate, key, client_ca: None, client_crl: None };
    fs::write(&files.certificate, made.cert.pem()).expect("there is room");
    fs::write(&files.key, made.signing_key.serialize_pem()).expect("there is room");
    files
}

/// A service on all addresses of this machine.
pub fn served(recorded: &Recorded, tokens: &Tokens, tls: &TlsFiles, limits: Limits) -> Service {
    let listen = SocketAddr::from(([0, 0, 0, 0], 0));
    let arrays = vec![recorded.place()];
    Service::start(&Options { arrays, listen, tls: Some(tls.clone()), limits, ..tokens.options() })
}

pub fn curl(arguments: &[&str]) -> Output {
    let mut command = Command::new("curl");
    command.args(["-sS", "--fail", "--noproxy", "*"]).args(arguments);
    command.output().expect("curl is installed by ./test")
}

#[test]
fn a_service_for_other_machines_answers_over_tls_with_a_token() {
    let (recorded, tokens) = (Recorded::traffic(1_000_000), Tokens::new());
    let tls = certificate(&tokens, "own");
    let service = served(&recorded, &tokens, &tls, Limits::default());
    let at = |name: &str| {
        format!("://{name}:{}/api/v1/arrays/radar/packets?format=pcap", service.port())
    };
    let secure = format!("https{}", at("127.0.0.1"));
    let trust = ["--cacert", tls.certificate.to_str().expect("it is text")];
    let token = format!("Authorization: Bearer {}", tokens.read);
    let with_token = ["-H", token.as_str()];
    let packets = recorded.extracted(&Selection::default(), FileFormat::Pcap);
    for (version, host) in [("1.2", "127.0.0.1"), ("1.2", "radar.example"), ("1.3", "127.0.0.1")] {
        let (named, minimum) = (format!("Host: {host}"), format!("--tlsv{version}"));
        let words = [&minimum, "--tls-max", version, "-H", &named, &secure];
        let answer = curl(&[&trust[..], &with_token, &words].concat());
        assert!(answer.status.success() && answer.stdout == packets, "{answer:?}");
    }
    let by_name = format!("https{}", at("localhost"));
    assert!(curl(&[&trust[..], &with_token, &[&by_name]].concat()).stdout == packets);
    // Without the certificate, without a token, without TLS.
    assert_eq!(curl(&[&with_token[..], &[&secure]].concat()).status.code(), Some(60));
    let refused = curl(&[&trust[..], &[&secure]].concat());
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.stdout.is_empty() && said.contains("401"), "{said}");
    let plain = format!("http{}", at("127.0.0.1"));
    let refused = curl(&[&with_token[..], &[&plain]].concat());
    assert!(!refused.status.success() && refused.stdout.is_empty(), "{refused:?}");
}

#[test]
fn what_is_not_encrypted_gets_no_answer_and_the_service_lives() {
    let (recorded, tokens) = (Recorded::empty(), Tokens::new());
    recorded.record(100_000);
    let tls = certificate(&tokens, "own");
    let service = served(&recorded, &tokens, &tls, Limits::default());
    let ends = |service: &Service, sent: &str| {
        let mut answer = Vec::new();
        service.send(sent.as_bytes()).read_to_end(&mut answer).ok();
        let text = String::from_utf8_lossy(&answer);
        assert!(!text.contains("HTTP") && !text.contains("radar"), "{text}");
    };
    ends(&service, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    // A handshake that does not come ends, too, and makes room for another connection.
    let head_max = Duration::from_millis(50);
    let narrow = Limits { connections_max: 1, head_max, ..Limits::default() };
    let narrow = served(&recorded, &tokens, &tls, narrow);
    for sent in ["", "\u{16}\u{3}\u{1}", ""] {
        ends(&narrow, sent);
    }
    let url = format!("https://127.0.0.1:{}/", service.port());
    let certificate = tls.certificate.to_str().expect("it is text");
    let answer = curl(&["--cacert", certificate, &url]);
    assert!(answer.status.success(), "{answer:?}");
}

#[test]
fn an_address_that_other_machines_reach_needs_tls_and_a_token() {
    let (recorded, tokens) = (Recorded::empty(), Tokens::new());
    recorded.record(100_000);
    let tls = certificate(&tokens, "own");
    for listen in ["0.0.0.0:0", "[::]:0", "192.168.0.1:7878"] {
        let listen: SocketAddr = listen.parse().expect("an address");
        let options = Options { arrays: vec![recorded.place()], listen, ..tokens.options() };
        let refused = Server::bind(&options).expect_err("it is refused");
        assert!(matches!(refused, ServeError::NoTls(_)));
        for words in ["openssl req", "--tls-cert", "longtake token create", "SSH tunnel"] {
            assert!(refused.to_string().contains(words), "{refused}");
        }
        let none = Some(tokens.beside("none.toml"));
        let options = Options { tls: Some(tls.clone()), tokens: none, ..options };
        let refused = Server::bind(&options).expect_err("it is refused");
        assert!(matches!(refused, ServeError::NoToken(_)), "{refused}");
    }
}

#[test]
fn a_certificate_that_cannot_be_used_is_named() {
    let (recorded, tokens) = (Recorded::empty(), Tokens::new());
    let (own, other) = (certificate(&tokens, "own"), certificate(&tokens, "other"));
    let none = tokens.beside("none.pem");
    let empty = tokens.beside("empty.pem");
    fs::write(&empty, "").expect("there is room");
    let pair = |certificate: &PathBuf, key: &PathBuf| TlsFiles {
        certificate: certificate.clone(),
        key: key.clone(),
        client_ca: None,
        client_crl: None,
    };
    for (tls, named) in [
        (pair(&none, &own.key), &none),
        (pair(&empty, &own.key), &empty),
        (pair(&own.certificate, &empty), &empty),
        (pair(&own.certificate, &other.key), &other.key),
        (pair(&own.key, &own.key), &own.key),
    ] {
        let arrays = vec![recorded.place()];
        let options = Options { arrays, tls: Some(tls), ..tokens.options() };
        let refused = Server::bind(&options).expect_err("it is refused").to_string();
        assert!(refused.contains(&named.display().to_string()), "{refused}");
        assert!(refused.contains("--tls-cert"), "{refused}");
    }
}
