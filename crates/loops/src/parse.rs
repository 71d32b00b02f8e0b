//! Loop IR from text, as [`crate::print`] writes it: one statement a line.

use crate::names::{
    binary_name, compare_name, elem_named, fold_name, kind_name, unary_name, BINARY, COMPARE, FOLDS, KINDS, UNARY,
};
use crate::{BufId, Buffer, Count, Elem, Expr, Kernel, Number, Reg, RegDecl, SizeParam, Split, Stmt, Ty};
use std::collections::HashMap;

/// Where a text stops being loop IR.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{line}:{column}: expected {expected}")]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// Column in bytes, from 1.
    pub column: usize,
    /// What should stand there.
    pub expected: String,
}

/// The deepest nesting of loops and branches.
const MAX_DEPTH: usize = 64;

/// Read a kernel.
///
/// # Errors
/// The first place where the text is not loop IR.
pub fn parse(text: &str) -> Result<Kernel, ParseError> {
    let mut parser = Parser { text, at: 0, regs: vec![], types: vec![], names: HashMap::new(), kernel: empty() };
    parser.kernel()?;
    let undefined = parser.types.iter().position(Option::is_none);
    if let Some(reg) = undefined {
        return parser.fail(format!("a definition of %{}", parser.regs[reg].0));
    }
    let regs = parser.regs.iter().zip(&parser.types);
    let decl = |((name, _), ty): (&(String, String), &Option<Ty>)| RegDecl {
        ty: ty.unwrap_or(Ty::scalar(Elem::I64)),
        name: name.clone(),
    };
    parser.kernel.regs = regs.map(decl).collect();
    Ok(parser.kernel)
}

fn empty() -> Kernel {
    Kernel { name: String::new(), sizes: vec![], buffers: vec![], regs: vec![], split: None, body: vec![] }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    /// Base name and full name of each register.
    regs: Vec<(String, String)>,
    types: Vec<Option<Ty>>,
    names: HashMap<String, Reg>,
    kernel: Kernel,
}

type Parsed<T> = Result<T, ParseError>;

const I64: Ty = Ty::scalar(Elem::I64);

impl<'a> Parser<'a> {
    fn fail<T>(&self, expected: impl Into<String>) -> Parsed<T> {
        let blank = self.rest().len() - self.rest().trim_start().len();
        let before = &self.text[..self.at + blank];
        let line = before.matches('\n').count() + 1;
        let column = before.len() - before.rfind('\n').map_or(0, |n| n + 1) + 1;
        Err(ParseError { line, column, expected: expected.into() })
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip(&mut self) {
        let trimmed = self.rest().trim_start();
        self.at = self.text.len() - trimmed.len();
    }

    /// Whether a token comes next; it is then passed.
    fn accept(&mut self, token: &str) -> bool {
        self.skip();
        let found = self.rest().starts_with(token);
        // A word ends where it ends.
        let is_word = token.ends_with(|c: char| c.is_ascii_alphanumeric());
        let after = self.rest().get(token.len()..).and_then(|r| r.chars().next());
        if !found || (is_word && after.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')) {
            return false;
        }
        self.at += token.len();
        true
    }

    fn expect(&mut self, token: &str) -> Parsed<()> {
        if self.accept(token) {
            Ok(())
        } else {
            self.fail(format!("`{token}`"))
        }
    }

    fn take(&mut self, what: &str, of: impl Fn(char) -> bool) -> Parsed<&'a str> {
        self.skip();
        let rest = self.rest();
        let len = rest.find(|c| !of(c)).unwrap_or(rest.len());
        if len == 0 {
            return self.fail(what);
        }
        self.at += len;
        Ok(&rest[..len])
    }

