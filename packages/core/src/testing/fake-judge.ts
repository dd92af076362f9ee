import type { Grader, GradeRequest, Verdict } from "../contracts/grading.ts";

/** Scores by name, or why there are none. */
export type FakeJudgement = Readonly<Record<string, number>> | Exclude<Verdict["status"], "graded">;

export interface FakeJudgeOptions {
  /** Default `fake-judge`. */
  readonly name?: string;
  /** Default `fake:` and the name: the same whatever is scripted. */
  readonly fingerprint?: string;
  /** What the verdicts say they are from; none where left out. */
  readonly model?: string;
  /** Default `aligned` and `coherent`. */
  readonly promptNames?: readonly string[];
  /** Thrown by `check`, as by a judge that cannot be reached. */
  readonly unreachable?: Error;
}

/** A judge, and what it was asked. */
export type FakeJudge = Grader & {
  /** In the order asked, over all calls. */
  readonly requests: readonly GradeRequest[];
};

/** A judge that says what the script says, at once: no model, no server, no cache. `raw` is the script's answer as JSON. */
export function fakeJudge(
  script: (question: string, answer: string) => FakeJudgement,
  options: FakeJudgeOptions = {},
): FakeJudge {
  const { name = "fake-judge", fingerprint = `fake:${name}`, model, unreachable } = options;
  const { promptNames = ["aligned", "coherent"] } = options;
  const asked: GradeRequest[] = [];
  return {
    name,
    fingerprint,
    promptNames,
    requests: asked,
    describe: () => ({ judge: name, model: model ?? null }),
    async check({ signal }) {
      signal.throwIfAborted();
      if (unreachable !== undefined) throw unreachable;
    },
    async grade(requests, { signal }) {
      signal.throwIfAborted();
      return requests.map((request): Verdict => {
        asked.push(request);
        const judgement = script(request.question, request.answer);
        const said = { raw: JSON.stringify(judgement), ...(model !== undefined && { model }) };
        return typeof judgement === "string"
          ? { status: judgement, ...said }
          : { status: "graded", scores: judgement, ...said };
      });
    },
  };
}
