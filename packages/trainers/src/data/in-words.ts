/** A value as an error calls it: short, whatever the value's size, depth or kind. */
export function inWords(value: unknown): string {
  if (value === undefined) return "nothing";
  if (typeof value === "function") return "a function";
  if (typeof value === "string") return JSON.stringify(abbreviated(value));
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : `a list of ${value.length}`;
  if (typeof value === "object" && value !== null) {
    const names = namesOf(value);
    return names === "" ? "an empty object" : `an object of ${names}`;
  }
  return value === null ? "null" : (value as boolean | number | bigint).toString();
}

const mostNames = 8;

/** The names of an object's fields: the first few. */
export function namesOf(value: object): string {
  const names = Object.keys(value);
  const shown = names.slice(0, mostNames).map(abbreviated).join(", ");
  return names.length > mostNames ? `${shown}, …` : shown;
}

export const abbreviated = (text: string): string => (text.length > 60 ? `${text.slice(0, 60)}…` : text);
