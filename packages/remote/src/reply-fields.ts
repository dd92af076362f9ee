/** What stands at a path in a value of unknown shape; undefined where nothing does. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>(
    (inner, name) =>
      typeof inner === "object" && inner !== null && Object.hasOwn(inner, name)
        ? (inner as Readonly<Record<string | number, unknown>>)[name]
        : undefined,
    value,
  );
}

export const isText = (value: unknown): value is string => typeof value === "string";

/** Null where it is none. */
export const listOf = (value: unknown): readonly unknown[] | null => (Array.isArray(value) ? value : null);

/** Tokens as a server counts them; left out where it does not, or wrongly. */
export function usageOf(
  inputTokens: unknown,
  outputTokens: unknown,
): { readonly usage?: { readonly inputTokens: number; readonly outputTokens: number } } {
  const isNumber = (value: unknown): value is number => Number.isFinite(value) && (value as number) >= 0;
  return isNumber(inputTokens) && isNumber(outputTokens) ? { usage: { inputTokens, outputTokens } } : {};
}

/** The fields with those that go before them; null takes one out. */
export function bodyOf(
  fields: Readonly<Record<string, unknown>>,
  first: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries({ ...fields, ...first }).filter(([, value]) => value !== undefined && value !== null),
  );
}
