import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { folderStore, uploads, type StoreFailure } from "./store.ts";
import { httpStore } from "./http-store.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";

const live = () => ({ signal: new AbortController().signal });

describe("folderStore", () => {
  it("writes each value as a complete JSON file that replaces the previous one", async () => {
    const folder = temporaryFolder();
    const store = folderStore(join(folder, "new"));
    await store.put("a/b.json", { x: 1 }, live());
    await store.put("a/b.json", [2], live());
    expect(JSON.parse(await readFile(join(folder, "new/a/b.json"), "utf8"))).toEqual([2]);
    await writeFile(join(folder, "file"), "");
    await expect(folderStore(join(folder, "file")).put("a/b.json", 1, live())).rejects.toThrow(
      /got (EEXIST|ENOTDIR) \(a file is in the place of a folder\)/,
    );
  });
});

describe("uploads", () => {
  it("puts later values into a store that rejected an earlier one with an object that is no error", async () => {
    const put = vi.fn<() => Promise<void>>().mockRejectedValueOnce({ code: 507 }).mockResolvedValue();
    const { put: upload, settle, failures } = uploads([{ name: "mine", put }]);
    const reported: StoreFailure[] = [];
    for (const name of ["a", "b"]) upload(name, 1, (failure) => reported.push(failure));
    await settle();
    expect(put).toHaveBeenCalledTimes(2);
    expect(reported).toEqual([
      {
        store: "mine",
        name: "a",
        reason: '{"code":507}',
      },
    ]);
    expect(failures).toEqual(reported);
  });
});

interface Seen {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly authorization: string | undefined;
  readonly body: string;
}

/** Starts a loopback server that answers with these statuses in turn, then repeats the last; null closes the connection. */
async function serve(...statuses: readonly (number | null)[]) {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => void chunks.push(chunk));
    request.on("end", () => {
      const { method, url, headers } = request;
      const status = statuses[Math.min(seen.length, statuses.length - 1)]!;
      seen.push({
        method,
        url,
        authorization: headers.authorization,
        body: Buffer.concat(chunks).toString(),
      });
      if (status === null) return void request.socket.destroy();
      response
        .writeHead(status, status === 302 ? { location: "/elsewhere" } : {})
        .end("secret-token, you said");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/runs/`, seen };
}

describe("httpStore", () => {
  afterEach(() => vi.unstubAllEnvs());

  it("sends a PUT to the URL of each value, with the token from the environment", async () => {
    vi.stubEnv("STORE_TOKEN", "secret-token");
    const { url, seen } = await serve(204);
    await httpStore({ url, tokenEnv: "STORE_TOKEN" }).put("a/b.json", { x: [1] }, live());
    expect(seen).toEqual([
      { method: "PUT", url: "/runs/a/b.json", authorization: "Bearer secret-token", body: '{"x":[1]}' },
    ]);
  });

  it("retries transient failures only", async () => {
    const flaky = await serve(503, null, 200);
    // Both wait between attempts.
    const down = await serve(500);
    await Promise.all([
      httpStore({ url: flaky.url }).put("a.json", 1, live()),
      expect(httpStore({ url: down.url, maxRetries: 1 }).put("a.json", 1, live())).rejects.toThrow("500"),
    ]);
    expect(flaky.seen).toHaveLength(3);
    expect(down.seen).toHaveLength(2);
    const refusing = await serve(403);
    await expect(httpStore({ url: refusing.url }).put("a.json", 1, live())).rejects.toThrow(
      "the server answered 403 Forbidden",
    );
    expect(refusing.seen).toHaveLength(1);
  });

  it("does not send the token to a redirect target, and keeps it out of errors", async () => {
    vi.stubEnv("STORE_TOKEN", "secret-token");
    const { url, seen } = await serve(302);
    const store = httpStore({ url, tokenEnv: "STORE_TOKEN", maxRetries: 0 });
    const error: unknown = await store.put("a.json", 1, live()).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ message: "fetch failed (unexpected redirect)" });
    expect(`${(error as Error).message} ${store.name}`).not.toContain("secret");
    expect(seen.map(({ url: path }) => path)).toEqual(["/runs/a.json"]);
  });

  it("masks a token that the status line repeats, and one that no header can contain", async () => {
    const server = createServer((request, response) =>
      response.writeHead(400, request.headers.authorization).end(),
    );
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    for (const token of ["secret-token", "secret-token\nmore"]) {
      vi.stubEnv("STORE_TOKEN", token);
      const stored = httpStore({ url, tokenEnv: "STORE_TOKEN" }).put("a.json", 1, live());
      const error: unknown = await stored.catch((reason: unknown) => reason);
      expect(String(error)).toContain("***");
      expect(String(error)).not.toContain("secret-token");
    }
  });

  it("stops when the signal aborts, also between attempts", async () => {
    const { url } = await serve(503);
    const abort = new AbortController();
    const putting = httpStore({ url }).put("a.json", 1, { signal: abort.signal });
    setTimeout(() => abort.abort(new Error("enough")), 50);
    await expect(putting).rejects.toThrow("enough");
  });

  it("cancels an attempt that exceeds the timeout", async () => {
    const server = createServer(() => {});
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    });
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const store = httpStore({ url, maxRetries: 0, timeoutSeconds: 0.1 });
    await expect(store.put("a.json", 1, live())).rejects.toThrow("timed out after 0.1 s");
  });

  it("throws for invalid options at construction, without the URL in the message", () => {
    const url = "https://example.org/runs";
    const made = (options: object) => () => httpStore({ url, ...options });
    expect(made({ tokenEnv: "NOT_THERE" })).toThrow(
      'httpStore options.tokenEnv: got no environment variable "NOT_THERE"',
    );
    expect(made({ maxRetries: -1 })).toThrow("httpStore options.maxRetries: got -1");
    expect(made({ timeoutSeconds: 0 })).toThrow("httpStore options.timeoutSeconds: got 0");
    expect(made({ token: "x" })).toThrow('got the unknown option "token"');
    for (const bad of [
      "ftp://example.org",
      "https://user:word@example.org",
      "https://example.org?key=word",
    ]) {
      expect(made({ url: bad })).toThrow(
        "httpStore options.url: got a value that is not a plain http address",
      );
      expect(made({ url: bad })).not.toThrow("word");
    }
  });
});
