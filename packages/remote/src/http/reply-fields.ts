/** Returns the value at a path within a value of unknown shape; undefined if the path does not exist. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>(
    (inner, name) =>
      typeof inner === "object" && inner !== null && Object.hasOwn(inner, name)
        ? (inner as Readonly<Record<string | number, unknown>>)[name]
        : undefined,
    value,
  );
}

export const isString = (value: unknown): value is string => typeof value === "string";

/** Returns an array unchanged; null for any other value. */
export const arrayOrNull = (value: unknown): readonly unknown[] | null =>
  Array.isArray(value) ? value : null;

/** Returns `{ usage }` from a server's token counts; an empty object if a count is missing or invalid. */
export function usageOf(
  inputTokens: unknown,
  outputTokens: unknown,
): { readonly usage?: { readonly inputTokens: number; readonly outputTokens: number } } {
  const isNumber = (value: unknown): value is number => Number.isFinite(value) && (value as number) >= 0;
  return isNumber(inputTokens) && isNumber(outputTokens) ? { usage: { inputTokens, outputTokens } } : {};
}
