//! Loops around passes and stores: neighbours that share independent axes share their loops.

use crate::fold::{ArrayDecl, Carry, FoldProgram, Item, StateId, StateOp, Step, Target};
use crate::term::{ArrayId, Term, TermId, TermOp};
use onefold_ir::{AxisId, AxisSet, DType, Part};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Something to do for every position along some axes.
pub struct Unit {
    /// Independent axes.
    pub parallel: AxisSet,
    /// What.
    pub step: Step,
}

/// Loops around units in order, given the axes bound already. A run of units shares the loops over the axes that all of it has.
pub fn nest(units: Vec<Unit>, bound: AxisSet, rank: &dyn Fn(AxisId) -> usize) -> Vec<Step> {
    let mut steps = vec![];
    let mut units = units.into_iter().peekable();
    while let Some(first) = units.next() {
        let mut shared = first.parallel.minus(bound);
        if shared.is_empty() {
            steps.push(first.step);
            continue;
        }
        let mut run = vec![first];
        while let Some(next) = units.peek() {
            let both = shared.intersect(next.parallel);
            if both.is_empty() {
                break;
            }
            shared = both;
            run.extend(units.next());
        }
        let mut axes: Vec<AxisId> = shared.iter().collect();
        axes.sort_by_key(|a| rank(*a));
        let body = nest(run, bound.union(shared), rank);
        steps.push(Step::Loop { axes, body });
    }
    steps
}

/// Where a step stands: the positions of the loops around it.
type Path = Vec<usize>;

/// States that are used outside the loops of their pass are stored in intermediates and read back.
pub fn store_intermediates(program: &mut FoldProgram, rank: &dyn Fn(AxisId) -> usize) {
    let mut passes: BTreeMap<StateId, Path> = BTreeMap::new();
    let mut uses: Vec<(Path, StateId)> = vec![];
    walk(program, &program.body, &mut vec![], &mut passes, &mut uses);
    let crossing: BTreeSet<StateId> = uses
        .iter()
        .filter(|(path, state)| passes.get(state).is_some_and(|home| !path.starts_with(home)))
        .map(|(_, state)| *state)
        .collect();
    for state in crossing {
        let path = passes[&state].clone();
        store_one(program, state, &path, rank);
    }
}

fn walk(
    program: &FoldProgram,
    steps: &[Step],
    path: &mut Path,
    passes: &mut BTreeMap<StateId, Path>,
    uses: &mut Vec<(Path, StateId)>,
) {
    for (i, step) in steps.iter().enumerate() {
        let mut roots = vec![];
        match step {
            Step::Loop { body, .. } => {
                path.push(i);
                walk(program, body, path, passes, uses);
                path.pop();
            }
            Step::Pass(pass) => {
                for item in &pass.order {
                    match item {
                        Item::State(id) => {
                            passes.insert(*id, path.clone());
                            let state = &program.states[id.0 as usize];
                            roots.push(state.body);
                            roots.extend(coefficients(&state.carry));
                        }
                        Item::Anchor(id) => roots.push(program.anchors[id.0 as usize].value),
                    }
                }
            }
            Step::Store { value, .. } | Step::Scan { value, .. } => roots.push(*value),
        }
        for id in program.terms.reachable(&roots) {
            if let TermOp::State { state, .. } = program.terms.get(id).op {
                uses.push((path.clone(), state));
            }
        }
    }
}

/// The terms of a carry.
pub(crate) fn coefficients(carry: &Carry) -> Vec<TermId> {
    match carry {
        Carry::Keep => vec![],
        Carry::Linear(row) => row.iter().map(|(c, _)| *c).collect(),
        Carry::Shift(c) | Carry::Scale(c) => vec![*c],
    }
}

/// What there is to read of a state.
pub(crate) fn parts_of(op: StateOp) -> &'static [Part] {
    match op {
        StateOp::TopK { .. } => &[Part::Values, Part::Indices],
        StateOp::ArgMax => &[Part::Indices],
        _ => &[Part::Values],
    }
}

