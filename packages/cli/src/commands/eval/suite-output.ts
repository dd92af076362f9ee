import type { MetricsRun, SuiteRun } from "@periodic-eval/tasks";
import { plainTable } from "../../terminal/plain-table.ts";
import type { Colours } from "../../terminal/terminal.ts";

const columns = [
  { words: "task" },
  { words: "metric" },
  { words: "filter" },
  "value",
  "± stderr",
  "n",
  "95 % interval",
];

/** Of tasks that have groups the whole only: those are counted below it. */
export function suiteTable({ run }: SuiteRun, colours: Colours): string {
  const keys = Object.keys(run.metrics);
  const told = keys.filter((key) => isWhole(key, run));
  const groups = new Set(keys.filter((key) => !told.includes(key)).map((key) => key.split("/")[0]));
  const table = plainTable(
    columns,
    told.map((key) => {
      const [, task, metric, filter] = /^([^/]+)\/([^,]+),(.+)$/.exec(key)!;
      const { [key]: interval = null } = run.ci95;
      return [
        task!,
        `${metric}${arrow(run.higher_is_better[key])}`,
        filter!,
        number(run.metrics[key]),
        number(run.stderr[key]),
        String(run.n[key] ?? unknown),
        interval === null ? unknown : `[${interval.map(number).join(", ")}]`,
      ];
    }),
    colours,
  );
  return groups.size === 0 ? table : `${table}\n${colours.dim(`and ${groups.size} groups: --json`)}`;
}

const unknown = "–";

/** As lm-evaluation-harness prints them. */
const number = (value: number | null | undefined): string => value?.toFixed(4) ?? unknown;

const arrow = (isHigherBetter: boolean | null | undefined): string =>
  isHigherBetter == null ? "" : isHigherBetter ? " ↑" : " ↓";

/** A group's entry is named after its task, which stands before it. */
function isWhole(key: string, { suite }: MetricsRun): boolean {
  const { tasks } = suite as { readonly tasks: object };
  return Object.hasOwn(tasks, key.slice(0, key.indexOf("/")));
}

/**
 * @param results the folder, null where nothing is kept.
 */
export function suiteJson({ run, measured, folder }: SuiteRun, results: string | null): string {
  return JSON.stringify({ ...run, measured, folder: results === null ? null : folder }, null, 2);
}
