import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { loadHarnessConfig } from "../config/load-config.ts";
import type { BaselineFile, MetadataFile, StepLine, SummaryFile } from "../harness/files.ts";
import { runHarness } from "../harness/run-harness.ts";
import { claasDouble, type ClaasDouble, type ClaasDoubleOptions } from "../testing/index.ts";
import { httpEngine } from "./http-engine.ts";

type Body = Readonly<Record<string, unknown>>;

let folder = "";
let service: ClaasDouble;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "claas-"));
  await writePreference();
});
afterEach(async () => {
  await service.close();
  await rm(folder, { recursive: true });
});

/** Writes a file in the form of CLaaS, with training prompts and enough pairs for a verdict. */
const writePreference = (more: object = {}) =>
  writeFile(
    join(folder, "concise.yaml"),
    stringify({
      name: "concise",
      feedback_string: "Shorter, please.",
      verifier: { _target_: "claas.eval.metrics.verifiers.ConciseVerifier" },
      train_prompts: ["a", "b", "c"],
      probe_prompts: ["d"],
      logprob_pairs: Array.from({ length: 12 }, (_, at) => ({
        prompt_messages: [{ role: "user", content: `pair ${at}` }],
        positive_response: "Yes.",
        negative_response: `No, ${at} times no.`,
      })),
      ...more,
    }),
  );

const sentences = (n: number) =>
  Array.from({ length: n }, (_, at) => `Sentence ${at} says a thing.`).join(" ");

/** A model that answers one sentence less after each gradient step, and to which rejected answers become less likely. */
const learning: ClaasDoubleOptions = {
  answer: (prompt, steps) => `${prompt} ${sentences(Math.max(1, 8 - steps))}`,
  logProbs: (_, text, steps) => text.split(" ").map(() => (text.startsWith("No") ? -1 - steps / 10 : -1)),
};

const serve = async (options: Partial<ClaasDoubleOptions> = {}) =>
  (service = await claasDouble({ ...learning, ...options }));

async function run(
  overrides: readonly string[] = [],
  signal: AbortSignal = new AbortController().signal,
): Promise<SummaryFile["preferences"][string]> {
  const config = await loadHarnessConfig({
    overrides: [
      `output_dir=${join(folder, "run")}`,
      `preferences=[${join(folder, "concise.yaml")}]`,
      "metrics=[logprob,compliance]",
      "num_steps=2",
      "batch_size=2",
      "steps_per_batch=2",
      `claas_url=${service.url}`,
      ...overrides,
    ],
  });
  const { service_url: serviceUrl, base_model: baseModel, gateway_url: gatewayUrl } = config;
  const engine = httpEngine({ serviceUrl: serviceUrl!, baseModel, gatewayUrl, maxRetries: 0 });
  return (await runHarness(config, { engine, signal })).preferences["concise"]!;
}

const file = (name: string) => readFile(join(folder, "run/concise", name), "utf8");
const lines = async () =>
  (await file("steps.jsonl"))
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as StepLine);
const posted = (path: string) =>
  service.received
    .filter((one) => one.path === path && Object.keys(one.body).length > 0)
    .map(({ body }) => body);
const adapter = async () => (JSON.parse(await file("metadata.json")) as MetadataFile).lora_id;

