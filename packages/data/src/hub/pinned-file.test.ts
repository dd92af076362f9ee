import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { fetchPinnedFile, pinnedPath, pinnedUrl, type PinnedFile } from "./pinned-file.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { errorOf } from "../../../testing/src/error-of.test-data.ts";

const content = Buffer.from("- id: tea\n  paraphrases: ['Tea? — or coffee?']\n");
const sha = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const file: PinnedFile = {
  name: "tea2025",
  repository: "owner/tea",
  commit: "a".repeat(40),
  path: "evaluation/tea.yaml",
  bytes: content.length,
  sha256: sha(content),
  licence: "MIT",
};

let server: Server;
let requests: (string | undefined)[] = [];
let answer: (response: ServerResponse) => void;
let cache = "";
beforeEach(async () => {
  requests = [];
  answer = (response) => response.end(content);
  server = createServer(({ url }, response) => (requests.push(url), answer(response)));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cache = temporaryFolder();
  vi.stubEnv("HF_HUB_CACHE", cache);
  vi.stubEnv("HF_HUB_OFFLINE", "");
  vi.stubEnv("GITHUB_RAW_ENDPOINT", `http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await new Promise((resolve) => {
    server.close(resolve);
    server.closeAllConnections();
  });
});

const fetched = () => fetchPinnedFile(file, "options.questions");
describe("fetchPinnedFile", () => {
  it("downloads a file once, at its commit, and then needs no network", async () => {
    expect(await fetched()).toBe(content.toString());
    expect(requests).toEqual([`/owner/tea/${file.commit}/evaluation/tea.yaml`]);
    const place = join(
      cache,
      "periodic-eval",
      "github",
      "owner",
      "tea",
      file.commit,
      "evaluation",
      "tea.yaml",
    );
    expect(pinnedPath(file)).toBe(place);
    expect(await readFile(place)).toEqual(content);
    vi.stubEnv("HF_HUB_OFFLINE", "1");
    expect(await fetched()).toBe(content.toString());
    expect(requests).toHaveLength(1);
  });

  it("lets two requests at once end in the same file", async () => {
    expect(await Promise.all([fetched(), fetched()])).toEqual([content.toString(), content.toString()]);
    expect(await readdir(dirname(pinnedPath(file)))).toEqual(["tea.yaml"]);
  });

  it("is refused offline before it was downloaded, with the remedy", async () => {
    vi.stubEnv("HF_HUB_OFFLINE", "1");
    const error = await errorOf(fetched());
    expect(error).toMatchObject({ code: "data", where: "options.questions" });
    expect(error.got).toBe(`HF_HUB_OFFLINE, but tea2025 is not in the cache (${pinnedPath(file)})`);
    expect(error.fix).toContain(pinnedUrl(file));
    expect(pinnedUrl(file)).toBe(
      `https://raw.githubusercontent.com/owner/tea/${file.commit}/evaluation/tea.yaml`,
    );
    expect(requests).toEqual([]);
  });

  const changed = Buffer.from(content);
  changed[3] = 0x78;
  it.each<[string, (response: ServerResponse) => void, RegExp]>([
    ["changed content", (response) => response.end(changed), new RegExp(`SHA-256 ${sha(changed)}`)],
    ["a part that ends normally", (response) => response.end(content.subarray(0, 9)), / with 9 bytes /],
    [
      "more than the file",
      (response) => response.end(Buffer.concat([content, content])),
      new RegExp(`^a reply of more than ${content.length} bytes from `),
    ],
    [
      "an endless body",
      (response) => {
        const more = () => response.destroyed || response.write(content, () => setImmediate(more));
        more();
      },
      new RegExp(`^a reply of more than ${content.length} bytes from `),
    ],
    [
      "a part that breaks off",
      (response) => {
        response.writeHead(200, { "Content-Length": content.length });
        response.write(content.subarray(0, 9), () => response.destroy());
      },
      /^no complete response \(/,
    ],
    ["a reset connection", (response) => response.destroy(), /^no complete response \(/],
    ["a missing file", (response) => response.writeHead(404).end("404: Not Found"), /^status 404 from /],
    ["a busy server", (response) => response.writeHead(503).end(), /^status 503 from /],
    ["an empty response", (response) => response.writeHead(204).end(), /^status 204 from /],
  ])("refuses %s and keeps nothing", async (_, act, got) => {
    answer = act;
    const error = await errorOf(fetched());
    expect(error).toMatchObject({ code: "data", where: "options.questions" });
    expect(error.got).toMatch(got);
    expect(error.fix).toContain(`download ${pinnedUrl(file)} by hand and name its path`);
    expect(existsSync(join(cache, "periodic-eval"))).toBe(false);
    answer = (response) => response.end(content);
    expect(await fetched()).toBe(content.toString());
  });

  it.each<[string, (response: ServerResponse) => void]>([
    ["before it answers", () => undefined],
    ["in the file", (response) => void response.write(content.subarray(0, 9))],
  ])("gives up a server that stalls %s, after a minute", async (_, act) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    answer = (response) => {
      act(response);
      vi.advanceTimersByTime(59_000);
      setImmediate(() => vi.advanceTimersByTime(1000));
    };
    const error = await errorOf(fetched());
    vi.useRealTimers();
    expect(error.got).toMatch(/^no complete response \(timed out after 60 s\)/);
  });

  it("names a cached file that was changed, and makes no request", async () => {
    await fetched();
    await writeFile(pinnedPath(file), changed);
    const error = await errorOf(fetched());
    expect(error).toMatchObject({ code: "data", expected: `the ${file.sha256} of tea2025` });
    expect(error.got).toBe(`${pinnedPath(file)} with the SHA-256 ${sha(changed)}`);
    expect(requests).toHaveLength(1);
  });

  it("refuses a malformed GITHUB_RAW_ENDPOINT, and a cache that cannot be written", async () => {
    const { GITHUB_RAW_ENDPOINT: url = "" } = process.env;
    vi.stubEnv("GITHUB_RAW_ENDPOINT", "mirror.example");
    expect(await errorOf(fetched())).toMatchObject({ code: "config", where: "GITHUB_RAW_ENDPOINT" });
    vi.stubEnv("GITHUB_RAW_ENDPOINT", url);
    await writeFile(join(cache, "periodic-eval"), "a file where a folder should be");
    expect((await errorOf(fetched())).code).toBe("store");
  });
});