/// Store one state after its pass and read it back everywhere outside its loops.
fn store_one(program: &mut FoldProgram, id: StateId, path: &[usize], rank: &dyn Fn(AxisId) -> usize) {
    let bound = bound_axes(&program.body, path);
    let state = program.states[id.0 as usize].clone();
    let mut inner: Vec<AxisId> = state.axes.clone();
    if let StateOp::TopK { to } = state.op {
        inner.push(to);
    }
    let mut axes: Vec<AxisId> = bound.iter().chain(inner.iter().copied().collect::<AxisSet>().iter()).collect();
    axes.sort_by_key(|a| rank(*a));
    axes.dedup();
    for part in parts_of(state.op) {
        let dtype = if *part == Part::Indices { DType::I64 } else { state.dtype };
        let leaf = TermOp::State { state: id, part: *part };
        let Some(leaf) = find_leaf(program, &leaf) else { continue };
        let array = program.intermediates.len();
        program.intermediates.push(ArrayDecl { name: format!("t{array}"), dtype, axes: axes.clone() });
        let args: Vec<TermId> =
            axes.iter().map(|a| program.terms.make(TermOp::Index(*a), DType::I64, vec![])).collect();
        let load = TermOp::Load { array: ArrayId::Intermediate(array), checked: false };
        let load = program.terms.make(load, dtype, args);
        replace_outside(program, path, leaf, load);
        let store = Step::Store { target: Target::Intermediate(array), value: leaf };
        let step = if inner.is_empty() { store } else { Step::Loop { axes: inner.clone(), body: vec![store] } };
        insert_at_end(&mut program.body, path, step);
    }
}

/// The term of that operator, if there is one.
pub(crate) fn find_leaf(program: &FoldProgram, op: &TermOp) -> Option<TermId> {
    (0..program.terms.len() as u32).map(TermId).find(|t| program.terms.get(*t).op == *op)
}

fn bound_axes(steps: &[Step], path: &[usize]) -> AxisSet {
    let Some((first, rest)) = path.split_first() else { return AxisSet::EMPTY };
    match &steps[*first] {
        Step::Loop { axes, body } => axes.iter().copied().collect::<AxisSet>().union(bound_axes(body, rest)),
        _ => AxisSet::EMPTY,
    }
}

/// Put a step behind everything in the loops of a path.
fn insert_at_end(steps: &mut Vec<Step>, path: &[usize], new: Step) {
    if let Some((first, rest)) = path.split_first() {
        if let Step::Loop { body, .. } = &mut steps[*first] {
            insert_at_end(body, rest, new);
        }
        return;
    }
    // At the end of the loop's body, so that the positions of which paths are made stay as they are.
    steps.push(new);
}

/// Replace a leaf in every step that does not stand in the loops of a path.
fn replace_outside(program: &mut FoldProgram, home: &[usize], leaf: TermId, load: TermId) {
    let mut body = std::mem::take(&mut program.body);
    replace_in(program, &mut body, &mut vec![], home, leaf, load);
    program.body = body;
}

fn replace_in(
    program: &mut FoldProgram,
    steps: &mut [Step],
    path: &mut Path,
    home: &[usize],
    leaf: TermId,
    load: TermId,
) {
    for (i, step) in steps.iter_mut().enumerate() {
        if let Step::Loop { body, .. } = step {
            path.push(i);
            replace_in(program, body, path, home, leaf, load);
            path.pop();
            continue;
        }
        if path.starts_with(home) {
            continue;
        }
        replace_in_step(program, step, leaf, load);
    }
}

/// Replace a leaf in a step, and in those inside.
pub(crate) fn replace_in_step(program: &mut FoldProgram, step: &mut Step, leaf: TermId, load: TermId) {
    let mut made = HashMap::from([(leaf, load)]);
    match step {
        Step::Store { value, .. } | Step::Scan { value, .. } => *value = replace(program, *value, &mut made),
        Step::Pass(pass) => {
            for item in pass.order.clone() {
                replace_item(program, item, &mut made);
            }
        }
        Step::Loop { body, .. } => body.iter_mut().for_each(|step| replace_in_step(program, step, leaf, load)),
    }
}

fn replace_item(program: &mut FoldProgram, item: Item, made: &mut HashMap<TermId, TermId>) {
    match item {
        Item::Anchor(id) => {
            let value = program.anchors[id.0 as usize].value;
            program.anchors[id.0 as usize].value = replace(program, value, made);
        }
        Item::State(id) => {
            let mut state = program.states[id.0 as usize].clone();
            state.body = replace(program, state.body, made);
            match &mut state.carry {
                Carry::Keep => {}
                Carry::Linear(row) => row.iter_mut().for_each(|(c, _)| *c = replace(program, *c, made)),
                Carry::Shift(c) | Carry::Scale(c) => *c = replace(program, *c, made),
            }
            program.states[id.0 as usize] = state;
        }
    }
}

fn replace(program: &mut FoldProgram, id: TermId, made: &mut HashMap<TermId, TermId>) -> TermId {
    if let Some(&done) = made.get(&id) {
        return done;
    }
    let term = program.terms.get(id).clone();
    let args: Vec<TermId> = term.args.iter().map(|a| replace(program, *a, made)).collect();
    let new = if args == term.args {
        id
    } else {
        let new = program.terms.add(Term { args, ..term });
        let interval = program.terms.interval(id);
        program.terms.set_interval(new, interval);
        new
    };
    made.insert(id, new);
    new
}
