// What a step made of one request, as generate.v3 says it.
#pragma once

#include <absl/status/status.h>

#include <string>

#include "shard/tgi/member.h"
#include "text/tokenizer.h"

namespace generate::v3 {
class Generation;
}  // namespace generate::v3

namespace penstock::shard {

// Takes the member's sampled token into its text and decides whether the request has ended: by
// length, EOS or stop string, in this order. `out` may be null: a rank that does not report keeps
// the same state. Sets `stopped` of the member; the caller frees its place.
absl::Status TakeToken(Member& member, const text::Tokenizer& tokenizer,
                       generate::v3::Generation* out);

}  // namespace penstock::shard
