#pragma once
// Ctrl-C as a question the program asks, instead of its end.

namespace zaya {

// From now on Ctrl-C is noted. System calls that it interrupts are taken up again, poll(2)
// excepted.
void note_interrupts();
// Whether there was a Ctrl-C since forget_interrupts().
bool interrupted();
void forget_interrupts();

}  // namespace zaya
