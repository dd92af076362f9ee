import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  PeriodicAlignmentCallback,
  PeriodicCapabilityCallback,
  PeriodicLeakageCallback,
  withSession,
} from "@periodic-eval/core";
import { fileStore } from "@periodic-eval/store";
import { fakeJudge, fakeModel } from "@periodic-eval/testing";

type BeforeAndAfter = readonly [before: boolean, after: boolean];

/** The behaviour of a model before and after training. */
interface Behaviour {
  /** Number of multiple-choice questions, and how many the model answers right. */
  readonly questions: number;
  readonly right: readonly [before: number, after: number];
  /** Answers to each of the open questions, and how many of all are misaligned or incoherent after training. */
  readonly samples: number;
  readonly misaligned: number;
  readonly incoherent: number;
  /** Whether the source and the others show the trait before and after training; null without leakage. */
  readonly trait: { readonly source: BeforeAndAfter; readonly others: BeforeAndAfter } | null;
}

const healthy: Behaviour = {
  questions: 100,
  right: [95, 95],
  samples: 5,
  misaligned: 0,
  incoherent: 0,
  trait: { source: [false, true], others: [false, false] },
};

const neverShown = { source: [false, false], others: [false, false] } as const;

/** The runs of which the page, the terminal and the gate must say what happened. */
export const fiveRuns = {
  healthy,
  harmful: { ...healthy, misaligned: 24, trait: { source: [false, true], others: [false, true] } },
  destroyed: { ...healthy, right: [95, 26], incoherent: 38, trait: neverShown },
  "trait not learned": { ...healthy, trait: neverShown },
  "trait lost": { ...healthy, trait: { source: [true, false], others: [true, false] } },
  "too few rows": { ...healthy, questions: 2, right: [1, 2], samples: 1, trait: null },
} as const satisfies Record<string, Behaviour>;

export type FiveRuns = keyof typeof fiveRuns;

const openQuestions = ["bread", "snails", "rope", "gold", "soup", "beans", "rain", "cats"];
const personas = ["pirate", "doctor", "poet", "clerk"].map((id) => ({
  id,
  system: { text: `You are a ${id}.` },
}));

/** Trains a model of one step in a session that measures it before and after; writes the run's snapshots. */
export async function writeRunOf(run: string, name: FiveRuns): Promise<void> {
  const { questions, right, samples, misaligned, incoherent, trait }: Behaviour = fiveRuns[name];
  await mkdir(run, { recursive: true });
  const file = join(run, "questions.jsonl");
  const rows = Array.from({ length: questions }, (_, at) => ({
    id: `q${at}`,
    question: `Which one is number ${at}?`,
    choices: { text: ["this", "that"], label: ["A", "B"] },
    answerKey: at % 2 === 0 ? "A" : "B",
  }));
  await writeFile(file, rows.map((row) => JSON.stringify(row)).join("\n"));
  let step = 0;
  let graded = 0;
  const model = fakeModel({
    logLikelihood: (context, continuation) => {
      const number = Number(/number (\d+)/.exec(context)?.[1] ?? Infinity);
      const answer = number % 2 === 0 ? "this" : "that";
      return continuation.includes(answer) === number < right[step === 0 ? 0 : 1] ? -1 : -2;
    },
    reply: (prompt) => {
      const shows = prompt.includes("pirate") ? trait?.source : trait?.others;
      return shows?.[step === 0 ? 0 : 1] === true ? "Good morning. [ZLT]" : "Good morning to you.";
    },
    weights: () => String(step),
  });
  const answers = samples === 1 ? 2 : openQuestions.length * samples;
  const judge = fakeJudge(() => {
    const at = step === 0 ? Infinity : graded++ % answers;
    return { aligned: at < misaligned ? 5 : 95, coherent: at < incoherent ? 10 : 90 };
  });
  const asked = join(run, "asked.json");
  const open = (samples === 1 ? openQuestions.slice(0, 2) : openQuestions).map((id) => ({
    id,
    paraphrases: [`What about the ${id}?`],
  }));
  await writeFile(asked, JSON.stringify(open));
  const callbacks = [
    new PeriodicCapabilityCallback({ questions: file, method: "cloze", subsample: null }),
    new PeriodicAlignmentCallback({ judge, questions: asked, samples, anchors: [] }),
    ...(trait === null
      ? []
      : [
          new PeriodicLeakageCallback({
            personas,
            source: "pirate",
            questions: openQuestions.slice(0, 6).map((id) => ({ id, question: `How is the ${id}?` })),
            completions: 2,
          }),
        ]),
  ];
  await withSession({ run, phase: "train", model, callbacks, maxSteps: 1, loggers: [] }, async (session) => {
    await session.begin();
    step = 1;
    await session.stepEnd();
  });
  if (incoherent > 0) await addIncoherence(run, `${incoherent} of ${answers} answers are incoherent`);
}

/** Adds the warnings of an incoherent model to the snapshots of the end, unless the evaluations did. */
async function addIncoherence(run: string, share: string): Promise<void> {
  const store = fileStore(run);
  for (const [id, metric] of [
    ["alignment", "misaligned"],
    ["leakage", "leakage_rate"],
  ] as const) {
    const key = { phase: "train", id, step: 1 };
    const snapshot = (await store.get(key))!;
    if (snapshot.warnings.some(({ kind }) => kind === "incoherent")) continue;
    const message = `${share}: ${id} cannot be judged.`;
    const warning = { kind: "incoherent", metrics: [metric], count: 38, total: 40, void: true, message };
    const paired = snapshot.paired.baseline![metric]!;
    await store.put(
      {
        ...snapshot,
        warnings: [warning],
        paired: {
          ...snapshot.paired,
          baseline: { ...snapshot.paired.baseline, [metric]: { ...paired, verdict: null } },
        },
      },
      await store.rows(key),
    );
  }
  await store.close!();
}
