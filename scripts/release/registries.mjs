// Serves packed packages on loopback as registries of npm and of Python would, so that a dry run installs them by name and version. A
// worker, because its users wait for npm and pip.
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createReadStream, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { basename } from "node:path";
import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";

/**
 * Starts both registries.
 *
 * @param served `packages`: manifest (package.json) and tarball of each package of npm; `wheels`: paths of wheels of periodic-eval;
 *   `upstream`: the address of npm's registry, which has all other packages.
 * @returns Addresses for `npm --registry` and `pip --extra-index-url`, and `close`.
 */
export async function serveRegistries(served) {
  const worker = new Worker(new URL(import.meta.url), { workerData: served });
  const [port] = await once(worker, "message");
  const address = `http://127.0.0.1:${port}`;
  return { npm: `${address}/npm/`, python: `${address}/python/`, close: () => worker.terminate() };
}

/** Returns what a registry of npm says about a package. */
function documentOf({ manifest, tarball }, address) {
  const bytes = readFileSync(tarball);
  const hash = (algorithm, encoding) => createHash(algorithm).update(bytes).digest(encoding);
  const dist = {
    tarball: `${address}/files/${basename(tarball)}`,
    integrity: `sha512-${hash("sha512", "base64")}`,
    shasum: hash("sha1", "hex"),
  };
  const { name, version } = manifest;
  return { name, "dist-tags": { latest: version }, versions: { [version]: { ...manifest, dist } } };
}

function serve({ packages, wheels, upstream }) {
  const server = createServer(({ url, headers }, response) => {
    const [, kind, ...rest] = url.split("/");
    const name = decodeURIComponent(rest.join("/"));
    const published = packages.find(({ manifest }) => manifest.name === name);
    const file = [...wheels, ...packages.map(({ tarball }) => tarball)].find(
      (path) => basename(path) === name,
    );
    if (kind === "files" && file !== undefined) return createReadStream(file).pipe(response);
    if (kind === "npm" && published !== undefined)
      return response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify(documentOf(published, `http://${headers.host}`)));
    if (kind === "npm")
      return response.writeHead(302, { location: new URL(rest.join("/"), upstream).href }).end();
    if (kind !== "python" || !/^periodic-eval\/?$/.test(name)) return response.writeHead(404).end();
    const links = wheels.map((path) => `<a href="/files/${basename(path)}">${basename(path)}</a>`);
    response.writeHead(200, { "content-type": "text/html" }).end(links.join("\n"));
  });
  server.listen(0, "127.0.0.1", () => parentPort.postMessage(server.address().port));
}

if (!isMainThread) serve(workerData);
