"""What the program tests share: running zaya, and a small run to train."""

import argparse
import json
import pathlib
import shutil
import subprocess

RECIPE = """
name = "small"
seed = 7
max_steps = {max_steps}

[model]
vocab_size = 258
hidden_size = 32
num_hidden_layers = 2
num_attention_heads = 4
num_key_value_heads = 2
head_dim = 16
num_experts = 4
moe_intermediate_size = 32
router_hidden_size = 16
sliding_window = 24
sliding_layers = [true, false]

[tokenizer]
path = "byte"

[[data]]
name = "text"
path = "{data}"
holdout_every = 10

[validation]
every = {validate}
tokens = 2048

[[phases]]
name = "short"
steps = 120
seq_len = 64
batch_tokens = 512
batch_tokens_start = 256
ramp_tokens = 8192
micro_batch_tokens = 256

[[phases]]
name = "long"
steps = 80
seq_len = 128
batch_tokens = 512
rotary_base = 50000

[optimizer]
muon_learning_rate = 0.01
adamw_learning_rate = 0.005
embedding_learning_rate = 0.005
balancing_learning_rate = 0.01
warmup_steps = 10
spike_factor = 20
spike_warmup_steps = 20

[checkpoint]
every = {checkpoint}
keep = 2
"""


class Program:
    """The zaya under test, and a scratch folder that starts empty."""

    def __init__(self):
        parser = argparse.ArgumentParser()
        parser.add_argument("--zaya", required=True)
        parser.add_argument("--source", type=pathlib.Path, required=True)
        parser.add_argument("--scratch", type=pathlib.Path, required=True)
        parser.add_argument("--update", action="store_true", help="rewrite what is compared with")
        self.arguments = parser.parse_args()
        self.zaya = self.arguments.zaya
        self.source = self.arguments.source
        self.scratch = self.arguments.scratch
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True)

    def command(self, *arguments):
        return [self.zaya, *map(str, arguments)]

    def run(self, *arguments, status=0, **options):
        """Runs zaya, checks its exit status, and returns the finished process."""
        result = subprocess.run(self.command(*arguments), capture_output=True, text=True,
                                timeout=600, **options)
        assert result.returncode == status, (
            f"{arguments}: wanted exit {status}, got {result.returncode}\n"
            f"{result.stdout[-2000:]}{result.stderr[-2000:]}")
        return result

    def refused(self, *arguments, said, status=1, **options):
        """Runs zaya on something wrong. It must end by itself, with one clear message on standard
        error that has every text of `said` in it. Returns the message."""
        result = self.run(*arguments, status=status, errors="replace", **options)
        message = result.stderr
        assert message.startswith("zaya: "), f"{arguments}: {message!r}"
        for text in [said] if isinstance(said, str) else said:
            assert text in message, f"{arguments}: wanted {text!r} in {message!r}"
        for sign in ("contract broken", "terminate", "std::", "basic_string", "filesystem error"):
            assert sign not in message, f"{arguments}: {message!r}"
        return message

    def pack_corpus(self, characters=200_000):
        """Some of the Jargon File as a token store of bytes."""
        text = (self.source / "data/quickstart/train.txt").read_text()[:characters]
        (self.scratch / "corpus.txt").write_text(text)
        self.run("pack", "--tokenizer", "byte", "--separator", "%", "--input",
                 self.scratch / "corpus.txt", "--out", self.scratch / "corpus")
        return self.scratch / "corpus"

    def write_recipe(self, name="recipe.toml", data=None, max_steps=0, validate=100, checkpoint=7):
        path = self.scratch / name
        path.write_text(RECIPE.format(data=data or self.scratch / "corpus", max_steps=max_steps,
                                      validate=validate, checkpoint=checkpoint))
        return path


def metrics(run, key="loss"):
    """The values of one key in a run's metrics.jsonl, in order."""
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return [entry[key] for entry in map(json.loads, lines) if key in entry]


def newest_checkpoint(run):
    return max(p for p in run.iterdir() if p.name.startswith("step-") and p.suffix == "")


def checkpoints(run):
    return sorted(p.name for p in run.iterdir() if p.name.startswith("step-"))


def train(recipe, run, *arguments, last=6):
    """The arguments of a run that ends after `last` steps."""
    return ["train", recipe, "--out", run, "--set", f"max_steps={last}", *arguments]
