import { join } from "node:path";
import { nearest, quoteValue } from "@periodic-eval/contracts/options";
import {
  PeriodicEvalError,
  type BuildOptions,
  type ConfiguredJudge,
  type Grader,
  type EvaluationRegistry,
  buildPeriodicEval,
  type PeriodicEval,
} from "@periodic-eval/core";
import { judgeSpec, parseLocalJudge } from "@periodic-eval/contracts/options";
import type { openJudge } from "@periodic-eval/remote";
import { fileVerdictCache } from "@periodic-eval/store";
import type { OpenPairJudge, TaskRegistry } from "@periodic-eval/tasks";

/** Options of a judge model; rules ignore them. */
export interface GraderOptions extends Partial<ConfiguredJudge> {
  /** Caches verdicts in `<runDir>/verdicts`, so that each is paid for once. `cache` takes precedence. */
  readonly runDir?: string;
}

/** Offline graders, by name. */
const rules: Readonly<Record<string, () => Promise<Grader>>> = {
  "rule:micro-world": async () => (await import("../demo/micro-world.ts")).microWorldGrader(),
};

/**
 * Opens a grader by name: `rule:micro-world` is the offline grader of the embedded model; `folder:…`, `hf:…` and
 * `transformers:…` are judge models that run in this process; any other name is one that `openJudge` of @periodic-eval/remote
 * opens (`anthropic:…`, `openai:…`). Null reads the name from JUDGE_MODEL.
 *
 * @throws PeriodicEvalError `config` for an unknown name or a missing API key.
 */
export async function openGrader(
  spec: string | null,
  { runDir, ...judge }: GraderOptions = {},
  open?: typeof openJudge,
): Promise<Grader> {
  const rule = await openRule(spec, judge.scores);
  if (rule !== null) return rule;
  const cache = runDir === undefined ? {} : { cache: fileVerdictCache(join(runDir, "verdicts")) };
  const options = { ...cache, ...judge };
  const name = judgeSpec(spec);
  if (open === undefined && name !== null && parseLocalJudge(name) !== null)
    return (await import("@periodic-eval/models")).openLocalJudge(name, options);
  const opener = open ?? (await import("@periodic-eval/remote")).openJudge;
  return opener(spec, options);
}

/**
 * Opens the rule that a name (or JUDGE_MODEL) starting with `rule:` names. Returns null for a judge model.
 *
 * @param scores The scores that it must give, if they are not those of alignment.
 * @throws PeriodicEvalError `config` for an unknown rule, or for other scores.
 */
export async function openRule(spec: string | null, scores?: readonly string[]): Promise<Grader | null> {
  const name = judgeSpec(spec);
  if (!name?.startsWith("rule:")) return null;
  if (scores !== undefined)
    throw new PeriodicEvalError({
      code: "config",
      where: "judge model",
      path: ["judge_model"],
      got: `${quoteValue(name)}, a rule for alignment`,
      expected: `a judge model for ${scores.join(", ")}`,
      fix: 'Name one ("openai:MODEL", "anthropic:MODEL", "folder:PATH"), or remove the key.',
    });
  const known = Object.keys(rules);
  const rule = rules[name.replace(/@1$/, "")];
  if (rule !== undefined) return rule();
  const guess = nearest(name, known);
  throw new PeriodicEvalError({
    code: "config",
    where: "judge model",
    path: ["judge_model"],
    got: quoteValue(name),
    expected: `a known rule: ${known.join(", ")}`,
    fix:
      guess === null
        ? 'Name a known rule or a judge model ("openai:MODEL", "anthropic:MODEL", "folder:PATH").'
        : `Did you mean "${guess}"?`,
  });
}

/** Loads the tasks that commands can name. Lazy, because most commands need no task. */
export type LoadTasks = () => Promise<TaskRegistry>;

export const loadTasks: LoadTasks = async () => (await import("@periodic-eval/tasks")).tasks;

/** Loads the evaluations that entries of `evaluations` in a `periodic_eval` block or a suite can name. */
export async function loadEvaluations(tasks: LoadTasks): Promise<EvaluationRegistry> {
  const { evaluationsOf } = await import("@periodic-eval/tasks");
  const { feedbackEvaluations } = await import("@periodic-eval/feedback");
  const openJudge: OpenPairJudge = (spec, options) => openGrader(spec, options);
  return { ...evaluationsOf(await tasks(), { openJudge }), ...feedbackEvaluations };
}

/**
 * Builds a `periodic_eval` block for a phase, with the judges and evaluations of this program. Judges keep their verdicts in the
 * run's folder.
 */
export const buildBlock = async (
  block: unknown,
  tasks: LoadTasks,
  { runDir, ...phase }: { readonly runDir: string } & Pick<BuildOptions, "phase" | "phases" | "canMeasureOn">,
): Promise<PeriodicEval> =>
  buildPeriodicEval(
    { periodic_eval: block },
    {
      ...phase,
      openJudge: (model, options) => openGrader(model, { runDir, ...options }),
      evaluations: await loadEvaluations(tasks),
    },
  );
