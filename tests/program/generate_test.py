"""zaya generate: several prompts, what chooses tokens, what ends a text, and what is said about it."""

import json
import os
import signal
import subprocess

from chat_model import END_OF_TURN, EOS, FIRST_BYTE, bias_for, bias_token, make_chat_model
from support import Program


def ask(program, folder, *arguments, **options):
    """The JSON objects that generate prints."""
    result = program.run("generate", "--model", folder, "--json", *arguments, **options)
    return [json.loads(line) for line in result.stdout.splitlines()]


def check_batches(program, folder):
    """Each prompt's text is the one it has alone, in the order of the prompts."""
    prompts = ["a", "hello", "", "[x, y]", "z" * 90]
    common = ["--max-tokens", 24, "--temperature", 1, "--top-p", "0.99", "--seed", 5]
    alone = [ask(program, folder, "--prompt", prompt, *common)[0]["text"] for prompt in prompts]
    assert len(set(alone)) == len(prompts), alone
    several = [argument for prompt in prompts for argument in ("--prompt", prompt)]
    for batch in (1, 2, 16):
        answers = ask(program, folder, *several, *common, "--batch", batch)
        assert [answer["prompt"] for answer in answers] == prompts, answers
        assert [answer["text"] for answer in answers] == alone, batch
    file = program.scratch / "prompts.txt"
    file.write_text("\n".join(prompts) + "\r\n")
    assert [a["text"] for a in ask(program, folder, "--prompts", file, *common)] == alone
    piped = ask(program, folder, "--prompts", "-", *common, input="\n".join(prompts))
    assert [answer["text"] for answer in piped] == alone
    for threads in (1, 2, 5):
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads),
                       "OMP_WAIT_POLICY": "passive"}
        answers = ask(program, folder, *several, *common, env=environment)
        assert [answer["text"] for answer in answers] == alone, threads
    text = program.run("generate", "--model", folder, "--prompt", "a", "--prompt", "b",
                       "--max-tokens", 2, *bias_for("x")).stdout
    assert text == "--- 1 of 2\naxx\n\n--- 2 of 2\nbxx\n", repr(text)


def check_ends(program, folder):
    one, = ask(program, folder, "--prompt", "a", "--max-tokens", 5, *bias_for("x"))
    assert one["text"] == "xxxxx" and one["stopped"] == "length" and not one["ended"], one
    assert one["prompt_tokens"] == 2 and one["new_tokens"] == 5, one
    assert one["decode_tokens_per_second"] > 0 and one["prompt_tokens_per_second"] > 0, one
    assert one["peak_memory_bytes"] > 1 << 20, one
    one, = ask(program, folder, "--prompt", "a", "--max-tokens", 5, *bias_token(EOS))
    assert one["text"] == "" and one["stopped"] == "eos" and one["ended"], one
    one, = ask(program, folder, "--prompt", "a", "--max-tokens", 9, "--stop", "xxx", "--stop", "y",
               *bias_for("x"))
    assert one["text"] == "" and one["stopped"] == "stop string" and one["new_tokens"] == 3, one
    one, = ask(program, folder, "--prompt", "a", "--max-tokens", 2, "--stop", "xxx",
               *bias_for("x"))
    assert one["text"] == "xx" and one["stopped"] == "length", one
    text = program.run("generate", "--model", folder, "--prompt", "a", "--max-tokens", 2,
                       "--stop", "xx", *bias_for("x")).stdout
    assert text == "a\n", repr(text)


def check_limits(program):
    """The model's longest sequence ends a text, and refuses a prompt."""
    folder = make_chat_model(program, "short")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 20}))
    arguments = ["generate", "--model", folder, "--max-tokens", 100, *bias_for("x")]
    result = program.run(*arguments, "--prompt", "abc", "--json")
    answer = json.loads(result.stdout)
    assert answer["prompt_tokens"] + answer["new_tokens"] == 20, answer
    assert answer["stopped"] == "length", answer
    assert result.stderr == "zaya: stopped the text at the model's 20 tokens " \
                            "(max_position_embeddings)\n", result.stderr
    program.refused(*arguments, "--prompt", "a", "--prompt", "b" * 30,
                    said="prompt 2: wanted fewer tokens than the model's 20")


