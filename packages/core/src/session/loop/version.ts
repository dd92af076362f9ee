/** The package's version as provenance names it; a test holds it equal to package.json. */
export const version = "0.1.0";
