import { PeriodicEvalError, type ConfiguredJudge, type Grader } from "@periodic-eval/core";
import { nearest, quoteValue } from "@periodic-eval/core/internal";
import { fileVerdictCache } from "@periodic-eval/core/snapshots";
import type { openJudge } from "@periodic-eval/remote";
import { join } from "node:path";

/** Of a judge model; rules ask nobody. */
export interface GraderLimits extends Partial<ConfiguredJudge> {
  /** Verdicts are kept in `<runDir>/verdicts`, each as it comes: what was paid for once is not asked again. `cache` goes before. */
  readonly runDir?: string;
}

/** Rules of ours, offline, by name. */
const rules: Readonly<Record<string, () => Promise<Grader>>> = {
  "rule:micro-world": async () => (await import("../demo/grader.ts")).microWorldGrader(),
};

/**
 * Opens a judge by its name: `rule:micro-world` is the offline rules of the embedded model, all else a judge model as
 * `openJudge` of @periodic-eval/remote names it (`anthropic:…`, `openai:…`). Null is what JUDGE_MODEL names.
 *
 * @throws PeriodicEvalError `config` for a name that is none, or a key that the environment lacks.
 */
export async function openGrader(
  spec: string | null,
  { runDir, ...judge }: GraderLimits = {},
  open?: typeof openJudge,
): Promise<Grader> {
  const rule = await openRule(spec);
  if (rule !== null) return rule;
  const opener = open ?? (await import("@periodic-eval/remote")).openJudge;
  const cache = runDir === undefined ? {} : { cache: fileVerdictCache(join(runDir, "verdicts")) };
  return opener(spec, { ...cache, ...judge });
}

/**
 * The rule that a name or JUDGE_MODEL tells; null for that of a judge model.
 *
 * @throws PeriodicEvalError `config` for a rule that there is not.
 */
export async function openRule(spec: string | null): Promise<Grader | null> {
  const name = (spec ?? "").trim() || (process.env["JUDGE_MODEL"] ?? "").trim();
  if (!name.startsWith("rule:")) return null;
  const known = Object.keys(rules);
  const rule = rules[name.replace(/@1$/, "")];
  if (rule !== undefined) return rule();
  const guess = nearest(name, known);
  throw new PeriodicEvalError({
    code: "config",
    where: "judge model",
    got: quoteValue(name),
    expected: `a rule that there is: ${known.join(", ")}`,
    fix:
      guess === null
        ? 'Name it, or a judge model ("openai:MODEL", "anthropic:MODEL").'
        : `Did you mean "${guess}"?`,
  });
}
