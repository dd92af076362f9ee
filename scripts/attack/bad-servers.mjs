// Judges, hubs and MLflow servers that fail in random ways. A failure becomes a clear record; no grade, file or value is wrong;
// and nothing is sent to another server with the key.
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { inspect } from "node:util";
import { gzipSync } from "node:zlib";
import { PeriodicEvalError } from "@periodic-eval/core";
import { fetchFile, openHubCache, openRepository } from "@periodic-eval/data";
import { mlflowLogger } from "@periodic-eval/loggers/mlflow";
import { openJudge } from "@periodic-eval/remote";
import { mutate } from "./mutate.mjs";

export const key = "hf_secret0123456789KEY";
for (const name of ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "HF_TOKEN", "MLFLOW_TRACKING_TOKEN"])
  process.env[name] = key;
process.env.HF_HUB_OFFLINE = "0";

const bomb = gzipSync(Buffer.alloc(2 ** 26, " "));
const json = { "content-type": "application/json" };
const wrongBodies = [
  "",
  "null",
  "[]",
  "{}",
  "0",
  '"text"',
  "<html>gateway</html>",
  '{"choices": [',
  "[".repeat(100_000),
  '{"error": null}',
  '{"choices": "none", "content": 7}',
  "\u0000\ufeff",
];
const waits = [
  {},
  { "retry-after": "0" },
  { "retry-after": "9999999" },
  { "retry-after": "soon" },
  { "retry-after-ms": "1" },
];
const statuses = [204, 304, 400, 401, 403, 404, 408, 413, 418, 422, 429, 429, 500, 500, 502, 503, 529];

/** Acts of a server instead of its reply `good`. */
const acts = {
  status: ({ request, response, pick }) => {
    const { authorization, "x-api-key": token } = request.headers;
    const echo = JSON.stringify({
      error: { message: `no: ${authorization ?? token}` },
      error_code: "X",
      message: String(authorization),
    });
    response.writeHead(pick(statuses), { ...json, ...pick(waits) }).end(pick([echo, ...wrongBodies]));
  },
  stall() {},
  "stall in the body": ({ response, good }) => response.writeHead(200, json).write(good.subarray(0, 5)),
  drip({ response }) {
    response.writeHead(200, json);
    const timer = setInterval(() => response.write(" "), 20);
    response.on("close", () => clearInterval(timer));
  },
  "wrong body": ({ response, pick }) => response.writeHead(200, json).end(pick(wrongBodies)),
  "changed body": ({ response, good, random }) =>
    response.writeHead(200, json).end(mutate(good.toString(), isJson(good) ? "json" : "text", random)),
  endless({ response }) {
    response.writeHead(200, json);
    const more = () => response.destroyed || response.write(" ".repeat(2 ** 16), () => setImmediate(more));
    more();
  },
  "gzip bomb": ({ response }) => response.writeHead(200, { ...json, "content-encoding": "gzip" }).end(bomb),
  "no gzip": ({ response, good }) =>
    response.writeHead(200, { ...json, "content-encoding": "gzip" }).end(good),
  redirect: ({ response, pick, elsewhere }) =>
    response.writeHead(pick([301, 302, 303, 307, 308]), { location: elsewhere }).end(),
  "redirect to itself": ({ request, response }) => response.writeHead(307, { location: request.url }).end(),
  cut({ response, good, random }) {
    response.writeHead(200, { ...json, "content-length": good.length });
    response.write(good.subarray(0, Math.floor(good.length * random())), () => response.destroy());
  },
  "wrong length": ({ response, good, pick }) =>
    response
      .writeHead(200, { ...json, "content-length": Math.max(0, good.length + pick([-9, -1])) })
      .end(good),
  reset: ({ response }) => response.socket.resetAndDestroy(),
  "no HTTP": ({ response, pick }) =>
    response.socket.end(pick(["", "\r\n\r\n", "HTTP/9.9 200\r\n\r\n", "\u0000".repeat(9), "SSH-2.0\r\n"])),
  "huge headers": ({ response, good }) =>
    response.writeHead(200, { ...json, "x-y": "z".repeat(100_000) }).end(good),
};
/** Acts after which a client may take its values as received. */
const accepting = [null, "status", "wrong body", "changed body", "huge headers", "wrong length"];
const isJson = (bytes) => bytes[0] === 0x7b || bytes[0] === 0x5b;