    fn word(&mut self) -> Parsed<&'a str> {
        self.take("a name", |c| c.is_ascii_alphanumeric() || c == '_' || c == '\'')
    }

    fn integer<T: std::str::FromStr>(&mut self) -> Parsed<T> {
        let start = self.at;
        let text = self.take("a number", |c| c.is_ascii_digit() || c == '-')?;
        text.parse().or_else(|_| {
            self.at = start;
            self.fail("a number in range")
        })
    }

    fn reg(&mut self) -> Parsed<Reg> {
        self.expect("%")?;
        let base = self.word()?.to_owned();
        let numbered = self.rest().starts_with('.') && self.rest()[1..].starts_with(|c: char| c.is_ascii_digit());
        let mut full = base.clone();
        if numbered {
            self.at += 1;
            full = format!("{base}.{}", self.integer::<u32>()?);
        }
        if let Some(reg) = self.names.get(&full) {
            return Ok(*reg);
        }
        let reg = Reg(self.regs.len() as u32);
        self.regs.push((base, full.clone()));
        self.types.push(None);
        self.names.insert(full, reg);
        Ok(reg)
    }

    fn define(&mut self, reg: Reg, ty: Ty) -> Parsed<()> {
        match self.types[reg.0 as usize].replace(ty) {
            Some(other) if other != ty => self.fail(format!("type {other}, as before")),
            _ => Ok(()),
        }
    }

    fn ty(&mut self) -> Parsed<Ty> {
        let start = self.at;
        let word = self.word()?;
        let (elem, lanes) = word.split_once('x').unwrap_or((word, "1"));
        match (elem_named(elem), lanes.parse::<u16>()) {
            (Some(elem), Ok(lanes)) if lanes > 0 => Ok(Ty { elem, lanes }),
            _ => {
                self.at = start;
                self.fail("a type such as f32x4")
            }
        }
    }

    fn kernel(&mut self) -> Parsed<()> {
        self.expect("kernel")?;
        self.expect("@")?;
        self.kernel.name = self.word()?.to_owned();
        self.expect("(")?;
        while !self.accept(")") {
            let name = self.word()?.to_owned();
            let reg = self.reg()?;
            self.define(reg, I64)?;
            self.kernel.sizes.push(SizeParam { name, reg });
            if !self.accept(",") {
                self.expect(")")?;
                break;
            }
        }
        self.expect("{")?;
        while let Some(kind) = KINDS.into_iter().find(|k| self.accept(kind_name(*k))) {
            let name = self.word()?.to_owned();
            self.expect(":")?;
            let elem = self.ty()?.elem;
            self.expect("[")?;
            let len = self.count(0)?;
            self.expect("]")?;
            self.kernel.buffers.push(Buffer { name, elem, kind, len });
        }
        if self.accept("split") {
            let begin = self.reg()?;
            self.expect("..")?;
            let end = self.reg()?;
            self.define(begin, I64)?;
            self.define(end, I64)?;
            self.expect("of")?;
            let extent = self.count(0)?;
            self.kernel.split = Some(Split { begin, end, extent });
        }
        self.kernel.body = self.block(0)?;
        self.skip();
        if self.rest().is_empty() {
            Ok(())
        } else {
            self.fail("the end of the text")
        }
    }

    fn count(&mut self, depth: usize) -> Parsed<Count> {
        if depth > MAX_DEPTH {
            return self.fail("a shallower expression");
        }
        let pair = |p: &mut Self, separator: &str| -> Parsed<(Box<Count>, Box<Count>)> {
            let a = p.count(depth + 1)?;
            p.expect(separator)?;
            let b = p.count(depth + 1)?;
            p.expect(")")?;
            Ok((Box::new(a), Box::new(b)))
        };
        if self.accept("ceil(") {
            let (a, b) = pair(self, ",")?;
            return Ok(Count::DivCeil(a, b));
        }
        if self.accept("exact(") {
            let (a, b) = pair(self, ",")?;
            return Ok(Count::DivExact(a, b));
        }
        if self.accept("(") {
            let a = Box::new(self.count(depth + 1)?);
            let operator = self.take("an operator", |c| "+-*".contains(c))?;
            let b = Box::new(self.count(depth + 1)?);
            self.expect(")")?;
            return match operator {
                "+" => Ok(Count::Add(a, b)),
                "-" => Ok(Count::Sub(a, b)),
                "*" => Ok(Count::Mul(a, b)),
                _ => self.fail("`+`, `-` or `*`"),
            };
        }
        self.skip();
        if self.rest().starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(Count::Const(self.integer()?));
        }
        let name = self.word()?;
        match self.kernel.sizes.iter().position(|s| s.name == name) {
            Some(size) => Ok(Count::Size(size)),
            None => self.fail("the name of a size"),
        }
    }

    /// Statements up to and including `}`.
    fn block(&mut self, depth: usize) -> Parsed<Vec<Stmt>> {
        if depth > MAX_DEPTH {
            return self.fail("shallower nesting");
        }
        let mut statements = vec![];
        while !self.accept("}") {
            statements.push(self.statement(depth)?);
        }
        Ok(statements)
    }

    fn statement(&mut self, depth: usize) -> Parsed<Stmt> {
        if self.accept("//") {
            let line = self.rest().lines().next().unwrap_or("");
            self.at += line.len();
            return Ok(Stmt::Comment(line.strip_prefix(' ').unwrap_or(line).to_owned()));
        }
        if self.accept("store") {
            let (buf, offset) = self.element()?;
            self.expect("=")?;
            let value = self.reg()?;
            let tail = if self.accept("tail") { Some(self.reg()?) } else { None };
            let stream = self.accept("stream");
            return Ok(Stmt::Store { buf, offset, value, tail, stream });
        }
        if self.accept("prefetch") {
            let (buf, offset) = self.element()?;
            return Ok(Stmt::Prefetch { buf, offset });
        }
        if self.accept("for") {
            let var = self.reg()?;
            self.define(var, I64)?;
            self.expect("in")?;
            let lo = self.reg()?;
            self.expect("..")?;
            let hi = self.reg()?;
            self.expect("step")?;
            let step = self.integer()?;
            let parallel = self.accept("parallel");
            self.expect("{")?;
            let body = self.block(depth + 1)?;
            return Ok(Stmt::For { var, lo, hi, step, parallel, body });
        }
        if self.accept("if") {
            let cond = self.reg()?;
            self.expect("{")?;
            let then = self.block(depth + 1)?;
            let els = if self.accept("else") {
                self.expect("{")?;
                self.block(depth + 1)?
            } else {
                vec![]
            };
            return Ok(Stmt::If { cond, then, els });
        }
        if self.accept("fail") {
            let cond = self.reg()?;
            return Ok(Stmt::Fail { cond, status: self.integer()? });
        }
        let dst = self.reg()?;
        self.expect(":")?;
        let ty = self.ty()?;
        self.define(dst, ty)?;
        self.expect("=")?;
        Ok(Stmt::Assign(dst, self.expr(ty)?))
    }

    /// `buffer[%offset]`
    fn element(&mut self) -> Parsed<(BufId, Reg)> {
        let name = self.word()?;
        let Some(buf) = self.kernel.buffers.iter().position(|b| b.name == name) else {
            return self.fail("the name of a buffer");
        };
        self.expect("[")?;
        let offset = self.reg()?;
        self.expect("]")?;
        Ok((BufId(buf as u32), offset))
    }

    fn more(&mut self) -> Parsed<Reg> {
        self.expect(",")?;
        self.reg()
    }

    fn expr(&mut self, ty: Ty) -> Parsed<Expr> {
        let start = self.at;
        let word = self.word()?;
        if let Some(op) = UNARY.into_iter().find(|op| unary_name(*op) == word) {
            return Ok(Expr::Unary(op, self.reg()?));
        }
        if let Some(op) = BINARY.into_iter().find(|op| binary_name(*op) == word) {
            return Ok(Expr::Binary(op, self.reg()?, self.more()?));
        }
        Ok(match word {
            "const" => Expr::Const(ty, self.number()?),
            "copy" => Expr::Copy(self.reg()?),
            "fma" => Expr::Fma(self.reg()?, self.more()?, self.more()?),
            "select" => Expr::Select(self.reg()?, self.more()?, self.more()?),
            "convert" => Expr::Convert(ty.elem, self.reg()?),
            "bitcast" => Expr::Bitcast(ty.elem, self.reg()?),
            "splat" => Expr::Splat(ty.lanes, self.reg()?),
            "iota" => Expr::Iota(ty),
            "extract" => {
                let x = self.reg()?;
                self.expect(",")?;
                Expr::Extract(x, self.integer()?)
            }
            "compare" => {
                let name = self.word()?;
                match COMPARE.into_iter().find(|op| compare_name(*op) == name) {
                    Some(op) => Expr::Compare(op, self.reg()?, self.more()?),
                    None => return self.fail("a comparison"),
                }
            }
            "reduce" => {
                let name = self.word()?;
                match FOLDS.into_iter().find(|op| fold_name(*op) == name) {
                    Some(op) => Expr::Reduce(op, self.reg()?),
                    None => return self.fail("a reduction over lanes"),
                }
            }
            "load" => {
                let (buf, offset) = self.element()?;
                let stride = if self.accept("stride") { Some(self.reg()?) } else { None };
                let mut tail = None;
                if self.accept("tail") {
                    let count = self.reg()?;
                    self.expect("fill")?;
                    tail = Some((count, self.reg()?));
                }
                Expr::Load { ty, buf, offset, stride, tail }
            }
            _ => {
                self.at = start;
                return self.fail("an operation");
            }
        })
    }

    fn number(&mut self) -> Parsed<Number> {
        let start = self.at;
        let text = self.take("a number", |c| c.is_ascii_alphanumeric() || "+-.".contains(c))?;
        let number = match text.parse::<i64>() {
            Ok(v) => Some(Number::Int(v)),
            Err(_) => text.parse::<f64>().ok().map(Number::Float),
        };
        number.map_or_else(
            || {
                self.at = start;
                self.fail("a number")
            },
            Ok,
        )
    }
}
