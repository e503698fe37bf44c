//! Tokens: what lets a client ask, and for how much. The store is a file with their names, scopes and digests; a token itself is
//! shown once, when it is created.
//!
//! The store is replaced whole, under a lock, and read again by a service when it has changed.

use std::fmt;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use longtake::Timestamp;
use longtake::instant::{When, now, utc};
use longtake::text::Table;
use nix::libc::O_NONBLOCK;
use nix::unistd::Uid;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::file_stamp::FileStamp;

/// What every token begins with, so that scanners for secrets find it.
const PREFIX: &str = "longtake_";

/// Random bytes of a token.
const TOKEN_BYTES: usize = 32;

/// Longest name of a token in bytes.
const NAME_BYTES_MAX: usize = 64;

/// The name of clients that need no token in the audit log, which no token may have.
pub const LOOPBACK: &str = "loopback";

/// Longest store in bytes.
const STORE_BYTES_MAX: u64 = 1 << 20;

/// The first lines of a store.
const HEAD: &str = "# Tokens of `longtake serve`. `longtake token` changes this file.\n\n";

/// What a token allows. Each scope includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Every GET request.
    Read,
    /// Also protecting and releasing spans of time.
    Protect,
    /// Everything.
    Admin,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Protect => "protect",
            Self::Admin => "admin",
        })
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let scopes = [Self::Read, Self::Protect, Self::Admin];
        let found = scopes.into_iter().find(|scope| scope.to_string() == text);
        found.ok_or_else(|| format!("'{text}' is no scope: use read, protect or admin"))
    }
}

/// What is kept of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    name: String,
    scope: Scope,
    /// SHA-256 of the token in hexadecimal.
    sha256: String,
    created: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<Time>,
}

impl Token {
    /// Its name, which is unique in its store.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it allows.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// When it was created.
    pub fn created(&self) -> Timestamp {
        self.created.0
    }

    /// When it ends, unless it is valid until it is revoked.
    pub fn expires(&self) -> Option<Timestamp> {
        self.expires.map(|time| time.0)
    }

    /// Whether it has ended.
    pub fn is_expired(&self) -> bool {
        self.expires().is_some_and(|end| end <= now())
    }

    /// As JSON, without its digest.
    pub fn shown(&self) -> Value {
        json!({
            "name": self.name, "scope": self.scope, "created": utc(self.created()),
            "expires": self.expires().map(utc), "expired": self.is_expired(),
        })
    }
}

/// Tokens as a table.
pub fn token_table(tokens: &[Token]) -> Table {
    let row = |token: &Token| {
        let end = token.expires().map_or_else(|| "never".to_owned(), utc);
        let end = if token.is_expired() { format!("{end} (expired)") } else { end };
        vec![token.name.clone(), token.scope.to_string(), utc(token.created()), end]
    };
    let heads = &["token", "scope", "created", "expires"];
    Table { heads, right: &[], rows: tokens.iter().map(row).collect() }
}

/// A point in time in RFC 3339.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct Time(Timestamp);

impl From<Time> for String {
    fn from(time: Time) -> Self {
        utc(time.0)
    }
}

impl TryFrom<String> for Time {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.parse()? {
            When::At(at) => Ok(Self(at)),
            When::Ago(_) => Err(format!("'{text}' is no point in time")),
        }
    }
}

/// What is in the file.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    #[serde(default, rename = "token")]
    tokens: Vec<Token>,
}

/// Why tokens can't be read or changed.
#[derive(Debug)]
pub enum TokenError {
    /// The user has no folder for configuration.
    NoFolder,
    /// The system refuses.
    Os {
        /// What was tried.
        attempted: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: io::Error,
    },
    /// Others could read or change the file, or it holds something else.
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A token can't have this name.
    Name(String),
    /// There is a token of this name.
    Exists(String),
    /// There is no token of this name.
    Unknown {
        /// The name.
        name: String,
        /// The file.
        path: PathBuf,
    },
    /// The system gives no random numbers.
    Random,
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFolder => {
                f.write_str("neither XDG_CONFIG_HOME nor HOME is set: name a file of tokens")
            }
            Self::Os { attempted, path, reason } => write!(
                f,
                "{attempted} {} failed ({reason}): check who may use it, or name another file",
                path.display()
            ),
            Self::Unusable { path, reason } => write!(f, "{} {reason}", path.display()),
            Self::Name(name) => write!(
                f,
                "no token can be named '{}': use up to {NAME_BYTES_MAX} letters, digits, '.', '-', '_' and '@', but not '{LOOPBACK}'",
                name.escape_debug()
            ),
            Self::Exists(name) => write!(
                f,
                "there is a token '{name}' already: use another name, or revoke it with `longtake token revoke {name}`"
            ),
            Self::Unknown { name, path } => write!(
                f,
                "there is no token '{}' in {}: `longtake token list` shows all",
                name.escape_debug(),
                path.display()
            ),
            Self::Random => f.write_str("the system gives no random numbers"),
        }
    }
}

