"""zaya chat: over a pipe, and as a person at a terminal with Ctrl-C."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time

from chat_model import (END_OF_TURN, FIRST_BYTE, bias_for, bias_token, make_chat_model,
                        sentencepiece_model)
from support import Program


def chat(program, folder, lines, *arguments, **options):
    return program.run("chat", "--model", folder, *arguments, input="".join(f"{line}\n" for line in lines),
                       **options)


def check_pipe(program, folder):
    """Messages in, answers out."""
    x = ["--max-tokens", 3, *bias_for("x")]
    assert chat(program, folder, ["hello", "", "again"], *x).stdout == "xxx\nxxx\n"
    assert program.run("chat", "--model", folder, *x, input="no newline").stdout == "xxx\n"
    assert program.run("chat", "--model", folder, *x, input="").stdout == ""
    assert chat(program, folder, ["a", "/quit", "b"], *x).stdout == "xxx\n"
    result = chat(program, folder, ["/nonsense", "a"], *x)
    assert result.stdout == "xxx\n" and "/nonsense: no such command" in result.stderr, result
    assert "/reset" in chat(program, folder, ["/help"], *x).stdout
    end = chat(program, folder, ["a"], *bias_token(END_OF_TURN))
    assert end.stdout == "\n", end.stdout


def check_saving(program, folder):
    x = ["--max-tokens", 3, *bias_for("x")]
    file = program.scratch / "saved.json"
    chat(program, folder, ["/system Be kind.", "hello \\", "you", '"""', "two", "  lines", '"""',
                           "//slash", f"/save {file}"], *x)
    saved = json.loads(file.read_text())["messages"]
    assert saved[0] == {"role": "system", "content": "Be kind."}, saved
    said = [message["content"] for message in saved if message["role"] == "user"]
    assert said == ["hello \nyou", "two\n  lines", "/slash"], said
    assert [m["content"] for m in saved if m["role"] == "assistant"] == ["xxx"] * 3, saved
    again = program.scratch / "again.json"
    chat(program, folder, ["more", f"/save {again}"], "--load", file, *x)
    assert json.loads(again.read_text())["messages"][:len(saved)] == saved
    chat(program, folder, ["more", "/reset", "b", f"/save {again}"], "--system", "S", *x)
    saved = json.loads(again.read_text())["messages"]
    assert [m["content"] for m in saved] == ["S", "b", "xxx"], saved
    result = chat(program, folder, ["/save", "/save /no/such/folder/f", "a"], *x)
    assert result.stdout == "xxx\n" and "/no/such/folder" in result.stderr, result
    for bad, text in (("[]", "wanted an object"), ("{}", "messages"), ('{"messages": [{}]}', "role"),
                      ('{"messages": [{"role": "assistant", "content": "x"}]}', 'wanted "user"')):
        file.write_text(bad)
        program.refused("chat", "--model", folder, "--load", file, said=[str(file), text])


def check_memory_of_turns(program, folder):
    """The same conversation gives the same answers, told at once or loaded: nothing is lost between."""
    # Letters only: the answers are then in the file as they are.
    letters = [argument for token in range(FIRST_BYTE + 256)
               if not ord("a") <= token - FIRST_BYTE <= ord("z")
               for argument in ("--logit-bias", f"{token}=-inf")]
    common = ["--temperature", 0, "--repetition-penalty", 8, "--max-tokens", 3, *letters]
    whole = chat(program, folder, ["one", "two", "three"], *common).stdout.splitlines()
    assert len(set(whole)) == 3, whole
    file = program.scratch / "half.json"
    chat(program, folder, ["one", "two", f"/save {file}"], *common)
    assert chat(program, folder, ["three"], "--load", file, *common).stdout == whole[2] + "\n"
    assert chat(program, folder, ["one", "/reset", "one"], *common).stdout == f"{whole[0]}\n" * 2


def check_refusals(program, folder):
    fixture = program.source / "tests/fixtures/native-a"
    program.refused("chat", "--model", fixture, "--tokenizer", "byte",
                    said=["<start_of_turn> and <end_of_turn>", "no such tokens", "zaya generate"])
    lacks = sentencepiece_model().replace(b"<end_of_turn>", b"<end_of_turm>")
    program.refused("chat", "--model", make_chat_model(program, "lacks", lacks),
                    said="has no <end_of_turn>")
    program.refused("chat", "--model", folder, "--min-p", 2, said="--min-p: wanted 0 to 1, got 2")
    other = make_chat_model(program, "other", tokenizer_config={
        "chat_template": "<|im_start|>{{ role }}", "bos_token": "<s>"})
    result = chat(program, other, ["a"], "--max-tokens", 1, *bias_for("x"))
    assert "tokenizer_config.json: chat_template writes turns in another way" in result.stderr
    assert result.stdout == "x\n", result
    assert chat(program, folder, ["a"], "--max-tokens", 1, *bias_for("x")).stderr == ""


def check_context(program):
    folder = make_chat_model(program, "short")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 60}))
    result = chat(program, folder, ["hello", "more", "/reset", "x" * 80, "b"], "--max-tokens", 1000,
                  *bias_for("x"))
    assert re.fullmatch(r"x+\nx+\n", result.stdout), result.stdout
    assert "the context of 60 tokens is full: /reset starts anew" in result.stderr, result.stderr
    assert result.stderr.count("tokens more do not fit") == 2, result.stderr


class Terminal:
    """zaya chat in a terminal of its own."""

    def __init__(self, program, folder, *arguments):
        pid, self.fd = pty.fork()
        if pid == 0:
            os.environ.update(TERM="xterm", LC_ALL="C.UTF-8")
            command = program.command("chat", "--model", folder, *arguments)
            os.execv(command[0], command)
        self.pid = pid
        self.seen = ""

    def expect(self, text, seconds=60):
        """Waits for the text; what comes after it is kept for the next call."""
        end = time.monotonic() + seconds
        while text not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], max(0, end - time.monotonic()))
            assert ready, f"wanted {text!r} in {self.seen[:500]!r}"
            try:
                self.seen += os.read(self.fd, 4096).decode(errors="replace")
            except OSError:
                raise AssertionError(f"ended before {text!r}: {self.seen!r}") from None
        before, _, self.seen = self.seen.partition(text)
        return before

    def expect_prompt(self):
        """Waits until what is typed goes to the editor: it shows its prompt a moment before."""
        self.expect("> ")
        while termios.tcgetattr(self.fd)[3] & termios.ICANON:
            time.sleep(0.01)

    def type(self, text):
        os.write(self.fd, text if isinstance(text, bytes) else text.encode())

    def finish(self):
        while True:
            try:
                if not os.read(self.fd, 4096):
                    break
            except OSError:
                break
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def check_terminal(program, folder):
    file = program.scratch / "typed.json"
    terminal = Terminal(program, folder, "--max-tokens", 4000, *bias_for("x"))
    terminal.expect("/help lists the commands")
    terminal.expect_prompt()
    # Typed, with a mistake taken back: a character of three bytes goes as one.
    terminal.type("héllo 日本\x7f\r")
    terminal.expect("xxxx")
    terminal.type("\x03")  # Ctrl-C stops the answer only
    terminal.expect("[stopped]")
    terminal.expect_prompt()
    terminal.type("\x03")
    terminal.expect("Ctrl-D or /quit leaves")
    terminal.expect_prompt()
    terminal.type("half a line\x03")
    terminal.expect_prompt()
    terminal.type("\x1b[A\x01A\r")  # up: the last message; Ctrl-A: to its begin
    terminal.expect("xxxx")
    terminal.type("\x03")
    terminal.expect("[stopped]")
    terminal.expect_prompt()
    terminal.type(f"/save {file}\r")
    terminal.expect("saved to")
    terminal.expect_prompt()
    # Half a character is one that backspace takes back, and what follows it is not lost.
    terminal.type(b"\xe6\x9c" + b"\x7f/nonsense\r")
    terminal.expect("no such command")
    terminal.expect_prompt()
    terminal.type("\x04")
    assert terminal.finish() == 0
    messages = json.loads(file.read_text())["messages"]
    assert [m["content"] for m in messages if m["role"] == "user"] == ["héllo 日", "Ahéllo 日"], messages
    for answer in (m["content"] for m in messages if m["role"] == "assistant"):
        assert answer == "x" * len(answer) and 4 <= len(answer) < 4000, len(answer)


def check_closed_pipe(program, folder):
    """Nobody reads any more: zaya ends, and says nothing."""
    command = program.command("chat", "--model", folder, "--max-tokens", 4000, *bias_for("x"))
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    process.stdin.write(b"hello\n")
    process.stdin.flush()
    assert process.stdout.read(3) == b"xxx"
    process.stdout.close()
    assert process.wait(60) == -signal.SIGPIPE and process.stderr.read() == b""


def main():
    os.environ["OMP_NUM_THREADS"] = "1"
    program = Program()
    folder = make_chat_model(program)
    check_pipe(program, folder)
    check_saving(program, folder)
    check_memory_of_turns(program, folder)
    check_refusals(program, folder)
    check_context(program)
    try:
        for end in pty.openpty():
            os.close(end)
    except OSError as error:  # a chroot without /dev/pts
        print(f"without a pseudo-terminal ({error}) line editing and Ctrl-C are not tested")
    else:
        check_terminal(program, folder)
    check_closed_pipe(program, folder)


main()
