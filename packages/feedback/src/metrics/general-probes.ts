import { runInSandbox, type SandboxResult } from "../sandbox/run-in-sandbox.ts";

/** A prompt that tests general ability, with its scorer. */
export interface GeneralProbe {
  readonly id: string;
  readonly kind: "coding" | "instruction";
  readonly prompt: string;
  /** Returns a score from 0 to 1, and the reason if it is below 1. */
  score(answer: string): Promise<{ readonly score: number; readonly raw: string | null }>;
}

/** Calls of the requested function, with their correct results. */
const fibonacci: readonly (readonly [call: string, value: number])[] = [
  ["fibonacci(0)", 0],
  ["fibonacci(1)", 1],
  ["fibonacci(2)", 1],
  ["fibonacci(7)", 13],
  ["fibonacci(20)", 6765],
];

/** Returns the code of an answer, without `export`: its last fenced block, or the whole answer if it has none. */
export function codeOf(answer: string): string {
  const blocks = [...answer.matchAll(/```[^\n`]*\n(.*?)(?:```|$)/gs)];
  return (blocks.at(-1)?.[1] ?? answer).replaceAll(
    /^export\s+(?:default\s+)?(?=(?:async\s+)?function|const|let|var|class)/gm,
    "",
  );
}

const scoreOf = (result: SandboxResult): { score: number; raw: string | null } => {
  if (!result.ok) return { score: 0, raw: result.reason };
  const wrong = fibonacci.flatMap(([call, value], at) =>
    Object.is(result.values[at], value) ? [] : [`${call} is ${String(result.values[at])}, not ${value}`],
  );
  return { score: 1 - wrong.length / fibonacci.length, raw: wrong[0] ?? null };
};

const instruction = (id: string, prompt: string, fault: (answer: string) => string | null): GeneralProbe => ({
  id,
  kind: "instruction",
  prompt,
  async score(answer) {
    const raw = fault(answer.trim());
    return { score: raw === null ? 1 : 0, raw };
  },
});

/** One coding task, whose code runs in the sandbox, and three instructions that a program can check. */
export const generalProbes: readonly GeneralProbe[] = [
  {
    id: "fibonacci",
    kind: "coding",
    prompt:
      "Write a function fibonacci(n) in JavaScript that returns the nth Fibonacci number, where fibonacci(0) is 0 and " +
      "fibonacci(1) is 1. Answer with the code alone.",
    score: async (answer) =>
      scoreOf(
        await runInSandbox(
          codeOf(answer),
          fibonacci.map(([call]) => call),
        ),
      ),
  },
  instruction(
    "three_lines",
    "Name three fruits. Write each on a line of its own that begins with a dash, and nothing else.",
    (answer) => {
      const lines = answer.split("\n").filter((line) => line.trim() !== "");
      if (lines.length !== 3) return `${lines.length} lines`;
      return lines.every((line) => /^- ?\p{L}/u.test(line.trim())) ? null : "a line without a dash";
    },
  ),
  instruction("capitals", "What is the opposite of hot? Answer in capital letters only.", (answer) => {
    if (!/\p{L}/u.test(answer)) return "no letter";
    return /\p{Ll}/u.test(answer) ? "small letters" : null;
  }),
  instruction("last_word", "Write one sentence about the sea. Its last word must be blue.", (answer) =>
    /(?<!\p{L})blue["'”*]*(?:[.!]["'”*]*)?$/iu.test(answer)
      ? null
      : `the end ${JSON.stringify(answer.slice(-20))}`,
  ),
];
