//! From tokens to the tree. After an error, reading goes on at the next statement, so that one run reports several.

mod bracket;
mod expr;
mod item;

use super::ast::{File, Name};
use super::diagnostic::Sink;
use super::lex::{Kind, Token};
use crate::Span;

/// Expressions nested deeper than this are refused.
pub(crate) const MAX_DEPTH: u32 = 128;

/// An error that is reported already; what was being read is given up.
pub(crate) struct Reported;

pub(crate) type Parsed<T> = Result<T, Reported>;

/// Reads tokens in order.
pub(crate) struct Parser<'t, 's> {
    tokens: &'t [Token<'t>],
    at: usize,
    depth: u32,
    sink: &'s mut Sink,
}

/// Words that may not name anything.
pub(crate) const KEYWORDS: [&str; 16] = [
    "func", "macro", "axis", "const", "return", "if", "else", "true", "false", "inf", "nan", "none", "and", "or",
    "xor", "not",
];

/// Reads a whole text.
pub(crate) fn parse_tokens(tokens: &[Token<'_>], sink: &mut Sink) -> File {
    Parser { tokens, at: 0, depth: 0, sink }.file()
}

impl<'t> Parser<'t, '_> {
    fn peek(&self) -> Token<'t> {
        self.ahead(0)
    }

    fn ahead(&self, by: usize) -> Token<'t> {
        // The last token is the end of the text, and stays.
        self.tokens[(self.at + by).min(self.tokens.len() - 1)]
    }

    fn next(&mut self) -> Token<'t> {
        let token = self.peek();
        if token.kind != Kind::End {
            self.at += 1;
        }
        token
    }

    /// The span from a token to the last one read.
    fn since(&self, start: Span) -> Span {
        let last = self.tokens[self.at.saturating_sub(1).min(self.tokens.len() - 1)].span;
        Span { start: start.start, end: last.end.max(start.end) }
    }

    fn is(&self, mark: &str) -> bool {
        matches!(self.peek().kind, Kind::Mark(m) if m == mark)
    }

    fn is_word(&self, word: &str) -> bool {
        let token = self.peek();
        token.kind == Kind::Word && token.text == word
    }

    fn accept(&mut self, mark: &str) -> bool {
        let found = self.is(mark);
        if found {
            self.next();
        }
        found
    }

    fn expect(&mut self, mark: &'static str, after: &str) -> Parsed<Span> {
        if self.is(mark) {
            return Ok(self.next().span);
        }
        self.unexpected(&format!("`{mark}` {after}"))
    }

    fn expect_word(&mut self, word: &'static str) -> Parsed<Span> {
        if self.is_word(word) {
            return Ok(self.next().span);
        }
        self.unexpected(&format!("`{word}`"))
    }

    /// Reports what stands here instead of what was expected.
    fn unexpected<T>(&mut self, expected: &str) -> Parsed<T> {
        let token = self.peek();
        if token.kind == Kind::Bad {
            return Err(Reported);
        }
        let found = show(token);
        self.sink.error(token.span, format!("expected {expected}, found {found}"), format!("expected {expected}"));
        Err(Reported)
    }

    /// `%name`
    fn value_name(&mut self, what: &str) -> Parsed<Name> {
        let token = self.peek();
        if token.kind == Kind::Value {
            self.next();
            return Ok(Name { text: token.text.to_string(), span: token.span });
        }
        if token.kind == Kind::Word && !KEYWORDS.contains(&token.text) {
            let message = format!("expected {what}, found `{}`", token.text);
            let entry = self.sink.error(token.span, message, format!("expected {what}"));
            entry.help(format!("names of values begin with `%`: write `%{}`", token.text));
            return Err(Reported);
        }
        self.unexpected(what)
    }

    /// A word that names an axis, a macro or an argument.
    fn word_name(&mut self, what: &str) -> Parsed<Name> {
        let token = self.peek();
        if token.kind == Kind::Word {
            if KEYWORDS.contains(&token.text) {
                let message = format!("`{}` is a word of the language and cannot name {what}", token.text);
                self.sink.error(token.span, message, format!("expected {what}"));
                return Err(Reported);
            }
            self.next();
            return Ok(Name { text: token.text.to_string(), span: token.span });
        }
        self.unexpected(what)
    }

    /// A whole number from 0 on.
    fn size(&mut self, what: &str) -> Parsed<u64> {
        let token = self.peek();
        if token.kind != Kind::Int {
            return self.unexpected(what);
        }
        self.next();
        match token.text.parse::<u64>() {
            Ok(n) if i64::try_from(n).is_ok() => Ok(n),
            _ => {
                self.sink.error(token.span, format!("{} is too large for a size", token.text), "at most 2^63 - 1");
                Err(Reported)
            }
        }
    }

    /// A whole number with a sign.
    fn integer(&mut self, what: &str) -> Parsed<(i64, Span)> {
        let start = self.peek().span;
        let negative = self.accept("-");
        let token = self.peek();
        if token.kind != Kind::Int {
            return self.unexpected(what);
        }
        self.next();
        let span = self.since(start);
        Ok((self.number_value(token, negative, span)?, span))
    }

    fn number_value(&mut self, token: Token<'_>, negative: bool, span: Span) -> Parsed<i64> {
        let magnitude: Option<i128> = token.text.parse().ok();
        let value = magnitude.map(|m| if negative { -m } else { m }).and_then(|v| i64::try_from(v).ok());
        value.ok_or_else(|| {
            let entry = self.sink.error(span, format!("{} does not fit 64 bits", token.text), "too large");
            entry.help("a floating-point literal has a point or an exponent: `1e30`");
            Reported
        })
    }

    /// Items between brackets that are open already, up to `close`.
    fn list<T>(&mut self, close: &'static str, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = vec![];
        while !self.is(close) {
            items.push(item(self)?);
            if !self.accept(",") {
                break;
            }
        }
        self.expect(close, "or `,`")?;
        Ok(items)
    }

    /// Skips to where a statement or an item may begin.
    fn recover(&mut self) {
        loop {
            let token = self.peek();
            let item = matches!(token.text, "func" | "macro" | "axis" | "const") && token.kind == Kind::Word;
            let statement = (token.kind == Kind::Value && matches!(self.ahead(1).kind, Kind::Mark("=" | ",")))
                || (token.kind == Kind::Word && token.text == "return")
                || token.kind == Kind::Mark("}");
            // A brace that ends its line ends a body, not a branch of an `if`.
            let end_of_body = token.kind == Kind::Mark("}") && self.ahead(1).starts_line;
            if token.kind == Kind::End || end_of_body || (token.starts_line && (item || statement)) {
                return;
            }
            self.next();
        }
    }
}

/// A token for a message.
fn show(token: Token<'_>) -> String {
    match token.kind {
        Kind::Value => format!("`%{}`", clip(token.text)),
        Kind::Func => format!("`@{}`", clip(token.text)),
        Kind::End => "the end of the text".to_string(),
        _ => format!("`{}`", clip(token.text)),
    }
}

fn clip(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_string(),
    }
}
