import type { Json } from "@periodic-eval/core";
import { dataError, didYouMean, isRecord, quoteValue } from "@periodic-eval/contracts/options";
import type { Check } from "./instruction.ts";
import { readKwargs } from "./instruction.ts";
import { instructionKinds } from "./instruction-kinds.ts";

export interface IFEvalInstruction {
  /** An id of IFEval: `keywords:existence`. */
  readonly id: string;
  readonly kwargs: Readonly<Record<string, Json>>;
}

export interface IFEvalDocument {
  readonly key: string;
  readonly prompt: string;
  /** One or more, in the data's order. */
  readonly instructions: readonly IFEvalInstruction[];
}

/**
 * Reads a record of IFEval's `input_data.jsonl` or of its dataset on the hub: `key`, `prompt`, `instruction_id_list`, `kwargs`
 * (one object per instruction). Ignores null kwargs, which the hub adds, and converts Parquet's bigint integers.
 *
 * @param place File and line, for errors.
 * @throws PeriodicEvalError `data` for a record that responses cannot be checked against.
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
    return dataError(place, got, `${name}: ${expected}`, `Correct the document's "${name}".`);
  };
  if (typeof key !== "number" && typeof key !== "bigint" && typeof key !== "string") {
    throw fail("key", key, "a number or a string");
  }
  if (typeof prompt !== "string" || prompt === "") throw fail("prompt", prompt, "a non-empty string");
  if (!Array.isArray(ids) || ids.length === 0) throw fail("instruction_id_list", ids, "one or more ids");
  if (!Array.isArray(kwargs) || kwargs.length !== ids.length) {
    throw fail("kwargs", kwargs, `one object per id in instruction_id_list: ${ids.length}`);
  }
  const instructions: readonly IFEvalInstruction[] = ids.map((id, at) => ({
    id,
    kwargs: filled(kwargs[at]),
  }));
  instructions.forEach((instruction, at) => checkOf(instruction, `${place} (key ${key}), kwargs[${at}]`));
  return { key: String(key), prompt, instructions };
}

/** Removes nulls and converts bigints. Returns a value that is not an object unchanged; `readKwargs` rejects it. */
function filled(kwargs: unknown): IFEvalInstruction["kwargs"] {
  if (!isRecord(kwargs)) return kwargs as never;
  const given = Object.entries(kwargs as Record<string, Json | bigint>).filter(([, value]) => value !== null);
  return Object.fromEntries(
    given.map(([name, value]) => [name, typeof value === "bigint" ? Number(value) : value]),
  );
}

/**
 * Returns the check of an instruction.
 *
 * @param place The instruction's place, for errors.
 * @throws PeriodicEvalError `data` for an unknown id or wrong kwargs.
 */
export function checkOf({ id, kwargs }: IFEvalInstruction, place: string): Check {
  const kind = instructionKinds.get(id);
  if (kind === undefined) {
    const known = [...instructionKinds.keys()];
    const fix = didYouMean(id, known) ?? "Use one of these ids.";
    throw dataError(place, `the instruction ${quoteValue(id)}`, `one of ${known.join(", ")}`, fix);
  }
  const reader = readKwargs(kwargs, `${place} of ${id}`);
  const check = kind(reader);
  reader.finish();
  return check;
}
