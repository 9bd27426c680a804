#!/usr/bin/env python3
"""Check what the compiler does not: the order of the rooms under src/.

  - an include names "room/file.h" and points down the list of rooms, never up
  - nothing below src/cmd exits the process or prints to a person
  - model, optim and train leave the numbers inside tensors to src/ops

tests/ and bench/ may include anything. Prints file:line for each finding and exits with 1 if there
is one. --self-test runs every rule on code that breaks it.
"""

import pathlib
import re
import sys
import tempfile

# From the bottom up: a room includes itself and the rooms before it.
ROOMS = ["core", "backend", "ops", "comm", "model", "data", "optim", "checkpoint", "infer", "eval",
         "train", "plan", "cmd"]
HANDS_OFF_TENSORS = {"model", "optim", "train"}
# Files that write a few numbers the host counted; a GPU backend has to move them into an op.
MAY_TOUCH_TENSORS = {"optim/balancing.cpp"}

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')
# Not a member (x.exit) and not another name's end; std:: and :: in front are the same function.
CALL = r"(?<![\w.>:])(?:std::|::)?"
EXITS = re.compile(CALL + r"(exit|_exit|_Exit|quick_exit|abort|terminate)\s*\(")
PRINTS = re.compile(CALL + r"(printf|vprintf|puts|putchar|perror)\s*\("
                    r"|\bf(?:printf|puts)\s*\([^;]*\bstd(?:out|err)\b"
                    r"|\b(?:std::)?(?:w?cout|w?cerr|w?clog)\s*<<|\bstd::w?(?:cout|cerr|clog)\b"
                    r"|\bfmt::print(?:ln)?\s*\(")
# Reading a tensor's elements. Handing its pointer to another tensor is no reading, and a
# container's data() is no tensor.
TOUCHES = re.compile(r"(?:\.|->)\s*(?:template\s+)?(?:as|row)\s*<"
                     r"|->\s*data\b(?!\s*[(.])"
                     r"|(?:_cast\s*<|\bmem(?:cpy|set|move|cmp)\s*\()[^;]*\.data\b(?!\s*[(.])")

TOKENS = re.compile(r'//(?:[^\n]|\\\n)*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"'
                    r'|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)


def code_only(text):
    """The text with comments and literals blanked, line numbers kept."""
    def blank(match):
        return '""' + "\n" * match.group().count("\n")
    return TOKENS.sub(blank, text)


def include_finding(room, target):
    other = target.split("/")[0]
    if "/" not in target or other not in ROOMS:
        return f'includes "{target}": wanted "room/file.h" with a room of {", ".join(ROOMS)}'
    if ROOMS.index(other) > ROOMS.index(room):
        return f'includes "{target}": {room} is below {other}'
    return None


def check_file(path, source):
    """Yields (line, message) for every finding in one file of src/."""
    name = path.relative_to(source).as_posix()
    room = name.split("/")[0]
    if room not in ROOMS or "/" not in name:
        yield 1, f"is in no known room: wanted one of {', '.join(ROOMS)}"
        return
    text = path.read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        finding = include_finding(room, match.group(1)) if match else None
        if finding:
            yield number, finding
    rules = []
    if room != "cmd":
        rules.append((EXITS, "ends the process: throw with zaya::fail (only src/cmd exits)"))
        rules.append((PRINTS, "prints: only src/cmd speaks to a person"))
    if room in HANDS_OFF_TENSORS and name not in MAY_TOUCH_TENSORS:
        rules.append((TOUCHES, f"reads a tensor's memory: {room} leaves that to src/ops"))
    code = code_only(text)
    for pattern, message in rules:
        for match in pattern.finditer(code):
            yield code.count("\n", 0, match.start()) + 1, message


def check_tree(source):
    """Every finding under `source` (a src/ folder), as 'file:line: message'."""
    findings = []
    for path in sorted(source.rglob("*")):
        if path.suffix in {".h", ".cpp"}:
            findings += [f"{path}:{line}: {message}"
                         for line, message in sorted(check_file(path, source))]
    return findings


# file, code, what the only finding must contain (None: no finding).
SELF_TEST = [
    ("ops/a.cpp", '#include "core/tensor.h"\n#include <cstdio>\n', None),
    ("ops/a.cpp", '\n#include "model/config.h"\n', 'a.cpp:2: includes "model/config.h"'),
    ("infer/a.cpp", '#include "eval/parity.h"\n', "infer is below eval"),
    ("train/a.cpp", '#include "eval/parity.h"\n', None),
    ("core/a.cpp", '#include "tensor.h"\n', 'wanted "room/file.h"'),
    ("kitchen/a.cpp", "", "no known room"),
    ("data/a.cpp", "\n\nvoid f() { std::exit(1); }", "a.cpp:3: ends the process"),
    ("data/a.cpp", "void f() { abort(); }", "ends the process"),
    ("data/a.cpp", "void f() { request.abort(); on_exit(); }", None),
    ("data/a.cpp", '// abort() /* exit(1) */\nconst char* s = "exit(1) std::cout";', None),
    ("data/a.cpp", 'const char* s = R"x(abort();)" exit(1))x"; int n = 1\'000; // \'exit(1)', None),
    ("core/a.cpp", 'void f() { printf("x"); }', "prints"),
    ("core/a.cpp", 'void f() { fprintf(\n    stderr, "x"); }', "a.cpp:1: prints"),
    ("core/a.cpp", 'void f() { snprintf(b, 4, "x"); fputs("x", file); }', None),
    ("core/a.cpp", "void f() { std::cerr << 1; }", "prints"),
    ("core/a.cpp", 'void f() { fmt::print("x"); fmt::format("x"); }', "prints"),
    ("cmd/main.cpp", 'int main() { fmt::print("x"); std::exit(1); }', None),
    ("model/a.cpp", "void f() { x.as<float>()[0] = 1; }", "reads a tensor's memory"),
    ("train/a.cpp", "void f() { x.shape.\n  row<float>(3); }", "reads a tensor's memory"),
    ("optim/a.cpp", "void f() { use(x->data); }", "reads a tensor's memory"),
    ("model/a.cpp", "void f() { std::memcpy(to, x.data, 4); }", "reads a tensor's memory"),
    ("model/a.cpp", "void f() { Tensor(x.data, d, s); memcpy(to, list.data(), 4); }", None),
    ("train/a.cpp", "void f() { for (auto& s : recipe.data) g(s); }", None),
    ("ops/a.cpp", "void f() { x.as<float>()[0] = 1; }", None),
]


def self_test():
    failures = 0
    for name, code, wanted in SELF_TEST:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True)
            path.write_text(code, encoding="utf-8")
            findings = check_tree(pathlib.Path(folder))
        right = not findings if wanted is None else len(findings) == 1 and wanted in findings[0]
        if not right:
            failures += 1
            print(f"self-test: {name} {code!r}: wanted {wanted!r}, got {findings}")
    print(f"check_includes: self-test {'failed' if failures else 'passed'} "
          f"({len(SELF_TEST)} snippets)")
    return 1 if failures else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if sys.argv[1:]:
        print("usage: check_includes.py [--self-test]")
        return 2
    root = pathlib.Path(__file__).resolve().parent.parent
    findings = check_tree(root / "src")
    for finding in findings:
        print(finding.removeprefix(f"{root}/"))
    print(f"check_includes: {len(findings)} findings" if findings else "check_includes: clean")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