def check_generation_config(program):
    """The folder's wishes hold, and flags win over them."""
    folder = make_chat_model(program, "wishes", generation_config={
        "do_sample": False, "temperature": 5, "eos_token_id": [END_OF_TURN, FIRST_BYTE + ord("q")],
        "max_new_tokens": 7, "unknown": [1]})
    greedy = ask(program, folder, "--prompt", "a", "--seed", 1)[0]
    assert greedy["text"] == ask(program, folder, "--prompt", "a", "--seed", 2)[0]["text"]
    assert greedy["new_tokens"] == 7, greedy
    hot = [ask(program, folder, "--prompt", "a", "--temperature", 5, "--seed", seed)[0]["text"]
           for seed in (1, 2)]
    assert hot[0] != hot[1], hot
    assert ask(program, folder, "--prompt", "a", "--max-tokens", 3)[0]["new_tokens"] == 3
    for token in (END_OF_TURN, FIRST_BYTE + ord("q")):
        assert ask(program, folder, "--prompt", "a", *bias_token(token))[0]["stopped"] == "eos"
    assert ask(program, folder, "--prompt", "a", *bias_token(EOS))[0]["stopped"] == "length"
    for wrong, said in (({"top_p": "x"}, "generation_config.json: top_p: wanted"),
                        ({"min_p": -1}, "generation_config.json: min_p: wanted 0 to 1, got -1"),
                        ({"eos_token_id": {}}, "generation_config.json: eos_token_id: wanted"),
                        ([], "generation_config.json")):
        folder = make_chat_model(program, "wrong", generation_config=wrong)
        program.refused("generate", "--model", folder, "--prompt", "a", said=said)


def check_options(program, folder):
    arguments = ["generate", "--model", folder, "--prompt", "x"]
    for wrong, said in (
            (["--min-p", 2], "--min-p: wanted 0 to 1, got 2"),
            (["--top-p", "nan"], "--top-p: wanted more than 0 and at most 1, got nan"),
            (["--repetition-penalty", 0], "--repetition-penalty: wanted 0.01 to 100, got 0"),
            (["--stop", ""], "--stop: wanted some text, got an empty string"),
            (["--logit-bias", "5"], "--logit-bias: wanted ID=BIAS"),
            (["--logit-bias", "5=nan"], "--logit-bias: wanted ID=BIAS"),
            (["--logit-bias", "5=1e9"], "--logit-bias: wanted -inf"),
            (["--logit-bias", "300=1"], "--logit-bias: wanted a token id below 261, got 300"),
            (["--logit-bias", "-1=1"], "--logit-bias: wanted a token id below 261, got -1")):
        program.refused(*arguments, *wrong, said=said)
    program.refused(*arguments[:3], said="--prompt or --prompts is required", status=2)
    program.refused(*arguments, "--prompts", "f", said="excludes", status=2)
    program.refused(*arguments[:3], "--prompts", program.scratch / "none", said="none")
    penalised = ask(program, folder, "--prompt", "a", "--temperature", 0, "--max-tokens", 40,
                    "--repetition-penalty", 100)[0]["text"]
    plain = ask(program, folder, "--prompt", "a", "--temperature", 0, "--max-tokens", 40)[0]["text"]
    assert penalised != plain


def check_interruption(program, folder):
    """Ctrl-C ends the text, not the program."""
    command = program.command("generate", "--model", folder, "--prompt", "a", "--max-tokens", 4000,
                              *bias_for("x"))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    begun = process.stdout.read(3)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=60)
    assert process.returncode == 0 and error == "", (process.returncode, error)
    text = begun + out
    assert text == "a" + "x" * (len(text) - 2) + "\n" and len(text) < 4002, (text[:3], len(text))


def main():
    os.environ["OMP_NUM_THREADS"] = "1"
    program = Program()
    folder = make_chat_model(program)
    check_batches(program, folder)
    check_ends(program, folder)
    check_limits(program)
    check_generation_config(program)
    check_options(program, folder)
    check_interruption(program, folder)


main()
