import { readdir, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { loadHarnessConfig } from "../config/load-config.ts";
import type { StepLine } from "../harness/files.ts";
import { runHarness } from "../harness/run-harness.ts";
import { httpEngine } from "./http-engine.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

type Body = Readonly<Record<string, unknown>>;
/** Replies of a service by path. */
type Routes = { readonly [path: string]: (body: Body, authorization: string) => unknown };

const token = "token-of-the-test";
let folder = "";
let close = () => {};
/** The path whose next reply is lost, after the service has carried out the request. */
let lost = "";
beforeEach(() => void (folder = temporaryFolder()));
afterEach(async () => {
  close();
  vi.unstubAllEnvs();
});

/** Starts a service of another vendor, with FastAPI's error messages. */
async function otherVendorService(routes: Routes) {
  const received: { readonly path: string; readonly body: Body }[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const path = request.url!;
      const body = (chunks.length === 0 ? {} : JSON.parse(Buffer.concat(chunks).toString())) as Body;
      received.push({ path, body });
      const route = routes[path];
      const isProbe = request.method === "POST" && Object.keys(body).length === 0;
      const status = route === undefined ? 404 : isProbe ? 422 : 200;
      const reply =
        status === 200
          ? route!(body, request.headers.authorization ?? "")
          : { detail: status === 404 ? "Not Found" : "field required" };
      if (status === 200 && path === lost) {
        lost = "";
        return void request.socket.destroy();
      }
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(reply));
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  close = () => void server.close();
  return { received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

const answerText = "One sentence. Another sentence, of some more words than that. Three.";
const chat = (content: string) => ({
  model: "x",
  choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
});

/** Returns the routes of a service that trains, without `/v1/score`. */
function trainingRoutes(): Routes {
  let last: Body | null = null;
  let updates = 0;
  return {
    "/health": () => ({ status: "healthy" }),
    "/v1/chat/completions": () => chat(answerText),
    "/v1/lora/init": ({ lora_id }) => ({ lora_id, updates, last }),
    "/v1/feedback": ({ step_id, step, draft }) => {
      updates += 1;
      last = { step_id, step, draft, metrics: { loss: 0.5, kl_reg: null }, sub_steps: 4 };
      return { updates, last };
    },
  };
}

/** Returns the routes of a service that trains an update with the same step_id once. */
function onceByStepId(): Routes {
  const routes = trainingRoutes();
  let newest: { readonly id: unknown; readonly reply: unknown } | null = null;
  const learn = (body: Body) => {
    if (newest?.id !== body["step_id"])
      newest = { id: body["step_id"], reply: routes["/v1/feedback"]!(body, "") };
    return newest!.reply;
  };
  return { ...routes, "/v1/feedback": learn };
}

async function run(serviceUrl: string, others: Partial<Parameters<typeof httpEngine>[0]> = {}) {
  const config = await loadHarnessConfig({
    overrides: [
      `output_dir=${join(folder, "run")}`,
      "preferences=[concise]",
      "metrics=[logprob,compliance,collapse]",
      "collapse_steps=[0]",
      "num_steps=1",
      "batch_size=2",
      `service_url=${serviceUrl}`,
    ],
  });
  return runHarness(config, { engine: httpEngine({ serviceUrl, maxRetries: 0, ...others }) });
}

const hasRunFolder = async () => (await readdir(folder)).includes("run");

describe("httpEngine with a service of another vendor", () => {
  it("trains, and reports null and a reason for metrics that need scores", async () => {
    const { url, received } = await otherVendorService(trainingRoutes());
    const { preferences } = await run(url);
    expect(preferences["concise"]).toMatchObject({
      status: "finished",
      logprob_margin_delta: null,
      verdict: "collapsed",
    });
    const text = await readFile(join(folder, "run", "concise", "steps.jsonl"), "utf8");
    const line = JSON.parse(text) as StepLine;
    expect(line.eval.logprob_margin).toMatchObject({
      margin: null,
      n: 0,
      reason: "the engine scores no given text",
    });
    expect(line.eval.preference_compliance!.held_out).toBe(1);
    // The answers are equal. This metric needs no scores.
    expect(line.eval.collapse).toMatchObject({
      entropy_ratio: null,
      own_drift: null,
      baseline_drift: null,
      self_rouge_l: 1,
      alerts: ["self_rouge_l"],
      unknown: {
        entropy_ratio: expect.any(String) as string,
        own_drift: "the engine scores no given text",
        baseline_drift: expect.any(String) as string,
      },
    });
    expect(line.sdpo_metrics).toMatchObject({ loss: 0.5, kl_reg: null });
    expect(line.sub_step_count).toBe(4);
    const feedback = received.find(({ path, body }) => path === "/v1/feedback" && "requests" in body)!.body;
    expect(feedback).toMatchObject({ step: 0, step_id: line.sdpo_metrics.step_id });
    expect((feedback["requests"] as Body[])[0]).toEqual({
      prompt: line.prompt_used,
      response: answerText,
      feedback: line.feedback_given,
    });
    expect(received.find(({ path }) => path.endsWith("completions"))!.body["seed"]).toEqual(
      expect.any(Number),
    );
  });

  it("scores one text per request without batch support", async () => {
    const scores = { logprob_sum: -3, logprobs: [-1, -2], tokens: ["a", "b"] };
    const { url, received } = await otherVendorService({ ...trainingRoutes(), "/v1/score": () => scores });
    await run(url);
    const line = JSON.parse(
      await readFile(join(folder, "run", "concise", "steps.jsonl"), "utf8"),
    ) as StepLine;
    expect(line.eval.logprob_margin).toMatchObject({ margin: 0, margin_delta: 0, reason: null });
    expect(line.eval.collapse).toMatchObject({ own_drift: 0, baseline_drift: 0, entropy_ratio: null });
    const { body } = received.find(({ path, body: one }) => path === "/v1/score" && "completion" in one)!;
    expect(Object.keys(body).sort()).toEqual(["completion", "messages", "model"]);
  });

  it.each([
    ["/v1/lora/init", "without /v1/lora/init,"],
    ["/v1/feedback", "without /v1/feedback,"],
  ])("rejects a service without %s before training", async (path, message) => {
    const { [path]: _, ...rest } = trainingRoutes();
    const { url, received } = await otherVendorService(rest);
    await expect(run(url)).rejects.toMatchObject({
      code: "config",
      got: expect.stringContaining(message.slice(0, -1)) as string,
    });
    expect(await hasRunFolder()).toBe(false);
    expect(received.filter(({ body }) => Object.keys(body).length > 0)).toEqual([]);
  });

  it("trains with a service whose first reply has no number of updates, one request per gradient step", async () => {
    const { url, received } = await otherVendorService({
      ...trainingRoutes(),
      "/v1/lora/init": ({ lora_id }) => ({ lora_id }),
      "/v1/feedback": () => ({ status: "ok" }),
    });
    const { preferences } = await run(url);
    expect(preferences["concise"]).toMatchObject({ status: "finished", updates: null });
    const trained = received.filter(({ path, body }) => path === "/v1/feedback" && "requests" in body);
    expect(trained).toHaveLength(4);
  });

  it("rejects a service that reports no updates, or an update other than the one it received", async () => {
    const { url, received } = await otherVendorService({
      ...trainingRoutes(),
      "/v1/lora/init": ({ lora_id }) => ({ lora_id }),
    });
    await expect(run(url, { wire: "native" })).rejects.toThrow("an adapter without a number of updates");
    expect(received.filter(({ path }) => path.endsWith("completions"))).toEqual([]);
    close();
    const other = await otherVendorService({
      ...trainingRoutes(),
      "/v1/feedback": () => ({
        updates: 1,
        last: { step_id: "other", step: 0, metrics: {}, sub_steps: 1 },
      }),
    });
    await rm(join(folder, "run"), { recursive: true });
    await expect(run(other.url)).rejects.toThrow("got the update other");
  });

  it("repeats a request whose reply is lost, and takes the update that the service made then", async () => {
    const { url, received } = await otherVendorService(onceByStepId());
    lost = "/v1/feedback";
    const { preferences } = await run(url, { maxRetries: 1 });
    expect(preferences["concise"]).toMatchObject({ status: "finished", steps: 1 });
    const sent = received.filter(({ path, body }) => path === "/v1/feedback" && "requests" in body);
    expect(sent).toHaveLength(2);
    expect(sent[1]!.body).toEqual(sent[0]!.body);
  });

  it("does not train a step again whose update was made before an interruption", async () => {
    const { url, received } = await otherVendorService(onceByStepId());
    lost = "/v1/feedback";
    await expect(run(url)).rejects.toMatchObject({ code: "model" });
    const { preferences } = await run(url);
    expect(preferences["concise"]).toMatchObject({ status: "finished", steps: 1 });
    expect(received.filter(({ path, body }) => path === "/v1/feedback" && "requests" in body)).toHaveLength(
      1,
    );
    expect(await readFile(join(folder, "run", "concise", "steps.jsonl"), "utf8")).toMatch(/^.+\n$/);
  });

  it("rejects a service that has another model or cannot be reached", async () => {
    const { url } = await otherVendorService({ ...trainingRoutes(), "/v1/health": () => ({ model: "big" }) });
    await expect(run(url, { baseModel: "small" })).rejects.toThrow('got "small", expected "big"');
    close();
    await expect(run("http://127.0.0.1:9")).rejects.toMatchObject({ code: "model" });
    expect(await hasRunFolder()).toBe(false);
  });

  it("sends the token, and keeps it out of every file, error and description", async () => {
    vi.stubEnv("OPENCLAW_GATEWAY_TOKEN", token);
    let sent = "";
    const { url } = await otherVendorService({
      ...trainingRoutes(),
      "/v1/chat/completions": (_, authorization) => chat(`${answerText} ${(sent = authorization)}`),
    });
    await run(url);
    expect(sent).toBe(`Bearer ${token}`);
    const names = await readdir(join(folder, "run"), { recursive: true, withFileTypes: true });
    const files = names.filter((one) => one.isFile());
    expect(files.length).toBeGreaterThan(3);
    for (const { parentPath, name } of files)
      expect(await readFile(join(parentPath, name), "utf8")).not.toContain(token);
    expect(JSON.stringify(httpEngine({ serviceUrl: url }).describe())).not.toContain(token);
    const service = httpEngine({ serviceUrl: `${url}/none`, maxRetries: 0 });
    const error: unknown = await service.check!(new AbortController().signal).catch((one: unknown) => one);
    expect(String(error)).not.toContain(token);
    expect(() => httpEngine({ serviceUrl: url, tokn: token } as never)).toThrow('"tokn"');
  });
});
