import { formatSeconds } from "@periodic-eval/dashboard";
import { jsonText, plainTable, type Colours } from "../../terminal/terminal.ts";
import { promptText, type DisplayToken, type PlannedCallback } from "./plan-block.ts";

/** Rough averages for English text and for the judge's own prompt. */
const charactersPerToken = 4;
const promptTokens = 450;

/** Requests per answer, each with question and answer in it, and tokens per reply. */
const judging = {
  json: { prompts: 1, replyTokens: 60 },
  logprob: { prompts: 2, replyTokens: 1 },
  rule: { prompts: 0, replyTokens: 0 },
};

/** Estimates the judge's cost of one measurement. Returns null if nothing is judged or the price is unknown. */
function measurementCost({ measurement }: PlannedCallback): number | null {
  if (measurement === null || measurement.judged === 0) return null;
  if (measurement.judgeMethod === "rule") return 0;
  const { inputPerMillion, outputPerMillion } = measurement.judgePrice ?? {};
  if (inputPerMillion === undefined || outputPerMillion === undefined) return null;
  const { prompts, replyTokens } = judging[measurement.judgeMethod];
  const input = measurement.judged * promptTokens + measurement.judgedCharacters / charactersPerToken;
  return (prompts * (input * inputPerMillion + measurement.judged * replyTokens * outputPerMillion)) / 1e6;
}

const columns = [
  { words: "callback" },
  { words: "steps" },
  "measurements",
  "items",
  "seconds each",
  "tokens each",
  "judged each",
  "total cost",
];

/** Returns a table per phase, with the total measuring time below it, and then each prompt. */
export function planTables(planned: readonly PlannedCallback[], colours: Colours): string {
  const phases = [...new Set(planned.map(({ phase }) => phase))];
  const prompts = planned.flatMap(({ id, prompt }) =>
    prompt === null ? [] : [promptSection(id, prompt, colours)],
  );
  const tables = phases.map((phase) => {
    const callbacks = planned.filter((one) => one.phase === phase);
    return [
      colours.bold(phase),
      plainTable(columns, callbacks.map(planRow), colours),
      totalText(callbacks),
    ].join("\n");
  });
  return [...tables, ...new Set(prompts)].join("\n\n");
}

const promptSection = (
  id: string,
  prompt: readonly DisplayToken[],
  { bold, dim, magenta }: Colours,
): string =>
  `${bold(`first prompt of ${id}`)}  ${prompt.length} tokens\n${promptText(prompt, { special: magenta, bar: dim })}`;

const missingValue = "–";

function planRow(one: PlannedCallback): string[] {
  const { id, steps, measurement } = one;
  const cost = measurementCost(one);
  const number = (value: number | null | undefined) =>
    value == null ? missingValue : value.toLocaleString("en");
  return [
    id,
    steps === null ? "by epochs or seconds" : shortList(steps),
    steps === null ? missingValue : String(steps.length),
    number(measurement?.items),
    measurement === null ? missingValue : formatSeconds(measurement.seconds),
    number(measurement?.tokens),
    number(measurement?.judged),
    cost === null || steps === null ? missingValue : (cost * steps.length).toFixed(2),
  ];
}

/** Returns `0, 20, 40, … 100`. */
const shortList = (steps: readonly number[]): string =>
  steps.length <= 8 ? steps.join(", ") : `${steps.slice(0, 5).join(", ")}, … ${steps.at(-1)}`;

function totalText(planned: readonly PlannedCallback[]): string {
  const known = planned.filter(({ steps, measurement }) => steps !== null && measurement !== null);
  if (known.length === 0) return "Pass a model (--model) to estimate what a measurement costs.";
  const seconds = known.reduce(
    (sum, { steps, measurement }) => sum + steps!.length * measurement!.seconds,
    0,
  );
  return `about ${formatSeconds(seconds)} of measuring if the budget shortens nothing`;
}

/** Returns the plan as JSON. */
export function planJson(planned: readonly PlannedCallback[], config: string): string {
  const callbacks = planned.map((one) => {
    return { ...one, judge_cost_per_measurement: measurementCost(one) };
  });
  return jsonText({ config, callbacks });
}
