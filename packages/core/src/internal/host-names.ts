/** Without the brackets that stand round numbers of IPv6 in addresses, in small letters. */
export const bareHost = (host: string): string => host.replace(/^\[(.*)\]$/, "$1").toLowerCase();

/**
 * Whether a host, by name or number, is of this machine alone. Numbers are taken as browsers send them: of `127.1` and `0x7f.1`,
 * which resolvers take for 127.0.0.1, this says no.
 */
export function isLoopback(host: string): boolean {
  const name = bareHost(host);
  return name === "localhost" || (isIPv4(name) && name.startsWith("127.")) || ipv6Of(name) === "[::1]";
}

const everywhere = ["0.0.0.0", "::"];

/**
 * Whether a request was meant for this server, by the name that it calls it: a page elsewhere can make a name of its own point
 * here, and would then be answered as if it were this server's (DNS rebinding). Where the server listens everywhere, numbers
 * are its names too: no page has a number that it could make point elsewhere.
 *
 * @param called as the header `Host` has it, with a port or without
 * @param listening the host that the server was told to listen on
 * @param machine the name of the machine, a name of a server that listens everywhere
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

/** Whether the header `Origin` names the site that the header `Host` calls. */
export const isOriginOf = (origin: string, called: string | undefined): boolean =>
  URL.canParse(origin) && new URL(origin).host === called?.toLowerCase();

const isIPv4 = (name: string): boolean =>
  /^\d{1,3}(\.\d{1,3}){3}$/.test(name) &&
  name.split(".").every((part) => Number(part) <= 255 && String(Number(part)) === part);

/** In brackets, the shortest way to write it; null for what is none. */
const ipv6Of = (name: string): string | null =>
  name.includes(":") && URL.canParse(`http://[${name}]`) ? new URL(`http://[${name}]`).hostname : null;
