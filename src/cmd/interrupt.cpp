#include "cmd/interrupt.h"

#include <csignal>

namespace zaya {
namespace {

volatile std::sig_atomic_t noted = 0;
void on_interrupt(int) { noted = 1; }

}  // namespace

void note_interrupts() {
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
}

bool interrupted() { return noted != 0; }
void forget_interrupts() { noted = 0; }

}  // namespace zaya
