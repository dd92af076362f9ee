import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { afterEach, expect, it, onTestFinished, vi } from "vitest";
import { errorOf } from "../../../testing/src/error-of.test-data.ts";
import { openRepository } from "./repository.ts";

const token = "hf_token-of-the-test";
const commit = "a".repeat(40);
const repo = { type: "dataset", name: "owner/tea", revision: "main", where: "hf:owner/tea" } as const;

afterEach(() => vi.unstubAllEnvs());

async function serve(act: (request: IncomingMessage, response: ServerResponse) => void) {
  const tokens: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    tokens.push(request.headers.authorization);
    act(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { tokens, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

async function open(act: (request: IncomingMessage, response: ServerResponse) => void) {
  const hub = await serve(act);
  vi.stubEnv("HF_ENDPOINT", hub.url);
  vi.stubEnv("HF_TOKEN", token);
  return { hub, repository: await openRepository(repo) };
}

const listed = { name: "a.parquet", bytes: 4, hash: "b".repeat(40) };
async function read(repository: Awaited<ReturnType<typeof openRepository>>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of repository.read(commit, listed, 0)) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

it("does not send the token to the server of a listing's next page", async () => {
  const other = await serve((_, response) => response.end("[]"));
  const { hub, repository } = await open((_, response) =>
    response.setHeader("Link", `<${other.url}/next>; rel="next"`).end("[]"),
  );
  await repository.files(commit);
  expect(hub.tokens).toEqual([`Bearer ${token}`]);
  expect(other.tokens).toEqual([undefined]);
});

it("does not send the token to the server that a file is redirected to", async () => {
  const headers = { ETag: '"x"', "Content-Range": "bytes 0-0/4", "X-Cache": "Hit from cloudfront" };
  const other = await serve((_, response) => response.writeHead(206, headers).end("tea!"));
  const { repository } = await open((_, response) =>
    response.writeHead(302, { Location: `${other.url}/a.parquet` }).end(),
  );
  expect(await read(repository)).toBe("tea!");
  expect(new Set(other.tokens)).toEqual(new Set([undefined]));
});

it("ends a listing without an end", async () => {
  const { repository } = await open(() => undefined);
  const Link = `<${process.env["HF_ENDPOINT"]}/next>; rel="next"`;
  const answer = vi
    .spyOn(globalThis, "fetch")
    .mockImplementation(async () => Response.json([], { headers: { Link } }));
  onTestFinished(() => answer.mockRestore());
  expect(await errorOf(repository.files(commit))).toMatchObject({ code: "data", got: "more than 200 pages" });
  expect(answer).toHaveBeenCalledTimes(200);
});

it.each([
  [{ oid: ["b".repeat(40)] }],
  [{ oid: "b".repeat(40), lfs: { oid: ["b".repeat(64)] } }],
  [{ oid: { toString: "b" } }],
])("refuses a listing whose hash is not text: %j", async (hash) => {
  const entry = { type: "file", path: "a.parquet", size: 4, ...hash };
  const { repository } = await open((_, response) => response.end(JSON.stringify([entry])));
  expect(await errorOf(repository.files(commit))).toMatchObject({
    code: "data",
    expected: "a size and a hash",
  });
});

it("ends the download of a file whose reply has no body", async () => {
  const headers = { ETag: '"x"', "Content-Range": "bytes 0-0/4" };
  const { repository } = await open(({ headers: { range } }, response) =>
    response.writeHead(range === undefined ? 204 : 206, headers).end(),
  );
  expect(await read(repository)).toBe("");
});

it("leaves out files whose path is not text", async () => {
  const entry = { type: "file", path: ["a.parquet"], size: 4, oid: "b".repeat(40) };
  const { repository } = await open((_, response) => response.end(JSON.stringify([entry])));
  expect([...(await repository.files(commit)).keys()]).toEqual([]);
});

it("refuses a commit that is not text", async () => {
  const { repository } = await open((_, response) => response.end(JSON.stringify({ sha: [commit] })));
  expect(await errorOf(repository.commit())).toMatchObject({ code: "data" });
});

it("does not read an error without an end", async () => {
  let isClosed = () => {};
  const closed = new Promise<void>((resolve) => (isClosed = resolve));
  const { repository } = await open((_, response) => {
    response.on("close", isClosed).writeHead(500, { "content-type": "application/json" });
    const more = () => response.destroyed || response.write('"x', () => setImmediate(more));
    more();
  });
  expect(await errorOf(read(repository))).toMatchObject({ code: "data", got: "status 500" });
  await closed;
});

it("keeps no token that a hub repeats in an error, its cause included", async () => {
  const { repository } = await open((_, response) =>
    response
      .writeHead(422, { "content-type": "application/json", "x-request-id": token })
      .end(JSON.stringify({ error: { message: [token] } })),
  );
  for (const failing of [() => repository.files(commit), () => read(repository)]) {
    const error = await errorOf(failing());
    expect(error).toMatchObject({ code: "data" });
    expect(inspect(error, { depth: 9 })).not.toContain(token);
  }
});

it.each(["https://me:secret@hub.example", "ftp://me:secret@hub.example", "me:secret@hub.example"])(
  "refuses HF_ENDPOINT %s and does not repeat it",
  async (endpoint) => {
    vi.stubEnv("HF_ENDPOINT", endpoint);
    const error = await errorOf(openRepository(repo));
    expect(error).toMatchObject({ code: "config", where: "HF_ENDPOINT" });
    expect(String(error)).not.toContain("secret");
  },
);
