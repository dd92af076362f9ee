import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";

/** A model of the fake hub: its commits by revision, and the files of each commit. */
export interface HostedModel {
  readonly revisions: Readonly<Record<string, string>>;
  readonly commits: Readonly<Record<string, ReadonlyMap<string, Buffer>>>;
  /** The required token, and the response to requests without it. */
  readonly gate?: { readonly token: string; readonly status: 401 | 403; readonly message: string };
}

export interface HubServer {
  readonly url: string;
  readonly models: Map<string, HostedModel>;
  /** `METHOD path`, followed by the range if the request has one. */
  readonly requests: string[];
  /** Changes the response for a file's content; null leaves it unchanged. */
  tamper: ((path: string, range: string | undefined) => Tampering | null) | null;
  /** Entries added to every listing. */
  extraEntries: object[];
  close(): Promise<void>;
}

export interface Tampering {
  /** The number of bytes sent before the response stops. */
  readonly stopAfter?: number;
  /** Whether a stopped response ends normally, as if it were complete, instead of closing the connection. */
  readonly endsNormally?: boolean;
  readonly content?: Buffer;
  readonly status?: number;
}

export const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
const gitName = (bytes: Buffer): string =>
  createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex");

export const filesOf = (folder: string): Map<string, Buffer> =>
  new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));

/** Starts a server with the parts of the hub's API that downloads use: model info, tree, resolve, redirected large files. */
export async function startHub(): Promise<HubServer> {
  const server = createServer((request, response) => respond(hub, request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const hub: HubServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    models: new Map(),
    requests: [],
    tamper: null,
    extraEntries: [],
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return hub;
}

function respond(hub: HubServer, request: IncomingMessage, response: ServerResponse): void {
  const path = decodeURIComponent(request.url!.split("?")[0]!);
  const { range, authorization } = request.headers;
  hub.requests.push([request.method, path, ...(range === undefined ? [] : [range])].join(" "));
  const info = /^\/api\/models\/([^/]+\/[^/]+)\/revision\/(.+)$/.exec(path);
  const tree = /^\/api\/models\/([^/]+\/[^/]+)\/tree\/([^/]+)$/.exec(path);
  const resolve = /^\/(?:large\/)?([^/]+\/[^/]+)\/resolve\/([^/]+)\/(.+)$/.exec(path);
  const [, name = "", revision = ""] = info ?? tree ?? resolve ?? [];
  const model = hub.models.get(name);
  if (model === undefined) return fail(response, 404, "Repository not found");
  if (model.gate && authorization !== `Bearer ${model.gate.token}`)
    return fail(response, model.gate.status, model.gate.message);
  const commit = model.revisions[revision] ?? revision;
  const files = model.commits[commit];
  if (files === undefined) return fail(response, 404, `Invalid rev id: ${revision}`);
  if (info !== null)
    return json(response, {
      _id: "1",
      id: name,
      private: false,
      gated: false,
      lastModified: "2026-01-01",
      sha: commit,
    });
  if (tree !== null) return json(response, [...hub.extraEntries, ...[...files].map(entryOf)]);
  const content = files.get(resolve![3]!);
  if (content === undefined)
    return fail(response, 404, "Entry not found", { "X-Error-Code": "EntryNotFound" });
  const isLarge = resolve![3]!.endsWith(".safetensors");
  const headers = {
    ETag: `"${isLarge ? sha256(content) : gitName(content)}"`,
    "X-Repo-Commit": commit,
    ...(isLarge && { "X-Linked-ETag": `"${sha256(content)}"`, "X-Linked-Size": content.length }),
  };
  if (isLarge && !path.startsWith("/large/")) {
    response.writeHead(302, { ...headers, Location: `/large${request.url}` }).end();
    return;
  }
  send(response, content, headers, range, range === "bytes=0-0" ? null : (hub.tamper?.(path, range) ?? null));
}

function send(
  response: ServerResponse,
  content: Buffer,
  headers: Record<string, string | number>,
  range: string | undefined,
  tampering: Tampering | null,
): void {
  if (tampering?.status !== undefined) return fail(response, tampering.status, "Try later");
  const [, from = "0", to = ""] = /^bytes=(\d+)-(\d*)$/.exec(range ?? "") ?? [];
  const end = to === "" ? content.length : Number(to) + 1;
  const part = (tampering?.content ?? content).subarray(Number(from), end);
  const contentRange = { "Content-Range": `bytes ${from}-${end - 1}/${content.length}` };
  const endsNormally = tampering?.endsNormally === true;
  response.writeHead(range === undefined ? 200 : 206, {
    ...headers,
    ...(range !== undefined && contentRange),
    ...(!endsNormally && { "Content-Length": part.length }),
  });
  if (tampering?.stopAfter === undefined) return void response.end(part);
  response.write(part.subarray(0, tampering.stopAfter), () =>
    endsNormally ? response.end() : setTimeout(() => response.destroy(), 50),
  );
}

const entryOf = ([path, content]: readonly [string, Buffer]) => ({
  type: "file",
  path,
  size: content.length,
  oid: gitName(content),
  ...(path.endsWith(".safetensors") && {
    lfs: { oid: sha256(content), size: content.length, pointerSize: 130 },
  }),
});

function json(response: ServerResponse, body: unknown): void {
  response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(body));
}

function fail(
  response: ServerResponse,
  status: number,
  error: string,
  headers: Record<string, string> = {},
): void {
  response
    .writeHead(status, { "Content-Type": "application/json", ...headers })
    .end(JSON.stringify({ error }));
}
