// Writes the sections of the reference that are made from schemas and commands.  Usage: npm run api
import { writeFileSync } from "node:fs";
import { stalePages } from "./generated-sections.mjs";
import { generatedParts } from "./stage.mjs";

for (const [path, text] of stalePages(await generatedParts())) writeFileSync(path, text);