impl std::error::Error for TokenError {}

/// A file of tokens.
#[derive(Clone, Debug)]
pub struct TokenStore {
    path: PathBuf,
}

impl TokenStore {
    /// This file, or else the user's: `/etc/longtake/tokens.toml` for root, `$XDG_CONFIG_HOME/longtake/tokens.toml` or
    /// `~/.config/longtake/tokens.toml` for others. It need not exist.
    ///
    /// # Errors
    /// If no file is given and the user has no folder for configuration.
    pub fn new(path: Option<&Path>) -> Result<Self, TokenError> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let folder = || match Uid::effective().is_root() {
            true => Some(PathBuf::from("/etc")),
            false => (variable("XDG_CONFIG_HOME").map(PathBuf::from))
                .or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".config"))),
        };
        let path = match path {
            Some(path) => path.to_owned(),
            None => folder().ok_or(TokenError::NoFolder)?.join("longtake/tokens.toml"),
        };
        // What is replaced is the file, not a link to it.
        Ok(Self { path: path.canonicalize().unwrap_or(path) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a token, valid until it expires or is revoked. Returns the token itself, which is kept nowhere.
    ///
    /// # Errors
    /// If the name is taken or not allowed, or the store can't be changed.
    pub fn create(
        &self,
        name: &str,
        scope: Scope,
        expires: Option<Timestamp>,
    ) -> Result<String, TokenError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || ".-_@".contains(c);
        if name.is_empty()
            || name.len() > NAME_BYTES_MAX
            || name == LOOPBACK
            || !name.chars().all(allowed)
        {
            return Err(TokenError::Name(name.to_owned()));
        }
        let mut random = [0; TOKEN_BYTES];
        SystemRandom::new().fill(&mut random).map_err(|_| TokenError::Random)?;
        let secret = format!("{PREFIX}{}", hexadecimal(&random));
        let token = Token {
            name: name.to_owned(),
            scope,
            sha256: digest_of(&secret),
            created: Time(now()),
            expires: expires.map(Time),
        };
        self.change(|tokens| match tokens.iter().any(|other| other.name == token.name) {
            true => Err(TokenError::Exists(token.name)),
            false => {
                tokens.push(token);
                Ok(())
            }
        })?;
        Ok(secret)
    }

    /// Ends a token.
    ///
    /// # Errors
    /// If there is none of this name, or the store can't be changed.
    pub fn revoke(&self, name: &str) -> Result<(), TokenError> {
        let place = |tokens: &[Token]| {
            let unknown = || TokenError::Unknown { name: name.to_owned(), path: self.path.clone() };
            tokens.iter().position(|token| token.name == name).ok_or_else(unknown)
        };
        // Not even a folder is made for a token that isn't there.
        place(&self.list()?)?;
        self.change(|tokens| {
            tokens.remove(place(tokens)?);
            Ok(())
        })
    }

    /// Every token, also those that have expired. There are none if the file doesn't exist.
    ///
    /// # Errors
    /// If the file can't be read, holds something else, or can be read or changed by other users.
    pub fn list(&self) -> Result<Vec<Token>, TokenError> {
        let file = match File::options().read(true).custom_flags(O_NONBLOCK).open(&self.path) {
            Ok(file) => file,
            Err(reason) if reason.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(reason) => return Err(self.os("opening", reason)),
        };
        self.check(&file)?;
        let mut text = String::new();
        let read = file.take(STORE_BYTES_MAX).read_to_string(&mut text);
        let wrong = |reason: &dyn fmt::Display| {
            self.unusable(format!("is not a file of tokens ({reason}): name another file"))
        };
        match read {
            Ok(_) => {}
            Err(reason) if reason.kind() == io::ErrorKind::InvalidData => {
                return Err(wrong(&"it is not text"));
            }
            Err(reason) => return Err(self.os("reading", reason)),
        }
        let contents: Result<Contents, _> = toml::from_str(&text);
        contents.map(|contents| contents.tokens).map_err(|reason| wrong(&reason.message()))
    }

    /// Refuses a file that other users can read or change.
    fn check(&self, file: &File) -> Result<(), TokenError> {
        let found = file.metadata().map_err(|reason| self.os("inspecting", reason))?;
        let mode = found.mode() & 0o777;
        let owner = Uid::from_raw(found.uid());
        let reason = if !found.is_file() {
            "is not a regular file: name another file".to_owned()
        } else if found.len() > STORE_BYTES_MAX {
            "is too long for a file of tokens: name another file".to_owned()
        } else if mode & 0o077 != 0 {
            let path = self.path.display();
            format!(
                "has mode {mode:04o}, and only its owner may use it: run `chmod 600 {path}`, or name another file"
            )
        } else if !owner.is_root() && owner != Uid::effective() {
            "belongs to another user: name a file of your own or of root".to_owned()
        } else {
            return Ok(());
        };
        Err(self.unusable(reason))
    }

    /// Changes the tokens under the lock of the store.
    fn change(
        &self,
        change: impl FnOnce(&mut Vec<Token>) -> Result<(), TokenError>,
    ) -> Result<(), TokenError> {
        // Whatever else is at this place, nothing is made beside it.
        self.list()?;
        let folder = self.folder();
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|reason| self.os("making a folder for", reason))?;
        // Locks the folder, because a lock file would be left behind.
        let locked = File::open(folder).and_then(|lock| lock.lock().map(|()| lock));
        let _lock = locked.map_err(|reason| self.os("locking", reason))?;
        let mut tokens = self.list()?;
        change(&mut tokens)?;
        self.write(tokens).map_err(|reason| self.os("writing", reason))
    }

    /// Replaces the file by one that is complete and on the drive.
    fn write(&self, tokens: Vec<Token>) -> io::Result<()> {
        let text = toml::to_string(&Contents { tokens }).map_err(io::Error::other)?;
        // Its mode is 0600.
        let mut file = NamedTempFile::new_in(self.folder())?;
        file.write_all(HEAD.as_bytes())?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        File::open(self.folder())?.sync_all()
    }

    fn folder(&self) -> &Path {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        folder.unwrap_or(Path::new("."))
    }

    fn os(&self, attempted: &'static str, reason: io::Error) -> TokenError {
        TokenError::Os { attempted, path: self.path.clone(), reason }
    }

    fn unusable(&self, reason: String) -> TokenError {
        TokenError::Unusable { path: self.path.clone(), reason }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What is kept of a token in its place. Its 256 random bits need no slow hash.
fn digest_of(secret: &str) -> String {
    hexadecimal(digest(&SHA256, secret.as_bytes()).as_ref())
}

/// A text in which the digits of every token are replaced, for logs.
pub fn redacted(text: &str) -> String {
    let is_digit = u8::is_ascii_hexdigit;
    let runs = text.as_bytes().chunk_by(|one, next| is_digit(one) == is_digit(next));
    let shown = runs.map(|run| match is_digit(&run[0]) && run.len() >= 2 * TOKEN_BYTES {
        true => "***".into(),
        false => String::from_utf8_lossy(run),
    });
    shown.collect()
}

/// The tokens of a store, as they are at the time of each look.
#[derive(Debug)]
pub struct CurrentTokens {
    store: Option<TokenStore>,
    known: Mutex<Known>,
}

/// What was read, and of which file.
#[derive(Debug, Default)]
struct Known {
    stamp: Option<FileStamp>,
    tokens: Arc<[Token]>,
}

impl CurrentTokens {
    /// Those of a store; none at all without one.
    pub fn new(store: Option<TokenStore>) -> Self {
        Self { store, known: Mutex::default() }
    }

    /// The token whose digest this text has.
    ///
    /// # Errors
    /// If the store can't be read.
    pub fn find(&self, secret: &str) -> Result<Option<Token>, TokenError> {
        let digest = digest_of(secret);
        Ok(self.now()?.iter().find(|token| token.sha256 == digest).cloned())
    }

    /// Whether a token that was found is still valid.
    pub fn is_valid(&self, token: &Token) -> bool {
        !token.is_expired() && self.now().is_ok_and(|tokens| tokens.contains(token))
    }

    /// Whether any token is valid.
    ///
    /// # Errors
    /// If the store can't be read.
    pub fn has_valid(&self) -> Result<bool, TokenError> {
        Ok(self.now()?.iter().any(|token| !token.is_expired()))
    }

    /// All tokens.
    fn now(&self) -> Result<Arc<[Token]>, TokenError> {
        let Some(store) = &self.store else { return Ok(Arc::default()) };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = FileStamp::of(store.path());
        if stamp.is_none() || stamp != known.stamp {
            // Changes while it is read show at the next look.
            *known = Known { stamp: None, ..Known::default() };
            let tokens = store.list()?.into();
            *known = Known { stamp: stamp.filter(FileStamp::is_settled), tokens };
        }
        Ok(Arc::clone(&known.tokens))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use tempfile::TempDir;

    use super::*;

    fn store() -> (TempDir, TokenStore) {
        let folder = tempfile::tempdir().expect("making a folder");
        let store = TokenStore::new(Some(&folder.path().join("below/tokens.toml")));
        (folder, store.expect("it is named"))
    }

    #[test]
    fn a_token_is_found_until_it_is_revoked_and_its_text_is_kept_nowhere() {
        let (_folder, store) = store();
        let current = CurrentTokens::new(Some(store.clone()));
        let secret = store.create("grafana", Scope::Read, None).expect("it can be created");
        assert!(secret.starts_with(PREFIX) && secret.len() == PREFIX.len() + 64, "{secret}");
        let found = current.find(&secret).expect("it can be read").expect("it is known");
        assert_eq!((found.name(), found.scope()), ("grafana", Scope::Read));
        assert!(current.is_valid(&found));
        let text = std::fs::read_to_string(store.path()).expect("it is there");
        assert!(text.contains("grafana") && !text.contains(&secret[PREFIX.len()..]), "{text}");
        assert_eq!(store.path().metadata().expect("it is there").mode() & 0o777, 0o600);
        assert!(matches!(store.create("grafana", Scope::Read, None), Err(TokenError::Exists(_))));
        store.revoke("grafana").expect("it is there");
        assert!(!current.is_valid(&found));
        assert!(current.find(&secret).expect("it can be read").is_none());
        assert!(matches!(store.revoke("grafana"), Err(TokenError::Unknown { .. })));
    }

    #[test]
    fn a_store_is_one_file_and_what_is_refused_makes_nothing() {
        let (folder, store) = store();
        let below = folder.path().join("below");
        assert!(matches!(store.revoke("nobody"), Err(TokenError::Unknown { .. })));
        assert!(!below.exists());
        store.create("one", Scope::Read, None).expect("it can be created");
        assert!(matches!(store.create("one", Scope::Read, None), Err(TokenError::Exists(_))));
        assert!(matches!(store.revoke("nobody"), Err(TokenError::Unknown { .. })));
        let names = below.read_dir().expect("it was made").map(|entry| entry.expect("it is there"));
        assert_eq!(names.map(|entry| entry.file_name()).collect::<Vec<_>>(), ["tokens.toml"]);
    }

    #[test]
    fn a_token_ends_when_it_expires() {
        let (_folder, store) = store();
        let current = CurrentTokens::new(Some(store.clone()));
        assert!(!current.has_valid().expect("there is none"));
        let secret = store.create("old", Scope::Admin, Some(now())).expect("it can be created");
        let found = current.find(&secret).expect("it can be read").expect("it is known");
        assert!(found.is_expired() && !current.is_valid(&found));
        assert!(!current.has_valid().expect("it can be read"));
        store.create("new", Scope::Read, Some(Timestamp::MAX)).expect("it can be created");
        assert!(current.has_valid().expect("it can be read"));
        assert_eq!(store.list().expect("it can be read").len(), 2);
    }

    #[test]
    fn a_store_that_others_can_use_or_that_is_none_is_refused() {
        let (_folder, store) = store();
        store.create("one", Scope::Read, None).expect("it can be created");
        let allow = |mode| std::fs::set_permissions(store.path(), PermissionsExt::from_mode(mode));
        for mode in [0o640, 0o602] {
            allow(mode).expect("it is ours");
            let refused = store.list().expect_err("others can use it").to_string();
            assert!(refused.contains("chmod 600"), "{refused}");
        }
        allow(0o600).expect("it is ours");
        for text in ["token = 1", "[[token]]\nname = \"x\"", "nonsense", "\u{1}"] {
            std::fs::write(store.path(), text).expect("it is ours");
            let refused = store.create("two", Scope::Read, None).expect_err("it is no store");
            assert!(refused.to_string().contains("name another file"), "{refused}");
            assert_eq!(std::fs::read_to_string(store.path()).expect("it is there"), text);
        }
    }

    #[test]
    fn names_that_mislead_are_refused() {
        let (_folder, store) = store();
        for name in ["", "loopback", "a b", "a\n", "\u{e4}", &"x".repeat(65)] {
            assert!(matches!(store.create(name, Scope::Read, None), Err(TokenError::Name(_))));
        }
        assert!(!store.path().exists());
    }

    #[test]
    fn tokens_created_at_the_same_time_are_all_kept() {
        let (_folder, store) = store();
        std::thread::scope(|scope| {
            for at in 0..8 {
                let store = &store;
                scope.spawn(move || store.create(&format!("t{at}"), Scope::Read, None));
            }
        });
        assert_eq!(store.list().expect("it can be read").len(), 8);
    }

    #[test]
    fn no_token_shows_in_a_log() {
        let secret = format!("{PREFIX}{}", "0a".repeat(32));
        let shown = redacted(&format!("/metrics?a={secret}&b=longtake_take&c=%6C{secret}"));
        assert_eq!(shown, "/metrics?a=longtake_***&b=longtake_take&c=%6Clongtake_***");
    }
}
