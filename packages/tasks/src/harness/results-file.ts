import { createHash } from "node:crypto";
import type { Json, ModelIdentity } from "@periodic-eval/core";
import type { Suite } from "../suite/suite-file.ts";
import type { HarnessPart } from "./task-part.ts";

/** A run as a whole. */
interface HarnessRun {
  /** Its fields in `metrics.json`; the timestamp is the time when it began, ISO 8601. */
  readonly run: { readonly model: string; readonly model_args: Json; readonly timestamp: string };
  readonly suite: Suite;
  readonly model: ModelIdentity;
  /** Measuring time. */
  readonly seconds: number;
}

/** Formats a time for lm-evaluation-harness' file names; its tools split them at the last underscore. */
export const dateId = (timestamp: string): string => timestamp.replaceAll(":", "-");

/** Implements `sanitize_model_name` of lm-evaluation-harness 0.4.13. */
const sanitized = (name: string): string => name.replaceAll(/["<>:/|\\?*[\]]+/g, "__");

/**
 * Returns the content of `results_<time>.json` in the format of lm-evaluation-harness 0.4.13, without that program's facts about
 * itself (its version, PyTorch's environment).
 */
export function harnessResults(
  parts: readonly HarnessPart[],
  { run, suite, model, seconds }: HarnessRun,
): string {
  const { chat } = suite;
  const all = <K extends keyof HarnessPart>(key: K) =>
    Object.assign({}, ...parts.map((part) => part[key])) as HarnessPart[K];
  const results = all("results");
  const groups = new Set(parts.flatMap((part) => part.groups));
  const system = chat?.system ?? null;
  const content: PythonJson = {
    results: floatsIn(results),
    ...(groups.size > 0 && {
      groups: floatsIn(Object.fromEntries(Object.entries(results).filter(([name]) => groups.has(name)))),
    }),
    group_subtasks: all("group_subtasks"),
    configs: all("configs"),
    versions: all("versions"),
    "n-shot": all("n-shot"),
    higher_is_better: all("higher_is_better"),
    "n-samples": all("n-samples"),
    config: {
      model: "periodic-eval",
      model_args: run.model_args,
      model_dtype: model.dtype,
      batch_size: null,
      batch_sizes: [],
      device: model.engine,
      use_cache: null,
      limit: null,
      bootstrap_iters: 0,
      gen_kwargs: null,
      random_seed: suite.seed,
      fewshot_seed: suite.fewshot_seed,
    },
    git_hash: null,
    date: new PythonFloat(Date.parse(run.timestamp) / 1000),
    task_hashes: all("task_hashes"),
    model_source: "periodic-eval",
    model_name: run.model,
    model_name_sanitized: sanitized(run.model),
    system_instruction: system,
    system_instruction_sha: system === null ? null : createHash("sha256").update(system).digest("hex"),
    fewshot_as_multiturn: chat === null ? null : (chat.fewshot_as_multiturn ?? true),
    chat_template: null,
    chat_template_sha: null,
    total_evaluation_time_seconds: String(seconds),
  };
  return `${pythonJson(content)}\n`;
}

/** Marks values and standard errors as floats; counts stay integers. */
function floatsIn(results: HarnessPart["results"]): PythonJson {
  const ofEntry = (entry: Readonly<Record<string, Json>>) =>
    Object.fromEntries(
      Object.entries(entry).map(([key, value]): [string, PythonJson] => [
        key,
        key.includes(",") && typeof value === "number" ? new PythonFloat(value) : value,
      ]),
    );
  return Object.fromEntries(Object.entries(results).map(([name, entry]) => [name, ofEntry(entry)]));
}

/** A number that is written as a Python float: 1 becomes 1.0. */
class PythonFloat {
  readonly value: number;
  constructor(value: number) {
    this.value = value;
  }
}

type PythonJson = Json | PythonFloat | readonly PythonJson[] | { readonly [key: string]: PythonJson };

/** Returns JSON as written by Python's `json.dumps(value, indent=2, ensure_ascii=False)`. */
export function pythonJson(value: PythonJson, indent = ""): string {
  if (value instanceof PythonFloat) {
    const text = String(value.value);
    return /^-?\d+$/.test(text) ? `${text}.0` : text;
  }
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const inner = `${indent}  `;
  const list = Array.isArray(value);
  const parts = list
    ? value.map((item: PythonJson) => pythonJson(item, inner))
    : Object.entries(value as Readonly<Record<string, PythonJson | undefined>>).flatMap(([key, item]) =>
        item === undefined ? [] : `${JSON.stringify(key)}: ${pythonJson(item, inner)}`,
      );
  const [open, close] = list ? ["[", "]"] : ["{", "}"];
  return parts.length === 0
    ? `${open}${close}`
    : `${open}\n${inner}${parts.join(`,\n${inner}`)}\n${indent}${close}`;
}

/** Implements Python's `str()` for JSON values. Strings inside arrays and objects are quoted as in JSON. */
export function pythonText(value: Json): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  return typeof value === "string"
    ? value
    : typeof value === "number"
      ? String(value)
      : JSON.stringify(value);
}

/** Converts all numbers and booleans in nested arrays with Python's `str()`, as lm-evaluation-harness does with responses. */
export function asTexts(value: Json): Json {
  return Array.isArray(value) ? value.map((item: Json) => asTexts(item)) : pythonText(value);
}
