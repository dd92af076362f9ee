import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { afterEach, describe, expect, it, vi } from "vitest";
import { jsonService, type JsonServiceOptions } from "../index.ts";

const tokenEnv = "SERVICE_TOKEN_OF_THE_TEST";
const token = 'tok"en\\of-the-test';
const { signal } = new AbortController();
const closing: (() => void)[] = [];

afterEach(() => {
  vi.unstubAllEnvs();
  for (const close of closing.splice(0)) close();
});

type Script = (request: IncomingMessage, response: ServerResponse, count: number) => void;

async function serve(script: Script, options: Partial<JsonServiceOptions> = {}) {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    request.resume().on("end", () => script(request, response, requests.length));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { requests, url, service: jsonService({ url: `${url}/v1/`, tokenEnv, maxRetries: 0, ...options }) };
}

const respond = (response: ServerResponse, status: number, body: unknown, headers = {}) =>
  void response.writeHead(status, headers).end(JSON.stringify(body));

describe("jsonService", () => {
  it.each<[string, Script]>([
    ["a transient status", (_, response) => respond(response, 503, {})],
    ["too many requests", (_, response) => respond(response, 429, {}, { "retry-after": "0.01" })],
    ["a rate limit", (_, response) => respond(response, 429, {}, { "ratelimit-reset": "3600" })],
    ["a broken connection", (_, response) => response.socket!.destroy()],
    [
      "a reply that is cut off",
      (_, response) => {
        response.writeHead(200, { "content-length": 9 });
        response.write("{", () => response.socket!.destroy());
      },
    ],
    ["a timeout", () => {}],
  ])("retries after %s", async (_, trouble) => {
    const { service, requests } = await serve(
      (request, response, count) =>
        count === 1 ? trouble(request, response, count) : respond(response, 200, { ok: count }),
      { maxRetries: 1, timeoutSeconds: 0.3 },
    );
    expect(await service.ask("v1/path", { a: 1 }, signal)).toEqual({ ok: 2 });
    expect(requests.map(({ method, url }) => [method, url])).toEqual([
      ["POST", "/v1/path"],
      ["POST", "/v1/path"],
    ]);
  });

  it.each([
    [429, { "retry-after": "3600" }, "429: later (Retry-After: 3600)"],
    [503, { "retry-after": "61" }, "503: later (Retry-After: 61)"],
    [500, { "x-should-retry": "false" }, "500: later"],
  ])("does not retry %i with %j", async (status, headers, got) => {
    const { service, requests } = await serve(
      (_, response) => respond(response, status, { message: "later" }, headers),
      { maxRetries: 3 },
    );
    await expect(service.ask("v1/path", {}, signal)).rejects.toMatchObject({ code: "model", got });
    expect(requests).toHaveLength(1);
  });

  it.each([401, 500, 503])("shortens a long message of status %i", async (status) => {
    const message = "y".repeat(1e6);
    const headers = { "retry-after": "9".repeat(1000) };
    const { service } = await serve((_, response) => respond(response, status, { message }, headers));
    const error: unknown = await service.ask("v1/path", {}, signal).catch((one: unknown) => one);
    expect(String(error)).toContain(`${status}: yyy`);
    expect(String(error).length).toBeLessThan(1000);
  });

  it("throws with the server's message after maxRetries", async () => {
    const { service, requests } = await serve(
      (_, response) => respond(response, 500, { error: { message: "out of memory" } }),
      { maxRetries: 1 },
    );
    await expect(service.ask("v1/path", {}, signal)).rejects.toMatchObject({
      code: "model",
      got: "500: out of memory",
    });
    expect(requests).toHaveLength(2);
  });

  it.each([
    [404, { detail: "no adapter" }, "config", "404: no adapter"],
    [422, { error: { code: "model", message: "diverged" } }, "config", "422: diverged"],
    [401, { error: { message: "who are you" } }, "config", "401: who are you"],
  ])("does not retry %i", async (status, body, code, got) => {
    const { service, requests } = await serve((_, response) => respond(response, status, body), {
      maxRetries: 3,
    });
    await expect(service.ask("v1/path", {}, signal)).rejects.toMatchObject({ code, got });
    expect(requests).toHaveLength(1);
    if (status !== 401) expect(await service.reply("v1/path", {}, signal)).toEqual({ status, body });
  });

  it("sends the token only if it is set, and masks it in replies and errors", async () => {
    const { service: without, requests } = await serve((_, response) => respond(response, 200, {}));
    await without.ask("health", undefined, signal);
    expect(requests[0]).toMatchObject({ method: "GET" });
    expect(requests[0]!.headers.authorization).toBeUndefined();

    vi.stubEnv(tokenEnv, token);
    const echo: Script = (request, response) =>
      respond(response, request.url === "/bad" ? 400 : request.url === "/shut" ? 403 : 200, {
        error: { message: `you sent ${request.headers.authorization}` },
      });
    const { service, requests: sent } = await serve(echo);
    expect(await service.ask("good", {}, signal)).toEqual({ error: { message: "you sent Bearer ***" } });
    expect(sent[0]!.headers.authorization).toBe(`Bearer ${token}`);
    for (const path of ["bad", "shut"]) {
      const error: unknown = await service.ask(path, {}, signal).catch((one: unknown) => one);
      expect(String(error)).toContain("you sent Bearer ***");
      expect(inspect(error, { depth: 9 })).not.toContain("of-the-test");
    }
    await expect(service.ask("shut", {}, signal)).rejects.toThrow(`Correct the token in ${tokenEnv}`);
    await expect(service.ask("shut", {}, signal)).rejects.toMatchObject({
      detail: { kind: "http", status: 403 },
    });
    expect(inspect(service)).not.toContain("of-the-test");
  });

  it("masks the token in field names", async () => {
    vi.stubEnv(tokenEnv, token);
    const named = {
      [`Bearer ${token}`]: [{ [token]: 1, other: { [`x${token}`]: token } }],
      ["__proto__"]: 2,
    };
    const { service } = await serve((_, response) => respond(response, 200, named));
    const body = await service.ask("path", {}, signal);
    expect(JSON.stringify(body)).toBe('{"Bearer ***":[{"***":1,"other":{"x***":"***"}}],"__proto__":2}');
  });

  it.each<[string, (text: string) => string]>([
    ["as code points", (text) => [...text].map((one) => `\\u00${one.charCodeAt(0).toString(16)}`).join("")],
    [
      "with escaped slashes",
      (text) =>
        JSON.stringify(text)
          .slice(1, -1)
          .replaceAll("/", String.raw`\/`),
    ],
  ])("masks the token in JSON that writes it %s", async (_, written) => {
    const secret = "token/of/the-test";
    vi.stubEnv(tokenEnv, secret);
    const { service } = await serve(
      (_request, response) => void response.writeHead(200).end(`{"value":"<${written(secret)}>"}`),
    );
    expect(await service.ask("path", {}, signal)).toEqual({ value: "<***>" });
  });

  it("does not follow a redirect with the token", async () => {
    vi.stubEnv(tokenEnv, token);
    const other = await serve((_, response) => respond(response, 200, {}));
    const { service } = await serve((_, response) =>
      respond(response, 307, {}, { location: `${other.url}/v1/path` }),
    );
    await expect(service.ask("v1/path", {}, signal)).rejects.toMatchObject({ code: "model" });
    expect(other.requests).toHaveLength(0);
  });

  it("rejects with the reason of the abort", async () => {
    const ending = new AbortController();
    const { service } = await serve(() => ending.abort(new Error("enough")), { maxRetries: 3 });
    await expect(service.ask("v1/path", {}, ending.signal)).rejects.toThrow("enough");
    await expect(service.ask("v1/path", {}, ending.signal)).rejects.toThrow("enough");
  });

  it.each(["localhost:8000", "ftp://a", "http://user:secret@a", "http://a?key=secret", "http://a#secret"])(
    "throws for the address %s without quoting it",
    (url) => {
      const open = () => jsonService({ url, tokenEnv });
      expect(open).toThrow(expect.objectContaining({ code: "config", path: ["url"] }) as Error);
      expect(open).not.toThrow("secret");
    },
  );
});
