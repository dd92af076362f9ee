import { PeriodicEvalError } from "@periodic-eval/core";
import { checkKeys, isCount, quoteValue } from "@periodic-eval/core/internal";
import type { TaskOptions } from "./task.ts";

const known = ["data", "shots", "fewshotPool", "fewshotSeed", "limit", "subsample", "chat"];

/** @throws PeriodicEvalError `config` for an option of a task that does not exist or is wrong. */
export function checkTaskOptions(task: string, options: TaskOptions): void {
  checkKeys(task, options, known);
  const { data, shots = 0, fewshotPool = ".", fewshotSeed = 0, limit = null, chat } = options;
  const check = (option: string, isRight: boolean, got: unknown, expected: string, fix: string) => {
    if (isRight) return;
    const where = `${task}.${option}`;
    throw new PeriodicEvalError({ code: "config", where, got: quoteValue(got), expected, fix });
  };
  const places = "a folder, a file, or hf:owner/dataset";
  check("data", isText(data), data, places, "Say where the documents are.");
  check("fewshotPool", isText(fewshotPool), fewshotPool, places, "Leave it out for the task's own pool.");
  check("shots", isCount(shots), shots, "a whole number of 0 or more", "Leave it out for the task's own.");
  const isSeed = Number.isSafeInteger(fewshotSeed);
  check("fewshotSeed", isSeed, fewshotSeed, "a whole number", "Leave it out for 1234.");
  const isLimit = limit === null || isCount(limit, 1);
  check("limit", isLimit, limit, "a whole number of 1 or more, or null", "Leave it out for all documents.");
  if (chat === undefined) return;
  checkKeys(`${task}.chat`, chat, ["system", "fewshotAsMultiturn"]);
  const { system = "", fewshotAsMultiturn = true } = chat;
  const isBoolean = typeof fewshotAsMultiturn === "boolean";
  check("chat.system", typeof system === "string", system, "a text", "Leave it out for none.");
  check("chat.fewshotAsMultiturn", isBoolean, fewshotAsMultiturn, "true or false", "Leave it out for true.");
}

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";
