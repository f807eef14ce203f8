/* C interface of Penstock's text library (Rust): tokenizers, incremental decoding, chat templates,
 * grammars.
 *
 * Errors. Every function that can fail returns a penstock_text_code; on failure `*error`, if
 * `error` is not NULL, receives one line of UTF-8 that names what was wrong, and the outputs are
 * left as they were. No Rust panic crosses: it becomes PENSTOCK_TEXT_INTERNAL.
 *
 * Ownership. Objects belong to the caller and end with their _free function, once, after the last
 * call that uses them. Filled buffers belong to the caller and end with their _free function; a
 * buffer must be zeroed ({0}) or freed before it is passed as an output. Inputs are only read
 * during the call. All _free functions accept NULL and zeroed buffers.
 *
 * Threads. A penstock_tokenizer, penstock_template, penstock_vocabulary and penstock_grammar are
 * immutable: any number of threads may use one at once. A penstock_decoder and a penstock_matcher
 * belong to one thread at a time.
 *
 * Texts are UTF-8 given by pointer and length, may hold NUL and need no terminator. A pointer may
 * be NULL where its length is 0.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum penstock_text_code {
  PENSTOCK_TEXT_OK = 0,
  PENSTOCK_TEXT_INVALID_ARGUMENT = 1, /* bad input: text, JSON, a broken file */
  PENSTOCK_TEXT_NOT_FOUND = 2,        /* no such file */
  PENSTOCK_TEXT_LIMIT = 3,            /* a bound on size or work was reached */
  PENSTOCK_TEXT_TEMPLATE = 4,         /* the chat template refused, or is itself wrong */
  PENSTOCK_TEXT_INTERNAL = 5          /* a defect of ours or of a library */
} penstock_text_code;

/* Text made by the library. */
typedef struct penstock_bytes {
  uint8_t* data;
  size_t size;
} penstock_bytes;

/* Token ids made by the library; offsets has 2 * size elements (begin and end of each token in the
 * input, in bytes) or is NULL. */
typedef struct penstock_tokens {
  uint32_t* ids;
  size_t size;
  size_t* offsets;
} penstock_tokens;

typedef struct penstock_tokenizer penstock_tokenizer;
typedef struct penstock_decoder penstock_decoder;
typedef struct penstock_template penstock_template;
typedef struct penstock_vocabulary penstock_vocabulary;
typedef struct penstock_grammar penstock_grammar;
typedef struct penstock_matcher penstock_matcher;

void penstock_bytes_free(penstock_bytes* bytes);
void penstock_tokens_free(penstock_tokens* tokens);

/* --- Tokenizer ------------------------------------------------------------------------------- */

/* `folder` holds tokenizer.json and, optionally, tokenizer_config.json, special_tokens_map.json and
 * the chat template: chat_template.jinja, else chat_template.json, else in tokenizer_config.json.
 * A truncation or padding saved in tokenizer.json is switched off. */
int32_t penstock_tokenizer_load(const char* folder, size_t folder_size,
                                penstock_tokenizer** tokenizer, penstock_bytes* error);
void penstock_tokenizer_free(penstock_tokenizer* tokenizer);

/* Largest id + 1, added tokens included. A model may have more embedding rows. */
uint32_t penstock_tokenizer_vocabulary(const penstock_tokenizer* tokenizer);

/* 1 for a special token (one that skip_special leaves out), else 0. */
int32_t penstock_tokenizer_is_special(const penstock_tokenizer* tokenizer, uint32_t id);

/* Special tokens spelled out in the text become their ids. */
int32_t penstock_tokenizer_encode(const penstock_tokenizer* tokenizer, const char* text,
                                  size_t text_size, int32_t add_special_tokens,
                                  int32_t with_offsets, penstock_tokens* tokens,
                                  penstock_bytes* error);

/* A text, or a pair of texts if `pair` is not null, as the tokenizer joins them. With `most` above
 * 0 tokens are cut from the end of the longer text until all fit. `first_part` gets the number of
 * tokens before the second part, as the tokenizer's type ids tell. */
