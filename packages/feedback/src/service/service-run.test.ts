import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { useBackend } from "@periodic-eval/models";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadHarnessConfig } from "../config/load-config.ts";
import { afterUpdates } from "../engine/after-updates.test-data.ts";
import { httpEngine } from "../engine/http-engine.ts";
import { localEngine } from "../engine/local-engine.ts";
import { microWorldParts, timelessLines } from "../engine/micro-world.test-data.ts";
import type { FeedbackEngine } from "../engine/types.ts";
import type { BaselineFile } from "../harness/files.ts";
import { runHarness } from "../harness/run-harness.ts";
import { writeShortGeneral, writeShortIdentity } from "../preferences/short-preference.test-data.ts";
import { serveFeedback, type FeedbackService } from "./index.ts";
import { temporaryFolder } from "../../../core/src/testing/temporary-folder.test-data.ts";

const child = fileURLToPath(new URL("service-run.child.ts", import.meta.url));
const folder = temporaryFolder(afterAll);
let preference = "";
let service: FeedbackService;
const serve = (port = 0) =>
  serveFeedback({ ...microWorldParts, model: "micro-world", root: join(folder, "adapters"), port });

beforeAll(async () => {
  await useBackend({ backend: "wasm" });
  service = await serve();
  preference = await writeShortIdentity(folder);
  everything.push(`general_probes=${await writeShortGeneral(folder)}`);
  await run("local", localEngine(microWorldParts), everything);
  await run("short", localEngine(microWorldParts), short);
});
afterAll(async () => {
  await service.close();
});

const everything = ["num_steps=1", "collapse_steps=[0]"];
const short = ["num_steps=3", "steps_per_batch=2", "metrics=[logprob]"];

const configOf = (output: string, others: readonly string[]) =>
  loadHarnessConfig({
    configName: "micro-world",
    overrides: [
      `output_dir=${join(folder, output)}`,
      `preferences=[${preference}]`,
      "batch_size=2",
      ...others,
    ],
  });

async function run(output: string, engine: FeedbackEngine, others: readonly string[]) {
  return (await runHarness(await configOf(output, others), { engine })).preferences["identity"]!;
}

const lines = (output: string) => timelessLines(join(folder, output), "identity");
const baseline = async (output: string) => {
  const text = await readFile(join(folder, output, "identity", "baseline.json"), "utf8");
  const { timestamp: _t, lora_id: _l, ...rest } = JSON.parse(text) as BaselineFile;
  return rest;
};

/** Starts a proxy that drops the service's reply to the first update, after the service has trained it. */
async function proxyThatDropsOneReply(url: string) {
  const updates: number[] = [];
  const proxy = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks);
      void fetch(`${url}${request.url!}`, {
        method: request.method!,
        headers: { "content-type": "application/json" },
        ...(request.method === "POST" && { body }),
      }).then(async (reply) => {
        const text = await reply.text();
        const isUpdate = request.url === "/v1/feedback" && reply.ok;
        if (isUpdate) updates.push((JSON.parse(text) as { updates: number }).updates);
        if (isUpdate && updates.length === 1) return void request.socket.destroy();
        response.writeHead(reply.status, { "content-type": "application/json" }).end(text);
      });
    });
  });
  await new Promise<void>((done) => proxy.listen(0, "127.0.0.1", done));
  const { port } = proxy.address() as AddressInfo;
  const close = () => new Promise((done) => proxy.close(done));
  return { url: `http://127.0.0.1:${port}`, updates, close };
}

describe("a run with the service", () => {
  it("writes the same bits as a run in this process, and measures every metric", async () => {
    const summary = await run("served", httpEngine({ serviceUrl: service.url }), everything);
    expect(summary.status).toBe("finished");
    expect(await baseline("served")).toEqual(await baseline("local"));
    const served = await lines("served");
    expect(served).toEqual(await lines("local"));
    expect(served[0]!.eval.collapse).toMatchObject({
      unknown: {},
      entropy_ratio: expect.any(Number) as number,
      own_drift: expect.any(Number) as number,
      baseline_drift: expect.any(Number) as number,
    });
  });

  it("resumes after a restart of the service", async () => {
    const { port } = new URL(service.url);
    const engine = afterUpdates(httpEngine({ serviceUrl: service.url }), async (updates) => {
      if (updates > 1) return;
      await service.close();
      service = await serve(Number(port));
    });
    await run("restarted", engine, short);
    expect(await lines("restarted")).toEqual(await lines("short"));
  });

  it("resumes after a kill between an update and its line, and trains no step twice", async () => {
    const config = JSON.stringify(await configOf("killed", short));
    const args = ["--import", "tsx", "-C", "@periodic-eval/source", child, service.url, config];
    const node = spawn(process.execPath, args, { stdio: ["ignore", "ignore", "inherit"] });
    const [, killedBy] = (await once(node, "close")) as [number | null, string | null];
    expect(killedBy).toBe("SIGKILL");
    expect(await readdir(join(folder, "killed", "identity"))).not.toContain("steps.jsonl");
    await run("killed", httpEngine({ serviceUrl: service.url }), short);
    expect(await lines("killed")).toEqual(await lines("short"));
  });

  it("repeats a request if its reply is lost, and trains no step twice", async () => {
    const proxy = await proxyThatDropsOneReply(service.url);
    await run("lost", httpEngine({ serviceUrl: proxy.url }), short);
    await proxy.close();
    expect(proxy.updates).toEqual([1, 1, 2, 3]);
    expect(await lines("lost")).toEqual(await lines("short"));
  });

  it("trains on encoded answers if a gateway hides their tokens", async () => {
    // As in OpenAI's API, replies contain neither token ids nor log p, and seeds are numbers.
    const gateway = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const {
          logprobs: _l,
          return_token_ids: _r,
          ...body
        } = JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>;
        expect(body["seed"]).toEqual(expect.any(Number));
        void fetch(`${service.url}${request.url!}`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(body),
        }).then(async (reply) => {
          response.writeHead(reply.status, { "content-type": "application/json" }).end(await reply.text());
        });
      });
    });
    await new Promise<void>((done) => gateway.listen(0, "127.0.0.1", done));
    const { port } = gateway.address() as AddressInfo;
    const gatewayUrl = `http://127.0.0.1:${port}`;
    const summary = await run("gateway", httpEngine({ serviceUrl: service.url, gatewayUrl }), [
      "num_steps=1",
      "metrics=[logprob]",
    ]);
    gateway.close();
    expect(summary.status).toBe("finished");
    const [line] = await lines("gateway");
    const [local] = await lines("local");
    expect(line!.response_text).not.toBe(local!.response_text);
    expect(line!.sdpo_metrics["loss"]).toBeGreaterThan(0);
    expect(line!.eval.logprob_margin!.margin_delta).not.toBe(0);
  });
});
