// The registration of quantised formats, one line each, in the order of their names:
// X(`quant_method` of config.json, its reader).
#pragma once

// clang-format off
#define PENSTOCK_FORMAT_METHODS(X) \
  X("awq", ReadAwq) \
  X("bitsandbytes", ReadBitsAndBytes) \
  X("compressed-tensors", ReadCompressedTensors) \
  X("fbgemm_fp8", ReadFbgemmFp8) \
  X("fp8", ReadFp8) \
  X("gptq", ReadGptq) \
  X("mxfp4", ReadMxfp4) \
  /* the end */
// clang-format on
