import type { Json } from "@periodic-eval/core";
import { dataError, didYouMean, isRecord, parseRow, quoteValue } from "@periodic-eval/contracts/options";
import * as z from "zod";
import { instructionKinds, type Check } from "./instructions.ts";

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

const perId = "one object per id in instruction_id_list";
const recordSchema = z
  .object({
    key: z.union([z.number(), z.bigint(), z.string()], "a number or a string"),
    prompt: z.string("a non-empty string").min(1, "a non-empty string"),
    instruction_id_list: z.array(z.string(), "one or more ids").min(1, "one or more ids"),
    kwargs: z.array(z.unknown(), perId),
  })
  .superRefine(({ instruction_id_list: { length }, kwargs }, context) => {
    if (kwargs.length !== length)
      context.addIssue({ code: "custom", path: ["kwargs"], message: `${perId}: ${length}` });
  });

/**
 * Reads a record of IFEval's `input_data.jsonl` or of its dataset on the hub: `key`, `prompt`, `instruction_id_list`, `kwargs`
 * (one object per instruction). Ignores null kwargs, which the hub adds, and converts Parquet's bigint integers.
 *
 * @param place File and line, for errors.
 * @throws PeriodicEvalError `data` for a record that responses cannot be checked against.
 */
export function readDocument(record: unknown, place: string): IFEvalDocument {
  const read = parseRow(place, recordSchema, record ?? {}, "Correct the document.");
  const { key, prompt, instruction_id_list: ids, kwargs } = read;
  const instructions = ids.map((id, at): IFEvalInstruction => ({ id, kwargs: filled(kwargs[at]) }));
  instructions.forEach((instruction, at) => checkOf(instruction, `${place} (key ${key}), kwargs[${at}]`));
  return { key: String(key), prompt, instructions };
}

/** Removes nulls and converts bigints. Returns a value that is not an object unchanged; the instruction's kind rejects it. */
function filled(kwargs: unknown): IFEvalInstruction["kwargs"] {
  if (!isRecord(kwargs)) return kwargs as never;
  const entries = Object.entries(kwargs as Record<string, Json | bigint>).flatMap(([name, value]) =>
    value === null ? [] : [[name, typeof value === "bigint" ? Number(value) : value] as const],
  );
  return Object.fromEntries(entries);
}

/**
 * Returns the check of an instruction.
 *
 * @param where The instruction's place, for errors.
 * @throws PeriodicEvalError `data` for an unknown id or wrong kwargs.
 */
export function checkOf({ id, kwargs }: IFEvalInstruction, where: string): Check {
  if (Object.hasOwn(instructionKinds, id)) return instructionKinds[id]!(kwargs, `${where} of ${id}`);
  const known = Object.keys(instructionKinds);
  const fix = didYouMean(id, known) ?? "Use one of these ids.";
  throw dataError(where, `the instruction ${quoteValue(id)}`, `one of ${known.join(", ")}`, fix);
}
