// The registration of model types, one line each, in the order of their names:
// X(`model_type` of config.json, its reader, models of this type). docs/models.md shows it.
#pragma once

// clang-format off
#define PENSTOCK_MODEL_TYPES(X) \
  X("afmoe", ReadAfmoe, "Trinity") \
  X("apertus", ReadApertus, "Apertus") \
  X("arcee", ReadArcee, "AFM 4.5B") \
  X("biogpt", ReadBioGpt, "BioGPT") \
  X("bloom", ReadBloom, "BLOOM, BLOOMZ") \
  X("codegen", ReadCodeGen, "CodeGen") \
  X("cohere", ReadCohere, "Command R, Command R+") \
  X("cohere2", ReadCohere2, "Command R7B, Command A") \
  X("cwm", ReadCwm, "Code World Model") \
  X("dbrx", ReadDbrx, "DBRX") \
  X("deepseek_v2", ReadDeepSeekV2, "DeepSeek-V2") \
  X("deepseek_v3", ReadDeepSeekV3, "DeepSeek-V3, DeepSeek-R1, Kimi K2 (`kimi_k2`)") \
  X("dots1", ReadDots1, "dots.llm1") \
  X("ernie4_5", ReadErnie45, "ERNIE 4.5 0.3B") \
  X("ernie4_5_moe", ReadErnie45Moe, "ERNIE 4.5 21B-A3B") \
  X("exaone4", ReadExaone4, "EXAONE 4.0") \
  X("exaone_moe", ReadExaoneMoe, "K-EXAONE") \
  X("falcon", ReadFalcon, "Falcon 7B, 11B and 40B, Falcon-RW") \
  X("flex_olmo", ReadFlexOlmo, "FlexOlmo") \
  X("gemma", ReadGemma, "Gemma") \
  X("gemma2", ReadGemma2, "Gemma 2") \
  X("gemma3", ReadGemma3, "Gemma 3 with a vision tower") \
  X("gemma3_text", ReadGemma3Text, "Gemma 3 1B") \
  X("gemma4", ReadGemma4, "Gemma 4 with a vision tower") \
  X("gemma4_text", ReadGemma4Text, "the text model of Gemma 4") \
  X("glm", ReadGlm, "GLM-4 9B") \
  X("glm4", ReadGlm4, "GLM-4-0414") \
  X("glm4_moe", ReadGlm4Moe, "GLM-4.5, GLM-4.6") \
  X("glm4_moe_lite", ReadGlm4MoeLite, "GLM-4.7-Flash") \
  X("gpt2", ReadGpt2, "GPT-2") \
  X("gpt_bigcode", ReadGptBigCode, "StarCoder, SantaCoder") \
  X("gpt_neo", ReadGptNeo, "GPT-Neo, TinyStories") \
  X("gpt_neox", ReadGptNeox, "GPT-NeoX, Pythia") \
  X("gpt_oss", ReadGptOss, "gpt-oss") \
  X("gptj", ReadGptJ, "GPT-J") \
  X("granite", ReadGranite, "Granite 3") \
  X("granitemoe", ReadGraniteMoe, "Granite 3 MoE") \
  X("granitemoeshared", ReadGraniteMoeShared, "Granite MoE with a shared expert") \
  X("helium", ReadHelium, "Helium") \
  X("hunyuan_v1_dense", ReadHunyuanDense, "Hunyuan 0.5B to 7B") \
  X("hunyuan_v1_moe", ReadHunyuanMoe, "Hunyuan-A13B") \
  X("hy_v3", ReadHyV3, "Hunyuan 3") \
  X("hyperclovax", ReadHyperClova, "HyperCLOVA X SEED") \
  X("internlm3", ReadInternLm3, "InternLM 3") \
  X("jais2", ReadJais2, "Jais 2") \
  X("lfm2", ReadLfm2, "LFM2") \
  X("lfm2_moe", ReadLfm2Moe, "LFM2-8B-A1B") \
  X("llama", ReadLlama, "Llama 3, TinyLlama, SmolLM2") \
  X("llama4", ReadLlama4, "Llama 4 with a vision tower") \
  X("llama4_text", ReadLlama4Text, "the text model of Llama 4") \
  X("llava", ReadLlava, "LLaVA 1.5 with a vision tower") \
  X("mellum", ReadMellum, "Mellum 2") \
  X("mimo_v2_flash", ReadMiMoV2Flash, "MiMo-V2-Flash") \
  X("minicpm3", ReadMiniCpm3, "MiniCPM 3") \
  X("minimax_m2", ReadMiniMaxM2, "MiniMax-M2") \
  X("ministral", ReadMinistral, "Ministral 8B") \
  X("ministral3", ReadMinistral3, "Ministral 3") \
  X("mistral", ReadMistral, "Mistral 7B, Nemo") \
  X("mistral3", ReadMistral3, "Mistral Small 3.1, Ministral 3 with a vision tower") \
  X("mixtral", ReadMixtral, "Mixtral 8x7B") \
  X("mpt", ReadMpt, "MPT 7B, MPT 30B") \
  X("nemotron", ReadNemotron, "Nemotron 4, Minitron") \
  X("olmo", ReadOlmo, "OLMo 1B, OLMo 7B") \
  X("olmo2", ReadOlmo2, "OLMo 2") \
  X("olmo3", ReadOlmo3, "OLMo 3") \
  X("olmoe", ReadOlmoe, "OLMoE") \
  X("opt", ReadOpt, "OPT, Galactica") \
  X("persimmon", ReadPersimmon, "Persimmon 8B") \
  X("phi", ReadPhi, "Phi-1.5, Phi-2") \
  X("phi3", ReadPhi3, "Phi-3, Phi-4-mini") \
  X("phimoe", ReadPhiMoe, "Phi-3.5-MoE") \
  X("qwen2", ReadQwen2, "Qwen2.5") \
  X("qwen2_moe", ReadQwen2Moe, "Qwen1.5-MoE") \
  X("qwen3", ReadQwen3, "Qwen3") \
  X("qwen3_5", ReadQwen35, "Qwen3.5 with a vision tower") \
  X("qwen3_5_moe", ReadQwen35Moe, "Qwen3.5-MoE with a vision tower") \
  X("qwen3_5_moe_text", ReadQwen35MoeText, "the text model of Qwen3.5-MoE") \
  X("qwen3_5_text", ReadQwen35Text, "the text model of Qwen3.5") \
  X("qwen3_moe", ReadQwen3Moe, "Qwen3-30B-A3B") \
  X("qwen3_next", ReadQwen3Next, "Qwen3-Next") \
  X("seed_oss", ReadSeedOss, "Seed-OSS") \
  X("smollm3", ReadSmolLm3, "SmolLM3") \
  X("solar_open", ReadSolarOpen, "Solar Open") \
  X("stablelm", ReadStableLm, "StableLM 3B, StableLM 2") \
  X("starcoder2", ReadStarcoder2, "StarCoder2") \
  X("vaultgemma", ReadVaultGemma, "VaultGemma") \
  X("xglm", ReadXglm, "XGLM") \
  X("youtu", ReadYoutu, "Youtu-LLM") \
  /* the end */

// Other names of these types: X(`model_type` of config.json, the type that it is).
#define PENSTOCK_MODEL_ALIASES(X) \
  X("kimi_k2", "deepseek_v3") \
  /* the end */

// The same for encoders, which give vectors and generate no text. docs/vectors.md shows them.
#define PENSTOCK_ENCODER_TYPES(X) \
  X("bert", ReadBert, "BERT, MiniLM, BGE, E5, GTE") \
  X("modernbert", ReadModernBert, "ModernBERT") \
  X("roberta", ReadRoberta, "RoBERTa") \
  X("xlm-roberta", ReadXlmRoberta, "XLM-RoBERTa, BGE-M3, E5 multilingual") \
  /* the end */
// clang-format on
