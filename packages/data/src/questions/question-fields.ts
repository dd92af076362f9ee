import { abbreviated, dataError, quoteValue } from "@periodic-eval/contracts/options";

/** Returns a value of a question, shortened for an error. */
export const shortened = (value: unknown): string => quoteValue(value, 58);

/** Describes a wrong or missing field of a question, for an error. */
export const fieldText = (question: Readonly<Record<string, unknown>>, name: string, path = name): string =>
  name in question
    ? `${path} = ${shortened(question[name])}`
    : `no ${path} (keys: ${abbreviated(Object.keys(question).join(", "), 200) || "none"})`;

/**
 * Returns a function that throws for an id that an earlier question has.
 *
 * @param fix What to do then.
 */
export function uniqueIds(fix: string): (id: string, place: string) => void {
  const places = new Map<string, string>();
  return (id, place) => {
    const earlier = places.get(id);
    if (earlier !== undefined)
      throw dataError(place, `the id ${shortened(id)}, which ${earlier} already has`, "unique ids", fix);
    places.set(id, place);
  };
}
