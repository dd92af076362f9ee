import { expect, it } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import {
  type TrainerCallback,
  PeriodicEvalError,
  type AnyEvaluation,
  type Snapshot,
  type Session,
  type SessionState,
} from "@periodic-eval/contracts";
import { everyPercent } from "../../schedule/triggers.ts";
import {
  gate,
  toyEvaluation,
  toyTraining,
  type ToyTraining,
} from "../../../../testing/src/toy-training.test-data.ts";
import { openSession, withSession } from "../loop/session.ts";

const steps = async (toy: ToyTraining, session: Session, count: number) => {
  for (let step = 0; step < count; step++) {
    toy.step();
    await session.stepEnd();
  }
};

const graded = (onGrade: (signal: AbortSignal) => void | Promise<void>, atEnd = true) =>
  new PeriodicCallback(toyEvaluation({ graded: true, onGrade }), { schedule: [everyPercent(50)], atEnd });

const alphaOf = ({ paired }: Snapshot) => paired.baseline?.["hit_rate"]?.alpha ?? null;

const statuses = async (toy: ToyTraining) =>
  (await toy.store.list()).map(({ step, status }) => [step, status]);

it("records rows at once, grades them during training, and then replaces the snapshot", async () => {
  const toy = toyTraining();
  const grading = gate();
  const announced: [number, Snapshot["status"]][] = [];
  const hearing: TrainerCallback = {
    id: "hearing",
    onSnapshot: (_, { step, status }) => void announced.push([step, status]),
  };
  const session = openSession(toy.options([graded(() => grading.passed), hearing]));
  await session.begin();
  await steps(toy, session, 5);
  expect(await statuses(toy)).toEqual([
    [0, "grading"],
    [5, "grading"],
  ]);
  const [, waiting] = await toy.store.list();
  expect(waiting).toMatchObject({ metrics: {}, timing: { grade_seconds: null } });
  // One of two planned comparisons: half of 5 % is reserved before its p is known.
  expect(waiting!.paired.baseline!["hit_rate"]).toMatchObject({
    step: 0,
    alpha: 0.025,
    p_value: null,
    verdict: null,
  });
  expect((await toy.store.rows(waiting!))[0]).toMatchObject({ id: "q0", hit: null });

  grading.open();
  await steps(toy, session, 5);
  await session.end();
  await session.close();
  expect(await statuses(toy)).toEqual([
    [0, "complete"],
    [5, "complete"],
    [10, "complete"],
  ]);
  const [, done] = await toy.store.list();
  expect(done!.metrics["hit_rate"]!.n).toBe(8);
  expect(done!.paired.baseline!["hit_rate"]).toMatchObject({ n_pairs: 8, alpha: 0.025 });
  expect(typeof done!.timing.grade_seconds).toBe("number");
  expect(
    (await toy.store.rows(done!)).every((row) => typeof (row as { hit?: unknown }).hit === "boolean"),
  ).toBe(true);
  for (const step of [0, 5, 10]) {
    expect(announced.filter(([at]) => at === step).map(([, status]) => status)).toEqual([
      "grading",
      "complete",
    ]);
  }
});

it("announces graded snapshots to hooks only between steps", async () => {
  const toy = toyTraining();
  let isInSession = false;
  const heardOutside: number[] = [];
  const hearing: TrainerCallback = {
    id: "hearing",
    onSnapshot: (_, { step }) => {
      if (!isInSession) heardOutside.push(step);
    },
  };
  const session = openSession(toy.options([graded(() => undefined), hearing]));
  const inside = async (call: () => Promise<unknown>) => {
    isInSession = true;
    await call();
    isInSession = false;
    // Grading ends here, between two calls.
    for (let turn = 0; turn < 50; turn++) await Promise.resolve();
  };
  await inside(() => session.begin());
  for (let step = 0; step < 10; step++) await inside(() => session.stepEnd());
  await inside(() => session.end());
  await inside(() => session.close());
  expect(heardOutside).toEqual([]);
  expect(await statuses(toy)).toContainEqual([10, "complete"]);
});

it("writes a failed snapshot with the rows if grading fails, and calls onError", async () => {
  const toy = toyTraining();
  const errors: string[] = [];
  const callback = Object.assign(
    graded(() => {
      throw new Error("judge is down");
    }, false),
    { onError: (_: unknown, error: unknown) => void errors.push((error as Error).message) },
  );
  await withSession(toy.options([callback], { maxSteps: 2 }), (session) => steps(toy, session, 2));
  expect(await toy.store.list()).toMatchObject([
    { step: 0, status: "failed", reason: "judge is down", samples: { rows: 8 } },
    { step: 1, status: "failed", reason: "judge is down", samples: { rows: 8 } },
    { step: 2, status: "failed", reason: "judge is down", samples: { rows: 8 } },
  ]);
  expect(errors).toEqual(["judge is down", "judge is down", "judge is down"]);
});

