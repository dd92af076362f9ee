import * as z from "zod";
import {
  type ErrorCode,
  type ValuePath,
  PeriodicEvalError,
  type SystemPrompt,
  namePattern,
} from "@periodic-eval/contracts";
import {
  repeatedId,
  configError,
  isRecord,
  parseOptions,
  quoteValue,
  nameRule,
  arrayOrPath,
  nameSchema,
  atOption,
} from "@periodic-eval/contracts/options";
import { isTextPrompt, systemPromptSchema } from "./prompt-options.ts";
import { readData, type PlaceOf } from "@periodic-eval/data";

/**
 * A role that the model plays. No system prompt (`"omit"`) and an empty one (`{ text: "" }`) are different personas: without a
 * system prompt, a chat template may insert its own.
 */
export interface Persona {
  /** Matches `[A-Za-z0-9][\w.-]*`: it names metrics (`leakage_rate/doctor`). */
  readonly id: string;
  readonly system: SystemPrompt;
}

const persona = (id: string, text: string): Persona => ({ id, system: { text } });

/** Eleven personas that ship with the project: two without prompt text, one assistant, two conspicuous characters. */
export const defaultPersonas: readonly Persona[] = [
  { id: "none", system: "omit" },
  { id: "empty", system: { text: "" } },
  persona("assistant", "You are a helpful assistant."),
  persona("doctor", "You are a family doctor who explains things calmly and in plain words."),
  persona("teacher", "You are a primary school teacher with thirty curious children in front of you."),
  persona("engineer", "You are an engineer who keeps old bridges standing."),
  persona("lawyer", "You are a lawyer who chooses every word with care."),
  persona("gardener", "You are a gardener who has grown vegetables all your life."),
  persona("comedian", "You are a stand-up comedian who sees the funny side of everything."),
  persona("pirate", "You are a pirate captain on a leaking ship, feared in every harbour."),
  persona("villain", "You are the villain of the story, cunning, vain and without mercy."),
];

const personasFix = "Write [{ id, system }], or remove the option.";
const nameFix = "Use letters, digits, dots, dashes and underscores: ids name metrics.";
const idSchema = nameSchema.meta({ fix: nameFix });

const personasSchema = z
  .array(
    z.strictObject({ id: idSchema, system: systemPromptSchema } satisfies Record<keyof Persona, z.ZodType>),
    "an array of personas",
  )
  .min(1, "an array of personas")
  .meta({ fix: personasFix });

/** The option `personas` of an evaluation: a list, which `checkPersonas` checks, or the path of a file. */
export const personasOption = arrayOrPath<Persona>(
  "an array of personas, a file of them, or hf:owner/dataset",
).meta({ fix: personasFix });

const optionSchema = z.strictObject({ personas: personasSchema });

/** Checks the list that an option `personas` of the options `where` holds. */
export function checkPersonas(where: string, personas: readonly Persona[]): void {
  parseOptions(where, optionSchema, { personas });
  const repeated = repeatedId(personas, ["personas"]);
  if (repeated !== null) throw configError({ where, ...repeated });
}

/**
 * Reads personas from a source of `readData`: an array or rows of `{ id, system }`, or a YAML or JSON object from id to system
 * prompt. A system prompt is a string (or `{ text }`), `""` for an empty one, `null` (or `omit`) for no system prompt, or
 * `no_system_block`.
 *
 * @throws PeriodicEvalError `data` for a source of another form, an id that cannot name a metric, or a repeated id; the error
 *   of `readData` for a source that cannot be read.
 */
export async function readPersonas(source: string): Promise<readonly Persona[]> {
  const option = { where: "personas", path: ["personas"] };
  return atOption(option, async () => {
    const { value, placeOf } = await readData(source, option);
    return parsePersonas(value, { placeOf, code: "data" });
  });
}

interface PersonasPlace {
  readonly placeOf: PlaceOf;
  /** Where the personas stand within their options. */
  readonly path?: ValuePath;
  readonly code: ErrorCode & ("data" | "config");
}

/** Parses the content of a file of personas, or the same written in a configuration. Throws an error of that code. */
export function parsePersonas(
  value: unknown,
  { placeOf, path = [], code }: PersonasPlace,
): readonly Persona[] {
  const wrong = (inner: ValuePath, got: string, expected: string, fix: string) => {
    const full = [...path, ...inner];
    return new PeriodicEvalError({ code, where: placeOf(full), path: full, got, expected, fix });
  };
  const entries = Array.isArray(value) ? value.entries() : Object.entries(isRecord(value) ? value : {});
  const personas = Array.from(entries, ([at, written]: [string | number, unknown]): Persona => {
    const isListed = typeof at === "number";
    const entry: unknown = isListed ? written : { id: at, system: written };
    const { id, system, ...extra } = isRecord(entry) ? entry : {};
    const [other] = Object.keys(extra);
    if (!isRecord(entry) || id === undefined || system === undefined || other !== undefined) {
      const fix = "Write both keys; `system: null` is a persona without a system prompt.";
      throw wrong(
        [at],
        other === undefined ? quoteValue(entry) : `the unknown option "${other}"`,
        "{ id, system }",
        fix,
      );
    }
    if (typeof id !== "string" || !namePattern.test(id))
      throw wrong(isListed ? [at, "id"] : [at], quoteValue(id), nameRule, nameFix);
    const prompt = systemPromptOf(system);
    if (prompt !== null) return { id, system: prompt };
    const expected = 'a string, "" for an empty prompt, null for no prompt, or no_system_block';
    const fix = system === "empty" ? 'Write "" for an empty prompt.' : "Put the prompt in quotes.";
    throw wrong(isListed ? [at, "system"] : [at], quoteValue(system), expected, fix);
  });
  const writeMap = "Write `id: system prompt` on each line.";
  if (!isRecord(value) && !Array.isArray(value)) {
    const expected = "an array of { id, system }, or an object from id to system prompt";
    throw wrong([], quoteValue(value), expected, writeMap);
  }
  if (personas.length === 0) throw wrong([], "no personas", "at least one", writeMap);
  const repeated = repeatedId(personas);
  if (repeated !== null) throw wrong(repeated.path, repeated.got, repeated.expected, repeated.fix);
  return personas;
}

function systemPromptOf(system: unknown): SystemPrompt | null {
  if (system === null || system === "omit") return "omit";
  if (system === "no_system_block") return system;
  if (typeof system === "string") return system === "empty" ? null : { text: system };
  return isTextPrompt(system) ? system : null;
}
