import { readFile } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo } from "node:net";
import { join } from "node:path";
import { AbortError } from "p-retry";
import { afterEach, expect, it, onTestFinished, vi } from "vitest";
import { at, begins } from "../logged-run.test-data.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { serveJson, type Reply } from "../loopback.test-data.ts";
import { mlflowLogger } from "./index.ts";
import { metricName } from "./destination.ts";
import { mlflowRest } from "./rest.ts";

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

interface Received {
  readonly path: string;
  readonly body: Record<string, unknown>;
  readonly authorization: string | undefined;
}

/** Starts a fake MLflow server. `fault` can replace its reply to a request. */
async function fakeServer(fault: (path: string) => Reply | null = () => null) {
  const received: Received[] = [];
  const trackingUri = await serveJson((url, body, { headers }) => {
    const path = url.replace("/api/2.0/mlflow/", "").split("?")[0]!;
    received.push({ path, body, authorization: headers.authorization });
    const answers: Record<string, Reply> = {
      "experiments/get-by-name": { body: { experiment: { experiment_id: "0" } } },
      "runs/create": { body: { run: { info: { run_id: "r1" } } } },
      "runs/get": { body: { run: { data: { tags: [] } } } },
    };
    return fault(path) ?? answers[path] ?? {};
  });
  const metrics = () =>
    received
      .filter(({ path }) => path === "runs/log-batch")
      .flatMap(({ body }) => body["metrics"] as readonly { key: string; value: unknown; step: number }[]);
  return { trackingUri, received, metrics };
}

it("escapes characters that MLflow rejects, keeps all others, and keeps names distinct", () => {
  expect(metricName("periodic_leak/leakage_dr. who:2 -x")).toBe("periodic_leak/leakage_dr. who:2 -x");
  expect(metricName("a+b")).toBe("a_x2bb");
  expect(metricName("größe")).toBe("gr_xf6_xdfe");
  expect([metricName("a//b"), metricName("../b"), metricName("/b")]).toEqual(["a/_/b", "_x2e_x2e/b", "_/b"]);
  const long = [metricName("x".repeat(300)), metricName("x".repeat(301))];
  expect(long.map(({ length }) => length)).toEqual([250, 250]);
  expect(long[0]).not.toBe(long[1]);
});

it("sends at most 1,000 metrics per request, in order, and retries a busy server", async () => {
  let busy = 2;
  const server = await fakeServer((path) =>
    path === "runs/log-batch" && busy-- > 0
      ? { status: 429, body: { error_code: "REQUEST_LIMIT_EXCEEDED" } }
      : null,
  );
  const logger = mlflowLogger({ trackingUri: server.trackingUri, runDir: temporaryFolder() });
  const many = Object.fromEntries(Array.from({ length: 700 }, (_, i) => [`m${i}`, i]));
  for (const step of [1, 2, 3]) await logger.train?.(many, at("a", step));
  await logger.close?.();
  const batches = server.received.filter(({ path }) => path === "runs/log-batch").slice(2);
  expect(batches.map(({ body }) => (body["metrics"] as unknown[]).length)).toEqual([700, 700, 700]);
  expect(
    server
      .metrics()
      .slice(-2100)
      .map(({ step }) => step),
  ).toEqual([1, 2, 3].flatMap((step) => Array.from({ length: 700 }, () => step)));
  expect(server.received.at(-1)).toMatchObject({ path: "runs/update", body: { status: "FINISHED" } });
});

/** Logs one point while a server answers `reply` to a path, or to all, and returns what `close` throws, with the journal. */
async function failureOf(reply: Reply, where?: string) {
  let answered = 0;
  const server = await fakeServer((path) => {
    if (where !== undefined && path !== where) return null;
    answered += 1;
    return reply;
  });
  const { status = 200 } = reply;
  const isRetried = status < 300 || status >= 500;
  const runDir = temporaryFolder();
  vi.stubEnv("MLFLOW_TRACKING_TOKEN", token);
  // An error that is not retried ends `close` before its time.
  const closeSeconds = isRetried ? 0 : 60;
  const logger = mlflowLogger({ trackingUri: server.trackingUri, runDir, closeSeconds });
  await (async () => logger.train?.({ loss: 1 }, at("a", 1)))();
  // At the second request the logger has read the first reply, however slow the machine.
  if (isRetried) await vi.waitFor(() => expect(answered).toBeGreaterThan(1), { timeout: 60_000 });
  const error: unknown = await Promise.resolve(logger.close?.()).catch((thrown: unknown) => thrown);
  const journal = await readFile(join(runDir, "loggers", "mlflow.jsonl"), "utf8");
  return { message: error instanceof Error ? error.message : "", journal, server };
}
const token = "token-of-the-test";

