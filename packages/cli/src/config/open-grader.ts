import { PeriodicEvalError, type ConfiguredJudge, type Grader } from "@periodic-eval/core";
import { judgeSpec, parseLocalJudge } from "@periodic-eval/core/grading";
import { nearest, quoteValue } from "@periodic-eval/contracts/options";
import { fileVerdictCache } from "@periodic-eval/store";
import type { openJudge } from "@periodic-eval/remote";
import { join } from "node:path";

/** Options of a judge model; rules ignore them. */
export interface GraderOptions extends Partial<ConfiguredJudge> {
  /** Caches verdicts in `<runDir>/verdicts`, so that each is paid for once. `cache` takes precedence. */
  readonly runDir?: string;
}

/** Offline graders, by name. */
const rules: Readonly<Record<string, () => Promise<Grader>>> = {
  "rule:micro-world": async () => (await import("../demo/grader.ts")).microWorldGrader(),
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
  const rule = await openRule(spec);
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
 * @throws PeriodicEvalError `config` for an unknown rule.
 */
export async function openRule(spec: string | null): Promise<Grader | null> {
  const name = judgeSpec(spec);
  if (!name?.startsWith("rule:")) return null;
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
