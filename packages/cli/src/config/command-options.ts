import { InvalidArgumentError, Option } from "commander";

/** Which model, said alike by every command that loads one. */
export const modelOption = (): Option =>
  new Option(
    "--model <folder>",
    "a folder as Hugging Face saves a model, or one of its hub: owner/name or owner/name@revision",
  ).makeOptionMandatory();

/** Which engine runs, said alike by every command that runs one. */
export const backendOption = (): Option =>
  new Option(
    "--backend <name>",
    "tfjs-node-gpu, tfjs-node, webgpu, wasm or cpu (default: the fastest installed)",
  );

/** Which questions a limit keeps: the same seed and limit ask the same questions in every command. */
export const subsampleSeedOption = (): Option =>
  new Option("--subsample-seed <number>", "of the draw of questions").argParser(wholeNumber(0)).default(42);

/** A whole number of at least `least`, and at most `most`. */
export const wholeNumber =
  (least: number, most = Infinity) =>
  (text: string): number => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value < least || value > most) {
      const range = most === Infinity ? `of ${least} or more` : `from ${least} to ${most}`;
      throw new InvalidArgumentError(`Expected a whole number ${range}.`);
    }
    return value;
  };

export function positiveNumber(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value) || value <= 0)
    throw new InvalidArgumentError("Expected a number above 0.");
  return value;
}

/** `none` is no limit. A word, for commander makes an empty text of null. */
export const positiveOrNone = (text: string): number | "none" =>
  text.trim() === "none" ? "none" : positiveNumber(text);

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

/** A comma-separated list of names, in the order given, each once. */
export function namesOf(text: string): readonly string[] {
  const names = [...new Set(text.split(",").map((name) => name.trim()))];
  if (names.includes("")) throw new InvalidArgumentError("Expected names with commas between.");
  return names;
}
