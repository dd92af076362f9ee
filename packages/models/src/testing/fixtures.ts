/** The folder of results of reference implementations, for parity suites. It may be missing. */
export const fixtures = process.env["PERIODIC_EVAL_FIXTURES"] ?? "../shared/fixtures";

/** The folder of SmolLM2-135M-Instruct, 270 MB, from `../shared/tools/get-smollm2.sh FOLDER`. It may be missing. */
export const smollm2 = process.env["PERIODIC_EVAL_SMOLLM2"] ?? ".cache/smollm2-135m-instruct";
