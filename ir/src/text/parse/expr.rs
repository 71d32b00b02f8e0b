//! Expressions, by precedence climbing.

use super::{Parsed, Parser, Reported, MAX_DEPTH};
use crate::text::ast::{Arg, Bracket, Call, Expr, ExprKind, Name};
use crate::text::lex::Kind;
use crate::text::suggest::did_you_mean;
use crate::{BinaryOp, CmpOp, DType, Span};

/// What an infix operator makes.
enum Infix {
    Binary(BinaryOp),
    Compare(CmpOp),
}

/// How tightly comparisons bind; they do not chain.
const COMPARISON: u8 = 5;

/// How tightly prefix `not` binds: looser than comparisons.
const NOT: u8 = 4;

impl Parser<'_, '_> {
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        self.binary(0)
    }

    fn infix(&self) -> Option<(Infix, u8)> {
        let token = self.peek();
        let text = match token.kind {
            Kind::Mark(m) => m,
            Kind::Word => token.text,
            _ => return None,
        };
        Some(match text {
            "or" => (Infix::Binary(BinaryOp::Or), 1),
            "xor" => (Infix::Binary(BinaryOp::Xor), 2),
            "and" => (Infix::Binary(BinaryOp::And), 3),
            "<" => (Infix::Compare(CmpOp::Lt), COMPARISON),
            "<=" => (Infix::Compare(CmpOp::Le), COMPARISON),
            ">" => (Infix::Compare(CmpOp::Gt), COMPARISON),
            ">=" => (Infix::Compare(CmpOp::Ge), COMPARISON),
            "==" => (Infix::Compare(CmpOp::Eq), COMPARISON),
            "!=" => (Infix::Compare(CmpOp::Ne), COMPARISON),
            "<<" => (Infix::Binary(BinaryOp::Shl), 6),
            ">>" => (Infix::Binary(BinaryOp::Shr), 6),
            "+" => (Infix::Binary(BinaryOp::Add), 7),
            "-" => (Infix::Binary(BinaryOp::Sub), 7),
            "*" => (Infix::Binary(BinaryOp::Mul), 8),
            "/" => (Infix::Binary(BinaryOp::Div), 8),
            _ => return None,
        })
    }

    fn binary(&mut self, least: u8) -> Parsed<Expr> {
        let start = self.peek().span;
        self.enter(start)?;
        let mut left = self.prefix()?;
        while let Some((infix, level)) = self.infix() {
            if level < least {
                break;
            }
            let operator = self.next();
            let right = self.binary(level + 1)?;
            if level == COMPARISON && matches!(self.infix(), Some((Infix::Compare(_), _))) {
                let span = self.peek().span;
                self.sink.error(span, "comparisons do not chain", "write `a < b and b < c`");
                return Err(Reported);
            }
            let depth = left.depth.max(right.depth);
            let (left_side, right_side) = (Box::new(left), Box::new(right));
            let kind = match infix {
                Infix::Binary(op) => ExprKind::Binary(op, left_side, right_side),
                Infix::Compare(op) => ExprKind::Compare(op, left_side, right_side),
            };
            left = self.make(kind, start, depth)?;
            if left.depth > MAX_DEPTH {
                return self.too_deep(operator.span);
            }
        }
        self.depth -= 1;
        Ok(left)
    }

    fn enter(&mut self, span: Span) -> Parsed<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.too_deep(span);
        }
        Ok(())
    }

    fn too_deep<T>(&mut self, span: Span) -> Parsed<T> {
        let entry = self.sink.error(span, format!("expressions nest at most {MAX_DEPTH} levels deep"), "too deep");
        entry.help("name a part: `%part = …`");
        Err(Reported)
    }

    fn make(&mut self, kind: ExprKind, start: Span, below: u32) -> Parsed<Expr> {
        let expr = Expr { kind, span: self.since(start), depth: below + 1 };
        if expr.depth > MAX_DEPTH {
            return self.too_deep(expr.span);
        }
        Ok(expr)
    }

    fn prefix(&mut self) -> Parsed<Expr> {
        let start = self.peek().span;
        if self.is("-") {
            // A sign right before a number belongs to the number.
            let after = self.ahead(1);
            self.next();
            if matches!(after.kind, Kind::Int | Kind::Float) || (after.kind == Kind::Word && after.text == "inf") {
                return self.number(true, start);
            }
            self.enter(start)?;
            let operand = self.prefix()?;
            self.depth -= 1;
            let depth = operand.depth;
            return self.make(ExprKind::Neg(Box::new(operand)), start, depth);
        }
        if self.is_word("not") {
            self.next();
            let operand = self.binary(NOT)?;
            let depth = operand.depth;
            return self.make(ExprKind::Not(Box::new(operand)), start, depth);
        }
        self.atom()
    }

    fn number(&mut self, negative: bool, start: Span) -> Parsed<Expr> {
        let token = self.next();
        let sign = if negative { -1.0 } else { 1.0 };
        let kind = match token.kind {
            Kind::Int => {
                let span = self.since(start);
                match (self.number_value(token, negative, span)?, negative) {
                    // An integer has no negative zero, but a float that is written as one has.
                    (0, true) => ExprKind::Float(-0.0),
                    (value, _) => ExprKind::Int(value),
                }
            }
            Kind::Float => match token.text.parse::<f64>() {
                Ok(value) if value.is_finite() => ExprKind::Float(sign * value),
                _ => {
                    let span = self.since(start);
                    self.sink.error(span, format!("{} is beyond the range of f64", super::show(token)), "write `inf`");
                    return Err(Reported);
                }
            },
            _ if token.text == "inf" => ExprKind::Float(sign * f64::INFINITY),
            _ => ExprKind::Float(f64::NAN),
        };
        self.make(kind, start, 0)
    }

    fn atom(&mut self) -> Parsed<Expr> {
        let token = self.peek();
        let start = token.span;
        match token.kind {
            Kind::Value => {
                self.next();
                self.make(ExprKind::Value(token.text.to_string()), start, 0)
            }
            Kind::Int | Kind::Float => self.number(false, start),
            Kind::Mark("(") => {
                self.next();
                let inner = self.expr()?;
                self.expect(")", "to close the parenthesis")?;
                // Parentheses leave no trace but the span and one level.
                Ok(Expr { span: self.since(start), depth: inner.depth, ..inner })
            }
            Kind::Word => match token.text {
                "inf" | "nan" => self.number(false, start),
                "true" | "false" => {
                    self.next();
                    self.make(ExprKind::Bool(token.text == "true"), start, 0)
                }
                "none" => {
                    self.next();
                    self.make(ExprKind::None, start, 0)
                }
                "if" => self.conditional(),
                "func" | "macro" | "axis" | "const" | "return" | "else" | "and" | "or" | "xor" => {
                    self.unexpected("an expression")
                }
                _ => self.call(),
            },
            _ => self.unexpected("an expression"),
        }
    }

    /// `if known_condition { a } else { b }`
    fn conditional(&mut self) -> Parsed<Expr> {
        let start = self.expect_word("if")?;
        let condition = self.expr()?;
        self.expect("{", "after the condition of `if`")?;
        let then = self.expr()?;
        self.expect("}", "after the expression")?;
        self.expect_word("else")?;
        let otherwise = if self.is_word("if") {
            self.enter(start)?;
            let chained = self.conditional()?;
            self.depth -= 1;
            chained
        } else {
            self.expect("{", "after `else`")?;
            let expr = self.expr()?;
            self.expect("}", "after the expression")?;
            expr
        };
        let depth = condition.depth.max(then.depth).max(otherwise.depth);
        self.make(ExprKind::If(Box::new([condition, then, otherwise])), start, depth)
    }

    fn call(&mut self) -> Parsed<Expr> {
        let token = self.next();
        let name = Name { text: token.text.to_string(), span: token.span };
        let dtype = if self.is("<") && matches!(name.text.as_str(), "cast" | "quantize") {
            self.next();
            let dtype = self.dtype()?;
            self.expect(">", "after the dtype")?;
            Some(dtype)
        } else {
            None
        };
        let bracket = if self.is("[") { Some(self.bracket()?) } else { None };
        if matches!(name.text.as_str(), "index" | "size") && bracket.is_none() && self.is("(") {
            return self.axis_call(name);
        }
        if !self.is("(") {
            return self.not_a_call(&name, bracket.is_some());
        }
        self.next();
        let args = self.list(")", |p| {
            let named = p.peek().kind == Kind::Word && matches!(p.ahead(1).kind, Kind::Mark("="));
            let name = if named {
                let name = p.word_name("an argument")?;
                p.next();
                Some(name)
            } else {
                None
            };
            Ok(Arg { name, value: p.expr()? })
        })?;
        let depth = args.iter().map(|a| a.value.depth).max().unwrap_or(0);
        let call = Call { name, dtype, bracket, args, span: self.since(token.span) };
        self.make(ExprKind::Call(Box::new(call)), token.span, depth)
    }

    /// `index(j)`, `size(j)`: the operand is an axis, not a value.
    fn axis_call(&mut self, name: Name) -> Parsed<Expr> {
        let open = self.next().span;
        let axes = vec![self.axis_ref()?];
        self.expect(")", "after the axis")?;
        let bracket = Some(Bracket { axes, span: self.since(open), ..Bracket::default() });
        let start = name.span;
        let call = Call { name, dtype: None, bracket, args: vec![], span: self.since(start) };
        self.make(ExprKind::Call(Box::new(call)), start, 0)
    }

    fn not_a_call<T>(&mut self, name: &Name, bracketed: bool) -> Parsed<T> {
        if bracketed {
            return self.unexpected("`(` and operands after the axes");
        }
        let message = format!("`{}` is neither a value nor a call", super::clip(&name.text));
        let entry = self.sink.error(name.span, message, "expected an expression");
        entry.help(format!("values are written `%{0}`, functions `{0}(…)`", super::clip(&name.text)));
        Err(Reported)
    }

    /// The name of an element type.
    pub(super) fn dtype(&mut self) -> Parsed<DType> {
        let token = self.peek();
        if token.kind != Kind::Word {
            return self.unexpected("a dtype such as `f32`");
        }
        match DType::from_name(token.text) {
            Some(dtype) => {
                self.next();
                Ok(dtype)
            }
            None => {
                let names = DType::ALL.map(DType::name);
                let help = did_you_mean(token.text, names, "")
                    .unwrap_or_else(|| format!("the dtypes are {}", names.join(", ")));
                let message = format!("unknown dtype `{}`", super::clip(token.text));
                self.sink.error(token.span, message, "expected a dtype").help(help);
                Err(Reported)
            }
        }
    }
}
