import {
  hashText,
  messageOf,
  nearest,
  PeriodicEvalError,
  shown,
  type Awaitable,
  type Grader,
  type Json,
  type Verdict,
} from "@periodic-eval/core";
import { readTextFile } from "@periodic-eval/core/snapshots";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { VerifierArgs } from "../types.ts";

/** What a verifier of one's own is told of the task. */
export interface VerifierTask {
  readonly id: string;
  /** The user's last message, as the model was asked. */
  readonly question: string;
  readonly answer: Json;
  readonly metadata: { readonly [key: string]: Json };
  readonly args: VerifierArgs;
}

/** Passed or not, as a reward of 1 or 0; or a reward, which passes from 1 on; or both, with what is kept beside them. */
export type Verified =
  | boolean
  | number
  | { readonly reward: number; readonly passed?: boolean; readonly raw?: string };

/**
 * A verifier of one's own: an export of a module in the benchmark's folder. What it throws, and what it gives that is
 * none of these, is a failed grade of that completion, with the reason.
 */
export type Verifier = (completion: string, task: VerifierTask) => Awaitable<Verified>;

export interface LoadedModule {
  /** Of its text; what it imports is not in it. */
  readonly hash: string;
  readonly exports: Readonly<Record<string, unknown>>;
}

/** @throws PeriodicEvalError `data` for a module that cannot be read or loaded. */
export async function loadModule(folder: string, path: string): Promise<LoadedModule> {
  const file = resolve(folder, path);
  const text = await readTextFile(file, "verifier.module").catch((error: unknown) => {
    if (!PeriodicEvalError.is(error)) throw error;
    throw new PeriodicEvalError({
      code: "data",
      where: "verifier.module",
      got: error.got.replace(`"${file}"`, `"${path}"`),
      expected: "a module in the benchmark's folder",
      fix: "Correct the path, which is relative to that folder, or copy the module into it.",
      cause: error.cause,
    });
  });
  const hash = hashText(text);
  try {
    // Node keeps what it loaded by its address: text that changed has another.
    const address = `${pathToFileURL(file).href}?${new URLSearchParams({ hash })}`;
    return { hash, exports: (await import(/* @vite-ignore */ address)) as LoadedModule["exports"] };
  } catch (cause) {
    throw new PeriodicEvalError({
      code: "data",
      where: "verifier.module",
      got: `"${path}", which fails to load (${messageOf(cause)})`,
      expected: "a module of JavaScript (or of TypeScript, where the process runs it)",
      fix: "Mend it; `export` stands before its function.",
      cause,
    });
  }
}

/**
 * The function or the grader that a module exports.
 *
 * @throws PeriodicEvalError `data` where there is none of that name.
 */
export function exported({ exports }: LoadedModule, name: string): Verifier | Grader {
  const given = exports[name];
  if (typeof given === "function") return given as Verifier;
  if (typeof (given as Partial<Grader> | undefined)?.grade === "function") return given as Grader;
  const names = Object.keys(exports);
  const close = nearest(name, names);
  throw new PeriodicEvalError({
    code: "data",
    where: "verifier.export",
    got: given === undefined ? `"${name}", which the module does not export` : `"${name}", ${typeof given}`,
    expected: `a function or a grader (it exports ${names.join(", ") || "nothing"})`,
    fix: close === null || close === name ? "Export the verifier." : `Did you mean "${close}"?`,
  });
}

/** What a function said, as a grader's verdict. */
export function verdictOf(said: unknown): Verdict {
  if (typeof said === "boolean" || typeof said === "number") return verdictOf({ reward: Number(said) });
  const { reward, passed, raw = null } = (said ?? {}) as Readonly<Record<string, unknown>>;
  const isRight =
    Number.isFinite(reward) &&
    (passed === undefined || typeof passed === "boolean") &&
    (raw === null || typeof raw === "string");
  if (!isRight)
    return {
      status: "error",
      raw: `the verifier gave ${shown(said)}, neither true, false, a number nor { reward, passed, raw }`,
    };
  const scores = { reward: reward as number, ...(passed !== undefined && { passed: Number(passed) }) };
  return { status: "graded", scores, raw };
}