int32_t penstock_tokenizer_encode_pair(const penstock_tokenizer* tokenizer, const char* text,
                                       size_t text_size, const char* pair, size_t pair_size,
                                       int32_t add_special_tokens, size_t most,
                                       penstock_tokens* tokens, size_t* first_part,
                                       penstock_bytes* error);

/* Ids outside the vocabulary decode to nothing. */
int32_t penstock_tokenizer_decode(const penstock_tokenizer* tokenizer, const uint32_t* ids,
                                  size_t size, int32_t skip_special, penstock_bytes* text,
                                  penstock_bytes* error);

/* The vocabulary's spelling of `id` (not its text) and whether it is a special token; NOT_FOUND for
 * an id that no token has. */
int32_t penstock_tokenizer_token(const penstock_tokenizer* tokenizer, uint32_t id,
                                 penstock_bytes* token, int32_t* special, penstock_bytes* error);

/* All named tokens as a JSON object, ready for penstock_template_compile. */
int32_t penstock_tokenizer_named_tokens_json(const penstock_tokenizer* tokenizer,
                                             penstock_bytes* json, penstock_bytes* error);

/* Source of the chat template called `name` ("" = the default one). NOT_FOUND when there is none.
 */
int32_t penstock_tokenizer_chat_template(const penstock_tokenizer* tokenizer, const char* name,
                                         size_t name_size, penstock_bytes* source,
                                         penstock_bytes* error);

/* --- Incremental decoding -------------------------------------------------------------------- */

/* Text of generated tokens as it becomes printable. `context` is the end of the prompt (a handful
 * of tokens, oldest first), which the text continues. The decoder keeps the tokenizer alive. */
int32_t penstock_decoder_new(const penstock_tokenizer* tokenizer, int32_t skip_special,
                             const uint32_t* context, size_t context_size,
                             penstock_decoder** decoder, penstock_bytes* error);
void penstock_decoder_free(penstock_decoder* decoder);

/* `*text` is whole UTF-8, possibly empty: nothing is given out while the text ends in U+FFFD, which
 * the next token may resolve (after 32 tokens it is given out). It stays valid until the next call
 * for this decoder. Work is bounded, however long the text already is. */
int32_t penstock_decoder_push(penstock_decoder* decoder, uint32_t id, const char** text,
                              size_t* text_size, penstock_bytes* error);

/* The text that `push` of this token and then `finish` would give. The decoder stays as it is. */
int32_t penstock_decoder_peek(const penstock_decoder* decoder, uint32_t id, penstock_bytes* text,
                              penstock_bytes* error);

/* 1 while nothing is held back and nothing that came before has a part in the next token's text,
 * else 0. In that state a token whose `settled_text` is settled needs no push: that is its text
 * (nothing for a special one that is skipped), and the decoder stays as it is. */
int32_t penstock_decoder_is_settled(const penstock_decoder* decoder);
int32_t penstock_decoder_settled_text(const penstock_tokenizer* tokenizer, uint32_t id,
                                      penstock_bytes* text, int32_t* settled,
                                      penstock_bytes* error);

/* The held-back rest; an incomplete character becomes U+FFFD. `*text` as above. */
int32_t penstock_decoder_finish(penstock_decoder* decoder, const char** text, size_t* text_size,
                                penstock_bytes* error);

/* --- Chat template --------------------------------------------------------------------------- */

/* Jinja2 as transformers runs it. `globals_json`: an object of variables that each rendering sees.
 */
int32_t penstock_template_compile(const char* source, size_t source_size, const char* globals_json,
                                  size_t globals_json_size, penstock_template** compiled,
                                  penstock_bytes* error);
void penstock_template_free(penstock_template* compiled);

typedef struct penstock_conversation {
  const char* messages_json; /* an array */
  size_t messages_json_size;
  const char* tools_json; /* size 0: `tools` is None in the template */
  size_t tools_json_size;
  const char* kwargs_json; /* an object of further variables; size 0: none */
  size_t kwargs_json_size;
  int32_t add_generation_prompt;
  int64_t now_seconds; /* local wall-clock time for strftime_now, seconds since 1970 */
  /* Bounds; 0 = the default (32 MiB, 32 MiB, 1,000,000). */
  size_t max_input_bytes;
  size_t max_output_bytes;
  uint64_t max_steps;
} penstock_conversation;

