import { isMarkedNumber, withoutMark } from "@periodic-eval/data";

/** Returns a short description of any value for an error message. */
export function describeValue(value: unknown): string {
  if (value === undefined) return "nothing";
  if (typeof value === "function") return "a function";
  if (isMarkedNumber(value)) return withoutMark(value);
  if (typeof value === "string") return JSON.stringify(abbreviate(value));
  if (Array.isArray(value)) return value.length === 0 ? "an empty array" : `an array of ${value.length}`;
  if (typeof value === "object" && value !== null) {
    const names = listKeys(value);
    return names === "" ? "an empty object" : `an object of ${names}`;
  }
  return value === null ? "null" : (value as boolean | number | bigint).toString();
}

const maxKeys = 8;

export function listKeys(value: object): string {
  const names = Object.keys(value).map(withoutMark);
  const listed = names.slice(0, maxKeys).map(abbreviate).join(", ");
  return names.length > maxKeys ? `${listed}, …` : listed;
}

export const abbreviate = (text: string): string => (text.length > 60 ? `${text.slice(0, 60)}…` : text);
