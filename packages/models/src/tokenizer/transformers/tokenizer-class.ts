import { modelError } from "../../folder/model-error.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The class that takes `tokenizer.json` as it is. */
export const plainClass = "TokenizersBackend";

/** Classes with the pipeline of another, and those that became TokenizersBackend. */
const aliases: Readonly<Record<string, string>> = {
  BloomTokenizer: plainClass,
  ParakeetTokenizer: plainClass,
  PreTrainedTokenizer: plainClass,
  PythonBackend: plainClass,
};

/**
 * Returns the class that `AutoTokenizer.from_pretrained` of transformers 5.24 uses for a local folder, without
 * mistral-common, without remote code and without the names of models on the hub.
 *
 * @param config `tokenizer_config.json`.
 * @param model `config.json`; empty if there is none.
 * @param isByteLevel Whether the text of `tokenizer.json` contains `"ByteLevel"`, with the quotes.
 * @param isSupported Whether this library can build the pipeline of a class.
 * @throws PeriodicEvalError `model` for a class whose pipeline this library does not know, and for remote code.
 */
export function tokenizerClass(
  config: Fields,
  model: Fields,
  isByteLevel: boolean,
  isSupported: (name: string) => boolean,
  where: string,
): string {
  const name = aliases[chosen(config, model, isByteLevel)] ?? chosen(config, model, isByteLevel);
  if (name === plainClass || isSupported(name)) return name;
  if (!otherClasses.has(name)) {
    if (!hasRemoteCode(config)) return plainClass;
    throw classError(where, "a tokenizer that is a program of its own (auto_map)");
  }
  throw classError(where, `the class ${name}, whose pipeline transformers builds itself`);
}

export const classError = (where: string, got: string) =>
  modelError({
    where: `${where}, tokenizer_class`,
    path: ["tokenizer_class"],
    got,
    expected: "a class whose pipeline this library knows",
    fix: 'Pass { pipeline: "tokenizer_json" } to loadTokenizer: then tokenizer.json is taken as it is, which may differ from transformers.',
  });

function hasRemoteCode({ auto_map: map }: Fields): boolean {
  if (map === undefined || map === null) return false;
  return Array.isArray(map) || (typeof map === "object" && "AutoTokenizer" in map);
}

function chosen(config: Fields, model: Fields, isByteLevel: boolean): string {
  const named = nameOf(config["tokenizer_class"]);
  const declared = named ?? nameOf(model["tokenizer_class"]);
  const type = nameOf(model["model_type"]);
  const registered = type === null ? undefined : classOfType.get(type);
  const isWrong = [type, nameOf(model["model_name"])].some(
    (name) => name !== null && typesWithWrongClass.has(name),
  );
  if (!hasRemoteCode(config) && declared === null && model["tokenizer_class"] === "")
    return isWrong ? (registered ?? plainClass) : plainClass;
  if (!hasRemoteCode(config) && declared !== null) {
    if (declared === "LlamaTokenizer" && !isWrong && isByteLevel) return plainClass;
    if (registered !== undefined && registered !== declared) {
      if (registered === plainClass) return plainClass;
      return isWrong ? registered : declared;
    }
  }
  if (hasRemoteCode(config) && !isWrong) return named ?? registered ?? "remote code";
  // An empty name is that of no class, not an absent one.
  if (config["tokenizer_class"] === "") return plainClass;
  return declared ?? registered ?? plainClass;
}

/** Returns the name of a class without the suffix `Fast`, or null. */
function nameOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value.replace(/Fast$/, "") : null;
}

// Facts of transformers 5.24.0, `models/auto/tokenization_auto.py`, printed by a program. MistralCommonBackend counts as
// TokenizersBackend, which AutoTokenizer uses without mistral-common.

/** The class of the tokenizer by `model_type`. TokenizersBackend takes `tokenizer.json` as it is. */
const typesOfClass: Readonly<Record<string, string>> = {
  TokenizersBackend:
    "arctic aria beam bigbird_pegasus camembertv2-base canary chatlm cohere_asr ernie4_5 ernie4_5_moe " +
    "flex_olmo fuyu glm glm4 glm4_moe glm4_moe_lite glm4v glm4v_moe glm_image glmasr got_ocr2 gpt_bigcode " +
    "gradium_phonon_tts granite granitemoe granitemoehybrid granitemoeshared h2ovl_chat hyperclovax " +
    "hyperclovax_vlm internlm2 internlm3 iquestcoder jamba kimi_k25 kimi_linear kosmos-2 llava llava_next " +
    "mimo_v2_flash minicpm3 minicpm_ocr minicpmv minicpmv4_6 minicpmv4_7 minimax_m2 ministral ministral3 " +
    "mistral mistral3 mistral_large4 mixtral modernbert modernbert-decoder molmo molmo2 nemo_speechlm " +
    "nemotron nvfp4 nystromformer olmo2 olmo3 olmo_hybrid omniasr opencua openvla paddleocr_vl pegasus_x " +
    "persimmon phi3 phi3_v phimoe pix2struct pixtral pocket_tts smolvlm stablelm step3_vl umt5 vipllava " +
    "voxtral voxtral_realtime xlm-roberta-xl",
  CodeLlamaTokenizer: "code_llama",
  CohereTokenizer: "aya_vision cohere cohere2",
  GPT2Tokenizer:
    "blip-2 codegen dbrx emu3 gpt2 gpt_neo gptj hyperclovax_vision_v2 instructblip instructblipvideo " +
    "jais2 opt phi starcoder2",
  GPTNeoXTokenizer: "falcon_mamba gpt_neox mamba mamba2 mpt olmo olmoe rwkv xlstm",
  GemmaTokenizer:
    "diffusion_gemma gemma gemma2 gemma3 gemma3_text gemma3n gemma3n_text recurrent_gemma shieldgemma2 " +
    "t5gemma zaya",
  LlamaTokenizer: "idefics idefics2",
  ParakeetTokenizer:
    "granite_speech5_ctc nemotron3_5_asr nemotron_asr_streaming omniasr_ctc parakeet_ctc parakeet_rnnt " +
    "parakeet_tdt",
  Qwen2Tokenizer:
    "audioflamingo3 colqwen2 cosmos3_omni dots3_note fun_asr_nano hunyuan_vl internvl " +
    "moss_transcribe_diarize ovis2 qianfan_ocr qwen2 qwen2_5_omni qwen2_5_vl qwen2_audio qwen2_moe " +
    "qwen2_vl qwen3 qwen3_asr qwen3_moe qwen3_next qwen3_omni_moe qwen3_vl qwen3_vl_moe lighton_ocr " +
    "vibevoice",
  Qwen3_5Tokenizer: "qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen3_5_text qwen4_exp",
};

