import { readdir, readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { loadHarnessConfig } from "../config/load-config.ts";
import { runHarness } from "../harness/run-harness.ts";
import { httpEngine } from "./http-engine.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

type Body = Readonly<Record<string, unknown>>;
/** Replies of a service by path. */
type Routes = { readonly [path: string]: (body: Body, authorization: string) => unknown };

const token = "token-of-the-test";
let folder = "";
let close = () => {};
beforeEach(() => void (folder = temporaryFolder()));
afterEach(async () => {
  close();
  vi.unstubAllEnvs();
});

/** Starts a service of another vendor, with FastAPI's error messages. */
async function otherVendorService(routes: Routes) {
  const received: { readonly path: string; readonly body: Body }[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const path = request.url!;
      const body = (chunks.length === 0 ? {} : JSON.parse(Buffer.concat(chunks).toString())) as Body;
      received.push({ path, body });
      const route = routes[path];
      const isProbe = request.method === "POST" && Object.keys(body).length === 0;
      const status = route === undefined ? 404 : isProbe ? 422 : 200;
      const reply =
        status === 200
          ? route!(body, request.headers.authorization ?? "")
          : { detail: status === 404 ? "Not Found" : "field required" };
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(reply));
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  close = () => void server.close();
  return { received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

const answerText = "One sentence. Another sentence, of some more words than that. Three.";
const chat = (content: string) => ({
  model: "x",
  choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
});

/** Returns the routes of a service that trains, without `/v1/score`. */
function trainingRoutes(): Routes {
  return {
    "/health": () => ({ status: "healthy" }),
    "/v1/chat/completions": () => chat(answerText),
    "/v1/lora/init": ({ lora_id }) => ({ lora_id }),
    "/v1/feedback": () => ({ status: "ok" }),
  };
}

async function run(serviceUrl: string, others: Partial<Parameters<typeof httpEngine>[0]> = {}) {
  const config = await loadHarnessConfig({
    overrides: [
      `output_dir=${join(folder, "run")}`,
      "preferences=[concise]",
      "metrics=[logprob,compliance,collapse]",
      "collapse_steps=[0]",
      "num_steps=1",
      "batch_size=2",
      `service_url=${serviceUrl}`,
    ],
  });
  return runHarness(config, { engine: httpEngine({ serviceUrl, maxRetries: 0, ...others }) });
}

const hasRunFolder = async () => (await readdir(folder)).includes("run");

describe("httpEngine with a service of another vendor", () => {
  it.each([
    ["/v1/lora/init", "without /v1/lora/init,"],
    ["/v1/feedback", "without /v1/feedback,"],
  ])("rejects a service without %s before training", async (path, message) => {
    const { [path]: _, ...rest } = trainingRoutes();
    const { url, received } = await otherVendorService(rest);
    await expect(run(url)).rejects.toMatchObject({
      code: "config",
      got: expect.stringContaining(message.slice(0, -1)) as string,
    });
    expect(await hasRunFolder()).toBe(false);
    expect(received.filter(({ body }) => Object.keys(body).length > 0)).toEqual([]);
  });

  it("trains with one request per gradient step", async () => {
    const { url, received } = await otherVendorService(trainingRoutes());
    const { preferences } = await run(url);
    expect(preferences["concise"]).toMatchObject({ status: "finished", updates: null });
    const trained = received.filter(({ path, body }) => path === "/v1/feedback" && "requests" in body);
    expect(trained).toHaveLength(4);
  });

  it("rejects a service that has another model or cannot be reached", async () => {
    const { url } = await otherVendorService({ ...trainingRoutes(), "/v1/health": () => ({ model: "big" }) });
    await expect(run(url, { baseModel: "small" })).rejects.toThrow('got "small", expected "big"');
    close();
    await expect(run("http://127.0.0.1:9")).rejects.toMatchObject({ code: "model" });
    expect(await hasRunFolder()).toBe(false);
  });

  it("sends the token, and keeps it out of every file, error and description", async () => {
    vi.stubEnv("OPENCLAW_GATEWAY_TOKEN", token);
    let sent = "";
    const { url } = await otherVendorService({
      ...trainingRoutes(),
      "/v1/chat/completions": (_, authorization) => chat(`${answerText} ${(sent = authorization)}`),
    });
    await run(url);
    expect(sent).toBe(`Bearer ${token}`);
    const names = await readdir(join(folder, "run"), { recursive: true, withFileTypes: true });
    const files = names.filter((one) => one.isFile());
    expect(files.length).toBeGreaterThan(3);
    for (const { parentPath, name } of files)
      expect(await readFile(join(parentPath, name), "utf8")).not.toContain(token);
    expect(JSON.stringify(httpEngine({ serviceUrl: url }).describe())).not.toContain(token);
    const service = httpEngine({ serviceUrl: `${url}/none`, maxRetries: 0 });
    const error: unknown = await service.check!(new AbortController().signal).catch((one: unknown) => one);
    expect(String(error)).not.toContain(token);
    expect(() => httpEngine({ serviceUrl: url, tokn: token } as never)).toThrow('"tokn"');
  });
});
