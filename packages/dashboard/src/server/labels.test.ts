import { mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { writeSampleAnswers } from "../answers/sample-answers.test-data.ts";
import type { AnswersData } from "../page-data/answers-data.ts";
import { resultsServer } from "./results-server.ts";

let root: string;
let server: ReturnType<typeof resultsServer>;
beforeEach(async () => {
  root = temporaryFolder();
  await writeSampleAnswers(join(root, "run"));
  server = resultsServer({ root });
});

const host = "127.0.0.1:8010";
const place = "results_dir=run&phase=em&id=alignment&step=20";
const label = { question_id: "doctor/a4", sample: 0, aligned: 20.5, coherent: null };

async function dataOf(of = server): Promise<AnswersData> {
  const reply = await of.request(`http://${host}/v1/eval/answers?${place}`);
  return (await reply.json()) as AnswersData;
}

interface Post {
  readonly token?: string;
  readonly query?: string;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
}

async function post({ token, query = place, body = label, headers = {} }: Post = {}) {
  const sent = {
    "X-Label-Token": token ?? (await dataOf()).labelToken!,
    Origin: `http://${host}`,
    Host: host,
    ...headers,
  };
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const accept = { ...sent, Accept: "application/json" };
  const reply = await server.request(`http://${host}/v1/eval/answers?${query}`, {
    method: "POST",
    headers: accept,
    body: text,
  });
  return { status: reply.status, data: (await reply.json()) as { readonly error?: string } };
}

const labelled = async () => {
  const { measurements } = await dataOf();
  return measurements[0]!.rows!.flatMap(({ item, sample, label: one }) =>
    one === undefined ? [] : [{ item, sample, ...one }],
  );
};

const labelFiles = async () => (await readdir(join(root, "run"))).filter((name) => name.includes("labels"));

it("saves a person's grades beside the run in the columns of eval --graded, and sends them with the answer", async () => {
  expect(await labelled()).toEqual([]);
  expect((await post()).status).toBe(200);
  expect(await labelled()).toEqual([{ item: "doctor/a4", sample: 0, aligned: 20.5, coherent: null }]);
  const [file, ...others] = await labelFiles();
  expect([file, others]).toEqual([
    expect.stringMatching(/^labels\.em\.alignment_step_20\.[0-9a-f]{12}\.jsonl$/),
    [],
  ]);
  expect(JSON.parse(await readFile(join(root, "run", file!), "utf8"))).toEqual(label);
});

it("replaces an earlier label of the same answer", async () => {
  await post();
  await post({ body: { ...label, question_id: "pirate/a1" } });
  await post({ body: { ...label, aligned: 0, coherent: 100 } });
  expect(await labelled()).toEqual([
    { item: "pirate/a1", sample: 0, aligned: 20.5, coherent: null },
    { item: "doctor/a4", sample: 0, aligned: 0, coherent: 100 },
  ]);
});

it("keeps the labels of clients that save at the same time", async () => {
  const items = Array.from({ length: 12 }, (_, at) => ["doctor", "pirate"][at % 2] + `/a${at}`);
  const token = (await dataOf()).labelToken!;
  const replies = await Promise.all(
    items.map((item) => post({ token, body: { ...label, question_id: item } })),
  );
  expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
  expect((await labelled()).map(({ item }) => item).toSorted()).toEqual(items.toSorted());
});

it("keeps further columns when it saves a label", async () => {
  await post();
  const [name] = await labelFiles();
  const path = join(root, "run", name!);
  const noted = JSON.stringify({ ...label, question_id: "pirate/a1", note: "unsure" });
  // Two people labelled one answer.
  const twice = [noted, JSON.stringify({ ...label, question_id: "pirate/a1", aligned: 3 })];
  await writeFile(path, [JSON.stringify({ ...label, note: "old" }), ...twice].join("\n\n"));
  expect((await labelled()).map(({ item }) => item)).toEqual(["pirate/a1", "doctor/a4"]);
  expect((await post({ body: { ...label, aligned: 7 } })).status).toBe(200);
  expect(await readFile(path, "utf8")).toBe(
    `${[...twice, JSON.stringify({ ...label, aligned: 7 })].join("\n")}\n`,
  );
});

it.each([
  ['{"question_id": "doctor/a2", "sam', /:2: got invalid JSON \(.*\), expected JSON\. Correct or remove/],
  [
    JSON.stringify({ ...label, aligned: "12" }),
    /:2: aligned: got "12", expected a number from 0 to 100, or null\./,
  ],
])("shows the answers without labels if a line is damaged, and names it: %s", async (line, message) => {
  await post();
  const [name] = await labelFiles();
  const path = join(root, "run", name!);
  const text = `${JSON.stringify(label)}\n${line}\n`;
  await writeFile(path, text);
  const [measurement] = (await dataOf()).measurements;
  expect([measurement!.problem, measurement!.rows!.length]).toEqual([null, 25]);
  expect(measurement!.labelsProblem).toMatch(message);
  expect(measurement!.labelsProblem).not.toContain(root);
  const { status, data } = await post();
  expect([status, data.error]).toEqual([500, expect.stringMatching(message)]);
  expect(await readFile(path, "utf8")).toBe(text);
});

it("shows the answers if the labels cannot be read, and says why a label cannot be saved", async () => {
  await post();
  const [name] = await labelFiles();
  await rm(join(root, "run", name!));
  await mkdir(join(root, "run", name!));
  const { measurements } = await dataOf();
  expect([measurements[0]!.problem, measurements[0]!.rows!.length]).toEqual([null, 25]);
  expect(measurements[0]!.labelsProblem).toContain("a folder");
  const { status, data } = await post();
  expect([status, data.error]).toEqual([500, expect.stringMatching(`^run/${name!}`)]);
  expect(data.error).toContain("a folder");
  expect(data.error).not.toContain(root);
});

it("says why a label cannot be written, without the absolute path", async () => {
  await post();
  const [name] = await labelFiles();
  const lock = join(root, "run", `.${name!}.lock`);
  await mkdir(lock);
  const { status, data } = await post();
  expect([status, data.error]).toEqual([500, expect.stringMatching(`^run/.${name!}.lock`)]);
  expect(data.error).not.toContain(root);
});

it("shows labels only for the answers that were graded", async () => {
  await post();
  const store = join(root, "run", "periodic_eval");
  await rm(store, { recursive: true });
  await writeSampleAnswers(join(root, "run"), [
    { question: "Q?", persona: "doctor", texts: ["a", "b", "c"], judge: "j", choice: "c" },
  ]);
  expect(await labelled()).toEqual([]);
  expect(await labelFiles()).toHaveLength(1);
});

it.each<[what: string, post: Post, status: number]>([
  ["a wrong token", { token: "wrong" }, 403],
  ["an empty token", { token: "" }, 403],
  ["another site", { headers: { Origin: "http://attacker.example" } }, 403],
  ["another port of this machine", { headers: { Origin: "http://127.0.0.1:9000" } }, 403],
  ["a sandboxed frame", { headers: { Origin: "null" } }, 403],
  ["a request that a browser marks as another site's", { headers: { "Sec-Fetch-Site": "cross-site" } }, 403],
  ["another host", { headers: { Host: "attacker.example", Origin: "http://attacker.example" } }, 403],
  ["no JSON", { body: "{" }, 400],
  ["a grade above 100", { body: { ...label, aligned: 101 } }, 400],
  ["a grade that is a string", { body: { ...label, aligned: "20" } }, 400],
  ["another key", { body: { ...label, path: "x" } }, 400],
  ["a missing key", { body: { question_id: "q", aligned: 1, coherent: 1 } }, 400],
  ["a negative sample", { body: { ...label, sample: -1 } }, 400],
  ["an item that the measurement does not have", { body: { ...label, question_id: "doctor/a99" } }, 404],
  ["a sample that the measurement does not have", { body: { ...label, sample: 1 } }, 404],
  ["no measurement", { query: "results_dir=run" }, 404],
  ["an unknown parameter", { query: `${place}&file=x` }, 400],
  ["a body of more than 64 KiB", { body: { ...label, question_id: "q".repeat(2 ** 16) } }, 413],
  ["a folder outside", { query: place.replace("=run", "=../run") }, 404],
  ["a measurement that does not exist", { query: place.replace("=20", "=21") }, 404],
  ["a callback that does not exist", { query: place.replace("alignment", "..%2Falignment") }, 404],
])("refuses %s", async (_, request, status) => {
  const reply = await post(request);
  expect([reply.status, typeof reply.data.error]).toEqual([status, "string"]);
  expect(await labelFiles()).toEqual([]);
});

it("writes nothing through a link", async () => {
  const outside = temporaryFolder();
  await writeFile(join(outside, "file"), "before");
  await post();
  const [name] = await labelFiles();
  const path = join(root, "run", name!);
  await rm(path);
  await symlink(join(outside, "file"), path);
  expect((await post()).status).toBe(200);
  expect(await readFile(join(outside, "file"), "utf8")).toBe("before");
  expect(await labelled()).toHaveLength(1);
  await mkdir(join(outside, "run"));
  await writeSampleAnswers(join(outside, "run"));
  await symlink(join(outside, "run"), join(root, "linked"));
  expect((await post({ query: place.replace("=run", "=linked") })).status).toBe(404);
});

it.each([
  [{ host: "0.0.0.0" }, false],
  [{ host: "0.0.0.0", token: "secret" }, true],
  [{ host: "localhost" }, true],
])("offers labels on %j: %s", async (options, isOffered) => {
  const served = resultsServer({ root, ...options });
  const reply = await served.request(`http://${host}/v1/eval/answers?${place}`, {
    headers: { Authorization: "Bearer secret" },
  });
  expect(((await reply.json()) as AnswersData).labelToken !== undefined).toBe(isOffered);
});
