import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import { afterAll } from "vitest";

const types: Readonly<Record<string, string>> = {
  ".css": "text/css",
  ".html": "text/html",
  ".js": "text/javascript",
  ".json": "application/json",
  ".wasm": "application/wasm",
};

/** Serves a folder below a path, as a static host does, until the tests of the file are over. Returns the address. */
export async function serveFolder(folder: string, path = "/some/where/"): Promise<string> {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url!, "http://localhost");
    const name = pathname.startsWith(path) ? pathname.slice(path.length) || "index.html" : "absent";
    readFile(join(folder, name)).then(
      (bytes) => response.setHeader("content-type", types[extname(name)] ?? "text/plain").end(bytes),
      () => response.writeHead(404).end(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
  afterAll(() => void server.close());
  return `http://localhost:${(server.address() as AddressInfo).port}${path}`;
}
