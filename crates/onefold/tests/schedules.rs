//! Schedules given by the caller: whatever is in range gives the same results, whatever is not is an error that names the number.

use onefold::{Array, Backend, Compiler, Schedule};

/// Natives and the loop IR interpreter, which checks every access.
fn backends() -> impl Iterator<Item = Backend> {
    Backend::ALL.iter().copied().filter(|b| *b != Backend::Interp)
}

const TEXT: &str = "func @f(%q: f32[i, e], %k: f32[j, e], %v: f32[j, d]) -> (f32[i, d], f32[i]) {
  %s = sum[e](%q * %k)
  %o = sum[j](softmax[j](%s) * %v)
  %n = sum[j](sqrt(abs(%s)))
  return %o, %n
}
";

fn schedule() -> Schedule {
    Schedule { tiles: vec![64, 64], accumulators: 4, unroll: 4, block: 8, side: 8, compensate: true }
}

fn inputs(keys: usize) -> Vec<Array> {
    let numbers = |count: usize, step: f32| (0..count).map(|n| (n as f32 * step).sin()).collect::<Vec<_>>();
    [(vec![3, 20], 0.37), (vec![keys, 20], 0.51), (vec![keys, 7], 0.23)]
        .map(|(shape, step)| Array::from_vec(&shape, numbers(shape.iter().product(), step)).unwrap())
        .into()
}

fn results(backend: Backend, schedule: Schedule, keys: usize) -> Result<Vec<Vec<f64>>, String> {
    let compiler = Compiler::new().backend(backend).schedule(schedule).threads(1);
    let kernel = compiler.compile_text("f.fold", TEXT, None).map_err(|e| e.to_string())?;
    let inputs = inputs(keys);
    let views: Vec<_> = inputs.iter().map(Array::view).collect();
    Ok(kernel.run(&views).map_err(|e| e.to_string())?.iter().map(Array::to_f64).collect())
}

#[test]
fn numbers_out_of_range_are_named() {
    let with = |change: fn(&mut Schedule)| {
        let mut schedule = schedule();
        change(&mut schedule);
        schedule
    };
    let bad = [
        (with(|s| s.tiles = vec![100_000_000]), "`tiles[0]` is 100000000, but must be from 1 to 16384"),
        (with(|s| s.tiles[1] = u32::MAX), "`tiles[1]` is 4294967295"),
        (with(|s| s.tiles[0] = 0), "`tiles[0]` is 0"),
        (with(|s| s.accumulators = 0), "`accumulators` is 0, but must be from 1 to 32"),
        (with(|s| s.unroll = 0), "`unroll` is 0"),
        (with(|s| s.unroll = 33), "`unroll` is 33"),
        (with(|s| s.block = u32::MAX), "`block` is 4294967295"),
        (with(|s| s.side = 100_000), "`side` is 100000"),
        (with(|s| s.side = 0), "`side` is 0"),
    ];
    for backend in backends() {
        for (schedule, message) in &bad {
            let error = results(backend, schedule.clone(), 10).expect_err(message);
            assert!(error.contains(message), "{backend}: {error}, not {message}");
        }
    }
}

#[test]
fn numbers_in_range_give_the_same_results() {
    for backend in backends() {
        for keys in [1, 5, 70, 300] {
            let want = results(backend, schedule(), keys).unwrap();
            for n in [1, 2, 3, 5, 7, 16, 32] {
                for tile in [1, 3, 4, 16, 17, 100, 16384] {
                    let tiles = vec![tile; 4];
                    let all = Schedule { tiles, accumulators: n, unroll: n, block: n, side: n, compensate: n % 2 == 0 };
                    let got = results(backend, all.clone(), keys).unwrap();
                    for (want, got) in want.iter().flatten().zip(got.iter().flatten()) {
                        assert!(
                            (want - got).abs() <= 1e-5 * want.abs().max(1.0),
                            "{backend}, {keys} keys, {all}: {got}, not {want}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_frame_beyond_the_stack_is_refused() {
    // Values that a maximum and a later sum need are kept for a tile each.
    let lines: String = (0..16).map(|n| format!("  %e{n} = exp(%x * {n}.5) - %x\n  %m{n} = max[j](%e{n})\n")).collect();
    let sums = (0..16).map(|n| format!("sum[j](exp(%e{n} - %m{n}))")).collect::<Vec<_>>().join(" + ");
    let text = format!("func @f(%x: f32[b, j]) -> f32[b] {{\n{lines}  return {sums}\n}}\n");
    let compile = |tile: u32| {
        let schedule = Schedule { tiles: vec![tile; 8], ..schedule() };
        Compiler::new().backend(Backend::Cranelift).schedule(schedule).compile_text("f.fold", &text, None).map(|_| ())
    };
    compile(64).unwrap();
    let error = compile(16384).expect_err("a frame of megabytes").to_string();
    // A schedule that is chosen has tiles as short as it takes.
    Compiler::new().backend(Backend::Cranelift).compile_text("f.fold", &text, None).unwrap();
    assert!(error.contains("stack frame") && error.contains("`tiles`"), "{error}");
}
