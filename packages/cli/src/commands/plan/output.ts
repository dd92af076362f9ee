import { formatSeconds } from "@periodic-eval/dashboard";
import { jsonText, plainTable, type Colours } from "../../terminal/terminal.ts";
import { promptText, type DisplayToken, type Plan, type PlannedCallback } from "./plan-block.ts";

const columns = [
  { words: "callback" },
  { words: "steps" },
  "measurements",
  "items",
  "seconds each",
  "tokens each",
  "judged each",
];

/** Returns a table per phase, with the total measuring time below it, and then each prompt. */
export function planTables({ callbacks: planned, stepTimes }: Plan, colours: Colours): string {
  const phases = [...new Set(planned.map(({ phase }) => phase))];
  const prompts = planned.flatMap(({ id, prompt }) =>
    prompt === null ? [] : [promptSection(id, prompt, colours)],
  );
  const tables = phases.map((phase) => {
    const callbacks = planned.filter((callback) => callback.phase === phase);
    return [
      colours.bold(phase),
      plainTable(columns, callbacks.map(planRow), colours),
      totalText(callbacks),
      ...(stepTimes[phase] == null ? [] : [stepTimes[phase]]),
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

function planRow({ id, steps, measurement }: PlannedCallback): string[] {
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
export const planJson = (plan: Plan, config: string): string => jsonText({ config, ...plan });
