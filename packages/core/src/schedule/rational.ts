/** A number ≥ 0 as numerator ÷ 10^scale, exactly as its shortest decimal reads: 0.1 is 1/10, not 3602879701896397/2^55. */
export interface Decimal {
  readonly numerator: bigint;
  readonly scale: number;
}

/** Returns the shortest decimal of a finite number ≥ 0. */
export function decimalOf(value: number): Decimal {
  const [digits = "0", exponent = "0"] = String(value).split("e");
  const [whole = "0", fraction = ""] = digits.split(".");
  const scale = fraction.length - Number(exponent);
  const numerator = BigInt(whole + fraction);
  return scale >= 0 ? { numerator, scale } : { numerator: numerator * 10n ** BigInt(-scale), scale: 0 };
}

/** Returns `count · step`, rounded once to the nearest number. */
export const multipleOf = (step: Decimal, count: number): number =>
  Number(`${step.numerator * BigInt(count)}e-${step.scale}`);

export const powerOfTen = (scale: number): bigint => 10n ** BigInt(scale);

/**
 * Returns `floor(a · b / (c · d))`, exactly. Uses doubles if both products are safe integers, which is twenty times faster than
 * BigInt: this runs after every training step.
 */
export function floorOfProducts(a: number, b: bigint, c: number, d: bigint): number {
  const top = a * Number(b);
  const bottom = c * Number(d);
  if (Number.isSafeInteger(top) && Number.isSafeInteger(bottom)) return (top - (top % bottom)) / bottom;
  return floorDiv(BigInt(a) * b, BigInt(c) * d);
}

export const floorDiv = (numerator: bigint, denominator: bigint): number => Number(numerator / denominator);

/** Rounds up; for numerators ≥ 0. */
export const ceilDiv = (numerator: bigint, denominator: bigint): number =>
  Number((numerator + denominator - 1n) / denominator);
