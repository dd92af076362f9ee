/** Returns NaN and infinities, which JSON lacks, as the strings that protobuf, Python and W&B use for them. */
export const jsonNumber = (value: number): number | string =>
  Number.isFinite(value) ? value : String(value);

/** Applies `jsonNumber` to every value. */
export function jsonNumbers(
  values: Readonly<Record<string, number>>,
): Readonly<Record<string, number | string>> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, jsonNumber(value)]));
}
