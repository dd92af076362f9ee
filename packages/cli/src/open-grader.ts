import { PeriodicEvalError, type Grader } from "@periodic-eval/core";

/** Makes the judge that a text names. */
export type OpenGrader = (spec: string) => Promise<Grader>;

/**
 * Opens a judge by its name: `rule:micro-world` is the offline rules of the embedded model.
 *
 * @throws PeriodicEvalError `config` for a name that is none.
 */
export const openGrader: OpenGrader = async (spec) => {
  if (/^rule:micro-world(@1)?$/.test(spec)) {
    const { microWorldGrader } = await import("./micro-world-grader.ts");
    return microWorldGrader();
  }
  // Judge models are opened here.
  throw new PeriodicEvalError({
    code: "config",
    where: "--judge",
    got: JSON.stringify(spec),
    expected: '"rule:micro-world"',
    fix: 'Write "rule:micro-world".',
  });
};