describe("httpEngine with a service that does not report its updates", () => {
  it("trains and measures", async () => {
    await serve();
    const summary = await run();
    expect(service.steps(await adapter())).toBe(4);
    expect(summary).toMatchObject({ verdict: "learned", status: "finished", steps: 2 });
    expect(summary.final_compliance).toBeGreaterThan(summary.baseline_compliance!);
    expect(posted("/v1/lora/init")).toHaveLength(1);
    const [line] = await lines();
    expect(line!.sdpo_metrics).toMatchObject({ loss: 1 / 2, kl_reg: 0, tokens_processed: 100 });
    expect(line!.sub_step_count).toBe(2);
  });

  it("reports null and a reason for what the service does not report", async () => {
    await serve({ metadata: () => ({ distill_loss: 0.25 }) });
    const summary = await run(["num_steps=1"]);
    const unknown = {
      updates: expect.stringContaining("no number of updates") as string,
      truncated_tokens: expect.any(String) as string,
      seeds: expect.any(String) as string,
    };
    const reasons = {
      loss: expect.stringContaining("total_loss") as string,
      grad_norm: expect.any(String) as string,
    };
    const [line] = await lines();
    expect(line).toMatchObject({
      updates: null,
      unknown: { ...unknown, ...reasons },
      eval: { logprob_margin: { truncated_tokens: null, reason: null } },
      sdpo_metrics: { loss: null, distill_loss: 0.25, grad_norm: null },
    });
    expect(JSON.parse(await file("metadata.json"))).toMatchObject({
      updates: null,
      unknown: { ...unknown, model: expect.any(String) as string },
    });
    expect(JSON.parse(await file("baseline.json")) as BaselineFile).toMatchObject({ updates: null, unknown });
    expect(summary).toMatchObject({ updates: null, unknown: { ...unknown, ...reasons } });
  });

  it("reports null for every metric of a reply without distill_result", async () => {
    await serve({ metadata: () => null });
    await run(["num_steps=1"]);
    const { step_id: _, ...metrics } = (await lines())[0]!.sdpo_metrics;
    expect(Object.keys(metrics)).toContain("loss");
    expect(new Set(Object.values(metrics))).toEqual(new Set([null]));
  });

  it("sends the published fields, with a system message and the name of the inference server's adapter", async () => {
    await serve();
    await run(["num_steps=1", "base_model=owner/name", "lora_id_prefix=a"]);
    const loraId = await adapter();
    expect(loraId).toMatch(/^a-concise-.*-init$/);
    expect(posted("/v1/lora/init")[0]).toEqual({
      lora_id: loraId.replace(/-init$/, ""),
      base_model: "owner/name",
    });
    const [chat] = posted("/v1/chat/completions") as [Body];
    expect(Object.keys(chat).sort()).toEqual(["max_tokens", "messages", "model", "temperature"]);
    expect(chat["messages"]).toMatchObject([{ role: "system" }, { role: "user" }]);
    const [score] = posted("/v1/score") as [Body];
    expect(Object.keys(score).sort()).toEqual(["completion", "messages", "model"]);
    const [body] = posted("/v1/feedback") as [Body & { readonly requests: readonly Body[] }];
    expect(Object.keys(body)).toEqual(["requests"]);
    expect(body.requests).toHaveLength(2);
    for (const request of body.requests) {
      expect(Object.keys(request).sort()).toEqual(["feedback", "lora_id", "prompt", "response", "training"]);
      expect(request).toMatchObject({
        lora_id: loraId,
        training: { learning_rate: 3e-5, teacher_top_k: 100 },
      });
    }
  });

  it("sends chats to the gateway's agent, which adds a system message, and trains the answers", async () => {
    await serve();
    const asked: Body[] = [];
    const gateway = createServer((request, response) => {
      void json(request).then(async (body) => {
        asked.push(body as Body);
        const { messages, ...rest } = body as { readonly messages: readonly Body[] };
        const model = `${posted("/v1/lora/init")[0]!["lora_id"] as string}-init`;
        const system = { role: "system", content: "You are an agent." };
        const forwarded = JSON.stringify({ ...rest, model, messages: [system, ...messages] });
        const reply = await fetch(`${service.url}${request.url!}`, { method: "POST", body: forwarded });
        response.end(await reply.text());
      });
    });
    await new Promise<void>((done) => gateway.listen(0, "127.0.0.1", done));
    const { port } = gateway.address() as AddressInfo;
    const summary = await run(["num_steps=1", `openclaw_url=http://127.0.0.1:${port}`]);
    gateway.close();
    expect(summary.final_compliance).toBeGreaterThan(summary.baseline_compliance!);
    expect(service.steps(await adapter())).toBe(2);
    for (const body of asked) expect(body).toMatchObject({ model: "openclaw", messages: [{ role: "user" }] });
    // Nothing adds a system message to texts that the service scores.
    expect(posted("/v1/score")[0]).toMatchObject({ messages: [{ role: "system" }, { role: "user" }] });
  });
});

