//! `longtake token`: who may ask a service.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use base::Duration;
use clap::{Args, Subcommand};
use longtake::instant::now;
use serde_json::json;
use serve::{Scope, TokenStore};

use crate::printer;

/// `token`.
#[derive(Debug, Args)]
pub struct TokenArguments {
    /// What to do with them.
    #[command(subcommand)]
    pub action: TokenAction,
    /// File of tokens [default: /etc/longtake/tokens.toml for root, ~/.config/longtake/tokens.toml for other users].
    #[arg(long, value_name = "FILE", global = true)]
    pub file: Option<PathBuf>,
    /// Print JSON.
    #[arg(long, global = true)]
    pub json: bool,
}

/// What can be done with tokens.
#[derive(Debug, Subcommand)]
pub enum TokenAction {
    /// Create a token and print it. It can't be shown again.
    Create {
        /// Name of the token in listings and in the audit log.
        #[arg(long)]
        name: String,
        /// What the token allows: `read`; `protect`, which includes reading; or `admin`, which includes everything.
        #[arg(long)]
        scope: Scope,
        /// Time until the token expires, such as 90d [default: it never expires].
        #[arg(long, value_name = "TIME")]
        expires: Option<Duration>,
    },
    /// List tokens: name, scope, and when each was created and expires.
    List,
    /// Revoke a token. Running services refuse it from then on, and end the answers that it is being sent.
    Revoke {
        /// Name of the token.
        name: String,
    },
}

/// Does what is asked with tokens.
///
/// # Errors
/// If the file can't be read or changed, or the name is taken or unknown.
pub fn token(arguments: &TokenArguments) -> Result<ExitCode> {
    let store = TokenStore::new(arguments.file.as_deref())?;
    let (json, text) = match &arguments.action {
        TokenAction::Create { name, scope, expires } => {
            let secret = store.create(name, *scope, expires.map(|after| now() + after))?;
            (json!({"name": name, "scope": scope, "token": secret}), secret)
        }
        TokenAction::List => {
            let tokens = store.list()?;
            let rows = printer::rows(&serve::token_table(&tokens));
            (tokens.iter().map(serve::Token::shown).collect(), rows)
        }
        TokenAction::Revoke { name } => {
            store.revoke(name)?;
            (json!({"name": name, "revoked": true}), format!("{name}: revoked"))
        }
    };
    if arguments.json {
        printer::json(&json)?
    } else {
        printer::text(&text)?
    }
    Ok(ExitCode::SUCCESS)
}
