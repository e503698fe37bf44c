//! Servers that answer queries in Stenographer's language over TLS, and the client that asks each of them in the same way: curl, called
//! as Stenographer's `stenocurl` calls it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::Value;

use crate::bench::program;

/// Until a server must answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// An authority, and keys of a server and a client, in the files that Stenographer expects in its folder of certificates.
#[derive(Debug)]
pub struct Certificates(pub PathBuf);

impl Certificates {
    /// Makes them with openssl, as long as Stenographer's own script makes them.
    ///
    /// # Errors
    /// If openssl fails.
    pub fn make(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let folder = folder.canonicalize()?;
        let of = |name: &str, extensions: &[&str]| {
            let mut openssl = Command::new("openssl");
            openssl.args(["req", "-x509", "-newkey", "rsa:4096", "-nodes", "-days", "30"]);
            openssl.args(["-subj", &format!("/CN={name}"), "-keyout", &format!("{name}_key.pem")]);
            openssl.args(["-out", &format!("{name}_cert.pem")]).current_dir(&folder);
            if name != "ca" {
                openssl.args(["-CA", "ca_cert.pem", "-CAkey", "ca_key.pem"]);
            }
            for extension in extensions {
                openssl.args(["-addext", extension]);
            }
            program::run(&mut openssl)
        };
        let leaf = "basicConstraints=critical,CA:FALSE";
        of("ca", &[])?;
        of("server", &[leaf, "subjectAltName=IP:127.0.0.1", "extendedKeyUsage=serverAuth"])?;
        of("client", &[leaf, "extendedKeyUsage=clientAuth"])?;
        Ok(Self(folder))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

/// A server under way, ended with this, and what it started as well.
#[derive(Debug)]
pub struct Server {
    child: Child,
    address: SocketAddr,
}

impl Drop for Server {
    fn drop(&mut self) {
        killpg(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM).ok();
        self.child.wait().ok();
    }
}

impl Server {
    /// `longtake serve` of an array.
    ///
    /// # Errors
    /// If it does not start.
    pub fn longtake(program: &Path, array: &Path, certificates: &Certificates) -> Result<Self> {
        let mut serve = Command::new(program);
        serve.args(["serve", "--json", "--listen", "127.0.0.1:0", "--array"]).arg(array);
        serve.arg("--tls-cert").arg(certificates.file("server_cert.pem"));
        serve.arg("--tls-key").arg(certificates.file("server_key.pem"));
        serve.arg("--tls-client-ca").arg(certificates.file("ca_cert.pem"));
        serve.stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let mut child = serve.spawn().context("starting longtake serve")?;
        let mut ready = String::new();
        let stdout = child.stdout.take().context("a pipe")?;
        BufReader::new(stdout).read_line(&mut ready)?;
        let ready: Value = serde_json::from_str(&ready).context("longtake serve did not start")?;
        let url = ready["url"].as_str().context("no address")?;
        let address = url.trim_start_matches("https://").trim_end_matches('/').parse();
        Ok(Self { child, address: address.with_context(|| format!("the address {url}"))? })
    }

    /// Another server, once it listens on its address.
    ///
    /// # Errors
    /// If it ends or does not listen.
    pub fn start(command: &mut Command, address: SocketAddr) -> Result<Self> {
        let child = command.process_group(0).spawn();
        let child = child.with_context(|| format!("starting {command:?}"))?;
        let mut server = Self { child, address };
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            if let Some(status) = server.child.try_wait()? {
                bail!("{command:?} ended: {status}");
            }
            if begun.elapsed() > PATIENCE {
                bail!("{command:?} does not listen on {address}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// Writes the packets that a query selects to a file.
    ///
    /// # Errors
    /// If the server refuses it.
    pub fn query(&self, query: &str, certificates: &Certificates, output: &Path) -> Result<()> {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--fail", "--data", query, "--output"]).arg(output);
        curl.arg("--cert").arg(certificates.file("client_cert.pem"));
        curl.arg("--key").arg(certificates.file("client_key.pem"));
        curl.arg("--cacert").arg(certificates.file("ca_cert.pem"));
        program::run(curl.arg(format!("https://{}/query", self.address)))?;
        Ok(())
    }
}

/// A local address on which no program listens.
///
/// # Errors
/// If there is none.
pub fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
