/** POSIX paths, as `node:path/posix` computes them. The working directory is `/`. */
export const sep = "/";

function normalized(path: string): string {
  const isAbsolute = path.startsWith("/");
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== ".." || parts.at(-1) === ".." || (parts.length === 0 && !isAbsolute)) parts.push(part);
    else parts.pop();
  }
  const tail = path.endsWith("/") && parts.length > 0 ? "/" : "";
  const joined = parts.join("/");
  if (isAbsolute) return `/${joined}${tail}`;
  return joined === "" ? (path.endsWith("/") ? "./" : ".") : `${joined}${tail}`;
}

export function join(...paths: readonly string[]): string {
  const joined = paths.filter((path) => path !== "").join("/");
  return joined === "" ? "." : normalized(joined);
}

export function resolve(...paths: readonly string[]): string {
  let path = "";
  for (const part of [...paths].reverse()) {
    if (part !== "") path = path === "" ? part : `${part}/${path}`;
    if (path.startsWith("/")) break;
  }
  const whole = normalized(`/${path}`);
  return whole === "/" ? whole : whole.replace(/\/+$/, "");
}

export function dirname(path: string): string {
  const trimmed = path.replace(/(?<=.)\/+$/, "");
  const at = trimmed.lastIndexOf("/");
  if (at === -1) return ".";
  return trimmed.slice(0, at).replace(/(?<=.)\/+$/, "") || "/";
}

export function basename(path: string, suffix = ""): string {
  const name = path.replace(/\/+$/, "").split("/").at(-1)!;
  return suffix !== "" && name !== suffix && name.endsWith(suffix) ? name.slice(0, -suffix.length) : name;
}

export function relative(from: string, to: string): string {
  const [here, there] = [from, to].map((path) =>
    resolve(path)
      .split("/")
      .filter((part) => part !== ""),
  ) as [string[], string[]];
  let shared = 0;
  while (shared < here.length && shared < there.length && here[shared] === there[shared]) shared++;
  return [...here.slice(shared).map(() => ".."), ...there.slice(shared)].join("/");
}
