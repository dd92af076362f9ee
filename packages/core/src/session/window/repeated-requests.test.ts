import { expect, it } from "vitest";
import type { TrainerCallback } from "@periodic-eval/contracts";
import { streamGuard } from "../../random/guards.ts";
import { toyEvaluation, toyTraining } from "../../../../testing/src/toy-training.test-data.ts";
import { train } from "../loop/toy-run.test-data.ts";
import { withSession } from "../loop/session.ts";

it("continues training if a hook repeats a failed measurement without end", async () => {
  const toy = toyTraining();
  let measured = 0;
  const evaluation = toyEvaluation({
    name: "failing",
    onMeasure() {
      measured += 1;
      throw new Error("broken");
    },
  });
  const retrying: TrainerCallback = {
    id: "failing",
    onTrainBegin: ({ measure }) => measure({ id: "failing", evaluation, crossed: [] }),
    onSnapshot: ({ measure }) => measure({ id: "failing", evaluation, crossed: [] }),
  };
  await withSession(toy.options([retrying]), train(toy, 1));
  expect(measured).toBe(101);
});

it("continues training if a hook requests another id for each snapshot, and records what it skips", async () => {
  const toy = toyTraining();
  const evaluation = toyEvaluation({ items: 1 });
  let requested = 0;
  const request: TrainerCallback["onTrainBegin"] = ({ measure }) =>
    measure({ id: `more-${requested++}`, evaluation, crossed: [] });
  const endless: TrainerCallback = {
    id: "endless",
    onTrainBegin: request,
    onSnapshot: (context, { step }) => (step === 0 ? request(context) : undefined),
  };
  await withSession(toy.options([endless]), train(toy, 1));
  const statuses = (await toy.store.list()).filter(({ step }) => step === 0).map(({ status }) => status);
  expect([statuses.length, statuses.filter((one) => one === "skipped").length]).toEqual([102, 1]);
});

it("loses no disturbance by a hook whose repetition of a failed measurement is skipped", async () => {
  const toy = toyTraining();
  const failing = toyEvaluation({
    onMeasure() {
      throw new Error("broken");
    },
  });
  const evaluation = toyEvaluation({ items: 1 });
  let requested = 0;
  let draws = 0;
  const repeating: TrainerCallback = {
    id: "repeating",
    onTrainBegin: ({ measure }) => measure({ id: "failing", evaluation: failing, crossed: [] }),
    onSnapshot({ measure }) {
      if (requested++ < 100) return measure({ id: `more-${requested}`, evaluation, crossed: [] });
      draws += 1;
      measure({ id: "failing", evaluation: failing, crossed: [] });
    },
  };
  const guards = [streamGuard("dropout", () => `${draws} draws`)];
  await withSession(toy.options([repeating], { guards, onBrokenReceipt: "record" }), (session) =>
    session.begin(),
  );
  const snapshots = await toy.store.list();
  expect(snapshots.find(({ id }) => id === "failing")).toMatchObject({ reason: "broken" });
  const broken = snapshots.flatMap(({ receipt }) => receipt.filter(({ intact }) => intact === false));
  expect(broken[0]).toMatchObject({
    part: "dropout",
    note: 'by onSnapshot of callback "repeating" at step 0',
  });
});
