import { PeriodicEvalError, type Json } from "@periodic-eval/core";
import { nearest, quoteValue } from "@periodic-eval/core/internal";
import type { Check } from "./instruction.ts";
import { readKwargs } from "./instruction.ts";
import { instructionKinds } from "./instruction-kinds.ts";

export interface IFEvalInstruction {
  /** `keywords:existence` and so on. */
  readonly id: string;
  readonly kwargs: Readonly<Record<string, Json>>;
}

export interface IFEvalDocument {
  readonly key: string;
  readonly prompt: string;
  /** One or more, in the order of the data. */
  readonly instructions: readonly IFEvalInstruction[];
}

/**
 * Reads a record of IFEval's `input_data.jsonl` or of its data set on the hub: `key`, `prompt`,
 * `instruction_id_list`, `kwargs` (one object for each instruction; the hub's fill up with nulls, which are passed over,
 * and Parquet's integers come as bigint).
 *
 * @param place file and line, as errors name them.
 * @throws PeriodicEvalError `data` for anything that a response could not be checked against.
 */
export function readDocument(record: unknown, place: string): IFEvalDocument {
  const {
    key,
    prompt,
    instruction_id_list: ids,
    kwargs,
  } = (record ?? {}) as Readonly<Record<string, unknown>>;
  const fail = (name: string, value: unknown, expected: string) => {
    const got = value === undefined ? `no ${name}` : `${name} = ${quoteValue(value)}`;
    return wrong(place, got, `${name}: ${expected}`, `Give the document a "${name}" that is so.`);
  };
  if (typeof key !== "number" && typeof key !== "bigint" && typeof key !== "string") {
    throw fail("key", key, "a number or a text");
  }
  if (typeof prompt !== "string" || prompt === "") throw fail("prompt", prompt, "a text that is not empty");
  if (!Array.isArray(ids) || ids.length === 0) throw fail("instruction_id_list", ids, "one or more ids");
  if (!Array.isArray(kwargs) || kwargs.length !== ids.length) {
    throw fail("kwargs", kwargs, `an object for each of instruction_id_list, so ${ids.length}`);
  }
  const instructions: readonly IFEvalInstruction[] = ids.map((id, at) => ({
    id,
    kwargs: filled(kwargs[at]),
  }));
  instructions.forEach((instruction, at) => checkOf(instruction, `${place} (key ${key}), kwargs[${at}]`));
  return { key: String(key), prompt, instructions };
}

/** What is no object stays as it is, for `readKwargs` to refuse. */
function filled(kwargs: unknown): IFEvalInstruction["kwargs"] {
  if (typeof kwargs !== "object" || kwargs === null || Array.isArray(kwargs)) return kwargs as never;
  const given = Object.entries(kwargs as Record<string, Json | bigint>).filter(([, value]) => value !== null);
  return Object.fromEntries(
    given.map(([name, value]) => [name, typeof value === "bigint" ? Number(value) : value]),
  );
}

/**
 * The check that an instruction asks for.
 *
 * @param place names the instruction in errors.
 * @throws PeriodicEvalError `data` for an id that does not exist and for kwargs that are wrong.
 */
export function checkOf({ id, kwargs }: IFEvalInstruction, place: string): Check {
  const kind = instructionKinds.get(id);
  if (kind === undefined) {
    const known = [...instructionKinds.keys()];
    const close = typeof id === "string" ? nearest(id, known) : null;
    const fix = close === null ? "Name a kind that exists." : `Did you mean "${close}"?`;
    throw wrong(place, `the instruction ${quoteValue(id)}`, `one of ${known.join(", ")}`, fix);
  }
  const reader = readKwargs(kwargs, `${place} of ${id}`);
  const check = kind(reader);
  reader.finish();
  return check;
}

const wrong = (where: string, got: string, expected: string, fix: string) =>
  new PeriodicEvalError({ code: "data", where, got, expected, fix });
