//! Anchors: values at which the bodies of a tile are evaluated, with surrogates in place of degenerate ones.

use super::number::reg_elem;
use super::pass::Running;
use super::scope::AnchorRegs;
use super::{LowerError, Lowering};
use crate::{BinOp, Cmp, Expr, Reg, Ty};
use onefold_ir::AxisSet;
use onefold_passes::fold::AnchorId;

/// Registers of an anchor of a running pass.
#[derive(Clone, Debug)]
pub struct AnchorState {
    pub id: AnchorId,
    /// Current value, surrogates put in.
    pub new: Reg,
    /// Value before the tile.
    pub old: Reg,
    /// Current value as the formula gives it; the same register as `new` if no value is degenerate.
    pub exact: Reg,
    /// Whether the current and the old value stand in for degenerate ones; `None` if no value is degenerate.
    pub stands_in: Option<(Reg, Reg)>,
}

impl AnchorState {
    /// As terms see it.
    pub fn regs(&self) -> AnchorRegs {
        AnchorRegs { new: self.new, old: self.old }
    }
}

impl Lowering<'_> {
    /// Registers for an anchor.
    pub fn declare_anchor(&mut self, id: AnchorId) -> AnchorState {
        let anchor = &self.program.anchors[id.0 as usize];
        let ty = Ty::scalar(reg_elem(anchor.dtype));
        let name = anchor.name.clone();
        let new = self.emit.reg(ty, &name);
        let old = self.emit.reg(ty, &format!("{name}_old"));
        let degenerate = !anchor.degenerate.is_empty();
        let exact = if degenerate { self.emit.reg(ty, &format!("{name}_exact")) } else { new };
        let flag = |lower: &mut Self, what: &str| lower.emit.reg(super::emit::BOOL, &format!("{name}_{what}"));
        let stands_in = degenerate.then(|| (flag(self, "stands_in"), flag(self, "stood_in")));
        AnchorState { id, new, old, exact, stands_in }
    }

    /// The value before the first tile.
    pub fn start_anchor(&mut self, anchor: &AnchorState) -> Result<(), LowerError> {
        self.set_anchor(anchor)?;
        self.emit.copy(anchor.old, anchor.new);
        if let Some((stands_in, stood_in)) = anchor.stands_in {
            self.emit.copy(stood_in, stands_in);
        }
        Ok(())
    }

    /// The value at this point of the tile.
    pub fn update_anchor(&mut self, id: AnchorId, running: &Running) -> Result<(), LowerError> {
        let anchor = Self::anchor_of(running, id).ok_or_else(|| LowerError::internal("an anchor of another pass"))?;
        self.emit.copy(anchor.old, anchor.new);
        if let Some((stands_in, stood_in)) = anchor.stands_in {
            self.emit.copy(stood_in, stands_in);
        }
        self.set_anchor(anchor)
    }

    fn set_anchor(&mut self, anchor: &AnchorState) -> Result<(), LowerError> {
        let decl = &self.program.anchors[anchor.id.0 as usize];
        let axes = self.program.terms.get(decl.value).axes;
        if axes.iter().any(|a| self.binding(a).is_none()) {
            let free: AxisSet = axes.iter().filter(|a| self.binding(*a).is_none()).collect();
            let names: Vec<&str> = free.iter().map(|a| self.axis_name(a)).collect();
            return Err(LowerError::internal(format!("anchor {} varies along {}", decl.name, names.join(", "))));
        }
        let of = self.program.terms.get(decl.value).dtype;
        let value = self.value(decl.value)?;
        let value = self.emit.cast(of, decl.dtype, value);
        let Some((stands_in, _)) = anchor.stands_in else {
            self.emit.copy(anchor.new, value);
            return Ok(());
        };
        self.emit.copy(anchor.exact, value);
        let ty = self.emit.ty(value);
        let mut any = None;
        let mut used = value;
        for (degenerate, surrogate) in &decl.degenerate {
            let is = if degenerate.is_nan() {
                self.emit.cmp(Cmp::Uno, value, value)
            } else {
                let at = self.emit.float(ty, *degenerate);
                self.emit.cmp(Cmp::Eq, value, at)
            };
            let surrogate = self.emit.float(ty, *surrogate);
            used = self.emit.select(is, surrogate, used);
            any = Some(any.map_or(is, |any| self.emit.bin(BinOp::Or, any, is)));
        }
        self.emit.assign(anchor.new, Expr::Copy(used));
        if let Some(any) = any {
            self.emit.copy(stands_in, any);
        }
        Ok(())
    }
}
