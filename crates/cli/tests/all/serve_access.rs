//! `longtake serve` for other machines, and `longtake token`: the page's examples, and what the commands print.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::documents::lines;
use crate::harness::{Ran, asked, line, longtake, ran, run, scratch, tool};
use crate::serve::Service;

/// The page about the service.
pub fn page() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/serve.md");
    fs::read_to_string(page).expect("it is there")
}

/// The only example of the page that begins so.
pub fn example(page: &str, start: &str) -> String {
    let found: Vec<_> =
        lines::code(page).into_iter().filter(|line| line.starts_with(start)).collect();
    assert_eq!(found.len(), 1, "{start}: {found:?}");
    found[0].clone()
}

/// Records a small array into `radar`.
pub fn record(folder: &Path) {
    let small = "--members 2 --member-size 65MiB --segment 8MiB --memory 64MiB";
    let record = "record -q --from traffic:50MB/s --until-bytes 1MB --to @/radar";
    line(&format!("{record} {small}"), folder).code(0);
}

/// Runs a line of the page in a folder, with a token in the environment.
pub fn shell(line: &str, folder: &Path, token: &str) -> Ran {
    let mut shell = tool("bash", "bash");
    run(shell.args(["-c", line]).env("TOKEN", token).current_dir(folder))
}

#[test]
fn the_examples_of_the_page_about_access_run() {
    let folder = scratch();
    record(folder.path());
    let page = page();
    tool("openssl", "openssl");
    let own =
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 ";
    let example = |start: &str| example(&page, start);
    let openssl = example(own).replace("HOST", "localhost");
    shell(&openssl, folder.path(), "").code(0);
    let words = |line: &str| {
        let words: Vec<_> = line.split_whitespace().skip(1).map(str::to_owned).collect();
        let mut command = longtake();
        command.args(words).current_dir(folder.path());
        command
    };
    let create = example("longtake token create");
    let token = run(words(&create).args(["--file", "tokens.toml"])).code(0).text();
    let protect = create.replace("grafana", "operator").replace("read", "protect");
    let protector = run(words(&protect).args(["--file", "tokens.toml"])).code(0).text();
    let serve = example("longtake serve --array /data/radar --listen 0.0.0.0:7878");
    let serve = serve.replace("/data/radar", "radar").replace("0.0.0.0:7878", "0.0.0.0:0");
    let service =
        Service::start(words(&serve).args(["--tokens", "tokens.toml", "--audit", "audit.jsonl"]));
    let address = service.address.strip_prefix("https://0.0.0.0:").expect("a port is chosen");
    let place = format!("https://localhost:{address}");
    let curl = example("curl --cacert cert.pem -H").replace("https://HOST:7878", &place);
    let listed = shell(&curl, folder.path(), token.trim()).code(0).json();
    assert_eq!(listed["arrays"][0]["id"], "radar");
    let post = example("curl -X POST").replace("http://127.0.0.1:7878", &place);
    let post = post.replace("curl ", "curl -s --cacert cert.pem ");
    let refused = shell(&post, folder.path(), token.trim()).code(0).json();
    assert!(refused["error"].to_string().contains("protect"), "{refused}");
    let protected = shell(&post, folder.path(), protector.trim()).code(0).json();
    assert_eq!(protected["protected_ranges"], 1, "{protected}");
    let shown = asked("array show @/radar", folder.path());
    assert_eq!(shown["protected"][0]["label"], "overflight");
    let revoke = "token revoke grafana --file @/tokens.toml";
    line(revoke, folder.path()).code(0);
    let refused = shell(&curl, folder.path(), token.trim()).code(0).json();
    assert!(refused["error"].to_string().contains("unknown"), "{refused}");
    // The keys of the page's sample are those of the log.
    let log = fs::read_to_string(folder.path().join("audit.jsonl")).expect("it is there");
    let sample = page.lines().filter(|line| line.starts_with("{\""));
    let keys = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("it is JSON");
        line.as_object().expect("an object").keys().cloned().collect::<Vec<_>>()
    };
    let of_log: Vec<_> = log.lines().take(2).map(keys).collect();
    assert_eq!(sample.map(keys).collect::<Vec<_>>(), of_log);
    assert!(log.contains("operator") && !log.contains(token.trim()), "{log}");
}

#[test]
fn tokens_are_created_listed_and_revoked() {
    let folder = scratch();
    let at = |words: &str| line(&format!("token {words} --file @/tokens.toml"), folder.path());
    let secret = at("create --name one --scope read").code(0).text();
    assert!(secret.starts_with("longtake_"), "{secret}");
    let created = at("create --name two --scope admin --expires 90d --json").code(0).json();
    assert_eq!((&created["name"], &created["scope"]), (&json!("two"), &json!("admin")));
    let listed = at("list --json").code(0).json();
    assert_eq!((&listed[0]["name"], &listed[0]["expires"]), (&json!("one"), &json!(null)));
    assert!(listed[1]["expires"].is_string() && listed[1]["expired"] == false, "{listed}");
    let table = at("list").code(0).text();
    for word in ["token", "one", "read", "never", "two", "admin"] {
        assert!(table.contains(word), "{table}");
    }
    at("create --name one --scope read").code(1).says(&["already", "longtake token revoke one"]);
    at("create --name loopback --scope read").code(1).says(&["loopback"]);
    at("create --name three --scope write").code(2).says(&["read, protect or admin"]);
    at("revoke one").code(0);
    at("revoke one").code(1).says(&["no token 'one'", "longtake token list"]);
    assert_eq!(at("list --json").code(0).json().as_array().map(Vec::len), Some(1));
}

#[test]
fn tls_needs_a_certificate_and_its_key() {
    let folder = scratch();
    record(folder.path());
    let serve = "serve --array @/radar --listen 127.0.0.1:0";
    line(&format!("{serve} --tls-cert @/none.pem"), folder.path()).code(2).says(&["--tls-key"]);
    line(&format!("{serve} --tls-cert @/none.pem --tls-key @/none.pem"), folder.path())
        .code(1)
        .says(&["none.pem", "openssl req"]);
    line(&format!("{serve} --tls-client-ca @/none.pem"), folder.path())
        .code(2)
        .says(&["--tls-cert"]);
    line(&format!("{serve} --require-token --tokens @/none.toml"), folder.path())
        .code(1)
        .says(&["none.toml", "longtake token create"]);
    ran(["token"]).code(2);
}
