import type { Grader } from "@periodic-eval/core";
import { fileVerdictCache } from "@periodic-eval/core/snapshots";
import type { openJudge, OpenJudgeOptions } from "@periodic-eval/remote";
import { join } from "node:path";

/** Of a judge model; rules ask nobody. */
export interface GraderLimits extends Pick<OpenJudgeOptions, "method" | "maxCalls"> {
  /** Verdicts are kept in `<runDir>/verdicts`, each as it comes: what was paid for once is not asked again. */
  readonly runDir?: string;
}

/**
 * Opens a judge by its name: `rule:micro-world` is the offline rules of the embedded model, all else a judge model as
 * `openJudge` of @periodic-eval/remote names it (`anthropic:…`, `openai:…`).
 *
 * @throws PeriodicEvalError `config` for a name that is none, or a key that the environment lacks.
 */
export async function openGrader(
  spec: string,
  { runDir, ...judge }: GraderLimits = {},
  open?: typeof openJudge,
): Promise<Grader> {
  if (/^rule:micro-world(@1)?$/.test(spec)) {
    const { microWorldGrader } = await import("./micro-world-grader.ts");
    return microWorldGrader();
  }
  const opener = open ?? (await import("@periodic-eval/remote")).openJudge;
  const cache = runDir === undefined ? {} : { cache: fileVerdictCache(join(runDir, "verdicts")) };
  return opener(spec, { ...judge, ...cache });
}
