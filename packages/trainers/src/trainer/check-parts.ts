import { statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import {
  PeriodicEvalError,
  type Guard,
  type Logger,
  type Tokenizer,
  type TrainerCallback,
} from "@periodic-eval/core";
import { quoteValue } from "@periodic-eval/core/internal";
import type { TrainableLM } from "@periodic-eval/core/tfjs";
import { inWords } from "../data/in-words.ts";
import type { OutlinedLM } from "./outlined-lm.ts";

/** What a trainer cannot be made without, as whoever writes no TypeScript may give it. */
export interface TrainerParts {
  readonly model: OutlinedLM;
  readonly tokenizer: Tokenizer;
  readonly runDir: string;
  readonly callbacks?: readonly TrainerCallback[];
  readonly guards?: readonly Guard[];
  readonly loggers?: readonly Logger[];
}

/**
 * Checks what every trainer that writes a run stands on, as far as it can be told without a weight.
 *
 * @param trainer how errors call it: `SFTTrainer`
 * @throws PeriodicEvalError `config` for a model or a tokenizer that is none, and for a runDir that is no folder and cannot
 *   become one
 */
export function checkParts(trainer: string, parts: TrainerParts): void {
  checkPartsInMemory(trainer, parts);
  checkRunDir(`${trainer} runDir`, parts.runDir);
}

/** `checkParts` without the folder, which some trainers need not have. */
export function checkPartsInMemory(trainer: string, parts: Omit<TrainerParts, "runDir">): void {
  checkModel(trainer, parts.model);
  checkTokenizer(trainer, parts.tokenizer);
  for (const name of ["callbacks", "guards", "loggers"] as const)
    checkObjects(`${trainer} ${name}`, parts[name] ?? []);
}

/** Throws a `config` error for what is no list of objects. What else they must be is checked where they are used. */
export function checkObjects(where: string, list: unknown): void {
  const wrong = Array.isArray(list)
    ? (list as readonly unknown[]).findIndex((one) => typeof one !== "object" || one === null)
    : null;
  if (wrong === -1) return;
  throw new PeriodicEvalError({
    code: "config",
    where: wrong === null ? where : `${where}[${wrong}]`,
    got: called(wrong === null ? list : (list as readonly unknown[])[wrong]),
    expected: wrong === null ? "a list of objects" : "an object",
    fix: wrong === null ? "Write it as a list: [ … ]." : "Leave it out, or give what was meant.",
  });
}

/** What a pipeline is checked with need have no weights; what is trained has. */
export function checkTrainable(trainer: string, model: TrainableLM): void {
  const lacking = lackedBy(model, ["logits", "trainingLogits", "trainables", "save"]);
  if (lacking !== null) throw noModel(trainer, `a model without ${lacking}`);
}

function checkModel(trainer: string, model: unknown): void {
  const { vocabSize, contextLength } = (model ?? {}) as { vocabSize?: unknown; contextLength?: unknown };
  const isSize = (value: unknown) => Number.isSafeInteger(value) && (value as number) > 0;
  if (typeof model !== "object" || model === null || !isSize(vocabSize) || !isSize(contextLength))
    throw noModel(trainer, called(model));
}

const noModel = (trainer: string, got: string): PeriodicEvalError =>
  new PeriodicEvalError({
    code: "config",
    where: `${trainer} model`,
    got,
    expected: "a language model that can be trained (TrainableLM)",
    fix: "Give what loadCausalLM or withLora of @periodic-eval/models returns (await it), or a TrainableLM of your own.",
  });

function checkTokenizer(trainer: string, tokenizer: unknown): void {
  const isObject = typeof tokenizer === "object" && tokenizer !== null;
  const lacking = isObject ? lackedBy(tokenizer, ["encode", "decode", "render"]) : "anything";
  if (lacking === null) return;
  throw new PeriodicEvalError({
    code: "config",
    where: `${trainer} tokenizer`,
    got: called(tokenizer),
    expected: "a tokenizer with encode, decode and render",
    fix: "Give what loadTokenizer of @periodic-eval/models/tokenizer returns (await it), or a Tokenizer of your own.",
  });
}

/** The first of these methods that an object has not; null where it has all. */
function lackedBy(value: object, methods: readonly string[]): string | null {
  return (
    methods.find((name) => typeof (value as Readonly<Record<string, unknown>>)[name] !== "function") ?? null
  );
}

const called = (value: unknown): string => (value instanceof Promise ? "a promise" : inWords(value));

/** Throws a `config` error for what is no folder and cannot become one. */
export function checkRunDir(where: string, runDir: unknown): void {
  if (typeof runDir !== "string" || runDir === "") {
    throw new PeriodicEvalError({
      code: "config",
      where,
      got: quoteValue(runDir),
      expected: "the path of a folder",
      fix: "Name the run's folder; it is made where it is not there.",
    });
  }
  const file = fileAt(resolve(runDir));
  if (file === null) return;
  throw new PeriodicEvalError({
    code: "config",
    where,
    got: file === resolve(runDir) ? `${runDir}, which is a file` : `${runDir}, below the file ${file}`,
    expected: "the path of a folder, or of one that can be made",
    fix: "Name another folder, or move the file.",
  });
}

/** What stands at a path or, where nothing does, at the nearest one above, if it is no folder. */
function fileAt(path: string): string | null {
  for (let at = path; ; at = dirname(at)) {
    try {
      return statSync(at).isDirectory() ? null : at;
    } catch {
      if (dirname(at) === at) return null;
    }
  }
}
