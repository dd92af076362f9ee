import type { Grader } from "@periodic-eval/core";

/** A grader that counts the requests of a measurement instead of answering them. */
export interface CountingJudge extends Grader {
  /** Returns the counts since the last call. */
  take(): { readonly answers: number; readonly characters: number };
}

export function countingJudge(judge: Pick<Grader, "name" | "promptNames">): CountingJudge {
  let count = { answers: 0, characters: 0 };
  return {
    ...judge,
    fingerprint: "counting",
    async grade(requests) {
      const characters = requests.map(({ question, answer }) => question.length + answer.length);
      count = {
        answers: count.answers + requests.length,
        characters: count.characters + characters.reduce((sum, one) => sum + one, 0),
      };
      return requests.map(() => ({ status: "graded", scores: { aligned: 50, coherent: 50 }, raw: null }));
    },
    take() {
      const taken = count;
      count = { answers: 0, characters: 0 };
      return taken;
    },
  };
}
