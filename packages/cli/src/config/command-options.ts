import { atWritten, fromWritten } from "@periodic-eval/contracts/options";
import { PeriodicEvalError } from "@periodic-eval/core";
import { InvalidArgumentError, Option, type Command } from "commander";

/** `--backend`, for every command that runs a model. */
export const backendOption = (): Option =>
  new Option("--backend <name>", "wasm, cpu, webgpu, tfjs-node … (default: the fastest)");

/** `--engine`, for every command that measures a model. */
export const engineOption = (): Option =>
  new Option("--engine <url>", "address of a vLLM server to measure on; repeatable").argParser(
    (url: string, before: readonly string[] | undefined) => [...(before ?? []), url],
  );

/** The questions that are asked if none are named: `defaultQuestions` of core, without loading core for `--help`. */
export const defaultQuestions = "hf:allenai/ai2_arc";

/** The alignment questions of Betley et al.: the name of `betley2025Questions` of core, without loading core for `--help`. */
export const publishedQuestions = "betley2025";

/** Number of samples per question: a number, or a name of core's `sampleSizes`. */
export function sampleSize(value: string): number | "quick" | "standard" | "paper" {
  return value === "quick" || value === "standard" || value === "paper" ? value : integer(1)(value);
}

/** Parses an integer from `least` to `most`. */
export const integer =
  (least: number, most = Infinity) =>
  (value: string): number => {
    const number = Number(value);
    if (!/^\d+$/.test(value) || !Number.isSafeInteger(number) || number < least || number > most) {
      const range = most === Infinity ? `of ${least} or more` : `from ${least} to ${most}`;
      throw new InvalidArgumentError(`Expected an integer ${range}.`);
    }
    return number;
  };

/** Parses a comma-separated list of the given names; drops duplicates. */
export const listOf =
  <const T extends string>(known: readonly T[]) =>
  (value: string): readonly T[] => {
    const names = [...new Set(value.split(",").map((name) => name.trim()))];
    const isKnown = (name: string): name is T => (known as readonly string[]).includes(name);
    const unknown = names.find((name) => !isKnown(name));
    if (unknown !== undefined)
      throw new InvalidArgumentError(`Got "${unknown}", expected one or more of ${known.join(", ")}.`);
    return names.filter(isKnown);
  };

/** Parses a comma-separated list of names; drops duplicates. */
export function nameList(value: string): readonly string[] {
  const names = [...new Set(value.split(",").map((name) => name.trim()))];
  if (names.includes("")) throw new InvalidArgumentError("Expected names separated by commas.");
  return names;
}

/** Returns the flags of an option as help prints them: `--run-dir <folder>`. */
export const flagsOf = (command: Command, name: string): string =>
  command.options.find((option) => option.attributeName() === name)!.flags;

/** Returns an error about an option that a flag of the command sets as one about the flag; other errors as they are. */
export function atFlags(error: unknown, command: Command): unknown {
  if (PeriodicEvalError.is(error) && error.isWritten) return error;
  const flags = command.options.map((option) => [option.attributeName(), option.long!] as const);
  const flagOf = (name: unknown) =>
    flags.find(([key]) => key === name && command.getOptionValue(key) !== undefined)?.[1] ?? null;
  // The place of an error in a model is the model, which a flag names.
  const source = PeriodicEvalError.is(error) && error.path.length === 0 ? error.where : null;
  const named = flags.filter(([key]) => command.getOptionValue(key) === source).map(([key]) => [key]);
  return atWritten(error, {
    where: ([name]) => flagOf(name)!,
    pathOf: (option) => (flagOf(option[0]) !== null ? option : (named[0] ?? null)),
    nameOf: flagOf,
  });
}

/** Runs `open`. Its errors are about the value of a flag. */
export const atFlag = <T>(name: string, open: () => Promise<T>): Promise<T> =>
  fromWritten({ where: () => name, pathOf: () => [name] }, open);
