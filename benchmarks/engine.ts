// How much does a measurement on a server and its replicas cost this process? The servers are doubles in child processes that
// answer with fixed log-probabilities after a simulated service time, so the ratios hold for our client and not for any model.
//   npm run bench engine                      # replicas, and 1e3, 1e4 and 1e5 questions; needs half an hour
//   npm run bench engine -- --replicas "" --questions 1000,10000
//   npm run bench engine -- --replicas 2 --service 0.1 --questions ""
// Numbers are medians of three runs; with several replicas the runs alternate.
// docs/explanations/scale.md derives the same numbers.
import { fork } from "node:child_process";
import { mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { atStart, openSession, PeriodicCapabilityCallback } from "@periodic-eval/core";
import { fakeTokenizer } from "@periodic-eval/testing";
import { vllm } from "@periodic-eval/remote";
import { median } from "./median.ts";

const tokenizer = fakeTokenizer();
const { values } = parseArgs({
  options: {
    role: { type: "string", default: "bench" },
    replicas: { type: "string", default: "2,4" },
    questions: { type: "string", default: "1000,10000,100000" },
    urls: { type: "string", default: "" },
    /** Seconds that a replica works on one request, or a list; it works on one at a time. */
    service: { type: "string", default: "0.1,0.5" },
  },
});

interface Asked {
  readonly prompt: readonly number[] | readonly (readonly number[])[];
  readonly prompt_logprobs?: number;
  readonly logprobs?: number;
  readonly model: string;
}

/** Serves fixed log-probabilities: token 1 is the most likely one everywhere. */
async function serve(serviceSeconds: number): Promise<void> {
  let busy = Promise.resolve();
  let requests = 0;
  const nats = (id: number) => -1 - id / 1000;
  const complete = ({ model, prompt, ...body }: Asked) => {
    const prompts = (Array.isArray(prompt[0]) ? prompt : [prompt]) as readonly (readonly number[])[];
    const choices = prompts.map((ids, index) => ({
      index,
      prompt_token_ids: ids,
      token_ids: [1],
      finish_reason: "length",
      text: "a",
      ...(body.prompt_logprobs !== undefined && {
        prompt_logprobs: ids.map((id, at) =>
          at === 0 ? null : { [id]: { logprob: nats(id), rank: id }, 1: { logprob: nats(1), rank: 1 } },
        ),
      }),
      logprobs: { token_logprobs: [nats(1)], top_logprobs: [{ "token_id:1": nats(1) }] },
    }));
    return { model, choices };
  };
  const answer = (path: string, body: unknown): unknown => {
    if (path === "/v1/models")
      return { data: [{ id: "base", root: null, parent: null, max_model_len: 512 }] };
    if (path === "/version") return { version: "double" };
    if (path === "/requests") return requests;
    if (path === "/tokenize") {
      const { prompt, add_special_tokens: specialTokens } = body as {
        readonly prompt: string;
        readonly add_special_tokens: boolean;
      };
      return { tokens: tokenizer.encode(prompt, { specialTokens }) };
    }
    return complete(body as Asked);
  };
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk: Buffer) => (text += chunk.toString()));
    request.on("end", async () => {
      if (request.url === "/v1/completions") {
        requests += 1;
        if (serviceSeconds > 0) await (busy = busy.then(() => sleep(1000 * serviceSeconds)));
      }
      response.end(JSON.stringify(answer(request.url!, text === "" ? null : JSON.parse(text))));
    });
  });
  // Questions are read before the first request of a measurement.
  server.keepAliveTimeout = 600_000;
  server.listen(0, "127.0.0.1", () =>
    process.send!(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
  );
}

/** Measures one capability snapshot of `count` questions, and reports what it took. */
async function measureQuestions(count: number, urls: readonly string[]): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "bench-engine-"));
  const questions = join(folder, "questions.jsonl");
  const lines = Array.from({ length: count }, (_, at) =>
    JSON.stringify({
      question: `What is number ${at}?`,
      choice_labels: ["A", "B", "C", "D"],
      choices: ["one", "two", "three", "four"],
      correct_answer: "B",
    }),
  );
  await writeFile(questions, lines.join("\n"));
  const model = await vllm({ urls, model: "base", tokenizer });
  const session = openSession({
    run: join(folder, "run"),
    maxSteps: 1,
    model,
    callbacks: [
      new PeriodicCapabilityCallback({ questions, method: "cloze", subsample: null, schedule: [atStart()] }),
    ],
    loggers: [],
    budget: { overheadPercent: null },
  });
  const before = process.memoryUsage().rss;
  const began = performance.now();
  const cpuBefore = process.cpuUsage();
  await session.begin();
  const seconds = (performance.now() - began) / 1000;
  const { user, system } = process.cpuUsage(cpuBefore);
  await session.close();
  const files = await readdir(join(folder, "run", "periodic_eval"), { recursive: true, withFileTypes: true });
  const sizes = await Promise.all(
    files
      .filter((entry) => entry.isFile())
      .map(async (entry) => (await stat(join(entry.parentPath, entry.name))).size),
  );
  await rm(folder, { recursive: true });
  const peak = process.resourceUsage().maxRSS * 1024;
  process.send!({
    seconds,
    cpuSeconds: (user + system) / 1e6,
    before,
    peak,
    bytes: sizes.reduce((sum, size) => sum + size, 0),
  });
}

