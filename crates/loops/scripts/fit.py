#!/usr/bin/env python3
"""Coefficients of the polynomials in src/math/coefficients.rs: near-minimax Chebyshev fits. Needs mpmath; prints Rust."""
import mpmath as mp

mp.mp.dps = 60


def fit(name, doc, f, interval, terms, kind):
    """Chebyshev interpolation with that many terms, highest power first."""
    coefficients, error = mp.chebyfit(f, interval, terms, error=True)
    print(f"/// {doc} Largest error {mp.nstr(error, 2)}.")
    print(f"pub const {name}: &[f64] = &[")
    for c in coefficients:
        digits = mp.nstr(c, 9, min_fixed=0, max_fixed=0) if kind == "f32" else repr(float(c))
        print(f"    {digits},")
    print("];\n")


half_ln2 = mp.log(2) / 2 * mp.mpf("1.001")
root = mp.sqrt(2)
exp_tail = lambda r: (mp.exp(r) - 1 - r) / r**2 if abs(r) > 1e-15 else mp.mpf(1) / 2 + r / 6
log_tail = lambda f: (mp.log(1 + f) - f + f * f / 2) / f**3 if abs(f) > 1e-15 else mp.mpf(1) / 3 - f / 4
atanh_tail = lambda z: (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z if z != 0 else mp.mpf(2) / 3
tanh_tail = lambda u: (mp.tanh(mp.sqrt(u)) / mp.sqrt(u) - 1) / u if u != 0 else -mp.mpf(1) / 3
erf_ratio = lambda u: mp.erf(mp.sqrt(u)) / mp.sqrt(u) if u != 0 else 2 / mp.sqrt(mp.pi)


def erfcx_of(t):
    """exp(x^2) erfc(x) at t = 1 / (1 + x/2)."""
    x = 2 * (1 / t - 1)
    return mp.exp(x * x) * mp.erfc(x)


print("//! Made by `scripts/fit.py`; highest power first.\n\n#![allow(clippy::approx_constant)] // a fit may come close to a constant without being it\n")
fit("EXP_F32", "`(exp(r) - 1 - r) / r^2`, |r| <= ln 2 / 2.", exp_tail, [-half_ln2, half_ln2], 5, "f32")
fit("EXP_F64", "`(exp(r) - 1 - r) / r^2`, |r| <= ln 2 / 2.", exp_tail, [-half_ln2, half_ln2], 10, "f64")
fit("LOG_F32", "`(log(1 + f) - f + f^2/2) / f^3`, 1 + f between sqrt(1/2) and sqrt(2).", log_tail, [1 / root - 1, root - 1], 9, "f32")
fit("LOG_F64", "`(2 atanh(s)/s - 2) / z`, z = s^2, s = f / (2 + f).", atanh_tail, [0, mp.mpf("0.0296")], 8, "f64")
fit("TANH_F32", "`(tanh(x)/x - 1) / u`, u = x^2, |x| <= 5/8.", tanh_tail, [0, mp.mpf("0.4")], 5, "f32")
fit("TANH_F64", "`(tanh(x)/x - 1) / u`, u = x^2, |x| <= 5/8.", tanh_tail, [0, mp.mpf("0.4")], 14, "f64")
fit("ERF_F32", "`erf(x) / x`, in x^2, |x| <= 1.", erf_ratio, [0, mp.mpf("1.01")], 7, "f32")
fit("ERF_F64", "`erf(x) / x`, in x^2, |x| <= 1.", erf_ratio, [0, mp.mpf("1.01")], 15, "f64")
fit("ERFCX_F32", "`exp(x^2) erfc(x)` in t = 1 / (1 + x/2), x between 1 and 4.", erfcx_of, [mp.mpf(1) / 3, mp.mpf(2) / 3], 7, "f32")
fit("ERFCX_F64", "`exp(x^2) erfc(x)` in t = 1 / (1 + x/2), x between 1 and 6.", erfcx_of, [mp.mpf(1) / 4, mp.mpf(2) / 3], 18, "f64")
