import { InvalidArgumentError } from "commander";

/** A whole number of at least `least`. */
export const wholeNumber =
  (least: number) =>
  (text: string): number => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value < least) {
      throw new InvalidArgumentError(`Expected a whole number of ${least} or more.`);
    }
    return value;
  };

export function positiveNumber(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value) || value <= 0)
    throw new InvalidArgumentError("Expected a number above 0.");
  return value;
}

/** A comma-separated list of known words, in the order given, each once. */
export const listOf =
  <const T extends string>(known: readonly T[]) =>
  (text: string): readonly T[] => {
    const words = [...new Set(text.split(",").map((word) => word.trim()))];
    const isKnown = (word: string): word is T => (known as readonly string[]).includes(word);
    const unknown = words.find((word) => !isKnown(word));
    if (unknown !== undefined)
      throw new InvalidArgumentError(`Got "${unknown}", expected some of ${known.join(", ")}.`);
    return words.filter(isKnown);
  };
