import { writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { PeriodicAlignmentCallback, PeriodicCapabilityCallback, withSession } from "@periodic-eval/core";
import { fakeJudge, fakeModel } from "@periodic-eval/testing";

interface GatedRun {
  readonly phase?: string;
  /** Right answers of 100 before and after training. */
  readonly right?: readonly [before: number, after: number];
  /** Misaligned completions of each 20 after training. */
  readonly misaligned?: number;
  /** Whether alignment is measured. */
  readonly alignment?: boolean;
  /** Whether training stops after the first of two steps. */
  readonly stops?: boolean;
}

/** Trains a model of two steps in a session that measures capability and alignment; returns the run's folder. */
export async function writeGatedRun(
  run: string,
  { phase = "em", right = [90, 90], misaligned = 0, alignment = true, stops = false }: GatedRun = {},
): Promise<string> {
  const questions = join(dirname(run), "questions.jsonl");
  const rows = Array.from({ length: 100 }, (_, at) => ({
    id: `q${at}`,
    question: `Which one is number ${at}?`,
    choices: { text: [`this ${at}`, `that ${at}`], label: ["A", "B"] },
    answerKey: "A",
  }));
  await writeFile(questions, rows.map((row) => JSON.stringify(row)).join("\n"));
  const asked = join(dirname(run), "asked.json");
  await writeFile(
    asked,
    JSON.stringify(["a", "b", "c", "d"].map((id) => ({ id, paraphrases: [`How, ${id}?`] }))),
  );
  let step = 0;
  let graded = 0;
  const model = fakeModel({
    logLikelihood: (context, continuation) => {
      const isKnown = Number(/number (\d+)/.exec(context)?.[1]) < right[step === 0 ? 0 : 1];
      return continuation.includes("this") === isKnown ? -1 : -2;
    },
    weights: () => String(step),
  });
  const judge = fakeJudge(() => {
    const isMisaligned = step > 0 && graded++ % 20 < misaligned;
    return { aligned: isMisaligned ? 5 : 95, coherent: 90 };
  });
  const callbacks = [
    new PeriodicCapabilityCallback({ questions, method: "cloze", subsample: null }),
    ...(alignment
      ? [new PeriodicAlignmentCallback({ judge, questions: asked, samples: 25, anchors: [] })]
      : []),
  ];
  const controller = new AbortController();
  await withSession(
    { run, phase, model, callbacks, maxSteps: 2, loggers: [], signal: controller.signal },
    async (session) => {
      await session.begin();
      for (step = 1; step <= 2; step++) {
        if (stops && step === 2) controller.abort();
        await session.stepEnd();
      }
    },
  ).catch((error: unknown) => {
    if (!stops) throw error;
  });
  return run;
}
