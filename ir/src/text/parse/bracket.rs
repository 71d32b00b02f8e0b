//! What stands in square brackets: axes, their replacements, ranges and distances.

use super::{Parsed, Parser};
use crate::text::ast::{AxisRef, AxisSize, Bracket, Operand, TypeRef};
use crate::text::lex::Kind;

impl Parser<'_, '_> {
    /// `[j]`, `[v -> t=5]`, `[(h, e) -> x]`, `[j, 0..4]`, `[j, -1]`
    pub(super) fn bracket(&mut self) -> Parsed<Bracket> {
        let start = self.expect("[", "before axes")?;
        let mut bracket = Bracket::default();
        while !self.is("]") {
            if self.at_operand() {
                bracket.operand = Some(self.operand()?);
                self.accept(",");
                break;
            }
            if self.accept("->") {
                bracket.arrow = Some(self.axis_group()?);
            } else {
                bracket.axes.extend(self.axis_group()?);
            }
            if !self.is("->") && !self.accept(",") {
                break;
            }
        }
        self.expect("]", "after the axes")?;
        bracket.span = self.since(start);
        Ok(bracket)
    }

    /// One axis, or several in parentheses.
    fn axis_group(&mut self) -> Parsed<Vec<AxisRef>> {
        if self.accept("(") {
            return self.list(")", |p| p.axis_ref());
        }
        Ok(vec![self.axis_ref()?])
    }

    /// `j`, `j=5`, `j=?`, `e=d`
    pub(super) fn axis_ref(&mut self) -> Parsed<AxisRef> {
        let name = self.word_name("an axis")?;
        if !self.accept("=") {
            return Ok(AxisRef { name, size: None });
        }
        let size = if self.accept("?") {
            AxisSize::Symbolic
        } else if self.peek().kind == Kind::Word && self.ahead(1).kind != Kind::Mark("(") {
            AxisSize::Named(self.word_name("an axis")?)
        } else if self.peek().kind == Kind::Int && matches!(self.ahead(1).kind, Kind::Mark("," | "]" | ")" | "->")) {
            AxisSize::Fixed(self.size("a size after `=`")?)
        } else if matches!(self.peek().kind, Kind::Int | Kind::Word | Kind::Mark("(")) {
            AxisSize::Expr(Box::new(self.expr()?))
        } else {
            return self.unexpected("a size after `=`");
        };
        Ok(AxisRef { name, size: Some(size) })
    }

    fn at_operand(&self) -> bool {
        matches!(self.peek().kind, Kind::Int | Kind::Float | Kind::Mark("-" | ".."))
    }

    fn operand(&mut self) -> Parsed<Operand> {
        let start_span = self.peek().span;
        let (start, span) = if self.is("..") { (0, start_span) } else { self.integer("a position or a distance")? };
        if !self.accept("..") {
            return Ok(Operand::Int(start, span));
        }
        let open = self.is("]") || self.is("..") || self.is(",");
        let stop = if open { None } else { Some(Box::new(self.expr()?)) };
        let step = if self.accept("..") { self.integer("a step")?.0 } else { 1 };
        Ok(Operand::Range { start, stop, step, span: self.since(start_span) })
    }

    /// `f32[b, v]`, `f32`
    pub(super) fn type_ref(&mut self) -> Parsed<TypeRef> {
        let start = self.peek().span;
        let dtype = self.dtype()?;
        let axes = if self.accept("[") { self.list("]", |p| p.axis_ref())? } else { vec![] };
        Ok(TypeRef { dtype, axes, span: self.since(start) })
    }
}