interface Measured {
  readonly seconds: number;
  /** Seconds of CPU time, which hardly depend on what else runs. */
  readonly cpuSeconds: number;
  readonly before: number;
  readonly peak: number;
  readonly bytes: number;
}

function child<T>(args: readonly string[]): Promise<{ readonly answer: T; end(): void }> {
  const forked = fork(fileURLToPath(import.meta.url), [...args], { execArgv: process.execArgv });
  return new Promise((resolve, reject) => {
    forked.once("message", (answer) => resolve({ answer: answer as T, end: () => forked.kill() }));
    forked.once("exit", (code) => reject(new Error(`a child process ended with ${code}`)));
  });
}

async function withReplicas(count: number, serviceSeconds: number, questions: number) {
  const replicas = await Promise.all(
    Array.from({ length: count }, () =>
      child<string>(["--role", "server", "--service", String(serviceSeconds)]),
    ),
  );
  const urls = replicas.map(({ answer }) => answer);
  const { answer, end } = await child<Measured>([
    "--role",
    "client",
    "--questions",
    String(questions),
    "--urls",
    urls.join(),
  ]);
  end();
  const requests = await Promise.all(urls.map(async (url) => (await fetch(`${url}/requests`)).json()));
  for (const replica of replicas) replica.end();
  return { ...answer, requests: (requests as number[]).reduce((sum, served) => sum + served, 0) };
}

const mebibytes = (bytes: number) => (bytes / 2 ** 20).toFixed(0);

const numbers = (list: string) => list.split(",").filter(Boolean).map(Number);

const runs = 3;

const replicaQuestions = 512;

async function benchReplicas(): Promise<void> {
  const counts = [1, ...numbers(values.replicas)];
  for (const service of numbers(values.service)) {
    console.log(
      `replicas (simulated service: ${service} s per request, one request at a time, ${replicaQuestions} questions)`,
    );
    const seconds = counts.map((): number[] => []);
    for (let run = 0; run < runs; run++)
      for (const [at, count] of counts.entries())
        seconds[at]!.push((await withReplicas(count, service, replicaQuestions)).seconds);
    const [single, ...several] = seconds.map(median);
    console.log(`  1 replica: ${single!.toFixed(1)} s`);
    for (const [at, took] of several.entries())
      console.log(
        `  ${counts[at + 1]} replicas: ${took.toFixed(1)} s, ${(single! / took).toFixed(2)} times as fast`,
      );
  }
}

async function benchQuestions(): Promise<void> {
  console.log("questions (no service time, one replica)");
  for (const questions of numbers(values.questions)) {
    const all: Awaited<ReturnType<typeof withReplicas>>[] = [];
    for (let run = 0; run < runs; run++) all.push(await withReplicas(1, 0, questions));
    const of = (what: (run: (typeof all)[number]) => number) => median(all.map(what));
    const perQuestion = of(({ peak, before }) => (peak - before) / questions / 1024);
    console.log(
      `  ${questions}: ${of(({ requests }) => requests)} requests, ${of(({ seconds }) => seconds).toFixed(1)} s (${of(({ cpuSeconds }) => (1000 * cpuSeconds) / questions).toFixed(1)} ms of CPU time per question), ${of(({ bytes }) => bytes / questions).toFixed(0)} bytes on disk per question, peak ${mebibytes(of(({ peak }) => peak))} MiB (${mebibytes(of(({ before }) => before))} before; ${perQuestion.toFixed(1)} KiB per question)`,
    );
  }
}

const urls = values.urls.split(",");
if (values.role === "server") await serve(Number(values.service));
else if (values.role === "client") await measureQuestions(Number(values.questions), urls);
else {
  if (values.replicas !== "") await benchReplicas();
  await benchQuestions();
}