it("names the id of a row that grading lost", async () => {
  const toy = toyTraining();
  const evaluation = {
    ...toyEvaluation({ graded: true }),
    grade: async (rows: readonly { id: string }[]) => rows.slice(1),
  };
  const callback = new PeriodicCallback(evaluation, { schedule: [], atStart: false });
  await withSession(toy.options([callback]), (session) => steps(toy, session, 1));
  expect((await toy.store.list())[0]!.reason).toContain('got no row "q0"');
});

it('throws the error of grading with onFailure "throw", at the latest from close', async () => {
  const toy = toyTraining();
  const callback = new PeriodicCallback(
    toyEvaluation({
      graded: true,
      onGrade: () => {
        throw new Error("judge is down");
      },
    }),
    { schedule: [], atStart: false },
  );
  const running = withSession(toy.options([callback], { onFailure: "throw" }), (session) =>
    steps(toy, session, 1),
  );
  await expect(running).rejects.toThrow("judge is down");
});

it("waits in close for grading until drainSeconds; a resume finishes the rest, with the reserved comparison", async () => {
  const toy = toyTraining();
  let state!: SessionState;
  const never = gate();
  const budget = { drainSeconds: 0 };
  await withSession(toy.options([graded(() => never.passed)], { budget }), async (session) => {
    await session.begin();
    await steps(toy, session, 6);
    state = await session.save();
  });
  expect(await statuses(toy)).toEqual([
    [0, "grading"],
    [5, "grading"],
    [6, "grading"],
  ]);
  expect(toy.warnings()).toEqual([
    "close: grading of train/toy/0, train/toy/5, train/toy/6 ran out of time; a resumed run finishes it",
  ]);
  never.open();
  const held = (await toy.store.list()).map(alphaOf);
  expect(held).toEqual([null, 0.025, expect.any(Number)]); // half of 5 % at the first of two planned comparisons

  const resumed = openSession(toy.options([graded(() => undefined)], { resume: state }));
  await resumed.begin();
  await steps(toy, resumed, 4);
  await resumed.end();
  await resumed.close();
  const found = await toy.store.list();
  expect(found.map(({ step, status }) => [step, status])).toEqual([
    [0, "complete"],
    [5, "complete"],
    [6, "complete"],
    [10, "complete"],
  ]);
  const alphas = found.map(alphaOf);
  expect(alphas.slice(0, 3)).toEqual(held);
  expect(alphas.reduce<number>((sum, alpha) => sum + (alpha ?? 0), 0)).toBeLessThanOrEqual(0.05);
});

it("finishes a grading on resume that close interrupted, although it threw", async () => {
  const toy = toyTraining();
  let state!: SessionState;
  const cutOff: AnyEvaluation = {
    ...toyEvaluation({ graded: true }),
    // Like a judge's client: the running request ends in an error.
    grade: (_, { signal }) =>
      new Promise((_resolve, reject) =>
        signal.addEventListener("abort", () => reject(new Error("interrupted"))),
      ),
  };
  const callback = new PeriodicCallback(cutOff, { schedule: [], atEnd: false });
  const options = toy.options([callback], { budget: { drainSeconds: 0 } });
  await withSession(options, async (session) => {
    await session.begin();
    await steps(toy, session, 1);
    state = await session.save();
  });
  // The rejection by the abort has been handled.
  await new Promise((resolve) => setImmediate(resolve));
  expect(await statuses(toy)).toEqual([[0, "grading"]]);
  const again = new PeriodicCallback(toyEvaluation({ graded: true }), { schedule: [], atEnd: false });
  await withSession(toy.options([again], { resume: state }), (session) => steps(toy, session, 1));
  expect(await statuses(toy)).toEqual([[0, "complete"]]);
});

it("waits for no grading after an abort, and loses nothing", async () => {
  const toy = toyTraining();
  const controller = new AbortController();
  const never = gate();
  await withSession(
    toy.options([graded(() => never.passed)], { signal: controller.signal }),
    async (session) => {
      await session.begin();
      await steps(toy, session, 5);
      controller.abort();
    },
  );
  expect(await statuses(toy)).toEqual([
    [0, "grading"],
    [5, "grading"],
  ]);
});

it("keeps an ungraded snapshot whose evaluation no callback asks for, with a warning", async () => {
  const toy = toyTraining();
  const never = gate();
  let state!: SessionState;
  await withSession(
    toy.options([graded(() => never.passed)], { budget: { drainSeconds: 0 } }),
    async (session) => {
      await session.begin();
      await steps(toy, session, 1);
      state = await session.save();
    },
  );
  const other = new PeriodicCallback(toyEvaluation({ graded: true, version: "2" }), {
    schedule: [],
    atStart: false,
    atEnd: false,
  });
  await withSession(toy.options([other], { resume: state }), (session) => steps(toy, session, 1));
  expect(await statuses(toy)).toEqual([
    [0, "grading"],
    [1, "grading"],
  ]);
  expect(toy.warnings()).toContain(
    "resume: train/toy/0 is not graded yet, and no callback here asks for its evaluation",
  );
});