int32_t penstock_template_render(const penstock_template* compiled,
                                 const penstock_conversation* conversation, penstock_bytes* text,
                                 penstock_bytes* error);

/* --- Grammars -------------------------------------------------------------------------------- */

/* The vocabulary as a trie of bytes, built once per model (0.2 s for 128,000 tokens). `rows`: of
 * the model's logits, which may be more than the tokenizer has tokens. `eos_ids`, at least one, end
 * an output. `prepared`: also build tables that make masks cheaper (another 0.3 s). Keeps the
 * tokenizer alive. */
int32_t penstock_vocabulary_new(const penstock_tokenizer* tokenizer, uint32_t rows,
                                const uint32_t* eos_ids, size_t eos_count, int32_t prepared,
                                penstock_vocabulary** vocabulary, penstock_bytes* error);
void penstock_vocabulary_free(penstock_vocabulary* vocabulary);

typedef enum penstock_grammar_kind {
  PENSTOCK_GRAMMAR_JSON_SCHEMA = 1, /* an object or `true`; blanks: at most one behind , and : */
  PENSTOCK_GRAMMAR_REGEX = 2,       /* the whole output matches; syntax of Rust's regex crate */
  PENSTOCK_GRAMMAR_LARK = 3         /* llguidance's variant of Lark */
} penstock_grammar_kind;

/* Work is counted, not timed, so the same grammar is refused everywhere. 0 = the default. */
typedef struct penstock_grammar_limits {
  size_t source_bytes;   /* 256 KiB */
  uint64_t compile_fuel; /* 500,000 expressions */
  uint64_t mask_fuel;    /* 100,000 expressions for one mask, some 7 ms */
} penstock_grammar_limits;

/* INVALID_ARGUMENT: it is no grammar, or nothing can match it. LIMIT: it is too large. `limits` may
 * be NULL. Some grammars take long without spending fuel: callers that others wait for keep a clock
 * beside it. Keeps the vocabulary's tables alive. */
int32_t penstock_grammar_compile(const penstock_vocabulary* vocabulary, int32_t kind,
                                 const char* source, size_t source_size,
                                 const penstock_grammar_limits* limits, penstock_grammar** grammar,
                                 penstock_bytes* error);
void penstock_grammar_free(penstock_grammar* grammar);

/* Where one output stands, at first at its beginning. Microseconds. May outlive the grammar. After
 * an error the matcher is of no more use. */
int32_t penstock_matcher_new(const penstock_grammar* grammar, penstock_matcher** matcher,
                             penstock_bytes* error);
void penstock_matcher_free(penstock_matcher* matcher);

/* Token t may come next: bit t % 32 of words[t / 32]. All words are written. EOS tokens are among
 * them exactly where the output may end; after the end they alone are. */
int32_t penstock_matcher_mask(penstock_matcher* matcher, uint32_t* words, size_t word_count,
                              penstock_bytes* error);

/* The output goes on with these tokens; one that the mask forbids is an error. */
int32_t penstock_matcher_accept(penstock_matcher* matcher, const uint32_t* ids, size_t size,
                                penstock_bytes* error);

/* The tokens that must come next where the grammar leaves one text, at most `most`, in the
 * tokenizer's own spelling. `words` is the mask of this state, `context` the last tokens of the
 * prompt and the output (16 are enough). The last tokens of the text are left out as far as another
 * token could spell them together with what follows. None if the tokenizer would join the end of
 * the context with the text. */
int32_t penstock_matcher_forced(penstock_matcher* matcher, const uint32_t* words, size_t word_count,
                                const uint32_t* context, size_t context_size, size_t most,
                                penstock_tokens* tokens, penstock_bytes* error);

/* `*accepting`: the output may end here. `*complete`: nothing but its end may follow. */
int32_t penstock_matcher_state(penstock_matcher* matcher, int32_t* accepting, int32_t* complete,
                               penstock_bytes* error);

#ifdef __cplusplus
}
#endif
