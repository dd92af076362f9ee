import * as z from "zod";
import type { ValuePath } from "../errors.ts";
import { configError } from "./config-error.ts";
import { describeZodIssue } from "./describe-zod-issue.ts";
import { nearest, deeperOption, unknownOption } from "./nearest.ts";
import { isRecord, valueAt } from "./values.ts";

/** A longer value would hide the sentence. */
const shortest = 80;

/** Returns the fix for a value where an object belongs, as errors in YAML and in code make it; null for any other value. */
function fixForObject(value: unknown): string | null {
  if (value === null) return "Indent its options by two spaces below it, or write {}.";
  if (typeof value === "string")
    return /^[\w.]+:\S/.test(value)
      ? "Write a space after the colon."
      : "Write its keys and values instead of a string.";
  if (!Array.isArray(value) || value.length === 0) return null;
  if (value.every((item) => typeof item === "string")) {
    const written = `{ ${value.map((name) => `${name}: {}`).join(", ")} }`;
    return `Write an object instead of a list${written.length > shortest ? "." : `: ${written}.`}`;
  }
  return value.every(isRecord)
    ? "Write an object instead of a list: without the dashes in YAML, without the brackets in code."
    : "Write an object instead of a list.";
}

/** Returns the fix for a value where a list belongs; null for other values than a string or an object. */
const fixForList = (value: unknown): string | null =>
  typeof value === "string" && value.length < shortest
    ? `Write a list: [${JSON.stringify(value)}].`
    : isRecord(value)
      ? "Write a list: in YAML with a dash before each entry, in code in [ ]."
      : null;

/**
 * Checks options against a schema and returns them with the schema's defaults. Every public function that takes options calls
 * this first.
 *
 * A schema's messages are noun phrases that continue "expected": `z.number("a learning rate above 0")`. If a reader needs more
 * than "Correct the option.", it has a fix: `.meta({ fix: "Count optimizer steps of all earlier phases." })`. Use
 * `z.strictObject`, so that a misspelt key is an error that names the nearest known one, and `z.custom` for functions, models
 * and other instances, which pass through by reference.
 *
 * @param where Names the options in the error: `session options`, `SFTTrainer config`.
 * @param base Where `value` is within those options.
 * @throws PeriodicEvalError `config` for the first wrong option, with its `path`.
 */
export function parseOptions<S extends z.ZodType>(
  where: string,
  schema: S,
  value: unknown,
  base: ValuePath = [],
): z.output<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const { path, value: wrong, expected } = describeZodIssue(parsed.error, value);
  // A misspelt key causes two issues, a missing key and an unknown one. The unknown key explains both.
  refuseUnknownKey(where, schema, wrong === undefined ? path.slice(0, -1) : path, value, base);
  const known = keysOf(schemaAt(schema, path));
  const options = known === null ? "" : ` (${known.join(", ")})`;
  throw configError({
    where,
    path: [...base, ...path],
    value: wrong,
    expected: `${expected}${options}`,
    fix: fixAt(schema, path, wrong) ?? "Correct the option.",
  });
}

/** Returns the fix for a wrong value at `path`; null if nothing more than its expectation is known. */
export const fixAt = (schema: z.ZodType, path: ValuePath, value: unknown): string | null =>
  fixOfForm(schema, path, value) ?? fixOf(schema, path) ?? suggestion(schemaAt(schema, path), value);

/** Returns the fix for a value of another form than an object, a list or true and false; null for other values. */
function fixOfForm(schema: z.ZodType, path: ValuePath, value: unknown): string | null {
  const inner = unwrapped(schemaAt(schema, path));
  const key = String(path.at(-1) ?? "");
  if (inner instanceof z.ZodBoolean && isRecord(value))
    return besideKey(key, Object.keys(value), keysOf(schemaAt(schema, path.slice(0, -1))) ?? []);
  if (inner instanceof z.ZodObject || inner instanceof z.ZodRecord) return fixForObject(value);
  return inner instanceof z.ZodArray ? fixForList(value) : null;
}

/** Returns the fix for `leakage: { source }`, whose keys belong next to `leakage: true`, as `leakage_source`. */
function besideKey(key: string, inner: readonly string[], known: readonly string[]): string {
  const otherKeys = known.filter((name) => name !== key);
  const meantBy = (innerKey: string) =>
    otherKeys.find((other) => other === `${key}_${innerKey}` || other.startsWith(`${innerKey}_`)) ??
    nearest(`${key}_${innerKey}`, otherKeys);
  const meant = inner.flatMap((innerKey) => meantBy(innerKey) ?? []);
  const beside = [...new Set(meant)].map((name) => `\`${name}\``).join(", ");
  return `Write \`${key}: true\`${beside === "" ? "." : ` and next to it ${beside}.`}`;
}

