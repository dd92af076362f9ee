// Reads the public names of a package from its built .d.ts files. Used by the API report and by the reference of the docs site.
import { readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { parseSync } from "oxc-parser";

const packagesFolder = fileURLToPath(new URL("../packages", import.meta.url));

/** Entries without a promise, which the packages of this repository share. Users have the names of contracts from core. */
const unstable = new Set([
  "@periodic-eval/contracts",
  "@periodic-eval/contracts/options",
  "@periodic-eval/core/console",
  "@periodic-eval/core/model",
  "@periodic-eval/kernels",
  "@periodic-eval/kernels/native-build",
  "@periodic-eval/store/platform",
  "@periodic-eval/tokenizers",
]);
const modules = new Map();

/** Returns the declaration file that a module's specifier names; null outside of this repository. */
function fileOf(specifier, file) {
  if (specifier.startsWith(".")) return join(dirname(file), specifier.replace(/\.(ts|js)$/, ".d.ts"));
  const [, name, subpath] = /^@periodic-eval\/([\w-]+)(\/.*)?$/.exec(specifier) ?? [];
  if (name === undefined) return null;
  const folder = join(packagesFolder, name);
  const { exports } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return join(folder, typesOf(exports[`.${subpath ?? ""}`]));
}

/** Returns the doc comment directly before a position; an empty string if there is none. */
function docBefore(text, comments, position) {
  const last = comments.findLast(({ end }) => end <= position);
  if (last === undefined || last.type !== "Block" || !last.value.startsWith("*")) return "";
  return text.slice(last.end, position).trim() === "" ? last.value.slice(1) : "";
}

/** A declaration file's own declarations, by name, and where its other exports come from. */
function readModule(file) {
  const known = modules.get(file);
  if (known !== undefined) return known;
  const text = readFileSync(file, "utf8");
  const { program, comments } = parseSync(file, text);
  const module = { declared: new Map(), exported: new Map(), stars: [] };
  modules.set(file, module);
  const imported = new Map();
  for (const statement of program.body) {
    const source = statement.source?.value;
    const from = source === undefined ? null : fileOf(source, file);
    if (statement.type === "ImportDeclaration") {
      for (const { local, imported: name } of statement.specifiers)
        if (name !== undefined && from !== null) imported.set(local.name, { from, name: name.name });
    } else if (statement.type === "ExportAllDeclaration") {
      if (from !== null) module.stars.push({ from, isType: statement.exportKind === "type" });
    } else if (statement.type === "ExportNamedDeclaration" && statement.declaration === null) {
      for (const { local, exported } of statement.specifiers)
        module.exported.set(exported.name, from === null ? { name: local.name } : { from, name: local.name });
    } else {
      const declaration = statement.declaration ?? statement;
      const names = declaration.declarations?.map(({ id }) => id.name) ?? [declaration.id?.name];
      for (const name of names.filter((candidate) => candidate !== undefined)) {
        const { code = [], doc = "" } = module.declared.get(name) ?? {};
        module.declared.set(name, {
          code: [...code, text.slice(statement.start, statement.end)],
          doc: doc === "" ? docBefore(text, comments, statement.start) : doc,
          kind: declaration.type,
        });
        if (statement.type === "ExportNamedDeclaration") module.exported.set(name, { name });
      }
    }
  }
  for (const [name, target] of module.exported)
    if (target.from === undefined && imported.has(target.name))
      module.exported.set(name, imported.get(target.name));
  return module;
}

/** Declarations that `export type *` does not export: they have no type of the same name. */
const valueKinds = /^(TSDeclareFunction|FunctionDeclaration|VariableDeclaration)$/;

/** Returns the public names of a declaration file: `{ code, doc, kind }` by name. */
function publicNames(file) {
  const { exported, stars } = readModule(file);
  const names = new Map();
  for (const { from, isType } of stars)
    for (const [name, declaration] of publicNames(from))
      if (!isType || !valueKinds.test(declaration.kind)) names.set(name, declaration);
  for (const [name, target] of exported) names.set(name, declarationOf(file, target));
  return names;
}

function declarationOf(file, { from, name }) {
  const elsewhere = { code: [`// ${name}: from another package`], doc: "", kind: null };
  if (from !== undefined) return publicNames(from).get(name) ?? elsewhere;
  return readModule(file).declared.get(name) ?? elsewhere;
}

/**
 * Returns the public subpaths of the package in `folder`, each with its names in alphabetical order.
 *
 * @returns `[{ subpath: "./tfjs", names: [[name, { code, doc, kind }], …] }, …]`
 */
export function publicApi(folder, manifest) {
  return Object.entries(manifest.exports ?? {})
    .filter(
      ([subpath, target]) => typeof target === "object" && !unstable.has(posix.join(manifest.name, subpath)),
    )
    .map(([subpath, target]) => {
      const types = typesOf(target);
      const names = types === null ? new Map() : publicNames(join(folder, types));
      return { subpath, names: [...names].sort(([a], [b]) => (a < b ? -1 : 1)) };
    })
    .filter(({ names }) => names.length > 0);
}

/** The declaration file of an entry of `exports`; conditions can be nested. */
function typesOf(target) {
  if (typeof target === "string") return null;
  if (target.types !== undefined) return target.types;
  return Object.values(target).reduce((types, nested) => types ?? typesOf(nested), null);
}
