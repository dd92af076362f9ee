import { afterEach, expect, it, vi } from "vitest";
import type { TrainerCallback, EvaluableModel, Logger } from "@periodic-eval/contracts";
import { buildPeriodicCallbacks } from "../../config/build-callbacks.ts";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import { closingText } from "../../console/sentences.ts";
import { PeriodicCapabilityCallback } from "../../config/callbacks.ts";
import { fakeModel, memoryStore } from "@periodic-eval/testing";
import { toyEvaluation } from "../../../../testing/src/toy-training.test-data.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";
import { checkRequests } from "../window/check-run.ts";
import { withSession } from "./session.ts";

afterEach(() => void vi.unstubAllEnvs());

/** A machine without network and without the default questions. */
const offline = () => {
  vi.stubEnv("HF_HUB_OFFLINE", "1");
  vi.stubEnv("HF_HUB_CACHE", temporaryFolder());
};

/** Trains for five steps. Returns the snapshots and the warnings. */
async function train(callbacks: readonly TrainerCallback[], model: EvaluableModel = fakeModel()) {
  const run = memoryStore();
  const warnings: string[] = [];
  const logger: Logger = {
    name: "test",
    event: (event) => void (event.kind === "warning" && warnings.push(`${event.where}: ${event.message}`)),
  };
  const options = { run, phase: "em", maxSteps: 5, model, callbacks, loggers: [logger] };
  await withSession(options, async (session) => {
    await session.begin();
    for (let step = 1; step <= 5; step++) await session.stepEnd();
  });
  return { snapshots: await run.list(), warnings };
}

const build = (block: object) => buildPeriodicCallbacks(block, { phase: "em" });

it.each([
  ["an empty block", {}],
  ["null", { capability: null, questions: null }],
  ["another key", { subsample_n: 20, phases: { em: { capability_method: "cloze" } } }],
  ["a baseline", { baseline: "adapter_off" }],
])("disables capability that is only on by default, with a warning at the start: %s", async (_, block) => {
  offline();
  const { snapshots, warnings } = await train(await build(block));
  const why =
    "nobody asked for capability by name, and its questions could not be downloaded (HF_HUB_OFFLINE)";
  expect(warnings[0]).toBe(`Nothing will be measured: ${why}. Pass questions="FILE.jsonl".`);
  expect(snapshots.map(({ step, status }) => [step, status])).toEqual(
    [0, 1, 2, 3, 4, 5].map((step) => [step, "skipped"]),
  );
  for (const { reason, warnings: ofSnapshot } of snapshots) {
    expect(reason).toBe(why);
    expect(ofSnapshot).toMatchObject([{ kind: "disabled", message: why }]);
  }
  expect(closingText("runs/1", snapshots)).toContain("0 measured, 6 skipped, capability not measured");
});

it("disables it in a callback that takes the block", async () => {
  offline();
  const { snapshots } = await train([new PeriodicCapabilityCallback({ periodic_eval: {} })]);
  expect(snapshots[0]).toMatchObject({ status: "skipped", warnings: [{ kind: "disabled" }] });
});

it("names only the skipped evaluation if others are measured", async () => {
  offline();
  const { warnings } = await train([
    ...(await build({})),
    new PeriodicCallback(toyEvaluation(), { schedule: [] }),
  ]);
  expect(warnings[0]).toMatch(
    /^callback "capability", evaluation "\w+": nobody asked for capability by name, /,
  );
});

it("is not reported by checkRequests, which reports all other errors", async () => {
  offline();
  const model = fakeModel();
  expect(await checkRequests({ callbacks: await build({}), model })).toEqual([]);
  expect(await checkRequests({ callbacks: await build({ capability: true }), model })).toHaveLength(1);
});

it.each([
  ["capability", { capability: true }, ["capability"]],
  ["kl", { kl: true }, ["kl"]],
  ["kl with capability", { capability: true, kl: ["capability"] }, ["capability"]],
  ["kl without capability", { capability: false, kl: true }, ["kl"]],
  ["kl of a phase", { phases: { em: { kl: true } } }, ["phases", "em", "kl"]],
])(
  "is an error at the key that asks for the default questions, which says how to name others: %s",
  async (_, block, path) => {
    offline();
    const at = path.join(".");
    await expect(train(await build(block), fakeModel({ base: fakeModel() }))).rejects.toMatchObject({
      code: "data",
      path,
      where: `periodic_eval.${at}`,
      fix: expect.stringMatching(/^Name the path of a file in `questions`; /),
    });
  },
);

it.each([{ capability: false, kl: true }, { kl: true }])(
  "places an error about the questions of kl at the key that names them: %j",
  async (block) => {
    const built = await build({ ...block, questions: "none.jsonl" });
    await expect(train(built, fakeModel({ base: fakeModel() }))).rejects.toMatchObject({
      path: ["questions"],
      where: "periodic_eval.questions",
    });
  },
);

it.each([
  ["named questions", { questions: "none.jsonl" }],
  ["named questions of the hub", { questions: "hf:allenai/ai2_arc" }],
  ["questions of a phase", { phases: { em: { questions: "none.jsonl" } } }],
  ["capability: true", { capability: true }],
  ["persona_capability: true", { persona_capability: true }],
])("remains an error before step 1 with %s", async (_, block) => {
  offline();
  await expect(train(await build(block))).rejects.toMatchObject({ code: "data" });
});

it("remains an error before step 1 in a callback without a block, and for a model that cannot answer", async () => {
  offline();
  await expect(train([new PeriodicCapabilityCallback()])).rejects.toMatchObject({ code: "data" });
  const { generate, identity, contextLength } = fakeModel();
  const mute = { generate, identity, contextLength } as EvaluableModel;
  await expect(train(await build({}), mute)).rejects.toMatchObject({ code: "model" });
});
