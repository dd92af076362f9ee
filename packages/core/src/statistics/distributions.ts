/** Returns P(Z > x) of a standard normal variable, with a relative error of about 1e-13. */
export function normalTail(x: number): number {
  if (x < 0) return 1 - normalTail(-x);
  const density = Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI);
  if (density === 0) return 0;
  return x < 3 ? 0.5 - density * oddSeries(x) : density * millsRatio(x);
}

/** Σ x^(2k+1) / (2k+1)!! (Marsaglia 2004, "Evaluating the Normal Distribution", Journal of Statistical Software 11(4)). */
function oddSeries(x: number): number {
  let term = x;
  let sum = x;
  for (let odd = 3; term > sum * 1e-17; odd += 2) {
    term *= (x * x) / odd;
    sum += term;
  }
  return sum;
}

/** 1/(x + 1/(x + 2/(x + 3/…))), evaluated from the inside; 100 levels reach 1e-16 for x ≥ 3. */
function millsRatio(x: number): number {
  let inner = x;
  for (let level = 100; level > 0; level--) inner = x + level / inner;
  return 1 / inner;
}

/** Returns the z with P(Z ≤ z) = p, for 0 < p < 1. */
export const normalQuantile = (p: number): number => quantile(p, normalTail);

/**
 * Returns P(|T| > |t|) of Student's t with `df` > 0 degrees of freedom, which may be fractional, with a relative error of about
 * 1e-11.
 */
export function studentTwoSided(t: number, df: number): number {
  const square = t * t;
  if (square === Infinity) return 0;
  const near = square / (df + square);
  // The continued fraction converges fast on one side of the beta mean only; the other side uses its complement.
  const isFar = near > 1.5 / (df / 2 + 2.5);
  const front =
    Math.sqrt(near / Math.PI) * gammaRatio(df / 2) * Math.exp((-df / 2) * Math.log1p(square / df));
  return isFar
    ? (front * betaFraction(df / 2, 0.5, df / (df + square))) / (df / 2)
    : 1 - (front * betaFraction(0.5, df / 2, near)) / 0.5;
}

/** Returns the t with P(T ≤ t) = p, for 0 < p < 1. */
export const studentQuantile = (p: number, df: number): number =>
  quantile(p, (t) => studentTwoSided(t, df) / 2);

function quantile(p: number, tail: (x: number) => number): number {
  if (p === 0.5) return 0;
  return p > 0.5 ? tailQuantile(1 - p, tail) : -tailQuantile(p, tail);
}

/**
 * Returns Γ(a + 1/2) / Γ(a), by its asymptotic series for a ≥ 30 and by recurrence below. Computing both gamma functions would
 * lose digits to cancellation.
 */
function gammaRatio(a: number): number {
  let x = a;
  let factor = 1;
  for (; x < 30; x++) factor *= x / (x + 0.5);
  const series = [1, -1 / 8, 1 / 128, 5 / 1024, -21 / 32768, -399 / 262144, 869 / 4194304];
  return factor * Math.sqrt(x) * series.reduceRight((sum, coefficient) => sum / x + coefficient, 0);
}

/** Returns the x with P(X ≤ x) = p of a beta variable with parameters a, b > 0, for 0 < p < 1. */
export const betaQuantile = (p: number, a: number, b: number): number =>
  bisect((x) => betaShare(a, b, x, 1 - x) < p, [0, 1]);

/** Returns P(X ≤ x) of a beta variable, the regularized incomplete beta function. `y` is 1 − x. */
const betaShare = (a: number, b: number, x: number, y: number): number =>
  x > (a + 1) / (a + b + 2) ? 1 - betaShareBelow(b, a, y, x) : betaShareBelow(a, b, x, y);

/** `betaShare` for x below the mean, where the continued fraction converges fast. */
function betaShareBelow(a: number, b: number, x: number, y: number): number {
  const n = a + b;
  // x^a · y^b / B(a, b) by Stirling's formula: the logarithms of the gamma functions would cancel.
  const power = a * Math.log((x * n) / a) + b * Math.log((y * n) / b);
  const correction = stirlingError(n) - stirlingError(a) - stirlingError(b);
  const front = Math.sqrt((a * b) / (2 * Math.PI * n)) * Math.exp(power + correction);
  return (front * betaFraction(a, b, x)) / a;
}

/** Returns ln Γ(x) − ((x − 1/2) ln x − x + ln(2π)/2), by its asymptotic series for x ≥ 15 and by recurrence below. */
function stirlingError(x: number): number {
  let error = 0;
  // error(x) − error(x + 1) = (x + 1/2) ln(1 + 1/x) − 1
  for (; x < 15; x++) error += (x + 0.5) * Math.log1p(1 / x) - 1;
  const series = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188];
  return error + series.reduceRight((sum, coefficient) => sum / (x * x) + coefficient, 0) / x;
}

/** Evaluates the continued fraction of the incomplete beta function (DLMF 8.17.22) by Lentz's method. */
function betaFraction(a: number, b: number, x: number): number {
  let c = 1;
  let d = 1 / (1 - ((a + b) * x) / (a + 1));
  let fraction = d;
  for (let m = 1; m < 10_000; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    let change = 1;
    for (const numerator of [even, odd]) {
      d = 1 / (1 + numerator * d);
      c = 1 + numerator / c;
      change = c * d;
      fraction *= change;
    }
    if (Math.abs(change - 1) < 1e-16) break;
  }
  return fraction;
}

/** Returns the x > 0 with `tail(x) = p`, for a falling tail with `tail(0) = 1/2`. */
function tailQuantile(p: number, tail: (x: number) => number): number {
  let high = 1;
  while (tail(high) > p) high *= 2;
  return bisect((x) => tail(x) > p, [0, high]);
}

/** Returns the end of the part of [low, high] in which `isBelow` holds, by bisection to adjacent doubles. */
function bisect(isBelow: (x: number) => boolean, [low, high]: readonly [number, number]): number {
  for (;;) {
    const middle = (low + high) / 2;
    if (middle <= low || middle >= high) return middle;
    if (isBelow(middle)) low = middle;
    else high = middle;
  }
}

/** Returns the probability of at least `hits` of `n` independent trials, each with this probability above 0 and below 1. */
export const binomialTail = (hits: number, n: number, probability: number): number =>
  hits === 0 ? 1 : betaShare(hits, n - hits + 1, probability, 1 - probability);
