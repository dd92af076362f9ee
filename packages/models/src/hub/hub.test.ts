import { mkdir, readdir, readFile, readlink, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { loadCausalLM } from "../checkpoint/load-causal-lm.ts";
import { outlineCausalLM } from "../outline/outline.ts";
import { loadTokenizer } from "../tokenizer/load-tokenizer.ts";
import type { DownloadProgress } from "./fetch-model.ts";
import { filesOf, sha256, startHub, type HubServer } from "../../../data/src/hub/hub-server.test-data.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { errorOf } from "../../../testing/src/error-of.test-data.ts";

const world = fileURLToPath(new URL("../../../cli/assets/micro-world", import.meta.url));
const files = filesOf(world);
const weights = files.get("model.safetensors")!;
const [first, second] = ["1".repeat(40), "2".repeat(40)];
const changed = new Map([
  ...files,
  ["chat_template.jinja", Buffer.from("{{ messages[0].content }}!")],
  ["additional_chat_templates/tool_use.jinja", Buffer.from("{{ messages[0].content }}?")],
]);

let hub: HubServer;
let cache = "";
let stored = "";
beforeAll(async () => {
  await useBackend({ backend: "cpu" });
});
beforeEach(async () => {
  hub = await startHub();
  cache = temporaryFolder();
  stored = join(cache, "models--owner--world");
  hub.models.set("owner/world", {
    revisions: { main: first, "v2.0": second, "refs/pr/1": second },
    commits: { [first]: files, [second]: changed },
  });
  vi.stubEnv("HF_ENDPOINT", hub.url);
  vi.stubEnv("HF_HUB_CACHE", cache);
  for (const name of ["HF_TOKEN", "HF_HUB_OFFLINE"]) vi.stubEnv(name, "");
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await hub.close();
});

async function load(id: string, onDownload?: (progress: DownloadProgress) => void) {
  const model = await loadCausalLM(id, onDownload && { onDownload });
  model.dispose();
  return model;
}
const chat = { messages: [{ role: "user", content: "Hello" }] };

describe("loading a hub model", () => {
  it("downloads each file once into huggingface_hub's cache layout and then makes no requests", async () => {
    const reports: DownloadProgress[] = [];
    const model = await load("owner/world", (progress) => reports.push(progress));
    expect(model.name).toBe("owner/world");
    expect(model.folder).toBe(join(stored, "snapshots", first));
    expect(await readFile(join(stored, "refs", "main"), "utf8")).toBe(first);
    expect(await readlink(join(model.folder!, "model.safetensors"))).toBe(
      join("..", "..", "blobs", sha256(weights)),
    );
    expect(weights.equals(await readFile(join(model.folder!, "model.safetensors")))).toBe(true);
    // The training rows and questions in the repository are not model files; the weights come last.
    expect([...new Set(reports.map(({ file }) => file))]).toEqual([
      "config.json",
      "chat_template.jinja",
      "generation_config.json",
      "tokenizer.json",
      "tokenizer_config.json",
      "model.safetensors",
    ]);
    expect(reports.at(-1)).toEqual({
      model: "owner/world",
      file: "model.safetensors",
      doneBytes: weights.length,
      totalBytes: weights.length,
    });
    hub.requests.length = 0;
    await load("owner/world");
    const tokenizer = await loadTokenizer("owner/world");
    expect(tokenizer.fingerprint).toBe((await loadTokenizer(world)).fingerprint);
    expect(hub.requests).toEqual([]);
  });

  it("downloads the tokenizer without the weights", async () => {
    await loadTokenizer("owner/world");
    expect((await readdir(join(stored, "snapshots", first))).sort()).toEqual([
      "chat_template.jinja",
      "config.json",
      "generation_config.json",
      "tokenizer.json",
      "tokenizer_config.json",
    ]);
    hub.requests.length = 0;
    await loadTokenizer("owner/world");
    expect(hub.requests).toEqual([]);
  });

  it("downloads only the configuration for an outline, and the rest when the model loads", async () => {
    expect(await outlineCausalLM("owner/world")).toMatchObject({ name: "owner/world", contextLength: 256 });
    expect(await readdir(join(stored, "snapshots", first))).toEqual(["config.json"]);
    expect((await load("owner/world")).contextLength).toBe(256);
  });

  it("loads the requested revision: a tag, a branch with a slash, a commit", async () => {
    for (const revision of ["v2.0", "refs/pr/1", second]) {
      const tokenizer = await loadTokenizer(`owner/world@${revision}`);
      expect(tokenizer.render(chat).text).toBe("Hello!");
    }
    expect((await loadTokenizer("owner/world")).render(chat).text).not.toBe("Hello!");
    expect((await readdir(join(stored, "snapshots"))).sort()).toEqual([first, second]);
    const [plain, tools] = [{ messages: [{ role: "user", content: "a" }] }, { tools: [{}] }];
    const tokenizer = await loadTokenizer("owner/world@v2.0");
    expect([plain, { ...plain, ...tools }].map((chat) => tokenizer.render(chat).text)).toEqual(["a!", "a?"]);
  });

  it("keeps using the first commit of a revision when the hub has a newer one", async () => {
    await loadTokenizer("owner/world");
    hub.models.set("owner/world", {
      revisions: { main: second },
      commits: { [first]: files, [second]: changed },
    });
    expect((await load("owner/world")).folder).toBe(join(stored, "snapshots", first));
  });

  it("downloads shards by their index, and prefers a single file of weights", async () => {
    const folder = join(cache, "sharded");
    const { openSafetensors, writeSafetensors } = await import("@periodic-eval/safetensors");
    const whole = await openSafetensors(join(world, "model.safetensors"));
    const names = [...whole.tensors.keys()];
    await mkdir(folder);
    const map: Record<string, string> = {};
    for (const [shard, part] of [names.slice(0, 5), names.slice(5)].entries()) {
      const file = `model-0000${shard + 1}-of-00002.safetensors`;
      for (const name of part) map[name] = file;
      await writeSafetensors(
        join(folder, file),
        part.map((name) => ({
          name,
          shape: whole.tensors.get(name)!.shape,
          values: async () => (await whole.read(name)) as Float32Array,
        })),
      );
    }
    await whole.close();
    await writeFile(join(folder, "model.safetensors.index.json"), JSON.stringify({ weight_map: map }));
    // Some repositories hold both forms. transformers downloads the single file.
    const both = new Map([...files, ...filesOf(folder)]);
    hub.models.set("owner/world", { revisions: { main: first }, commits: { [first]: both } });
    const { folder: single } = await load("owner/world");
    expect((await readdir(single!)).filter((name) => name.includes("safetensors"))).toEqual([
      "model.safetensors",
    ]);
    await rm(stored, { recursive: true });
    const sharded = new Map(both);
    sharded.delete("model.safetensors");
    hub.models.set("owner/world", { revisions: { main: first }, commits: { [first]: sharded } });
    const { folder: fetched } = await load("owner/world");
    expect((await readdir(fetched!)).filter((name) => name.endsWith(".safetensors"))).toEqual([
      "model-00001-of-00002.safetensors",
      "model-00002-of-00002.safetensors",
    ]);
    hub.requests.length = 0;
    await rm(join(fetched!, "model-00002-of-00002.safetensors"));
    await load("owner/world");
    // The blob is still in the cache, so only the listing is requested.
    expect(hub.requests).toEqual([`GET /api/models/owner/world/tree/${first}`]);
  });

  it("prefers a local folder of the same name", async () => {
    const before = process.cwd();
    process.chdir(cache);
    try {
      await mkdir("owner");
      await symlink(world, join("owner", "world"), "dir");
      expect((await load("owner/world")).folder).toBe("owner/world");
      expect(hub.requests).toEqual([]);
    } finally {
      process.chdir(before);
    }
  });
});

describe("a failed download", () => {
  const cut = 100_000;
  const isWeights = (path: string) => path.startsWith("/large/");

  it.each([
    ["the connection closes", false],
    ["the response ends early", true],
  ])("throws when %s, and resumes on the next call", async (_, endsNormally) => {
    hub.tamper = (path) => (isWeights(path) ? { stopAfter: cut, endsNormally } : null);
    const error = await errorOf(load("owner/world"));
    expect(error.message).toMatch(
      /owner\/world, model\.safetensors on the hub: got 100000 of 864528 bytes.*, expected the whole file\. Check the network and run it again/,
    );
    expect(await readdir(join(stored, "blobs"))).toContain(`${sha256(weights)}.incomplete`);
    expect(await readdir(join(stored, "snapshots", first))).not.toContain("model.safetensors");
    hub.tamper = null;
    hub.requests.length = 0;
    await load("owner/world");
    expect(hub.requests.filter((request) => isWeights(request.slice(4)) && !request.endsWith("0-0"))).toEqual(
      [`GET /large/owner/world/resolve/${first}/model.safetensors bytes=${cut}-${weights.length - 1}`],
    );
    expect((await readdir(join(stored, "blobs"))).filter((name) => name.includes("incomplete"))).toEqual([]);
  });

  it("deletes content whose hash does not match", async () => {
    const other = Buffer.from(weights);
    other[other.length - 1]! ^= 1;
    hub.tamper = (path) => (isWeights(path) ? { content: other } : null);
    const error = await errorOf(load("owner/world"));
    expect(error.message).toContain(
      `got content with the hash ${sha256(other)}, expected the hash ${sha256(weights)}`,
    );
    expect((await readdir(join(stored, "blobs"))).filter((name) => name.startsWith(sha256(weights)))).toEqual(
      [],
    );
    hub.tamper = null;
    await load("owner/world");
  });

  it("starts over when the partial file is longer than the complete one", async () => {
    await mkdir(join(stored, "blobs"), { recursive: true });
    await writeFile(join(stored, "blobs", `${sha256(weights)}.incomplete`), Buffer.alloc(weights.length + 1));
    expect((await load("owner/world")).name).toBe("owner/world");
  });

  it("allows two downloads of the same file at once", async () => {
    const [one, two] = await Promise.all([load("owner/world"), load("owner/world")]);
    expect(one.folder).toBe(two.folder);
    expect(weights.equals(await readFile(join(one.folder!, "model.safetensors")))).toBe(true);
  });
});

describe("loading a hub model throws", () => {
  it.each([
    ["no token", "", 401, "accept its terms on its page and set HF_TOKEN to your access token."],
    ["a token without access", "hf_other", 403, "check that HF_TOKEN may read it."],
  ] as const)("for a gated model with %s", async (_, token, status, fix) => {
    const gate = { token: "hf_mine", status, message: "Access to model owner/world is restricted." };
    hub.models.set("owner/world", { revisions: { main: first }, commits: { [first]: files }, gate });
    vi.stubEnv("HF_TOKEN", token);
    const error = await errorOf(load("owner/world"));
    expect(error.message).toContain(
      `owner/world on the hub: got status ${status} (Access to model owner/world is`,
    );
    expect(error.message).toContain(fix);
    vi.stubEnv("HF_TOKEN", "hf_mine");
    await load("owner/world");
  });

  it("for a malformed token, without repeating it in the message", async () => {
    vi.stubEnv("HF_TOKEN", "secret");
    const error = await errorOf(load("owner/world"));
    expect([error.code, error.where]).toEqual(["config", "HF_TOKEN"]);
    expect(error.message).not.toContain("secret");
  });

  it.each([
    [
      "other/world",
      "other/world on the hub: got status 404 (Repository not found)",
      "No local folder has this name",
    ],
    ["owner/world@v3", "owner/world@v3 on the hub: got status 404 (Invalid rev id: v3)", "and the revision"],
    [`owner/world@${"3".repeat(40)}`, "status 404", "and the revision"],
  ])("for the unknown model or revision %s", async (id, got, fix) => {
    const { message } = await errorOf(load(id));
    expect(message).toContain(got);
    expect(message).toContain(fix);
  });

  it("when the hub is unreachable, unless the files are in the cache", async () => {
    await loadTokenizer("owner/world");
    vi.stubEnv("HF_ENDPOINT", "http://127.0.0.1:1");
    await loadTokenizer("owner/world");
    const { message } = await errorOf(load("owner/world"));
    expect(message).toMatch(
      /owner\/world on the hub: got fetch failed \(.+\), expected a response of the hub\. No local folder has/,
    );
    // huggingface_hub does not record that there is no special_tokens_map.json.
    await rm(join(stored, ".no_exist"), { recursive: true });
    await loadTokenizer("owner/world");
  });

  it("for uncached files when HF_HUB_OFFLINE is set", async () => {
    await loadTokenizer("owner/world");
    hub.requests.length = 0;
    vi.stubEnv("HF_HUB_OFFLINE", "1");
    await loadTokenizer("owner/world");
    expect((await errorOf(load("owner/world"))).message).toContain("got HF_HUB_OFFLINE");
    expect(hub.requests).toEqual([]);
  });

  it("when the hub responds with status 503", async () => {
    hub.tamper = () => ({ status: 503 });
    expect((await errorOf(load("owner/world"))).message).toMatch(
      /config\.json on the hub: got 0 of 582 bytes/,
    );
  });

  it("when the cache cannot be written", async () => {
    await writeFile(stored, "a file in its place");
    const error = await errorOf(load("owner/world"));
    expect(error.code).toBe("store");
    expect(error.message).toContain(stored);
  });

  it("for pickled weights, on the hub and in a folder", async () => {
    const pickles = new Map([...files, ["pytorch_model.bin", Buffer.from("pickle")]]);
    pickles.delete("model.safetensors");
    hub.models.set("owner/world", { revisions: { main: first }, commits: { [first]: pickles } });
    const folder = join(cache, "pickled");
    await mkdir(folder);
    for (const name of ["config.json", "pytorch_model.bin"])
      await writeFile(join(folder, name), pickles.get(name)!);
    for (const source of ["owner/world", folder]) {
      const { message } = await errorOf(load(source));
      expect(message).toContain(
        "got only pytorch_model.bin, a pickled checkpoint, expected weights in safetensors",
      );
      expect(message).toContain("unpickling a file runs the code in it. If you trust the file, convert it");
    }
    expect(hub.requests.filter((request) => request.includes("pytorch_model"))).toEqual([]);
  });

  it("for a string that is neither a folder nor a hub name", async () => {
    for (const path of [
      "./none/here",
      "/none",
      "a/b/c",
      "none",
      "../up",
      "a/..",
      "-a/b",
      "a/b@../c",
      "a\0/b",
      "",
    ]) {
      expect((await errorOf(load(path))).message, path).toContain(
        "got neither an existing folder nor the name of a model on the hub, expected a folder",
      );
    }
    expect((await errorOf(load(join(world, "config.json")))).message).toContain(
      "got a file, expected a folder that Hugging Face libraries saved",
    );
    expect((await errorOf(load(7 as unknown as string))).code).toBe("model");
    expect(hub.requests).toEqual([]);
  });
});

describe("a hostile hub", () => {
  it("cannot name a file outside the cache in a listing, an index or a commit", async () => {
    const entry = { type: "file", size: 1, oid: "a".repeat(40) };
    hub.extraEntries = [
      "../outside.json",
      "/outside.json",
      "..\\outside.json",
      "tokenizer_/../../outside.json",
      "C:outside.json",
    ].map((path) => ({ ...entry, path }));
    await load("owner/world");
    expect(hub.requests.filter((request) => request.includes("outside"))).toEqual([]);

    for (const shard of [
      "../outside.safetensors",
      "/outside.safetensors",
      "..\\outside.safetensors",
      "e\0.safetensors",
    ]) {
      const index = Buffer.from(JSON.stringify({ weight_map: { a: shard } }));
      const indexed = new Map([...files, ["model.safetensors.index.json", index]]);
      indexed.delete("model.safetensors");
      const commit = sha256(index).slice(0, 40);
      hub.models.set("owner/world", { revisions: { main: commit }, commits: { [commit]: indexed } });
      await rm(stored, { recursive: true });
      expect((await errorOf(load("owner/world"))).message).toContain(
        "expected a plain file name that ends in .safetensors",
      );
    }
    hub.models.set("owner/world", {
      revisions: { main: "../../outside" },
      commits: { "../../outside": files },
    });
    await rm(stored, { recursive: true });
    expect((await errorOf(load("owner/world"))).message).toContain('the commit "../../outside"');
    hub.extraEntries = [{ ...entry, path: "config.json", oid: "../outside" }];
    hub.models.set("owner/world", { revisions: { main: first }, commits: { [first]: files } });
    expect((await errorOf(load("owner/world"))).message).toContain("expected a size and a hash");
    expect(await readdir(cache)).toEqual([]);
  });

  it("cannot send a listing of more than 32 MiB", async () => {
    const entry = { type: "file", size: 1, oid: "a".repeat(40), path: "file" };
    hub.extraEntries = [{ ...entry, padding: "x".repeat(2 ** 25) }];
    expect((await errorOf(load("owner/world"))).message).toContain("a reply of more than 33554432 bytes");
  });
});
