//! From characters to tokens.

use super::diagnostic::Sink;
use crate::Span;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A word: a keyword, a function, an axis, a dtype.
    Word,
    /// `%name`
    Value,
    /// `@name`
    Func,
    /// A number without point or exponent.
    Int,
    /// Any other number.
    Float,
    /// Brackets, operators and separators.
    Mark(&'static str),
    /// What is no token; reported already.
    Bad,
    /// The end of the text.
    End,
}

/// A piece of the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'t> {
    pub(crate) kind: Kind,
    /// For values and functions without the sigil.
    pub(crate) text: &'t str,
    pub(crate) span: Span,
    /// Whether it is the first on its line.
    pub(crate) starts_line: bool,
}

/// Longest first.
const MARKS: [&str; 29] = [
    "->", "<=", ">=", "==", "!=", "<<", ">>", "..", "(", ")", "[", "]", "{", "}", "<", ">", "+", "-", "*", "/", "=",
    ",", ":", ";", "?", "&", "|", "!", "^",
];

/// All tokens, the last of kind `End`. Characters that begin no token are reported once for each run of them.
pub(crate) fn lex<'t>(text: &'t str, sink: &mut Sink) -> Vec<Token<'t>> {
    let bytes = text.as_bytes();
    let (mut tokens, mut at, mut starts_line) = (vec![], 0, true);
    while at < bytes.len() && !sink.is_full() {
        let start = at;
        match bytes[at] {
            b'\n' => {
                starts_line = true;
                at += 1;
                continue;
            }
            b if b.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at += bytes[at..].iter().position(|b| *b == b'\n').unwrap_or(bytes.len() - at);
                continue;
            }
            _ => {}
        }
        let (kind, length, sigil) = match token_at(text, at) {
            Some(found) => found,
            None => {
                let length =
                    text[at..].chars().take_while(|c| token_starts_not(*c)).map(char::len_utf8).sum::<usize>().max(1);
                at += length;
                let span = Span { start: start as u32, end: at as u32 };
                let shown: String = text[start..].chars().take(12).take_while(|c| token_starts_not(*c)).collect();
                let hint =
                    (shown.starts_with('%') || shown.starts_with('@')).then(|| format!("a name must follow `{shown}`"));
                sink.error(span, format!("no token begins with `{shown}`"), "not part of the language")
                    .maybe_help(hint);
                tokens.push(Token { kind: Kind::Bad, text: "", span, starts_line });
                starts_line = false;
                continue;
            }
        };
        at += length;
        let span = Span { start: start as u32, end: at as u32 };
        tokens.push(Token { kind, text: &text[start + sigil..at], span, starts_line });
        starts_line = false;
    }
    let end = text.len() as u32;
    tokens.push(Token { kind: Kind::End, text: "", span: Span { start: end, end }, starts_line: true });
    tokens
}

fn token_starts_not(c: char) -> bool {
    !(c.is_ascii_alphanumeric() || c == '_' || c.is_whitespace() || "->=!<.()[]{}+*/,:;?&|^".contains(c))
}

/// Kind, length in bytes and length of the sigil of the token there.
fn token_at(text: &str, at: usize) -> Option<(Kind, usize, usize)> {
    let rest = &text[at..];
    let bytes = rest.as_bytes();
    let word = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    match bytes[0] {
        b'%' | b'@' => {
            let length = word(1);
            let kind = if bytes[0] == b'%' { Kind::Value } else { Kind::Func };
            (length > 0).then_some((kind, length + 1, 1))
        }
        b if b.is_ascii_digit() => Some(number(bytes)),
        b if b.is_ascii_alphabetic() || b == b'_' => Some((Kind::Word, word(0), 0)),
        _ => MARKS.iter().find(|m| rest.starts_with(**m)).map(|m| (Kind::Mark(m), m.len(), 0)),
    }
}

/// `12`, `1.5`, `1e-3`, `2.5E7`; the two dots of a range are not part of a number.
fn number(bytes: &[u8]) -> (Kind, usize, usize) {
    let digits = |from: usize| bytes.get(from..).map_or(0, |b| b.iter().take_while(|b| b.is_ascii_digit()).count());
    let mut length = digits(0);
    let mut kind = Kind::Int;
    if bytes.get(length) == Some(&b'.') && bytes.get(length + 1) != Some(&b'.') {
        length += 1;
        length += digits(length);
        kind = Kind::Float;
    }
    if matches!(bytes.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        let exponent = digits(length + 1 + sign);
        if exponent > 0 {
            length += 1 + sign + exponent;
            kind = Kind::Float;
        }
    }
    (kind, length, 0)
}
