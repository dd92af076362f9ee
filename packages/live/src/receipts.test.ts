import { expect, it } from "vitest";
import type { Guard } from "@periodic-eval/contracts";
import { readRun, undisturbed, whyNotUndisturbed } from "@periodic-eval/store";
import { fakeGuard } from "@periodic-eval/testing";
import { temporaryFolder } from "../../testing/src/temporary-folder.test-data.ts";
import { parts, send, train, type Message, type TrainingOptions } from "./scripted-client.test-data.ts";

/** Trains, and returns whether the run proves that measuring left training undisturbed, and why not. */
async function answerOf(options: Omit<TrainingOptions, "runDir">) {
  const runDir = temporaryFolder();
  expect(await train({ runDir, ...options })).toBeNull();
  const snapshots = (await readRun(runDir)).phases.flatMap((phase) => phase.snapshots);
  const found = undisturbed(snapshots)!;
  return { snapshots, answer: [found.answer, whyNotUndisturbed(found)] };
}

const guardsNamed = (names: readonly string[]): Guard[] => names.map((name) => fakeGuard({ name }));

/** Changes the answer to `leave`. */
const onLeave =
  (change: (message: Message) => Message): NonNullable<TrainingOptions["change"]> =>
  (message) =>
    send(message["result"]?.evidence === undefined ? message : change(message));

it("proves an undisturbed training by the trainer's own random states", async () => {
  const { answer, snapshots } = await answerOf({});
  expect(answer).toEqual(["yes", null]);
  expect(snapshots[0]!.receipt.map(({ part }) => part)).toEqual(parts);
});

it("does not take the host's random numbers for the trainer's", async () => {
  const guards = guardsNamed(["weights", "optimizer", "mode"]);
  expect((await answerOf({ guards })).answer).toEqual(["not proven", "no guard observed the random numbers"]);
});

it.each(["buffers", "random-torch", "weights"])("names the guard %s if it observes nothing", async (part) => {
  const others = parts.filter((name) => name !== part);
  const guards = [fakeGuard({ name: part, observe: () => null }), ...guardsNamed(others)];
  const name = part === "weights" ? "the weights" : part;
  expect((await answerOf({ guards })).answer).toEqual(["not proven", `no guard observed ${name}`]);
});

it("names a guard of hello of which the trainer sends no evidence", async () => {
  const change = onLeave(({ id, result: { evidence } }) => ({
    id,
    result: { evidence: evidence.filter(({ part }: Message) => part !== "mode") },
  }));
  const { answer, snapshots } = await answerOf({ change });
  expect(answer).toEqual(["not proven", "no guard observed the mode"]);
  expect(snapshots[0]!.receipt[2]).toMatchObject({ intact: null, note: "the trainer sent no evidence" });
});

it("asks a trainer without guards to protect its state, and proves nothing", async () => {
  const asked: string[] = [];
  const heard = ({ method }: Message) => void asked.push(method as string);
  const { answer } = await answerOf({ guards: [], heard });
  expect(answer).toEqual([
    "not proven",
    "no guard observed the weights, the optimizer, the mode, the random numbers",
  ]);
  expect(asked.filter((method) => method === "leave")).toHaveLength(3);
});

it("stops a training that cannot leave a measurement, and repeats no earlier evidence", async () => {
  let [leaves, stop] = [0, null as string | null];
  const change = onLeave(({ id, result }) => {
    leaves += 1;
    const error = { code: "model", where: "leave", got: "a tensor on another device" };
    return leaves === 2 ? { id, error } : { id, result };
  });
  const heard = ({ result }: Message) => void (stop ??= result?.stop ?? null);
  const { snapshots, answer } = await answerOf({ change, heard });
  expect(stop).toBe('guard "random-fake" saw training disturbed by the measurement "capability" at step 2');
  expect(snapshots[1]!.receipt.map(({ intact }) => intact)).toEqual([null, null, null, false]);
  expect(answer[0]).toBe("no");
});
