import {
  capabilityEvaluation,
  measure,
  type AnyEvaluation,
  type EvaluableModel,
  type OpenedModel,
  type Snapshot,
  type SystemPrompt,
} from "@periodic-eval/core";
import { readQuestions } from "@periodic-eval/data";
import { checkRequests } from "@periodic-eval/core/session";
import { formatInterval, formatSeconds, formatValue } from "@periodic-eval/dashboard";
import { throwAll } from "../../config/collect-errors.ts";
import { startEngine } from "../../config/open-model.ts";
import { plainTable } from "../../terminal/plain-table.ts";
import type { Colours, Terminal } from "../../terminal/terminal.ts";
import type { EvalOptions, QuestionMethod } from "./command.ts";

interface CapabilityResult {
  readonly method: QuestionMethod;
  readonly engine: string;
  readonly snapshot: Snapshot;
}

/** Measures capability with a file of questions, by each method, and prints a table or JSON. */
export async function evaluateQuestions(
  options: EvalOptions,
  methods: readonly QuestionMethod[],
  terminal: Terminal,
): Promise<void> {
  const { limit, subsampleSeed, adapter = null, tokenizer = null } = options;
  const questions = options.questions!;
  await readQuestions(questions, "--questions");
  const engine = await startEngine(options, terminal);
  const results: CapabilityResult[] = [];
  let opened: OpenedModel | null = null;
  try {
    opened = await engine.open(options.model, adapter, { tokenizer });
    const evaluations = methods.map((method) =>
      capabilityEvaluation({
        questions,
        method,
        subsample: limit === undefined ? null : { n: limit, seed: subsampleSeed },
        // The method `cloze` renders no chat.
        ...(method === "letters" && { system: systemPrompt(options.system) }),
      }),
    );
    await checkAbilities(evaluations, opened.model);
    for (const [at, method] of methods.entries()) {
      const { snapshot } = await measure(evaluations[at]!, opened.model);
      results.push({ method, engine: engine.name, snapshot });
    }
  } finally {
    await opened?.dispose?.();
    await engine.dispose();
  }
  terminal.out(options.json ? capabilityJson(results) : capabilityTable(results, terminal.colours));
}

/** A server may lack what a later evaluation needs. */
async function checkAbilities(evaluations: readonly AnyEvaluation[], model: EvaluableModel): Promise<void> {
  if (model.isServed !== true) return;
  const callbacks = evaluations.map((one) => ({ id: "eval", asks: [one] }));
  throwAll(await checkRequests({ callbacks, model }));
}

export function systemPrompt(value: string): SystemPrompt {
  if (value === "omit" || value === "no_system_block") return value;
  return { text: value === "empty" ? "" : value };
}

const columns = [
  { words: "method" },
  "accuracy",
  "95 % interval",
  "n",
  "p(gold)",
  "truncated",
  "template failures",
  "label collisions",
  "time",
  { words: "engine" },
];

/** Returns a table with one row per method. */
function capabilityTable(results: readonly CapabilityResult[], colours: Colours): string {
  const count = (value: unknown) => (typeof value === "number" ? String(value) : "–");
  const rows = results.map(({ method, engine, snapshot }) => {
    const { accuracy, gold_prob: gold } = snapshot.metrics;
    return [
      method,
      formatValue(accuracy?.value, "share"),
      formatInterval(accuracy?.ci95, "share"),
      count(snapshot["total"]),
      formatValue(gold?.value, "probability"),
      count(snapshot["truncated"]),
      count(snapshot["template_failures"]),
      count(snapshot["label_collisions"]),
      formatSeconds(snapshot.timing.measure_seconds),
      engine,
    ];
  });
  return plainTable(columns, rows, colours);
}

function capabilityJson(results: readonly CapabilityResult[]): string {
  const documents = results.map(({ method, snapshot }) => ({ method, ...snapshot }));
  return JSON.stringify(documents, null, 2);
}
