/** Where parity suites find the numbers of reference implementations; absent where nobody put them there. */
export const fixtures = process.env["PERIODIC_EVAL_FIXTURES"] ?? "../shared/fixtures";

/** SmolLM2-135M-Instruct, 270 MB, as `../shared/tools/get-smollm2.sh FOLDER` fetches it; absent where nobody did. */
export const smollm2 = process.env["PERIODIC_EVAL_SMOLLM2"] ?? ".cache/smollm2-135m-instruct";
