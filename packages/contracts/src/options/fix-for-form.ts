import { isRecord } from "./is-record.ts";

/** A longer value would hide the sentence. */
const shortest = 80;

/** Returns the fix for a value where an object belongs, as errors in YAML and in code make it; null for any other value. */
export function fixForObject(value: unknown): string | null {
  if (value === null) return "Indent its options by two spaces below it, or write {}.";
  if (typeof value === "string")
    return /^[\w.]+:\S/.test(value)
      ? "Write a space after the colon."
      : "Write its keys and values instead of a string.";
  if (!Array.isArray(value) || value.length === 0) return null;
  if (value.every((one) => typeof one === "string")) {
    const written = `{ ${value.map((name) => `${name}: {}`).join(", ")} }`;
    return `Write an object instead of a list${written.length > shortest ? "." : `: ${written}.`}`;
  }
  return value.every(isRecord)
    ? "Write an object instead of a list: without the dashes in YAML, without the brackets in code."
    : "Write an object instead of a list.";
}

/** Returns the fix for a value where a list belongs; null for any value but an object. */
export const fixForList = (value: unknown): string | null =>
  isRecord(value) ? "Write a list: in YAML with a dash before each entry, in code in [ ]." : null;
