#include "data/quiet_sentencepiece.h"

#include <sentencepiece_trainer.h>

namespace zaya {

void quiet_sentencepiece() {
  // The level is global to the library, and its installed headers offer no other way to set it
  // than a training run: this one has no input and is refused after the level was taken over.
  static const bool once = [] {
    (void)sentencepiece::SentencePieceTrainer::Train({{"minloglevel", "4"}});
    return true;
  }();
  (void)once;
}

}  // namespace zaya
