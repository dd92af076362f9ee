// The licences of packages of npm whose code is bundled into ours.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** Adds name, source, licence and notices of the package that a bundled file comes from. */
export function addLicence(licences, input) {
  const folder = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0];
  if (folder === undefined || licences.has(folder)) return;
  const at = join(process.cwd(), folder);
  const {
    name,
    version,
    license,
    repository = "",
  } = JSON.parse(readFileSync(join(at, "package.json"), "utf8"));
  const read = (file) => readFileSync(join(at, file), "utf8").trim();
  const texts = readdirSync(at)
    .filter((file) => /^(licen[cs]e|copying|notice)/i.test(file))
    .map(read);
  // Some packages have their licence in the README only.
  if (texts.length === 0 && existsSync(join(at, "README.md")))
    texts.push(...(/^#* *licen[cs]e\b[^]*/im.exec(read("README.md")) ?? []));
  licences.set(
    folder,
    [`${name} ${version} (${license}) ${repository.url ?? repository}`, ...texts].join("\n\n"),
  );
}
