//! Fold programs as text.

use crate::fold::{ArrayDecl, Carry, FoldProgram, Item, Pass, StateId, StateOp, Step, Target};
use crate::print::{literal, Names};
use crate::schedule::is_load;
use crate::schedule::reads::reads;
use crate::term::TermId;
use onefold_ir::{DType, Literal};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

impl FoldProgram {
    /// Names for printing terms.
    pub fn names(&self) -> Names<'_> {
        Names {
            axes: &self.axes,
            inputs: &self.inputs,
            intermediates: &self.intermediates,
            states: &self.states,
            anchors: &self.anchors,
            shared: None,
            law: false,
        }
    }

    /// A term in infix form.
    pub fn show(&self, id: TermId) -> String {
        self.names().term(&self.terms, id)
    }

    /// The law by which a state follows its anchors, in words that do not depend on names: `exp((old - new))` for a factor; a
    /// combination of states where there are several.
    pub fn show_correction(&self, state: usize) -> Option<String> {
        let state_of = &self.states[state];
        let names = Names { law: true, ..self.names() };
        match &state_of.carry {
            Carry::Keep => None,
            Carry::Shift(c) | Carry::Scale(c) => Some(names.term(&self.terms, *c)),
            Carry::Linear(row) => {
                let alone = row.len() == 1 && row[0].1 .0 as usize == state;
                let part = |(c, s): &(TermId, StateId)| {
                    let c = names.term(&self.terms, *c);
                    if alone {
                        c
                    } else {
                        format!("({} * {c})", self.states[s.0 as usize].name)
                    }
                };
                Some(row.iter().map(part).collect::<Vec<_>>().join(" + "))
            }
        }
    }

    /// The value of a carry as people write it: `exp(old - new)` and the like, one string for each coefficient.
    pub fn show_carry(&self, state: usize) -> Option<String> {
        let state = &self.states[state];
        match &state.carry {
            Carry::Keep => None,
            Carry::Shift(c) => Some(format!("{} + {}", state.name, self.show(*c))),
            Carry::Scale(c) => Some(format!("{} * {}", state.name, self.show(*c))),
            Carry::Linear(row) => {
                let terms: Vec<String> = row
                    .iter()
                    .map(|(c, s)| {
                        let name = &self.states[s.0 as usize].name;
                        let coefficient = self.show(*c);
                        match coefficient.as_str() {
                            "1" => name.clone(),
                            c if c.contains(" + ") || c.contains(" - ") && !c.ends_with(')') => {
                                format!("{name} * ({c})")
                            }
                            c => format!("{name} * {c}"),
                        }
                    })
                    .collect();
                Some(terms.join(" + "))
            }
        }
    }
}

impl fmt::Display for FoldProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arrays = |list: &[ArrayDecl]| {
            list.iter()
                .map(|a| format!("{}: {}[{}]", a.name, a.dtype, self.names().axis_list(a.axes.iter().copied())))
                .collect::<Vec<_>>()
                .join(", ")
        };
        writeln!(f, "fold @{}({}) -> ({}) {{", self.name, arrays(&self.inputs), arrays(&self.outputs))?;
        if !self.intermediates.is_empty() {
            writeln!(f, "  stored {}", arrays(&self.intermediates))?;
        }
        for step in &self.body {
            self.step(f, step, 1)?;
        }
        for refused in &self.refused {
            writeln!(f, "  // {refused}")?;
        }
        let counts: Vec<String> = self.inputs.iter().zip(reads(self)).map(|(a, n)| format!("{} {n}", a.name)).collect();
        writeln!(f, "  // streams: {}", counts.join(", "))?;
        writeln!(f, "}}")
    }
}

impl FoldProgram {
    /// The array that is stored to.
    pub fn target(&self, target: Target) -> &ArrayDecl {
        match target {
            Target::Output(n) => &self.outputs[n],
            Target::Intermediate(n) => &self.intermediates[n],
        }
    }

