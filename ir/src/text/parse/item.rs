//! Items of a text: axes, constants, macros, functions and the statements in them.

use super::{Parsed, Parser, Reported};
use crate::text::ast::{Body, ConstDef, File, FuncDef, MacroDef, MacroParam, Name, Statement};
use crate::text::lex::Kind;
use crate::text::suggest::did_you_mean;
use crate::Span;

impl Parser<'_, '_> {
    pub(super) fn file(&mut self) -> File {
        let mut file = File::default();
        while self.peek().kind != Kind::End && !self.sink.is_full() {
            let before = self.at;
            if self.item(&mut file).is_err() {
                self.depth = 0;
                self.recover();
                // What is left of a function whose head was wrong says nothing new.
                while self.at > before && !self.at_item() && self.peek().kind != Kind::End {
                    self.next();
                    self.recover();
                }
                if self.at == before {
                    self.next();
                }
            }
        }
        file
    }

    fn at_item(&self) -> bool {
        ["func", "macro", "axis", "const"].iter().any(|w| self.is_word(w))
    }

    fn item(&mut self, file: &mut File) -> Parsed<()> {
        let token = self.peek();
        match (token.kind, token.text) {
            (Kind::Word, "axis") => self.axes(file),
            (Kind::Word, "const") => {
                let constant = self.constant()?;
                file.consts.push(constant);
                Ok(())
            }
            (Kind::Word, "macro") => {
                let definition = self.macro_def()?;
                file.macros.push(definition);
                Ok(())
            }
            (Kind::Word, "func") => {
                let definition = self.func_def()?;
                file.funcs.push(definition);
                Ok(())
            }
            (Kind::Mark(";"), _) => {
                self.next();
                Ok(())
            }
            (Kind::Word, word) => {
                let help = did_you_mean(word, ["func", "macro", "axis", "const"], "");
                let expected = "`func`, `macro`, `axis` or `const`";
                let message = format!("expected {expected}, found {}", super::show(token));
                self.sink.error(token.span, message, format!("expected {expected}")).maybe_help(help);
                Err(Reported)
            }
            _ => self.unexpected("`func`, `macro`, `axis` or `const`"),
        }
    }

    /// `axis e = 64, d = 128`
    fn axes(&mut self, file: &mut File) -> Parsed<()> {
        self.next();
        loop {
            let name = self.word_name("an axis")?;
            self.expect("=", "and a size")?;
            let size = self.size("a size")?;
            file.axes.push((name, size));
            if !self.accept(",") {
                return Ok(());
            }
        }
    }

    /// `const %c: f32[a=3] = [1, 2.5, -inf]`
    fn constant(&mut self) -> Parsed<ConstDef> {
        let start = self.next().span;
        let name = self.value_name("the name of a constant, such as `%c`")?;
        self.expect(":", "and a type")?;
        let ty = self.type_ref()?;
        self.expect("=", "and the elements")?;
        let mut data = vec![];
        self.elements(&mut data)?;
        Ok(ConstDef { name, ty, data, span: self.since(start) })
    }

    /// Elements row by row; brackets may nest and need not.
    fn elements(&mut self, data: &mut Vec<f64>) -> Parsed<()> {
        let mut open = 0usize;
        loop {
            while self.accept("[") {
                open += 1;
            }
            if !self.is("]") {
                data.push(self.element()?);
            }
            while open > 0 && self.accept("]") {
                open -= 1;
            }
            if open == 0 {
                return Ok(());
            }
            self.accept(",");
            if self.peek().kind == Kind::End {
                return self.unexpected("`]` after the elements");
            }
        }
    }

    fn element(&mut self) -> Parsed<f64> {
        let start = self.peek().span;
        let sign = if self.accept("-") { -1.0 } else { 1.0 };
        let token = self.peek();
        let value = match (token.kind, token.text) {
            (Kind::Int | Kind::Float, text) => text.parse::<f64>().ok().filter(|v| v.is_finite()),
            (Kind::Word, "inf") => Some(f64::INFINITY),
            (Kind::Word, "nan") => Some(f64::NAN),
            (Kind::Word, "true") => Some(1.0),
            (Kind::Word, "false") => Some(0.0),
            _ => return self.unexpected("a number, `true`, `false` or `]`"),
        };
        self.next();
        // A 17-digit integer that f64 cannot hold would silently become another one.
        let exact = token.kind != Kind::Int || value.is_some_and(|v| v < 9_007_199_254_740_992.0);
        match value.filter(|_| exact) {
            Some(value) => Ok(sign * value),
            None => {
                let span = self.since(start);
                self.sink.error(
                    span,
                    format!("{} cannot be held exactly", super::show(token)),
                    "too large for a constant",
                );
                Err(Reported)
            }
        }
    }

