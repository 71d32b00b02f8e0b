//! Loops in parallel whose results do not depend on the number of threads.

use std::thread;

/// Runs `body` over contiguous shares of `0..extent`, one for each thread, and returns what it gave, in the order of the shares.
///
/// Shares are as equal as can be and empty ones are left out. If iterations are independent, the outcome is the same for
/// every number of threads; a result that must be one of several (an error) is to be taken from the first share that has one.
/// The calling thread takes the first share. If the system refuses a thread, its share is run by the caller.
pub fn parallel_for<R, F>(threads: usize, extent: u64, body: F) -> Vec<R>
where
    R: Send,
    F: Fn(u64, u64) -> R + Sync,
{
    let count = (threads.max(1) as u64).min(extent);
    let bound = |k: u64| (u128::from(extent) * u128::from(k) / u128::from(count.max(1))) as u64;
    if count <= 1 {
        return (0..count).map(|_| body(0, extent)).collect();
    }
    let body = &body;
    thread::scope(|scope| {
        let spawned: Vec<_> = (1..count)
            .map(|k| {
                let (begin, end) = (bound(k), bound(k + 1));
                thread::Builder::new().spawn_scoped(scope, move || body(begin, end)).map_err(|_| (begin, end))
            })
            .collect();
        let mut results = vec![body(0, bound(1))];
        for share in spawned {
            results.push(match share {
                Ok(handle) => handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                Err((begin, end)) => body(begin, end),
            });
        }
        results
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_everything_once() {
        for threads in 0..9 {
            for extent in [0, 1, 2, 5, 8, 1000] {
                let shares = parallel_for(threads, extent, |begin, end| (begin, end));
                let mut next = 0;
                for (begin, end) in shares {
                    assert!(begin == next && end > begin);
                    next = end;
                }
                assert_eq!(next, extent);
            }
        }
    }
}
