export type { ReadResults } from "./read-run.ts";
export { resultsServer } from "./results-server.ts";
export { serveResults, type ServeOptions, type Serving } from "./serve-results.ts";
export type { ResultsServerOptions } from "./server-options.ts";
