#pragma once
// How much memory the process has really used, and how much there is.

#include <cstdint>
#include <string>

namespace zaya {

// The most memory the process has held at a time (Linux's VmHWM), in bytes, since it started or
// since forget_peak_memory(); 0 where /proc does not say.
int64_t peak_memory_bytes();
// Memory held now, in bytes.
int64_t resident_memory_bytes();
// Memory of the machine, in bytes; 0 where the system does not say.
int64_t machine_memory_bytes();
// Memory that can be had without taking any from others, in bytes (MemAvailable); 0 where the
// system does not say.
int64_t available_memory_bytes();
// Refuses at once what would be killed for memory once it has filled its buffers: throws Error
// "WHAT needs X of memory, this machine has Y" when `bytes` are more than there is.
void require_memory(const std::string& what, int64_t bytes);
// Starts the peak again from what is held now. False where the kernel does not allow it.
bool forget_peak_memory();

}  // namespace zaya
