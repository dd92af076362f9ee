import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { useBackend } from "@periodic-eval/models";
import { afterAll, beforeAll, expect, it } from "vitest";
import { microWorldParts } from "../engine/micro-world.test-data.ts";
import { ask as asked, microWorldService } from "./service-client.test-data.ts";
import { serveFeedback, type FeedbackService } from "./index.ts";
import { temporaryFolder } from "../../../core/src/testing/temporary-folder.test-data.ts";

const root = temporaryFolder(afterAll);
let service: FeedbackService;
let isOutOfMemory = false;
const failures: Error[] = [];
const outOfMemory = new Error("no memory for a model");

beforeAll(async () => {
  await useBackend({ backend: "wasm" });
  service = await serveFeedback({
    ...microWorldService(root, failures),
    async openModel(adapter) {
      if (isOutOfMemory) throw outOfMemory;
      return microWorldParts.openModel(adapter);
    },
  });
});
afterAll(async () => {
  await service.close();
});

const ask = (path: string, body?: unknown) => asked(service.url, path, body);
const adapters = async () => (await ask("/v1/health")).body["adapters"];

it("keeps an adapter's name free if its model fails to open", async () => {
  isOutOfMemory = true;
  const { status } = await ask("/v1/lora/init", { lora_id: "new", seed: 1 });
  isOutOfMemory = false;
  expect([status, failures.splice(0)]).toEqual([500, [outOfMemory]]);
  expect(await adapters()).toEqual([]);
  expect((await readdir(root)).includes("new")).toBe(false);
  expect((await ask("/v1/lora/init", { lora_id: "new", seed: 2 })).status).toBe(200);
  expect(await adapters()).toEqual(["new"]);
  expect((await ask("/v1/lora/init", { lora_id: "new", seed: 1 })).status).toBe(409);
});

it.each([
  ["invalid JSON", "{", "JSON"],
  ["null", "null", "an object"],
  ["an array", "[]", "an object"],
  ["training settings of the wrong type", { training: 1 }, "training: 1"],
  ["settings without a seed", { seed: undefined }, "seed: undefined"],
  ["an unknown schema version", { schema_version: 2 }, "schema_version: 2"],
])("reports an adapter.json with %s as damaged, without its path", async (_, change, message) => {
  const before = await adapters();
  await mkdir(join(root, "damaged"), { recursive: true });
  const whole = {
    schema_version: 1,
    lora_id: "damaged",
    training: {},
    steps_per_batch: 1,
    seed: 1,
    engine: {},
  };
  const text = typeof change === "string" ? change : JSON.stringify({ ...whole, ...change });
  await writeFile(join(root, "damaged", "adapter.json"), text);
  const body = { model: "damaged", prompt: "The sky", completion: " is" };
  const { status, body: reply } = await ask("/v1/score", body);
  expect([status, reply.error!["code"]]).toEqual([500, "store"]);
  expect(reply.error!["message"]).toContain("adapter.json of the adapter damaged: got ");
  expect(reply.error!["message"]).toContain(message);
  expect(JSON.stringify(reply)).not.toContain(root);
  expect(failures.splice(0)).toHaveLength(1);
  expect(await adapters()).toEqual(before);
  await rm(join(root, "damaged"), { recursive: true });
});