/** Values of `model_type` whose class is one of `otherClasses`. */
const typesOfOtherClasses =
  "aimv2 albert align bark bart barthez bartpho bert bert-generation bert-japanese bertweet big_bird " +
  "biogpt blenderbot blenderbot-small blip bridgetower bros byt5 camembert canine chinese_clip clap " +
  "clip clipseg clvp convbert cpm cpmant ctrl data2vec-audio data2vec-text deberta deberta-v2 dia " +
  "distilbert dpr electra ernie esm esmc esmfold2 flaubert flava florence2 fnet fsmt funnel git " +
  "gpt-sw3 gpt_neox_japanese grounding-dino groupvit gte herbert hubert ibert jina_embeddings_v3 " +
  "lasr_ctc lasr_encoder layoutlm layoutlmv2 layoutlmv3 layoutxlm led lilt longformer luke lxmert " +
  "m2m_100 marian markuplm mbart mbart50 mega megatron-bert metaclip_2 mgp-str mluke " +
  "mm-grounding-dino mobilebert mpnet mra mt5 musicgen musicgen_melody mvp myt5 nezha nllb nllb-moe " +
  "nomic_bert nougat omdet-turbo oneformer openai-gpt owlv2 owlvit pegasus perceiver phobert plbart " +
  "pp_formulanet prophetnet qdqbert rag realm reformer rembert retribert roberta " +
  "roberta-prelayernorm roc_bert roformer sam3 sam3_video seamless_m4t seamless_m4t_v2 siglip " +
  "siglip2 speech_to_text speecht5 splinter squeezebert switch_transformers t5 tapas tipsv2 trocr " +
  "tvp udop unispeech unispeech-sat videoprism vilt visual_bert vits wav2vec2 wav2vec2-bert " +
  "wav2vec2-conformer wav2vec2_phoneme whisper xclip xglm xlm xlm-roberta xlnet xmod yoso";

/** Names of classes, without the suffix `Fast`, by `model_type`; another class is named by its type. */
const classOfType: ReadonlyMap<string, string> = new Map([
  ...Object.entries(typesOfClass).flatMap(([name, types]) =>
    types.split(" ").map((type) => [type, name] as const),
  ),
  ...typesOfOtherClasses.split(" ").map((type) => [type, `of the type ${type}`] as const),
]);

/** Values of `model_type` whose folders name a wrong class: the class of the type counts. */
const typesWithWrongClass: ReadonlySet<string> = new Set(
  (
    "arctic chatlm ernie4_5 ernie4_5_moe fuyu h2ovl_chat hyperclovax hyperclovax_vlm " +
    "hyperclovax_vision_v2 internlm2 internlm3 iquestcoder jamba llava llava_next minicpm3 minicpmv " +
    "minimax_m2 modernbert modernbert-decoder molmo molmo2 nemotron nvfp4 opencua openvla paddleocr_vl " +
    "phi3 phi3_v phimoe qwen2 qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen4_exp step3_vl vipllava cohere_asr " +
    "camembertv2-base siglip2 smolvlm"
  ).split(" "),
);

/** Classes that build a pipeline that this library does not know, or that do not read `tokenizer.json`. */
const otherClasses: ReadonlySet<string> = new Set([
  ...typesOfOtherClasses.split(" ").map((type) => `of the type ${type}`),
  ...(
    "Albert Bart Barthez Bartpho Bert BertGeneration BertJapanese Bertweet BigBird BioGpt Blenderbot " +
    "BlenderbotSmall ByT5 Camembert Canine CLIP Clvp ConvBert Cpm CpmAnt CTRL Deberta DebertaV2 Dia " +
    "DistilBert DPRContextEncoder DPRQuestionEncoder DPRReader Esm Esmc FastSpeech2Conformer Flaubert " +
    "FNet FSMT Funnel GPTNeoXJapanese GPTSw3 Herbert Lasr LayoutLMv2 LayoutLMv3 LayoutXLM LED Luke " +
    "Lxmert M2M100 Marian MarkupLM MBart MBart50 Mgpstr MLuke MobileBert MPNet Mvp MyT5 Nllb Nougat " +
    "OpenAIGPT Pegasus Perceiver Phobert PLBart Pop2Piano ProphetNet Rag Reformer RemBert Roberta " +
    "RoCBert RoFormer SeamlessM4T Siglip Siglip2 Speech2Text SpeechT5 Splinter SqueezeBert T5 Tapas " +
    "Tipsv2 Udop VideoPrism Vits Wav2Vec2CTC Wav2Vec2PhonemeCTC Whisper XGLM XLM XLMRoberta XLNet"
  )
    .split(" ")
    .map((name) => `${name}Tokenizer`),
]);
