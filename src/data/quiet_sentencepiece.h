#pragma once

namespace zaya {

// Stops the SentencePiece library from writing to standard error. Failures come back as statuses.
void quiet_sentencepiece();

}  // namespace zaya