    fn step(&self, f: &mut fmt::Formatter<'_>, step: &Step, depth: usize) -> fmt::Result {
        let indent = "  ".repeat(depth);
        match step {
            Step::Loop { axes, body } => {
                writeln!(f, "{indent}for {} {{", self.names().axis_list(axes.iter().copied()))?;
                for step in body {
                    self.step(f, step, depth + 1)?;
                }
                writeln!(f, "{indent}}}")
            }
            Step::Store { target, value } => {
                writeln!(f, "{indent}{} = {}", self.target(*target).name, self.show(*value))
            }
            Step::Scan { axis, target, value } => {
                let axis = self.names().axis_list([*axis]);
                writeln!(f, "{indent}{} = cumsum[{axis}]({})", self.target(*target).name, self.show(*value))
            }
            Step::Pass(pass) => {
                writeln!(f, "{indent}stream {} {{", self.names().axis_list(pass.axes.iter().copied()))?;
                let shared = self.shared(pass);
                let names = Names { shared: Some(&shared), ..self.names() };
                let mut defined = BTreeSet::new();
                for item in &pass.order {
                    if let Item::State(id) = item {
                        let state = &self.states[id.0 as usize];
                        for below in self.terms.reachable(&[state.body]) {
                            if let (Some(name), true) = (shared.get(&below), defined.insert(below)) {
                                writeln!(f, "{indent}  {name} = {}", names.definition(&self.terms, below))?;
                            }
                        }
                    }
                    self.item(f, *item, &names, depth + 1)?;
                }
                writeln!(f, "{indent}}}")
            }
        }
    }

    /// Names for terms of some size that the bodies of a pass use more than once.
    fn shared(&self, pass: &Pass) -> BTreeMap<TermId, String> {
        let bodies: Vec<TermId> = pass
            .order
            .iter()
            .filter_map(|item| match item {
                Item::State(id) => Some(self.states[id.0 as usize].body),
                Item::Anchor(_) => None,
            })
            .collect();
        let mut uses: BTreeMap<TermId, u32> = BTreeMap::new();
        for body in &bodies {
            *uses.entry(*body).or_default() += 1;
        }
        for id in self.terms.reachable(&bodies) {
            for arg in &self.terms.get(id).args {
                *uses.entry(*arg).or_default() += 1;
            }
        }
        let worth = |id: TermId| {
            let inside = self.terms.reachable(&[id]);
            let counts = |t: &&TermId| !is_load(&self.terms.get(**t).op) && self.terms.get(**t).dtype != DType::I64;
            inside.iter().filter(counts).count() >= 3
        };
        let shared = uses.into_iter().filter(|(id, n)| *n > 1 && !is_load(&self.terms.get(*id).op) && worth(*id));
        let taken = |name: &String| self.inputs.iter().chain(&self.intermediates).any(|a| a.name == *name);
        let names = (0..).map(|n| format!("x{n}")).filter(|name| !taken(name));
        shared.map(|(id, _)| id).zip(names).collect()
    }

    fn item(&self, f: &mut fmt::Formatter<'_>, item: Item, names: &Names<'_>, depth: usize) -> fmt::Result {
        let indent = "  ".repeat(depth);
        match item {
            Item::State(id) => {
                let state = &self.states[id.0 as usize];
                let mut name = state.name.clone();
                if !state.axes.is_empty() {
                    let _ = write!(name, "[{}]", self.names().axis_list(state.axes.iter().copied()));
                }
                let op = match state.op {
                    StateOp::Sum => "sum".to_owned(),
                    StateOp::Prod => "prod".to_owned(),
                    StateOp::Max => "max".to_owned(),
                    StateOp::Min => "min".to_owned(),
                    StateOp::ArgMax => "argmax".to_owned(),
                    StateOp::TopK { to } => format!("topk[{}]", self.names().axis(to)),
                };
                write!(f, "{indent}{name} = {op}({})", names.term(&self.terms, state.body))?;
                match self.show_carry(id.0 as usize) {
                    Some(carry) => writeln!(f, "  carry {carry}"),
                    None => writeln!(f),
                }
            }
            Item::Anchor(id) => {
                let anchor = &self.anchors[id.0 as usize];
                write!(f, "{indent}{} at {}", anchor.name, self.show(anchor.value))?;
                for (value, surrogate) in &anchor.degenerate {
                    let float = |v: f64| literal(Literal::Float(v));
                    write!(f, ", {} for {}", float(*surrogate), float(*value))?;
                }
                writeln!(f)
            }
        }
    }
}
