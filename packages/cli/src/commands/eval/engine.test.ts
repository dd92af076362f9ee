import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { openCheckpoint, useBackend } from "@periodic-eval/models";
import { afterAll, beforeAll, expect, it } from "vitest";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";
import {
  scriptedServer,
  type ScriptedServerOptions,
} from "../../../../remote/src/engine/scripted-server.test-data.ts";
import { microWorld } from "../../demo/micro-world.ts";
import { runCommand } from "../../run-command.test-data.ts";

const root = temporaryFolder(afterAll);
let opened: Awaited<ReturnType<typeof openCheckpoint>>;
beforeAll(async () => {
  await useBackend({ backend: "wasm" });
  opened = await openCheckpoint(microWorld());
});
afterAll(() => opened.dispose?.());

const serve = (options: Partial<ScriptedServerOptions> = {}) =>
  scriptedServer({ model: opened.model, contextLimit: opened.model.contextLength! + 2, ...options });
const evaluate = (...args: string[]) => runCommand(["eval", ...args, "--json"]);
const onModel = ["--model", microWorld()];
const questions = ["--questions", microWorld("questions.jsonl"), "--limit", "6", "--method", "letters,cloze"];

it("measures questions on two replicas as in this process", async () => {
  const replicas = [await serve(), await serve()];
  const urls = replicas.flatMap(({ url }) => ["--engine", url]);
  const served = await evaluate("--model", "base", "--tokenizer", microWorld(), ...questions, ...urls);
  expect(served).toMatchObject({ code: 0, err: "" });
  const inProcess = await evaluate(...onModel, ...questions, "--backend", "wasm");
  const accuracies = ({ out }: typeof served) =>
    (JSON.parse(out) as { metrics: { accuracy: unknown } }[]).map(({ metrics }) => metrics.accuracy);
  expect(accuracies(served)).toEqual(accuracies(inProcess));
  for (const { received } of replicas)
    expect(received.some(({ body }) => body["prompt_logprobs"] !== undefined)).toBe(true);
});

const suite = async (engine: string) => {
  const path = join(root, "suite.yaml");
  await writeFile(
    path,
    `schema_version: 1\nname: s\n${engine}\ntasks:\n  arc_challenge: { limit: 2, shots: 0, data: ${root}/arc }\n`,
  );
  return path;
};

it("names file, line and key of a wrong engine in a suite", async () => {
  const path = await suite("engine: { vlm: http://127.0.0.1:1 }");
  const { code, err } = await evaluate(...onModel, "--suite", path, "--results", join(root, "results"));
  expect(code).toBe(1);
  expect(err).toContain(`${path}:3 engine.vlm`);
  expect(err).toContain('Did you mean "vllm"?');
});

it("refuses a key of training files", async () => {
  const path = await suite("engine: { vllm: http://127.0.0.1:1, beside: false }");
  const { code, err } = await evaluate(...onModel, "--suite", path, "--results", join(root, "results"));
  expect(code).toBe(1);
  expect(err).toContain(`${path}:3 engine.beside`);
});

it("names the engine's line if the server does not serve the model", async () => {
  const { url } = await serve();
  const path = await suite(`engine: { vllm: ["${url}"], model: other }`);
  const { code, err } = await evaluate(...onModel, "--suite", path, "--results", join(root, "results"));
  expect(code).toBe(1);
  expect(err).toContain(`${path}:3 engine`);
  expect(err).toContain('"base"');
});

it("names the evaluation that needs what a server lacks before anything is measured", async () => {
  const { url, received } = await serve({
    // A server without prompt log-probs.
    fault: ({ body }) => (body["prompt_logprobs"] === undefined ? null : { status: 400 }),
  });
  const named = ["--model", "base", "--tokenizer", microWorld(), "--engine", url];
  const { code, err } = await evaluate(...named, ...questions);
  expect(code).toBe(1);
  expect(err).toContain('evaluation "capability"');
  expect(err).toMatch(/ability "(nextToken|logLikelihoods)"/);
  // Only the probes at the start.
  expect(received.length).toBeLessThan(30);
});

it("refuses a backend for a server", async () => {
  const { code, err } = await evaluate(...onModel, "--engine", "http://127.0.0.1:1", "--backend", "wasm");
  expect(code).not.toBe(0);
  expect(err).toContain("cannot be used with option '--backend <name>'");
});