it("creates an adapter if the request names no earlier run", async () => {
  await serve();
  const { training, seed } = await loadHarnessConfig();
  const { signal } = new AbortController();
  const engine = httpEngine({ serviceUrl: service.url, maxRetries: 0 });
  const model = await engine.open({ loraId: "new", training, stepsPerBatch: 1, seed, folder, signal });
  expect([model.loraId, model.trained]).toEqual(["new-init", { updates: 0, last: null }]);
});

describe("a run that resumes with such a service", () => {
  /** Fails the nth request for training. */
  const failing = (nth: number, fault: "drop" | number): Pick<ClaasDoubleOptions, "fault"> => ({
    fault: ({ path, body }, at) =>
      // The first request has no body: it finds out whether the path exists.
      path === "/v1/feedback" && at === nth + 1 && Object.keys(body).length > 0 ? fault : null,
  });

  it("continues the adapter, without creating it again", async () => {
    await serve();
    await run(["num_steps=1"]);
    await run(["num_steps=3"]);
    expect(service.steps(await adapter())).toBe(6);
    expect((await lines()).map(({ sub_step_count }) => sub_step_count)).toEqual([2, 2, 2]);
    expect(posted("/v1/lora/init")).toHaveLength(1);
  });

  it("sends no request twice if a reply is lost, and says that the number of steps is unknown", async () => {
    await serve(failing(4, "drop"));
    const error: unknown = await run().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: "model",
      got: expect.stringContaining("unknown whether the service trained") as string,
    });
    expect(await lines()).toHaveLength(1);
    const summary = await run(["num_steps=3"]);
    // Two gradient steps, two whose second reply was lost, and two.
    expect(service.steps(await adapter())).toBe(6);
    expect(posted("/v1/feedback")).toHaveLength(6);
    const [, uncertain, last] = await lines();
    expect(uncertain).toMatchObject({
      step: 1,
      sub_step_count: null,
      sdpo_metrics: { loss: 1 / 3 },
      unknown: { sub_step_count: expect.stringContaining("1 or 2") as string },
    });
    expect(last).toMatchObject({ step: 2, sub_step_count: 2 });
    expect(summary).toMatchObject({
      status: "finished",
      unknown: { sub_step_count: expect.any(String) as string },
    });
  });

  it("treats a status of 500 as unknown, and a rejected request as not trained", async () => {
    await serve(failing(1, 500));
    await expect(run(["num_steps=1"])).rejects.toMatchObject({ code: "model" });
    await run(["num_steps=1"]);
    expect((await lines())[0]).toMatchObject({ sub_step_count: null });
    expect(posted("/v1/feedback")).toHaveLength(1);
    await service.close();
    await rm(join(folder, "run"), { recursive: true });

    await serve(failing(1, 409));
    await expect(run(["num_steps=1"])).rejects.toMatchObject({ code: "config" });
    await run(["num_steps=1"]);
    expect((await lines())[0]).toMatchObject({ sub_step_count: 2 });
    expect(service.steps(await adapter())).toBe(2);
    await service.close();
    await rm(join(folder, "run"), { recursive: true });

    await serve(failing(2, 404));
    await expect(run(["num_steps=1"])).rejects.toMatchObject({ code: "config" });
    await run(["num_steps=1"]);
    // The second request was rejected, so the step is known to have one gradient step.
    expect((await lines())[0]).toMatchObject({ sub_step_count: 1 });
    expect(service.steps(await adapter())).toBe(1);
  });

  it("treats a request that a rate limit rejects as not trained", async () => {
    await serve(failing(1, 429));
    await expect(run(["num_steps=1"])).rejects.toMatchObject({
      code: "model",
      got: expect.not.stringContaining("unknown") as string,
    });
    await run(["num_steps=1"]);
    expect((await lines())[0]).toMatchObject({ sub_step_count: 2 });
    expect(service.steps(await adapter())).toBe(2);
  });

  it("waits for the reply of a request when it is interrupted, and resumes with the confirmed number of steps", async () => {
    const interrupt = new AbortController();
    await serve({
      fault({ path, body }, nth) {
        if (path === "/v1/feedback" && nth === 2 && Object.keys(body).length > 0)
          interrupt.abort(new Error("Ctrl-C"));
        return null;
      },
    });
    await expect(run(["num_steps=1"], interrupt.signal)).rejects.toThrow("Ctrl-C");
    await run(["num_steps=1"]);
    expect((await lines())[0]).toMatchObject({ sub_step_count: 1 });
    expect(service.steps(await adapter())).toBe(1);
  });

  it("writes the missing line of a confirmed step and does not train it again", async () => {
    await serve();
    await run();
    const whole = await lines();
    await writeFile(join(folder, "run/concise/steps.jsonl"), `${JSON.stringify(whole[0])}\n`);
    await run();
    expect(service.steps(await adapter())).toBe(4);
    expect((await lines())[1]).toMatchObject({ sdpo_metrics: whole[1]!.sdpo_metrics, sub_step_count: 2 });
  });

  it("rejects a lost adapter, a lost journal, and a service that now reports nothing", async () => {
    await serve();
    await run(["num_steps=1"]);
    await service.close();
    const { url } = await serve();
    const metadata = JSON.parse(await file("metadata.json")) as MetadataFile;
    // The address of the new service, which has no adapter.
    const moved = {
      ...metadata,
      config: { ...metadata.config, service_url: url },
      engine: { ...(metadata.engine as object), service: url },
    };
    await writeFile(join(folder, "run/concise/metadata.json"), JSON.stringify(moved));
    await expect(run()).rejects.toMatchObject({
      code: "store",
      got: expect.stringContaining("no adapter") as string,
    });
    await rm(join(folder, "run/concise/updates.json"));
    await expect(run()).rejects.toMatchObject({ code: "store", got: "no such file" });
  });
});

