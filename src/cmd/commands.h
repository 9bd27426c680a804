#pragma once
// Each subcommand registers itself: its options, its help, and what runs when it is chosen.

#include <CLI/CLI.hpp>

namespace zaya {

void add_train_command(CLI::App& app);
void add_generate_command(CLI::App& app);
void add_chat_command(CLI::App& app);
void add_tokenizer_command(CLI::App& app);
void add_pack_command(CLI::App& app);
void add_eval_command(CLI::App& app);
void add_parity_command(CLI::App& app);
void add_inspect_command(CLI::App& app);
void add_convert_command(CLI::App& app);
void add_bench_command(CLI::App& app);

// Exit status of a command that ran but whose answer is "no" (parity over its tolerance, say).
// Errors exit with 1, bad usage with 2.
struct Verdict {
  int status = 0;
};
inline constexpr int kVerdictNo = 3;

}  // namespace zaya
