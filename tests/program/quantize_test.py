"""A model loses little by being held as integers: perplexity of held-out text after a short training, read as prompts
and a token at a time."""

import json

from support import Program

STEPS = 40
# Of the perplexity with the weights as they were trained.
MOST = {"int8": 1.005, "int4": 1.03}
SAMPLE_BYTES = {"prompts": 40_000, "one by one": 6_000}


def perplexity(program, model, text, *options):
    result = program.run("eval", "--model", model, "--text", text, "--json", *options)
    return json.loads(result.stdout)["perplexity"]


def main():
    program = Program()
    corpus = program.source / "data/quickstart"
    tokenizer = program.scratch / "tokenizer.model"
    program.run("tokenizer", "train", "--input", corpus / "train.txt", "--separator", "%", "--vocab", "2048",
                "--out", tokenizer)
    data = program.scratch / "train"
    program.run("pack", "--tokenizer", tokenizer, "--input", corpus / "train.txt", "--separator", "%", "--out", data)
    run = program.scratch / "run"
    program.run("train", program.source / "recipes/quickstart.toml", "--out", run, "--set", f"max_steps={STEPS}",
                "--set", f"tokenizer.path={tokenizer}", "--set", f"data[0].path={data}",
                "--set", f"validation.sources[0].path={data}")
    heldout = (corpus / "heldout.txt").read_bytes()
    for kind, size in SAMPLE_BYTES.items():
        text = program.scratch / f"{size}.txt"
        text.write_bytes(heldout[:size])
        options = ["--one-by-one"] if kind == "one by one" else []
        trained = perplexity(program, run, text, *options)
        assert 5 < trained < 1000, trained
        for form, most in MOST.items():
            model = program.scratch / form
            if not model.exists():
                program.run("convert", run, model, "--to", form)
            integers = perplexity(program, model, text, *options)
            assert integers < most * trained, f"{form}, {kind}: perplexity {integers}, {trained} before"
            assert integers > 0.98 * trained, f"{form}, {kind}: {integers} beside {trained}: another text?"


main()
