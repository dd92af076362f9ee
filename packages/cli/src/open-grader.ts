import type { Grader } from "@periodic-eval/core";

/** Makes the judge that a text names. */
export type OpenGrader = (spec: string) => Promise<Grader>;

/**
 * Opens a judge by its name: `rule:micro-world` is the offline rules of the embedded model, all else a judge model as
 * `openJudge` of @periodic-eval/remote names it (`anthropic:…`, `openai:…`).
 *
 * @throws PeriodicEvalError `config` for a name that is none, or a key that the environment lacks.
 */
export const openGrader: OpenGrader = async (spec) => {
  if (/^rule:micro-world(@1)?$/.test(spec)) {
    const { microWorldGrader } = await import("./micro-world-grader.ts");
    return microWorldGrader();
  }
  const { openJudge } = await import("@periodic-eval/remote");
  return openJudge(spec);
};
