//! The function that is called from outside: it unpacks its arguments and calls the body.
//!
//! Two functions, because only parameters can say that buffers do not overlap.

use crate::emit::{Emit, Value};
use crate::level::Level;
use crate::translate::{Body, TranslateError};
use crate::types;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{BasicMetadataValueEnum, FunctionValue, IntValue, PointerValue, ValueKind};
use onefold_loops::{BufferKind, Count, Kernel};

/// Add the entry: `i32 symbol(i64 *sizes, void **buffers, void *scratch, i64 begin, i64 end)`.
pub fn entry<'c>(
    kernel: &Kernel,
    body: &Body<'c>,
    context: &'c Context,
    module: &Module<'c>,
    level: Level,
    symbol: &str,
) -> Result<(), TranslateError> {
    let (long, pointer) = (context.i64_type(), context.ptr_type(Default::default()));
    let params = [pointer.into(), pointer.into(), pointer.into(), long.into(), long.into()];
    let function = module.add_function(symbol, context.i32_type().fn_type(&params, false), None);
    let e = Emit { context, module, b: context.create_builder(), level };
    e.b.position_at_end(context.append_basic_block(function, ""));
    let given: Vec<Value<'c>> = function.get_param_iter().collect();
    let [Value::PointerValue(sizes), Value::PointerValue(buffers), Value::PointerValue(scratch), begin, end] =
        given[..]
    else {
        return Err(TranslateError::Operation("an entry".to_owned()));
    };
    let mut passed: Vec<BasicMetadataValueEnum<'c>> = vec![];
    let mut values = vec![];
    for at in 0..kernel.sizes.len() {
        let size = e.b.build_load(long, e.element(long, sizes, e.i64(at as i64), true)?, "")?;
        if let Value::IntValue(size) = size {
            values.push(size);
        }
        passed.push(size.into());
    }
    if kernel.split.is_some() {
        passed.extend([begin, end].map(BasicMetadataValueEnum::from));
    }
    let outside = || kernel.buffers.iter().filter(|b| b.kind != BufferKind::Stack);
    let mut at = 0;
    let mut scratch = scratch;
    for buffer in outside() {
        if buffer.kind == BufferKind::Scratch {
            passed.push(scratch.into());
            let element = types::memory(context, buffer.elem);
            scratch = rounded_up(&e, e.element(element, scratch, count(&e, &buffer.len, &values)?, true)?)?;
        } else {
            passed.push(e.b.build_load(pointer, e.element(pointer, buffers, e.i64(at), true)?, "")?.into());
            at += 1;
        }
    }
    let call = e.b.build_call(body.function, &passed, "")?;
    let ValueKind::Basic(status) = call.try_as_basic_value() else {
        return Err(TranslateError::Operation("a status".to_owned()));
    };
    if body.streams && level != Level::Neon {
        e.call("llvm.x86.sse.sfence", &[], &[])?;
    }
    e.b.build_return(Some(&status))?;
    for attribute in function_attributes(context, level) {
        function.add_attribute(AttributeLoc::Function, attribute);
        body.function.add_attribute(AttributeLoc::Function, attribute);
    }
    let first = passed.len() - outside().count();
    for (at, buffer) in outside().enumerate() {
        buffer_attributes(context, body.function, (first + at) as u32, buffer.kind);
    }
    Ok(())
}

/// Scratch is carved in steps of a cache line, as [`onefold_loops::scratch_bytes`] counts it.
fn rounded_up<'c>(e: &Emit<'_, 'c>, end: PointerValue<'c>) -> Result<PointerValue<'c>, TranslateError> {
    let long = e.context.i64_type();
    let address = e.b.build_ptr_to_int(end, long, "")?;
    let negative = e.b.build_int_neg(address, "")?;
    let missing = e.b.build_and(negative, e.i64(63), "")?;
    e.element(e.context.i8_type(), end, missing, true)
}

fn count<'c>(e: &Emit<'_, 'c>, len: &Count, sizes: &[IntValue<'c>]) -> Result<IntValue<'c>, TranslateError> {
    let both = |x: &Count, y: &Count| Ok::<_, TranslateError>((count(e, x, sizes)?, count(e, y, sizes)?));
    Ok(match len {
        Count::Const(n) => e.i64(*n as i64),
        Count::Size(i) => *sizes.get(*i).ok_or(TranslateError::Size(*i))?,
        Count::Mul(x, y) => both(x, y).and_then(|(x, y)| Ok(e.b.build_int_mul(x, y, "")?))?,
        Count::Add(x, y) => both(x, y).and_then(|(x, y)| Ok(e.b.build_int_add(x, y, "")?))?,
        Count::Sub(x, y) => both(x, y).and_then(|(x, y)| Ok(e.b.build_int_sub(x, y, "")?))?,
        // The caller has evaluated the same counts: divisors are not zero.
        Count::DivExact(x, y) => both(x, y).and_then(|(x, y)| Ok(e.b.build_int_signed_div(x, y, "")?))?,
        Count::DivCeil(x, y) => {
            let (x, y) = both(x, y)?;
            let less = e.b.build_int_sub(y, e.i64(1), "")?;
            let sum = e.b.build_int_add(x, less, "")?;
            e.b.build_int_signed_div(sum, y, "")?
        }
    })
}

fn named(context: &Context, name: &str, value: u64) -> Attribute {
    context.create_enum_attribute(Attribute::get_named_enum_kind_id(name), value)
}

/// What every function says of its CPU: code is generated by these, whatever the machine description says.
fn function_attributes(context: &Context, level: Level) -> Vec<Attribute> {
    let mut all = vec![
        context.create_string_attribute("target-cpu", level.cpu()),
        context.create_string_attribute("target-features", level.features()),
        // Pages of large frames are touched one by one, so that no guard is leapt over.
        context.create_string_attribute("probe-stack", "inline-asm"),
        named(context, "nounwind", 0),
        // One copy of the body, with what its parameters say.
        named(context, "noinline", 0),
    ];
    if level == Level::Avx512 {
        all.push(context.create_string_attribute("prefer-vector-width", "512"));
    }
    all
}

fn buffer_attributes(context: &Context, body: FunctionValue<'_>, at: u32, kind: BufferKind) {
    let mut attributes = vec![named(context, "noalias", 0)];
    match kind {
        BufferKind::Input => attributes.push(named(context, "readonly", 0)),
        BufferKind::Scratch => attributes.push(named(context, "align", 64)),
        _ => {}
    }
    for attribute in attributes {
        body.add_attribute(AttributeLoc::Param(at), attribute);
    }
}
