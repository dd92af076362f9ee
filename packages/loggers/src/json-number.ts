/** JSON has no NaN and no infinities: these become the words by which protobuf, Python and W&B know them. */
export const jsonNumber = (value: number): number | string =>
  Number.isFinite(value) ? value : String(value);

export function jsonNumbers(
  values: Readonly<Record<string, number>>,
): Readonly<Record<string, number | string>> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, jsonNumber(value)]));
}
