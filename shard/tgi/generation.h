// The result of a step for one request, as a Generation of generate.v3.
#pragma once

#include <absl/status/status.h>

#include <string>

#include "shard/tgi/member.h"
#include "text/tokenizer.h"

namespace generate::v3 {
class Generation;
}  // namespace generate::v3

namespace penstock::shard {

// Adds the sampled token to the text of the member. Decides whether the request has ended: by
// length, EOS or stop string, in this order. `out` is null on a rank that does not report. Sets
// `stopped` of the member; the caller then frees its allocation.
absl::Status TakeToken(Member& member, const text::Tokenizer& tokenizer,
                       generate::v3::Generation* out);

}  // namespace penstock::shard