it.each<[string, number, unknown]>([
  ["a message of MLflow", 401, { error_code: "UNAUTHENTICATED", message: `bad Bearer ${token}` }],
  ["a message of a proxy", 500, `Authorization: Bearer ${token}`],
  ["an object as a message", 400, { error_code: "BAD", message: { token } }],
])("masks the token in %s", async (_, status, body) => {
  const { message, journal } = await failureOf({ status, body });
  expect(message).toContain("***");
  expect(message + journal).not.toContain(token);
});

it.each([200, 400])("masks a token whose letters a reply with status %i escapes", async (status) => {
  const body = JSON.stringify({ message: token }).replaceAll("-", "\\u002d");
  const escaping = createHttpServer((_, response) => response.writeHead(status).end(body));
  await new Promise<void>((resolve) => escaping.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void escaping.close());
  const address = `http://127.0.0.1:${(escaping.address() as AddressInfo).port}`;
  const rest = mlflowRest(address, { authorization: `Bearer ${token}`, secrets: [token] });
  const reply = rest.post("runs/create", {}, new AbortController().signal);
  expect(await reply.then(JSON.stringify, String)).toContain("***");
});

it("masks a token that no header can contain", async () => {
  vi.stubEnv("MLFLOW_TRACKING_TOKEN", `${token}\nmore`);
  const logger = mlflowLogger({
    trackingUri: "http://127.0.0.1:9",
    runDir: temporaryFolder(),
    closeSeconds: 60,
  });
  await (async () => logger.train?.({ loss: 1 }, at("a", 1)))();
  const error: unknown = await Promise.resolve(logger.close?.()).catch((thrown: unknown) => thrown);
  expect(String(error)).toContain("***");
  expect(String(error)).not.toContain(token);
});

it.each(["?token=secret", "#secret"])("refuses an address with %s, which the journal would store", (part) => {
  const trackingUri = `http://127.0.0.1:1/${part}`;
  expect(() => mlflowLogger({ trackingUri, runDir: temporaryFolder() })).toThrow(
    expect.objectContaining({ code: "config", path: ["trackingUri"] }),
  );
});

it.each<[string, string, Reply, string]>([
  [
    "an error with status 200",
    "runs/log-batch",
    { body: { error_code: "INTERNAL_ERROR" } },
    "INTERNAL_ERROR",
  ],
  ["a page with status 200", "runs/log-batch", { body: "<html>" }, "<html>"],
  ["an empty reply", "runs/log-batch", { status: 204 }, "answered 204"],
  ["a redirect", "runs/log-batch", { status: 302 }, "a redirect, which is not followed"],
  ["a run without an id", "runs/create", { body: {} }, "a reply without run.info.run_id"],
  ["an experiment without an id", "experiments/get-by-name", { body: [] }, "[]"],
  ["null", "experiments/get-by-name", { status: 500, body: null }, "answered 500"],
])("does not count %s as sent, and keeps the points", async (_, where, reply, text) => {
  const { message, journal } = await failureOf(reply, where);
  expect(message).toContain("1 of 1 points were not sent");
  expect(message).toContain(text);
  expect(journal).not.toContain('"sent"');
});

it.each([
  [500, null],
  [425, {}],
  [200, { error_code: "INTERNAL_ERROR" }],
])("lets the logger retry after %d with %j", async (status, body) => {
  const { trackingUri } = await fakeServer(() => ({ status, body }));
  const rest = mlflowRest(trackingUri, { authorization: null, secrets: [] });
  const error: unknown = await rest
    .get("runs/get", {}, new AbortController().signal)
    .catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(Error);
  expect(error).not.toBeInstanceOf(TypeError);
  expect(error).not.toBeInstanceOf(AbortError);
});

