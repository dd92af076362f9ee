/** Returns a host in lower case, without the brackets around an IPv6 address. */
export const bareHost = (host: string): string => host.replace(/^\[(.*)\]$/, "$1").toLowerCase();

/**
 * Whether a host name or address is reachable from this machine only. Accepts addresses in the form in which browsers send
 * them: `127.1` and `0x7f.1`, which resolvers read as 127.0.0.1, are not loopback here.
 */
export function isLoopback(host: string): boolean {
  const name = bareHost(host);
  return name === "localhost" || (isIPv4(name) && name.startsWith("127.")) || ipv6Of(name) === "[::1]";
}

/** Addresses that stand for all interfaces. */
const everywhere = ["0.0.0.0", "::"];

/**
 * Whether a request was meant for this server, judged by its `Host` header. This prevents DNS rebinding: a foreign page can let
 * its own host name resolve to this machine, and its requests would then count as same-origin. A server that listens on all
 * interfaces also accepts any IP address, because a page cannot make an IP address resolve to another machine.
 *
 * @param called The `Host` header, with or without a port.
 * @param listening The host that the server listens on.
 * @param machine The machine's name, which a server that listens on all interfaces also accepts.
 */
export function isOwnHost(called: string, listening: string, machine: string | null = null): boolean {
  const name = /^(?:\[([\da-f:.]+)\]|([^:[\]]+))(?::\d{1,5})?$/i
    .exec(called.trim())
    ?.slice(1, 3)
    .find(Boolean)
    ?.toLowerCase();
  if (name === undefined) return false;
  if (isLoopback(name) || name === bareHost(listening)) return true;
  if (!everywhere.includes(bareHost(listening))) return false;
  return isIPv4(name) || ipv6Of(name) !== null || name === machine?.toLowerCase();
}

/** Whether the `Origin` header names the same site as the `Host` header. */
export const isOriginOf = (origin: string, called: string | undefined): boolean =>
  URL.canParse(origin) && new URL(origin).host === called?.toLowerCase();

const isIPv4 = (name: string): boolean =>
  /^\d{1,3}(\.\d{1,3}){3}$/.test(name) &&
  name.split(".").every((part) => Number(part) <= 255 && String(Number(part)) === part);

/** Returns an IPv6 address in brackets and in its shortest form; null for any other name. */
const ipv6Of = (name: string): string | null =>
  name.includes(":") && URL.canParse(`http://[${name}]`) ? new URL(`http://[${name}]`).hostname : null;

/** Returns the two readings of a header: Node decodes headers as Latin-1, as `fetch` sends them, but curl sends UTF-8. */
export const headerReadings = (header: string): readonly [latin1: string, utf8: string] => [
  header,
  new TextDecoder().decode(Uint8Array.from(header, (letter) => letter.charCodeAt(0))),
];
