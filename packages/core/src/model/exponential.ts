/** 2ᵏ at index k + 1074. */
const powers = Float64Array.from({ length: 1075 }, (_, index) => 2 ** (index - 1074));

/**
 * Returns exp(x) for x ≤ 0. From −708 on the bits are those of `Math.exp` of V8: the algorithm of fdlibm (Sun Microsystems 1993),
 * without the cost of a call. Loops over the vocabulary need it for every drawn token. Below −708 it returns 0, because the threads of
 * native kernels replace denormal numbers by zero, which begin at −708.4.
 */
export function exponential(x: number): number {
  // Other numbers are rare, and have branches of their own.
  if (!(x < -1.0397 && x > -700)) return x < -708 ? 0 : Math.exp(x);
  const k = Math.trunc(1.4426950408889634 * x - 0.5);
  const high = x - k * 0.6931471803691238;
  const low = k * 1.9082149292705877e-10;
  const r = high - low;
  const t = r * r;
  const c =
    r -
    t *
      (0.16666666666666602 +
        t *
          (-0.0027777777777015593 +
            t * (0.00006613756321437934 + t * (-0.0000016533902205465252 + t * 4.1381367970572385e-8))));
  return (1 - (low - (r * c) / (2 - c) - high)) * powers[k + 1074]!;
}
