"""The features of a request, as router/rank/rank_features.h defines them. Standard library only."""

FIXED = 5  # before the words
LAST_TOKENS = 512
IDS_COUNTED = 4096
LONGEST_WORD = 3
MOST = 2147483647  # features are 32-bit integers


class Features:
    """`words`: lists of 1 to 3 token ids, no two equal."""

    def __init__(self, words):
        self.words = {tuple(word): number for number, word in enumerate(words)}
        self.beginnings = {word[:length] for word in self.words for length in range(1, len(word))}

    def of(self, request):
        """`request`: a line of `penstock-replay lengths` as a dict."""
        prompt = request["prompt"]
        last = prompt[-LAST_TOKENS:]
        given = request["length_given"]
        features = [
            len(prompt),
            min(request["max_new_tokens"], MOST) if given else 0,
            1 if given else 0,
            request["request_class"],
            len({token % IDS_COUNTED for token in last}),
        ] + [0] * len(self.words)
        for first in range(len(last)):
            for length in range(1, LONGEST_WORD + 1):
                word = tuple(last[first : first + length])
                if len(word) < length:
                    break
                if word in self.words:
                    features[FIXED + self.words[word]] += 1
                if word not in self.beginnings:
                    break
        return features