it("writes a failed snapshot with all verdicts if a grader failed too often; its extra rows follow the measured ones", async () => {
  const toy = toyTraining();
  const plain = toyEvaluation({ graded: true });
  const withAnchor: AnyEvaluation = {
    ...plain,
    grade: async (rows, options) => [...(await plain.grade!(rows, options)), { id: "anchor", hit: null }],
    failure: (rows) =>
      new PeriodicEvalError({
        code: "judge",
        where: "toy",
        got: `errors, in ${rows.length} rows`,
        expected: "verdicts",
        fix: "Look at the judge.",
      }),
  };
  const ofStart = (evaluation: AnyEvaluation, id: string) =>
    new PeriodicCallback(evaluation, { schedule: [], atEnd: false, id });
  const callbacks = [
    ofStart(withAnchor, "failing"),
    ofStart({ ...withAnchor, failure: () => null }, "whole"),
  ];
  await withSession(toy.options(callbacks), async (session) => void (await session.begin()));
  const [failing, whole] = await toy.store.list();
  expect(failing).toMatchObject({ id: "failing", status: "failed", metrics: {} });
  expect(failing!.reason).toContain("errors, in 9 rows");
  expect(whole).toMatchObject({ id: "whole", status: "complete", metrics: { hit_rate: { n: 8 } } });
  for (const snapshot of [failing!, whole!]) {
    const rows = await toy.store.rows(snapshot);
    expect(rows.map(({ id }) => id)).toEqual([...Array.from({ length: 8 }, (_, i) => `q${i}`), "anchor"]);
    expect(rows[0]).toMatchObject({ hit: expect.any(Boolean) });
  }
});

it("grades every failed measurement whose answers are kept when a run resumes", async () => {
  const toy = toyTraining();
  let state!: SessionState;
  const outage = graded(() => {
    throw new Error("no judge");
  });
  await withSession(toy.options([outage]), async (session) => {
    await session.begin();
    await steps(toy, session, 7);
    state = await session.save();
  });
  expect(await statuses(toy)).toEqual([
    [0, "failed"],
    [5, "failed"],
    [7, "failed"],
  ]);
  await withSession(toy.options([graded(() => undefined)], { resume: state }), async (session) => {
    await session.begin();
    await steps(toy, session, 3);
  });
  const found = await toy.store.list();
  expect(found.map(({ step, status, reason }) => [step, status, reason])).toEqual([
    [0, "complete", null],
    [5, "complete", null],
    [7, "complete", null],
    [10, "complete", null],
  ]);
  expect(found.map(({ paired }) => Object.values(paired.baseline ?? {})[0]?.n_pairs)).toEqual([
    undefined,
    8,
    8,
    8,
  ]);
});

it("grades a failed measurement without the rows that its grader added, and keeps it failed if that fails too", async () => {
  const toy = toyTraining();
  const plain = toyEvaluation({ graded: true });
  const failed = (got: string) =>
    new PeriodicEvalError({ code: "judge", where: "toy", got, expected: "a judge", fix: "Wait." });
  const ofStart = (failure: AnyEvaluation["failure"]) =>
    new PeriodicCallback(
      {
        ...plain,
        grade: async (rows, call) => [...(await plain.grade!(rows, call)), { id: "anchor", hit: null }],
        ...(failure && { failure }),
      },
      { schedule: [], atEnd: false },
    );
  let state!: SessionState;
  await withSession(toy.options([ofStart(() => failed("no judge"))]), async (session) => {
    await session.begin();
    await steps(toy, session, 1);
    state = await session.save();
  });
  for (const [failure, status] of [
    [() => failed("still no judge"), "failed"],
    [undefined, "complete"],
  ] as const) {
    const options = toy.options([ofStart(failure)], { resume: state });
    await withSession(options, async (session) => void (await session.begin()));
    const [snapshot] = await toy.store.list();
    expect(snapshot!.status).toBe(status);
    expect(snapshot!.reason ?? "").toContain(status === "failed" ? "still no judge" : "");
    expect((await toy.store.rows(snapshot!)).map(({ id }) => id).at(-1)).toBe("anchor");
    expect(await toy.store.rows(snapshot!)).toHaveLength(9);
  }
});

it("grades a failed measurement at the end of a finished phase without measuring it again", async () => {
  const toy = toyTraining();
  let state!: SessionState;
  let measured = 0;
  const callbackOf = (onGrade: () => void) =>
    new PeriodicCallback(toyEvaluation({ graded: true, onGrade, onMeasure: () => void measured++ }), {
      schedule: [],
    });
  const outage = callbackOf(() => {
    throw new Error("no judge");
  });
  await withSession(toy.options([outage]), async (session) => {
    await session.begin();
    await steps(toy, session, 10);
    await session.end();
    state = await session.save();
  });
  expect([measured, await statuses(toy)]).toEqual([
    2,
    [
      [0, "failed"],
      [10, "failed"],
    ],
  ]);
  await withSession(toy.options([callbackOf(() => undefined)], { resume: state }), async (session) => {
    await session.begin();
    await session.end();
  });
  expect([measured, await statuses(toy)]).toEqual([
    2,
    [
      [0, "complete"],
      [10, "complete"],
    ],
  ]);
});
