//! What the machine can do at most, measured with the plainest of loops in the process whose kernels are compared with it.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// What bounds a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reading memory, in bytes a second.
    Read,
    /// Reading and writing, in bytes a second.
    ReadWrite,
    /// Fused multiply-adds of f32, in operations a second.
    Fma,
}

impl Kind {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::ReadWrite => "read+write",
            Kind::Fma => "fma",
        }
    }

    /// Measure it on that many threads, over that many bytes in all.
    pub fn measure(self, threads: usize, bytes: usize) -> f64 {
        let each = (bytes / threads.max(1)).clamp(1 << 16, 1 << 29) / 4;
        let rates: Vec<f64> = std::thread::scope(|scope| {
            let handles: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(move || self.alone(each))).collect();
            handles.into_iter().map(|h| h.join().unwrap_or(0.0)).collect()
        });
        rates.iter().sum()
    }

    /// The best of some repetitions on this thread.
    fn alone(self, elements: usize) -> f64 {
        match self {
            Kind::Read => {
                let data = vec![1.0f32; elements];
                best(|| {
                    black_box(total(black_box(&data)));
                    4.0 * elements as f64
                })
            }
            Kind::ReadWrite => {
                let data = vec![1.0f32; elements];
                let mut out = vec![0.0f32; elements];
                best(|| {
                    for (o, v) in out.iter_mut().zip(black_box(&data)) {
                        *o = 2.0 * v;
                    }
                    black_box(&mut out);
                    8.0 * elements as f64
                })
            }
            Kind::Fma => best(|| {
                const ROUNDS: usize = 100_000;
                black_box(multiply_add(black_box(ROUNDS)));
                (2 * ROUNDS * LANES * CHAINS) as f64
            }),
        }
    }
}

/// Repeat for some time; operations a second of the fastest run.
fn best(mut run: impl FnMut() -> f64) -> f64 {
    let (start, mut rate, mut runs) = (Instant::now(), 0.0f64, 0);
    while runs < 3 || start.elapsed() < Duration::from_millis(150) {
        let begin = Instant::now();
        let amount = run();
        rate = rate.max(amount / begin.elapsed().as_secs_f64().max(1e-9));
        runs += 1;
    }
    rate
}

/// A sum in enough chains to wait for memory only.
fn total(data: &[f32]) -> f32 {
    let mut sums = [0.0f32; 64];
    for chunk in data.chunks_exact(64) {
        for (sum, v) in sums.iter_mut().zip(chunk) {
            *sum += v;
        }
    }
    sums.iter().sum()
}

const LANES: usize = 8;
const CHAINS: usize = 12;

#[inline(always)]
fn chains(rounds: usize) -> f32 {
    let mut sums = [[0.5f32; LANES]; CHAINS];
    let (a, b) = (black_box(0.999), black_box(0.001));
    for _ in 0..rounds {
        for chain in &mut sums {
            for sum in chain.iter_mut() {
                *sum = sum.mul_add(a, b);
            }
        }
    }
    sums.iter().flatten().sum()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn chains_with_fma(rounds: usize) -> f32 {
    chains(rounds)
}

/// Independent chains of multiply-adds, with the instruction where there is one.
fn multiply_add(rounds: usize) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the CPU has what the function needs.
        return unsafe { chains_with_fma(rounds) };
    }
    chains(rounds)
}
