import { request as httpRequest } from "node:http";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { ask, microWorldService } from "./service-client.test-data.ts";
import { serveFeedback, type FeedbackService } from "./index.ts";
import { temporaryFolder } from "../../../core/src/testing/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);
let service: FeedbackService;
const options = () => microWorldService(join(folder, "adapters"), []);

beforeAll(async () => {
  service = await serveFeedback(options());
});
afterAll(async () => {
  await service.close();
});
afterEach(() => void vi.unstubAllEnvs());

/** Sends `GET /v1/health` with headers that `fetch` does not let callers set. Returns the status. */
const askAs = (headers: Record<string, string>, url = service.url) =>
  new Promise<number>((done, fail) => {
    httpRequest(`${url}/v1/health`, { headers }, (response) => {
      response.resume();
      done(response.statusCode!);
    })
      .on("error", fail)
      .end();
  });

describe("request admission", () => {
  it("rejects unknown paths, invalid JSON, deep or large bodies and other content types", async () => {
    expect(await ask(service.url, "/v2/health")).toMatchObject({
      status: 404,
      body: { error: { code: "no_such_path" } },
    });
    expect(await ask(service.url, "/v1/score", "{")).toMatchObject({
      status: 400,
      body: { error: { code: "invalid_json" } },
    });
    const deep = `{"model": ${"[".repeat(40_000)}${"]".repeat(40_000)}}`;
    expect(await ask(service.url, "/v1/score", deep)).toMatchObject({
      status: 400,
      body: { error: { message: expect.stringContaining("deeper than 400 levels") as string } },
    });
    expect(await ask(service.url, "/v1/score", `{"model": "a", "mode\\u006c": "b"}`)).toMatchObject({
      status: 400,
      body: { error: { message: expect.stringContaining('the key "model" twice') as string } },
    });
    const notUtf8 = Buffer.concat([Buffer.from('{"model": "'), Buffer.from([0xff]), Buffer.from('"}')]);
    expect(await ask(service.url, "/v1/score", notUtf8)).toMatchObject({
      status: 400,
      body: { error: { message: expect.stringContaining("not UTF-8") as string } },
    });
    expect((await ask(service.url, "/v1/score", "null")).status).toBe(400);
    expect(await ask(service.url, "/v1/score", { model: "x".repeat(100_001) })).toMatchObject({
      status: 413,
      body: { error: { code: "body_too_large" } },
    });
    expect((await ask(service.url, "/v1/score", "{}", { "content-type": "text/plain" })).status).toBe(415);
  });

  it("rejects foreign Host and Origin headers", async () => {
    const { host, port } = new URL(service.url);
    expect(await askAs({ host })).toBe(200);
    expect(await askAs({ host: `localhost:${port}` })).toBe(200);
    expect(await askAs({ host: `evil.example:${port}` })).toBe(403);
    expect(await askAs({ host: "127.0.0.1.evil.example" })).toBe(403);
    expect(await askAs({ host: "127.0.0.2" })).toBe(200);
    for (const other of ["10.0.0.1", "127.1", "0x7f.1", "127.0.0.256"])
      expect([other, await askAs({ host: other })]).toEqual([other, 403]);
    expect(await askAs({ host, origin: "http://evil.example" })).toBe(403);
    expect(await askAs({ host, origin: "null" })).toBe(403);
    expect(await askAs({ host, origin: `http://${host}` })).toBe(200);
  });

  it("requires a token on an address that is not loopback, and checks it", async () => {
    const secret = "s3cret-öf-the-gateway";
    const beyond = { ...options(), host: "0.0.0.0", root: join(folder, "open") };
    await expect(serveFeedback(beyond)).rejects.toThrow("OPENCLAW_GATEWAY_TOKEN");
    vi.stubEnv("OPENCLAW_GATEWAY_TOKEN", secret);
    const open = await serveFeedback(beyond);
    const url = open.url.replace("0.0.0.0", "127.0.0.1");
    expect(await askAs({}, url)).toBe(401);
    expect(await askAs({ authorization: "Bearer other" }, url)).toBe(401);
    // As `fetch` sends it, and as curl does.
    for (const encoding of ["latin1", "utf8"] as const) {
      const authorization = Buffer.from(`Bearer ${secret}`, encoding).toString("latin1");
      expect(await askAs({ authorization }, url)).toBe(200);
    }
    const refusal = await (
      await fetch(`${url}/v1/health`, { headers: { authorization: "Bearer x" } })
    ).text();
    expect(refusal).toContain("invalid_token");
    expect(refusal).not.toContain(secret);
    await open.close();
  });

  it("rejects a second service in the same root, a port in use and unknown options", async () => {
    await expect(serveFeedback(options())).rejects.toThrow(".feedback-service.lock");
    const port = Number(new URL(service.url).port);
    const other = { ...options(), root: join(folder, "taken") };
    await expect(serveFeedback({ ...other, port })).rejects.toThrow("EADDRINUSE");
    await (await serveFeedback(other)).close();
    await expect(serveFeedback({ ...other, prt: 1 } as never)).rejects.toThrow('Did you mean "port"?');
  });
});
