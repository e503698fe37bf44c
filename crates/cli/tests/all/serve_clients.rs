//! `longtake serve` for clients with certificates: the page's examples, with Stenographer's own scripts.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::documents::lines;
use crate::harness::{Ran, longtake, run, scratch, tool};
use crate::serve::Service;
use crate::serve_access::{example, page, record, shell};

/// Starts the service of an example, on a free port. Returns the port as well.
fn started(example: &str, folder: &Path) -> (Service, String) {
    let line =
        example.replace("/data/radar", "radar").replace(":7878", ":0").replace(":1234", ":0");
    let mut command = longtake();
    command.args(line.split_whitespace().skip(1)).current_dir(folder);
    let service = Service::start(command.env("HOME", folder).env_remove("XDG_CONFIG_HOME"));
    let port = service.address.strip_prefix("https://0.0.0.0:").expect("a port is chosen");
    let port = port.to_owned();
    (service, port)
}

#[test]
fn the_examples_of_the_page_about_client_certificates_run() {
    let folder = scratch();
    record(folder.path());
    let page = page();
    let section = page.split_once("\n### Client certificates\n").expect("it is there").1;
    let section = section.split_once("\n### ").expect("another one follows").0;
    tool("openssl", "openssl");
    let own =
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 ";
    shell(&example(&page, own).replace("HOST", "localhost"), folder.path(), "").code(0);
    let all = lines::code(section);
    let is_later = |line: &&String| ["longtake", "curl"].iter().any(|name| line.starts_with(name));
    let commands: Vec<_> = all.iter().filter(|line| !is_later(line)).collect();
    let (first, revoking) = commands.split_at(commands.len() - 2);
    assert_eq!(first.len(), 5, "{commands:?}");
    let carry_out = |commands: &[&String]| {
        for command in commands {
            shell(command, folder.path(), "").code(0);
        }
    };
    carry_out(first);
    let (_service, port) = started(&example(section, "longtake serve"), folder.path());
    let curl = example(section, "curl").replace("HOST:7878", &format!("localhost:{port}"));
    let listed = shell(&curl, folder.path(), "").code(0).json();
    assert_eq!(listed["arrays"][0]["id"], "radar");
    let without = curl.replace("--cert client.pem --key client-key.pem", "");
    let refused = shell(&without, folder.path(), "").code(0).json();
    assert!(refused["error"].to_string().contains("client certificate"), "{refused}");
    // The second list has the certificate.
    carry_out(revoking);
    let refused = shell(&curl, folder.path(), "");
    assert!(refused.code != 0 && refused.stdout.is_empty(), "{}", refused.text());
}

/// A folder of certificates with the names and the keys that Stenographer gives them, and the configuration of its clients.
fn certificates(folder: &Path) {
    fs::create_dir(folder.join("certs")).expect("it is new");
    let key = "openssl ecparam -name prime256v1 -genkey -noout -out certs";
    shell(&format!("{key}/client_key.pem && {key}/server_key.pem"), folder, "").code(0);
    let authority = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 9 \
        -subj '/C=XX/O=Stenographer/CN=*.steno' -addext keyUsage=critical,keyCertSign,cRLSign \
        -keyout certs/ca_key.pem -out certs/ca_cert.pem";
    shell(authority, folder, "").code(0);
}

#[test]
fn stenographer_s_clients_read_a_recording() {
    let folder = scratch();
    record(folder.path());
    certificates(folder.path());
    let page = page();
    let certs = folder.path().join("certs");
    let signing: Vec<_> = lines::code(&page)
        .into_iter()
        .filter(|line| line.starts_with("openssl req -x509 -CA ca_cert.pem"))
        .collect();
    assert_eq!(signing.len(), 2, "{signing:?}");
    for command in signing {
        shell(&command.replace("HOST", "localhost"), &certs, "").code(0);
    }
    let serve = example(&page, "longtake serve --array /data/radar --listen 0.0.0.0:1234");
    let serve = serve.replace("/data/radar", "../radar");
    let (_service, port) = started(&serve, &certs);
    let config =
        format!(r#"{{"Host": "localhost", "Port": {port}, "CertPath": "{}"}}"#, certs.display());
    fs::write(folder.path().join("config"), config).expect("there is room");
    tool("jq", "jq");
    tool("tcpdump", "tcpdump");
    let read = |command: &mut Command, words: &[&str]| -> Ran {
        let command = command.args(words).env("STENOGRAPHER_CONFIG", folder.path().join("config"));
        run(command.current_dir(folder.path()))
    };
    let stenoread = || tool("stenoread", "stenographer-client");
    let examples: Vec<_> =
        lines::code(&page).into_iter().filter(|line| line.starts_with("stenoread ")).collect();
    let counts = examples.iter().map(|example| {
        let quoted: Vec<&str> = example.split('\'').collect();
        let [before, query, after] = quoted[..] else { panic!("{example}") };
        let mut words: Vec<&str> = before.split_whitespace().skip(1).collect();
        words.push(query);
        words.extend(after.split_whitespace());
        read(&mut stenoread(), &words).code(0).text().lines().count()
    });
    assert_eq!(counts.collect::<Vec<_>>(), [3, 6]);
    // tshark finds in the file what was asked for, and nothing else.
    read(&mut stenoread(), &["udp and port 53", "-w", "dns.pcap"]).code(0);
    let shown = |filter: &str| {
        let mut tshark = tool("tshark", "tshark");
        let tshark = tshark.args(["-r", "dns.pcap", "-Y", filter]).current_dir(folder.path());
        run(tshark).code(0).text().lines().count()
    };
    assert!(shown("udp.port == 53") > 3);
    assert_eq!(shown("!(udp.port == 53)"), 0);
    let wrong =
        read(&mut tool("stenocurl", "stenographer-client"), &["/query", "-s", "-d", "host x"]);
    let wrong = wrong.code(0).text();
    assert!(wrong.contains("'x' is not an IP address at character 6"), "{wrong}");
}
