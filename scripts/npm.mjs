// Starts npm. On Windows `npm` is a .cmd file: only a shell can start it, and that shell changes arguments with spaces or `^`. So the
// scripts run npm's own JavaScript with Node. No dependencies.
import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/** The places of npm's JavaScript: `npm run` sets the variable; Node's installers put npm beside Node. */
const places = [
  process.env.npm_execpath,
  join(dirname(process.execPath), "node_modules", "npm", "bin", "npm-cli.js"),
  join(dirname(process.execPath), "..", "lib", "node_modules", "npm", "bin", "npm-cli.js"),
];

/** Returns the program and the arguments that run npm with `args`, for `spawn`. */
export function npmCommand(args) {
  const found = places.find((path) => path && basename(path) === "npm-cli.js" && existsSync(path));
  return found === undefined ? ["npm", args] : [process.execPath, [found, ...args]];
}
