import { rm } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { getRaw } from "./raw-request.test-data.ts";
import { resultsServer } from "./results-server.ts";
import { secret, writeOutside, writeSampleRoot, type SampleRoot } from "./sample-root.test-data.ts";
import { serveResults, type Serving } from "./serve-results.ts";

let sample: SampleRoot;
let serving: Serving;
let port = 0;
beforeAll(async () => {
  sample = await writeSampleRoot();
  await writeOutside(sample);
  serving = await serveResults({ root: sample.root, port: 0 });
  port = Number(new URL(serving.address).port);
});
afterAll(async () => {
  await serving.close();
  await sample.release();
  await rm(sample.above, { recursive: true });
});

const ask = (value: string) => getRaw(port, `/v1/eval?results_dir=${value}`);

/** Asserts that a reply contains no file from outside the root and does not reveal the root's path. */
function expectContained(text: string): void {
  expect(text).not.toContain(secret);
  expect(text).not.toContain("root:x:0");
  expect(text).not.toContain(sample.above);
}

/** Paths that lead outside, before encoding. */
const outsidePaths = (above: string): readonly string[] => [
  "../outside",
  "../outside/run",
  "../../../../../../../../etc",
  "seeds/../../outside/run",
  "seeds/finished/periodic_eval/../../../../outside/run",
  "./../outside/run",
  "//../outside/run",
  "/etc",
  join(above, "outside", "run"),
  join(above, "root"),
];

const hex = (text: string): string =>
  [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, "0")}`).join("");

/** Encodings of a path in an address. */
const encodings: readonly (readonly [name: string, encode: (path: string) => string])[] = [
  ["as it is", (path) => path],
  ["dots encoded", (path) => path.replaceAll(".", "%2e")],
  ["dots in capitals", (path) => path.replaceAll(".", "%2E")],
  ["slashes encoded", (path) => path.replaceAll("/", "%2f")],
  ["all encoded", hex],
  ["one dot of two encoded", (path) => path.replaceAll("..", ".%2e")],
  ["encoded twice", (path) => hex(path).replaceAll("%", "%25")],
  ["encoded three times", (path) => hex(path).replaceAll("%", "%2525")],
  ["backslashes", (path) => path.replaceAll("/", "\\")],
  ["backslashes encoded", (path) => path.replaceAll("/", "%5c")],
  ["both kinds of slashes", (path) => path.replaceAll("/", "%5c/")],
  ["overlong dots and slashes", (path) => path.replaceAll(".", "%c0%ae").replaceAll("/", "%c0%af")],
  ["wide dots and slashes", (path) => path.replaceAll(".", "%ef%bc%8e").replaceAll("/", "%ef%bc%8f")],
  ["a NUL behind", (path) => `${path}%00`],
  ["a NUL before a suffix", (path) => `${path}%00.json`],
  ["a NUL after dots", (path) => path.replaceAll("..", "..%00")],
  ["dots doubled", (path) => path.replaceAll("../", "....//")],
  ["semicolons", (path) => path.replaceAll("../", "..;/")],
  ["JavaScript escapes", (path) => path.replaceAll(".", "%u002e")],
  ["as an address", (path) => `file://${path}`],
];

const links = [
  "link-out",
  "link-out/run",
  "link-out-run",
  "chain",
  "chain/run",
  "absolute-link",
  "absolute-link/run",
  "etc-link",
  "loop",
  "dangling",
];

it("shows runs inside the root, also through a link that stays inside", async () => {
  for (const inside of ["seeds/finished", "./seeds//finished/", "link-in", "seeds%2ffinished"]) {
    const reply = await ask(inside);
    expect([inside, reply.status]).toEqual([inside, 200]);
    expect(reply.body).toContain("coupling");
    expectContained(reply.whole);
  }
});

describe("paths outside the root", () => {
  it("get the same reply as missing folders, in every encoding", async () => {
    const nowhere = await ask("nowhere");
    expect(nowhere.status).toBe(404);
    const attempts = [
      ...outsidePaths(sample.above).flatMap((path) => encodings.map(([, encode]) => encode(path))),
      ...links,
      ...links.map(hex),
      "notes.txt",
      "seeds/finished/periodic_eval/index.jsonl",
    ];
    expect(new Set(attempts).size).toBeGreaterThanOrEqual(200);
    for (const attempt of attempts) {
      const reply = await ask(attempt);
      expect([attempt, reply.status, reply.body]).toEqual([attempt, 404, nowhere.body]);
      expectContained(reply.whole);
    }
  });

  it.each([
    "/v1/eval/../../../../../../etc/passwd",
    "/v1/eval/..%2f..%2f..%2fetc%2fpasswd",
    "/../../../../etc/passwd",
    "//etc/passwd",
    "/%2e%2e/%2e%2e/outside/secret.txt",
    "/v1/eval;/../../outside",
    "/outside/secret.txt",
    "/notes.txt",
  ])("are not readable as the path %s", async (target) => {
    const reply = await getRaw(port, target);
    expect(reply.status).toBe(404);
    expectContained(reply.whole);
  });

  it.each([
    "http://127.0.0.1/v1/eval?results_dir=../outside/run",
    "file:///etc/passwd",
    "*",
    "/..\\..\\outside\\secret.txt",
    "http://attacker.example/v1/eval",
  ])("are not readable as the request target %s", async (target) => {
    const reply = await getRaw(port, target);
    expect(reply.status).not.toBe(200);
    expectContained(reply.whole);
  });

  it("are not readable through links to snapshots, phases or answers in a run", async () => {
    for (const more of [[], ["Accept: application/json"]]) {
      const reply = await getRaw(port, "/v1/eval?results_dir=with-links&steps=all", more);
      expect(reply.status).toBe(200);
      expect(reply.body).toContain("coupling");
      expect(reply.body).not.toContain("linked-phase");
      expectContained(reply.whole);
    }
  });

  it("are not listed through links to folders", async () => {
    for (const more of [[], ["Accept: application/json"]]) {
      const reply = await getRaw(port, "/v1/eval?per_page=200", more);
      expect(reply.status).toBe(200);
      expect(reply.body).toContain("with-links");
      for (const link of links) expect(reply.body).not.toContain(link);
      expectContained(reply.whole);
    }
  });

  it("are not readable by random paths", async () => {
    const app = resultsServer({ root: sample.root });
    const part = fc.oneof(
      fc.constantFrom(
        "..",
        ".",
        "",
        "...",
        "seeds",
        "finished",
        "outside",
        "run",
        "secret.txt",
        "periodic_eval",
        "%2e%2e",
        "\\",
        "\0",
        "~",
        "C:",
      ),
      fc.constantFrom(...links),
      fc.string({ unit: "binary", maxLength: 8 }),
    );
    const paths = fc.oneof(
      fc.array(part, { maxLength: 8 }).map((parts) => parts.join("/")),
      fc.string({ unit: "binary" }),
    );
    const property = fc.asyncProperty(paths, async (path) => {
      const reply = await app.request(`/v1/eval?results_dir=${encodeURIComponent(path)}&per_page=1`);
      expect([200, 404]).toContain(reply.status);
      expectContained(await reply.text());
    });
    await fc.assert(property, { numRuns: 200, seed: 8 });
  });
});
