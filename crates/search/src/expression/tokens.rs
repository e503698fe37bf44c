//! The words and signs of a filter expression.

use std::fmt;

/// A word or a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A name, number, address, network or range.
    Word(&'a str),
    /// `and`, `&&`.
    And,
    /// `or`, `||`.
    Or,
    /// `not`, `!`.
    Not,
    Open,
    Close,
    /// What stands in comparisons.
    Symbol(&'a str),
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Word(text) | Self::Symbol(text) => text,
            Self::And => "and",
            Self::Or => "or",
            Self::Not => "not",
            Self::Open => "(",
            Self::Close => ")",
        })
    }
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b':' | b'/' | b'_' | b'-' | b'\\')
}

/// The tokens of an expression, in order.
pub(super) fn of(mut text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    loop {
        text = text.trim_start();
        let Some(first) = text.chars().next() else { return tokens };
        let words = text.bytes().take_while(|&byte| is_word(byte)).count();
        let two = text.get(..2);
        let (token, length) = match (first, two) {
            _ if words > 0 => (word(&text[..words]), words),
            (_, Some("&&")) => (Token::And, 2),
            (_, Some("||")) => (Token::Or, 2),
            (_, Some(two @ ("!=" | "==" | ">=" | "<=" | "<<" | ">>"))) => (Token::Symbol(two), 2),
            ('!', _) => (Token::Not, 1),
            ('(', _) => (Token::Open, 1),
            (')', _) => (Token::Close, 1),
            _ => (Token::Symbol(&text[..first.len_utf8()]), first.len_utf8()),
        };
        tokens.push(token);
        text = &text[length..];
    }
}

fn word(text: &str) -> Token<'_> {
    match text {
        "and" => Token::And,
        "or" => Token::Or,
        "not" => Token::Not,
        _ => Token::Word(text),
    }
}
