import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { setTimeout as delay } from "node:timers/promises";
import { beforeEach, expect, it } from "vitest";
import { sampleResults } from "../results/sample-results.test-data.ts";
import type { ReadResults } from "./read-run.ts";
import { resultsServer } from "./results-server.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

let root = "";
beforeEach(async () => {
  root = temporaryFolder();
  for (const name of ["a", "b", "c", "d"]) {
    await mkdir(join(root, name));
    await writeFile(join(root, name, "metrics.json"), "{}");
  }
});

const runsOf = (): ReadResults => structuredClone({ runs: sampleResults.slice(0, 1), samples: [] });

it.each(["text/html", "application/json"])(
  "releases each run of a %s page before it reads the next",
  async (accept) => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const read: WeakRef<object>[] = [];
    const kept: number[] = [];
    const server = resultsServer({
      root,
      async readResults() {
        // The previous run can be collected only in a later turn of the event loop.
        await delay(5);
        collect();
        kept.push(read.filter((one) => one.deref() !== undefined).length);
        const results = runsOf();
        read.push(new WeakRef(results.runs[0]!));
        return results;
      },
    });
    const reply = await server.request("/v1/eval?per_page=200", { headers: { Accept: accept } });
    await reply.text();
    expect([reply.status, kept.length]).toEqual([200, 4]);
    // The reader may still hold the previous run.
    expect(Math.max(...kept)).toBeLessThanOrEqual(1);
  },
);

it("creates one page at a time, and continues after one that fails", async () => {
  let [open, maxOpen, reads] = [0, 0, 0];
  const server = resultsServer({
    root,
    async readResults() {
      maxOpen = Math.max(maxOpen, ++open);
      await delay(2);
      open--;
      if (reads++ === 0) throw new Error("damaged");
      return runsOf();
    },
  });
  const queries = ["", "?results_dir=a", "?page=2&per_page=2", "?results_dir=nowhere", "?results_dir=b"];
  const replies = await Promise.all(queries.map(async (query) => server.request(`/v1/eval${query}`)));
  await Promise.all(replies.map(async (reply) => reply.text()));
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 404, 200]);
  expect([reads, maxOpen]).toEqual([8, 1]);
});

const address = "http://127.0.0.1:8010/v1/eval?per_page=200";
const host = "127.0.0.1:8010";
it.each([
  ["an image on another site", { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" }, 403],
  [
    "a frame on another site",
    { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe" },
    403,
  ],
  ["a script on another site", { origin: "http://attacker.example" }, 403],
  ["a local file or a sandboxed frame", { origin: "null" }, 403],
  ["another port of this machine", { origin: "http://127.0.0.1:9000" }, 403],
  [
    "a link on another site",
    { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" },
    200,
  ],
  ["a page of this server", { origin: `http://${host}`, "sec-fetch-site": "same-origin" }, 200],
  ["the address bar", { "sec-fetch-site": "none", "sec-fetch-mode": "navigate" }, 200],
  ["a program", {}, 200],
])("replies to %s (%j) with status %i", async (_, headers, status) => {
  const read: string[] = [];
  const server = resultsServer({
    root,
    async readResults(file) {
      read.push(file);
      return runsOf();
    },
  });
  const reply = await server.request(address, { headers: { host, ...headers } });
  await reply.text();
  expect([reply.status, read.length]).toEqual([status, status === 200 ? 4 : 0]);
});
