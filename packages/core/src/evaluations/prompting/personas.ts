import { checkKeys } from "../../internal/check-keys.ts";
import { quoteValue } from "../../internal/quote-value.ts";
import { PeriodicEvalError } from "../../errors.ts";
import type { SystemPrompt } from "../../contracts/model.ts";
import { checkName } from "../../internal/names.ts";
import { checkSystem, isTextPrompt } from "./chat-options.ts";
import { readYaml } from "./yaml-file.ts";

/**
 * Whom the model is asked to be. One without a system prompt (`"omit"`) and one with an empty one (`{ text: "" }`) are
 * different personas: a template may put its own prompt in the place of the first.
 */
export interface Persona {
  /** Matches `[A-Za-z0-9][\w.-]*`: it names metrics (`leakage_rate/doctor`). */
  readonly id: string;
  readonly system: SystemPrompt;
}

const persona = (id: string, text: string): Persona => ({ id, system: { text } });

/** Eleven personas that ship with the project: two without words, one of an assistant, two made to stand out. */
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

/**
 * Personas of a YAML or JSON file: a list of `{ id, system }`, or a map from id to system prompt. A prompt is a text (or
 * `{ text }`), `""` for an explicit empty one, `null` (or `omit`) for none, or `no_system_block`.
 *
 * @throws PeriodicEvalError `data` for a file of another form, an id that cannot name a metric, or one that stands twice;
 *   with the cause of a file that cannot be read.
 */
export async function readPersonas(path: string): Promise<readonly Persona[]> {
  const { value } = await readYaml(path, "personas");
  return personasOfValue(value, path, "data");
}

/** What a file of personas holds, wherever it stands; errors are of `where` and of that code. */
export function personasOfValue(value: unknown, where: string, code: "data" | "config"): readonly Persona[] {
  const entries = entriesOf(value, where, code);
  if (entries.length === 0)
    throw wrong(where, "no personas", "at least one", "Write `id: system prompt` on each line.", code);
  const personas = entries.map(({ id, system, at }) => ({ id, system: systemOf(system, at, code) }));
  return checkPersonas(where, personas);
}

/**
 * Personas as they came, if they can be told apart.
 *
 * @throws PeriodicEvalError `config` at `where` for another value, an id that cannot name a metric, or one that stands
 *   twice.
 */
export function checkPersonas(where: string, personas: readonly Persona[]): readonly Persona[] {
  if (!Array.isArray(personas) || personas.length === 0)
    throw wrong(
      where,
      quoteValue(personas),
      "a list of personas",
      "Give [{ id, system }], or leave it out.",
      "config",
    );
  const seen = new Set<string>();
  for (const [at, one] of personas.entries()) {
    checkKeys(`${where}[${at}]`, one, ["id", "system"]);
    checkName(`${where}[${at}].id`, one.id);
    checkSystem(`${where}[${at}].system`, one.system);
    if (seen.has(one.id))
      throw wrong(
        `${where}[${at}].id`,
        `"${one.id}" twice`,
        "ids of their own",
        "Rename one of the two.",
        "config",
      );
    seen.add(one.id);
  }
  return personas;
}

interface Entry {
  readonly id: string;
  readonly system: unknown;
  /** For errors. */
  readonly at: string;
}

function entriesOf(value: unknown, path: string, code: "data" | "config"): readonly Entry[] {
  if (Array.isArray(value)) {
    return value.map((entry: unknown, at) => {
      const where = `${path}[${at}]`;
      if (typeof entry !== "object" || entry === null || !("id" in entry) || !("system" in entry))
        throw wrong(
          where,
          quoteValue(entry),
          "{ id, system }",
          "Write both; `system: null` is a persona without a system prompt.",
          code,
        );
      checkKeys(where, entry, ["id", "system"]);
      // Its form is checked with the others'.
      return { id: entry.id as string, system: entry.system, at: `${where}.system` };
    });
  }
  if (typeof value !== "object" || value === null)
    throw wrong(
      path,
      quoteValue(value),
      "a list of { id, system }, or a map from id to system prompt",
      "Write `id: system prompt` on each line.",
      code,
    );
  return Object.entries(value).map(([id, system]) => ({ id, system, at: `${path}.${id}` }));
}

function systemOf(system: unknown, where: string, code: "data" | "config"): SystemPrompt {
  if (system === null || system === "omit") return "omit";
  if (system === "no_system_block") return system;
  if (typeof system === "string" && system !== "empty") return { text: system };
  if (isTextPrompt(system)) return system;
  throw wrong(
    where,
    quoteValue(system),
    'a text, "" for an empty prompt, null for none, or no_system_block',
    system === "empty" ? 'Write "" for an empty prompt.' : "Put the prompt in quotes.",
    code,
  );
}

function wrong(
  where: string,
  got: string,
  expected: string,
  fix: string,
  code: "data" | "config",
): PeriodicEvalError {
  return new PeriodicEvalError({ code, where, got, expected, fix });
}
