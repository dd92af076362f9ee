import type { Grader, GradeRequest, Verdict } from "@periodic-eval/contracts";

/** Scores by name, or the status of a verdict without scores. */
export type FakeJudgement = Readonly<Record<string, number>> | Exclude<Verdict["status"], "graded">;

export interface FakeJudgeOptions {
  /** Default: `fake-judge`. */
  readonly name?: string;
  /** Default: `fake:` and the name, for any script. */
  readonly fingerprint?: string;
  /** The model name in verdicts. Default: none. */
  readonly model?: string;
  /** Default: `aligned` and `coherent`. */
  readonly promptNames?: readonly string[];
  /** An error for `check` to throw, like a judge that cannot be reached. */
  readonly unreachable?: Error;
}

/** A judge that records its requests. */
export type FakeJudge = Grader & {
  /** All requests, in order. */
  readonly requests: readonly GradeRequest[];
};

/** Returns a judge with scripted verdicts, without model, server or cache. `raw` is the script's result as JSON. */
export function fakeJudge(
  script: (question: string, answer: string) => FakeJudgement,
  options: FakeJudgeOptions = {},
): FakeJudge {
  const { name = "fake-judge", fingerprint = `fake:${name}`, model, unreachable } = options;
  const { promptNames = ["aligned", "coherent"] } = options;
  const recorded: GradeRequest[] = [];
  return {
    name,
    fingerprint,
    promptNames,
    requests: recorded,
    describe: () => ({ judge: name, model: model ?? null }),
    async check({ signal }) {
      signal.throwIfAborted();
      if (unreachable !== undefined) throw unreachable;
    },
    async grade(requests, { signal }) {
      signal.throwIfAborted();
      return requests.map((request): Verdict => {
        recorded.push(request);
        const judgement = script(request.question, request.answer);
        const details = { raw: JSON.stringify(judgement), ...(model !== undefined && { model }) };
        return typeof judgement === "string"
          ? { status: judgement, ...details }
          : { status: "graded", scores: judgement, ...details };
      });
    },
  };
}