    /// `macro name[j, e = e](%x, %eps = 1e-5) { … }`
    fn macro_def(&mut self) -> Parsed<MacroDef> {
        self.next();
        let name = self.word_name("a macro")?;
        let axes = if self.accept("[") {
            self.list("]", |p| {
                let name = p.word_name("an axis parameter")?;
                let default = if p.accept("=") { Some(p.word_name("an axis")?) } else { None };
                Ok((name, default))
            })?
        } else {
            vec![]
        };
        self.expect("(", "and the parameters")?;
        let params = self.list(")", |p| {
            let name = p.value_name("a parameter such as `%x`")?;
            let default = if p.accept("=") { Some(p.expr()?) } else { None };
            Ok(MacroParam { name, default })
        })?;
        let body = self.body()?;
        Ok(MacroDef { name, axes, params, body })
    }

    /// `func @name(%x: f32[b, v]) -> f32[b] { … }`
    fn func_def(&mut self) -> Parsed<FuncDef> {
        self.next();
        let token = self.peek();
        if token.kind != Kind::Func {
            return self.unexpected("the name of a function, such as `@main`");
        }
        self.next();
        let name = Name { text: token.text.to_string(), span: token.span };
        self.expect("(", "and the parameters")?;
        let params = self.list(")", |p| {
            let name = p.value_name("a parameter such as `%x`")?;
            p.expect(":", "and a type")?;
            Ok((name, p.type_ref()?))
        })?;
        let results = if self.accept("->") {
            Some(if self.accept("(") { self.list(")", |p| p.type_ref())? } else { vec![self.type_ref()?] })
        } else {
            None
        };
        let body = self.body()?;
        Ok(FuncDef { name, params, results, body })
    }

    /// Statements in braces. Errors inside do not end it.
    fn body(&mut self) -> Parsed<Body> {
        self.expect("{", "and the body")?;
        let mut body = Body::default();
        let mut failed = false;
        let mut returned = false;
        loop {
            if self.is("}") || self.peek().kind == Kind::End || self.at_item() {
                break;
            }
            if self.accept(";") {
                continue;
            }
            let before = self.at;
            if returned {
                let _: Parsed<()> = self.unexpected("`}` after `return`");
                failed = true;
            } else if self.is_word("return") {
                returned = true;
                failed |= self.returned(&mut body).is_err();
            } else {
                match self.statement(&mut body.poisoned) {
                    Ok(statement) => body.statements.push(statement),
                    Err(Reported) => failed = true,
                }
            }
            if failed {
                self.depth = 0;
                self.recover();
                if self.at == before {
                    self.next();
                }
                body.broken = true;
                failed = false;
                if self.sink.is_full() {
                    return Err(Reported);
                }
            }
        }
        if !self.is("}") {
            return self.unexpected("`}` at the end of the body");
        }
        let end = self.next().span;
        if !returned && !body.broken {
            self.sink.error(end, "nothing is returned", "expected `return` before this");
            body.broken = true;
        }
        Ok(body)
    }

    fn returned(&mut self, body: &mut Body) -> Parsed<()> {
        let start = self.next().span;
        loop {
            body.returned.push(self.expr()?);
            if !self.accept(",") {
                break;
            }
        }
        body.span = self.since(start);
        Ok(())
    }

    /// `%a = expr`, `%a, %b = expr`, `_, %b = expr`
    fn statement(&mut self, poisoned: &mut Vec<String>) -> Parsed<Statement> {
        let start = self.peek().span;
        let mut targets: Vec<Option<Name>> = vec![];
        let statement = self.assignment(start, &mut targets);
        if statement.is_err() {
            poisoned.extend(targets.iter().flatten().map(|n| n.text.clone()));
        }
        statement
    }

    fn assignment(&mut self, start: Span, targets: &mut Vec<Option<Name>>) -> Parsed<Statement> {
        loop {
            let token = self.peek();
            if token.kind == Kind::Word && token.text == "_" {
                self.next();
                targets.push(None);
            } else {
                targets.push(Some(self.value_name("`%name = …` or `return`")?));
            }
            if !self.accept(",") {
                break;
            }
        }
        self.expect("=", "after the name")?;
        let value = self.expr()?;
        Ok(Statement { targets: targets.clone(), value, span: self.since(start) })
    }
}
