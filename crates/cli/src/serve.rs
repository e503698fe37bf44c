//! `longtake serve`: what was recorded, over HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use longtake::service_manager::ServiceManager;
use serve::{LISTEN, Options, Server, TlsFiles};
use target::output::Outputs;

use crate::printer;

/// `serve`.
#[derive(Debug, Args)]
pub struct ServeArguments {
    /// Array to serve: a directory of member files, drives with commas between them, or an array's name or UUID. Give it once for
    /// each array [default: the arrays on the drives of this machine].
    #[arg(long = "array", value_name = "ARRAY")]
    pub arrays: Vec<String>,
    /// Address and port to listen on; port 0 selects a free one. An address that other machines can reach requires TLS, and tokens or client
    /// certificates.
    #[arg(long, value_name = "ADDR:PORT", default_value_t = LISTEN)]
    pub listen: SocketAddr,
    /// Loopback address and port where the packets of the only array are sent as PCAP-over-IP, for `tshark -i TCP@ADDR:PORT`.
    #[arg(long, value_name = "ADDR:PORT")]
    pub pcap_over_ip: Option<SocketAddr>,
    /// Certificate in PEM, followed by those of its issuers: encrypt connections, and refuse all others.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Key of the certificate in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Certificates in PEM of those who sign clients' certificates. A client that shows one of theirs may read without a token.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_client_ca: Option<PathBuf>,
    /// Their revocation lists in PEM: a client with a revoked certificate gets no connection.
    #[arg(long, value_name = "FILE", requires = "tls_client_ca")]
    pub tls_client_crl: Option<PathBuf>,
    /// Require a token or a client certificate for each request on a loopback address, too.
    #[arg(long)]
    pub require_token: bool,
    /// File of tokens [default: that of `longtake token`].
    #[arg(long, value_name = "FILE")]
    pub tokens: Option<PathBuf>,
    /// Add a line of JSON to this file for each request and for each answer. Requests are refused while it can't be written.
    #[arg(long, value_name = "FILE")]
    pub audit: Option<PathBuf>,
    /// Print the arrays and the address as JSON, once the service is ready.
    #[arg(long)]
    pub json: bool,
}

/// Serves until a signal ends it.
///
/// # Errors
/// If an array can't be opened, the address can't be listened on, or TLS, a token or the audit log lacks.
pub fn serve(arguments: &ServeArguments) -> Result<ExitCode> {
    let ServeArguments { arrays, listen, tls_cert, tls_key, tokens, audit, .. } = arguments;
    let files = [tls_cert, tls_key, &arguments.tls_client_ca, &arguments.tls_client_crl];
    if let Some(audit) = audit {
        Outputs::new(true).reads(files.into_iter().chain([tokens]).flatten()).check(audit)?;
    }
    let options = Options {
        arrays: arrays.clone(),
        listen: *listen,
        pcap_over_ip: arguments.pcap_over_ip,
        tls: TlsFiles::of(files.map(Option::clone)),
        tokens: tokens.clone(),
        require_token: arguments.require_token,
        audit: audit.clone(),
        ..Options::default()
    };
    let server = Server::bind(&options)?;
    match arguments.json {
        true => printer::json_line(&server.ready_json())?,
        false => printer::text(&server.ready_text())?,
    }
    // Whoever can't be told is named, and the service runs all the same.
    let manager = ServiceManager::from_environment().unwrap_or_else(|error| {
        printer::tell(&format!("longtake: warning: {error:#}"));
        None
    });
    server.run_until_signal(manager)?;
    Ok(ExitCode::SUCCESS)
}
