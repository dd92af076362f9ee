import * as z from "zod";
import { isRecord } from "@periodic-eval/contracts/options";

/**
 * Returns a block without the keys that are null, which have their defaults. Where the schema accepts null, it stays: null is the
 * default there, or is documented as another value. So does the null of a required key, for the error.
 */
export function withoutNulls(schema: z.ZodType, value: unknown): unknown {
  const inner = unwrapped(schema);
  if (!isRecord(value) || !(inner instanceof z.ZodObject || inner instanceof z.ZodRecord)) return value;
  const entries = Object.entries(value).flatMap(([key, one]) => {
    const field = inner instanceof z.ZodObject ? (inner.shape as Shape)[key] : (inner.valueType as z.ZodType);
    if (field === undefined) return [[key, one]];
    const isOptional = inner instanceof z.ZodRecord || field.safeParse(undefined).success;
    return one === null && isOptional && !field.safeParse(null).success
      ? []
      : [[key, withoutNulls(field, one)]];
  });
  return Object.fromEntries(entries);
}

/** Returns the overrides of a phase with the defaults in place of nulls: a phase sets back what the block sets. */
export function withDefaults(shape: Shape, overrides: unknown): unknown {
  if (!isRecord(overrides)) return overrides;
  return Object.fromEntries(
    Object.entries(overrides).map(([key, one]) => [
      key,
      one === null && shape[key] !== undefined ? (shape[key].parse(undefined) ?? null) : one,
    ]),
  );
}

type Shape = Readonly<Record<string, z.ZodType>>;

function unwrapped(schema: z.ZodType): z.ZodType {
  const { innerType } = schema.def as { readonly innerType?: z.ZodType };
  return innerType === undefined ? schema : unwrapped(innerType);
}
