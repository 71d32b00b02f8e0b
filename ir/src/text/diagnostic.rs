//! What is wrong with a text, and where.

use crate::Span;
use ariadne::{Color, Config, IndexType, Label, Report, ReportKind, Source};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Errors beyond this many are counted, not shown.
pub const MAX_ERRORS: usize = 20;

/// A line longer than this is not quoted.
const MAX_LINE: usize = 500;

/// One error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What is wrong.
    pub message: String,
    /// The text at fault, as a byte range.
    pub span: Span,
    /// Its first line, from 1.
    pub line: usize,
    /// Its first column in characters, from 1.
    pub column: usize,
    /// What stands under the underline: usually what was expected.
    pub label: String,
    /// Other places that matter, with a word on each.
    pub related: Vec<(Span, String)>,
    /// What to do about it.
    pub help: Option<String>,
}

/// All errors of a text. `Display` quotes the source without colour; see [`Diagnostics::render`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics {
    /// Name of the file, as given to the parser.
    pub source_name: String,
    /// Its text.
    pub text: Arc<str>,
    /// In order of their place; at most [`MAX_ERRORS`].
    pub errors: Vec<Diagnostic>,
    /// How many more there were.
    pub omitted: usize,
}

impl std::error::Error for Diagnostics {}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(false).trim_end())
    }
}

impl Diagnostics {
    /// The errors with the source quoted and underlined; with terminal colours on demand (never if `NO_COLOR` is set).
    pub fn render(&self, color: bool) -> String {
        let color = color && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        let mut out = String::new();
        for error in &self.errors {
            self.render_one(error, color, &mut out);
        }
        if self.omitted > 0 {
            out.push_str(&format!("and {} more errors\n", self.omitted));
        }
        out
    }

    fn render_one(&self, error: &Diagnostic, color: bool, out: &mut String) {
        let place = format!("{}:{}:{}", self.source_name, error.line, error.column);
        let quoted: Vec<Range<usize>> =
            std::iter::once(error.span).chain(error.related.iter().map(|r| r.0)).map(|s| self.range(s)).collect();
        if quoted.iter().any(|r| self.longest_line(r) > MAX_LINE) {
            out.push_str(&format!("Error: {}\n  at {place}: {}\n", error.message, error.label));
            if let Some(help) = &error.help {
                out.push_str(&format!("  help: {help}\n"));
            }
            return;
        }
        let name = self.source_name.as_str();
        let config = Config::default().with_color(color).with_index_type(IndexType::Byte).with_compact(false);
        let mut report = Report::build(ReportKind::Error, (name, quoted[0].clone())).with_config(config);
        report = report.with_message(&error.message);
        let words = std::iter::once(&error.label).chain(error.related.iter().map(|(_, word)| word));
        let mut labels: Vec<(Range<usize>, &String, bool)> =
            quoted.iter().cloned().zip(words).enumerate().map(|(n, (range, word))| (range, word, n == 0)).collect();
        // In the order of the text, or the lines would be quoted in pieces.
        labels.sort_by_key(|(range, ..)| (range.start, range.end));
        for (range, word, is_main) in labels {
            let tint = if is_main { Color::Red } else { Color::Blue };
            report = report.with_label(Label::new((name, range)).with_message(word).with_color(tint));
        }
        if let Some(help) = &error.help {
            report = report.with_help(help);
        }
        let mut bytes = vec![];
        // Writing into memory does not fail; if it did, the place and the message are still there.
        if report.finish().write((name, Source::from(&*self.text)), &mut bytes).is_err() {
            bytes = format!("Error: {}\n  at {place}", error.message).into_bytes();
        }
        let text = String::from_utf8_lossy(&bytes);
        for line in text.lines() {
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }

    /// The span within the text, at character boundaries.
    fn range(&self, span: Span) -> Range<usize> {
        let floor = |at: u32| {
            let at = (at as usize).min(self.text.len());
            (0..=at).rev().find(|i| self.text.is_char_boundary(*i)).unwrap_or(0)
        };
        let (start, end) = (floor(span.start), floor(span.end));
        start..end.max(start)
    }

    fn longest_line(&self, range: &Range<usize>) -> usize {
        let start = self.text[..range.start].rfind('\n').map_or(0, |i| i + 1);
        let end = self.text[range.end..].find('\n').map_or(self.text.len(), |i| range.end + i);
        self.text[start..end].split('\n').map(str::len).max().unwrap_or(0)
    }
}

/// Collects errors while a text is read.
#[derive(Debug)]
pub(crate) struct Sink {
    text: Arc<str>,
    line_starts: Vec<u32>,
    errors: Vec<Diagnostic>,
    omitted: usize,
}

impl Sink {
    pub(crate) fn new(text: &str) -> Sink {
        let newlines = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i as u32 + 1);
        let line_starts = std::iter::once(0).chain(newlines).collect();
        Sink { text: Arc::from(text), line_starts, errors: vec![], omitted: 0 }
    }

    /// Records an error; the parts after the label can be added to what is returned.
    pub(crate) fn error(&mut self, span: Span, message: impl Into<String>, label: impl Into<String>) -> Entry<'_> {
        if self.is_full() {
            self.omitted += 1;
            return Entry(None);
        }
        let line = self.line_starts.partition_point(|s| *s <= span.start);
        let start = self.line_starts[line - 1] as usize;
        let before = self.text.get(start..span.start as usize).unwrap_or("");
        let column = before.chars().count() + 1;
        let (message, label) = (message.into(), label.into());
        self.errors.push(Diagnostic { message, span, line, column, label, related: vec![], help: None });
        Entry(self.errors.last_mut())
    }

    pub(crate) fn is_full(&self) -> bool {
        self.errors.len() >= MAX_ERRORS
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    pub(crate) fn finish(mut self, source_name: &str) -> Diagnostics {
        self.errors.sort_by_key(|e| e.span.start);
        Diagnostics {
            source_name: source_name.to_string(),
            text: self.text,
            errors: self.errors,
            omitted: self.omitted,
        }
    }
}

/// The error just recorded, if it was not beyond the limit.
pub(crate) struct Entry<'a>(Option<&'a mut Diagnostic>);

impl Entry<'_> {
    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        if let Entry(Some(diagnostic)) = self {
            diagnostic.help = Some(help.into());
            return Entry(Some(diagnostic));
        }
        self
    }

    pub(crate) fn maybe_help(self, help: Option<String>) -> Self {
        match help {
            Some(help) => self.help(help),
            None => self,
        }
    }

    pub(crate) fn related(self, span: Span, word: impl Into<String>) -> Self {
        if let Entry(Some(diagnostic)) = self {
            diagnostic.related.push((span, word.into()));
            return Entry(Some(diagnostic));
        }
        self
    }
}
