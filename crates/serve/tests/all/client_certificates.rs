//! Certificates of clients: they allow reading, until they are revoked.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use longtake_serve::{Limits, Options, ServeError, Server, TlsFiles};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType,
    IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, RevocationReason, RevokedCertParams, SerialNumber,
    date_time_ymd,
};
use serde_json::{Value, json};

use crate::access::Tokens;
use crate::harness::{Recorded, Service};
use crate::tls::{certificate, curl};

/// Who signs certificates of clients, and the files of a test.
struct Authority<'t> {
    tokens: &'t Tokens,
    name: &'static str,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

fn named(name: &str) -> CertificateParams {
    let mut parameters = CertificateParams::new(Vec::new()).expect("it needs no names");
    parameters.distinguished_name.remove(DnType::CommonName);
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters
}

impl<'t> Authority<'t> {
    fn new(tokens: &'t Tokens, name: &'static str) -> Self {
        let mut parameters = named(name);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("there are random numbers");
        let issuer = CertifiedIssuer::self_signed(parameters, key).expect("it can be made");
        let authority = Self { tokens, name, issuer };
        fs::write(authority.file(), authority.issuer.pem()).expect("there is room");
        authority
    }

    fn file(&self) -> PathBuf {
        self.tokens.beside(&format!("{}.pem", self.name))
    }

    /// Options of curl that show a new certificate with this number.
    fn client(&self, name: &str, number: u64) -> [String; 4] {
        let mut parameters = named(name);
        parameters.serial_number = Some(SerialNumber::from(number));
        let key = KeyPair::generate().expect("there are random numbers");
        let made = parameters.signed_by(&key, &self.issuer).expect("it can be made");
        let place = |end| self.tokens.beside(&format!("{}-{name}-{end}.pem", self.name));
        fs::write(place("cert"), made.pem()).expect("there is room");
        fs::write(place("key"), key.serialize_pem()).expect("there is room");
        let text = |path: PathBuf| path.display().to_string();
        ["--cert".to_owned(), text(place("cert")), "--key".to_owned(), text(place("key"))]
    }

    /// Writes the list of the numbers that are revoked.
    fn revoke(&self, numbers: &[u64]) -> PathBuf {
        let revoked = |&number: &u64| RevokedCertParams {
            serial_number: SerialNumber::from(number),
            revocation_time: date_time_ymd(2024, 6, 17),
            reason_code: Some(RevocationReason::KeyCompromise),
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2024, 6, 17),
            next_update: date_time_ymd(2024, 6, 18),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: numbers.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = list.signed_by(&self.issuer).expect("it can be made");
        let place = self.tokens.beside(&format!("{}-crl.pem", self.name));
        fs::write(&place, list.pem().expect("it is text")).expect("there is room");
        place
    }

    /// Files of a service that knows clients of this authority.
    fn known(&self, own: &TlsFiles, numbers: &[u64]) -> TlsFiles {
        let client_crl = Some(self.revoke(numbers));
        TlsFiles { client_ca: Some(self.file()), client_crl, ..own.clone() }
    }
}

/// A service that requires a token or a certificate, and how curl asks it.
struct Asked<'t> {
    service: Service,
    tls: &'t TlsFiles,
}

