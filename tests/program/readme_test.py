"""The documentation is true: every command of README.md and docs/ runs, in order, in one scratch folder that
looks like a fresh clone; every subcommand is mentioned and every mentioned one exists; links lead somewhere.

quickstart.sh runs for a few steps only, on the build under test; test.sh, which runs this file, need only be
there."""

import os
import pathlib
import re
import subprocess

from support import Program

QUICKSTART_STEPS = 12
NOT_LINKED = {".git", ".ci", "runs"}  # of the source tree, into the scratch folder


def documents(source):
    return [source / "README.md", *sorted((source / "docs").glob("*.md"))]


def name_of(program, document):
    return str(document.relative_to(program.source))


def commands_of(text):
    """(line number, command) of each command in the text's ```sh blocks; a line may go on after a backslash."""
    commands, command, begin, inside = [], "", 0, False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            inside = line == "```sh"
        elif inside and (command or (line.strip() and not line.lstrip().startswith("#"))):
            begin = begin if command else number
            command += line
            if command.endswith("\\"):
                command += "\n"
            else:
                commands.append((begin, command))
                command = ""
    assert not command, f"line {begin}: nothing follows the backslash"
    return commands


def make_clone(program):
    """A folder with the source tree's entries, runs/ of its own, and build/ where zaya is."""
    clone = program.scratch / "clone"
    (clone / "runs").mkdir(parents=True)
    for entry in program.source.iterdir():
        if entry.name not in NOT_LINKED and not entry.name.startswith("build"):
            (clone / entry.name).symlink_to(entry)
    (clone / "build").symlink_to(pathlib.Path(program.zaya).resolve().parent)
    return clone


def short_form(program, command):
    """What runs instead of the two commands that would take too long."""
    if command == "./quickstart.sh":
        return f"{command} --set max_steps={QUICKSTART_STEPS}"
    if command == "./test.sh":
        assert os.access(program.source / "test.sh", os.X_OK), "test.sh: wanted an executable file"
        return ":"
    return command


def check_commands(program):
    """One shell runs them all, so that an export in one reaches the next; it says on which it stopped."""
    clone = make_clone(program)
    progress = program.scratch / "progress"
    script, count = ["set -euo pipefail"], 0
    for document in documents(program.source):
        for line, command in commands_of(document.read_text()):
            script += [f"echo '{name_of(program, document)}:{line}' >'{progress}'",
                       short_form(program, command)]
            count += 1
    script_file, log = program.scratch / "commands.sh", program.scratch / "log"
    script_file.write_text("\n".join(script) + "\n")
    # Only the folders that zaya comes from may depend on who runs this.
    environment = {k: v for k, v in os.environ.items() if k not in ("ZAYA_BUILD", "ZAYA_RUN")}
    with log.open("w") as output:
        status = subprocess.run(["bash", script_file], cwd=clone, env=environment, stdout=output,
                                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                timeout=600).returncode
    assert status == 0, (f"{progress.read_text().strip()}: exit {status}\n"
                         f"{log.read_text(errors='replace')[-3000:]}")
    assert count > 20, f"only {count} commands were found"
    check_quickstart_output(log.read_text(errors="replace"))


def check_quickstart_output(log):
    for wanted in (f"step {QUICKSTART_STEPS}/{QUICKSTART_STEPS}", "this model",
                   "xz -9e after the training text", "--- Unix"):
        assert wanted in log, f"quickstart.sh did not print {wanted!r}"
    bits = float(re.search(r"this model +([\d.]+)", log).group(1))
    assert 1 < bits < 8, f"quickstart.sh: {bits} bits per byte"


def help_of(program, *path):
    """The subcommands and the options that --help lists."""
    text = program.run(*path, "--help").stdout
    _, _, listed = text.partition("Subcommands:\n")
    subcommands = re.findall(r"^  ([a-z]+) ", listed, re.MULTILINE)
    return subcommands, set(re.findall(r"(--[a-z][a-z-]*)", text))


def command_tree(program):
    """'train' -> its options, 'tokenizer encode' -> its options, ..."""
    tree = {}
    for name in help_of(program)[0]:
        nested, tree[name] = help_of(program, name)
        for inner in nested:
            tree[f"{name} {inner}"] = help_of(program, name, inner)[1]
    return tree


def check_subcommands(program):
    tree = command_tree(program)
    assert len(tree) >= 6, tree
    readme = (program.source / "README.md").read_text()
    for name in tree:
        assert re.search(rf"\bzaya {name}\b", readme), f"README.md does not show zaya {name}"
    for document in documents(program.source):
        for mention in mentions_of(document.read_text()):
            check_mention(tree, mention, name_of(program, document))


def mentions_of(text):
    """Every `zaya ...` in code: spans in sentences, and commands in blocks."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    spans = re.findall(r"`(zaya [^`]+)`", prose)
    blocks = [piece.strip() for _, command in commands_of(text)
              for piece in re.split(r"[|;&]", command) if piece.strip().startswith("zaya ")]
    return spans + blocks


def check_mention(tree, mention, place):
    words = mention.split()[1:]
    if words[0].startswith("-"):
        return  # zaya --help; commands in blocks have run
    nested = len(words) > 1 and any(name.startswith(words[0] + " ") for name in tree)
    known = " ".join(words[:2]) if nested else words[0]
    assert known in tree, f"{place}: `{mention}`: zaya has no such subcommand"
    for option in re.findall(r"(?<!\S)(--[a-z][a-z-]*)", mention):
        assert option in tree[known], f"{place}: `{mention}`: {known} has no {option}"


def anchors_of(document):
    """The #anchors of a document's headings, as forges make them."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_links(program):
    for document in documents(program.source):
        text = re.sub(r"```.*?```", "", document.read_text(), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = document.parent / path if path else document
            place = f"{name_of(program, document)}: link to {target}"
            assert file.exists(), f"{place}: no such file"
            assert not anchor or anchor in anchors_of(file), f"{place}: no such heading"
        for path in re.findall(r"`((?:src|tests|docs|scripts|recipes|bench)/[\w./-]*)`", text):
            assert (program.source / path).exists(), (
                f"{name_of(program, document)}: `{path}`: no such file")


def main():
    program = Program()
    check_links(program)
    check_subcommands(program)
    check_commands(program)


main()
