import { isIP } from "node:net";
import { hostname } from "node:os";

const loopback = ["localhost", "127.0.0.1", "::1"];
const everywhere = ["0.0.0.0", "::"];

/**
 * Whether a request was meant for this server, by the name that it calls it: a page elsewhere can make a name of its own point
 * here, and would then be answered as if it were this server's (DNS rebinding). Where the server listens everywhere, numbers
 * are its names too: no page has a number that it could make point elsewhere.
 *
 * @param called as the header `Host` has it, with a port or without
 * @param listening the host that the server was told to listen on
 */
export function isOwnHost(called: string, listening: string): boolean {
  const name = /^(?:\[([\da-f:.]+)\]|([^:[\]]+))(?::\d{1,5})?$/i
    .exec(called.trim())
    ?.slice(1, 3)
    .find(Boolean)
    ?.toLowerCase();
  if (name === undefined) return false;
  if (loopback.includes(name) || name === bare(listening)) return true;
  return everywhere.includes(bare(listening)) && (isIP(name) !== 0 || name === hostname().toLowerCase());
}

/** Without the brackets that stand round numbers of six in addresses. */
export const bare = (host: string): string => host.replace(/^\[|\]$/g, "").toLowerCase();

/** Whether the header `Origin` names the site that the header `Host` calls. */
export const isOriginOf = (origin: string, called: string | undefined): boolean =>
  URL.canParse(origin) && new URL(origin).host === called?.toLowerCase();