impl Asked<'_> {
    fn words(&self, path: &str, words: &[&str]) -> Vec<String> {
        let trusted = self.tls.certificate.display().to_string();
        let url = format!("https://127.0.0.1:{}{path}", self.service.port());
        let own = ["--cacert".to_owned(), trusted];
        own.into_iter().chain(words.iter().map(|word| (*word).to_owned())).chain([url]).collect()
    }

    fn curl(&self, path: &str, words: &[&str]) -> Output {
        let words = self.words(path, words);
        curl(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// What is answered with 200.
    fn read(&self, path: &str, words: &[&str]) -> String {
        let answer = self.curl(path, words);
        assert!(answer.status.success(), "{answer:?}");
        String::from_utf8(answer.stdout).expect("it is text")
    }

    /// The status of an answer; 000 if there is none.
    fn status(&self, path: &str, words: &[&str]) -> String {
        let with_status = [words, &["-o", "/dev/null", "-w", "%{http_code}"]].concat();
        String::from_utf8(self.curl(path, &with_status).stdout).expect("it is text")
    }
}

fn words(all: &[String]) -> Vec<&str> {
    all.iter().map(String::as_str).collect()
}

#[test]
fn a_client_with_a_certificate_reads_without_a_token_and_a_revoked_one_gets_no_connection() {
    let (recorded, tokens) = (Recorded::traffic(1_000_000), Tokens::new());
    let own = certificate(&tokens, "own");
    let (authority, other) = (Authority::new(&tokens, "ours"), Authority::new(&tokens, "theirs"));
    let (ops, old) = (authority.client("ops", 7), authority.client("old", 8));
    let stranger = other.client("ops", 7);
    let tls = authority.known(&own, &[8]);
    let log = tokens.beside("audit.jsonl");
    let options = Options { tls: Some(tls.clone()), audit: Some(log.clone()), ..tokens.required() };
    let asked = Asked { service: recorded.served_as(options), tls: &tls };
    let arrays = "/api/v1/arrays";
    assert!(asked.read(arrays, &words(&ops)).contains("radar"));
    // A handshake that fails has no status.
    for certificate in [&old, &stranger] {
        assert_eq!(asked.status(arrays, &words(certificate)), "000");
    }
    assert_eq!(asked.status(arrays, &[]), "401");
    let token = format!("Authorization: Bearer {}", tokens.protect);
    assert!(asked.read(arrays, &["-H", &token]).contains("radar"));
    // A certificate allows no more than reading, and makes no token valid.
    let span = r#"{"since": "1", "until": "2"}"#;
    let protect = ["-H", "Content-Type: application/json", "-d", span];
    let path = "/api/v1/arrays/radar/protected";
    assert_eq!(asked.status(path, &[&words(&ops)[..], &protect].concat()), "403");
    let with_token = [&words(&ops)[..], &protect, &["-H", &token]].concat();
    assert!(asked.read(path, &with_token).contains("protected_ranges"));
    let nonsense = [&words(&ops)[..], &["-H", "Authorization: Bearer nonsense"]].concat();
    assert_eq!(asked.status(arrays, &nonsense), "401");
    let lines = fs::read_to_string(&log).expect("it is there");
    let lines = lines.lines().map(|line| serde_json::from_str(line).expect("it is JSON"));
    let requests: Vec<Value> = lines.filter(|line: &Value| line["event"] == "request").collect();
    let who: Vec<(Value, Value)> = requests
        .iter()
        .map(|line| (line["token"].clone(), line["certificate"]["subject"].clone()))
        .collect();
    let (none, subject) = (Value::Null, json!("CN=ops"));
    let protector = json!("protector");
    let expected = [
        (&none, &subject),
        (&none, &none),
        (&protector, &none),
        (&none, &subject),
        (&protector, &subject),
        (&none, &subject),
    ];
    assert_eq!(who.iter().map(|(token, subject)| (token, subject)).collect::<Vec<_>>(), expected);
    let digest = requests[0]["certificate"]["sha256"].as_str().expect("a text");
    let shown = Command::new("openssl")
        .args(["x509", "-noout", "-fingerprint", "-sha256", "-in", &ops[1]])
        .output()
        .expect("openssl is installed by ./test");
    let shown = String::from_utf8_lossy(&shown.stdout).replace(':', "").to_lowercase();
    assert!(shown.trim().ends_with(&format!("={digest}")), "{shown} {digest}");
}

#[test]
fn changed_files_hold_from_the_next_connection_on_and_a_revoked_certificate_is_sent_no_more() {
    let (recorded, tokens) = (Recorded::traffic(1_000_000), Tokens::new());
    let (own, renewed) = (certificate(&tokens, "own"), certificate(&tokens, "renewed"));
    let authority = Authority::new(&tokens, "ours");
    let (ops, other) = (authority.client("ops", 7), authority.client("other", 8));
    let tls = authority.known(&own, &[]);
    let limits = Limits { quiet_max: Duration::from_millis(20), ..Limits::default() };
    let options = Options { tls: Some(tls.clone()), limits, ..tokens.required() };
    let asked = Asked { service: recorded.served_as(options), tls: &tls };
    let mut listening = Command::new("curl")
        .args(["-sN", "--noproxy", "*"])
        .args(asked.words("/api/v1/events", &words(&ops)))
        .stdout(Stdio::piped())
        .spawn()
        .expect("curl is installed by ./test");
    let mut events = listening.stdout.take().expect("it is piped");
    events.read_exact(&mut [0; 16]).expect("events come");
    authority.revoke(&[7]);
    std::io::copy(&mut events, &mut std::io::sink()).expect("it can be read");
    let ended = listening.wait().expect("it ends");
    assert!(!ended.success(), "curl takes it for complete");
    assert_eq!(asked.status("/metrics", &words(&ops)), "000");
    let outdated = |expected: &str| {
        let metrics = asked.read("/metrics", &words(&other));
        let line = format!("longtake_serve_tls_outdated {expected}");
        assert!(metrics.lines().any(|found| found == line), "{expected}: {metrics}");
    };
    outdated("0");
    // A key without its certificate changes nothing.
    fs::copy(&renewed.key, &own.key).expect("there is room");
    outdated("1");
    fs::copy(&renewed.certificate, &own.certificate).expect("there is room");
    outdated("0");
}

#[test]
fn each_authority_needs_its_list() {
    let (recorded, tokens) = (Recorded::traffic(100_000), Tokens::new());
    let own = certificate(&tokens, "own");
    let (ours, theirs) = (Authority::new(&tokens, "ours"), Authority::new(&tokens, "theirs"));
    let (one, other) = (ours.client("one", 7), theirs.client("other", 8));
    let (first, second) = (ours.revoke(&[]), theirs.revoke(&[7]));
    let both = |name: &str, files: [&PathBuf; 2]| {
        let texts = files.map(|file| fs::read_to_string(file).expect("it is there"));
        fs::write(tokens.beside(name), texts.concat()).expect("there is room");
        Some(tokens.beside(name))
    };
    let client_ca = both("both.pem", [&ours.file(), &theirs.file()]);
    // With a limit of none, a certificate reads no packets.
    let limits = Limits { reading_of_token_max: 0, ..Limits::default() };
    let asked = |client_crl| {
        let tls = TlsFiles { client_ca: client_ca.clone(), client_crl, ..own.clone() };
        let options = Options { tls: Some(tls), limits, ..tokens.required() };
        Asked { service: recorded.served_as(options), tls: &own }
    };
    let with_one = asked(Some(first.clone()));
    assert_eq!(with_one.status("/metrics", &words(&one)), "200");
    assert_eq!(with_one.status("/metrics", &words(&other)), "000");
    let with_both = asked(both("crls.pem", [&first, &second]));
    for certificate in [&one, &other] {
        assert_eq!(with_both.status("/metrics", &words(certificate)), "200");
        let refused = with_both.status("/api/v1/arrays/radar/packets", &words(certificate));
        assert_eq!(refused, "503");
    }
}

#[test]
fn files_about_clients_that_cannot_be_used_are_named() {
    let (recorded, tokens) = (Recorded::empty(), Tokens::new());
    let own = certificate(&tokens, "own");
    let authority = Authority::new(&tokens, "ours");
    let good = authority.known(&own, &[]);
    let empty = tokens.beside("empty.pem");
    fs::write(&empty, "").expect("there is room");
    for tls in [
        TlsFiles { client_ca: Some(empty.clone()), ..good.clone() },
        TlsFiles { client_crl: Some(empty.clone()), ..good.clone() },
        TlsFiles { client_crl: Some(tokens.beside("none.pem")), ..good.clone() },
    ] {
        let arrays = vec![recorded.place()];
        let options = Options { arrays, tls: Some(tls), ..tokens.options() };
        let refused = Server::bind(&options).expect_err("it is refused");
        assert!(matches!(refused, ServeError::Tls(_)), "{refused}");
        let text = refused.to_string();
        assert!(text.contains(".pem: ") && text.contains("--tls-client-crl"), "{text}");
    }
}
