import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";

/** A model or dataset of the fake hub: its commits by revision, and the files of each commit. */
export interface HostedRepository {
  readonly revisions: Readonly<Record<string, string>>;
  readonly commits: Readonly<Record<string, ReadonlyMap<string, Buffer>>>;
  /** The required token, and the response to requests without it. */
  readonly gate?: { readonly token: string; readonly status: 401 | 403; readonly message: string };
}

export interface HubServer {
  readonly url: string;
  readonly models: Map<string, HostedRepository>;
  readonly datasets: Map<string, HostedRepository>;
  /** `METHOD path`, followed by the range if the request has one. */
  readonly requests: string[];
  /** The header `Authorization` of each request; null without one. */
  readonly authorizations: (string | null)[];
  /** Status with which every request fails. */
  status: number | null;
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

/** The commit of datasets that `hostDataset` adds. */
export const datasetCommit = "c".repeat(40);

/** Adds a dataset with the files of its Parquet conversion: `main/test/0000.parquet`. Files may be added later. */
export function hostDataset(
  hub: HubServer,
  name: string,
  files: Readonly<Record<string, Uint8Array>>,
  gate?: HostedRepository["gate"],
): void {
  hub.datasets.set(name, {
    revisions: { "refs/convert/parquet": datasetCommit },
    commits: {
      [datasetCommit]: new Map(Object.entries(files).map(([path, bytes]) => [path, Buffer.from(bytes)])),
    },
    ...(gate && { gate }),
  });
}

/** Starts a server with the parts of the hub's API that downloads use: model info, tree, resolve, redirected large files. */
export async function startHub(): Promise<HubServer> {
  const server = createServer((request, response) => respond(hub, request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const hub: HubServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    models: new Map(),
    datasets: new Map(),
    requests: [],
    authorizations: [],
    status: null,
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
  hub.authorizations.push(authorization ?? null);
  if (hub.status !== null) return fail(response, hub.status, "Not now");
  const info = /^\/api\/(model|dataset)s\/([^/]+\/[^/]+)\/revision\/(.+)$/.exec(path);
  const tree = /^\/api\/(model|dataset)s\/([^/]+\/[^/]+)\/tree\/([^/]+)$/.exec(path);
  const resolve = /^\/(?:large\/)?(?:(dataset)s\/)?([^/]+\/[^/]+)\/resolve\/([^/]+)\/(.+)$/.exec(path);
  const [, type, name = "", revision = ""] = info ?? tree ?? resolve ?? [];
  const model = (type === "dataset" ? hub.datasets : hub.models).get(name);
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
  const content = files.get(resolve![4]!);
  if (content === undefined)
    return fail(response, 404, "Entry not found", { "X-Error-Code": "EntryNotFound" });
  const isLarge = isLargeName(resolve![4]!);
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

const isLargeName = (path: string): boolean => /\.(safetensors|parquet)$/.test(path);

const entryOf = ([path, content]: readonly [string, Buffer]) => ({
  type: "file",
  path,
  size: content.length,
  oid: gitName(content),
  ...(isLargeName(path) && {
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
