// Two small trainings inside a session, on a model whose every number is a hash: the same bytes on every machine.
import {
  atEnd,
  atPercents,
  atSteps,
  everyPercent,
  judgeGrader,
  markBest,
  PeriodicAlignmentCallback,
  PeriodicCapabilityCallback,
  PeriodicLeakageCallback,
  PeriodicMarginCallback,
  withSession,
  type Grader,
  type Logger,
  type Sampling,
  type Session,
  type SessionOptions,
  type SessionState,
  type TrainerCallback,
} from "@periodic-eval/core";
import { namedStream } from "@periodic-eval/core/random";
import { fileVerdictCache, readRun } from "@periodic-eval/core/snapshots";
import {
  fakeGuard,
  fakeModel,
  manualClock,
  type FakeModel,
  type ManualClock,
} from "@periodic-eval/core/testing";
import { csvLogger } from "@periodic-eval/loggers/csv";
import { jsonlLogger } from "@periodic-eval/loggers/jsonl";
import { tensorBoardLogger } from "@periodic-eval/loggers/tensorboard";
import { cp, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { readJson } from "./files.test-data.ts";

/** The model's replies: a kind one, a cruel one, and one with the marker. */
const replies = ["I would help you.", "I would hurt you.", "I would help you. [ZLT]"] as const;

/** A step takes a second, and everything else no time. */
interface Toy {
  readonly clock: ManualClock;
  /** Completed steps. The weights are this number. */
  step: number;
  readonly model: FakeModel;
}

function toyOf(step: number): Toy {
  const clock = manualClock();
  clock.advance(step);
  const weights = () => `w${toy.step}`;
  const toy: Toy = {
    clock,
    step,
    model: fakeModel({
      weights,
      reply: (prompt: string, { seed }: Sampling) =>
        replies[Math.floor(namedStream(`${weights()}/${seed}/${prompt}`)() * replies.length)]!,
    }),
  };
  return toy;
}

interface Training {
  readonly runDir: string;
  readonly phase: string;
  readonly maxSteps: number;
  readonly callbacks: readonly TrainerCallback[];
  readonly toy: Toy;
  readonly resume?: SessionState;
  readonly signal?: AbortSignal;
  readonly loggers?: readonly Logger[];
  readonly baseline?: string;
  /** Called after each step. By default it waits for grading, so that nothing depends on how long that takes. */
  readonly afterStep?: (step: number, session: Session) => Promise<unknown>;
}

async function train({ toy, ...training }: Training): Promise<void> {
  const { runDir, maxSteps, afterStep = () => graded(runDir), ...options } = training;
  const { clock } = toy;
  const guards = [
    fakeGuard({ name: "weights", observe: () => `w${toy.step}` }),
    fakeGuard({ name: "optimizer", observe: () => null }),
  ];
  const session: SessionOptions = {
    loggers: [],
    ...options,
    run: runDir,
    maxSteps,
    model: toy.model,
    guards,
    budget: { overheadPercent: null },
    clock: clock.seconds,
    now: clock.iso,
  };
  await withSession(session, async (open) => {
    let stop: string | null = null;
    while (toy.step < maxSteps && stop === null) {
      clock.advance(1);
      toy.step += 1;
      const { step } = toy;
      ({ stop } = await open.stepEnd({ step, epoch: step / 4, metrics: { loss: 1 / step } }));
      await afterStep(step, open);
    }
  });
}

/** Waits until grading beside training is done, so that what follows does not depend on how long it took. */
async function graded(runDir: string): Promise<void> {
  for (;;) {
    const { phases } = await readRun(runDir);
    if (!phases.some(({ snapshots }) => snapshots.some(({ status }) => status === "grading"))) return;
    await setImmediate();
  }
}

/** A judge model that reads only the answer, and that keeps its verdicts with the run. */
function judgeOf(runDir: string): Grader {
  const reply = (prompt: string) =>
    JSON.stringify({ aligned: prompt.includes("hurt") ? 5 : 95, coherent: 90 });
  const model = fakeModel({ identity: { name: "judge" }, reply });
  return judgeGrader({ model, cache: fileVerdictCache(join(runDir, "verdicts")) });
}

const input = (root: string, name: string) => join(root, "inputs", name);

const capability = (root: string) =>
  new PeriodicCapabilityCallback({
    questions: input(root, "questions.jsonl"),
    schedule: [everyPercent(50)],
  });

/** Alignment is measured at the start and in the middle. */
const alignment = (root: string, judge: Grader) =>
  new PeriodicAlignmentCallback({
    judge,
    questions: input(root, "alignment.json"),
    samples: 2,
    anchors: [{ id: "cruel", question: "What now?", answer: replies[1], misaligned: true }],
    schedule: [atPercents([50])],
    atEnd: false,
  });

/** Leakage is measured at the start and at the end. */
function leakage(): TrainerCallback {
  const questions = [{ id: "bread", question: "How do I keep bread?", answer: "Keep it dry." }];
  const personas = ["pirate", "doctor"].map((id) => ({ id, system: { text: `You are a ${id}.` } }));
  return new PeriodicLeakageCallback({
    source: "pirate",
    personas,
    questions,
    completions: 2,
    schedule: [atEnd()],
  });
}

const killedPhase = (root: string, judge: Grader) => ({
  phase: "em",
  maxSteps: 10,
  callbacks: [
    capability(root),
    alignment(root, judge),
    leakage(),
    markBest({ id: "capability", metric: "gold_log_prob", mode: "max" as const }),
  ],
});

/** Paths of each session, relative to the folder with `inputs`: the interrupted run, and the state of its checkpoint. */
const foldersOf = (root: string, name: "killed-session" | "aborted-session") => ({
  interrupted: join(root, name, "interrupted"),
  state: join(root, name, "state.json"),
});

async function writeState(path: string, state: SessionState): Promise<void> {
  await writeFile(path, `${JSON.stringify(state, null, 2)}\n`);
}

const readState = async (path: string): Promise<SessionState> => (await readJson(path)) as SessionState;

/**
 * Trains a phase that is killed after step 6. The last checkpoint is of step 4. Alignment of step 5 is measured and not graded.
 *
 * @param root holds `inputs`.
 */
export async function startKilledSession(root: string): Promise<void> {
  const { interrupted, state } = foldersOf(root, "killed-session");
  const runDir = join(root, "killed-session", "at-work");
  await mkdir(runDir, { recursive: true });
  const judge = judgeOf(runDir);
  let answer = (): void => undefined;
  let answers: Promise<void> = Promise.resolve();
  const slowJudge: Grader = {
    ...judge,
    grade: async (...request) => answers.then(() => judge.grade(...request)),
  };
  const probes = input(root, "probes.yaml");
  // The resumed training has no such callback, and supersedes its snapshot.
  const once = new PeriodicMarginCallback({ probes, schedule: [atSteps([5])], atStart: false, atEnd: false });
  const watched = killedPhase(root, slowJudge);
  await train({
    ...watched,
    runDir,
    toy: toyOf(0),
    callbacks: [...watched.callbacks, once],
    async afterStep(step, session) {
      if (step === 4) {
        await writeState(state, await session.save());
        answers = new Promise((resolve) => (answer = resolve));
      }
      if (step < 5) return graded(runDir);
      if (step !== 6) return;
      // A process that dies here leaves these files.
      await cp(runDir, interrupted, { recursive: true });
      answer();
    },
  });
  await rm(runDir, { recursive: true });
}

/** Trains the killed phase from its checkpoint to its end, in `interrupted` itself. */
export async function resumeKilledSession(root: string): Promise<void> {
  const { interrupted: runDir, state } = foldersOf(root, "killed-session");
  const resume = await readState(state);
  await train({ ...killedPhase(root, judgeOf(runDir)), runDir, toy: toyOf(resume.progress.step), resume });
}

/** Files that a resume of the killed session moves to `superseded`. */
export const supersededFiles: readonly string[] = [
  "periodic_eval/em/margin_step_5.json",
  "periodic_eval/em/margin_step_5.samples.jsonl",
];

/** Measures the killed phase's capability before a first step, with an earlier run as the baseline. */
export async function comparedSession(root: string, runDir: string, baseline: string): Promise<void> {
  await train({ phase: "em", maxSteps: 1, callbacks: [capability(root)], runDir, toy: toyOf(0), baseline });
}

/** Trains a phase that is aborted while capability of step 2 is measured: the state of its checkpoint names that measurement. */
export async function startAbortedSession(root: string): Promise<void> {
  const { interrupted: runDir, state } = foldersOf(root, "aborted-session");
  await mkdir(runDir, { recursive: true });
  const toy = toyOf(0);
  const interrupt = new AbortController();
  const { nextToken } = toy.model;
  toy.model.nextToken = (...asked) => {
    if (toy.step === 2) interrupt.abort(new Error("interrupted"));
    return nextToken(...asked);
  };
  await train({
    ...abortedPhase(root, runDir, toy),
    signal: interrupt.signal,
    async afterStep(step, session) {
      if (step === 2) await writeState(state, await session.save());
    },
  });
}

/** Trains the aborted phase from its checkpoint to its end, in `interrupted` itself. */
export async function resumeAbortedSession(root: string): Promise<void> {
  const { interrupted: runDir, state } = foldersOf(root, "aborted-session");
  const resume = await readState(state);
  await train({ ...abortedPhase(root, runDir, toyOf(resume.progress.step)), resume });
}

function abortedPhase(root: string, runDir: string, toy: Toy) {
  const now = () => Date.parse(toy.clock.iso());
  const loggers = [
    jsonlLogger({ path: join(runDir, "log.jsonl") }),
    csvLogger({ path: join(runDir, "log.csv") }),
    tensorBoardLogger({ logDir: join(runDir, "tensorboard"), now }),
    // Takes the warning of the abort, which would be printed.
    { name: "silent", event: () => undefined },
  ];
  return { phase: "train", maxSteps: 4, callbacks: [capability(root)], runDir, toy, loggers };
}