it("reports a rejection without credentials and stops sending", async () => {
  const server = await fakeServer((path) =>
    path === "runs/log-batch"
      ? { status: 403, body: { error_code: "PERMISSION_DENIED", message: "not yours" } }
      : null,
  );
  const trackingUri = server.trackingUri.replace("://", "://me:hunter2@");
  const logger = mlflowLogger({ trackingUri, runDir: temporaryFolder() });
  const rejected = vi.waitFor(async () => {
    await expect((async () => logger.train?.({ loss: 1 }, at("a", 1)))()).rejects.toThrow(
      "MLflow answered 403 to runs/log-batch: PERMISSION_DENIED not yours; sending has stopped",
    );
  }, 60_000);
  await rejected;
  const error = await logger.close!()!.then(
    () => null,
    (thrown: unknown) => thrown as Error,
  );
  expect(error!.message).toMatch(/^\d+ of \d+ points were not sent \(MLflow answered 403/);
  expect(error!.message).not.toContain("hunter2");
  expect(server.received[0]!.authorization).toBe(`Basic ${Buffer.from("me:hunter2").toString("base64")}`);
});

it("masks credentials that the server echoes", async () => {
  const echo = Buffer.from("me:hunter2").toString("base64");
  const server = await fakeServer(() => ({ status: 403, body: { message: `no Basic ${echo}, hunter2` } }));
  const trackingUri = server.trackingUri.replace("://", "://me:hunter2@");
  const logger = mlflowLogger({ trackingUri, runDir: temporaryFolder() });
  await logger.train?.({ loss: 1 }, at("a", 1));
  await expect(logger.close?.()).rejects.toThrow("no Basic ***, ***");
});

it("sends no value to a server that it is redirected to", async () => {
  const other = await fakeServer();
  const redirecting = createHttpServer((_, response) =>
    response.writeHead(307, { location: other.trackingUri }).end(),
  );
  await new Promise<void>((resolve) => redirecting.listen(0, "127.0.0.1", resolve));
  const trackingUri = `http://127.0.0.1:${(redirecting.address() as AddressInfo).port}`;
  const logger = mlflowLogger({ trackingUri, runDir: temporaryFolder(), closeSeconds: 0.1 });
  await logger.train?.({ loss: 1 }, at("a", 1));
  await expect(logger.close?.()).rejects.toThrow("1 of 1 points were not sent (MLflow answered 307");
  redirecting.closeAllConnections();
  redirecting.close();
  expect(other.received).toEqual([]);
});

it("stops sending after a reply of more than 8 MiB", async () => {
  const server = await fakeServer((path) =>
    path === "runs/create" ? { body: { filler: "x".repeat(2 ** 23) } } : null,
  );
  const logger = mlflowLogger({ trackingUri: server.trackingUri, runDir: temporaryFolder() });
  await vi.waitFor(async () => {
    await expect((async () => logger.train?.({ loss: 1 }, at("a", 1)))()).rejects.toThrow(
      "MLflow sent a reply of more than 8388608 bytes to runs/create; sending has stopped",
    );
  }, 10_000);
  await expect(logger.close!()).rejects.toThrow("points were not sent");
  expect(server.received.filter(({ path }) => path === "runs/create")).toHaveLength(1);
});

it.each([
  ["me:100%", "me:100%"],
  ["me:a%40b", "me:a@b"],
])("reads the credentials of a URL (%s)", async (userInfo, credentials) => {
  const server = await fakeServer();
  const trackingUri = server.trackingUri.replace("://", `://${userInfo}@`);
  const logger = mlflowLogger({ trackingUri, runDir: temporaryFolder() });
  await logger.train?.({ loss: 1 }, at("a", 1));
  await logger.close?.();
  expect(new Set(server.received.map(({ authorization }) => authorization))).toEqual(
    new Set([`Basic ${Buffer.from(credentials).toString("base64")}`]),
  );
});

it("keeps unsent points of an unreachable server and sends them when the run resumes", async () => {
  const runDir = temporaryFolder();
  const offline = mlflowLogger({ trackingUri: "http://127.0.0.1:9", runDir, closeSeconds: 0.05 });
  await offline.train?.({ loss: Number.NaN }, at("a", 1));
  await expect(offline.close?.()).rejects.toThrow(/1 of 1 points were not sent \(.*\); they are kept in/);
  const server = await fakeServer();
  const resumed = mlflowLogger({ trackingUri: server.trackingUri, runDir });
  await resumed.begin?.(begins("a", 1));
  await resumed.close?.();
  expect(server.metrics()).toMatchObject([{ key: "train/loss", value: "NaN", step: 1 }]);
});

it.each([
  [undefined, "got nothing"],
  ["file:///tmp/mlruns", "got a value that is not the URL of a server"],
])("rejects a missing or wrong server URL (%s)", (trackingUri, message) => {
  vi.stubEnv("MLFLOW_TRACKING_URI", trackingUri);
  expect(() => mlflowLogger({ runDir: "run" })).toThrow(`mlflowLogger options.trackingUri: ${message}`);
});