/**
 * Starts a server that answers `reply(request, body)` as JSON, except while `bad` returns the name of an act.
 *
 * @param reply Returns an object or bytes; its last argument says whether the client may take the request as accepted.
 */
async function serve(random, bad, reply) {
  elsewhere.requests = 0;
  const pick = (list) => list[Math.floor(list.length * random())];
  const log = [];
  const server = createServer((request, response) => {
    const chunks = [];
    request.on("error", () => undefined).on("data", (chunk) => chunks.push(chunk));
    response.on("error", () => undefined);
    request.on("end", () => {
      const act = bad();
      log.push(act ?? "good");
      const answer = reply(request, Buffer.concat(chunks).toString(), accepting.includes(act));
      const good = Buffer.isBuffer(answer) ? answer : Buffer.from(JSON.stringify(answer));
      if (act === null) return response.writeHead(200, json).end(good);
      acts[act]({ request, response, good, random, pick, elsewhere: elsewhere.url });
    });
  });
  const url = await listen(server);
  return { url, log, close: () => (server.closeAllConnections(), server.close()) };
}

async function listen(server) {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${server.address().port}`;
}

/** Another server, which must not receive the key; of judges and loggers, nothing. */
const elsewhere = { url: "", keys: 0, requests: 0 };
const stranger = createServer((request, response) => {
  elsewhere.requests += 1;
  if (JSON.stringify(request.headers).includes(key)) elsewhere.keys += 1;
  response.writeHead(200, json).end("{}");
});
stranger.unref();
elsewhere.url = await listen(stranger);

const expectNoKey = (value, what, mayMove = false) => {
  if (!mayMove && elsewhere.requests > 0) throw new Error(`${what}: another server received a request`);
  if (inspect(value, { depth: 9 }).includes(key))
    throw new Error(`${what} contains the key: ${inspect(value).slice(0, 500)}`);
  if (elsewhere.keys > 0) throw new Error(`${what}: another server received the key`);
};

/** Chooses at each request whether and how the server fails. */
function badness(random, names) {
  const pick = (list) => list[Math.floor(list.length * random())];
  const share = pick([0.2, 0.5, 1]);
  const some = Array.from({ length: 1 + Math.floor(4 * random()) }, () => pick(names));
  return () => (random() < share ? pick(some) : null);
}

export async function judge(random) {
  const isAnthropic = random() < 0.5;
  const numberIn = (text) => Number(/answer <(\d+)>/.exec(text)?.[1] ?? 50);
  const server = await serve(random, badness(random, Object.keys(acts)), (_, body) => {
    const text = JSON.stringify({ aligned: numberIn(body), coherent: 90 });
    return isAnthropic
      ? {
          id: "m",
          type: "message",
          role: "assistant",
          model: "j",
          content: [{ type: "text", text }],
          stop_reason: "end_turn",
          usage: { input_tokens: 9, output_tokens: 9 },
        }
      : {
          id: "c",
          object: "chat.completion",
          model: "j",
          choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: text } }],
          usage: { prompt_tokens: 9, completion_tokens: 9 },
        };
  });
  try {
    const client = {
      baseUrl: isAnthropic ? server.url : `${server.url}/v1`,
      timeoutSeconds: 0.5,
      maxRetries: Math.floor(2 * random()),
    };
    const grader = await openJudge(`${isAnthropic ? "anthropic" : "openai"}:judge`, {
      client,
      timeoutSeconds: 3,
      concurrency: 4,
    });
    const { signal } = new AbortController();
    const checked = await grader.check({ signal }).catch((error) => error);
    if (checked !== undefined && !PeriodicEvalError.is(checked, "judge")) throw checked;
    const asked = Array.from({ length: 6 }, (_, at) => ({ question: "Why?", answer: `answer <${at}>` }));
    const verdicts = await grader.grade(asked, { signal });
    const fail = (text) => {
      throw new Error(
        `${text}: ${inspect(verdicts, { depth: 4 })}; the server's acts: ${server.log.join(", ")}`,
      );
    };
    if (verdicts.length !== asked.length) fail(`${verdicts.length} verdicts`);
    for (const [at, { status, scores, raw }] of verdicts.entries()) {
      if (status === "graded" ? scores.aligned !== at || scores.coherent !== 90 : scores !== undefined)
        fail(`a wrong grade of answer ${at}`);
      if (status === "error" && !raw) fail(`no reason for answer ${at}`);
    }
    expectNoKey([verdicts, checked], "a verdict");
  } finally {
    server.close();
  }
}

