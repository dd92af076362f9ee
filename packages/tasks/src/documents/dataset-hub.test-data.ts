import { createHash } from "node:crypto";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface DatasetHub {
  readonly url: string;
  /** Files of the hub's Parquet conversion branch, by dataset. */
  readonly datasets: Map<string, Map<string, Uint8Array>>;
  /** One `METHOD path authorization` per request. */
  readonly requests: string[];
  /** Content to send instead of every file. */
  tampered: Uint8Array | null;
  /** Status with which every request fails. */
  status: number | null;
  close(): Promise<void>;
}

const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** Starts a server on the loopback interface with the API routes that reading a dataset needs: tree and resolve. */
export async function startDatasetHub(): Promise<DatasetHub> {
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url!.split("?")[0]!);
    hub.requests.push(`${request.method} ${path} ${request.headers.authorization ?? "-"}`);
    if (hub.status !== null) return fail(response, hub.status);
    const [, name = "", kind, file = ""] =
      /^\/(?:api\/)?datasets\/([^/]+\/[^/]+)\/(tree|resolve)\/refs\/convert\/parquet\/?(.*)$/.exec(path) ??
      [];
    const files = hub.datasets.get(name);
    if (files === undefined) return fail(response, 404);
    if (kind === "tree") {
      const entries = [...files].map(([entry, bytes]) => ({
        type: "file",
        path: entry,
        size: bytes.length,
        oid: "0".repeat(40),
        lfs: { oid: sha256(bytes), size: bytes.length, pointerSize: 100 },
      }));
      response.setHeader("Content-Type", "application/json");
      return void response.end(
        JSON.stringify([{ type: "directory", path: "plain", size: 0, oid: "" }, ...entries]),
      );
    }
    const bytes = files.get(file);
    if (bytes === undefined) return fail(response, 404);
    const content = hub.tampered ?? bytes;
    const [, from = "0", to = ""] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "") ?? [];
    const end = to === "" ? content.length : Math.min(content.length, Number(to) + 1);
    const part = content.subarray(Number(from), end);
    response.writeHead(request.headers.range === undefined ? 200 : 206, {
      ETag: `"${sha256(bytes)}"`,
      "Content-Length": part.length,
      ...(request.headers.range !== undefined && {
        "Content-Range": `bytes ${from}-${end - 1}/${content.length}`,
      }),
    });
    response.end(part);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const hub: DatasetHub = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    datasets: new Map(),
    requests: [],
    tampered: null,
    status: null,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return hub;
}

function fail(response: ServerResponse, status: number): void {
  response.writeHead(status, { "Content-Type": "application/json" }).end('{"error":"no"}');
}