function refuseUnknownKey(
  where: string,
  schema: z.ZodType,
  path: ValuePath,
  value: unknown,
  base: ValuePath,
): void {
  const options = valueAt(value, path);
  const known = keysOf(schemaAt(schema, path));
  if (!isRecord(options) || known === null) return;
  const key = Object.keys(options).find((name) => !known.includes(name));
  if (key === undefined) return;
  const homes = known.filter((field) => keysOf(schemaAt(schema, [...path, field]))?.includes(key));
  const described =
    homes.length > 0 ? deeperOption(key, options[key], known, homes) : unknownOption(key, known);
  throw configError({ where, path: [...base, ...path, key], ...described });
}

/** Returns the fix for a misspelt choice or a number in quotes; null for other values. */
function suggestion(schema: z.ZodType | null, value: unknown): string | null {
  if (schema === null || typeof value !== "string" || value.trim() === "") return null;
  const inner = unwrapped(schema);
  const close = nearest(value, choicesOf(inner));
  if (close !== null) return `Did you mean "${close}"?`;
  const percent = /^\s*([\d.]+)\s*%\s*$/.exec(value)?.[1];
  if (percent !== undefined) {
    const meant = [Number(percent), Number(percent) / 100].find((number) => schema.safeParse(number).success);
    return meant === undefined ? null : `Write ${meant}.`;
  }
  return schema.safeParse(Number(value)).success ? "Remove the quotes." : null;
}

/** Returns the strings that a schema lists. */
function choicesOf(schema: z.ZodType | null): readonly string[] {
  const inner = unwrapped(schema);
  if (inner instanceof z.ZodUnion) return inner.options.flatMap((form) => choicesOf(form as z.ZodType));
  return inner instanceof z.ZodEnum ? inner.options.filter((choice) => typeof choice === "string") : [];
}

/** Returns the keys of the object that a schema takes; null for any other schema. */
export function keysOf(schema: z.ZodType | null): readonly string[] | null {
  const object = objectOf(unwrapped(schema));
  return object && Object.keys(object.shape);
}

/** Returns an object schema, or the only one of a union, as in true or an object; null for any other schema. */
function objectOf(schema: z.ZodType | null): z.ZodObject | null {
  const options =
    schema instanceof z.ZodUnion ? schema.options.map((form) => unwrapped(form as z.ZodType)) : [schema];
  const objects = options.filter((form) => form instanceof z.ZodObject);
  return objects.length === 1 ? objects[0]! : null;
}

/** Returns the `fix` of the innermost schema on the way to `path` that has one. */
function fixOf(schema: z.ZodType, path: ValuePath): string | null {
  for (let depth = path.length; depth >= 0; depth -= 1) {
    const fix = fixIn(schemaAt(schema, path.slice(0, depth)));
    if (fix !== null) return fix;
  }
  return null;
}

/** Returns the `fix` of a schema, whether `.meta()` was called before `.optional()` or after it. */
function fixIn(schema: z.ZodType | null): string | null {
  for (let at = schema; at !== null; at = wrappedBy(at)) {
    const fix = at.meta()?.["fix"];
    if (typeof fix === "string") return fix;
  }
  return null;
}

/** Returns the schema of the value at `path`; null if it depends on the value (a union of several objects) or is unknown. */
function schemaAt(schema: z.ZodType, path: ValuePath): z.ZodType | null {
  return path.reduce<z.ZodType | null>((at, key) => {
    const outer = unwrapped(at);
    const list = outer instanceof z.ZodUnion && typeof key === "number";
    // Of several forms, only a list has an entry at an index.
    const inner = list ? (outer.options.find((form) => form instanceof z.ZodArray) ?? null) : outer;
    const object = objectOf(inner);
    if (object !== null) return (object.shape as Readonly<Record<string, z.ZodType>>)[key] ?? null;
    if (inner instanceof z.ZodArray) return (inner.meta()?.["element"] ?? inner.element) as z.ZodType;
    if (inner instanceof z.ZodRecord) return inner.valueType as z.ZodType;
    return null;
  }, schema);
}

function unwrapped(schema: z.ZodType | null): z.ZodType | null {
  let at = schema;
  for (let inner = at && wrappedBy(at); inner !== null; inner = wrappedBy(inner)) at = inner;
  return at;
}

/** Returns the schema inside `.optional()`, `.nullable()`, `.default()` or `.pipe()`; null for any other schema. */
function wrappedBy(schema: z.ZodType): z.ZodType | null {
  if (schema instanceof z.ZodPipe) return schema.in as z.ZodType;
  const { innerType } = schema.def as { readonly innerType?: z.ZodType };
  return innerType ?? null;
}
