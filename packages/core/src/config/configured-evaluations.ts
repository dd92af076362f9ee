import type { ValuePath, AnyEvaluation, Awaitable, Trigger } from "@periodic-eval/contracts";
import { PeriodicCallback } from "../callback/periodic-callback.ts";
import { withItems } from "../evaluations/kit/with-items.ts";
import { entryAt, fromWritten, configError, pathText, nearest } from "@periodic-eval/contracts/options";
import type { PhaseEvalConfig } from "./config-schema.ts";
import { blockName } from "./parse-config.ts";

/**
 * Creates an evaluation from an entry of `evaluations`, without the keys that all kinds share (`id`, `every_percent`,
 * `schedule`). The `path` of its errors is within `options`.
 *
 * @param where The entry's place, for errors: `periodic_eval.evaluations[0]`. The name of a key follows after a dot.
 */
export type EvaluationMaker = (
  options: Readonly<Record<string, unknown>>,
  where: string,
) => Awaitable<AnyEvaluation>;

/** Kinds of evaluations, by the key that names the evaluation in an entry: `task` in `{ task: gsm8k, limit: 50 }`. */
export type EvaluationRegistry = Readonly<Record<string, EvaluationMaker>>;

type Entry = PhaseEvalConfig["evaluations"][number];

interface ConfiguredOptions {
  /** Where the block holds the entries: `["evaluations"]`. */
  readonly path: ValuePath;
  readonly kinds: EvaluationRegistry;
  readonly scheduleOf: (entry: Entry) => readonly Trigger[];
  /** Ids of the other callbacks. */
  readonly taken: readonly string[];
}

/**
 * Creates the callbacks of the entries of `evaluations`.
 *
 * @throws PeriodicEvalError `config` for an entry of no kind or of two kinds, or an id that another callback has; the errors of
 *   `EvaluationMaker`, with the entry's path.
 */
export async function configuredCallbacks(
  entries: readonly Entry[],
  { path: base, kinds, scheduleOf, taken }: ConfiguredOptions,
): Promise<readonly PeriodicCallback[]> {
  const callbacks: PeriodicCallback[] = [];
  for (const [at, entry] of entries.entries()) {
    const path = [...base, at];
    const { id, every_percent: _percent, schedule: _schedule, ...keys } = entry;
    // Null means the default, whatever the kind of evaluation.
    const options = Object.fromEntries(Object.entries(keys).filter(([, value]) => value !== null));
    const make = kinds[kindOf(options, kinds, path)]!;
    const place = `${blockName}${pathText(path)}`;
    const written = entryAt(options, place, path);
    const schedule = scheduleOf(entry);
    const callback = await fromWritten(written, async () => {
      const made = await make(options, place);
      const evaluation = withItems(made, (model) => fromWritten(written, () => made.items(model)));
      return new PeriodicCallback(evaluation, { schedule, ...(id !== undefined && { id }) });
    });
    if ([...taken, ...callbacks.map((one) => one.id)].includes(callback.id))
      throw configError({
        where: blockName,
        path,
        got: `"${callback.id}", the name of another evaluation`,
        expected: "unique names",
        fix: "Set an id: it names the snapshots.",
      });
    callbacks.push(callback);
  }
  return callbacks;
}

function kindOf(
  options: Readonly<Record<string, unknown>>,
  kinds: EvaluationRegistry,
  path: ValuePath,
): string {
  const known = Object.keys(kinds);
  const given = Object.keys(options);
  const wrong = (details: { got: string; expected: string; fix: string }) =>
    configError({ where: blockName, path, ...details });
  if (known.length === 0)
    throw wrong({
      got: "an evaluation, and no registry that creates it",
      expected: "the option `evaluations` of buildPeriodicEval",
      fix: "Pass `evaluationsOf(tasks)` of @periodic-eval/tasks, or custom makers by name.",
    });
  const expected = `one of ${known.join(", ")}`;
  const named = given.filter((key) => known.includes(key));
  if (named.length === 1) return named[0]!;
  if (named.length > 1) throw wrong({ got: named.join(" and "), expected, fix: "Write one entry for each." });
  const guess = given.map((key) => nearest(key, known)).find((one) => one !== null);
  throw wrong({
    got: given.length === 0 ? "no kind" : given.join(", "),
    expected,
    fix: guess === undefined ? `Name the evaluation, as ${known[0]}: name.` : `Did you mean "${guess}"?`,
  });
}