/** Without acts that last until the hub client's own time limit of a minute. */
const shortActs = Object.keys(acts).filter((name) => !/stall|drip/.test(name));

export async function hub(random, folder) {
  const cache = join(folder, "hub");
  rmSync(cache, { recursive: true, force: true });
  const content = Buffer.from("a file of the hub\n".repeat(1 + Math.floor(3000 * random())));
  const commit = "c".repeat(40);
  const hash = createHash("sha256").update(content).digest("hex");
  const server = await serve(random, badness(random, shortActs), ({ url }) => {
    if (url.includes("/tree/"))
      return [
        {
          type: "file",
          path: "a.bin",
          size: content.length,
          oid: "0".repeat(40),
          lfs: { oid: hash, size: content.length, pointerSize: 9 },
        },
      ];
    return url.includes("/resolve/")
      ? content
      : { _id: "1", id: "o/n", sha: commit, private: false, gated: false, lastModified: "2026-01-01" };
  });
  process.env.HF_ENDPOINT = server.url;
  process.env.HF_HUB_CACHE = cache;
  const repo = { type: "dataset", name: "o/n", revision: "main", where: "questions, hf:o/n" };
  try {
    const repository = await openRepository(repo);
    const found = await repository.commit();
    const file = (await repository.files(found)).get("a.bin");
    if (file === undefined) return;
    const open = openHubCache(repo);
    await fetchFile({ repo, cache: open, repository, commit: found }, file);
    // The server may have listed another hash and sent other bytes with it.
    const bytes = readFileSync(join(open.snapshot(found), "a.bin"));
    if (createHash("sha256").update(bytes).digest("hex") !== file.hash && file.hash.length === 64)
      throw new TypeError(
        `a file with another hash than ${file.hash}; the hub's acts: ${server.log.join(", ")}`,
      );
  } catch (error) {
    if (!PeriodicEvalError.is(error))
      throw new Error(`${error?.stack}; the hub's acts: ${server.log.join(", ")}`, { cause: error });
    expectNoKey(error, "an error", true);
  } finally {
    server.close();
  }
}

export async function logger(random, folder) {
  const runDir = join(folder, "logged");
  rmSync(runDir, { recursive: true, force: true });
  const received = new Map();
  let failing = badness(random, Object.keys(acts));
  const server = await serve(
    random,
    () => failing(),
    ({ url }, body, isAccepted) => {
      if (url.includes("log-batch") && isAccepted)
        for (const { key: name, step, value } of JSON.parse(body).metrics)
          received.set(`${name} ${step}`, value);
      if (url.includes("get-by-name")) return { experiment: { experiment_id: "1" } };
      if (url.includes("runs/create")) return { run: { info: { run_id: "r" } } };
      return url.includes("runs/get") ? { run: { data: { tags: [] } } } : {};
    },
  );
  const steps = 5;
  try {
    for (const isLast of [false, true]) {
      if (isLast) failing = () => null;
      const one = mlflowLogger({ runDir, trackingUri: server.url, closeSeconds: isLast ? 10 : 0.3 });
      const errors = [];
      const call = async (work) => {
        try {
          await work();
        } catch (error) {
          if (!(error instanceof Error)) throw error;
          errors.push(error);
        }
      };
      const at = { phase: "train", runStep: isLast ? steps : 0, step: isLast ? steps : 0, maxSteps: 9 };
      await call(() => one.begin({ ...at, resumed: isLast, standing: [] }));
      for (let step = 1; !isLast && step <= steps; step += 1)
        await call(() => one.train({ loss: step / 2 }, { ...at, step, runStep: step }));
      await call(() => one.close());
      expectNoKey(errors, "an error");
      if (isLast && errors.length > 0)
        throw new Error(`${errors[0].stack}; the server's acts: ${server.log.join(", ")}`);
    }
    for (let step = 1; step <= steps; step += 1) {
      const [value] = [...received].filter(([name]) => name.endsWith(`loss ${step}`)).map(([, one]) => one);
      if (value !== step / 2)
        throw new Error(`the loss of step ${step} is ${value}; the server's acts: ${server.log.join(", ")}`);
    }
  } finally {
    server.close();
  }
}
