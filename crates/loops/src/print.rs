//! Loop IR as text: one statement a line, constants in place, registers by unique names.

use crate::names::{binary_name, compare_name, fold_name, kind_name, unary_name};
use crate::{Count, Expr, Kernel, Number, Reg, Stmt};
use std::collections::HashMap;
use std::fmt::{self, Write};

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printer = Printer::new(self);
        printer.kernel();
        f.write_str(&printer.out)
    }
}

/// The text of a kernel.
pub fn print(kernel: &Kernel) -> String {
    kernel.to_string()
}

struct Printer<'a> {
    kernel: &'a Kernel,
    names: Vec<String>,
    out: String,
    depth: usize,
}

impl<'a> Printer<'a> {
    fn new(kernel: &'a Kernel) -> Printer<'a> {
        // A name alone stands for the first register of that name in the text; others are numbered as they appear.
        let mut taken: HashMap<String, u32> = HashMap::new();
        let mut names = vec![String::new(); kernel.regs.len()];
        for reg in appearance(kernel) {
            let Some(name) = names.get_mut(reg.0 as usize).filter(|n| n.is_empty()) else { continue };
            let is_plain = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
            let plain: String = kernel.regs[reg.0 as usize].name.chars().filter(is_plain).collect();
            let plain = if plain.is_empty() { "r".to_owned() } else { plain };
            let n = taken.entry(plain.clone()).or_default();
            *name = if *n == 0 { format!("%{plain}") } else { format!("%{plain}.{n}") };
            *n += 1;
        }
        Printer { kernel, names, out: String::new(), depth: 0 }
    }

    fn line(&mut self, text: fmt::Arguments<'_>) {
        let _ = writeln!(self.out, "{:indent$}{text}", "", indent = 2 * self.depth);
    }

    fn reg(&self, reg: Reg) -> &str {
        self.names.get(reg.0 as usize).map_or("%?", String::as_str)
    }

    fn kernel(&mut self) {
        let kernel = self.kernel;
        let sizes: Vec<String> = kernel.sizes.iter().map(|s| format!("{} {}", s.name, self.reg(s.reg))).collect();
        self.line(format_args!("kernel @{}({}) {{", kernel.name, sizes.join(", ")));
        self.depth = 1;
        for buffer in &kernel.buffers {
            let len = self.count(&buffer.len);
            self.line(format_args!("{} {}: {}[{len}]", kind_name(buffer.kind), buffer.name, buffer.elem.name()));
        }
        if let Some(split) = &kernel.split {
            let (begin, end) = (self.reg(split.begin).to_owned(), self.reg(split.end).to_owned());
            let extent = self.count(&split.extent);
            self.line(format_args!("split {begin}..{end} of {extent}"));
        }
        self.block(&kernel.body);
        self.depth = 0;
        self.line(format_args!("}}"));
    }

    fn count(&self, count: &Count) -> String {
        match count {
            Count::Const(n) => n.to_string(),
            Count::Size(i) => self.kernel.sizes.get(*i).map_or_else(|| "?".to_owned(), |s| s.name.clone()),
            Count::Mul(a, b) => format!("({} * {})", self.count(a), self.count(b)),
            Count::Add(a, b) => format!("({} + {})", self.count(a), self.count(b)),
            Count::Sub(a, b) => format!("({} - {})", self.count(a), self.count(b)),
            Count::DivCeil(a, b) => format!("ceil({}, {})", self.count(a), self.count(b)),
            Count::DivExact(a, b) => format!("exact({}, {})", self.count(a), self.count(b)),
        }
    }

    fn block(&mut self, statements: &[Stmt]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn inside(&mut self, statements: &[Stmt]) {
        self.depth += 1;
        self.block(statements);
        self.depth -= 1;
    }

    fn statement(&mut self, statement: &Stmt) {
        match statement {
            Stmt::Assign(dst, expr) => {
                let (name, ty) = (self.reg(*dst).to_owned(), self.kernel.ty(*dst));
                let expr = self.expr(expr);
                self.line(format_args!("{name}: {ty} = {expr}"));
            }
            Stmt::Store { buf, offset, value, tail, stream } => {
                let buffer = &self.kernel.buffer(*buf).name;
                let tail = tail.map_or(String::new(), |t| format!(" tail {}", self.reg(t)));
                let stream = if *stream { " stream" } else { "" };
                let (offset, value) = (self.reg(*offset).to_owned(), self.reg(*value).to_owned());
                self.line(format_args!("store {buffer}[{offset}] = {value}{tail}{stream}"));
            }
            Stmt::For { var, lo, hi, step, parallel, body } => {
                let [var, lo, hi] = [var, lo, hi].map(|r| self.reg(*r).to_owned());
                let parallel = if *parallel { " parallel" } else { "" };
                self.line(format_args!("for {var} in {lo}..{hi} step {step}{parallel} {{"));
                self.inside(body);
                self.line(format_args!("}}"));
            }
            Stmt::If { cond, then, els } => {
                let cond = self.reg(*cond).to_owned();
                self.line(format_args!("if {cond} {{"));
                self.inside(then);
                if !els.is_empty() {
                    self.line(format_args!("}} else {{"));
                    self.inside(els);
                }
                self.line(format_args!("}}"));
            }
            Stmt::Fail { cond, status } => {
                let cond = self.reg(*cond).to_owned();
                self.line(format_args!("fail {cond} {status}"));
            }
            Stmt::Prefetch { buf, offset } => {
                let (buffer, offset) = (&self.kernel.buffer(*buf).name, self.reg(*offset).to_owned());
                self.line(format_args!("prefetch {buffer}[{offset}]"));
            }
            Stmt::Comment(text) => self.line(format_args!("// {text}")),
        }
    }

    fn expr(&self, expr: &Expr) -> String {
        let r = |reg: &Reg| self.reg(*reg).to_owned();
        match expr {
            Expr::Const(_, Number::Float(v)) => format!("const {}", float(*v)),
            Expr::Const(_, Number::Int(v)) => format!("const {v}"),
            Expr::Copy(x) => format!("copy {}", r(x)),
            Expr::Unary(op, x) => format!("{} {}", unary_name(*op), r(x)),
            Expr::Binary(op, x, y) => format!("{} {}, {}", binary_name(*op), r(x), r(y)),
            Expr::Fma(x, y, z) => format!("fma {}, {}, {}", r(x), r(y), r(z)),
            Expr::Compare(op, x, y) => format!("compare {} {}, {}", compare_name(*op), r(x), r(y)),
            Expr::Select(c, x, y) => format!("select {}, {}, {}", r(c), r(x), r(y)),
            Expr::Convert(_, x) => format!("convert {}", r(x)),
            Expr::Bitcast(_, x) => format!("bitcast {}", r(x)),
            Expr::Splat(_, x) => format!("splat {}", r(x)),
            Expr::Extract(x, lane) => format!("extract {}, {lane}", r(x)),
            Expr::Iota(_) => "iota".to_owned(),
            Expr::Reduce(op, x) => format!("reduce {} {}", fold_name(*op), r(x)),
            Expr::Load { buf, offset, stride, tail, .. } => {
                let mut text = format!("load {}[{}]", self.kernel.buffer(*buf).name, r(offset));
                if let Some(stride) = stride {
                    let _ = write!(text, " stride {}", r(stride));
                }
                if let Some((count, fill)) = tail {
                    let _ = write!(text, " tail {} fill {}", r(count), r(fill));
                }
                text
            }
        }
    }
}

/// Registers in the order of the text.
fn appearance(kernel: &Kernel) -> Vec<Reg> {
    fn block(statements: &[Stmt], out: &mut Vec<Reg>) {
        for statement in statements {
            match statement {
                Stmt::Assign(dst, expr) => {
                    out.push(*dst);
                    out.extend(expr.operands());
                }
                Stmt::Store { offset, value, tail, .. } => {
                    out.extend([*offset, *value]);
                    out.extend(tail);
                }
                Stmt::For { var, lo, hi, body, .. } => {
                    out.extend([*var, *lo, *hi]);
                    block(body, out);
                }
                Stmt::If { cond, then, els } => {
                    out.push(*cond);
                    block(then, out);
                    block(els, out);
                }
                Stmt::Fail { cond, .. } => out.push(*cond),
                Stmt::Prefetch { offset, .. } => out.push(*offset),
                Stmt::Comment(_) => {}
            }
        }
    }
    let mut out: Vec<Reg> = kernel.sizes.iter().map(|s| s.reg).collect();
    out.extend(kernel.split.iter().flat_map(|s| [s.begin, s.end]));
    block(&kernel.body, &mut out);
    out
}

/// A float that always shows that it is one.
fn float(value: f64) -> String {
    if value.is_nan() {
        "nan".to_owned()
    } else {
        format!("{value:?}")
    }
}