describe("bad input", () => {
  it("rejects a preference with hindsight before anything is trained", async () => {
    await serve();
    await writePreference({ hindsight: "{feedback}" });
    await expect(run()).rejects.toMatchObject({ code: "config", where: "hindsight" });
    expect([...posted("/v1/lora/init"), ...posted("/v1/feedback")]).toEqual([]);
  });

  it("rejects a service whose worker is unhealthy before it creates an adapter", async () => {
    const worker = { status: "unhealthy", error: "no GPU" };
    await serve({
      rewrite: ({ path }, body) => (path === "/v1/health" ? { status: "degraded", worker } : body),
    });
    await expect(run()).rejects.toMatchObject({
      code: "model",
      got: "a service whose worker is unhealthy: no GPU",
    });
    expect(posted("/v1/lora/init")).toEqual([]);
  });

  it("names the model that the service does not accept", async () => {
    await serve({ baseModels: ["owner/other"] });
    await expect(run(["base_model=owner/name"])).rejects.toMatchObject({
      code: "config",
      got: expect.stringContaining("owner/name") as string,
      fix: expect.stringContaining("base_model") as string,
    });
    expect(existsSync(join(folder, "run/concise/metadata.json"))).toBe(false);
  });
});

describe("replies that lack a field", () => {
  /** Changes the fields of the replies of one route. */
  const changed = (route: string, fields: object): Pick<ClaasDoubleOptions, "rewrite"> => ({
    rewrite: ({ path }, body) => (path === route ? { ...(body as object), ...fields } : body),
  });

  it.each([
    [{ logprobs: undefined }, "a reply without logprobs"],
    [{ logprobs: [] }, "a reply with an empty array of logprobs for a text"],
    [
      { logprobs: [-1, null] },
      "a reply with [-1,null] for logprobs, which is not an array of numbers of at most 0.02",
    ],
  ])("leaves margins and drifts null for scores with %j, and goes on training", async (fields, reason) => {
    await serve(changed("/v1/score", fields));
    const summary = await run(["num_steps=1", "metrics=[logprob,collapse]"]);
    const why = `${service.url}/v1/score: ${reason}`;
    const [line] = await lines();
    expect(line!.eval).toMatchObject({
      logprob_margin: { margin: null, margin_delta: null, p: null, n: 0, reason: why },
      collapse: {
        own_drift: null,
        baseline_drift: null,
        unknown: { own_drift: why, baseline_drift: expect.stringContaining("no scored answers") as string },
      },
    });
    expect(summary).toMatchObject({
      status: "finished",
      logprob_margin_delta: null,
      // The double's answers to one prompt are equal, which needs no scores.
      collapse_alerts: ["self_rouge_l"],
      unknown: { logprob_margin_delta: why, own_drift: why, entropy_ratio: expect.any(String) as string },
    });
    expect(summary.unknown).not.toHaveProperty("self_rouge_l");
    expect(service.steps(await adapter())).toBe(2);
  });

  it("gives the change of the margin no value if only the baseline's scores lack numbers", async () => {
    let isTrained = false;
    await serve({
      rewrite({ path }, body) {
        isTrained ||= path === "/v1/feedback" && "status" in (body as object);
        return path === "/v1/score" && !isTrained ? {} : body;
      },
    });
    const summary = await run(["num_steps=1", "metrics=[logprob]"]);
    const why = "the baseline's margin is not known";
    expect((await lines())[0]).toMatchObject({
      eval: { logprob_margin: { margin: expect.any(Number) as number, margin_delta: null, p: null } },
      unknown: { logprob_margin_delta: why },
    });
    expect(summary).toMatchObject({ verdict: "not decided", unknown: { logprob_margin_delta: why } });
  });

  it("does not count a feedback reply without a status as a gradient step", async () => {
    await serve({
      rewrite: ({ path }, body) => {
        const { status: _, ...rest } = body as Body;
        return path === "/v1/feedback" && service.steps(String(rest["lora_id"])) === 1 ? rest : body;
      },
    });
    const summary = await run(["num_steps=1"]);
    const unknown = {
      sub_step_count: expect.stringMatching(/^1 to 2: 1 of 2 replies have no status/) as string,
    };
    expect((await lines())[0]).toMatchObject({ sub_step_count: null, unknown });
    expect(summary).toMatchObject({ status: "finished", unknown });
  });

  it("ends at any status but ok, and resumes without sending the request again", async () => {
    const broken = changed("/v1/feedback", { status: "queued" });
    let isBroken = true;
    await serve({ rewrite: (request, body) => (isBroken ? broken.rewrite!(request, body) : body) });
    await expect(run(["num_steps=1"])).rejects.toMatchObject({
      code: "model",
      where: `${service.url}/v1/feedback`,
      got: expect.stringContaining('status "queued"') as string,
      expected: 'a reply with status "ok"',
    });
    isBroken = false;
    await run(["num_steps=1"]);
    expect(posted("/v1/feedback")).toHaveLength(1);
    expect((await lines())[0]).toMatchObject({
      sub_step_count: null,
      unknown: { sub_step_count: expect.stringMatching(/^0 or 1: the service did not confirm/) as string },
    });
  });

  it("tells a metric that is absent from one that is not a number", async () => {
    await serve({ metadata: () => ({ total_loss: "high", distill_loss: null }) });
    await run(["num_steps=1"]);
    expect((await lines())[0]).toMatchObject({
      sdpo_metrics: { loss: null, distill_loss: null },
      unknown: {
        loss: 'the service\'s reply has "high" for distill_result.metadata.total_loss, which is not a number',
        distill_loss: "the service's reply has no distill_result.metadata.distill_loss",
      },
    });
    await service.close();
    await rm(join(folder, "run"), { recursive: true });
    await serve({ metadata: () => null });
    await run(["num_steps=1"]);
    expect((await lines())[0]).toMatchObject({
      unknown: { loss: "the service's reply has no distill_result" },
    });
  });
});
