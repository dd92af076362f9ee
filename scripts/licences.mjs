// The licences of packages of npm whose code is bundled into ours.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** Adds name, licence and notices of the package that a bundled file comes from. */
export function addLicence(licences, input) {
  const folder = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0];
  if (folder === undefined || licences.has(folder)) return;
  const at = join(process.cwd(), folder);
  const manifest = JSON.parse(readFileSync(join(at, "package.json"), "utf8"));
  const { name, version, license, homepage = `https://www.npmjs.com/package/${name}` } = manifest;
  const files = readdirSync(at).filter((file) => /^(licen[cs]e|copying|notice)/i.test(file));
  const texts = files.map((file) => readFileSync(join(at, file), "utf8").trim());
  licences.set(folder, [`${name} ${version} (${license}), ${homepage}`, ...texts].join("\n\n"));
}
