// src/cmd is a program, not a library: the test takes the source in.
#include "cmd/progress_line.cpp"  // NOLINT

#include <gtest/gtest.h>

namespace zaya {
namespace {

StepMetrics metrics(int64_t step) {
  StepMetrics m;
  m.step = step;
  m.tokens = step * 4096;
  m.loss = 4.2134;
  m.bits_per_byte = 2.71;
  m.grad_norm = 0.834;
  m.tokens_per_second = 8192;
  m.expert_entropy = {0.99, 0.97};
  return m;
}

// What ProgressLine writes to a file while `use` works it; `now` is its clock.
template <class F>
std::string written(double seconds_between, bool in_place, F use) {
  std::FILE* file = std::tmpfile();
  double now = 0;
  {
    ProgressLine line(
        file, 450, 450 * 4096, seconds_between, [&] { return now; }, in_place);
    use(line, now);
  }
  std::string text(static_cast<size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), file), text.size());
  std::fclose(file);
  return text;
}

TEST(ProgressLine, TheTextNamesWhatAPersonWatches) {
  EXPECT_EQ(progress_text(metrics(120), 450, 72),
            "step 120/450  0.49 M tokens  loss 4.213  2.710 bits/byte  8192 tokens/s  gradient "
            "0.83  experts 0.97  1:12 left");
}

TEST(ProgressLine, WhatIsNotKnownIsNotShown) {
  StepMetrics m = metrics(1);
  m.bits_per_byte = 0;
  m.expert_entropy.clear();
  EXPECT_EQ(progress_text(m, 450, -1),
            "step 1/450  0.00 M tokens  loss 4.213  8192 tokens/s  gradient 0.83");
}

TEST(ProgressLine, TimesAreShort) {
  EXPECT_EQ(short_time(9), "0:09");
  EXPECT_EQ(short_time(72), "1:12");
  EXPECT_EQ(short_time(3700), "1:01:40");
}

TEST(ProgressLine, AFileGetsALineEverySoManySeconds) {
  const std::string text = written(10, false, [](ProgressLine& line, double& now) {
    for (int64_t step = 1; step <= 25; ++step, now += 1) line.show(metrics(step));
  });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);  // steps 1, 11, 21
  EXPECT_NE(text.find("step 21/450"), std::string::npos);
}

TEST(ProgressLine, TheLastStepIsAlwaysShown) {
  const std::string text = written(10, false, [](ProgressLine& line, double&) {
    line.show(metrics(449));
    line.show(metrics(450));
  });
  EXPECT_NE(text.find("step 450/450"), std::string::npos);
}

TEST(ProgressLine, ATerminalLineIsRewrittenInPlaceAndClosedAtTheEnd) {
  const std::string text = written(10, true, [](ProgressLine& line, double& now) {
    line.show(metrics(1));
    now += 1;
    line.show(metrics(2));
  });
  EXPECT_EQ(text.rfind("\rstep 1/450", 0), 0u);
  EXPECT_NE(text.find("\x1b[K\rstep 2/450"), std::string::npos);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST(ProgressLine, AMessageTakesARowOfItsOwn) {
  const std::string text = written(10, true, [](ProgressLine& line, double&) {
    line.show(metrics(1));
    line.message("validation");
  });
  EXPECT_NE(text.find("\r\x1b[Kvalidation\n"), std::string::npos);
}

TEST(ProgressLine, ASkippedStepIsSaid) {
  const std::string text = written(10, false, [](ProgressLine& line, double&) {
    StepMetrics m = metrics(1);
    m.skipped = true;
    m.skip_reason = "loss is not finite";
    line.show(m);
  });
  EXPECT_NE(text.find("step 1 skipped: loss is not finite\n"), std::string::npos);
}

}  // namespace
}  // namespace zaya
