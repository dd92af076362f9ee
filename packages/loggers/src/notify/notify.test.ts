import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Logger, Snapshot } from "@periodic-eval/core";
import { withSession, PeriodicCapabilityCallback } from "@periodic-eval/core";
import { exampleSnapshot, fakeModel } from "@periodic-eval/testing";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { at, begins } from "../logged-run.test-data.ts";
import { desktopCommand } from "./desktop.ts";
import { notifyLogger, type NotifyOptions } from "./index.ts";
import { bodyOf, formOf } from "./messages.ts";

const secret = "T0KEN-of-the-webhook";

/** A webhook on loopback, whose answers a test chooses. */
class Webhook {
  readonly received: { readonly text: string; readonly event: string; readonly step: number }[] = [];
  answer: (response: ServerResponse) => void = (response) => void response.end("ok");
  #server: Server | null = null;
  #port = 0;

  async start(): Promise<this> {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        this.received.push(JSON.parse(Buffer.concat(chunks).toString()));
        this.answer(response);
      });
    });
    await new Promise<void>((resolve) => this.#server!.listen(this.#port, "127.0.0.1", resolve));
    this.#port = (this.#server.address() as AddressInfo).port;
    return this;
  }

  async stop(): Promise<void> {
    this.#server?.closeAllConnections();
    await new Promise<void>((resolve) => (this.#server ? this.#server.close(() => resolve()) : resolve()));
    this.#server = null;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/services/${secret}`;
  }
}

let runDir: string;
let webhook: Webhook;

beforeEach(async () => {
  runDir = temporaryFolder();
  const started = await new Webhook().start();
  webhook = started;
  onTestFinished(() => started.stop());
});

afterEach(() => {
  vi.unstubAllEnvs();
});

function judged(step: number, verdict: "worse" | "better" | "no evidence", changes: Partial<Snapshot> = {}) {
  const paired = {
    phase: "em",
    step: 0,
    n_pairs: 4,
    delta: -0.4,
    ci95: [-0.6, -0.1] as [number, number],
    test: "mcnemar_exact" as const,
    p_value: 0.001,
    alpha: 0.01,
    minimal_detectable_change: 0.1,
    verdict,
    exploratory: false,
  };
  return exampleSnapshot({
    phase: "em",
    step,
    max_steps: 10,
    paired: { baseline: { accuracy: paired }, previous: null },
    ...changes,
  });
}

const failed = (step: number, reason: string) =>
  judged(step, "worse", { status: "failed", reason, metrics: {}, primary_metric: null, id: "alignment" });

/** Simulates a process that resumes at a step. Returns the warning of close. */
async function session(
  from: number,
  log: (logger: Logger) => unknown,
  { standing = [], ...options }: Partial<NotifyOptions> & { readonly standing?: readonly Snapshot[] } = {},
): Promise<string | null> {
  const address = options.urlEnv === undefined && { url: webhook.url };
  const logger = notifyLogger({ runDir, ...address, ...options });
  await logger.begin!(begins("em", from, { standing }));
  await log(logger);
  return Promise.resolve(logger.close!()).then(
    () => null,
    (error: unknown) => (error as Error).message,
  );
}

const events = () => webhook.received.map(({ event, step }) => `${event} ${step}`);
const file = () => readFileSync(join(runDir, "loggers", "notify.jsonl"), "utf8");

describe("notifyLogger", () => {
  it("sends verdicts, stops, failures and the end, and nothing else", async () => {
    const warning = await session(0, async (logger) => {
      await logger.snapshot!(judged(0, "no evidence"));
      await logger.snapshot!(judged(4, "worse"));
      await logger.snapshot!(judged(4, "worse", { id: "pending", status: "grading" }));
      await logger.snapshot!(failed(5, "out of memory"));
      logger.event!({ kind: "warning", where: "x", message: "y" });
      logger.event!({ kind: "stop", step: 6, message: "capability worse" });
      await logger.end!({ ...at("em", 6), finished: true });
    });
    expect([warning, events()]).toEqual([null, ["verdict 4", "failed 5", "stop 6", "end 6"]]);
    const [verdict, failure, stop, end] = webhook.received;
    expect(verdict).toEqual({
      event: "verdict",
      run: expect.stringMatching(/^periodic-eval-/),
      phase: "em",
      step: 4,
      id: "capability",
      metric: "accuracy",
      value: 0.5,
      verdict: "worse",
      text: "capability  accuracy 50.0 % [15.0, 85.0]  worse",
      at: expect.stringMatching(/^2\d{3}-/),
    });
    expect(failure!.text).toBe("alignment failed: out of memory");
    expect([stop!.text, end!.text]).toEqual([
      "training stops: capability worse",
      "training finished at step 6 of 10",
    ]);
  });

  it("sends no message twice after a kill and a resume, and those that a killed process did not send", async () => {
    const killed = notifyLogger({ runDir, url: webhook.url });
    await killed.begin!(begins("em", 0));
    await killed.snapshot!(judged(4, "worse"));
    await vi.waitFor(() => expect(file()).toContain('"sent"'));
    // Killed here. The snapshot of step 5 was stored, and not logged.
    const warning = await session(
      2,
      async (logger) => {
        await logger.snapshot!(judged(4, "worse"));
        await logger.snapshot!(judged(6, "worse"));
      },
      { standing: [judged(4, "worse"), judged(5, "better")] },
    );
    expect([warning, events()]).toEqual([null, ["verdict 4", "verdict 5", "verdict 6"]]);
  });

  it("does not send the past of a run that begins to notify", async () => {
    await session(5, () => undefined, { standing: [judged(4, "worse")] });
    await session(5, () => undefined, { standing: [judged(4, "worse")] });
    expect(events()).toEqual([]);
  });

  it("does not repeat a message whose delivery a kill left unknown, and says so", async () => {
    webhook.answer = () => undefined;
    const killed = notifyLogger({ runDir, url: webhook.url });
    await killed.begin!(begins("em", 0));
    await killed.snapshot!(judged(4, "worse"));
    await vi.waitFor(() => expect(webhook.received).toHaveLength(1));
    webhook.answer = (response) => void response.end();
    const warning = await session(5, () => undefined);
    expect(warning).toBe(
      "dropped: verdict of em step 4 (the process ended while it was sent, so it may have arrived)",
    );
    expect(events()).toEqual(["verdict 4"]);
  });

  it("sends once when a webhook that answered 500 or was down has returned", async () => {
    let failures = 2;
    webhook.answer = (response) => {
      response.statusCode = failures > 0 ? 500 : 200;
      failures -= 1;
      response.end();
    };
    expect(await session(0, (logger) => logger.snapshot!(judged(4, "worse")))).toBeNull();
    expect(events()).toEqual(["verdict 4", "verdict 4", "verdict 4"]);
    webhook.received.length = 0;
    await webhook.stop();
    const warning = await session(5, (logger) => logger.snapshot!(judged(6, "worse")), { closeSeconds: 0.2 });
    expect(warning).toBe(
      `not sent: verdict of em step 6 (no connection, ECONNREFUSED); kept in ${join(runDir, "loggers", "notify.jsonl")}, and sent if the run resumes`,
    );
    await webhook.start();
    expect(await session(7, (logger) => logger.snapshot!(judged(8, "worse")))).toBeNull();
    expect(events()).toEqual(["verdict 6", "verdict 8"]);
  });

  it.each([
    [302, "the webhook answered 302, a redirect, which is not followed"],
    [404, "the webhook answered 404"],
    [504, "the webhook answered 504, so it may have arrived"],
  ])("drops a message at %d with a line, and sends the next", async (status, why) => {
    webhook.answer = (response) => {
      const isFirst = webhook.received.length === 1;
      response.writeHead(isFirst ? status : 200, { location: `http://127.0.0.1:1/${secret}` }).end(secret);
    };
    const warning = await session(0, async (logger) => {
      await logger.snapshot!(judged(4, "worse"));
      await logger.snapshot!(judged(6, "worse"));
    });
    expect([warning, events()]).toEqual([
      `dropped: verdict of em step 4 (${why})`,
      ["verdict 4", "verdict 6"],
    ]);
  });

  it("does not repeat a message that a webhook hung up on or has not answered at the end", async () => {
    webhook.answer = (response) => void response.socket?.destroy();
    expect(await session(0, (logger) => logger.snapshot!(judged(4, "worse")))).toMatch(
      /^dropped: verdict of em step 4 \(no answer, \w+, so it may have arrived\)$/,
    );
    webhook.answer = () => undefined;
    const warning = await session(5, (logger) => logger.snapshot!(judged(6, "worse")), { closeSeconds: 0.5 });
    expect(warning).toBe("dropped: verdict of em step 6 (no answer until the end, so it may have arrived)");
    webhook.answer = (response) => void response.end();
    expect(await session(7, () => undefined)).toBeNull();
    expect(events()).toEqual(["verdict 4", "verdict 6"]);
  });

  it("writes its address nowhere, and masks secrets of the environment", async () => {
    vi.stubEnv("WEBHOOK", webhook.url);
    vi.stubEnv("OPENAI_API_KEY", "sk-very-secret");
    webhook.answer = (response) => void response.writeHead(403).end(webhook.url);
    const options = { urlEnv: "WEBHOOK" };
    const warning = await session(0, (logger) => logger.snapshot!(failed(4, "key sk-very-secret")), options);
    expect(warning).toBe("dropped: failed of em step 4 (the webhook answered 403)");
    expect(webhook.received[0]!.text).toBe("alignment failed: key ***");
    expect(file()).not.toContain(secret);
    expect(file()).not.toContain("sk-very-secret");
  });

  it.each([
    [{}, "got nothing, expected a webhook or `desktop: true`"],
    [{ urlEnv: "NOT_SET" }, "got NOT_SET, which is not set, expected an address"],
    [{ urlEnv: `https://x.test/${secret}` }, "got a value that is no name of a variable"],
    [{ url: `ftp://x.test/${secret}` }, "got a value that is no address of a webhook"],
  ])("refuses wrong options without quoting them: %j", (options, message) => {
    let thrown = "";
    try {
      notifyLogger({ runDir, ...options });
    } catch (error) {
      thrown = (error as Error).message;
    }
    expect(thrown).toContain(message);
    expect(thrown).not.toContain(secret);
  });

  it("does not delay training while the webhook hangs, and hears of the stop at once", async () => {
    const request = new Promise<ServerResponse>((resolve) => (webhook.answer = resolve));
    // The clock stands still, and the request gets no answer: waiting for either hangs.
    vi.useFakeTimers({ toFake: ["setTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const path = join(runDir, "questions.jsonl");
    const questions = Array.from({ length: 30 }, (_, item) => ({
      id: `q${item}`,
      question: `What is ${item}?`,
      choices: { text: [`this ${item}`, `that ${item}`], label: ["A", "B"] },
      answerKey: "A",
    }));
    writeFileSync(path, questions.map((question) => JSON.stringify(question)).join("\n"));
    let step = 0;
    const logger = notifyLogger({ runDir, url: webhook.url, closeSeconds: 0.1 });
    const model = fakeModel({
      logLikelihood: (_, continuation) => (continuation.includes("this") === (step === 0) ? -1 : -2),
      weights: () => String(step),
    });
    const callbacks = [new PeriodicCapabilityCallback({ questions: path, method: "cloze" })];
    const options = { run: runDir, phase: "em", model, callbacks, maxSteps: 10, loggers: [logger] };
    await withSession({ ...options, stopWhen: ["capability worse"] }, async (session) => {
      await session.begin();
      for (step = 1; step <= 10; step++) {
        const { stop } = await session.stepEnd();
        if (stop !== null) break;
      }
      expect((await request).writableEnded).toBe(false);
      vi.useRealTimers();
    });
    expect(step).toBe(2);
    expect(events()).toEqual(["verdict 2"]);
    const queued = file()
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { kind: string; message?: { event: string; text: string } })
      .filter(({ kind }) => kind === "queued");
    expect(queued.map(({ message }) => message!.event)).toEqual(["verdict", "stop", "end"]);
    expect(queued[1]!.message!.text).toMatch(/^training stops: capability worse: /);
  }, 30_000);

  it("keeps no file and opens no connection before it begins", () => {
    notifyLogger({ runDir, url: webhook.url });
    expect(existsSync(join(runDir, "loggers"))).toBe(false);
  });
});

describe("forms", () => {
  const message = {
    key: "k",
    event: "failed",
    run: "run",
    phase: "em",
    step: 4,
    text: "<!channel> & @everyone \u001b[31m",
  } as const;

  it("follow from the address", () => {
    const of = (url: string) => formOf(new URL(url));
    expect(of("https://hooks.slack.com/services/T/B/x")).toBe("slack");
    expect(of("https://discord.com/api/webhooks/1/x")).toBe("discord");
    expect(of("https://discord.com/api/webhooks/1/x/slack")).toBe("slack");
    expect(of("https://discord.com.evil.test/x")).toBe("json");
  });

  it("mention nobody, and are no longer than a chat allows", () => {
    expect(JSON.parse(bodyOf(message, "slack"))).toEqual({
      text: "run: em step 4  &lt;!channel&gt; &amp; @everyone \\x1b[31m",
    });
    expect(JSON.parse(bodyOf(message, "discord"))).toEqual({
      content: "run: em step 4  <!channel> & @everyone \\x1b[31m",
      allowed_mentions: { parse: [] },
    });
    const { content } = JSON.parse(bodyOf({ ...message, text: "long ".repeat(1000) }, "discord"));
    expect(content.length).toBeLessThan(2000);
  });
});

it("passes texts to the programs of desktops as arguments or variables, never as code", () => {
  const hostile = `--icon=x "; rm -rf ~ <b>`;
  expect(desktopCommand(hostile, hostile, "linux")).toEqual([
    "notify-send",
    ["--app-name=periodic-eval", "--", hostile, `--icon=x "; rm -rf ~ &lt;b&gt;`],
  ]);
  const [, mac] = desktopCommand(hostile, hostile, "darwin");
  expect(mac.slice(2)).toEqual(["--", hostile, hostile]);
  const [program, windows] = desktopCommand(hostile, hostile, "win32");
  expect(program).toBe("powershell.exe");
  expect(windows.join(" ")).not.toContain("rm -rf");
});
